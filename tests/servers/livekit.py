"""A real LiveKit server, shared by all tests of a run: each has rooms of its own."""

import os

import pytest

from tests.servers.once import start_once
from tools.servers.livekit import Address


@pytest.fixture(scope="session")
def livekit(request: pytest.FixtureRequest) -> Address:
    """The server that `LIVEKIT_URL` names with its key and secret, else one of our own."""
    if url := os.environ.get("LIVEKIT_URL"):
        return Address(url, os.environ["LIVEKIT_API_KEY"], os.environ["LIVEKIT_API_SECRET"])
    return Address.parse(start_once(request.config, "livekit"))
