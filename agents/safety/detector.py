"""Finds danger in a message by rules and by meaning, where each checks the other. Pure.

What a rule finds in a sentence is certain if the sentence is also like danger by its meaning, possible if it
is a little like it, and dismissed if it is not: frightening words in a story of long ago, of somebody else,
or of no one. Rules that must be heard at any price are exempt. What only the classifier finds is possible.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import log2
from typing import Final, Literal, Protocol

from agents.safety.classifier import Likeness, parts_of
from agents.safety.conversation.denials import TakesBack, denies
from agents.safety.conversation.over_turns import MOST_MESSAGES, told_in_parts
from agents.safety.past import Time, says_over, times_of
from agents.safety.quoted import quoting
from agents.safety.rules.guard import Reason
from agents.safety.verdict import LEANS, MEANING, MEANT, PASSIVE, Certainty, Verdict

AGREES: Final = 0.4
"""From this likeness on, the classifier agrees with a rule: the danger is certain."""
DOUBTS: Final = 0.32
"""From this likeness on, what a rule found in a short message is possible danger. Below, it is dismissed.
In a message of more than `SHORT` words, what a rule found is certain or dismissed."""
ALONE: Final = 0.51
"""From this likeness on, a text that no rule flags is a possible emergency."""
ALONE_CRISIS: Final = 0.57
"""The same for a crisis. Nearly all false alarms on everyday utterances are crises, by a little likeness."""
PLAINLY: Final = 0.75
"""The same once the person was asked about that kind of danger: nobody is asked twice for less."""
ADDS: Final = 0.2
"""How much a message must be like a danger that it tells together with those before it, for a certain danger
after a question about it; `AGREES` without one."""
BARELY_ADDS: Final = 0.1
"""The same for a possible danger."""
PER_DOUBLING: Final = 0.06
"""Added to `alone` for every doubling of the number of parts in a message of more than `SHORT` words, because
many parts are many chances to err."""
PER_DOUBLING_WITH_RULE: Final = 0.04
"""The same for `agrees`: there, rule and classifier must err in the same part."""
PART_OF_SHORT: Final = 0.04
"""Taken from the likeness of a part, for every doubling of the number of parts in a short message."""
SHORT: Final = 40
"""Up to how many words a message is also judged as a whole."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on a message, and how much it is like danger; None if the classifier was not asked."""

    verdict: Verdict
    likeness: Likeness | None = None
    meaning: float = 0.0
    """What the classifier's own verdict depends on: a possible danger from `ALONE` on, without a rule."""


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

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was stopped, with the words that did it."""
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

    def __init__(
        self, guard: Rules, classifier: Classifier | None = None, this_year: int | None = None
    ) -> None:
        """`this_year` tells old dates from new ones. It is the year of the system's clock unless given."""
        self._guard, self._classifier = guard, classifier
        self._this_year = this_year or datetime.now(UTC).year

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message. `context` is what the assistant asked last."""
        return self.examine(text, context).verdict

    def examine(self, text: str, context: str | None = None) -> Checked:
        """The verdict on a message, with its likeness to danger.

        The classifier is not asked about a denial: "I'm not thinking of hurting myself" sounds like danger.
        """
        checked = self._examined(text)
        if checked.verdict.flagged and (quotes := quoting(text)) is not None:
            possible = replace(checked.verdict, certainty="possible")
            own = self._examined(quotes.outside).verdict
            verdict = own.raised_by(possible) if quotes.is_about_writer else own
            checked = replace(checked, verdict=verdict)
        if context:
            verdict = checked.verdict.raised_by(self._guard.check_reply(text, context))
            checked = replace(checked, verdict=verdict)
        return checked

    def _examined(self, text: str) -> Checked:
        """The verdict on a text by itself, whoever says it."""
        checked = Checked(self._guard.check(text))
        is_denial = not checked.verdict.flagged and denies(self._guard, text)
        if self._classifier is None or not text.strip() or is_denial:
            return checked
        checked = self._weighed(text, checked.verdict, self._classifier)
        verdict = checked.verdict
        is_over = verdict.is_certain and verdict.can_be_felt and says_over(text)
        if is_over and not self._guard.always(verdict).flagged:
            checked = replace(checked, verdict=_possible(verdict))
        return checked

    def check_together(self, earlier: Sequence[str], said: str, asked: str = "none") -> Verdict:
        """The danger that only this message and those before it tell together.

        A figure that completes it (a temperature, a number of tablets) makes it certain. Otherwise the
        message must itself be like that danger: a little for a possible danger, more for a certain one, less
        if the person was `asked` about this kind of danger before.
        """
        if not earlier or not self._guard.has_finding(said):
            return Verdict()
        if asked == "none" and self._guard.check(". ".join(earlier[-MOST_MESSAGES + 1 :])).is_certain:
            return Verdict()  # that danger was judged, and is over or was a mistake
        found = told_in_parts(self._guard, earlier, said)
        if not found.verdict.flagged or found.is_counted or self._classifier is None:
            return found.verdict
        own, all_parts = self._classifier.likeness([said, found.text])
        adds = _of_kind(found.verdict, [own])
        if adds < BARELY_ADDS:
            return Verdict()
        weighed = _doubted(found.verdict, _of_kind(found.verdict, [all_parts]))
        is_sure = adds >= (ADDS if found.verdict.kind == asked else AGREES)
        return weighed if is_sure else replace(weighed, certainty="possible")

    def weigh_enriched(self, enriched: str, found: Verdict) -> Verdict:
        """What rules found in an enriched message, which is not all the person's words: possible at most.

        Rules that must be heard at any price need less likeness to danger.
        """
        if not found.flagged or self._classifier is None:
            return found
        (likeness,) = self._classifier.likeness([enriched])
        needed = DOUBTS if self._guard.always(found).flagged else AGREES
        return _possible(found) if _of_kind(found, [likeness]) >= needed else Verdict()

    def _weighed(self, text: str, by_rules: Verdict, classifier: Classifier) -> Checked:
        """The verdict of the rules, weighed by the classifier, or the classifier's own."""
        parts = parts_of(text)
        is_short = len(text.split()) <= SHORT
        wholes = _wholes(text, parts) if is_short else []
        likenesses = classifier.likeness([*parts, *wholes])
        nearest = max(likenesses, key=lambda each: each.danger)
        whole = max(likenesses[len(parts) :], key=lambda each: each.danger, default=None)
        del likenesses[len(parts) :]
        times = times_of(parts, self._families, self._this_year)
        meaning = meaning_of(whole, likenesses)
        if min(times) is Time.PAST and nearest.danger < PLAINLY:
            meaning = 0.0
        verdict = by_meaning(meaning, max(likenesses, key=lambda each: each.danger))
        if not by_rules.flagged:
            return Checked(verdict, nearest, meaning)
        if LEANS.issuperset(by_rules.rule_ids):
            return Checked(verdict.raised_by(by_rules), nearest, meaning)
        if is_short and not any(times):
            verdict = verdict.raised_by(self._guard.always(by_rules))
        extra = PER_DOUBLING_WITH_RULE * log2(len(parts)) if whole is None else 0.0
        for window, near, time in _windows(text, parts, likenesses, times):
            found = self._guard.check(window)
            if not found.flagged:
                continue
            always = self._guard.always(found)
            if time is Time.UNCLEAR:
                found, always = _possible(found), _possible(always)
            verdict = verdict.raised_by(always)
            likeness = _of_kind(found, near if whole is None else [*near, whole])
            if likeness < AGREES + extra:
                likeness = max(
                    likeness,
                    _of_kind(found, classifier.likeness([window, self._guard.as_read(window)])),
                )
            verdict = verdict.raised_by(_doubted(found, likeness, extra, is_short=is_short))
        return Checked(verdict, nearest, meaning)

    def _families(self, text: str) -> set[str]:
        """The families of the rules that a text matches, also of those that something retracts."""
        return {reason.rule.id.split(".")[0] for reason in self._guard.explain(text)}


