"""A real LiveKit server, shared by all tests of a run: each has rooms of its own."""

import os

import pytest

from tests.servers.once import start_once
from tools.servers.livekit import Address


@pytest.fixture(scope="session")
def livekit(request: pytest.FixtureRequest) -> Address:
    """The server that `LIVEKIT_URL` names with its key and secret, else one of our own."""
    if url := os.environ.get("LIVEKIT_URL"):
        key, secret = (os.environ.get(name, "") for name in ("LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"))
        if not (key and secret):
            pytest.fail("LIVEKIT_URL needs LIVEKIT_API_KEY and LIVEKIT_API_SECRET beside it", pytrace=False)
        return Address(url, key, secret)
    return Address.parse(start_once(request.config, "livekit"))
