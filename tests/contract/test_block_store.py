"""What every block store must do, whatever keeps the blocks. To try another one, add it to `WAYS`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.models import SCHEMA_VERSION, Label
from memory_blocks.ports import ArchivedTurn, BlockStore, BlockWrite, StoredBlock
from memory_blocks.stores.in_memory import InMemoryBlockStore
from memory_blocks.trace import digest
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store
from tests.builders import CountedIds, HandClock
from tests.stores import DATABASES, empty_store

HERE, ELSEWHERE = "conv_here", "conv_elsewhere"
"""Two conversations that exist before a test begins."""

WAYS = ("in_memory", *DATABASES)


class EachInItsOwnTransaction:
    """The store over the tables, with a transaction around every call."""

    def __init__(self, tables: Store) -> None:
        self._tables = tables

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        return self._tables.read_now(lambda tx: SqlBlockStore(tx.blocks).load(conversation_id))

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        return self._tables.write_now(lambda tx: SqlBlockStore(tx.blocks).memory_ids(conversation_id))

    def held(self, conversation_id: str) -> Mapping[int, str]:
        return self._tables.read_now(lambda tx: SqlBlockStore(tx.blocks).held(conversation_id))

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        return self._tables.write_now(
            lambda tx: SqlBlockStore(tx.blocks).commit(conversation_id, writes, archived)
        )


@pytest.fixture(params=WAYS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockStore]:
    if request.param == "in_memory":
        yield InMemoryBlockStore(CountedIds())
        return
    with empty_store(request.param, request, tmp_path) as url:
        tables = Store.open(url, clock=HandClock(), ids=CountedIds(), synchronous="OFF", connections=1)
        tables.write_now(lambda tx: tx.conversations.create("user_456", id=HERE))
        tables.write_now(lambda tx: tx.conversations.create("user_456", id=ELSEWHERE))
        yield EachInItsOwnTransaction(tables)
        tables.close_now()


def a_write(label: Label, text: str, replaces: int = 0) -> BlockWrite:
    return BlockWrite(
        label=label,
        text=text,
        digest=digest(text),
        previous_revision=replaces,
        revision=replaces + 1,
        actor="context_extractor",
        turn=replaces + 1,
        schema_version=SCHEMA_VERSION,
    )


def archived(turn_id: int, text: str, *, left: bool = True) -> ArchivedTurn:
    return ArchivedTurn(turn_id, text, digest(text), left)


def test_before_the_first_write_nothing_is_stored(store: BlockStore) -> None:
    assert store.load(HERE) == {}
    assert store.held(HERE) == {}


def test_a_block_comes_back_as_it_was_written(store: BlockStore) -> None:
    text = 'übel 🤢 "quoted"\n\\ line'

    memory_ids = store.commit(HERE, [a_write(Label.CONTEXT_SUMMARY, text)], [])

    stored = store.load(HERE)
    assert set(stored) == {Label.CONTEXT_SUMMARY}
    block = stored[Label.CONTEXT_SUMMARY]
    assert (block.text, block.revision, block.digest) == (text, 1, digest(text))
    assert block.memory_id == memory_ids[Label.CONTEXT_SUMMARY]


def test_a_later_revision_stands_in_place_of_the_earlier(store: BlockStore) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one"), a_write(Label.MEMORY_METADATA, "one")], [])

    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "two", replaces=1)], [])

    stored = store.load(HERE)
    assert (stored[Label.ACTIVE_SESSION].text, stored[Label.ACTIVE_SESSION].revision) == ("two", 2)
    assert (stored[Label.MEMORY_METADATA].text, stored[Label.MEMORY_METADATA].revision) == ("one", 1)


def test_each_block_is_known_as_one_memory_for_good(store: BlockStore) -> None:
    before = dict(store.memory_ids(HERE))

    told = dict(store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one")], []))

    elsewhere = store.memory_ids(ELSEWHERE)
    assert set(before) == set(Label)
    assert before == told == dict(store.memory_ids(HERE))
    assert len({*before.values(), *elsewhere.values()}) == 8


def test_conversations_do_not_see_each_other(store: BlockStore) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "here")], [archived(1, "here", left=False)])

    assert store.load(ELSEWHERE) == {}
    assert store.held(ELSEWHERE) == {}


@pytest.mark.parametrize("replaces", [0, 2])
def test_a_stale_revision_is_refused(store: BlockStore, replaces: int) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one")], [])

    with pytest.raises(StaleRevision) as refusal:
        store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "mine", replaces)], [])

    assert refusal.value.facts == {"label": "active_session", "stored": 1, "yours": replaces}


def test_when_one_write_is_stale_none_is_kept(store: BlockStore) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one")], [])
    writes = [a_write(Label.CONVERSATION_HISTORY, "mine"), a_write(Label.ACTIVE_SESSION, "mine")]

    with pytest.raises(StaleRevision):
        store.commit(HERE, writes, [archived(1, "mine", left=False)])

    assert {label: block.text for label, block in store.load(HERE).items()} == {Label.ACTIVE_SESSION: "one"}
    assert store.held(HERE) == {}


def test_the_whole_of_a_shortened_turn_is_held_and_replaced_by_a_later_one(store: BlockStore) -> None:
    store.commit(HERE, [], [archived(1, "whole", left=False)])

    store.commit(HERE, [], [archived(1, "another", left=False), archived(2, "second", left=False)])

    assert store.held(HERE) == {1: "another", 2: "second"}


def test_a_turn_that_has_left_is_held_no_more(store: BlockStore) -> None:
    store.commit(HERE, [], [archived(1, "whole", left=False)])

    store.commit(HERE, [], [archived(1, "whole")])

    assert store.held(HERE) == {}


@pytest.mark.parametrize("left", [True, False])
def test_a_turn_leaves_once(store: BlockStore, left: bool) -> None:
    store.commit(HERE, [], [archived(1, "whole")])

    with pytest.raises(BlockInvalid):
        store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "mine")], [archived(1, "again", left=left)])

    assert store.load(HERE) == {}
