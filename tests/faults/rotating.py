"""A process that forks one child for each statement of a rotation, and lets each die there by `kill -9`."""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from memory_blocks.edits import complete_turn
from memory_blocks.ledger import Ledger, Written
from memory_blocks.models import Conversation
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.builders import START, HandClock, a_completed_turn
from tests.world import keep_receipts

HERE = Conversation("conv_here", "user_456", START)
LONG = "y" * 40_000
"""So long that it stands shortened in the block, and is kept whole beside it."""


class Deadly:
    """A connection that ends the process before its n-th statement, or after it when n is negative."""

    def __init__(self, connection: Any, fatal: int) -> None:
        self._connection, self._left, self._after = connection, abs(fatal), fatal < 0

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        """Ask, or die."""
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = self._connection.execute(sql, parameters)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def opened(path: Path, fatal: int = 0) -> Store:
    """The store in that file; its writer dies at statement `fatal`, counted from its first transaction."""
    clock = HandClock()
    store = Store.open(f"sqlite:///{path}", clock=clock, ids=RandomIds(), create=True, connections=1)
    if fatal:
        connect = store.driver.connect

        def deadly(*, writing: bool) -> Any:
            return Deadly(connect(writing=writing), fatal)

        store.driver.connect = deadly  # type: ignore[method-assign]
    return store


def take_turn(store: Store, *, long: bool = False) -> Written:
    """One turn of the conversation, in one transaction."""

    def work(tx: Transaction) -> Written:
        ledger, blocks = Ledger(HandClock()), SqlBlockStore(tx.blocks)
        reading = ledger.read(blocks, HERE, actor="context_extractor")
        number = reading.blocks.next_turn
        turn = a_completed_turn(number, message=LONG if long else f"message {number}")
        after = complete_turn(reading.blocks, turn, turn.timestamp)
        written = ledger.write(blocks, HERE, reading, after, actor="context_extractor", turn=number)
        keep_receipts(tx, HERE.id, written.receipts)
        return written

    return store.write_now(work)


def main(folder: Path) -> None:
    """Die at every statement, before and after it, each time on a copy of the same database."""
    for sign in (1, -1):
        for statement in range(1, 1_000):
            path = folder / f"died-{statement * sign}.db"
            shutil.copyfile(folder / "before.db", path)
            child = os.fork()
            if child == 0:
                store = opened(path, statement * sign)
                take_turn(store, long=True)
                store.close_now()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                path.rename(folder / f"lived-{sign}.db")
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]))
