"""A moment in the time zone of a person."""

from datetime import UTC, datetime

import pytest

from orchestrator.ops.clock import in_time_zone

MOMENT = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)


def test_a_moment_is_shown_in_a_time_zone_and_stays_the_same_moment() -> None:
    there = in_time_zone(MOMENT, "Europe/Berlin")

    assert (there.hour, there) == (10, MOMENT)


@pytest.mark.parametrize("name", [None, "", "Nowhere/Land", "../../etc/passwd", 7, "x" * 5_000])
def test_an_unknown_time_zone_changes_nothing(name: object) -> None:
    assert in_time_zone(MOMENT, name).tzinfo is UTC
