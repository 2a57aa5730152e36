"""A process that forks children which make memories, and lets each die at one step by `kill -9`."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from orchestrator.ops import faults
from orchestrator.remember.changing import MemoryChanges
from orchestrator.remember.ledger.files import FileLedger
from orchestrator.remember.ledger.lines import Kind
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.ledger.tables import TableLedger
from orchestrator.store import migrations
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import RandomIds
from tests.servers.postgres import fresh_database
from tests.support.builders import HandClock
from tests.support.memory.creators import HERE, a_creator, problems, talk

HISTORIES = (
    ("I take 20 mg of lisinopril.", "Good.", "I also like tea.", "Fine."),
    ("x" * 200, "", "", "yes", "yes"),
    ("One message only.",),
)
MOST_TIMES = 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store and its files are."""

    folder: Path
    url: str


Work = Callable[[Place, str, Kind], None]
Found = tuple[str, int, bool, list[str]]
"""The step, how often it was reached, whether the process died there, and what is wrong afterwards."""


@contextmanager
def place(folder: Path, server: str, template: Place | None = None) -> Iterator[Place]:
    """A place in a new folder, empty or a copy; with `server`, its store is a database of PostgreSQL."""
    if template is None:
        folder.mkdir()
    else:
        shutil.copytree(template.folder, folder)
    try:
        if not server:
            yield Place(folder, f"sqlite:///{folder / 'store.db'}")
        else:
            database = make_url(template.url).database if template else None
            with fresh_database(server, template=database) as url:
                yield Place(folder, url)
    finally:
        shutil.rmtree(folder)


def opened(where: Place, ledger: str) -> tuple[Store, MemoryLedger]:
    """The store at a place, and its ledger."""
    store = Store.open(where.url, clock=HandClock(), ids=RandomIds(), synchronous="OFF", connections=1)
    return store, FileLedger(where.folder / "memories") if ledger == "files" else TableLedger(store)


def make_memories(where: Place, ledger: str, kind: Kind) -> None:
    """Run the creator once, over everything."""
    store, used = opened(where, ledger)
    creator, _ = a_creator(
        store, used, chunkEstimatedTokenSize=12, useVectorForQualityMemory=kind == "vector"
    )
    asyncio.run(creator.handle_discussion_id_flow(HERE, whole=True))
    store.close_now()


def erase_a_memory(where: Place, ledger: str, kind: Kind) -> None:
    """Erase the first memory, as a command does it, and let the ledger follow whatever is left to follow."""
    store, used = opened(where, ledger)
    creator, _ = a_creator(store, used)
    first = next((line.memory_id for line in used.lines(HERE, kind) if line.body), None)
    if first is not None:
        store.write_now(lambda tx: MemoryChanges(tx, HERE.user_id, "ann").delete(first, final=True))
    creator.settling.settle_all()
    store.close_now()


def child_dies(work: Work, where: Place, ledger: str, kind: Kind, fault: str) -> bool:
    """Do the work in a child process with that fault. Returns whether it died."""
    child = os.fork()
    if child == 0:
        faults.arm(fault)
        work(where, ledger, kind)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def settle(where: Place, ledger: str, kind: Kind) -> None:
    """What the background of another process does."""
    store, used = opened(where, ledger)
    a_creator(store, used)[0].settling.settle_all()
    store.close_now()


def deaths(
    folder: Path, ledger: str, kind: Kind, server: str = "", histories: int = len(HISTORIES)
) -> Iterator[Found]:
    """Die at every step of the last histories, complete the work in another process, and check the result."""
    for number, history in enumerate(HISTORIES[-histories:]):
        with place(folder / f"history{number}", server) as begun:
            migrations.upgrade(begun.url)
            store, _ = opened(begun, ledger)
            talk(store, *history)
            store.close_now()
            yield from _deaths_in(make_memories, make_memories, begun, ledger, kind, server)
            child_dies(make_memories, begun, ledger, kind, "")
            yield from _deaths_in(erase_a_memory, settle, begun, ledger, kind, server)


def _deaths_in(
    work: Work, complete: Work, begun: Place, ledger: str, kind: Kind, server: str
) -> Iterator[Found]:
    for point in faults.IN_MEMORIES:
        for times in range(1, MOST_TIMES):
            folder = begun.folder.with_name(f"{begun.folder.name}-{point}-{times}")
            with place(folder, server, begun) as copy:
                store, used = opened(copy, ledger)
                first = next((line.body.text for line in used.lines(HERE, kind) if line.body), "")
                store.close_now()
                died = child_dies(work, copy, ledger, kind, f"{point}:{times}")
                child_dies(complete, copy, ledger, kind, "")
                store, used = opened(copy, ledger)
                wrong = problems(store, used, kind=kind)
                if work is erase_a_memory and first in words(used, folder / "memories"):
                    wrong.append("the words of an erased memory are still there")
                store.close_now()
            yield point, times, died, wrong
            if not died:
                break


def words(ledger: MemoryLedger, folder: Path) -> str:
    """All that a ledger of this conversation has, and all that is in its files."""
    kept = repr([ledger.lines(HERE, "file"), ledger.lines(HERE, "vector"), ledger.summaries(HERE)])
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return kept + b"".join(files).decode("utf-8", "replace")


if __name__ == "__main__":
    where, of_ledger, of_kind, of_server, count = sys.argv[1:]
    found: list[Any] = list(deaths(Path(where), of_ledger, of_kind, of_server, int(count)))  # type: ignore[arg-type]
    sys.stdout.write(json.dumps(found))
