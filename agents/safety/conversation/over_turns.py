"""Danger that a person tells in parts, over several messages: the age in one, the fever in another. Pure."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from agents.safety.rules.guard import Reason
from agents.safety.verdict import Verdict

MOST_MESSAGES = 5
"""How many of the person's messages are read together."""


class InParts(NamedTuple):
    """What only several messages together say."""

    text: str = ""
    """The message and those before it that have a part of it, as one text."""
    verdict: Verdict = Verdict()
    is_counted: bool = False
    """Whether a figure completed it: a temperature, or a number of tablets."""


class Reader(Protocol):
    """The rules, as far as they are needed here."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a text."""

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it, as sentences."""

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was stopped, with the words that caused it."""


def told_in_parts(guard: Reader, earlier: Sequence[str], said: str) -> InParts:
    """The danger in the last messages together that neither this message nor those before it tell alone.

    The message must have a part of it: what earlier messages tell together was judged with them.
    """
    earlier = earlier[-MOST_MESSAGES + 1 :]
    before = ". ".join(earlier)
    if not before:
        return InParts()
    figures = guard.completed(before, said)
    together = ". ".join((before, said, *figures))
    found = guard.check(together)
    alone = {*guard.check(before).rule_ids, *guard.check(said).rule_ids}
    if set(found.rule_ids) <= alone:
        return InParts()
    own = ". ".join((said, *figures)).lower()
    verdict, parts = Verdict(), {said: None}
    for reason in guard.explain(together):
        if reason.stopped_by or reason.rule.id in alone or not _has_one(own, reason.heard):
            continue
        verdict = verdict.raised_by(reason.verdict)
        parts = dict.fromkeys(each for each in earlier if _has_one(each.lower(), reason.heard)) | parts
    if not verdict.flagged:
        return InParts()
    without_figures = guard.check(f"{before}. {said}").rule_ids if figures else verdict.rule_ids
    return InParts(". ".join((*parts, *figures)), verdict, not set(verdict.rule_ids) <= set(without_figures))


def _has_one(text: str, words: Sequence[str]) -> bool:
    return any(each.lower() in text for each in words)
