"""Transactions that are dropped at any statement: no turn is lost, stored twice or incomplete."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_blocks import agreement
from memory_blocks.edits import complete_turn
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Conversation, Label, from_texts
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store, Transaction
from tests.support.builders import START, HandClock, a_completed_turn
from tests.support.stored_turns import keep_receipts

_numbers = count(1)
texts = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["", "x" * 3_000, "🤢" * 9_000, '"\\' * 8_000, "\x01" * 9_000, "y" * 30_000]),
).map(lambda text: text.replace("\0", ""))
statements = st.integers(1, 45)
conversations = st.lists(st.tuples(texts, texts, st.lists(statements, max_size=2)), min_size=1, max_size=26)


class Dropped(Exception):
    """The transaction was dropped."""


class Dropping:
    """A connection that raises `Dropped` before its n-th statement; 0 means never."""

    def __init__(self, connection: Any, statement: int) -> None:
        self._connection, self._left = connection, statement

    def execute(self, sql: Any, parameters: Any = ()) -> Any:
        """Execute the statement, or raise."""
        self._count()
        return self._connection.execute(sql, parameters)

    def cursor(self) -> Any:
        """The cursor for a statement with many rows."""
        self._count()
        return self._connection.cursor()

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Dropped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Talk:
    """One conversation in a store."""

    def __init__(self, store: Store) -> None:
        self.store, self.clock = store, HandClock()
        self.ledger = Ledger(self.clock, DEFAULTS, {"GENERAL_HEALTH"})
        self.here = Conversation(f"conv_{next(_numbers)}", "user_456", START)
        store.write_now(lambda tx: tx.conversations.create("user_456", id=self.here.id))

    def take_turn(self, message: str, answer: str, drop: int = 0) -> bool:
        """Take a turn whose transaction is dropped at that statement. Returns whether it was written."""
        at = self.clock.tick()

        def work(tx: Transaction) -> None:
            tx = Transaction(replace(tx.unit, connection=Dropping(tx.unit.connection, drop)))
            blocks = SqlBlockStore(tx.blocks)
            reading = self.ledger.read(blocks, self.here, actor="context_extractor")
            turn = replace(a_completed_turn(reading.blocks.next_turn, message, answer), timestamp=at)
            after = complete_turn(reading.blocks, turn, at)
            written = self.ledger.write(
                blocks, self.here, reading, after, actor="context_extractor", turn=turn.turn_id
            )
            keep_receipts(tx, self.here.id, written.receipts)

        try:
            self.store.write_now(work)
        except Dropped:
            return False
        return True

    def kept(self) -> list[tuple[str, str]]:
        """All messages and answers in full, in order; checks that the blocks fit and agree."""

        def look(tx: Transaction) -> list[str]:
            blocks = SqlBlockStore(tx.blocks)
            stored = {label: block.text for label, block in blocks.load(self.here.id).items()}
            if not stored:
                return []
            read = from_texts(stored)
            assert list(agreement.departures(read, DEFAULTS, {"GENERAL_HEALTH"})) == []
            assert all(len(stored[label]) <= DEFAULTS.of(label) for label in Label)
            active = read.conversation_history.turns
            assert len(active) >= min(3, read.conversation_history.total_turns)
            held = blocks.shortened_turns(self.here.id)
            left = [turn.text for turn in blocks.archived_turns(self.here.id)]
            return [*left, *(held.get(turn.turn_id, turn.text) for turn in active)]

        turns = [json.loads(text) for text in self.store.read_now(look)]
        assert [turn["turn_id"] for turn in turns] == list(range(1, len(turns) + 1))
        return [(turn["user_message"]["content"], turn["agent_response"]["content"]) for turn in turns]


def converse(store: Store, said: list[tuple[str, str, list[int]]]) -> None:
    """Take all turns; a turn whose transaction is dropped is repeated."""
    talk = Talk(store)
    so_far: list[tuple[str, str]] = []
    for message, answer, drops in said:
        for drop in (*drops, 0):
            if talk.take_turn(message, answer, drop):
                break
            assert talk.kept() == so_far
        so_far.append((message, answer))
        assert talk.kept() == so_far


@pytest.fixture
def sound_store(shared_store: Store) -> Iterator[Store]:
    """A store for all conversations of a test. All its invariants are checked at the end."""
    yield shared_store
    assert check(shared_store) == []


MARKS = ("001-007", "001-033", "001-034", "001-118")
AT_LENGTH = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.requirement(*MARKS)
@settings(AT_LENGTH, max_examples=30)
@given(conversations)
def test_a_dropped_transaction_loses_nothing(
    sound_store: Store, said: list[tuple[str, str, list[int]]]
) -> None:
    converse(sound_store, said)


@pytest.mark.soak
@pytest.mark.timeout(3_000)
@pytest.mark.requirement(*MARKS)
@settings(AT_LENGTH, max_examples=1_500)
@given(conversations)
def test_dropped_transactions_lose_nothing_in_thousands_of_conversations(
    sound_store: Store, said: list[tuple[str, str, list[int]]]
) -> None:
    converse(sound_store, said)
