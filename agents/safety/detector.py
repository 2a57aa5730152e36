"""Finds danger in a message by rules and by meaning, where each checks the other. Pure.

What a rule finds in a sentence is certain if the sentence is also like danger by its meaning, possible if it
is a little like it, and dismissed if it is not: frightening words in a story of long ago, of somebody else,
or of no one. Rules that must be heard at any price are exempt. What only the classifier finds is possible.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Final

from agents.safety.classifier import DangerClassifier, Likeness, parts_of
from agents.safety.guard import LEANS, Guard
from agents.safety.verdict import MEANT, Verdict

AGREES: Final = 0.42
"""From this likeness on, the classifier agrees with a rule: the danger is certain."""
DOUBTS: Final = 0.3
"""From this likeness on, the danger that a rule found is possible. Below it, the finding is dismissed."""
ALONE: Final = 0.58
"""From this likeness on, a text that no rule flags is a possible danger."""
PER_DOUBLING: Final = 0.02
"""Added to `ALONE` for every doubling of the number of parts, because many parts are many chances to err."""
SHORT: Final = 60
"""Up to how many words a message is also judged as a whole."""
RULE: Final = "meaning"
"""The rule of a danger that only the classifier found."""


class DangerDetector:
    """Checks messages. Without a classifier, the rules decide alone and are always certain."""

    def __init__(self, guard: Guard, classifier: DangerClassifier | None = None) -> None:
        self._guard, self._classifier = guard, classifier

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message. `context` is what the assistant asked last."""
        verdict = self._guard.check(text)
        if self._classifier is not None and text.strip():
            verdict = self._weighed(text, verdict, self._classifier)
        return verdict.raised_by(self._guard.check_reply(text, context)) if context else verdict

    def _weighed(self, text: str, by_rules: Verdict, classifier: DangerClassifier) -> Verdict:
        """The verdict of the rules, weighed by the classifier, or the classifier's own."""
        parts = parts_of(text)
        whole, *likenesses = classifier.likeness([text, *parts])
        is_short = len(text.split()) <= SHORT
        verdict = by_meaning(whole if is_short else None, likenesses)
        if not by_rules.flagged:
            return verdict
        verdict = verdict.raised_by(self._guard.always(by_rules))
        if LEANS.issuperset(by_rules.rule_ids):
            return verdict.raised_by(by_rules)
        for window, likeness in self._windows(text, parts, likenesses, whole if is_short else None):
            found = self._guard.check(window)
            if not found.flagged:
                continue
            if likeness < AGREES:
                likeness = max(likeness, classifier.likeness([self._guard.as_read(window)])[0].danger)
            if likeness >= DOUBTS:
                certainty = "certain" if likeness >= AGREES else "possible"
                verdict = verdict.raised_by(replace(found, certainty=certainty))
        return verdict

    def _windows(
        self, text: str, parts: list[str], likenesses: list[Likeness], whole: Likeness | None
    ) -> list[tuple[str, float]]:
        """The texts in which a rule must find all its words: every part, and every two adjacent ones."""
        least = whole.danger if whole else 0.0
        if len(parts) == 1:
            return [(text, max(least, likenesses[0].danger))]
        singles = [(part, max(least, like.danger)) for part, like in zip(parts, likenesses, strict=True)]
        pairs = [(f"{one} {two}", max(first, second)) for (one, first), (two, second) in pairwise(singles)]
        return singles + pairs


def by_meaning(whole: Likeness | None, parts: list[Likeness]) -> Verdict:
    """What the likeness of a message and its parts says alone. A long message is judged by its parts only."""
    nearest = max(parts, key=lambda part: part.danger)
    danger = nearest.danger
    if whole is not None:
        danger = max(whole.danger, (whole.danger + danger) / 2)
    needed = ALONE + PER_DOUBLING * (len(parts).bit_length() - 1)
    if danger < needed:
        return Verdict()
    kind = "crisis" if nearest.crisis > nearest.emergency else "emergency"
    return Verdict(kind, MEANT, (RULE,), "possible")
