"""Frames made to do harm: every one is decoded or refused, and memory stays bounded."""

import resource
import sys
import tracemalloc

import pytest

from orchestrator.wire.codec import MOST_IN_FRAME, open_frame
from tests.wire.hostile import filled_with, frames, outcomes

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


def peak_memory() -> int:
    """The most bytes that this process ever held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def test_the_same_seed_gives_the_same_frames() -> None:
    assert list(frames(seed=7, count=300)) == list(frames(seed=7, count=300))


def test_ten_thousand_hostile_frames_are_decoded_or_refused() -> None:
    seen = outcomes(seed=20_260_115, count=10_000)

    assert seen.keys() == MUST_BE_REACHED
    assert seen.total() == 10_000


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_a_million_hostile_frames_are_decoded_or_refused_in_bounded_memory(seed: int) -> None:
    outcomes(seed=1000 + seed, count=5_000)
    before = peak_memory()

    seen = outcomes(seed=seed, count=250_000)

    assert seen.keys() == MUST_BE_REACHED
    assert seen.total() == 250_000
    assert peak_memory() - before < 32 * MIB


FILLINGS = {
    "empty maps": b"\x80",
    "empty lists": b"\x90",
    "maps in a form that is not ours": b"\x81\xd9\x00\xc0",
}


@pytest.mark.parametrize("item", FILLINGS.values(), ids=FILLINGS)
def test_the_frame_that_swells_most_needs_less_than_a_hundred_times_its_size(item: bytes) -> None:
    frame = filled_with(item, size=MOST_IN_FRAME // 4)
    tracemalloc.start()
    try:
        open_frame(frame, most=MOST_IN_FRAME)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100 * len(frame)


def test_a_frame_that_claims_gigabytes_costs_nothing() -> None:
    claims = [bytes.fromhex(start + "ffffffff") for start in ("dd", "df", "db", "c6", "c9")]
    tracemalloc.start()
    try:
        for claim in claims:
            with pytest.raises(Exception, match=r"\."):
                open_frame(b"\x81\xa4body" + claim, most=MOST_IN_FRAME)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < MIB
