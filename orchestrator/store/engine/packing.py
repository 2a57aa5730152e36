"""Compresses the revisions of a block: each is stored as its difference from the one before."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from memory_blocks.trace import digest
from orchestrator.store.rows import BlockRevision

WHOLE_EVERY: Final = 50
"""Every this many revisions, one is stored whole, to limit how many must be read for one text."""

CHAIN_RULES: Final = (
    "a revision's digest is not that of its text",
    "a revision is missing before this one",
    "a revision does not follow the one before",
    "a revision's size is not that of its text",
)

_SHARED: Final = struct.Struct(">II")
_WINDOW: Final = 1 << 15  # the window of deflate
_NEAR: Final = 1 << 13  # a smaller window is faster for small changes; unpacking works with either
_RAW: Final = -15


def pack(text: str, base: str = "") -> bytes:
    """Pack `text`: the lengths of the prefix and suffix it shares with `base`, and the rest deflated."""
    new, known = text.encode(), base.encode()
    start = _common_prefix(new, known)
    end = _common_prefix(new[start:][::-1], known[start:][::-1])
    rest = new[start : len(new) - end]
    reach = _NEAR if len(rest) < _NEAR else _WINDOW
    deflate = zlib.compressobj(wbits=_RAW, zdict=known[-reach:])
    return _SHARED.pack(start, end) + deflate.compress(rest) + deflate.flush()


def unpack(packed: bytes, base: str = "") -> str | None:
    """Restore the text; None if the bytes do not fit the base."""
    known = base.encode()
    try:
        start, end = _SHARED.unpack_from(packed)
        rest = zlib.decompressobj(wbits=_RAW, zdict=known[-_WINDOW:]).decompress(packed[_SHARED.size :])
        return (known[:start] + rest + known[len(known) - end :]).decode()
    except (struct.error, zlib.error, UnicodeDecodeError):
        return None


def unpacked(revisions: Iterable[BlockRevision]) -> Iterator[tuple[BlockRevision, str | None]]:
    """The revisions of one block, in order, each with its text, or None if that does not match its digest."""
    text: str | None = None
    at = 0
    for revision in revisions:
        if revision.base is None:
            text = unpack(revision.packed)
        elif text is None or at != revision.base:
            text = None
        else:
            text = unpack(revision.packed, text)
        if text is not None and digest(text) != revision.digest:
            text = None
        at = revision.revision
        yield revision, text


def chain_departures(revisions: Iterable[BlockRevision]) -> Iterator[tuple[int, str]]:
    """The revisions of one block that break its chain of digests, each with the broken rule."""
    before: BlockRevision | None = None
    for revision, text in unpacked(revisions):
        if text is None:
            yield revision.revision, CHAIN_RULES[0]
        elif len(text) != revision.size:
            yield revision.revision, CHAIN_RULES[3]
        if before is not None and revision.revision != before.revision + 1:
            yield revision.revision, CHAIN_RULES[1]
        elif before is not None and revision.previous_digest != before.digest:
            yield revision.revision, CHAIN_RULES[2]
        before = revision


def _common_prefix(one: bytes, other: bytes) -> int:
    """The length of the common prefix, found by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
