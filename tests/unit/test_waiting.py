"""A server that answers anybody is waited for longer than a silent one, though not for ever."""

import asyncio
from time import monotonic

import pytest

from orchestrator.waiting import Waiting

LONG, SHORT = 600.0, 0.05


async def test_one_that_answers_others_is_waited_for() -> None:
    heard = 0

    def heard_at() -> float:
        nonlocal heard
        heard += 1
        if heard == 3:
            work.set_result(None)
        return monotonic()

    work = asyncio.get_running_loop().create_future()

    assert await Waiting(SHORT, LONG, heard_at).ends(work)


@pytest.mark.parametrize(
    "waiting",
    [Waiting(SHORT, LONG), Waiting(SHORT, LONG, lambda: 0.0), Waiting(LONG, SHORT, monotonic)],
    ids=["never answered", "silent", "too long in all"],
)
async def test_one_that_is_silent_or_takes_too_long_is_not_and_what_it_does_goes_on(waiting: Waiting) -> None:
    work = asyncio.get_running_loop().create_future()

    assert not await waiting.ends(work)
    assert not work.done()


async def test_who_is_waited_for_in_turn_has_half_of_that_time() -> None:
    assert Waiting(2.0, 10.0, monotonic).halved() == Waiting(1.0, 5.0, monotonic)
