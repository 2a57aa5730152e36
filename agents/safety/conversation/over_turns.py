"""Danger that a person tells in parts, over several messages: the age in one, the fever in another. Pure."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from agents.safety.verdict import Verdict

MOST_MESSAGES = 5
"""How many of the person's messages are read together."""


class InParts(NamedTuple):
    """What only several messages together say."""

    text: str = ""
    """The messages as one text."""
    verdict: Verdict = Verdict()
    is_counted: bool = False
    """Whether a figure completed it: a temperature, or a number of tablets."""


class Reader(Protocol):
    """The rules, as far as they are needed here."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a text."""

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it, as sentences."""


def told_in_parts(guard: Reader, earlier: Sequence[str], said: str) -> InParts:
    """The danger in the last messages together, if neither this message nor those before it tell of one."""
    before = ". ".join(earlier[-MOST_MESSAGES + 1 :])
    if not before or guard.check(before).flagged or guard.check(said).flagged:
        return InParts()
    figures = guard.completed(before, said)
    together = ". ".join((before, said, *figures))
    found = guard.check(together)
    if not found.flagged:
        return InParts()
    return InParts(together, found, bool(figures) and not guard.check(f"{before}. {said}").flagged)
