"""What every block store must do, whatever keeps the blocks. To try another one, add it to `WAYS`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.models import SCHEMA_VERSION, Label
from memory_blocks.ports import ArchivedTurn, BlockStore, BlockWrite
from memory_blocks.stores.in_memory import InMemoryBlockStore
from memory_blocks.trace import digest
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store
from tests.support.builders import CountedIds, HandClock
from tests.support.stores import DATABASES, empty_store

HERE, ELSEWHERE = "conv_here", "conv_elsewhere"
"""Two conversations that exist before a test begins."""

WAYS = ("in_memory", *DATABASES)


class TransactionPerCall:
    """The store over the tables, with a transaction around every call."""

    def __init__(self, tables: Store) -> None:
        self.tables = tables

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: self.tables.write_now(
            lambda tx: getattr(SqlBlockStore(tx.blocks), name)(*given, **named)
        )


@pytest.fixture(params=WAYS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockStore]:
    if request.param == "in_memory":
        yield InMemoryBlockStore(CountedIds(), HandClock())
        return
    with empty_store(request.param, request, tmp_path) as url:
        tables = Store.open(url, clock=HandClock(), ids=CountedIds(), synchronous="OFF", connections=1)
        tables.write_now(lambda tx: tx.conversations.create("user_456", id=HERE))
        tables.write_now(lambda tx: tx.conversations.create("user_456", id=ELSEWHERE))
        yield cast(BlockStore, TransactionPerCall(tables))
        tables.close_now()


def a_write(label: Label, text: str, replaces: int = 0, turn: int = 0) -> BlockWrite:
    return BlockWrite(
        label=label,
        text=text,
        digest=digest(text),
        previous_revision=replaces,
        revision=replaces + 1,
        actor="context_extractor",
        turn=turn or replaces + 1,
        schema_version=SCHEMA_VERSION,
    )


def archived(turn_id: int, text: str, *, has_left: bool = True) -> ArchivedTurn:
    return ArchivedTurn(turn_id, text, digest(text), has_left)


def test_before_the_first_write_nothing_is_stored(store: BlockStore) -> None:
    assert store.load(HERE) == {}
    assert store.shortened_turns(HERE) == {}


def test_a_block_comes_back_as_it_was_written(store: BlockStore) -> None:
    text = 'übel 🤢 "quoted"\n\\ line'

    memory_ids = store.commit(HERE, [a_write(Label.CONTEXT_SUMMARY, text)], [])

    stored = store.load(HERE)
    assert set(stored) == {Label.CONTEXT_SUMMARY}
    block = stored[Label.CONTEXT_SUMMARY]
    assert (block.text, block.revision, block.digest) == (text, 1, digest(text))
    assert block.memory_id == memory_ids[Label.CONTEXT_SUMMARY]


def test_a_later_revision_replaces_the_earlier_one(store: BlockStore) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one"), a_write(Label.MEMORY_METADATA, "one")], [])

    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "two", replaces=1)], [])

    stored = store.load(HERE)
    assert (stored[Label.ACTIVE_SESSION].text, stored[Label.ACTIVE_SESSION].revision) == ("two", 2)
    assert (stored[Label.MEMORY_METADATA].text, stored[Label.MEMORY_METADATA].revision) == ("one", 1)


def test_each_block_keeps_its_memory_id(store: BlockStore) -> None:
    before = dict(store.memory_ids(HERE))

    result = dict(store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one")], []))

    elsewhere = store.memory_ids(ELSEWHERE)
    assert set(before) == set(Label)
    assert before == result == dict(store.memory_ids(HERE))
    assert len({*before.values(), *elsewhere.values()}) == 8


def test_conversations_do_not_see_each_other(store: BlockStore) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "here")], [archived(1, "here", has_left=False)])

    assert store.load(ELSEWHERE) == {}
    assert store.shortened_turns(ELSEWHERE) == {}


@pytest.mark.parametrize("replaces", [0, 2])
def test_a_stale_revision_is_refused(store: BlockStore, replaces: int) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one")], [])

    with pytest.raises(StaleRevision) as refusal:
        store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "mine", replaces)], [])

    assert refusal.value.facts == {"label": "active_session", "stored": 1, "yours": replaces}


def test_if_one_write_is_stale_none_is_stored(store: BlockStore) -> None:
    store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "one")], [])
    writes = [a_write(Label.CONVERSATION_HISTORY, "mine"), a_write(Label.ACTIVE_SESSION, "mine")]

    with pytest.raises(StaleRevision):
        store.commit(HERE, writes, [archived(1, "mine", has_left=False)])

    assert {label: block.text for label, block in store.load(HERE).items()} == {Label.ACTIVE_SESSION: "one"}
    assert store.shortened_turns(HERE) == {}


def test_the_whole_text_of_a_shortened_turn_is_kept_and_replaced_by_a_later_one(store: BlockStore) -> None:
    store.commit(HERE, [], [archived(1, "whole", has_left=False)])

    store.commit(HERE, [], [archived(1, "another", has_left=False), archived(2, "second", has_left=False)])

    assert store.shortened_turns(HERE) == {1: "another", 2: "second"}


def test_a_turn_that_has_left_the_block_is_no_longer_among_the_shortened_ones(store: BlockStore) -> None:
    store.commit(HERE, [], [archived(1, "whole", has_left=False)])

    store.commit(HERE, [], [archived(1, "whole")])

    assert store.shortened_turns(HERE) == {}


@pytest.mark.parametrize("left", [True, False])
def test_a_turn_leaves_the_block_once(store: BlockStore, left: bool) -> None:
    store.commit(HERE, [], [archived(1, "whole")])

    with pytest.raises(BlockInvalid):
        store.commit(HERE, [a_write(Label.ACTIVE_SESSION, "mine")], [archived(1, "again", has_left=left)])

    assert store.load(HERE) == {}


# --- history ------------------------------------------------------------------------------------------------

MANY = 120
"""More revisions than the store keeps as differences before it keeps a whole one."""


def written(store: BlockStore, revisions: int = MANY) -> list[str]:
    """Successive texts of a block that grows, loses its beginning and gets a new end each time."""
    texts = []
    for replaces in range(revisions):
        turns = ",".join(
            f'{{"turn_id":{turn},"said":"😀 {turn * 7919}"}}' for turn in range(replaces // 2, replaces)
        )
        texts.append(f'{{"turns":[{turns}],"last_updated":{replaces}}}')
        store.commit(HERE, [a_write(Label.CONVERSATION_HISTORY, texts[-1], replaces)], [])
    return texts


@pytest.mark.requirement("001-005")
def test_every_revision_can_be_read_again_and_names_the_one_before(store: BlockStore) -> None:
    texts = written(store)

    kept = store.revisions(HERE, Label.CONVERSATION_HISTORY)

    assert [each.revision for each in kept] == list(range(1, MANY + 1))
    assert [each.digest for each in kept] == [digest(text) for text in texts]
    assert [each.previous_digest for each in kept] == [None, *(digest(text) for text in texts[:-1])]
    assert [(each.size, each.turn) for each in kept] == [(len(text), at) for at, text in enumerate(texts, 1)]
    assert {(each.actor, each.schema_version) for each in kept} == {("context_extractor", SCHEMA_VERSION)}
    read = [store.text_at(HERE, Label.CONVERSATION_HISTORY, at) for at in range(1, MANY + 1)]
    assert read == texts
    assert store.chain_departures(HERE, Label.CONVERSATION_HISTORY) == []


def test_a_revision_that_does_not_exist_has_no_text(store: BlockStore) -> None:
    written(store, 2)

    assert store.text_at(HERE, Label.CONVERSATION_HISTORY, 3) is None
    assert store.text_at(HERE, Label.ACTIVE_SESSION, 1) is None
    assert store.revisions(HERE, Label.ACTIVE_SESSION) == type(store.revisions(HERE, Label.ACTIVE_SESSION))()


def test_the_revision_of_a_turn_is_the_last_one_written_by_then(store: BlockStore) -> None:
    for replaces, turn in enumerate([1, 2, 2, 5]):
        store.commit(HERE, [a_write(Label.ACTIVE_SESSION, f"{replaces}", replaces, turn)], [])

    at = [store.revision_at_turn(HERE, Label.ACTIVE_SESSION, turn) for turn in (0, 1, 2, 3, 4, 5, 6)]

    assert at == [None, 1, 3, 3, 3, 4, 4]


def test_revisions_that_need_not_be_kept_are_deleted_and_the_others_can_still_be_read(
    store: BlockStore,
) -> None:
    texts = written(store)

    store.delete_revisions(HERE, Label.CONVERSATION_HISTORY, MANY - 4)

    kept = [each.revision for each in store.revisions(HERE, Label.CONVERSATION_HISTORY)]
    assert kept == list(range(kept[0], MANY + 1))
    assert 1 < kept[0] <= MANY - 4
    assert [store.text_at(HERE, Label.CONVERSATION_HISTORY, at) for at in kept] == texts[kept[0] - 1 :]
    assert store.chain_departures(HERE, Label.CONVERSATION_HISTORY) == []


def test_the_archived_turns_are_listed_in_order(store: BlockStore) -> None:
    store.commit(HERE, [], [archived(2, "b"), archived(1, "a"), archived(3, "c", has_left=False)])

    assert [(turn.turn_id, turn.text) for turn in store.archived_turns(HERE)] == [(1, "a"), (2, "b")]
    assert (store.last_archived_turn(HERE), store.last_archived_turn(ELSEWHERE)) == (2, 0)


def test_each_text_in_quarantine_has_an_id_of_its_own(store: BlockStore) -> None:
    ids = [
        store.quarantine(HERE, Label.ACTIVE_SESSION, "{", reason="$ is not JSON", actor="somebody")
        for _ in range(2)
    ]

    assert len(set(ids)) == 2
    assert store.load(HERE) == {}
