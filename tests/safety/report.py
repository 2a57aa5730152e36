"""How much the guard hears and how often it cries wolf, with intervals: `python -m tests.safety.report`."""

import asyncio
import sys
from dataclasses import replace
from math import sqrt

from agents.brains.local import LocalBrain
from agents.context_extractor import extract
from agents.embedding import embed
from agents.ports import Embedder
from agents.safety.ears import Ears
from agents.safety.guard import Guard
from orchestrator.settings import load
from orchestrator.watch import Watch
from orchestrator.wiring import load_ears, load_embedder, load_guard
from tests.builders import some_blocks
from tests.houses import a_watch, local_brain
from tests.safety.phrases import ASIDE, BLIND, BLIND_LATER, HELD_OUT, KNOWN, UNSEEN, phrases

Z = 1.96
HEAD = "| phrases | set | count | rules alone | rules and ears | in a turn |\n|---|---|---|---|---|---|\n"
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


def flagged_in_turn(texts: list[str], watch: Watch, brain: LocalBrain, embedder: Embedder) -> int:
    """How many of them raise an alarm as the first message of a conversation: retold and routed, too."""
    return sum(asyncio.run(_first_turn(text, watch, brain, embedder)) for text in texts)


async def _first_turn(text: str, watch: Watch, brain: LocalBrain, embedder: Embedder) -> bool:
    blocks = some_blocks(0)
    enrichment = await extract(brain, text, blocks)
    embedded = await embed(embedder, text, enrichment)
    if watch.hear(text).is_danger or watch.hear_again(text, enrichment, blocks).is_danger:
        return True
    if watch.hear_meaning(text, enrichment, embedded).is_danger:
        return True
    intent = await brain.classify(enrichment, blocks, embedded)
    return watch.hear_intent(text, enrichment, embedded, intent)[0].is_danger


def main() -> None:
    """A table in Markdown: the phrases tuned on, those set aside before, and those written later."""
    settings, guard, brain = load(None, {}), load_guard(), local_brain()
    embedder = load_embedder(settings)
    ears = load_ears(settings, embedder)
    watch = replace(a_watch(), ears=ears)
    parts = {
        "known": KNOWN,
        "set aside": HELD_OUT,
        "blind": BLIND,
        "blind, later": BLIND_LATER,
        "set aside, later": ASIDE,
        "unseen": UNSEEN,
    }
    sys.stdout.write(HEAD)
    for part, folder in parts.items():
        for name in SETS:
            texts = [phrase.text for phrase in phrases(folder, name)]
            counts = flagged(texts, guard, None), flagged(texts, guard, ears)
            shares = [*counts, flagged_in_turn(texts, watch, brain, embedder)]
            told = " | ".join(_share(each, len(texts)) for each in shares)
            sys.stdout.write(f"| {part} | {name} | {len(texts)} | {told} |\n")
            sys.stdout.flush()


def _share(found: int, of: int) -> str:
    low, high = wilson(found, of)
    return f"{found / of:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
