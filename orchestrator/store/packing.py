"""How the revisions of a block are kept small: each as what it takes to make it of the one before."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from memory_blocks.trace import digest
from orchestrator.store.rows import BlockRevision

WHOLE_EVERY: Final = 50
"""So many revisions at most have to be gone through to read one back, or are lost with a damaged one."""

CHAIN_RULES: Final = (
    "a revision's digest is not that of its text",
    "a revision is missing before this one",
    "a revision does not follow the one before",
    "a revision's size is not that of its text",
)

_SHARED: Final = struct.Struct(">II")
_WINDOW: Final = 1 << 15  # as far back as deflate can refer
_NEAR: Final = 1 << 13  # as far back as is worth the time for little; who unpacks need not know
_RAW: Final = -15


def pack(text: str, base: str = "") -> bytes:
    """`text` as the lengths of what it begins and ends with as `base` does, and the rest, deflated."""
    new, known = text.encode(), base.encode()
    start = _shared(new, known)
    end = _shared(new[start:][::-1], known[start:][::-1])
    rest = new[start : len(new) - end]
    reach = _NEAR if len(rest) < _NEAR else _WINDOW
    deflate = zlib.compressobj(wbits=_RAW, zdict=known[-reach:])
    return _SHARED.pack(start, end) + deflate.compress(rest) + deflate.flush()


def unpack(packed: bytes, base: str = "") -> str | None:
    """The text again; None when it cannot be had of these bytes and that base."""
    known = base.encode()
    try:
        start, end = _SHARED.unpack_from(packed)
        rest = zlib.decompressobj(wbits=_RAW, zdict=known[-_WINDOW:]).decompress(packed[_SHARED.size :])
        return (known[:start] + rest + known[len(known) - end :]).decode()
    except (struct.error, zlib.error, UnicodeDecodeError):
        return None


def unpacked(revisions: Iterable[BlockRevision]) -> Iterator[tuple[BlockRevision, str | None]]:
    """Revisions of one block, in order, with their texts; None for one that is not what was written."""
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
    """Where the revisions of one block, in order, are no chain of what was written; by revision."""
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


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes both begin with, found by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
