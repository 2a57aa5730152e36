"""The safety monitor: decides what is said to a person in danger, what is recorded, and who is alerted.

It is asked three times: when a message comes in, whenever the turn understands more of it, and before a
sentence goes out. Each answer is a value with the verdict and with what to do about it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from agents.ports import Embedded
from agents.roster import Specialist
from agents.safety import after_danger
from agents.safety.classifier import Likeness
from agents.safety.detector import ENRICHED, DangerDetector, by_meaning
from agents.safety.guard import Reason
from agents.safety.language import Languages
from agents.safety.output import OutputGuard
from agents.safety.retelling import Before, added, replies
from agents.safety.text import MOST
from agents.safety.verdict import STILL, Verdict
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
from orchestrator.safety.context import SHORT_REPLY, MessageContext, checked, read_context
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

TURNS_BACK: Final = 12
"""How many earlier turns are searched for what was known before."""


class RuleGuard(Protocol):
    """Finds danger in a text by rules. Pure: the same text gives the same verdict."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message; `context` is what the assistant asked last."""

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was cancelled, with the words that did it."""

    def takes_back(self, text: str) -> bool:
        """Whether the text mentions danger and denies it."""

    def says_nothing(self, text: str) -> bool:
        """Whether the text neither answers a question nor says anything of its own, like "hm"."""

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether the text says only that the earlier danger is over, is taken care of, or never was."""

    def is_mistake(self, text: str, earlier: Verdict) -> bool:
        """Whether the text says only that the earlier danger was a mistake, a joke or a false alarm."""
        ...

    def is_light(self, text: str) -> bool:
        """Whether the text is only a "haha ok", a "thanks" or a "bye"."""
        ...

    def answer(self, text: str) -> Literal["yes", "no", "unsure"] | None:
        """What the text plainly answers to a question about danger."""
        ...

    def still(self, text: str, earlier: Verdict) -> Verdict:
        """What remains of the earlier danger after this text."""

    def check_reply(self, text: str, context: str) -> Verdict:
        """What a short reply means as the answer to a question."""

    def always(self, verdict: Verdict) -> Verdict:
        """The part of a verdict from rules that nothing may dismiss."""

    def as_read(self, text: str) -> str:
        """The text with misspellings and disguised letters corrected."""

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it."""


class DangerClassifier(Protocol):
    """Compares texts with danger by their meaning. Pure; it embeds the texts, so call it from a thread."""

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        """How much each text is like danger."""


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
    classifier: DangerClassifier | None = None
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
        classifier = None if by_rules_only else self.classifier
        found = self._check_text(text, context.question, classifier)
        earlier = context.earlier.verdict
        if earlier.is_possible or (earlier.is_certain and len(text) <= SHORT_REPLY):
            found = self._check_after_danger(text, context, found)
        elif not earlier.flagged and len(text) <= SHORT_REPLY:
            found = found.raised_by(self._check_retraction(text, context))
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
        is_denied = bool(before.resumes) and before.meaning == "no"
        prefaces = (
            f"{self.wording.no_danger} " if is_denied else "",
            self.error_prefix if decision.assessment.uncertain else "",
            self.wording.comes_back(known.record.earlier.verdict),
        )
        return replace(decision, intent=intent, preface=tuple(filter(None, prefaces)))

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
        if decision.assessment.is_danger:
            return decision
        meaning = self._read_meaning(known.text, record.earlier.verdict)
        resumes = record.unanswered if meaning in ("no", "unsure") else ""
        return replace(decision, meaning=meaning, resumes=resumes)

    def _short_reply(self, before: TurnDecision) -> str:
        """The whole answer to a message that only says how the danger before it is now; empty otherwise."""
        match before.meaning:
            case "light":
                return self.wording.light(before.assessment.verdict, before.times_answered)
            case "over":
                return self.wording.settled
            case "no" if not before.resumes:
                return self.wording.no_danger
        return ""

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
            needs_classifier=not now.verdict.flagged,
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

        A possible danger after a certain one of its kind belongs to it. The question about a possible danger
        is not asked twice in a row: the person then reads the emergency number first. It is not asked again
        because a message retells what was asked about before.
        """
        found, intent = self._check_station(known)
        earlier = known.record.earlier.verdict
        is_retold = known.embedded is not None and known.embedded.bare
        if is_retold and found.verdict.is_possible and known.record.has_asked_about(found.verdict):
            found = replace(found, verdict=Verdict())
        elif found.verdict.is_certain:
            found = replace(found, verdict=after_danger.with_call(found.verdict, earlier))
        elif after_danger.is_part_of(found.verdict, earlier):
            found = replace(found, verdict=after_danger.stays(known.text, earlier))
        elif after_danger.is_asked(found.verdict, earlier):
            found = replace(found, verdict=Verdict(), uncertain=True)
        return found, intent

    def _check_denied(self, before: TurnDecision, known: UnderstoodMessage) -> tuple[Assessment, Intent]:
        """What is found in the earlier message that the turn answers: nothing, since the person denied it."""
        intent = known.intent or NOT_CLASSIFIED
        if intent.intent == EMERGENCY:
            intent = Intent(intent=UNCLEAR, confidence=intent.confidence, reasoning=intent.reasoning)
        return Assessment(uncertain=before.meaning == "unsure"), intent

    def _check_station(self, known: UnderstoodMessage) -> tuple[Assessment, Intent]:
        """Check what the last station added: the intent, the vector or the enrichment."""
        match known:
            case UnderstoodMessage(
                enrichment=Enrichment() as enrichment,
                embedded=Embedded() as embedded,
                intent=Intent() as classified,
            ):
                found, intent = self._check_intent(known.text, enrichment, embedded, classified)
                earlier = known.record.earlier
                return found.raised_by(self._check_topic(known.text, enrichment, intent, earlier)), intent
            case UnderstoodMessage(enrichment=Enrichment() as enrichment, embedded=Embedded() as embedded):
                return self._check_meaning(known.text, enrichment, embedded), NOT_CLASSIFIED
            case UnderstoodMessage(enrichment=Enrichment() as enrichment, blocks=Blocks() as blocks):
                return self._check_enriched(known.text, enrichment, blocks), NOT_CLASSIFIED
        return Assessment(), NOT_CLASSIFIED

    def _check_text(self, text: str, question: str | None, classifier: DangerClassifier | None) -> Assessment:
        """What rules and classifier find. They check a long text part by part."""
        parts = tuple(_parts(text))
        try:
            found = Assessment(failed=len(parts) > MAX_PARTS)
            for part in dict.fromkeys((*parts[: MAX_PARTS - 1], parts[-1])):
                found = found.raised_by(Assessment(self._check_part(part, question, classifier)))
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            found = Assessment(failed=True)
        unknown = found if found.is_danger else replace(found, failed=True)
        return checked(lambda: replace(found, language=self.languages.foreign(text)), unknown)

    def _check_part(self, text: str, question: str | None, classifier: DangerClassifier | None) -> Verdict:
        """The verdict of rules and classifier; of the rules alone if the classifier fails."""
        if classifier is not None:
            try:
                return DangerDetector(self.guard, classifier).check(text, question)
            except Exception as error:
                log.error("danger_classifier_failed", exc_info=error)
        return self.guard.check(text, question)

    def _check_parts(self, text: str, context: MessageContext) -> Assessment:
        """The danger that the person told in parts, in this message and those before it."""
        earlier = [said for _, said in reversed(context.exchanges)]
        detector = DangerDetector(self.guard, self.classifier)
        return checked(lambda: Assessment(detector.check_together(earlier, text)), Assessment(failed=True))

    def _check_after_danger(self, text: str, context: MessageContext, found: Assessment) -> Assessment:
        """What was found, and what remains of the danger before; all of it if the guard fails."""
        earlier, question = context.earlier.verdict, context.question or ""
        verdict = checked(
            lambda: after_danger.at_once(self.guard, text, question, earlier, found.verdict),
            found.verdict.raised_by(earlier),
        )
        return replace(found, verdict=self._with_first_aid(text, verdict, earlier))

    def _with_first_aid(self, text: str, verdict: Verdict, earlier: Verdict) -> Verdict:
        texts = self.wording.first_aid
        return checked(lambda: after_danger.with_first_aid(texts, text, verdict, earlier), verdict)

    def _check_retraction(self, text: str, context: MessageContext) -> Assessment:
        """The danger that the person denied a short while ago and admits now."""
        failed = Assessment(failed=True)
        return checked(
            lambda: Assessment(after_danger.retracted(self.guard, text, context.exchanges)), failed
        )

    def _read_meaning(self, text: str, earlier: Verdict) -> after_danger.Meaning:
        return checked(lambda: after_danger.means(self.guard, text, earlier), "other")

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

    def _check_meaning(self, text: str, enrichment: Enrichment, embedded: Embedded) -> Assessment:
        """What the classifier finds in an enriched reply; the message itself was checked when it came in."""
        if self.classifier is None or not embedded.bare or _adds_nothing(text, enrichment, embedded):
            return Assessment()
        try:
            if after_danger.denies(self.guard, text):
                return Assessment()
            (likeness,) = self.classifier.likeness([embedded.text])
            return Assessment(by_meaning(None, [likeness], needed=ENRICHED))
        except Exception as error:
            log.error("danger_classifier_failed", exc_info=error)
            return Assessment()

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
        if is_denied or _adds_nothing(text, enrichment, embedded):
            return Assessment(), unclear
        if intent.confidence < SURE:
            return Assessment(uncertain=True), unclear
        return Assessment(Verdict("emergency", 3, (ROUTER,), "possible")), intent

    def _check_topic(
        self, text: str, enrichment: Enrichment, intent: Intent, earlier: Assessment
    ) -> Assessment:
        """The danger of the message before, unless this one changes the topic; all of it if that fails."""
        before = earlier.verdict
        verdict = checked(lambda: after_danger.understood(text, enrichment, intent, before), before)
        return Assessment(self._with_first_aid(text, verdict, before))


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
