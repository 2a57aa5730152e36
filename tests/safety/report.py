"""How much the guard hears and how often it cries wolf, with intervals: `python -m tests.safety.report`."""

import sys
from math import sqrt
from pathlib import Path

from agents.safety.ears import Ears
from agents.safety.guard import Guard
from orchestrator.settings import load
from orchestrator.wiring import load_ears, load_embedder, load_guard
from tests.safety.phrases import BLIND, BLIND_LATER, HELD_OUT, KNOWN, phrases

Z = 1.96
SETS = ("emergencies", "crises", "calm", "ordinary")


def wilson(found: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    share, square = found / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = Z * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def flagged(texts: list[str], guard: Guard, ears: Ears | None) -> int:
    """How many of them raise an alarm."""
    return sum(guard.check(text).flagged or (ears is not None and ears.check(text).flagged) for text in texts)


def main() -> None:
    """A table in Markdown: the phrases tuned on, those set aside before, and those written later."""
    settings, guard = load(None, {}), load_guard()
    ears = load_ears(settings, load_embedder(settings))
    table = ["| phrases | set | count | rules alone | rules and ears |", "|---|---|---|---|---|"]
    parts = {"known": KNOWN, "set aside": HELD_OUT, "blind": BLIND, "blind, later": BLIND_LATER}
    for part, folder in parts.items():
        table += [_row(part, name, folder, guard, ears) for name in SETS]
    sys.stdout.write("\n".join(table) + "\n")


def _row(part: str, name: str, folder: Path, guard: Guard, ears: Ears) -> str:
    texts = [phrase.text for phrase in phrases(folder, name)]
    shares = []
    for listener in (None, ears):
        found = flagged(texts, guard, listener)
        low, high = wilson(found, len(texts))
        shares.append(f"{found / len(texts):.1%} ({low:.1%} to {high:.1%})")
    return f"| {part} | {name} | {len(texts)} | {' | '.join(shares)} |"


if __name__ == "__main__":
    main()
