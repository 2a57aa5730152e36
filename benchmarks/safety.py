"""What the guard costs: its rules on many messages of 1,000 characters, and on others, in this thread's time.

Beside it stands a bare pass that only takes the same text apart into words, so that a busy processor slows
both alike.
"""

import random
import re
import tomllib
from pathlib import Path
from time import thread_time

from agents.safety.guard import load
from orchestrator.settings import shipped_config

ROUNDS = 300
SHORT = "I have had a runny nose since Monday"
REPEATED = "took too much ibuprofen " * 850
LONGEST = 20_000
SLIPS = 0.05
"""How many of the longer words are mistyped, so that the guard has never seen them."""
WORD = re.compile(r"\w+")
LONG_WORD = re.compile(r"[a-z]{6,}")


def varied(folder: Path, count: int, size: int) -> list[str]:
    """Different texts of this size, of what people may write, slips of the pen included; always the same."""
    said = [
        text
        for name in ("ordinary", "calm", "emergencies", "crises", "sideways", "voices")
        for table in tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8")).values()
        for text in table["phrases"]
    ]
    chance = random.Random(1)

    def mistyped(found: re.Match[str]) -> str:
        word, at = found[0], chance.randrange(1, len(found[0]))
        return word[:at] + word[at + 1 :] if chance.random() < SLIPS else word

    texts = (". ".join(chance.choices(said, k=size // 20))[:size] for _ in range(count))
    return [LONG_WORD.sub(mistyped, text) for text in texts]


def starred(size: int) -> str:
    """Nothing but words with a letter left out, all different: what costs a reader most."""
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(
        f"{chance.choice(letters)}*{''.join(chance.choices(letters, k=4))}" for _ in range(size // 7)
    )


def main() -> None:
    """The middle and the slowest hundredth of many rounds."""
    folder = shipped_config() / "safety"
    guard = load(folder)
    texts = {
        "1,000 characters, varied": varied(folder / "phrases", ROUNDS, 1_000),
        "one short sentence": [SHORT] * ROUNDS,
        "20,000 characters of one finding": [REPEATED[:LONGEST]] * (ROUNDS // 10),
        "20,000 characters of denials": [("no chest pain, " * LONGEST)[:LONGEST]] * (ROUNDS // 30),
        "20,000 characters of words with a star": [starred(LONGEST)] * (ROUNDS // 30),
    }
    for name, said in texts.items():
        spent, bare = [], []
        for text in said:
            start = thread_time()
            guard.check(text)
            middle = thread_time()
            [word.lower() for word in WORD.findall(text)]
            spent.append(middle - start)
            bare.append(thread_time() - middle)
        spent.sort()
        bare.sort()
        p50, p99 = spent[len(said) // 2], spent[len(said) * 99 // 100]
        print(
            f"  {name}: p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms (goal 2 ms for 1,000 characters); "
            f"{p50 / bare[len(said) // 2]:.0f} times a bare pass over the words"
        )
