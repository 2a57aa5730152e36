"""Plugins, fixtures and settings for all tests."""

import gc
import logging
import os
from itertools import islice

import pytest
from hypothesis import settings

from orchestrator.ops import logs

pytest_plugins = [
    "tools.requirements",
    "tests.servers.once",
    "tests.servers.letta",
    "tests.servers.livekit",
    "tests.servers.model",
    "tests.servers.postgres",
    "tests.support.brains.models",
    "tests.support.commands",
    "tests.support.servers.forked_servers",
    "tests.support.stores",
    "tests.support.orchestrators",
    "tests.support.servers.letta_helpers",
    "tests.support.brains.model_brains",
]

# There is at least one worker per processor, so each computes on one thread; numpy reads this when imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `make check` and `make test` try the same examples in every run; `make soak` searches for new ones.
settings.register_profile("quick", max_examples=15, derandomize=True, deadline=None)
settings.register_profile("whole", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1_000, deadline=None)
settings.load_profile("whole")

# A garbage collection visits every object of a large process, so it runs less often.
gc.set_threshold(50_000, 20, 50)

# A log call with a key outside the vocabulary fails the test, here and in the processes that tests start.
os.environ["ANAMNESIS_TEST_STRICT_LOGS"] = "1"


LONGEST_FIRST = ("tests/faults", "letta", "tests/integration", "tests/browser")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests so that every worker begins with a share of the long ones.

    Each worker gets an equal, consecutive part of the list. A worker that has finished takes tests from the
    end of another's part.
    """
    by_length: list[list[pytest.Item]] = [[] for _ in (*LONGEST_FIRST, "the rest")]
    for item in items:
        found = [rank for rank, part in enumerate(LONGEST_FIRST) if part in item.nodeid.partition("::")[0]]
        by_length[found[0] if found else -1].append(item)
    long, rest = [item for some in by_length[:-1] for item in some], iter(by_length[-1])
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    dealt: list[pytest.Item] = []
    for worker in range(workers):
        share = (len(items) - len(dealt)) // (workers - worker)
        of_long = long[worker::workers]
        dealt += [*of_long, *islice(rest, max(0, share - len(of_long)))]
    items[:] = [*dealt, *rest]


def pytest_collection_finish() -> None:
    """Exclude the objects that collection created from later garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def logs_as_they_begin() -> None:
    """Reset the level and the destination of the log, and the levels that a server has set."""
    logs.configure()
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(logging.NOTSET)
