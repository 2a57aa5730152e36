"""A model endpoint of our own, in a thread of each test process: the local brain, with faults to script."""

import secrets
from collections.abc import Iterator

import pytest

from tools.model_endpoint import ModelEndpoint, running_model_endpoint


@pytest.fixture(scope="session")
def model_endpoint() -> Iterator[ModelEndpoint]:
    """The endpoint; a test scripts what happens to prompts that hold a word of its own."""
    with running_model_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def word() -> str:
    """A word that only this test says: by it an endpoint knows what is scripted for whom."""
    return f"zq{secrets.token_hex(6)}"
