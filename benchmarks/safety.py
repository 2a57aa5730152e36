"""What the guard costs: its rules on a message of 1,000 characters, and on short ones, in this thread's time.

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

ROUNDS = 500
SHORT = "I have had a runny nose since Monday"
REPEATED = "took too much ibuprofen " * 850
WORD = re.compile(r"\w+")


def varied(folder: Path, count: int, size: int) -> list[str]:
    """Different texts of this size, made of what people may write, the same ones each time."""
    tables = [
        tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        for name in ("ordinary", "calm", "emergencies", "crises")
    ]
    said = [text for tables_of in tables for table in tables_of.values() for text in table["phrases"]]
    chance = random.Random(1)
    return [". ".join(chance.choices(said, k=size // 20))[:size] for _ in range(count)]


def main() -> None:
    """The middle and the slowest hundredth of many rounds."""
    folder = shipped_config() / "safety"
    guard = load(folder)
    texts = {
        "1,000 characters, varied": varied(folder / "phrases", ROUNDS, 1_000),
        "one short sentence": [SHORT] * ROUNDS,
        "20,000 characters of one finding": [REPEATED[:20_000]] * (ROUNDS // 10),
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
