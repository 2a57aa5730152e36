"""Sizes, levels and percentages."""

import pytest

from memory_blocks.limits import DEFAULTS, level, utilization, whole_percent
from memory_blocks.models import Label, Level


@pytest.mark.requirement("001-077")
@pytest.mark.parametrize(
    ("size", "limit", "percent"),
    [(8500, 32000, 26.6), (1200, 4000, 30.0), (2100, 8000, 26.3), (0, 8000, 0.0), (32000, 32000, 100.0)],
)
def test_utilization_has_one_decimal_half_up(size: int, limit: int, percent: float) -> None:
    assert utilization(size, limit) == percent


@pytest.mark.parametrize(("size", "percent"), [(0, 0), (159, 0), (160, 1), (8000, 25), (32000, 100)])
def test_a_whole_percent_is_half_up(size: int, percent: int) -> None:
    assert whole_percent(size, 32000) == percent


@pytest.mark.requirement("001-095", "001-096")
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, Level.NORMAL),
        (22_399, Level.NORMAL),
        (22_400, Level.WARNING),
        (27_199, Level.WARNING),
        (27_200, Level.ARCHIVE),
        (30_399, Level.ARCHIVE),
        (30_400, Level.EMERGENCY),
        (40_000, Level.EMERGENCY),
    ],
)
def test_a_size_on_a_threshold_has_the_higher_level(size: int, expected: Level) -> None:
    assert level(size, 32_000) is expected


@pytest.mark.requirement("001-076")
def test_each_block_has_its_limit() -> None:
    assert [DEFAULTS.of(label) for label in Label] == [32_000, 4_000, 8_000, 2_000]
