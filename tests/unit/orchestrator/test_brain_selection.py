"""Which brain answers: the model, or the local brain while the model is not available."""

import asyncio

import pytest

from orchestrator.brain_selection import ModelStatus
from orchestrator.errors import LettaTrouble


async def _reachable() -> None:
    """The model is reachable."""


def test_a_model_is_unavailable_from_when_the_breaker_opens_until_it_has_answered() -> None:
    status = ModelStatus(2, 0.0, _reachable)

    status.breaker.record_failure(None)
    after_one = status.available
    status.breaker.record_failure(60.0)
    after_two = status.available
    status.breaker.record_failure(None)  # the breaker let one request through, which failed
    still = status.available
    status.breaker.record_success()

    assert (after_one, after_two, still, status.available) == (True, False, False, True)


async def test_checks_notice_that_the_model_is_unreachable_and_that_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.brain_selection.CHECK_SECONDS", 0.01)
    results = asyncio.Queue[LettaTrouble | None](1)

    async def check() -> None:
        if (trouble := await results.get()) is not None:  # a check that times out changes nothing
            raise trouble

    status = ModelStatus(3, 10.0, check)
    checking = asyncio.create_task(status.keep_checking())
    try:
        async with asyncio.timeout(30):
            await results.put(LettaTrouble("unreachable"))
            while status.available:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while not status.available:
                await results.put(None)
                await asyncio.sleep(0)
    finally:
        checking.cancel()
        await asyncio.wait([checking])
