"""Finds danger in a message by rules and by meaning, where each checks the other. Pure.

What a rule finds in a sentence is certain if the sentence is also like danger by its meaning, possible if it
is a little like it, and dismissed if it is not: frightening words in a story of long ago, of somebody else,
or of no one. Rules that must be heard at any price are exempt. What only the classifier finds is possible.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2
from typing import Final, Literal, Protocol

from agents.safety.classifier import Likeness, parts_of
from agents.safety.conversation.denials import TakesBack, denies
from agents.safety.conversation.over_turns import told_in_parts
from agents.safety.verdict import LEANS, MEANING, MEANT, PASSIVE, Certainty, Verdict


@dataclass(frozen=True, slots=True)
class Bar:
    """Which likeness to danger is needed."""

    agrees: float = 0.42
    """From this likeness on, the classifier agrees with a rule: the danger is certain."""
    doubts: float = 0.4
    """From this likeness on, what a rule found is possible danger. Below it, the finding is dismissed."""
    doubts_short: float = 0.2
    """The same for a message of at most `SHORT` words: a short message hardly tells a story."""
    alone: float = 0.49
    """From this likeness on, a text that no rule flags is a possible danger."""


USUAL: Final = Bar()
ALERT: Final = Bar(agrees=0.35, doubts=0.3, doubts_short=0.1, alone=0.6)
"""For the reply to a question about possible danger: what a rule finds is likelier to be danger than usual.
What only the classifier finds makes it certain, and so must be plain."""
_DATED: Final = re.compile(
    r"\b(?:(?:19|20)\d\d|years ago|decades ago|as a (?:child|teenager|kid))\b", re.IGNORECASE
)
_PRESENT: Final = re.compile(
    r"\b(?:now|today|tonight|currently|still|again|since|lately|recently|this (?:morning|week|evening)"
    r"|yesterday|i['\u2019]?m|am|is|are|it['\u2019]?s|he['\u2019]?s|she['\u2019]?s|they['\u2019]?re|have|has|having|keeps?|can['\u2019]?t"
    r"|cannot|don['\u2019]?t|doesn['\u2019]?t|feels?|hurts?|started|just)\b",
    re.IGNORECASE,
)
PER_DOUBLING: Final = 0.06
"""Added to each of these for every doubling of the number of parts in a message of more than `SHORT` words,
because many parts are many chances to err."""
PART_OF_SHORT: Final = 0.04
"""Taken from the likeness of a part, for every doubling of the number of parts in a short message."""
SHORT: Final = 40
"""Up to how many words a message is also judged as a whole."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on a message, and how much it is like danger; None if the classifier was not asked."""

    verdict: Verdict
    likeness: Likeness | None = None


class Rules(TakesBack, Protocol):
    """Finds danger in a text by rules. Pure: the same text gives the same verdict."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a text; `context` is what the assistant asked last."""
        ...

    def check_reply(self, text: str, context: str) -> Verdict:
        """What a short reply means as the answer to a question."""
        ...

    def always(self, verdict: Verdict) -> Verdict:
        """The part of a verdict from rules that nothing may dismiss."""
        ...

    def as_read(self, text: str) -> str:
        """The text with misspellings and disguised letters corrected."""
        ...

    def has_finding(self, text: str) -> bool:
        """Whether a text has a figure, or anything that a rule asks for."""
        ...

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it."""
        ...


class Classifier(Protocol):
    """The danger classifier, as far as the detector needs it."""

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        """How much each text is like danger."""


class DangerDetector:
    """Checks messages. Without a classifier, the rules decide alone."""

    def __init__(self, guard: Rules, classifier: Classifier | None = None) -> None:
        self._guard, self._classifier = guard, classifier

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message. `context` is what the assistant asked last."""
        return self.examine(text, context).verdict

    def examine(self, text: str, context: str | None = None, bar: Bar = USUAL) -> Checked:
        """The verdict on a message, with its likeness to danger.

        The classifier is not asked about a denial: "I'm not thinking of hurting myself" sounds like danger.
        """
        checked = Checked(self._guard.check(text))
        if self._classifier is not None and text.strip() and not denies(self._guard, text):
            checked = self._weighed(text, checked.verdict, self._classifier, bar)
        if context:
            verdict = checked.verdict.raised_by(self._guard.check_reply(text, context))
            checked = replace(checked, verdict=verdict)
        return checked

    def check_together(self, earlier: Sequence[str], said: str) -> Verdict:
        """The danger that only this message and those before it tell together.

        A figure that completes it (a temperature, a number of tablets) makes it certain.
        """
        if not earlier or not self._guard.has_finding(said):
            return Verdict()
        found = told_in_parts(self._guard, earlier, said)
        if not found.verdict.flagged or found.is_counted or self._classifier is None:
            return found.verdict
        likeness = self._classifier.likeness([found.text])[0].danger
        return self._guard.always(found.verdict).raised_by(_doubted(found.verdict, likeness, 0.0, USUAL))

    def weigh_enriched(self, enriched: str, found: Verdict) -> Verdict:
        """What rules found in an enriched message, which is not all the person's words: possible at most.

        Rules that must be heard at any price stay certain.
        """
        if not found.flagged or self._classifier is None:
            return found
        (likeness,) = self._classifier.likeness([enriched])
        verdict = self._guard.always(found)
        is_like = likeness.danger >= USUAL.agrees
        return verdict.raised_by(replace(found, certainty="possible")) if is_like else verdict

    def _weighed(self, text: str, by_rules: Verdict, classifier: Classifier, bar: Bar) -> Checked:
        """The verdict of the rules, weighed by the classifier, or the classifier's own."""
        parts = parts_of(text)
        is_short = len(text.split()) <= SHORT
        wholes = _wholes(text, parts) if is_short else []
        likenesses = classifier.likeness([*parts, *wholes])
        nearest = max(likenesses, key=lambda each: each.danger)
        whole = max(likenesses[len(parts) :], key=lambda each: each.danger, default=None)
        del likenesses[len(parts) :]
        verdict = by_meaning(whole, likenesses, bar.alone)
        if not by_rules.flagged:
            return Checked(verdict, nearest)
        if LEANS.issuperset(by_rules.rule_ids):
            return Checked(verdict.raised_by(by_rules), nearest)
        verdict = verdict.raised_by(self._guard.always(by_rules))
        extra = _extra(whole, likenesses)
        for window, likeness in _windows(text, parts, likenesses, whole):
            found = self._guard.check(window)
            if found.flagged and likeness < bar.agrees + extra:
                likeness = max(likeness, classifier.likeness([self._guard.as_read(window)])[0].danger)
            verdict = verdict.raised_by(_doubted(found, likeness, extra, bar, is_short=is_short))
        return Checked(verdict, nearest)


