"""A model endpoint of our own, in a thread of each test process: the local brain, with faults to script."""

from collections.abc import Iterator

import pytest

from tools.model_endpoint import ModelEndpoint, running_model_endpoint


@pytest.fixture(scope="session")
def model_endpoint() -> Iterator[ModelEndpoint]:
    """The endpoint; a test scripts what happens to prompts that hold a word of its own."""
    with running_model_endpoint() as endpoint:
        yield endpoint
