"""The safety monitor: decides what is said to a person in danger, what is recorded, and who is alerted.

It is asked three times: when a message comes in, whenever the turn understands more of it, and before a
sentence goes out. Each answer is a value with the verdict and with what to do about it.
"""

from dataclasses import dataclass, replace

from agents.roster import Specialist
from agents.safety.conversation.moves import Scores
from agents.safety.conversation.standing import Phase, is_same, phase_of
from agents.safety.detector import PLAINLY, Classifier
from agents.safety.language import Languages
from agents.safety.replies.output import OutputGuard
from agents.safety.replies.wording import Wording
from agents.safety.verdict import ASIDE, DENIED, LEANS, MEANING, OVER, QUIET, STILL, UNSURE, Verdict
from agents.values import EMERGENCY, UNCLEAR, Intent
from orchestrator.ops.logs import get_logger
from orchestrator.safety.assessment import (
    LANGUAGE,
    NOT_CLASSIFIED,
    Assessment,
    MessageDecision,
    SafetyNote,
    SafetyRecord,
    SentenceDecision,
    Stage,
    TurnDecision,
    UnderstoodMessage,
)
from orchestrator.safety.checks import PART_LENGTH, DangerChecks, RuleGuard
from orchestrator.safety.context import SHORT_REPLY, MessageContext, read_context
from orchestrator.store.engine.database import Transaction

log = get_logger()


@dataclass(frozen=True, slots=True)
class LearnedChecks:
    """Classifiers that learned from examples. They embed what they compare, so call them from a thread."""

    danger: Classifier | None = None
    """Compares texts with danger by their meaning."""
    moves: Scores | None = None
    """Compares messages after danger with examples of what people then do."""


