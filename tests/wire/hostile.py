"""Hostile frames: each is a valid one, damaged at random in one or several ways."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final

import msgpack

from orchestrator.errors import AnamnesisError
from orchestrator.wire.codec import MAX_FRAME_BYTES, decode
from orchestrator.wire.messages import Sender
from tests.wire.snapshots import kept

SECRET: Final = "CANARY-what-the-person-wrote"
BOMBS: Final = [marker + b"\xff\xff\xff\xff" for marker in (b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9")]
CLAIMS: Final = [
    b"\x9f",
    b"\xdc\x27\x10",
    b"\xdd\x00\x00\x27\x10",
    b"\xde\x03\xe8\xa1k",
    b"\xdc\x27\x10\x81\xa1k",
    b"\x81\xa1k\xdc\x27\x10",
]
"""Beginnings of nested values that stay within every limit if they have the announced length."""
ODD_BYTES: Final = [
    *BOMBS,
    b"\xc1",
    b"\xd4\x05a",
    b"\xd6\xff\x00\x00\x00\x00",
    b"\xc7\x00\x05",
    b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    b"\xca\xff\x80\x00\x00",
    b"\xa2\xc3\x28",
    b"\xa3\xed\xa0\x80",
    b"\x82\xa1a\x01\xa1a\x02",
    b"\x81\x01\x02",
    b"\x81\xc4\x00\x02",
]
ODD_VALUES: Final[list[Any]] = [
    None,
    True,
    0,
    -1,
    10,
    2**31,
    2**63,
    -(2**63),
    0.5,
    float("nan"),
    float("inf"),
    1e300,
    "",
    " ",
    "5",
    "\0",
    SECRET,
    SECRET + "\0",
    "ä" * 129,
    "../../etc/passwd",
    b"",
    SECRET.encode(),
    [],
    [SECRET],
    [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]],
    {},
    {SECRET: SECRET},
    {SECRET: b"x"},
    {"localId": "a", "contents": "\0"},
]


def _bytes_changed(rng: Random, frame: bytes) -> bytes:
    changed = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: Random, frame: bytes) -> bytes:
    return frame[: rng.randrange(len(frame))]


def _part_taken_out(rng: Random, frame: bytes) -> bytes:
    start = rng.randrange(len(frame))
    return frame[:start] + frame[start + rng.randint(1, 8) :]


def _part_repeated(rng: Random, frame: bytes) -> bytes:
    start = rng.randrange(len(frame))
    return frame[: start + rng.randint(1, 40)] + frame[start:]


def _something_odd_put_in(rng: Random, frame: bytes) -> bytes:
    start = rng.randrange(len(frame) + 1)
    return frame[:start] + rng.choice(ODD_BYTES) + frame[start + rng.randint(0, 8) :]


def _noise_put_in(rng: Random, frame: bytes) -> bytes:
    start = rng.randrange(len(frame) + 1)
    return frame[:start] + rng.randbytes(rng.randint(1, 16)) + frame[start:]


def _nested(rng: Random, _: bytes) -> bytes:
    opening = rng.choice([b"\x91", b"\x81\xa0", b"\x81\xa1k", b"\x92\xc0", b"\x81\xa4body", *CLAIMS])
    return opening * rng.choice([8, 16, 17, 32, 300, 1100, 3000]) + b"\xc0"


def _a_key_twice(rng: Random, frame: bytes) -> bytes:
    again: bytes = msgpack.packb("type") + msgpack.packb(rng.choice(ODD_VALUES))
    return bytes([frame[0] + 1]) + frame[1:] + again


def _fields_changed(rng: Random, frame: bytes) -> bytes:
    tree: dict[str, Any] = msgpack.unpackb(frame)
    for _ in range(rng.randint(1, 3)):
        where = tree["body"] if rng.random() < 0.7 and type(tree.get("body")) is dict else tree
        name = rng.choice([*where, "extra", "meta", "previous_id", "duration", "messageId"])
        if rng.random() < 0.3:
            where.pop(name, None)
        else:
            where[name] = deepcopy(rng.choice(ODD_VALUES))
    return bytes(msgpack.packb(tree))


def _type_changed(rng: Random, frame: bytes) -> bytes:
    return bytes(msgpack.packb(msgpack.unpackb(frame) | {"type": rng.randint(0, 30)}))


def _one_field_huge(rng: Random, frame: bytes) -> bytes:
    tree: dict[str, Any] = msgpack.unpackb(frame)
    name = rng.choice([*tree["body"], "extra"])
    tree["body"][name] = rng.choice(
        ["a" * 300_000, b"a" * 300_000, [0] * 10_001, {str(n): n for n in range(1_001)}, "a" * 1_100_000]
    )
    return bytes(msgpack.packb(tree))


SMALL: Final[list[Callable[[Random, bytes], bytes]]] = [
    _bytes_changed,
    _cut,
    _part_taken_out,
    _part_repeated,
    _something_odd_put_in,
    _noise_put_in,
    _nested,
    _a_key_twice,
    _fields_changed,
    _fields_changed,
    _fields_changed,
    _type_changed,
]


def frames(seed: int, count: int) -> Iterator[bytes]:
    """That many hostile frames; equal seeds give equal frames."""
    rng = Random(seed)
    good = [frame.replace(b"headache", SECRET.encode()[:8]) for frame in kept().values()]
    for number in range(count):
        frame = rng.choice(good)
        if number % 500 == 0:
            frame = _one_field_huge(rng, frame)
        else:
            frame = rng.choice(SMALL)(rng, frame)
            if frame and rng.random() < 0.3:
                frame = _bytes_changed(rng, frame)
        yield frame


def outcomes(seed: int, count: int) -> Counter[str]:
    """The number of each result. Any unexpected exception is raised."""
    senders: list[Sender] = ["client", "server"]
    seen: Counter[str] = Counter()
    for number, frame in enumerate(frames(seed, count)):
        try:
            decode(frame, sender=senders[number % 2], max_bytes=MAX_FRAME_BYTES)
            seen["decoded"] += 1
        except AnamnesisError as error:
            quoted = "CANARY" in str(error) or error.__context__ is not None or error.__cause__ is not None
            seen["quoted" if quoted else error.problem.name] += 1
    return seen


def filled_with(item: bytes, *, size: int = MAX_FRAME_BYTES) -> bytes:
    """A frame of nearly `size` bytes within every limit, filled with one small item many times."""
    row = b"\xdc" + (10_000).to_bytes(2, "big") + item * 10_000
    rows = (size - 100) // len(row)
    head = b"\x84\xa8stanzaId\x01\xa4type\x02\xaeconversationId\xa1c\xa4body\x81\xa5extra\xdc"
    return head + rows.to_bytes(2, "big") + row * rows
