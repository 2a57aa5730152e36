"""The timeout is longer for a server that answers other requests than for a silent one, but finite."""

import asyncio
from time import monotonic

import pytest

from orchestrator.ops.waiting import Waiting

LONG, SHORT = 600.0, 0.05


async def test_waits_while_the_server_answers_other_requests() -> None:
    calls = 0

    def last_answer_at() -> float:
        nonlocal calls
        calls += 1
        if calls == 3:
            work.set_result(None)
        return monotonic()

    work = asyncio.get_running_loop().create_future()

    assert await Waiting(SHORT, LONG, last_answer_at).finishes(work)


@pytest.mark.parametrize(
    "waiting",
    [Waiting(SHORT, LONG), Waiting(SHORT, LONG, lambda: 0.0), Waiting(LONG, SHORT, monotonic)],
    ids=["never answered", "silent", "too long in all"],
)
async def test_gives_up_on_a_silent_or_slow_server_without_cancelling_the_work(waiting: Waiting) -> None:
    work = asyncio.get_running_loop().create_future()

    assert not await waiting.finishes(work)
    assert not work.done()


async def test_an_inner_step_gets_half_of_the_time() -> None:
    assert Waiting(2.0, 10.0, monotonic).halved() == Waiting(1.0, 5.0, monotonic)