@dataclass(frozen=True, slots=True)
class SafetyMonitor:
    """Checks what people write and what brains say. No setting switches it off.

    No check raises: a check that fails is logged, and the person is answered with caution.
    """

    guard: RuleGuard
    output: OutputGuard
    wording: Wording
    languages: Languages
    learned: LearnedChecks = LearnedChecks()
    alerts: bool = False
    """Whether staff get alerts."""
    store_wait_seconds: float = 0.3
    """How many seconds the first sentence to a person in danger waits for the store."""

    @property
    def _checks(self) -> DangerChecks:
        return DangerChecks(
            self.guard, self.wording.first_aid, self.languages, self.learned.danger, self.learned.moves
        )

    @property
    def error_prefix(self) -> str:
        """What an ErrorMessage begins with if the message is not known to be dangerous: whom to call."""
        return f"{self.wording.error} "

    def read_context(self, tx: Transaction, conversation_id: str, *, is_edit: bool = False) -> MessageContext:
        """The context of the person's next message, or of the latest one if that is being edited."""
        return read_context(tx, self.guard, conversation_id, is_edit=is_edit)

    def message_received(
        self, text: str, context: MessageContext | None = None, *, by_rules_only: bool = False
    ) -> MessageDecision:
        """Decide about a message that came in, by its words and the conversation before it.

        The classifier embeds the message, which takes milliseconds, so call this from a thread.
        """
        context = context or MessageContext()
        earlier = context.earlier.verdict
        phase = phase_of(earlier)
        found, likeness = self._checks.check_text(
            text, context.question, None if by_rules_only else self.learned.danger
        )
        if (
            found.verdict.rule_ids == (MEANING,)
            and found.verdict.kind in context.asked
            and likeness.danger < PLAINLY
        ):
            found = replace(found, verdict=Verdict())
        is_short = len(text) <= SHORT_REPLY
        if phase is Phase.CALM and is_short:
            found = found.raised_by(self._checks.check_retraction(text, context))
        if phase not in (Phase.DANGER, Phase.COMING) and is_short and not found.verdict.is_certain:
            found = self._with_parts(found, text, context)
        is_heard = found.verdict.flagged and not LEANS.issuperset(found.verdict.rule_ids)
        if phase is not Phase.CALM:
            found = self._checks.check_after_danger(text, context, found, likeness)
        else:
            found = self._checks.at_first(found, text)
        found = self._checks.firm(found)
        if is_heard and found.verdict.flagged and len(text) <= PART_LENGTH:
            found = self._checks.about_whom(found, text, context)
        first = self._sentences(found, 0)[0] if found.is_danger else ""
        return MessageDecision(found, first, first or self.error_prefix, self._notes("message", found))

    def _with_parts(self, found: Assessment, text: str, context: MessageContext) -> Assessment:
        """What was found, and what this message and those before it tell together.

        Nobody is asked again about a kind of danger for what several messages tell.
        """
        in_parts = self._checks.check_parts(text, context)
        is_asked = in_parts.verdict.is_possible and in_parts.verdict.kind in context.asked
        return found if is_asked else found.raised_by(in_parts)

    def message_understood(
        self, known: UnderstoodMessage, before: TurnDecision | None = None
    ) -> TurnDecision:
        """Decide what a turn does, by what it knows now. `before` is the decision of the step before.

        Without one, the turn starts, and what was recorded when the message came in counts.
        """
        if before is None:
            return self._starting_decision(known)
        if short := self._short_reply(before):
            why = "The message only says how the danger before it is now"
            about = Intent(intent=EMERGENCY, confidence=1.0, reasoning=why)
            return replace(before, reply=(short,), intent=about)
        found, intent = self._check_denied(before, known) if before.resumes else self._check_newest(known)
        decision = self._raised(known.record, before, found)
        if decision.assessment.is_danger:
            return replace(decision, reply=decision.sentences[1:], intent=decision.assessment.intent)
        return replace(decision, intent=intent, preface=self._preface(known, decision))

    def _preface(self, known: UnderstoodMessage, decision: TurnDecision) -> tuple[str, ...]:
        """What is said before the specialist's answer."""
        marks, last = decision.assessment.verdict.rule_ids, known.record.earlier.verdict
        is_reminded = not {ASIDE, QUIET}.isdisjoint(last.rule_ids)
        says_line = ASIDE in marks and (last.is_firm or not is_reminded)
        prefaces = (
            f"{self.wording.no_danger} " if DENIED in marks else "",
            self.error_prefix if decision.assessment.uncertain else "",
            self.wording.comes_back(last, again=is_reminded) if says_line else "",
        )
        return tuple(filter(None, prefaces))

    def sentence_ready(
        self, text: str, specialist: Specialist | None = None, *, is_reason: bool = False
    ) -> SentenceDecision:
        """Decide whether a text of a brain may go out, by the rules for all and those of the specialist.

        A sentence that may not is replaced. Of a reason, the sentences that may not be shown are left out.
        """
        further = specialist.lines if specialist else {}
        rules = self.output.refusals(text, further)
        if not rules:
            return SentenceDecision(text)
        note = SafetyNote("answer", "refused", rules=tuple(rules), refused=text)
        allowed = self.output.allowed_part(text, further) if is_reason else self.wording.refused(rules)
        return SentenceDecision(allowed, (note,))

    # --- decisions ------------------------------------------------------------------------------------------

    def _starting_decision(self, known: UnderstoodMessage) -> TurnDecision:
        """The decision by what was recorded when the message came in."""
        record = known.record
        decision = self._first_decision(record, Assessment.from_events(record.events))
        is_resumed = not {DENIED, UNSURE}.isdisjoint(decision.assessment.verdict.rule_ids)
        return replace(decision, resumes=record.unanswered if is_resumed else "")

    def _short_reply(self, before: TurnDecision) -> str:
        """The whole answer to a message that only says how the danger before it is now; empty otherwise."""
        danger = before.assessment.verdict
        if not danger.is_silent:
            return ""
        if QUIET in danger.rule_ids:
            return self.wording.light(danger, before.times_answered)
        if OVER in danger.rule_ids:
            return self.wording.settled(danger)
        return self.wording.no_danger if DENIED in danger.rule_ids and not before.resumes else ""

    def _first_decision(self, record: SafetyRecord, found: Assessment) -> TurnDecision:
        times = record.times_answered(found.verdict)
        prefix = "" if found.is_danger else self.error_prefix
        return TurnDecision(found, self._sentences(found, times), times, prefix)

    def _raised(self, record: SafetyRecord, before: TurnDecision, found: Assessment) -> TurnDecision:
        """The decision with what this step found. Only a graver danger is said at once; all is recorded."""
        known = before.assessment
        now = known.raised_by(found)
        is_asked = known.verdict.is_possible and now.verdict.is_possible  # one question is enough
        sentences = before.sentences if is_asked else self._sentences(now, before.times_answered)
        is_graver = not is_asked and (now.meta, sentences[:1]) != (known.meta, before.sentences[:1])
        decision = replace(
            before,
            assessment=now,
            sentences=sentences,
            error_prefix="" if now.is_danger else before.error_prefix,
            notes=(),
            say_now=(),
        )
        if is_graver:
            raised = self._first_decision(record, now)
            decision = replace(
                decision,
                sentences=raised.sentences,
                times_answered=raised.times_answered,
                say_now=raised.sentences[:1],
            )
        fails_now = found.failed and not known.failed
        if fails_now or is_graver or not set(found.verdict.rule_ids) <= set(known.verdict.rule_ids):
            decision = replace(decision, notes=self._notes("enriched", replace(found, failed=fails_now)))
        return decision

    def _sentences(self, found: Assessment, times_answered: int) -> tuple[str, ...]:
        """What is said before anything else, sentence by sentence."""
        if found.is_danger:
            return self.wording.answer(found.verdict, times_answered)
        if found.failed:
            return (f"{self.wording.caution} ",)
        return (f"{self.wording.foreign(found.language)} ",) if found.language else ()

    def _notes(self, stage: Stage, found: Assessment) -> tuple[SafetyNote, ...]:
        """What is recorded. Staff get no alert for a danger that only continues, nor for a language."""
        notes = []
        if found.failed:
            notes.append(SafetyNote(stage, "guard_failed", alert=self.alerts))
        elif found.language:
            notes.append(SafetyNote(stage, "guard_failed", rules=(f"{LANGUAGE}{found.language}",)))
        verdict = found.verdict
        if verdict.flagged:
            alert = self.alerts and verdict.is_certain and STILL not in verdict.rule_ids
            notes.append(
                SafetyNote(stage, verdict.kind, verdict.tier, verdict.certainty, verdict.rule_ids, alert)
            )
        return tuple(notes)

    # --- checks ---------------------------------------------------------------------------------------------

    def _check_newest(self, known: UnderstoodMessage) -> tuple[Assessment, Intent]:
        """Check what the last station added, in view of the danger before.

        The message itself was checked when it came in. What only its enriched form shows, after a danger, is
        mostly that danger retold; so only certain danger of another kind counts then. Possible danger is not
        asked about because a message retells what was asked about before.
        """
        found, intent = self._checks.check_station(known)
        earlier, verdict = known.record.earlier.verdict, found.verdict
        if phase_of(earlier) in (Phase.DANGER, Phase.COMING):
            is_new = verdict.is_certain and not is_same(verdict, earlier)
            return replace(found, verdict=verdict if is_new else Verdict(), uncertain=False), intent
        if verdict.is_possible and known.record.has_asked_about(verdict):
            return replace(found, verdict=Verdict()), intent
        return found, intent

    def _check_denied(self, before: TurnDecision, known: UnderstoodMessage) -> tuple[Assessment, Intent]:
        """What is found in the earlier message that the turn answers: nothing, since the person denied it."""
        intent = known.intent or NOT_CLASSIFIED
        if intent.intent == EMERGENCY:
            intent = Intent(intent=UNCLEAR, confidence=intent.confidence, reasoning=intent.reasoning)
        return Assessment(uncertain=UNSURE in before.assessment.verdict.rule_ids), intent
