"""Hostile frames: each is decoded or refused, and memory stays bounded."""

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from orchestrator.errors import AnamnesisError
from orchestrator.wire.codec import MAX_FRAME_BYTES, open_frame
from tests.wire.hostile import BOMBS, CLAIMS, filled_with, frames, outcomes

MIB = 1024 * 1024

MUST_BE_REACHED = {
    "decoded",
    "bad_key",
    "bad_number",
    "bad_utf8",
    "client_only_type",
    "conflicting_names",
    "duplicate_key",
    "ext_not_allowed",
    "field_too_long",
    "frame_too_large",
    "invalid_field",
    "malformed_frame",
    "missing_field",
    "nul_in_text",
    "server_only_type",
    "too_deep",
    "too_many_items",
    "trailing_bytes",
    "unknown_type",
}


@contextmanager
def less_than(most: int) -> Iterator[None]:
    """Assert that the body never allocates that many bytes more than before."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most


def test_the_same_seed_gives_the_same_frames() -> None:
    assert list(frames(seed=7, count=300)) == list(frames(seed=7, count=300))


def test_ten_thousand_hostile_frames_are_decoded_or_refused_in_bounded_memory() -> None:
    with less_than(16 * MIB):
        seen = outcomes(seed=20_260_115, count=10_000)

    assert seen.keys() == MUST_BE_REACHED
    assert seen.total() == 10_000


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_a_million_hostile_frames_are_decoded_or_refused_in_bounded_memory(seed: int) -> None:
    with less_than(16 * MIB):
        seen = outcomes(seed=seed, count=250_000)

    assert seen.keys() == MUST_BE_REACHED
    assert seen.total() == 250_000


FILLINGS = {
    "empty maps": b"\x80",
    "empty lists": b"\x90",
    "maps in a form that is not ours": b"\x81\xd9\x00\xc0",
}


@pytest.mark.parametrize("item", FILLINGS.values(), ids=FILLINGS)
def test_no_frame_needs_more_than_a_hundred_times_its_size_in_memory(item: bytes) -> None:
    frame = filled_with(item, size=MAX_FRAME_BYTES // 4)

    with less_than(100 * len(frame)):
        open_frame(frame, max_bytes=MAX_FRAME_BYTES)


@pytest.mark.parametrize(
    ("item", "most"), [(b"\xde\x00\x00", 2), (b"\x81\xd9\x00\xc0", 6)], ids=["empty", "of one pair"]
)
def test_maps_in_other_encodings_cost_few_calls(item: bytes, most: int) -> None:
    maps, calls = 10_000, 0
    frame = filled_with(item, size=maps * len(item) + 200)

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        open_frame(frame, max_bytes=MAX_FRAME_BYTES)
    finally:
        sys.setprofile(None)

    assert maps < calls < most * maps


@pytest.mark.parametrize(
    "claim", [*BOMBS, *(claim * 1000 for claim in CLAIMS)], ids=lambda claim: claim[:6].hex()
)
def test_a_frame_with_false_lengths_costs_little_memory(claim: bytes) -> None:
    with less_than(MIB // 2), pytest.raises(AnamnesisError):
        open_frame(b"\x81\xa4body" + claim, max_bytes=MAX_FRAME_BYTES)
