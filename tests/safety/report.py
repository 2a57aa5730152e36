"""How much the guard finds and its false alarms, with intervals: `python -m tests.safety.report`."""

import asyncio
import sys
from dataclasses import replace
from math import sqrt

from agents.local import LocalBrain
from agents.ports import Embedder
from agents.safety.classifier import DangerClassifier
from agents.safety.detector import DangerDetector
from agents.safety.rules.guard import Guard
from agents.stations.embed import embed
from agents.stations.understand import understand
from orchestrator.safety.assessment import SafetyRecord, UnderstoodMessage
from orchestrator.safety.monitor import LearnedChecks, SafetyMonitor
from orchestrator.settings import load
from orchestrator.wiring import load_classifier, load_embedder
from tests.safety.phrases import ASIDE, BLIND, BLIND_LATER, HELD_OUT, KNOWN, UNSEEN, phrases
from tests.support.brains.models import the_guard, the_moves
from tests.support.builders import a_situation, some_blocks
from tests.support.orchestrators import a_monitor, local_brain

Z = 1.96
HEAD = (
    "| phrases | set | count | rules alone | rules and classifier | in a turn |\n|---|---|---|---|---|---|\n"
)
SETS = ("emergencies", "crises", "calm", "ordinary")


def wilson(found: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    share, square = found / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = Z * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def flagged(texts: list[str], guard: Guard, classifier: DangerClassifier | None) -> int:
    """How many raise an alarm."""
    return sum(DangerDetector(guard, classifier).check(text).flagged for text in texts)


def flagged_in_turn(texts: list[str], monitor: SafetyMonitor, brain: LocalBrain, embedder: Embedder) -> int:
    """How many raise an alarm as the first message of a conversation, after enrichment and routing."""
    return sum(asyncio.run(_first_turn(text, monitor, brain, embedder)) for text in texts)


async def _first_turn(text: str, monitor: SafetyMonitor, brain: LocalBrain, embedder: Embedder) -> bool:
    blocks = some_blocks(0)
    understanding = await understand(brain, text, a_situation(blocks))
    enrichment = understanding.enrichment
    embedded = await embed(embedder, text, enrichment, enrichment.known)
    if monitor.message_received(text).is_danger:
        return True
    known = UnderstoodMessage(text, SafetyRecord(1), blocks, enrichment)
    decision = monitor.message_understood(known, monitor.message_understood(known))
    known = replace(known, embedded=embedded)
    decision = monitor.message_understood(known, decision)
    if not decision.assessment.is_danger:
        decision = monitor.message_understood(replace(known, intent=understanding.intent), decision)
    return decision.assessment.is_danger


def main() -> None:
    """Print a Markdown table: phrases used for tuning, phrases set aside before, phrases written later."""
    settings, guard, brain = load(None, {}), the_guard(), local_brain()
    embedder = load_embedder(settings)
    classifier = load_classifier(settings, embedder)
    monitor = replace(a_monitor(), learned=LearnedChecks(classifier, the_moves()))
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
            counts = flagged(texts, guard, None), flagged(texts, guard, classifier)
            shares = [*counts, flagged_in_turn(texts, monitor, brain, embedder)]
            result = " | ".join(_share(each, len(texts)) for each in shares)
            sys.stdout.write(f"| {part} | {name} | {len(texts)} | {result} |\n")
            sys.stdout.flush()


def _share(found: int, of: int) -> str:
    low, high = wilson(found, of)
    return f"{found / of:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
