"""Denials of danger, and denials that are taken back. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

from agents.safety.verdict import RETRACTED, Verdict
from agents.utterance import asks_back

Exchange: TypeAlias = tuple[str, str]
"""What the assistant said, and what the person replied."""

CONFIRMED_TIERS: Final = {"emergency": 3, "crisis": 2}
"""The lowest tier of a danger that the person has confirmed or admitted."""
_SHORT: Final = 15
"""Maximum number of words in a message that only denies a danger."""
_TURNS_AROUND: Final = re.compile(r"\b(?:but|yet|though|although|except|however|anymore)\b", re.IGNORECASE)
_ADMITS: Final = re.compile(
    r"\bi(?:['\u2019]?ve| have)?"
    r"(?: (?:do|did|still|really|often|sometimes|always|keep|just|been|can['\u2019]?t stop))*"
    r" (?:think|thinking|thought) (?:about|of) (?:it|that|this|them|doing (?:it|that)|dying|death|ending)\b"
    r"|\b(?:it|the thought|the thoughts)(?:['\u2019]?s| is| are)(?: \w+)? (?:on my mind|in my head)\b"
    r"|\bi do have (?:them|those|it|thoughts)\b",
    re.IGNORECASE,
)
_LIED: Final = re.compile(
    r"\b(?:that|it|this|what i (?:said|told you))(?: before| earlier)? (?:was|is)(?:n['\u2019]?t| not)"
    r"(?: \w+)? (?:true|the (?:whole )?truth|honest)\b"
    r"|\bi (?:lied|was lying|(?:was|have|had)(?:n['\u2019]?t| not)(?: been)?(?: \w+)?"
    r" (?:honest|truthful))\b(?! about my (?:age|weight|height|name))"
    r"|\b(?:that|it) was a lie\b",
    re.IGNORECASE,
)
_AFTER_ALL: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|well|um+|sorry|fine)\W+)*(?:actually|honestly|to be honest|tbh|in fact|truth is)\W+"
    r"(?:yes|yeah|i (?:do|am|have)|it (?:is|does|has))\b",
    re.IGNORECASE,
)
_NO: Final = re.compile(r"\W*(?:\w+\W+)?(?:no|nope|nah|not really|not at all|never)\b", re.IGNORECASE)


class TakesBack(Protocol):
    """Recognises texts that name a danger and retract it."""

    def takes_back(self, text: str) -> bool:
        """Whether a text names a danger but retracts it."""
        ...


class Stopped(Protocol):
    """A rule that a text matched, and whether something retracted it."""

    @property
    def stopped_by(self) -> tuple[tuple[str, str], ...]:
        """The cues that retracted it."""
        ...

    @property
    def verdict(self) -> Verdict:
        """The verdict of the rule, if it fired."""
        ...


class Explainer(TakesBack, Protocol):
    """The rules, as far as they are needed here. The guard implements it."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message; `context` is what the assistant asked last."""
        ...

    def explain(self, text: str) -> Sequence[Stopped]:
        """Every rule that fired or was stopped, with the words that caused it."""
        ...


def denies(guard: TakesBack, said: str) -> bool:
    """Whether a message only denies a danger, as in "no, I'm not thinking of hurting myself"."""
    return (
        len(said.split()) <= _SHORT
        and _TURNS_AROUND.search(said) is None
        and not asks_back(said)
        and guard.takes_back(said)
    )


def admits(said: str) -> bool:
    """Whether a message admits a thought that was asked about, as in "I think about it every night"."""
    return _ADMITS.search(said) is not None


def retracted(guard: Explainer, said: str, before: Sequence[Exchange]) -> Verdict:
    """The danger that the person denied in one of the exchanges before, newest first, and admits now."""
    lied = _LIED.search(said) is not None
    if not lied and not (admits(said) or _AFTER_ALL.match(said)):
        return Verdict()
    for asked, reply in before if lied else before[:1]:
        denied = _denied(guard, asked, reply)
        if denied.kind != "none":
            tier = max(denied.tier, CONFIRMED_TIERS[denied.kind])
            return replace(denied, tier=tier, rule_ids=(*denied.rule_ids, RETRACTED), certainty="certain")
    return Verdict()


def _denied(guard: Explainer, asked: str, reply: str) -> Verdict:
    """The danger that a reply denies: with a no to a question about it, or by naming it."""
    denied = guard.check("yes", asked) if asked and _NO.match(reply) else Verdict()
    for reason in guard.explain(reply) if denies(guard, reply) else ():
        if reason.stopped_by:
            denied = denied.raised_by(reason.verdict)
    return denied
