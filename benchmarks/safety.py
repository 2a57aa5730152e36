"""The cost of the guard's rules and of the classifier, on messages of several lengths, in processor time.

It also prints how long the guard takes to load from its cache. The rules are compared with code that only
splits the same text into words, so that other load on the machine slows both equally.
"""

import gc
import random
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from time import process_time, thread_time

from agents.safety.detector import DangerDetector
from agents.safety.rules.guard import Guard, load
from orchestrator.settings import load as settings_of
from orchestrator.settings import shipped_config
from orchestrator.wiring import load_classifier, load_embedder, model_files

ROUNDS = 300
SIZE = 1_000
TRIES = 5
CLASSIFIED = 30
SHORT = "I have had a runny nose since Monday"
REPEATED = "took too much ibuprofen " * 850
LONGEST = 20_000
SLIPS = 0.05
"""The share of longer words that are misspelt, so that the guard has not cached them."""
WORD = re.compile(r"\w+")
LONG_WORD = re.compile(r"[a-z]{6,}")


def varied(folder: Path, count: int, size: int) -> list[str]:
    """Different texts of this size, made of our phrases, some misspelt. Every run has the same texts."""
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
    """A text of different words that each have a star for a letter: the slowest input for the reader."""
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(
        f"{chance.choice(letters)}*{''.join(chance.choices(letters, k=4))}" for _ in range(size // 7)
    )


def main() -> None:
    """Print the median and the 99th percentile over many texts, for the first and the best of some tries."""
    folder = shipped_config() / "safety"
    _time_loading(folder)
    guard = load(folder)
    gc.freeze()  # as `anamnesis serve` does
    texts = {
        "1,000 characters, varied": varied(folder / "phrases", ROUNDS, SIZE),
        "one short sentence": [SHORT] * ROUNDS,
        "20,000 characters, varied": varied(folder / "phrases", ROUNDS // 10, LONGEST),
        "20,000 characters of one finding": [REPEATED[:LONGEST]] * (ROUNDS // 10),
        "20,000 characters of denials": [("no chest pain, " * LONGEST)[:LONGEST]] * (ROUNDS // 30),
        "20,000 characters of old pain": [("years ago chest pain " * LONGEST)[:LONGEST]] * (ROUNDS // 30),
        "20,000 characters of supposed harm": [("if kill myself " * LONGEST)[:LONGEST]] * (ROUNDS // 30),
        "20,000 characters of words with a star": [starred(LONGEST)] * (ROUNDS // 30),
    }
    for name, said in texts.items():
        first, bare = _heard(guard, said)
        again = [_heard(guard, said)[0] for _ in range(TRIES if len(said[0]) <= SIZE else 1)]
        best = [min(times) for times in zip(first, *again, strict=True)]
        p50, p99 = _shares(first)
        print(
            f"  {name}: p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms, {p50 / _shares(bare)[0]:.0f} times a "
            f"bare pass over the words; each text at its best, p99 {_shares(best)[1] * 1e3:.2f} ms"
        )
    print(f"  goal: p99 2 ms for {SIZE:,} characters, 30 ms for {LONGEST:,}")
    _time_classifier(folder)


def _time_loading(folder: Path) -> None:
    """Print how long the guard takes to load from its cache."""
    cache = settings_of(None, {}).models.dir
    load(folder, cache)
    spent = []
    for _ in range(TRIES):
        start = process_time()
        load(folder, cache)
        spent.append(process_time() - start)
    print(f"  load from cache: p50 {_shares(spent)[0]:.2f} s, slowest {max(spent):.2f} s of processor time")
    print("  goal: 0.3 s")


def _time_classifier(folder: Path) -> None:
    """Print how long rules and classifier together take, by the number of words; the model is warm."""
    settings = settings_of(None, {})
    if model_files(settings).what_is_wrong() is not None:
        print("  the embedding model is not installed: the classifier was not measured")
        return
    detector = DangerDetector(load(folder), load_classifier(settings, load_embedder(settings)))
    detector.check(SHORT)
    for words in (10, 30, 100, 300, 1_000):
        texts = [
            " ".join(text.split()[:words]) for text in varied(folder / "phrases", CLASSIFIED, words * 12)
        ]
        spent = []
        for text in texts:
            start = process_time()
            detector.check(text)
            spent.append(process_time() - start)
        p50, p99 = _shares(spent)
        print(
            f"  rules and classifier, {words} words, processor time:"
            f" p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms"
        )


def _heard(guard: Guard, texts: Sequence[str]) -> tuple[list[float], list[float]]:
    """The seconds of the guard, and of splitting into words, for each text."""
    spent, bare = [], []
    for text in texts:
        start = thread_time()
        guard.check(text)
        middle = thread_time()
        [word.lower() for word in WORD.findall(text)]
        spent.append(middle - start)
        bare.append(thread_time() - middle)
    return spent, bare


def _shares(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    ordered = sorted(times)
    return ordered[len(times) // 2], ordered[len(times) * 99 // 100]
