"""A real Letta server, shared by all tests of a run: each has conversations of its own."""

import os

import pytest

from tests.servers.once import start_once
from tools.progress import SetupError
from tools.servers.letta import OTHERWISE, Address


@pytest.fixture(scope="session")
def letta(request: pytest.FixtureRequest) -> Address:
    """The server that `LETTA_BASE_URL` names with the endpoint of its models, else one of our own."""
    if url := os.environ.get("LETTA_BASE_URL"):
        models = os.environ.get("ANAMNESIS_TEST_MODELS_URL")
        if models is None:
            raise SetupError(f"{OTHERWISE} ANAMNESIS_TEST_MODELS_URL then says where its models come from.")
        return Address(url, models)
    return Address.parse(start_once(request.config, "letta"))
