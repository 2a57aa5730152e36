"""Words that a message quotes from a song, a film or a book, which are not the writer's own. Pure."""

import re
from typing import Final, NamedTuple

_QUOTATION: Final = re.compile(r'"[^"]+"|\u201c[^\u201c\u201d]+\u201d|\u00ab[^\u00ab\u00bb]+\u00bb')
_WORK: Final = re.compile(
    r"\b(?:songs?|lyrics?|poems?|verse|chorus|films?|movies?|books?|novels?|characters?|plays?|opera|scenes?"
    r"|episodes?|pages?|chapters?|lines?|sings?|sang|singer|album|series|quotes?|quotation|quoted|headlines?"
    r"|titles?|titled|author|poet|narrator|protagonist|hero|heroine|actor|actress|sketch|meme|proverb|idiom|saying|phrase)\b",
    re.IGNORECASE,
)
_WRITER: Final = re.compile(r"\b(?:i|me|my|mine|myself|i['\u2019]?(?:m|ve|ll|d))\b", re.IGNORECASE)


class Quoting(NamedTuple):
    """A message that quotes a work."""

    outside: str
    """What the writer says, without the quoted words."""
    is_about_writer: bool
    """Whether the writer speaks of themselves outside the quotation."""


def quoting(text: str) -> Quoting | None:
    """The message apart from what it quotes; None if it quotes nothing, or names no work that it is from."""
    outside = _QUOTATION.sub(" ", text)
    if outside == text or _WORK.search(outside) is None:
        return None
    return Quoting(" ".join(outside.split()), _WRITER.search(outside) is not None)
