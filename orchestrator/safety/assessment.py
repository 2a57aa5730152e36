"""The values of the safety monitor: what was found in a message, and what is done about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal, TypeAlias

from agents.ports import Embedded
from agents.safety.conversation.standing import is_same
from agents.safety.verdict import (
    ASIDE,
    CALLED,
    GOING,
    MEANWHILE,
    NO_HELP,
    OVER,
    PLANNED,
    SILENT,
    STILL,
    Certainty,
    Verdict,
)
from agents.values import EMERGENCY, UNCLEAR, Enrichment, Intent
from memory_blocks.models import Blocks
from orchestrator.ops import telemetry
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import SafetyEvent
from orchestrator.wire.envelope import Scalar
from orchestrator.wire.messages import Safety

Stage: TypeAlias = Literal["message", "enriched", "answer"]

LANGUAGE: Final = "language."
"""Prefix of the rule that is recorded for a message in another language; the language's code follows."""

NOT_CLASSIFIED: Final = Intent(intent=UNCLEAR, confidence=0.0, reasoning="The message is not classified yet")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the safety checks found in a message. Several assessments add up and never cancel each other."""

    verdict: Verdict = field(default_factory=Verdict)
    failed: bool = False
    """Whether a check failed. The person then reads a sentence of caution first."""
    language: str | None = None
    """The language of a message that is not in English, which the rules cannot judge."""
    uncertain: bool = False
    """Whether the message may be an emergency. The person then reads the emergency number first."""

    @property
    def is_danger(self) -> bool:
        """Whether the person gets a safety answer."""
        return not self.verdict.is_silent

    @property
    def wire_field(self) -> Safety | None:
        """The field `safety` of StartAnswer."""
        verdict = self.verdict
        if verdict.kind == "none" or not self.is_danger:
            return None
        return Safety(kind=verdict.kind, tier=verdict.tier, certainty=verdict.certainty)

    @property
    def meta(self) -> dict[str, Scalar]:
        """The meta of the first sentence, by which a client recognises a safety answer."""
        if self.is_danger:
            verdict = self.verdict
            return {"safety": verdict.kind, "tier": verdict.tier, "certainty": verdict.certainty}
        if self.failed:
            return {"guard": "unavailable"}
        return {"guard": "unsupported_language"} if self.language else {}

    @property
    def intent(self) -> Intent:
        """The intent of a message in danger; it overrides the brain's."""
        why = f"Found by the guard: {', '.join(self.verdict.rule_ids)}"
        return Intent(intent=EMERGENCY, confidence=1.0, reasoning=why)

    def raised_by(self, other: "Assessment") -> "Assessment":
        """Both assessments together."""
        return Assessment(
            self.verdict.raised_by(other.verdict),
            self.failed or other.failed,
            self.language or other.language,
            self.uncertain or other.uncertain,
        )

    @classmethod
    def from_events(cls, events: Iterable[SafetyEvent]) -> "Assessment":
        """The assessment of a message, read back from the events that were recorded for it."""
        found = cls()
        for event in events:
            if event.kind == "guard_failed":
                language = next((rule.removeprefix(LANGUAGE) for rule in event.rules), None)
                found = found.raised_by(cls(failed=language is None, language=language))
            elif event.kind in ("emergency", "crisis"):
                kind: Literal["emergency", "crisis"] = "crisis" if event.kind == "crisis" else "emergency"
                certainty: Certainty = "possible" if event.certainty == "possible" else "certain"
                found = found.raised_by(cls(Verdict(kind, event.tier, event.rules, certainty)))
        return found


@dataclass(frozen=True, slots=True)
class SafetyNote:
    """A row for the table `safety_events`, and whether it becomes an alert to staff."""

    stage: Stage
    kind: str
    tier: int = 0
    certainty: Certainty | None = None
    rules: tuple[str, ...] = ()
    alert: bool = False
    refused: str = ""
    """The text that a brain was not allowed to say."""


@dataclass(frozen=True, slots=True)
class MessageRef:
    """The message that a note is about. A synchronised message belongs to no turn."""

    conversation_id: str
    message_id: str
    turn: int | None


def write_notes(
    tx: Transaction, message: MessageRef, notes: Sequence[SafetyNote], *, is_recent: bool = True
) -> None:
    """Store the notes. Staff get an alert only if the message is recent."""
    for note in notes:
        if note.certainty is not None and not {STILL, *SILENT}.intersection(note.rules):
            telemetry.danger_found(note.kind, note.certainty)
        tx.safety.record(
            message.conversation_id,
            message.message_id,
            message.turn,
            stage=note.stage,
            kind=note.kind,
            tier=note.tier,
            certainty=note.certainty,
            rules=note.rules,
            alert=note.alert and is_recent,
            refused=note.refused,
        )


