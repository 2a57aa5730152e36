"""What every test can ask for, and what is asked of every test."""

import logging
import os

import pytest
from hypothesis import settings

from orchestrator import logs

pytest_plugins = [
    "tools.ledger",
    "tests.servers.once",
    "tests.servers.letta",
    "tests.servers.livekit",
    "tests.servers.model",
    "tests.servers.postgres",
    "tests.models",
    "tests.commands",
    "tests.nursery",
    "tests.stores",
    "tests.houses",
    "tests.lettas",
    "tests.brains",
]

# There is a worker per processor at least, so none computes on more than one; numpy reads this once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `make check` looks at fewer examples of what `make test` looks at more.
settings.register_profile("quick", max_examples=15)

# A log call that is not ours to make fails the test, here and in the processes that tests start.
os.environ["ANAMNESIS_TEST_STRICT_LOGS"] = "1"


LONGEST_FIRST = ("letta", "tests/faults", "tests/integration", "tests/browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: at the end, nobody is waited for while the others have nothing left."""
    items.sort(key=lambda item: [part not in item.location[0] for part in LONGEST_FIRST])


@pytest.fixture(autouse=True)
def logs_as_they_begin() -> None:
    """What one test said of the log's level or place does not hold for the next, nor a server's levels."""
    logs.configure()
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(logging.NOTSET)
