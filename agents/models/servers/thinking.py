"""Separates a model's thoughts from its answer, where a server sends both as one text. Pure."""

import re
from typing import Final

OPENINGS: Final = ("<think>", "<thinking>", "<reasoning>")
CLOSINGS: Final = ("</think>", "</thinking>", "</reasoning>")

_WHOLE: Final = re.compile(r"^\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_UNOPENED: Final = re.compile(r"^.*?</(?:think|thinking|reasoning)>", re.DOTALL)


def without_thoughts(text: str) -> str:
    """A whole reply without the thoughts at its beginning. Some servers leave out the opening tag."""
    text = _WHOLE.sub("", text)
    return _UNOPENED.sub("", text) if any(closing in text for closing in CLOSINGS) else text


class ThoughtFilter:
    """Takes a reply in fragments and returns its answer; what it thought is in `thoughts`.

    Only thoughts at the beginning are separated. Once the answer has begun, fragments pass unchanged.
    """

    def __init__(self) -> None:
        self.thoughts = ""
        self._pending = ""
        self._closing: str | None = None
        self._answers = False

    def add(self, fragment: str) -> str:
        """The part of this fragment, and of those held back before it, that belongs to the answer."""
        if self._answers:
            return fragment
        self._pending += fragment
        if self._closing is None:
            begun = self._pending.lstrip()
            opening = next((each for each in OPENINGS if begun.startswith(each)), None)
            if opening is None:
                may_open = not begun or any(each.startswith(begun) for each in OPENINGS)
                return "" if may_open else self.rest()
            self._closing, self._pending = opening.replace("<", "</"), begun[len(opening) :]
        if self._closing not in self._pending:
            return ""
        thought, _, self._pending = self._pending.partition(self._closing)
        self.thoughts += thought.strip()
        self._closing, self._pending = None, self._pending.lstrip()
        return self.rest() if self._pending else ""

    def rest(self) -> str:
        """What is held back at the end of a reply: nothing, if it ended within its thoughts."""
        if self._closing is not None:
            self.thoughts, self._pending = self.thoughts + self._pending, ""
            return ""
        self._answers, answer, self._pending = True, self._pending, ""
        return answer.lstrip() if self.thoughts else answer