def meaning_of(whole: Likeness | None, parts: Sequence[Likeness]) -> float:
    """How much a message is like danger, whatever its length: many parts are many chances to err.

    A long message has no `whole`.
    """
    danger = max(part.danger for part in parts)
    if whole is None:
        return danger - PER_DOUBLING * log2(len(parts))
    return max(whole.danger, danger - PART_OF_SHORT * log2(len(parts)))


def by_meaning(meaning: float, nearest: Likeness) -> Verdict:
    """What the likeness of a message and of its part nearest to danger says alone."""
    kind: Literal["emergency", "crisis"] = "crisis" if nearest.crisis > nearest.emergency else "emergency"
    if meaning < (ALONE_CRISIS if kind == "crisis" else ALONE):
        return Verdict()
    return Verdict(kind, MEANT, (MEANING,), "possible")


def _of_kind(found: Verdict, likenesses: Sequence[Likeness]) -> float:
    """How much texts are like the danger that rules found. Another kind than theirs counts a little."""
    return max(each.of(kind) for each in likenesses for kind in found.kinds)


def _doubted(found: Verdict, likeness: float, extra: float = 0.0, *, is_short: bool = True) -> Verdict:
    """What a rule found, as certain as the likeness of its words to danger allows."""
    if likeness < (DOUBTS if is_short else AGREES + extra):
        return Verdict()
    is_passive = found.kind == "crisis" and found.tier == PASSIVE
    is_certain = likeness >= AGREES + extra and found.is_certain and not is_passive
    certainty: Certainty = "certain" if is_certain else "possible"
    return replace(found, certainty=certainty)


def _possible(found: Verdict) -> Verdict:
    return replace(found, certainty="possible") if found.flagged else found


def _wholes(text: str, parts: Sequence[str]) -> list[str]:
    """A short message as a whole, and without its first or last part, which may be about something else."""
    return [text, " ".join(parts[1:]), " ".join(parts[:-1])] if len(parts) > 2 else [text]


def _windows(
    text: str, parts: Sequence[str], likenesses: Sequence[Likeness], times: Sequence[Time]
) -> list[tuple[str, Sequence[Likeness], Time]]:
    """The texts in which a rule must find all its words: every part, and every two adjacent ones.

    Each comes with the likeness of its parts and its time, and includes the sentences of one or two words
    after them, which are no parts: "He is five weeks old. Fever." What only tells of the past is left out.
    """
    if len(parts) == 1:
        return [] if times[0] is Time.PAST else [(text, likenesses, times[0])]
    spans = [(at, at + length) for length in (1, 2) for at in range(len(parts) - length + 1)]
    bounds = _bounds(text, parts)
    return [
        (
            text[bounds[start] : bounds[end]] if bounds else " ".join(parts[start:end]),
            likenesses[start:end],
            min(times[start:end]),
        )
        for start, end in spans
        if min(times[start:end]) is not Time.PAST
    ]


def _bounds(text: str, parts: Sequence[str]) -> list[int]:
    """Where each part of a text begins, and the end of the text; none if a part is worded otherwise."""
    starts: list[int] = []
    for part in parts:
        at = text.find(part, starts[-1] + 1 if starts else 0)
        if at < 0:
            return []
        starts.append(at)
    return [0, *starts[1:], len(text)]
