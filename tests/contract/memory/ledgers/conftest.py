"""A store and the ledger of memories beside it, in files and in the tables of both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.remember.ledger.files import FileLedger
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.ledger.tables import TableLedger
from orchestrator.store.engine.database import Store
from tests.support.builders import CountedIds, HandClock
from tests.support.stores import empty_store


@pytest.fixture(params=["files", "sqlite", "postgres"])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock
) -> Iterator[tuple[Store, MemoryLedger]]:
    kind = "sqlite" if request.param == "files" else request.param
    with empty_store(kind, request, tmp_path) as url:
        store = Store.open(url, clock=clock, ids=CountedIds(), synchronous="OFF", connections=2)
        yield store, FileLedger(tmp_path / "memories") if request.param == "files" else TableLedger(store)
        store.close_now()


@pytest.fixture
def store(opened: tuple[Store, MemoryLedger]) -> Store:
    return opened[0]


@pytest.fixture
def ledger(opened: tuple[Store, MemoryLedger]) -> MemoryLedger:
    return opened[1]
