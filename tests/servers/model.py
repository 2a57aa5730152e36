"""A model endpoint in a thread of each test process: the local brain, with scripted faults."""

import secrets
from collections.abc import Iterator

import pytest

from tools.servers.model_endpoint import ModelEndpoint, running_model_endpoint


@pytest.fixture(scope="session")
def model_endpoint() -> Iterator[ModelEndpoint]:
    """The endpoint. A test scripts its behaviour for prompts that contain the test's word."""
    with running_model_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def word() -> str:
    """A word that only this test uses, so that the endpoint recognises the prompts of this test."""
    return f"zq{secrets.token_hex(6)}"
