"""The ledger of memories: every change is an entry, the chain verifies, and content can leave it."""

import json
from typing import Any

import pytest

from orchestrator.store.checks.invariants import check
from orchestrator.store.checks.ledgers import WRONG_HEAD
from orchestrator.store.engine.database import Store
from orchestrator.store.repositories.memory.ledger import CHAIN_RULES, departures
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK, NewMemory
from orchestrator.store.rows import LedgerEntry
from tests.support.memory.memories import import_texts

ANN = "ann"
SECRET = "I am allergic to penicillin."


def add(store: Store, content: str = SECRET, **fields: Any) -> str:
    new = NewMemory(content=content, user_id=ANN, **fields)
    return store.write_now(lambda tx: tx.memories.add(new)).id


def entries(store: Store) -> list[LedgerEntry]:
    return store.read_now(lambda tx: tx.memories.ledger.of_person(ANN))


def test_every_change_of_a_memory_is_an_entry_with_its_actor(store: Store) -> None:
    memory = add(store)

    store.write_now(lambda tx: tx.memories.update(memory, by="operator:eve", pinned=True))
    store.write_now(lambda tx: tx.memories.delete(memory))
    store.write_now(lambda tx: tx.memories.restore(memory))

    found = entries(store)
    assert [(each.number, each.action, each.actor) for each in found] == [
        (1, "created", "person"),
        (2, "updated", "operator:eve"),
        (3, "deleted", "person"),
        (4, "restored", "person"),
    ]
    assert json.loads(found[0].body or "")["content"] == SECRET
    assert json.loads(found[1].body or "") == {"pinned": True}
    assert list(departures(found)) == []


def test_the_rows_of_blocks_and_memories_without_an_owner_have_no_entry(store: Store) -> None:
    add(store, source_type=MEMORY_BLOCK)
    store.write_now(lambda tx: tx.memories.add(NewMemory(content="common", user_id=None)))

    assert entries(store) == []


def test_an_erased_memory_leaves_no_content_and_the_chain_still_verifies(store: Store) -> None:
    import_texts(store, ANN, SECRET, "My knee hurts.")
    memory = store.read_now(lambda tx: tx.memory_index.since(ANN, -1))[0].memory_id

    store.write_now(lambda tx: tx.memories.delete(memory))
    store.write_now(lambda tx: tx.memories.erase(memory))

    everything = store.read_now(_all_texts)
    assert "penicillin" not in everything
    assert "knee" in everything
    assert list(departures(entries(store))) == []
    assert [each.action for each in entries(store) if each.memory_id == memory] == [
        "created",
        "deleted",
        "erased",
    ]
    assert check(store) == []


def _all_texts(tx: Any) -> str:
    tables = ("alicia_memory", "memory_ledger", "memory_index")
    return repr([tx.unit.connection.execute(f"SELECT * FROM {each}").fetchall() for each in tables])  # noqa: S608


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        ("UPDATE memory_ledger SET body = '{}' WHERE number = 2", CHAIN_RULES[1]),
        ("UPDATE memory_ledger SET actor = 'eve' WHERE number = 2", CHAIN_RULES[3]),
        ("DELETE FROM memory_ledger WHERE number = 2", CHAIN_RULES[0]),
        ("UPDATE memory_ledger SET previous_digest = digest WHERE number = 3", CHAIN_RULES[2]),
        ("DELETE FROM memory_ledger WHERE number = 3", WRONG_HEAD),
    ],
)
def test_a_changed_ledger_is_reported_without_what_it_says(loose_store: Store, spoil: str, rule: str) -> None:
    memory = add(loose_store)
    loose_store.write_now(lambda tx: tx.memories.update(memory, pinned=True))
    loose_store.write_now(lambda tx: tx.memories.update(memory, pinned=False))
    assert check(loose_store) == []

    loose_store.write_now(lambda tx: tx.unit.connection.execute(spoil))

    found = [each for each in check(loose_store) if each.invariant == "I23"]
    assert rule in {each.why for each in found}
    assert "penicillin" not in repr(found)


def test_a_memory_older_than_the_ledger_is_entered_with_its_first_change(loose_store: Store) -> None:
    memory = add(loose_store)
    loose_store.write_now(lambda tx: tx.unit.connection.execute("DELETE FROM memory_ledger"))
    loose_store.write_now(lambda tx: tx.unit.connection.execute("DELETE FROM memory_heads"))

    loose_store.write_now(lambda tx: tx.memories.update(memory, archived=True))

    assert [each.action for each in entries(loose_store)] == ["created", "updated"]
    assert check(loose_store) == []
