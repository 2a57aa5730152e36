"""Cuts a stream of text into sentences, each as soon as it is complete. The joined sentences are the text."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

MAX_SENTENCE: Final = 2_000
"""Maximum length of a sentence. A longer one is cut at a space."""

_AHEAD: Final = 12  # characters after a full stop that decide whether it ends a sentence
_BEHIND: Final = 48  # characters before it that do
_WINDOW: Final = MAX_SENTENCE + _AHEAD

_WIDE: Final = "\u3002\uff01\uff1f"  # full stops of scripts that put no space after them
_END: Final = re.compile(rf"[.!?\u2026]+|[{_WIDE}]+|\n\s*")
_CLOSERS: Final = re.compile(r"[\"'\u201d\u2019\u00bb)\]}*_`\u300d\u300f\uff09]+")
_SPACE: Final = re.compile(r"\s+")
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
    """Yield the sentences of a stream, each with the white space after it.

    Where a sentence ends depends only on the text, not on how it was cut into fragments. A sentence longer
    than `MAX_SENTENCE` is cut at a space. Closing this generator closes the stream.
    """
    text, seen = "", 0
    try:
        async for fragment in fragments:
            # a huge fragment is taken in pieces, because the text is copied for each sentence
            for start in range(0, len(fragment), _WINDOW):
                text += fragment[start : start + _WINDOW]
                while True:
                    end, seen = _first_end(text, seen, more=True)
                    if not end:
                        break
                    yield text[:end]
                    text, seen = text[end:], 0
        for sentence in cut(text):
            yield sentence
    finally:
        if isinstance(fragments, AsyncGenerator):
            await fragments.aclose()


def cut(text: str) -> list[str]:
    """The sentences of a whole text, each with the white space after it."""
    found = []
    while text:
        end, _ = _first_end(text, 0, more=False)
        found.append(text[: end or len(text)])
        text = text[end:] if end else ""
    return found


def has_whole_sentence(text: str) -> bool:
    """Whether the beginning of a stream contains a complete sentence."""
    return _first_end(text, 0, more=True)[0] > 0


def _first_end(text: str, seen: int, *, more: bool) -> tuple[int, int]:
    """Where the first sentence ends, including its white space; 0 while that is not known yet.

    The second value is how far the text was examined. The next call takes it as `seen`, so that no text is
    examined twice.
    """
    window = text[:_WINDOW]
    open_ended = more and len(text) < _WINDOW
    for found in _END.finditer(window, seen):
        end = _end_at(window, found, open_ended)
        if end is None:
            return 0, found.start()
        if end > MAX_SENTENCE:
            break
        if end:
            return end, 0
    if len(text) <= MAX_SENTENCE or open_ended:
        return 0, len(text)
    spaces = [space.end() for space in _SPACE.finditer(text[:MAX_SENTENCE])]
    return (spaces[-1] if spaces else MAX_SENTENCE), 0


def _end_at(text: str, found: re.Match[str], open_ended: bool) -> int | None:
    """The end of the sentence if `found` ends it, 0 if it does not, None if more text is needed to tell."""
    closed = _after(_CLOSERS, text, found.end())
    end = _after(_SPACE, text, closed)
    new_line = "\n" in text[found.start() : end]
    if open_ended and (end == len(text) or (new_line and _may_be_marker(text, end))):
        return None
    if text[: found.start()].isspace() or not found.start():
        return 0
    if end == len(text):
        return end
    if new_line and _line_ends(text, found.start(), end):
        return end
    if found[0][0] in _WIDE:
        return end
    return end if found[0][0] != "\n" and closed < end and _stop_ends(text, found, closed, end) else 0


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    """The end of the match of `pattern` at `start`; `start` if there is none."""
    found = pattern.match(text, start)
    return found.end() if found else start


def _may_be_marker(text: str, start: int) -> bool:
    """Whether the text ends in what may become the marker of a list item."""
    rest = text[start : start + 5]
    return len(rest) < 5 and _MARKER_SO_FAR.fullmatch(rest) is not None


def _line_ends(text: str, start: int, end: int) -> bool:
    """Whether a line break ends a sentence: before an empty line, and before the next item of a list."""
    return text.count("\n", start, end) > 1 or _MARKER.match(text, end) is not None


def _stop_ends(text: str, found: re.Match[str], closed: int, end: int) -> bool:
    """Whether a punctuation mark ends a sentence, and is not part of an abbreviation or a number."""
    mark, following = found[0], text[end]
    if mark != ".":
        quoted = closed > found.end()
        dots = mark[0] in ".\u2026" and not set(mark) & set("!?")
        return not ((quoted or dots) and following.islower())
    start = max(0, found.start() - _BEHIND)
    # the "x" keeps the start of the window from looking like the start of a line
    before = ("x" if start else "") + text[start : found.start()]
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
