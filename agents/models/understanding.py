"""A model's reading of a message: the schema of its reply, and the reply as an `Understanding`.

In a request and in its reply, a known fact has a short label: `f1` is the first of the situation's facts.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agents.errors import UnreadableReply
from agents.models.replies import Schema, object_schema, parse_reply
from agents.ports import Situation
from agents.questions import kinds_asked
from agents.stations.understand import slug
from agents.values import Act, ActKind, Enrichment, FactReading, Intent, Share, Understanding
from memory_blocks.facts.changes import CurrentFact, Decider, Op, subject_named

OPS: Final = (Op.ADD, Op.REPLACE, Op.RETRACT, Op.UNSURE)
"""The changes that a message can make. A withdrawal is made only by a turn that is answered again."""

_MAX_TEXT: Final = 600
"""Maximum length of `previous_context` and `reasoning`. Longer text is cut."""
_MAX_KIND: Final = 40

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_NUMBER: Final[Mapping[str, Any]] = {"type": "number"}


def understanding_schema(intents: Collection[str]) -> Schema:
    """Schema of the reply that says what a message means, which facts it changes and where it belongs."""
    act = object_schema(
        kind={"type": "string", "enum": [each.value for each in ActKind]}, words=_TEXT, confidence=_NUMBER
    )
    change = object_schema(
        op={"type": "string", "enum": [each.value for each in OPS]},
        target={"type": ["string", "null"]},
        kind=_TEXT,
        subject=_TEXT,
        about=_TEXT,
        value=_TEXT,
        stable={"type": "boolean"},
        true_when=_TEXT,
        words=_TEXT,
        confidence=_NUMBER,
    )
    return Schema(
        "understanding",
        object_schema(
            enriched_message=_TEXT,
            previous_context=_TEXT,
            relevant_history=_TEXTS,
            topic=_TEXT,
            trigger=_TEXT,
            phase=_TEXT,
            acts={"type": "array", "items": act},
            changes={"type": "array", "items": change},
            intent={"type": "string", "enum": sorted(intents)},
            confidence=_NUMBER,
            reasoning=_TEXT,
        ),
    )


def labelled(facts: Sequence[CurrentFact]) -> dict[str, CurrentFact]:
    """The facts by the labels that a request shows: `f1`, `f2` …"""
    return {f"f{number}": fact for number, fact in enumerate(facts, start=1)}


def parse_understanding(reply: str, situation: Situation, intents: Collection[str]) -> Understanding:
    """Parse a reply. Raises `UnreadableReply`, also for an intent that does not exist."""
    found = parse_reply(_Reply, reply)
    if found.intent not in intents:
        raise UnreadableReply("intent is none of the listed ones")
    changes = tuple(_changes(found.changes, situation.facts))
    return Understanding(
        enrichment=Enrichment(
            previous_context=found.previous_context[:_MAX_TEXT] or "Not considered",
            enriched_message=found.enriched_message,
            relevant_history=tuple(found.relevant_history),
            topic=found.topic,
            trigger=found.trigger,
            phase=found.phase,
            answers=_answers(changes, situation),
            corrected=any(act.kind is ActKind.CORRECT for act in found.acts),
            quality=found.confidence,
        ),
        intent=Intent(
            intent=found.intent,
            confidence=found.confidence,
            reasoning=found.reasoning[:_MAX_TEXT] or "No reason was given",
        ),
        acts=tuple(Act(**act.model_dump()) for act in found.acts),
        changes=changes,
    )


# --- the reply ----------------------------------------------------------------------------------------------


def _cut(length: int) -> Any:
    """Cuts a text that is too long, and takes null for an empty one and a number for its digits."""

    def cut(value: object) -> object:
        if value is None:
            return ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return " ".join(value.split())[:length] if isinstance(value, str) else value

    return BeforeValidator(cut)


def _clipped(value: object) -> object:
    """A confidence that a model gave above 1 or below 0."""
    return min(1.0, max(0.0, value)) if isinstance(value, int | float) and isfinite(value) else value


_Confidence = Annotated[Share, BeforeValidator(_clipped)]


class _Part(BaseModel):
    """A part of the reply. Fields that we did not ask for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class _Act(_Part):
    kind: ActKind
    words: Annotated[str, _cut(400)] = ""
    confidence: _Confidence = 1.0


class _Change(_Part):
    op: Op
    target: str | None = None
    kind: Annotated[str, _cut(80)] = ""
    subject: Annotated[str, _cut(60)]
    about: Annotated[str, _cut(120)] = ""
    value: Annotated[str, _cut(200)] = ""
    stable: bool = False
    true_when: Annotated[str, _cut(120)] = ""
    words: Annotated[str, _cut(200)] = ""
    confidence: _Confidence = 1.0


class _Reply(_Part):
    enriched_message: Annotated[str, Field(min_length=1)]
    previous_context: Annotated[str, _cut(_MAX_TEXT)] = ""
    relevant_history: tuple[str, ...] = ()
    topic: str = "conversation"
    trigger: str = "new_message"
    phase: str = ""
    acts: tuple[_Act, ...] = ()
    changes: tuple[_Change, ...] = ()
    intent: str
    confidence: _Confidence
    reasoning: Annotated[str, _cut(_MAX_TEXT)] = ""


def _changes(changes: Sequence[_Change], facts: Sequence[CurrentFact]) -> Iterator[FactReading]:
    """The changes with the facts that they mean. What a change does not say is taken from its target."""
    known, subjects = labelled(facts), {fact.subject: None for fact in facts}
    for number, change in enumerate(changes):
        target = known.get((change.target or "").strip().lower())
        kind = re.sub(r"[^a-z_]", "", slug(change.kind))[:_MAX_KIND].strip("_") or (
            target.kind if target else ""
        )
        value = change.value or (target.value if target else "")
        subject = subject_named(change.subject, subjects)
        if change.op not in OPS:
            raise UnreadableReply(f"changes.{number}.op is none of the listed ones")
        for name, given in (("subject", subject), ("kind", kind), ("value", value)):
            if not given:
                raise UnreadableReply(f"changes.{number}.{name} is missing")
        yield FactReading(
            **change.model_dump(exclude={"kind", "value", "target", "subject"}),
            kind=kind,
            subject=subject,
            value=value[:200],
            target=target.id if target else None,
            decided_by=Decider.MODEL,
        )


def _answers(changes: Sequence[FactReading], situation: Situation) -> tuple[str, ...]:
    """The kinds of fact that the message gave in reply to the last question."""
    turns = situation.blocks.conversation_history.turns
    answer = turns[-1].agent_response if turns else None
    asked = kinds_asked(answer.content) if answer else ()
    return tuple(dict.fromkeys(change.kind for change in changes if change.kind in asked))
