"""A person's memories are rebuilt from the ledgers, and nothing that was deleted comes back."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.remember.changing import MemoryChanges
from orchestrator.remember.creators.quality_memory import QualityMemory
from orchestrator.remember.ledger.files import FileLedger
from orchestrator.remember.reindexing import Rebuilt, rebuild
from orchestrator.remember.utterances import Remembering, utterance_id
from orchestrator.store.engine.database import Store, Transaction
from tests.support.builders import CountedIds, HandClock
from tests.support.memory.creators import HERE, a_creator, talk, texts_of
from tests.support.memory.memories import EMBEDDER, imported
from tests.support.stores import empty_store

SAID = ("My secret is a zebra.", "Ok.", "I like tea.", "Ok.", "I walk.", "Ok.")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Store]:
    with empty_store(request.param, request, tmp_path) as url:
        store = Store.open(url, clock=clock, ids=CountedIds(), synchronous="OFF", connections=2)
        yield store
        store.close_now()


@pytest.fixture
def ledger(tmp_path: Path) -> FileLedger:
    return FileLedger(tmp_path / "memories")


async def made(
    store: Store, ledger: FileLedger, **changes: Any
) -> tuple[QualityMemory, list[str], list[str]]:
    """A conversation with utterances and summaries; returns its messages and summaries."""
    creator, _ = a_creator(store, ledger, chunkEstimatedTokenSize=1, **changes)
    ids = talk(store, *SAID)
    await Remembering(store, EMBEDDER).after_turn("ann", HERE.id)
    run = await creator.handle_discussion_id_flow(HERE)
    return creator, ids, run.memories


def lose_rows(store: Store, *more: str) -> None:
    """Lose the tables that can be rebuilt, as damage does. The ledgers stay."""
    tables = ("memory_index", "alicia_memory_used", *more, "alicia_memory")
    if store.driver.one_writer:
        with closing(sqlite3.connect(store.driver.name)) as connection:  # does not check foreign keys
            for table in tables:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608
            connection.commit()
        return

    def lose(tx: Transaction) -> None:
        tx.unit.connection.execute("SET LOCAL session_replication_role = replica")
        for table in tables:
            tx.unit.connection.execute(f"DELETE FROM {table}")  # noqa: S608

    store.write_now(lose)


def rows(store: Store) -> dict[str, tuple[str, bool, tuple[str, ...], Any]]:
    """The memories of the person."""
    found = store.read_now(lambda tx: tx.memories.of_person_ever("ann"))
    return {each.id: (each.content, each.deleted_at is None, each.tags, each.source_info) for each in found}


def index(store: Store) -> list[tuple[str, str, str, str, str | None]]:
    """The index of the person."""
    found = store.read_now(lambda tx: tx.memory_index.since("ann", -1))
    return sorted(
        (each.memory_id, each.episode, each.words, each.context_words, each.external_id) for each in found
    )


def times_in_index(store: Store) -> dict[str, Any]:
    """When each memory in the index was said."""
    return {
        each.memory_id: each.said_at for each in store.read_now(lambda tx: tx.memory_index.since("ann", -1))
    }


async def rebuilt(store: Store, creator: QualityMemory) -> Rebuilt:
    return await rebuild(store, EMBEDDER, "ann", creator.settle, creator.findable)


async def test_lost_rows_are_rebuilt_as_they_were_and_deletions_stay(
    store: Store, ledger: FileLedger
) -> None:
    creator, ids, (first, second, _) = await made(store, ledger)
    imported(store, "ann", [{"id": "a", "text": "Hello", "episode": "e", "speaker": "Ann"}])
    imported(store, "ann", [{"id": "b", "text": "World", "episode": "e", "tags": ["t"]}])
    store.write_now(lambda tx: MemoryChanges(tx, "ann", "ann").delete(utterance_id(ids[0]), final=True))
    store.write_now(lambda tx: MemoryChanges(tx, "ann", "ann").delete(utterance_id(ids[2])))
    store.write_now(lambda tx: MemoryChanges(tx, "ann", "ann").edit(utterance_id(ids[4]), content="I run."))
    before = rows(store)
    lose_rows(store)

    done = await rebuilt(store, creator)
    again = await rebuilt(store, creator)

    assert rows(store) == before
    assert (before[first][:2], before[second][1]) == (("", False), False)
    assert (done.stored, again.stored) == (len(before), 0)
    living = {id for id, (_, alive, *_) in before.items() if alive}
    assert {id for id, *_ in index(store)} <= living
    assert ("world" in str(index(store)), "run" in str(index(store))) == (True, True)


async def test_the_index_is_rebuilt_with_episodes_and_contexts(store: Store, ledger: FileLedger) -> None:
    creator, _, _ = await made(store, ledger)
    lines = [{"id": f"i{number}", "text": f"Word{number}", "episode": "e"} for number in range(3)]
    imported(store, "ann", lines)
    before = index(store)
    lose_rows(store)

    await rebuilt(store, creator)

    assert index(store) == before


@pytest.mark.parametrize("found", [True, False])
async def test_summaries_are_indexed_again_as_they_were_only_if_searches_find_them(
    store: Store, ledger: FileLedger, found: bool
) -> None:
    creator, _, summaries = await made(store, ledger, findInSearches=found)
    store.write_now(lambda tx: MemoryChanges(tx, "ann", "ann").delete(summaries[0]))
    before = [row for row in index(store) if row[0] != summaries[0]]  # a deleted one does not come back
    times = {id: at for id, at in times_in_index(store).items() if id != summaries[0]}
    store.write_now(lambda tx: tx.unit.connection.execute("DELETE FROM memory_index"))

    done = await rebuilt(store, creator)

    indexed = {id for id, *_ in index(store)}
    assert (index(store), times_in_index(store)) == (before, times)
    assert indexed & set(summaries) == (set(summaries[1:]) if found else set())
    assert done.indexed == len(indexed)


async def test_a_row_that_was_changed_without_an_entry_is_repaired_and_reaches_no_ledger(
    store: Store, ledger: FileLedger
) -> None:
    creator, _, _ = await made(store, ledger)
    before, texts = rows(store), texts_of(ledger)
    store.write_now(
        lambda tx: tx.unit.connection.execute("UPDATE alicia_memory SET content = 'Person: I take 90 mg.'")
    )
    await creator.handle_discussion_id_flow(HERE)

    done = await rebuilt(store, creator)

    assert (rows(store), texts_of(ledger)) == (before, texts)
    assert done.stored == len(before)


async def test_all_messages_of_a_long_conversation_are_rebuilt(store: Store, ledger: FileLedger) -> None:
    creator, _ = a_creator(store, ledger)
    ids = talk(store, *(f"Message {number}." for number in range(600)))

    lose_rows(store, "memory_ledger", "memory_heads")

    await rebuilt(store, creator)

    assert rows(store).keys() == {utterance_id(id) for id in ids[::2]}


async def test_a_message_that_was_deleted_is_not_remembered_again_if_its_row_is_lost(
    store: Store, ledger: FileLedger
) -> None:
    _, ids, _ = await made(store, ledger)
    store.write_now(lambda tx: tx.memories.delete(utterance_id(ids[4])))
    lose_rows(store)

    await Remembering(store, EMBEDDER).after_turn("ann", HERE.id)

    assert store.read_now(lambda tx: tx.memories.get(utterance_id(ids[4]))) is None


async def test_a_rebuild_that_erases_a_memory_leaves_a_summary_of_the_others(
    store: Store, ledger: FileLedger
) -> None:
    creator, _, (first, *_) = await made(store, ledger)
    store.settle = None
    store.write_now(lambda tx: tx.memories.erase(first))

    await rebuilt(store, creator)

    assert ledger.summaries(HERE)[-1].text == "Person: I like tea.\nPerson: I walk."
