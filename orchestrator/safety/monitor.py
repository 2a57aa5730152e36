"""The safety monitor: decides what is said to a person in danger, what is recorded, and who is alerted.

It is asked three times: when a message comes in, whenever the turn understands more of it, and before a
sentence goes out. Each answer is a value with the verdict and with what to do about it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from agents.ports import Embedded
from agents.roster import Specialist
from agents.safety.denials import Explainer, retracted
from agents.safety.detector import ALERT, USUAL, Bar, Checked, Classifier, DangerDetector, Rules
from agents.safety.guard import Reason
from agents.safety.language import Languages
from agents.safety.moves import RELATED, Forms, Move, Reply, Scores, read_move
from agents.safety.output import OutputGuard
from agents.safety.retelling import Before, added, replies
from agents.safety.standing import Phase, after, is_same, phase_of, with_first_aid
from agents.safety.text import MOST
from agents.safety.verdict import ASIDE, DENIED, MEANING, OVER, QUIET, STILL, UNSURE, Verdict
from agents.safety.wording import ROUTER, Wording
from agents.utterance import asks_of_something
from agents.values import EMERGENCY, UNCLEAR, Enrichment, Intent
from memory_blocks.models import Blocks
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
)
from orchestrator.safety.context import SHORT_REPLY, MessageContext, SaysNothing, checked, read_context
from orchestrator.store.engine.database import Transaction

log = get_logger()

SURE: Final = 0.9
"""Minimum confidence of a brain for an emergency that no other check found."""

PART_LENGTH: Final = MOST
"""How many characters the rules check at a time."""
PART_OVERLAP: Final = 1_000
"""How many characters two parts share, so that no phrase is cut in two."""
MAX_PARTS: Final = 64
"""How many parts are checked; the largest frame has as many. A longer text counts as not checked."""

BEGINS_WITH_NO: Final = re.compile(r"\W*no\b", re.IGNORECASE)

BARELY_LIKE: Final = 0.2
"""How much a message must be like danger itself to be read with the possible danger before it."""

MESSAGES_TOGETHER: Final = 3
"""How many messages before it a message is read with, while a question about possible danger is open."""

TURNS_BACK: Final = 12
"""How many earlier turns are searched for what was known before."""


class RuleGuard(Rules, Forms, Explainer, SaysNothing, Protocol):
    """The rules, with all that is asked of them in a conversation. The guard implements it."""

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was stopped, with the words that did it."""
        ...

    def means_of(self, text: str, earlier: Verdict) -> Verdict:
        """The graver danger if a text names a means after a danger to oneself."""
        ...


@dataclass(frozen=True, slots=True)
class UnderstoodMessage:
    """What a turn knows about its message. Each station of the turn adds to it."""

    text: str
    record: SafetyRecord
    blocks: Blocks | None = None
    enrichment: Enrichment | None = None
    embedded: Embedded | None = None
    intent: Intent | None = None


