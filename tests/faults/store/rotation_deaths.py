"""A process that forks one child for each statement of a rotation, and lets each die there by `kill -9`."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from memory_blocks import agreement
from memory_blocks.edits import complete_turn
from memory_blocks.ledger.ledger import Ledger, WriteResult
from memory_blocks.models import Conversation, from_texts
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.support.builders import START, HandClock, a_completed_turn
from tests.support.stored_turns import keep_receipts

HERE = Conversation("conv_here", "user_456", START)
LONG = "y" * 40_000
"""So long that the block has a shortened form; the full text is stored beside it."""
BEFORE = 20
"""After this many turns, the next one rotates the oldest out."""
Found: TypeAlias = tuple[list[int], list[int], str]
"""The turns that rotated out, the turns in the block, and the full text of the latest message."""
BEGUN: Found = ([], list(range(1, BEFORE + 1)), f"message {BEFORE}")
ROTATED: Found = (list(range(1, 19)), [19, 20, 21], LONG)


class Deadly:
    """A connection that kills the process before its n-th statement, or after it if n is negative."""

    def __init__(self, connection: Any, fatal: int) -> None:
        self._connection, self._left, self._after = connection, abs(fatal), fatal < 0

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        """Execute the statement, or kill the process."""
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = self._connection.execute(sql, parameters)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def opened(url: str, fatal: int = 0, *, create: bool = False) -> Store:
    """Open the store; its writer dies at statement `fatal`, counted from its first transaction."""
    store = Store.open(url, clock=HandClock(), ids=RandomIds(), create=create, connections=1)
    if fatal:
        connect = store.driver.connect

        def deadly(*, writing: bool) -> Any:
            return Deadly(connect(writing=writing), fatal)

        store.driver.connect = deadly  # type: ignore[method-assign]
    return store


def take_turn(store: Store, *, long: bool = False) -> WriteResult:
    """Take one turn of the conversation in one transaction."""

    def work(tx: Transaction) -> WriteResult:
        ledger, blocks = Ledger(HandClock()), SqlBlockStore(tx.blocks)
        reading = ledger.read(blocks, HERE, actor="context_extractor")
        number = reading.blocks.next_turn
        turn = a_completed_turn(number, message=LONG if long else f"message {number}")
        after = complete_turn(reading.blocks, turn, turn.timestamp)
        written = ledger.write(blocks, HERE, reading, after, actor="context_extractor", turn=number)
        keep_receipts(tx, HERE.id, written.receipts)
        return written

    return store.write_now(work)


def begun(url: str) -> None:
    """Create the conversation; its next turn rotates the oldest out."""
    store = opened(url, create=True)
    store.write_now(lambda tx: tx.conversations.create(HERE.person_id, id=HERE.id))
    for _ in range(BEFORE):
        take_turn(store)
    store.close_now()


def found(url: str) -> Found:
    """Check the whole store. Returns what it contains."""
    store = opened(url)
    try:
        assert check(store) == []
        return store.read_now(_found)
    finally:
        store.close_now()


def _found(tx: Transaction) -> Found:
    blocks = SqlBlockStore(tx.blocks)
    stored = from_texts({label: block.text for label, block in blocks.load(HERE.id).items()})
    assert list(agreement.departures(stored)) == []
    history = stored.conversation_history
    latest = json.loads(blocks.shortened_turns(HERE.id).get(history.total_turns, history.turns[-1].text))
    left = [turn.turn_id for turn in blocks.archived_turns(HERE.id)]
    return left, [turn.turn_id for turn in history.turns], latest["user_message"]["content"]


def dies(url: str, fatal: int) -> bool:
    """Take the long turn in a child that dies at that statement. Returns whether it died."""
    child = os.fork()
    if child == 0:
        store = opened(url, fatal)
        take_turn(store, long=True)
        store.close_now()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def on_copies(folder: Path, sign: int) -> Iterator[Found]:
    """Die at every statement, each time on a copy of the same file."""
    for statement in range(1, 1_000):
        path = folder / f"died-{statement * sign}.db"
        shutil.copyfile(folder / "before.db", path)
        died = dies(f"sqlite:///{path}", statement * sign)
        yield found(f"sqlite:///{path}")
        if not died:
            return


def on_a_server(url: str, sign: int) -> Iterator[Found]:
    """Die at every statement, one after the other in one database, until something is found to be written."""
    for statement in range(1, 1_000):
        dies(url, statement * sign)
        state = found(url)
        yield state
        if state != BEGUN:
            return


if __name__ == "__main__":
    where, sign = sys.argv[1], int(sys.argv[2])
    each = on_a_server(where, sign) if "://" in where else on_copies(Path(where), sign)
    sys.stdout.write(json.dumps(list(each)))
