"""Cuts a stream of text into sentences, each as soon as it is whole. Nothing is added, nothing is lost."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

MOST: Final = 2_000
_AHEAD: Final = 12  # how far behind a full stop one may have to look to understand it
_WINDOW: Final = MOST + _AHEAD

_WIDE: Final = "\u3002\uff01\uff1f"  # full stops of scripts that put no space behind them
_END: Final = re.compile(rf"[.!?\u2026]+|[{_WIDE}]+|\n")
_CLOSERS: Final = "\"'\u201d\u2019\u00bb)]}*_`\u300d\u300f\uff09"
_MARKER: Final = re.compile(r"[-*\u2022\u2013]\s|\d{1,3}[.)]\s")
_MARKER_SO_FAR: Final = re.compile(r"[-*\u2022\u2013]?|\d{1,3}[.)]?")
_WORD_BEFORE: Final = re.compile(r"[^\W_](?:[^\W_]|[.'\u2019])*\Z")
_NUMBER_AT_LINE_START: Final = re.compile(r"(?:\A|\n)[^\S\n]*\d{1,3}\Z")
_LETTER_IS_A_NAME: Final = re.compile(
    r"\b(vitamins?|hepatitis|influenza|type|group|grade|class|plan|option|part|step|and|or) \w\Z",
    re.IGNORECASE,
)
_NEVER_LAST: Final = frozenset(
    (
        "dr",
        "mr",
        "mrs",
        "ms",
        "prof",
        "st",
        "e.g",
        "i.e",
        "eg",
        "ie",
        "vs",
        "approx",
        "ca",
        "cf",
        "fig",
        "incl",
    )
)
_SELDOM_LAST: Final = frozenset(
    ("etc", "al", "no", "a.m", "p.m", "min", "max", "hr", "hrs", "u.s", "u.k", "ph.d", "m.d", "jr", "sr")
)


async def sentences(fragments: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """The sentences of a stream, each with the white space behind it, so that joined they are the stream.

    Where a sentence ends depends on the text alone, not on how it was cut into fragments. A text without an
    end is cut at a space before `MOST` characters. Closing this generator closes the stream.
    """
    text = ""
    try:
        async for fragment in fragments:
            text += fragment
            while end := _first_end(text, more=True):
                yield text[:end]
                text = text[end:]
        while text:
            end = _first_end(text, more=False) or len(text)
            yield text[:end]
            text = text[end:]
    finally:
        if isinstance(fragments, AsyncGenerator):
            await fragments.aclose()


def _first_end(text: str, *, more: bool) -> int:
    """Where the first sentence ends, its white space included; 0 while that cannot be known yet."""
    window = text[:_WINDOW]
    open_ended = more and len(text) < _WINDOW
    for found in _END.finditer(window):
        end = _end_at(window, found, open_ended)
        if end is None:
            return 0
        if end > MOST:
            break
        if end:
            return end
    if len(text) <= MOST or open_ended:
        return 0
    spaces = [space.end() for space in re.finditer(r"\s+", text[:MOST])]
    return spaces[-1] if spaces else MOST


def _end_at(text: str, found: re.Match[str], open_ended: bool) -> int | None:
    """The end of the sentence if `found` ends it, 0 if it does not, None if more text must come first."""
    closed = found.end()
    while closed < len(text) and text[closed] in _CLOSERS:
        closed += 1
    end = closed
    while end < len(text) and text[end].isspace():
        end += 1
    if open_ended and (end == len(text) or ("\n" in text[found.start() : end] and _may_be_marker(text, end))):
        return None
    if not text[: found.start()].strip():
        return 0
    if end == len(text):
        return end
    ends = (
        _line_ends(text, found, end)
        if found[0] == "\n"
        else found[0][0] in _WIDE or (end > closed and _stop_ends(text, found, closed, end))
    )
    return end if ends else 0


def _may_be_marker(text: str, start: int) -> bool:
    """Whether the text breaks off where the beginning of a list item could still become one."""
    rest = text[start : start + 5]
    return len(rest) < 5 and _MARKER_SO_FAR.fullmatch(rest) is not None


def _line_ends(text: str, found: re.Match[str], end: int) -> bool:
    """A line ends a sentence before an empty line and before the next item of a list."""
    return text[found.start() : end].count("\n") > 1 or _MARKER.match(text, end) is not None


def _stop_ends(text: str, found: re.Match[str], closed: int, end: int) -> bool:
    mark, following = found[0], text[end]
    if "\n" in text[closed:end] and _line_ends(text, found, end):
        return True
    if mark != ".":
        quoted = closed > found.end()
        dots = mark[0] in ".\u2026" and not set(mark) & set("!?")
        return not ((quoted or dots) and following.islower())
    before = text[: found.start()]
    if following.islower() or _NUMBER_AT_LINE_START.search(before):
        return False
    word = _WORD_BEFORE.search(before)
    if word is None:
        return True
    name = word[0].lower()
    if name in _NEVER_LAST:
        return False
    if name in _SELDOM_LAST:
        return following.isupper()
    initial = len(name) == 1 and word[0].isupper() and word[0] != "I" and following.isupper()
    after_a_letter = word.start() > 0 and not before[word.start() - 1].isspace()
    return not initial or after_a_letter or _LETTER_IS_A_NAME.search(before) is not None