@dataclass(frozen=True, slots=True)
class SafetyMonitor:
    """Checks what people write and what brains say. No setting switches it off.

    No check raises: a check that fails is logged, and the person is answered with caution.
    """

    guard: RuleGuard
    output: OutputGuard
    wording: Wording
    languages: Languages
    classifier: Classifier | None = None
    """Compares texts with danger by their meaning. It embeds them, so call it from a thread."""
    moves: Scores | None = None
    """Compares messages after danger with examples. It embeds them, too."""
    alerts: bool = False
    """Whether staff get alerts."""
    store_wait_seconds: float = 0.3
    """How many seconds the first sentence to a person in danger waits for the store."""

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
        is_alert = phase in (Phase.ASKED, Phase.OPEN, Phase.DOUBTED)
        found, likeness = self._check_text(
            text,
            context.question,
            None if by_rules_only else self.classifier,
            ALERT if phase is Phase.ASKED else USUAL,
        )
        if is_alert and len(text) <= SHORT_REPLY and likeness >= BARELY_LIKE:
            found = found.raised_by(self._check_with_asked(text, context))
        if phase is not Phase.CALM:
            found = self._check_after_danger(text, context, found, likeness)
        elif len(text) <= SHORT_REPLY:
            found = found.raised_by(self._check_retraction(text, context))
            if not found.verdict.flagged:
                found = found.raised_by(self._check_parts(text, context))
        first = self._sentences(found, 0)[0] if found.is_danger else ""
        return MessageDecision(found, first, first or self.error_prefix, self._notes("message", found))

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
        prefaces = (
            f"{self.wording.no_danger} " if DENIED in marks else "",
            self.error_prefix if decision.assessment.uncertain else "",
            self.wording.comes_back(last, again=ASIDE in last.rule_ids) if ASIDE in marks else "",
        )
        return tuple(filter(None, prefaces))

    def sentence_ready(self, text: str, specialist: Specialist | None = None) -> SentenceDecision:
        """Decide whether a text of a brain may go out, by the rules for all and those of the specialist."""
        rules = self.output.refusals(text, specialist.lines if specialist else {})
        if not rules:
            return SentenceDecision(text)
        note = SafetyNote("answer", "refused", rules=tuple(rules), refused=text)
        return SentenceDecision(self.wording.refused(rules), (note,))

    def reason_ready(self, text: str, specialist: Specialist | None = None) -> SentenceDecision:
        """Decide which sentences of a brain's reason may be shown. The others are left out, not replaced."""
        further = specialist.lines if specialist else {}
        rules = self.output.refusals(text, further)
        if not rules:
            return SentenceDecision(text)
        note = SafetyNote("answer", "refused", rules=tuple(rules), refused=text)
        return SentenceDecision(self.output.allowed_part(text, further), (note,))

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
        found, intent = self._check_station(known)
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

    def _check_station(self, known: UnderstoodMessage) -> tuple[Assessment, Intent]:
        """Check what the last station added: the intent, the vector or the enrichment."""
        match known:
            case UnderstoodMessage(
                enrichment=Enrichment() as enrichment,
                embedded=Embedded() as embedded,
                intent=Intent() as classified,
            ):
                return self._check_intent(known.text, enrichment, embedded, classified)
            case UnderstoodMessage(enrichment=Enrichment(), embedded=Embedded()):
                return Assessment(), NOT_CLASSIFIED
            case UnderstoodMessage(enrichment=Enrichment() as enrichment, blocks=Blocks() as blocks):
                return self._check_enriched(known.text, enrichment, blocks), NOT_CLASSIFIED
        return Assessment(), NOT_CLASSIFIED

    def _check_text(
        self, text: str, question: str | None, classifier: Classifier | None, bar: Bar = USUAL
    ) -> tuple[Assessment, float]:
        """What rules and classifier find, and how much it is like danger. They check a long text in parts."""
        parts, likeness = tuple(_parts(text)), 0.0
        try:
            found = Assessment(failed=len(parts) > MAX_PARTS)
            for part in dict.fromkeys((*parts[: MAX_PARTS - 1], parts[-1])):
                examined = self._check_part(part, question, classifier, bar)
                found = found.raised_by(Assessment(examined.verdict))
                likeness = max(likeness, examined.likeness.danger if examined.likeness else 0.0)
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            found = Assessment(failed=True)
        unknown = found if found.is_danger else replace(found, failed=True)
        return checked(lambda: replace(found, language=self.languages.foreign(text)), unknown), likeness

    def _check_part(
        self, text: str, question: str | None, classifier: Classifier | None, bar: Bar
    ) -> Checked:
        """The verdict of rules and classifier; of the rules alone if the classifier fails."""
        if classifier is not None:
            try:
                return DangerDetector(self.guard, classifier).examine(text, question, bar)
            except Exception as error:
                log.error("danger_classifier_failed", exc_info=error)
        return Checked(self.guard.check(text, question))

    def _check_parts(self, text: str, context: MessageContext) -> Assessment:
        """The danger that the person told in parts, in this message and those before it."""
        earlier = [said for _, said in reversed(context.exchanges)]
        detector = DangerDetector(self.guard, self.classifier)
        return checked(lambda: Assessment(detector.check_together(earlier, text)), Assessment(failed=True))

    def _check_with_asked(self, text: str, context: MessageContext) -> Assessment:
        """The certain danger that a message and the possible danger before it tell together."""
        earlier = context.earlier.verdict
        said = ". ".join((*(own for _, own in reversed(context.exchanges[:MESSAGES_TOGETHER])), text))
        detector = DangerDetector(self.guard, self.classifier)
        if not checked(lambda: self.guard.has_finding(text), True):
            return Assessment()
        found = checked(lambda: detector.check(said), Verdict())
        is_new = not set(found.rule_ids) <= {*earlier.rule_ids, MEANING}
        is_it = found.is_certain and found.kind == earlier.kind and is_new
        return Assessment(found if is_it else Verdict())

    def _check_after_danger(
        self, text: str, context: MessageContext, found: Assessment, likeness: float
    ) -> Assessment:
        """What was found, and what becomes of the danger before; all of it stays if the guard fails."""
        earlier = context.earlier.verdict

        def decide() -> Verdict:
            heard = found.verdict.raised_by(self.guard.means_of(text, earlier))
            aid = self.wording.first_aid
            reply = Reply(text, context.question or "", likeness, aid.is_named(text))
            move = self._read_move(reply, earlier)
            return with_first_aid(aid, text, after(earlier, move, heard), earlier)

        return replace(found, verdict=checked(decide, found.verdict.raised_by(earlier)))

    def _read_move(self, reply: Reply, earlier: Verdict) -> Move:
        """What a message does about the danger; by its form alone if the classifier fails."""
        try:
            return read_move(self.guard, reply, earlier, self.moves)
        except Exception as error:
            log.error("danger_classifier_failed", exc_info=error)
        return read_move(self.guard, reply, earlier)

    def _check_retraction(self, text: str, context: MessageContext) -> Assessment:
        """The danger that the person denied a short while ago and admits now."""
        failed = Assessment(failed=True)
        return checked(lambda: Assessment(retracted(self.guard, text, context.exchanges)), failed)

    def _check_enriched(self, text: str, enrichment: Enrichment, blocks: Blocks) -> Assessment:
        """What the rules find in the enriched message and in no message before it."""
        turns = blocks.conversation_history.turns[-TURNS_BACK:]
        enrichments = (turn.context_enrichment for turn in turns)
        before = Before(
            tuple(turn.user_message.content for turn in turns),
            tuple(each.enriched_message for each in enrichments if each is not None),
            turns[-1].agent_response.content if turns and turns[-1].agent_response else "",
        )
        detector = DangerDetector(self.guard, self.classifier)

        def check() -> Assessment:
            found = added(self.guard, text, enrichment, before)
            return Assessment(detector.weigh_enriched(enrichment.enriched_message, found))

        return checked(check, Assessment(failed=True))

    def _check_intent(
        self, text: str, enrichment: Enrichment, embedded: Embedded, intent: Intent
    ) -> tuple[Assessment, Intent]:
        """What it means that a brain takes a message for an emergency, and the intent to go on with.

        If the brain is sure, it is a possible emergency. Otherwise the intent is unclear, and the person
        reads the emergency number first, unless their own words deny danger or add nothing.
        """
        if intent.intent != EMERGENCY:
            return Assessment(), intent
        unclear = Intent(intent=UNCLEAR, confidence=intent.confidence, reasoning=intent.reasoning)
        is_denied = checked(
            lambda: self.guard.takes_back(text) or self.guard.is_over(text, Verdict("emergency", 3)), False
        )
        is_denied = is_denied or (BEGINS_WITH_NO.match(text) is not None and len(text) <= SHORT_REPLY)
        if is_denied or _adds_nothing(text, enrichment, embedded) or not self._is_like_danger(text):
            return Assessment(), unclear
        if intent.confidence < SURE:
            return Assessment(uncertain=True), unclear
        return Assessment(Verdict("emergency", 3, (ROUTER,), "possible")), intent

    def _is_like_danger(self, text: str) -> bool:
        """Whether a message is at least a little like danger; true if that is not known."""
        if self.classifier is None:
            return True
        try:
            (likeness,) = self.classifier.likeness([text])
        except Exception as error:
            log.error("danger_classifier_failed", exc_info=error)
            return True
        return likeness.danger >= RELATED


def _parts(text: str) -> Iterator[str]:
    """The text in parts that the rules can check, cut at spaces: half a word may mean anything."""
    start = 0
    while start + PART_LENGTH < len(text):
        end = start + PART_LENGTH
        last, again = text.rfind(" ", end - PART_OVERLAP, end), text.find(" ", end - PART_OVERLAP, end)
        yield text[start : last if last > 0 else end]
        start = again + 1 if 0 < again < last else end - PART_OVERLAP
    yield text[start:]


def _adds_nothing(text: str, enrichment: Enrichment, embedded: Embedded) -> bool:
    """Whether all that the enriched message says comes from earlier messages: no reply, no own question."""
    return embedded.bare and not replies(text, enrichment) and not asks_of_something(text)
