"""The guard's place in the house: what it hears, what is said first, and what is kept of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, Literal, Protocol, TypeAlias

from agents.leaning import asks_of_something
from agents.ports import Embedded
from agents.roster import Specialist
from agents.safety import after
from agents.safety.guard import MEANT, STILL, Reason, Verdict
from agents.safety.language import Languages
from agents.safety.output import OutputGuard
from agents.safety.retold import Before, added, replies
from agents.safety.text import MOST
from agents.safety.wording import ROUTER, Wording
from agents.values import EMERGENCY, UNCLEAR, Enrichment, Intent
from memory_blocks.models import Blocks
from orchestrator.logs import get_logger
from orchestrator.store.database import Transaction
from orchestrator.store.rows import SafetyEvent
from orchestrator.wire.envelope import Scalar
from orchestrator.wire.messages import Safety

log = get_logger()

Stage: TypeAlias = Literal["message", "enriched", "answer"]

LANGUAGE: Final = "language."
"""Begins the rule that is kept where nobody could listen because of the language, before its name."""

SURE: Final = 0.9
"""How sure a brain must be of an emergency that neither rules nor ears heard, for it to be one."""

PART: Final = MOST
"""How much of a text the rules hear at a time, in characters."""
OVERLAP: Final = 1_000
"""How much of it they hear again with the next part, so that nothing is torn apart."""
MOST_PARTS: Final = 64
"""How many parts are heard: those of the largest frame. What has more counts as not listened to."""

LOOKS_BACK: Final = 12
"""How many turns before this one are asked what was known before."""


class Listener(Protocol):
    """Hears danger in a text. Pure: it keeps nothing, and the same text gives the same verdict."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message; `context` is what the assistant asked last."""
        ...

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was stopped, with the words that did it."""
        ...

    def takes_back(self, text: str) -> bool:
        """Whether danger is spoken of and taken back."""
        ...

    def says_nothing(self, text: str) -> bool:
        """Whether it answers no question and brings nothing: a "hm" before the answer comes."""
        ...

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether it says that the danger of an answer is over, in good hands or never was, and no more."""
        ...

    def still(self, text: str, earlier: Verdict) -> Verdict:
        """What a message leaves of the danger that the answer before it spoke of."""
        ...


class Ears(Protocol):
    """Hears danger in what a message means. Pure, and quick: the vector is there already."""

    def hear(self, embedded: Embedded) -> Verdict:
        """The verdict on a message by its vector."""
        ...


