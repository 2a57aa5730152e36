"""How well follow-ups are resolved: cases with what an enriched message must and must not say."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from agents.enriching import Enricher
from agents.transcripts import Utterance, turns_of
from agents.values import Enrichment


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    value: str


class Case(BaseModel):
    """A message after its history: words that its enrichment has and lacks, facts that it brought, and facts
    that are not known after it, whoever said something of the kind; one without a value is of any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    history: tuple[Utterance, ...]
    message: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    facts: tuple[_Fact, ...] = ()
    not_facts: tuple[_Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was made of a case, and what is wrong with it."""

    case: Case
    enrichment: Enrichment
    wrong: tuple[str, ...]


def load_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a file, one JSON object per line."""
    return tuple(
        Case.model_validate(json.loads(line))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line
    )


def resolve(case: Case, enricher: Enricher) -> Outcome:
    """The case as the extractor resolves it."""
    opening, exchanges = turns_of(case.history)
    found = enricher.enrich(case.message, exchanges, opening=opening)
    low = found.enriched_message.lower()
    now = len(exchanges) + 1
    wrong = [f"lacks {word!r}" for word in case.has if word.lower() not in low]
    wrong += [f"has {word!r}" for word in case.lacks if word.lower() in low]
    for fact in case.facts:
        if not any(
            each.kind == fact.kind and fact.value.lower() in each.value.lower() and each.turn == now
            for each in found.facts
        ):
            wrong.append(f"no fact {fact.kind} = {fact.value!r} of turn {now}")
    for fact in case.not_facts:
        if any(each.kind == fact.kind and fact.value.lower() in each.value.lower() for each in found.facts):
            wrong.append(f"fact {fact.kind} = {fact.value!r}")
    return Outcome(case, found, tuple(wrong))
