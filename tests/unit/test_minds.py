"""Who answers: the model, or the local brain for as long as the model does not."""

import asyncio

import pytest

from orchestrator.errors import LettaTrouble
from orchestrator.minds import Attention


async def _well() -> None:
    """Somebody is there."""


def test_a_model_that_is_left_alone_answers_no_more_until_it_has_answered() -> None:
    attention = Attention(2, 0.0, _well)

    attention.breaker.failed(None)
    after_one = attention.is_paid
    attention.breaker.failed(60.0)
    after_two = attention.is_paid
    attention.breaker.failed(None)  # its rest may be over: it is tried, and fails again
    still = attention.is_paid
    attention.breaker.succeeded()

    assert (after_one, after_two, still, attention.is_paid) == (True, False, False, True)


async def test_who_is_not_there_is_noticed_before_anybody_asks_and_so_is_who_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.minds.LOOK_SECONDS", 0.01)
    turns = asyncio.Queue[LettaTrouble | None](1)

    async def look() -> None:
        if (trouble := await turns.get()) is not None:  # who waits for more than a moment knows nothing new
            raise trouble

    attention = Attention(3, 10.0, look)
    looking = asyncio.create_task(attention.keep_looking())
    try:
        async with asyncio.timeout(30):
            await turns.put(LettaTrouble("unreachable"))
            while attention.is_paid:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while not attention.is_paid:
                await turns.put(None)
                await asyncio.sleep(0)
    finally:
        looking.cancel()
        await asyncio.wait([looking])
