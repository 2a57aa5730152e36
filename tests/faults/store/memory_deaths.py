"""A process that forks children which make memories, and lets each die at one step by `kill -9`."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.ops import faults
from orchestrator.remember.ledger.files import FileLedger
from orchestrator.remember.ledger.lines import Kind
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.ledger.tables import TableLedger
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import RandomIds
from tests.support.builders import HandClock
from tests.support.creators import HERE, a_creator, problems, talk

HISTORIES = (
    ("I take 20 mg of lisinopril.", "Good.", "I also like tea.", "Fine."),
    ("x" * 200, "", "", "yes", "yes"),
    ("One message only.",),
)
MOST_TIMES = 20
Found = tuple[str, int, bool, list[str]]
"""The step, how often it was reached, whether the process died there, and what is wrong afterwards."""


def opened(folder: Path, ledger: str, *, create: bool = False) -> tuple[Store, MemoryLedger]:
    """The store in a folder, and its ledger."""
    url = f"sqlite:///{folder / 'store.db'}"
    store = Store.open(
        url, clock=HandClock(), ids=RandomIds(), create=create, synchronous="OFF", connections=1
    )
    return store, FileLedger(folder / "memories") if ledger == "files" else TableLedger(store)


def make_memories(folder: Path, ledger: str, kind: Kind) -> None:
    """Run the creator once, over everything."""
    store, used = opened(folder, ledger)
    creator, _ = a_creator(
        store, used, chunkEstimatedTokenSize=12, useVectorForQualityMemory=kind == "vector"
    )
    asyncio.run(creator.handle_discussion_id_flow(HERE, whole=True))
    store.close_now()


def child_dies(folder: Path, ledger: str, kind: Kind, fault: str) -> bool:
    """Run the creator in a child process with that fault. Returns whether it died."""
    child = os.fork()
    if child == 0:
        faults.arm(fault)
        make_memories(folder, ledger, kind)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def deaths(folder: Path, ledger: str, kind: Kind) -> Iterator[Found]:
    """Die at every step of every history, complete the work in another process, and check the result."""
    for number, history in enumerate(HISTORIES):
        begun = folder / f"history{number}"
        begun.mkdir()
        store, _ = opened(begun, ledger, create=True)
        talk(store, *history)
        store.close_now()
        for point in faults.IN_MEMORIES:
            for times in range(1, MOST_TIMES):
                copy = folder / f"{number}-{point}-{times}"
                shutil.copytree(begun, copy)
                died = child_dies(copy, ledger, kind, f"{point}:{times}")
                child_dies(copy, ledger, kind, "")
                store, used = opened(copy, ledger)
                yield point, times, died, problems(store, used, kind=kind)
                store.close_now()
                shutil.rmtree(copy)
                if not died:
                    break


if __name__ == "__main__":
    where, of_ledger, of_kind = sys.argv[1:]
    found: list[Any] = list(deaths(Path(where), of_ledger, of_kind))  # type: ignore[arg-type]
    sys.stdout.write(json.dumps(found))
