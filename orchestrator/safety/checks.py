"""The checks of one message for danger: by rules, by meaning, after a danger, and as it was understood.

No check raises: a check that fails is logged, and reported as failed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from agents.ports import Embedded
from agents.safety.classifier import Likeness
from agents.safety.conversation.denials import Explainer, retracted
from agents.safety.conversation.moves import Forms, Move, Reply, Scores, read_move
from agents.safety.conversation.retelling import Before, added, replies
from agents.safety.conversation.standing import Phase, after, firm_if_grave, phase_of, with_first_aid
from agents.safety.conversation.whose import about_whom
from agents.safety.detector import AGREES, Checked, Classifier, DangerDetector, Rules
from agents.safety.language import Languages
from agents.safety.replies.first_aid import FirstAid
from agents.safety.replies.wording import ROUTER
from agents.safety.rules.guard import Reason
from agents.safety.rules.text import MOST
from agents.safety.verdict import Verdict
from agents.utterance import asks_of_something
from agents.values import EMERGENCY, UNCLEAR, Enrichment, Intent
from memory_blocks.models import Blocks
from orchestrator.ops.logs import get_logger
from orchestrator.safety.assessment import NOT_CLASSIFIED, Assessment, UnderstoodMessage
from orchestrator.safety.context import SHORT_REPLY, MessageContext, SaysNothing, checked

log = get_logger()

SURE: Final = 0.9
"""Minimum confidence of a brain for an emergency that no other check found."""

PART_LENGTH: Final = MOST
"""How many characters the rules check at a time."""
PART_OVERLAP: Final = 1_000
"""How many characters two parts share, so that no phrase is cut in two."""
MAX_PARTS: Final = 64
"""How many parts are checked; the largest frame has as many. A longer text counts as not checked."""

NOT_LIKE_DANGER: Final = Likeness(0.0, 0.0)

BEGINS_WITH_NO: Final = re.compile(r"\W*no\b", re.IGNORECASE)

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
class DangerChecks:
    """Checks messages with the rules and, if there are any, the classifiers."""

    guard: RuleGuard
    first_aid: FirstAid
    languages: Languages
    classifier: Classifier | None = None
    moves: Scores | None = None

    def check_station(self, known: UnderstoodMessage) -> tuple[Assessment, Intent]:
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

    def check_text(
        self, text: str, question: str | None, classifier: Classifier | None
    ) -> tuple[Assessment, Likeness]:
        """What rules and classifier find, and how much it is like danger. They check a long text in parts."""
        parts, likeness = tuple(_parts(text)), NOT_LIKE_DANGER
        try:
            found = Assessment(failed=len(parts) > MAX_PARTS)
            for part in dict.fromkeys((*parts[: MAX_PARTS - 1], parts[-1])):
                examined = self._check_part(part, question, classifier)
                found = found.raised_by(Assessment(examined.verdict))
                likeness = max(likeness, examined.likeness or likeness, key=lambda each: each.danger)
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            found = Assessment(failed=True)
        unknown = found if found.is_danger else replace(found, failed=True)
        return checked(lambda: replace(found, language=self.languages.foreign(text)), unknown), likeness

    def _check_part(self, text: str, question: str | None, classifier: Classifier | None) -> Checked:
        """The verdict of rules and classifier; of the rules alone if the classifier fails."""
        if classifier is not None:
            try:
                return DangerDetector(self.guard, classifier).examine(text, question)
            except Exception as error:
                log.error("danger_classifier_failed", exc_info=error)
        return Checked(self.guard.check(text, question))

    def check_parts(self, text: str, context: MessageContext) -> Assessment:
        """The danger that the person told in parts, in this message and those before it."""
        before, last = [said for _, said in reversed(context.exchanges)], context.earlier.verdict
        asked = "none" if phase_of(last) is Phase.CALM else last.kind
        detector = DangerDetector(self.guard, self.classifier)
        return checked(
            lambda: Assessment(detector.check_together(before, text, asked)), Assessment(failed=True)
        )

    def at_first(self, found: Assessment, text: str) -> Assessment:
        """What was found in a message without a danger before it, marked with the first aid it asks for."""
        return checked(
            lambda: replace(found, verdict=with_first_aid(self.first_aid, text, found.verdict, Verdict())),
            found,
        )

    def firm(self, found: Assessment) -> Assessment:
        """What was found, firm if it is grave."""
        return checked(
            lambda: replace(found, verdict=firm_if_grave(found.verdict, self.guard.always(found.verdict))),
            found,
        )

    def about_whom(self, found: Assessment, text: str, context: MessageContext) -> Assessment:
        """What was found in a message, marked with whom it is about, if that is not the writer."""

        def marked() -> Assessment:
            before = [said for _, said in context.exchanges]
            return replace(found, verdict=about_whom(found.verdict, text, self.guard.explain(text), before))

        return checked(marked, found)

    def check_after_danger(
        self, text: str, context: MessageContext, found: Assessment, likeness: Likeness
    ) -> Assessment:
        """Combine what was found with the earlier danger, by what the message says about it.

        If the guard fails, both count.
        """
        earlier = context.earlier.verdict

        def decide() -> Verdict:
            heard = found.verdict.raised_by(self.guard.means_of(text, earlier))
            aid = self.first_aid
            reply = Reply(
                text,
                context.question or "",
                None if self.classifier is None else likeness.of(earlier.kind),
                aid.is_named(text),
                aid.is_of_danger(text, earlier.rule_ids),
            )
            move = self._read_move(reply, earlier)
            before = next((said for _, said in context.exchanges), "")
            return with_first_aid(aid, text, after(earlier, move, heard), earlier, before)

        return replace(found, verdict=checked(decide, found.verdict.raised_by(earlier)))

    def _read_move(self, reply: Reply, earlier: Verdict) -> Move:
        """What a message does about the danger; by its form alone if the classifier fails."""
        try:
            return read_move(self.guard, reply, earlier, self.moves)
        except Exception as error:
            log.error("danger_classifier_failed", exc_info=error)
        return read_move(self.guard, reply, earlier)

    def check_retraction(self, text: str, context: MessageContext) -> Assessment:
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
        """Whether a message is as much like danger as a rule needs; true if that is not known."""
        if self.classifier is None:
            return True
        try:
            (likeness,) = self.classifier.likeness([text])
        except Exception as error:
            log.error("danger_classifier_failed", exc_info=error)
            return True
        return likeness.danger >= AGREES


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
