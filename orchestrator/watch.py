"""The guard's place in the house: what it hears, what is said first, and what is kept of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol, TypeAlias

from agents.ports import Embedded
from agents.safety.guard import Verdict
from agents.safety.language import Languages
from agents.safety.output import OutputGuard
from agents.safety.wording import Wording
from agents.values import EMERGENCY, Intent
from orchestrator.logs import get_logger
from orchestrator.store.database import Transaction
from orchestrator.store.rows import SafetyEvent
from orchestrator.wire.envelope import Scalar
from orchestrator.wire.messages import Safety

log = get_logger()

Stage: TypeAlias = Literal["message", "enriched", "answer"]

LANGUAGE: Final = "language."
"""Begins the rule that is kept where nobody could listen because of the language, before its name."""


class Listener(Protocol):
    """Hears danger in a text. Pure: it keeps nothing, and the same text gives the same verdict."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message; `context` is what the assistant asked last."""
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

    @property
    def is_danger(self) -> bool:
        """Whether the answer is a safety answer."""
        return self.verdict.flagged

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

    def hear(self, text: str, context: str | None = None) -> Hearing:
        """What the rules hear. It never raises: a guard that fails is itself a reason for caution."""
        try:
            return Hearing(self.guard.check(text, context), language=self.languages.foreign(text))
        except Exception as error:
            log.error("guard_failed", exc_info=error)
            return Hearing(failed=True)

    def hear_again(self, text: str) -> Hearing:
        """What the rules hear in a message that was made to stand on its own."""
        return replace(self.hear(text), language=None)  # the retelling is in English whatever it retells

    def hear_meaning(self, embedded: Embedded) -> Hearing:
        """What the ears hear where the rules heard nothing; ears that fail change nothing."""
        try:
            return Hearing(self.ears.hear(embedded)) if self.ears else Hearing()
        except Exception as error:
            log.error("ears_failed", exc_info=error)
            return Hearing()

    def words(self, hearing: Hearing, earlier: int) -> tuple[str, ...]:
        """What is said before anything else, sentence by sentence."""
        if hearing.is_danger:
            return self.wording.answer(hearing.verdict, earlier)
        if hearing.failed:
            return (f"{self.wording.caution} ",)
        return (f"{self.wording.foreign(hearing.language)} ",) if hearing.language else ()

    def refusals(self, sentence: str) -> tuple[str, ...]:
        """The rules by which a brain may not say this; it may when there is none."""
        return self.output.refusals(sentence)

    def note(self, tx: Transaction, about: "About", stage: Stage, hearing: Hearing) -> None:
        """Keep what was heard in a message, and that staff is to be told."""
        if hearing.failed:
            self._keep(tx, about, stage, "guard_failed", 0, ())
        elif hearing.language:
            rules = (f"{LANGUAGE}{hearing.language}",)
            self._keep(tx, about, stage, "guard_failed", 0, rules, tells_staff=False)
        if hearing.is_danger:
            verdict = hearing.verdict
            self._keep(tx, about, stage, verdict.kind, verdict.tier, verdict.rule_ids)

    def note_refusal(self, tx: Transaction, about: "About", rules: Iterable[str]) -> None:
        """Keep that a brain was not allowed to say something, and by which rules."""
        self._keep(tx, about, "answer", "refused", 0, rules, tells_staff=False)

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
        )


@dataclass(frozen=True, slots=True)
class About:
    """Which message something was heard in."""

    conversation_id: str
    message_id: str
    turn: int


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
