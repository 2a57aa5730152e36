"""A real LiveKit server, shared by all tests of a run; each has its own rooms."""

import os

import pytest

from tests.servers.once import start_once
from tools.servers.livekit import Address


@pytest.fixture(scope="session")
def livekit(request: pytest.FixtureRequest) -> Address:
    """The LiveKit server at `LIVEKIT_URL` with its key and secret; otherwise one that the run starts."""
    if url := os.environ.get("LIVEKIT_URL"):
        key, secret = (os.environ.get(name, "") for name in ("LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"))
        if not (key and secret):
            pytest.fail("LIVEKIT_URL needs LIVEKIT_API_KEY and LIVEKIT_API_SECRET beside it", pytrace=False)
        return Address(url, key, secret)
    return Address.parse(start_once(request.config, "livekit"))
