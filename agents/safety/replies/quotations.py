"""Quotations of the person's own words in an answer, which are no statement of ours. Pure."""

import re
from collections.abc import Iterable
from typing import Final

_QUOTED: Final = re.compile(r'"([^"]{1,400})"')
_MARKS: Final = str.maketrans({"\u2019": "'", "\u2018": "'", '"': "'", "\u201c": "'", "\u201d": "'"})


def without_quotations(sentence: str, own: Iterable[str]) -> str:
    """A sentence without the parts between quotation marks that the person has written.

    A part that is not word for word in one of the texts `own` stays: quotation marks alone allow nothing. A
    part that ends with an ellipsis is the beginning of what was written.
    """
    if '"' not in sentence:
        return sentence
    texts = [_plain(text) for text in own]

    def replaced(found: re.Match[str]) -> str:
        part = _plain(found[1]).rstrip(" .,;:!\u2026")
        return '""' if part and any(part in text for text in texts) else found[0]

    return _QUOTED.sub(replaced, sentence)


def _plain(text: str) -> str:
    return " ".join(text.translate(_MARKS).lower().split())
