"""Which brain answers: the model, or the local brain while the model is not available."""

import asyncio

import pytest

from agents.models.scripted import ScriptedBrain
from orchestrator.brain_selection import BrainName, ModelStatus, SelectedBrain, is_on_the_internet
from orchestrator.errors import LettaTrouble
from orchestrator.local_models import MODEL_AWAY, NO_MODEL
from orchestrator.wire.messages import ModelInfo


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


class Checks:
    """Checks of a model that can be counted, at a time that a test sets."""

    def __init__(self, *, is_hosted: bool) -> None:
        self.now, self.count, self.fails = 1_000.0, 0, False
        self.status = ModelStatus(3, 10.0, self.check, lambda: self.now, is_hosted=is_hosted)

    async def check(self) -> None:
        self.count += 1
        if self.fails:
            raise LettaTrouble("http_500")


async def test_a_model_that_answers_is_available_whatever_a_check_said() -> None:
    checks = Checks(is_hosted=False)
    checks.fails = True
    with pytest.raises(LettaTrouble):
        await checks.status.check()
    after_check = checks.status.available
    checks.now += 1
    checks.status.breaker.record_success()
    await checks.status.check()

    assert (after_check, checks.status.available) == (False, True)
    assert checks.count == 1


@pytest.mark.parametrize(("is_hosted", "count"), [(False, 12), (True, 1)])
async def test_a_hosted_model_is_checked_rarely(is_hosted: bool, count: int) -> None:
    checks = Checks(is_hosted=is_hosted)

    for _ in range(12):
        await checks.status.check()
        checks.now += 10

    assert checks.count == count


@pytest.mark.parametrize(
    ("address", "is_hosted"),
    [
        ("https://api.openai.com/v1", True),
        ("https://8.8.8.8/v1", True),
        ("http://127.0.0.1:11434/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://192.168.1.7:8000/v1", False),
        ("http://ollama:11434/v1", False),
        ("http://gpu.local/v1", False),
        ("", False),
    ],
)
def test_a_model_on_our_own_network_is_not_hosted(address: str, is_hosted: bool) -> None:
    assert is_on_the_internet(address) is is_hosted


def test_the_notice_of_an_outage_is_not_that_of_no_model() -> None:
    name, local = (BrainName(ModelInfo(name=each, provider="a"), "b") for each in ("gpt", "local"))
    down = ModelStatus(1, 60.0, _reachable)
    down.breaker.record_failure(None)

    notices = [SelectedBrain(ScriptedBrain(), name, local, status=status).notice for status in (None, down)]

    assert notices == [NO_MODEL, MODEL_AWAY.format(name="gpt")]
    assert "serve --model" not in MODEL_AWAY
    assert SelectedBrain(ScriptedBrain(), name, local, status=ModelStatus(1, 1, _reachable)).notice is None