@dataclass(frozen=True, slots=True)
class Hearing:
    """What was heard in a message; or that nobody could listen, which is treated with caution."""

    verdict: Verdict = field(default_factory=Verdict)
    failed: bool = False
    language: str | None = None
    """The language of a message that is not in English, and so could not be judged."""
    doubtful: bool = False
    """Whether it may be an emergency, though too little speaks for it: whom to call is said first."""

    @property
    def is_danger(self) -> bool:
        """Whether the answer is a safety answer."""
        return self.verdict.flagged

    @property
    def may_be_graver(self) -> bool:
        """Whether the ears may raise it: they say no more than danger, not that it is at once."""
        return self.verdict.tier < MEANT

    @property
    def on_the_wire(self) -> Safety | None:
        """How a frontend is told."""
        kind = self.verdict.kind
        return None if kind == "none" else Safety(kind=kind, tier=self.verdict.tier)

    @property
    def meta(self) -> dict[str, Scalar]:
        """What the first sentence carries, so that it is known for what it is."""
        if self.is_danger:
            return {"safety": self.verdict.kind, "tier": self.verdict.tier}
        if self.failed:
            return {"guard": "unavailable"}
        return {"guard": "unsupported_language"} if self.language else {}

    @property
    def intent(self) -> Intent:
        """Where a message in danger belongs, whatever anybody else makes of it."""
        why = f"The guard heard: {', '.join(self.verdict.rule_ids)}"
        return Intent(intent=EMERGENCY, confidence=1.0, reasoning=why)

    def raised_by(self, other: "Hearing") -> "Hearing":
        """Both together; what one heard, the other cannot take back."""
        return Hearing(
            self.verdict.raised_by(other.verdict),
            self.failed or other.failed,
            self.language or other.language,
            self.doubtful or other.doubtful,
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """Listens to people before anybody else does, and to brains before people do. Nothing switches it off."""

    guard: Listener
    output: OutputGuard
    wording: Wording
    languages: Languages
    ears: Ears | None = None
    alerts: bool = False
    patience: float = 0.3
    """How many seconds a person in danger waits for the store before the first words go out without it."""

    def hear(self, text: str, context: str | None = None) -> Hearing:
        """What the rules hear. It never raises: a guard that fails is itself a reason for caution.

        A long text is heard part by part; one so long that some of it is not counts as not listened to.
        """
        parts = tuple(_parts(text))
        try:
            heard = Hearing(failed=len(parts) > MOST_PARTS)
            for part in dict.fromkeys((*parts[: MOST_PARTS - 1], parts[-1])):
                heard = heard.raised_by(Hearing(self.guard.check(part, context)))
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            heard = Hearing(failed=True)
        try:
            return replace(heard, language=self.languages.foreign(text))
        except Exception as error:  # what was heard stands
            log.error("guard_failed", exc_info=error)
            return heard if heard.is_danger else replace(heard, failed=True)

    def says_nothing(self, text: str) -> bool:
        """Whether what was asked before a message is still open after it. A guard that fails does not say."""
        try:
            return self.guard.says_nothing(text)
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            return False

    def hear_still(self, said: str, asked: str, earlier: Hearing, heard: Hearing) -> Hearing:
        """What was heard, and what stays of the last answer's danger: all, where the guard cannot say."""
        try:
            verdict = after.at_once(self.guard, said, asked, earlier.verdict, heard.verdict)
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            verdict = heard.verdict.raised_by(earlier.verdict)
        return replace(heard, verdict=verdict)

    def hear_again(self, said: str, enrichment: Enrichment, blocks: Blocks) -> Hearing:
        """What the rules hear in the retelling of a message that this message, and none before it, brings."""
        turns = blocks.conversation_history.turns[-LOOKS_BACK:]
        retold = (turn.context_enrichment for turn in turns)
        before = Before(
            tuple(turn.user_message.content for turn in turns),
            tuple(each.enriched_message for each in retold if each is not None),
            turns[-1].agent_response.content if turns and turns[-1].agent_response else "",
        )
        try:
            return Hearing(added(self.guard, said, enrichment, before))
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            return Hearing(failed=True)

    def hear_meaning(self, said: str, enrichment: Enrichment, embedded: Embedded) -> Hearing:
        """What the ears hear where the rules heard nothing; ears that fail change nothing.

        A few words that were retold and tell nothing that was asked for bring nothing of their own.
        """
        if self.ears is None or _brings_nothing(said, enrichment, embedded):
            return Hearing()
        try:
            return Hearing(self.ears.hear(embedded))
        except Exception as error:
            log.error("ears_failed", exc_info=error)
            return Hearing()

    def hear_intent(
        self, said: str, enrichment: Enrichment, embedded: Embedded, intent: Intent
    ) -> tuple[Hearing, Intent]:
        """What it means that a brain takes a message for an emergency that nobody heard, and what it is.

        It is one where the brain is sure. Else it is unclear, and who may be in danger is told whom to call
        before the answer; not so where the person's own words take danger back or bring nothing.
        """
        if intent.intent != EMERGENCY:
            return Hearing(), intent
        unclear = Intent(intent=UNCLEAR, confidence=intent.confidence, reasoning=intent.reasoning)
        try:
            taken_back = self.guard.takes_back(said)
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            taken_back = False
        if taken_back or _brings_nothing(said, enrichment, embedded):
            return Hearing(), unclear
        if intent.confidence < SURE:
            return Hearing(doubtful=True), unclear
        return Hearing(Verdict("emergency", 3, (ROUTER,))), intent

    def hear_after(self, said: str, enrichment: Enrichment, intent: Intent, earlier: Hearing) -> Hearing:
        """The danger of the last answer, which is not over, unless the message names something else.

        All of it, where nobody can say.
        """
        try:
            return Hearing(after.understood(said, enrichment, intent, earlier.verdict))
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            return Hearing(earlier.verdict)

    def settles(self, said: str, earlier: Hearing) -> Intent | None:
        """Where a message belongs that says of the danger of the last answer that it is over."""
        if not earlier.is_danger or not self._is_over(said, earlier):
            return None
        return Intent(intent=EMERGENCY, confidence=1.0, reasoning="The person says that it is over")

    def _is_over(self, said: str, earlier: Hearing) -> bool:
        try:
            return self.guard.is_over(said, earlier.verdict)
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            return False

    def words(self, hearing: Hearing, earlier: int) -> tuple[str, ...]:
        """What is said before anything else, sentence by sentence."""
        if hearing.is_danger:
            return self.wording.answer(hearing.verdict, earlier)
        if hearing.failed:
            return (f"{self.wording.caution} ",)
        return (f"{self.wording.foreign(hearing.language)} ",) if hearing.language else ()

    def refusals(self, sentence: str, who: Specialist | None = None) -> tuple[str, ...]:
        """The rules by which a brain may not say this, those of the specialist among them; none: it may."""
        return self.output.refusals(sentence, who.lines if who else {})

    def note(
        self, tx: Transaction, about: "About", stage: Stage, hearing: Hearing, *, lately: bool = True
    ) -> None:
        """Keep what was heard in a message, and that staff is to be told where it was written `lately`."""
        if hearing.failed:
            self._keep(tx, about, stage, "guard_failed", 0, (), tells_staff=lately)
        elif hearing.language:
            rules = (f"{LANGUAGE}{hearing.language}",)
            self._keep(tx, about, stage, "guard_failed", 0, rules, tells_staff=False)
        if hearing.is_danger:
            verdict = hearing.verdict
            tells_staff = lately and STILL not in verdict.rule_ids
            self._keep(
                tx, about, stage, verdict.kind, verdict.tier, verdict.rule_ids, tells_staff=tells_staff
            )

    def note_refusal(self, tx: Transaction, about: "About", said: str, rules: Iterable[str]) -> None:
        """Keep what a brain was not allowed to say, and by which rules."""
        self._keep(tx, about, "answer", "refused", 0, rules, tells_staff=False, refused=said)

    def _keep(
        self,
        tx: Transaction,
        about: "About",
        stage: Stage,
        kind: str,
        tier: int,
        rules: Iterable[str],
        *,
        tells_staff: bool = True,
        refused: str = "",
    ) -> None:
        tx.safety.note(
            about.conversation_id,
            about.message_id,
            about.turn,
            stage=stage,
            kind=kind,
            tier=tier,
            rules=rules,
            alert=self.alerts and tells_staff,
            refused=refused,
        )


def _parts(text: str) -> Iterator[str]:
    """A text in parts that the rules can hear, cut at spaces: half a word may mean anything."""
    start = 0
    while start + PART < len(text):
        end = start + PART
        last, again = text.rfind(" ", end - OVERLAP, end), text.find(" ", end - OVERLAP, end)
        yield text[start : last if last > 0 else end]
        start = again + 1 if 0 < again < last else end - OVERLAP
    yield text[start:]


def _brings_nothing(said: str, enrichment: Enrichment, embedded: Embedded) -> bool:
    """Whether a message was retold because it says nothing itself: no reply, and no question of its own."""
    return embedded.bare and not replies(said, enrichment) and not asks_of_something(said)


@dataclass(frozen=True, slots=True)
class About:
    """Which message something was heard in; one that was synchronised later is of no turn."""

    conversation_id: str
    message_id: str
    turn: int | None


def spoken_of(before: Sequence[SafetyEvent], verdict: Verdict, turn: int) -> int:
    """How often the danger of a turn was spoken of before, so that nobody reads the same words twice.

    It is another danger if the turn before had none, a graver or lesser one, or one that has nothing to do
    with it. That begins anew: with the first words, or with the second where the first ones were just said.
    """
    heard = groupby(before, lambda event: (event.turn, event.message_id))
    dangers = [(number, remembered(tuple(events)).verdict) for (number, _), events in heard]
    times, last, last_turn = 0, Verdict(), None
    for number, danger in (*dangers, (turn, verdict)):
        follows = number is None or last_turn is None or number - last_turn <= 1
        same_texts = (danger.kind, danger.tier) == (last.kind, last.tier)
        if same_texts and follows and after.is_same(danger, last):
            times += 1
        else:
            times = int(same_texts and times == 0)
        last, last_turn = danger, number
    return times


def remembered(events: Sequence[SafetyEvent]) -> Hearing:
    """What was heard in a message, as it was kept: a turn that is taken up again says it again."""
    heard = Hearing()
    for event in events:
        if event.kind == "guard_failed":
            language = next((rule.removeprefix(LANGUAGE) for rule in event.rules), None)
            heard = heard.raised_by(Hearing(failed=language is None, language=language))
        elif event.kind in ("emergency", "crisis"):
            kind: Literal["emergency", "crisis"] = "crisis" if event.kind == "crisis" else "emergency"
            heard = heard.raised_by(Hearing(Verdict(kind, event.tier, event.rules)))
    return heard