@dataclass(frozen=True, slots=True)
class SafetyRecord:
    """What the store holds about the safety of a turn's message and of the messages before it."""

    turn: int
    events: tuple[SafetyEvent, ...] = ()
    """Recorded for this message."""
    before: tuple[SafetyEvent, ...] = ()
    """Dangers that were recorded for earlier messages of the conversation."""
    last: tuple[SafetyEvent, ...] = ()
    """Dangers that were recorded for the message right before this one, if it is not long ago."""
    unanswered: str = ""
    """The message that raised the question about possible danger, and got no other answer; empty if none."""
    is_repeated: bool = False
    """Whether the turn answers its message once more: the person has read the first wording already."""

    @property
    def earlier(self) -> Assessment:
        """The assessment of the message right before this one."""
        return Assessment.from_events(self.last)

    def has_asked_about(self, verdict: Verdict) -> bool:
        """Whether a possible danger of this kind was asked about before in the conversation."""
        return any(event.certainty == "possible" and event.kind == verdict.kind for event in self.before)

    def times_answered(self, verdict: Verdict) -> int:
        """How often this danger was answered before. The count selects the wording.

        A danger counts as another one if the turn before had none, one of another kind or tier, or an
        unrelated one. It then starts with the first wording, or with the second one if the person has just
        read the first. Questions about possible danger, and answers to a person who has called for help or
        asks what to do until it arrives, are counted through the whole conversation.
        """
        by_message = groupby(self.before, lambda event: (event.turn, event.message_id))
        all_dangers = ((turn, Assessment.from_events(events).verdict) for (turn, _), events in by_message)
        dangers = [
            each
            for each in all_dangers
            if each[1].certainty == verdict.certainty and not {ASIDE, OVER}.intersection(each[1].rule_ids)
        ]
        if verdict.is_possible:
            return sum(not danger.is_silent for _, danger in dangers) + self.is_repeated
        for mark in (MEANWHILE, NO_HELP, PLANNED, CALLED, GOING):
            if mark in verdict.rule_ids:
                return sum(mark in danger.rule_ids for _, danger in dangers) + self.is_repeated
        times, last, last_turn = 0, Verdict(), None
        for turn, danger in (*dangers, (self.turn, verdict)):
            follows = turn is None or last_turn is None or turn - last_turn <= 1
            same_texts = (danger.kind, danger.tier) == (last.kind, last.tier)
            if same_texts and follows and is_same(danger, last):
                times += 1
            else:
                times = int(same_texts and times == 0)
            last, last_turn = danger, turn
        return times + self.is_repeated


@dataclass(frozen=True, slots=True)
class MessageDecision:
    """What is done about a message that came in."""

    assessment: Assessment = field(default_factory=Assessment)
    first_sentence: str = ""
    """The first sentence of a safety answer, for a person in danger. It does not wait for the store."""
    error_prefix: str = ""
    """What an ErrorMessage about this message begins with: whom to call."""
    notes: tuple[SafetyNote, ...] = ()

    @property
    def is_danger(self) -> bool:
        """Whether the message goes before all others: no limit refuses it, and it stops earlier turns."""
        return self.assessment.is_danger

    def graver_of(self, other: "MessageDecision") -> "MessageDecision":
        """The decision about the graver of two messages."""
        ours, both = self.assessment.verdict, self.assessment.raised_by(other.assessment).verdict
        return self if (ours.kind, ours.tier) == (both.kind, both.tier) else other


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """What a turn does about its message, as far as the message is understood."""

    assessment: Assessment
    sentences: tuple[str, ...]
    """The safety answer, or the sentence of caution before an ordinary answer. The first one goes first."""
    times_answered: int
    """How often this danger was answered before, by which `sentences` were chosen."""
    error_prefix: str
    """What an ErrorMessage that ends the turn begins with."""
    notes: tuple[SafetyNote, ...] = ()
    """What this step found and the store does not have yet."""
    say_now: tuple[str, ...] = ()
    """What the person must read at once, because this step found a graver danger."""
    reply: tuple[str, ...] | None = None
    """The rest of the answer, if no specialist answers; None if one does."""
    preface: tuple[str, ...] = ()
    """What is said before the specialist's answer."""
    resumes: str = ""
    """The earlier message that the turn answers, because the person has denied the possible danger in it."""
    intent: Intent = NOT_CLASSIFIED


@dataclass(frozen=True, slots=True)
class SentenceDecision:
    """What is done about a text of a brain: it is said, or another one in its place."""

    text: str
    notes: tuple[SafetyNote, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether the brain was not allowed to say it."""
        return bool(self.notes)


@dataclass(frozen=True, slots=True)
class UnderstoodMessage:
    """What a turn knows about its message. Each station of the turn adds to it."""

    text: str
    record: SafetyRecord
    blocks: Blocks | None = None
    enrichment: Enrichment | None = None
    embedded: Embedded | None = None
    intent: Intent | None = None