def by_meaning(whole: Likeness | None, parts: Sequence[Likeness], needed: float = USUAL.alone) -> Verdict:
    """What the likeness of a message and of its parts says alone. A long message has no `whole`."""
    nearest = max(parts, key=lambda part: part.danger)
    danger = nearest.danger
    if whole is not None:
        danger = max(whole.danger, danger - PART_OF_SHORT * log2(len(parts)))
    if danger < needed + _extra(whole, parts):
        return Verdict()
    kind: Literal["emergency", "crisis"] = "crisis" if nearest.crisis > nearest.emergency else "emergency"
    return Verdict(kind, MEANT, (MEANING,), "possible")


def _extra(whole: Likeness | None, parts: Sequence[Likeness]) -> float:
    return 0.0 if whole is not None else PER_DOUBLING * log2(len(parts))


def _doubted(found: Verdict, likeness: float, extra: float, bar: Bar, *, is_short: bool = False) -> Verdict:
    """What a rule found, as certain as the likeness of its words to danger allows."""
    if not found.flagged or likeness < (bar.doubts_short if is_short else bar.doubts) + extra:
        return Verdict()
    is_passive = found.kind == "crisis" and found.tier == PASSIVE
    certainty: Certainty = "certain" if likeness >= bar.agrees + extra and not is_passive else "possible"
    return replace(found, certainty=certainty)


def _wholes(text: str, parts: Sequence[str]) -> list[str]:
    """A short message as a whole, and without its first or last part, which may be about something else."""
    return [text, " ".join(parts[1:]), " ".join(parts[:-1])] if len(parts) > 2 else [text]


def _windows(
    text: str, parts: Sequence[str], likenesses: Sequence[Likeness], whole: Likeness | None
) -> list[tuple[str, float]]:
    """The texts in which a rule must find all its words: every part, and every two adjacent ones."""
    least = whole.danger if whole else 0.0
    if len(parts) == 1:
        return [(text, max(least, likenesses[0].danger))]
    past = told_of_past(parts)
    scored = [(part, max(least, like.danger)) for part, like in zip(parts, likenesses, strict=True)]
    singles = [each for each, is_past in zip(scored, past, strict=True) if not is_past]
    pairs = [
        (f"{one} {two}", max(first, second))
        for ((one, first), (two, second)), are_past in zip(pairwise(scored), pairwise(past), strict=True)
        if not all(are_past)
    ]
    return singles + pairs


def told_of_past(parts: Sequence[str]) -> list[bool]:
    """Which parts of a message tell of the past: they name a year, or follow one that does, and no present.

    "I had an embolism in 2020. Couldn't breathe, coughed blood." A rule knows what its own sentence says of
    the time; this is about the sentences after it.
    """
    past: list[bool] = []
    for part in parts:
        follows = bool(past) and past[-1] and _PRESENT.search(part) is None
        past.append(follows or (_DATED.search(part) is not None and _PRESENT.search(part) is None))
    return past
