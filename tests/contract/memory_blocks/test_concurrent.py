"""Several writers of the same blocks at once, each with its own connection: one wins, nothing is lost."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from memory_blocks.edits import complete_turn
from memory_blocks.errors import StaleRevision
from memory_blocks.ledger.ledger import Ledger, ReadResult
from memory_blocks.models import Conversation, Label
from orchestrator.ops.clock import SystemClock
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.checks.evidence import departures
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.support.builders import a_completed_turn
from tests.support.stored_turns import keep_receipts

WRITERS = 3
TURNS = 9


class Writer:
    """A writer with its own store and ledger."""

    def __init__(self, name: str, url: str, here: Conversation) -> None:
        self.name, self.here, self.clock = name, here, SystemClock()
        self.store = Store.open(url, clock=self.clock, ids=RandomIds(), connections=1)
        self.ledger = Ledger(self.clock)

    def read(self) -> ReadResult:
        return self.store.write_now(
            lambda tx: self.ledger.read(SqlBlockStore(tx.blocks), self.here, actor=self.name)
        )

    def write(self, reading: ReadResult, message: str) -> None:
        def work(tx: Transaction) -> None:
            number = reading.blocks.next_turn
            turn = replace(a_completed_turn(number, message=message), timestamp=self.clock.now())
            blocks = complete_turn(reading.blocks, turn, self.clock.now())
            written = self.ledger.write(
                SqlBlockStore(tx.blocks), self.here, reading, blocks, actor=self.name, turn=number
            )
            keep_receipts(tx, self.here.id, written.receipts)

        self.store.write_now(work)

    def insist(self, message: str) -> int:
        """Write, and repeat as often as another writer was first. Returns the number of repetitions."""
        outrun = 0
        while True:
            try:
                self.write(self.read(), message)
            except StaleRevision:
                outrun += 1
            else:
                return outrun


@pytest.fixture
def writers(loose_store: Store, database_url: str) -> list[Writer]:
    """Several writers of one conversation."""
    row = loose_store.write_now(lambda tx: tx.conversations.create("user_456"))
    here = Conversation(row.id, row.user_id, row.created_at)
    return [Writer(f"writer_{number}", database_url, here) for number in range(WRITERS)]


@pytest.mark.requirement("001-118")
def test_of_many_writers_of_one_revision_one_wins_and_the_others_get_an_error(
    writers: list[Writer],
) -> None:
    readings = [writer.read() for writer in writers]
    together = Barrier(WRITERS)

    def write(number: int) -> bool:
        together.wait()
        try:
            writers[number].write(readings[number], f"from {number}")
        except StaleRevision:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(write, range(WRITERS)))

    history = writers[0].read().blocks.conversation_history
    assert sorted(won) == [False] * (WRITERS - 1) + [True]
    assert [turn.user_message.content for turn in history.turns] == [f"from {won.index(True)}"]
    close(writers)


def test_writers_that_read_again_lose_nothing(writers: list[Writer], loose_store: Store) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        said = [f"{turn} from {number}" for turn in range(TURNS) for number in range(WRITERS)]
        list(pool.map(lambda at: writers[at % WRITERS].insist(said[at]), range(len(said))))

    here = writers[0].here.id

    def everything(tx: Transaction) -> list[str]:
        archived = [json.loads(turn.value) for turn in tx.blocks.archived(here)]
        history = json.loads(tx.blocks.load(here)[Label.CONVERSATION_HISTORY].value or "")
        turns = [*archived, *history["turns"]]
        assert [turn["turn_id"] for turn in turns] == list(range(1, len(turns) + 1))
        return [turn["user_message"]["content"] for turn in turns]

    assert sorted(loose_store.read_now(everything)) == sorted(said)
    assert check(loose_store) == []
    assert loose_store.read_now(lambda tx: list(departures(tx, here))) == []
    close(writers)


def close(writers: list[Writer]) -> None:
    for writer in writers:
        writer.store.close_now()
