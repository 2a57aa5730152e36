"""A real Letta server, shared by all tests of a run; each has its own conversations."""

import os
from contextlib import suppress
from threading import Thread

import pytest

from tests.servers.once import start_once
from tools.servers.letta import HINT, Address
from tools.setup.progress import SetupError


@pytest.fixture(scope="session")
def letta(request: pytest.FixtureRequest) -> Address:
    """The Letta server at `LETTA_BASE_URL` with its model endpoint; otherwise one that the run starts."""
    if url := os.environ.get("LETTA_BASE_URL"):
        models = os.environ.get("ANAMNESIS_TEST_MODELS_URL")
        if models is None:
            raise SetupError(f"{HINT} ANAMNESIS_TEST_MODELS_URL then says where its models come from.")
        return Address(url, models)
    return Address.parse(start_once(request.config, "letta"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let one worker start the server while other tests run, because it takes most of a minute."""
    ours = "LETTA_BASE_URL" not in os.environ and os.environ.get("PYTEST_XDIST_WORKER") == "gw0"
    if ours and any("letta" in getattr(item, "fixturenames", ()) for item in session.items):
        Thread(target=_start, args=[session.config], name="starting Letta", daemon=True).start()


def _start(config: pytest.Config) -> None:
    with suppress(SetupError):  # the test that needs it tries again and gets the error
        start_once(config, "letta")
