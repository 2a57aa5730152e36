"""Memories are changed on request: each change is shown before, entered in the ledger, and can be undone."""

from typing import Any

import pytest

from orchestrator.errors import AnamnesisError
from orchestrator.remember.changing import Act, Deletion, MemoryChanges
from orchestrator.remember.facts import FACT
from orchestrator.remember.utterances import UTTERANCE
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store
from orchestrator.store.repositories.memory.ledger import departures
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK, NewMemory
from orchestrator.store.rows import Memory
from tests.support.memory.memories import a_service, import_texts

ANN, BEN = "ann", "ben"


def add(store: Store, id: str, content: str = "something", *, person: str = ANN, **fields: Any) -> None:
    new = NewMemory(content=content, user_id=person, id=id, **fields)
    store.write_now(lambda tx: tx.memories.add(new))


def add_fact(store: Store, id: str, *utterances: str) -> None:
    add(store, id, f"fact {id}", source_type=FACT, source_info={"utterances": list(utterances)})


def said(store: Store, *ids: str) -> None:
    for id in ids:
        add(store, id, f"I said {id}", source_type=UTTERANCE)


def change(store: Store, what: Any, person: str = ANN) -> Act:
    act = store.write_now(lambda tx: what(MemoryChanges(tx, person, "operator:eve")))
    assert isinstance(act, Act)
    return act


def memory(store: Store, id: str) -> Memory:
    found = store.read_now(lambda tx: tx.memories.get_even_deleted(id))
    assert found is not None
    return found


def alive(store: Store) -> set[str]:
    return {each.id for each in store.read_now(lambda tx: tx.memories.of_person(ANN))}


def preview(store: Store, *ids: str) -> Deletion:
    return store.read_now(lambda tx: MemoryChanges(tx, ANN, "").preview(*ids))


@pytest.mark.parametrize(
    ("what", "name", "before", "after"),
    [
        (lambda changes: changes.edit("m", content="Drinks tea"), "content", "something", "Drinks tea"),
        (lambda changes: changes.edit("m", tags=("drinks",)), "tags", (), ("drinks",)),
        (lambda changes: changes.rate("m", 4), "user_rating", None, 4),
        (lambda changes: changes.pin("m"), "pinned", False, True),
        (lambda changes: changes.archive("m"), "archived", False, True),
    ],
)
def test_a_change_is_made_entered_in_the_ledger_and_undone_once(
    store: Store, what: Any, name: str, before: object, after: object
) -> None:
    add(store, "m")

    act = change(store, what)
    assert getattr(memory(store, "m"), name) == after
    assert [each.memory.id for each in act.changed] == ["m"]
    change(store, lambda changes: changes.undo())

    assert getattr(memory(store, "m"), name) == before
    with pytest.raises(AnamnesisError, match="no change"):
        change(store, lambda changes: changes.undo())
    entries = store.read_now(lambda tx: tx.memories.ledger.of_person(ANN))
    assert [(each.action, each.actor) for each in entries[1:]] == [("updated", "operator:eve")] * 2
    assert list(departures(entries)) == []
    assert check(store) == []


def test_a_change_to_the_same_value_is_no_change(store: Store) -> None:
    add(store, "m")

    act = change(store, lambda changes: changes.pin("m", pinned=False))

    assert (act.changed, act.can_be_undone) == ((), False)
    assert len(store.read_now(lambda tx: tx.memories.ledger.of_person(ANN))) == 1


def test_deleting_a_fact_takes_along_what_was_derived_from_it_and_its_utterances(store: Store) -> None:
    said(store, "u1", "u2")
    add_fact(store, "f1", "u1")
    add_fact(store, "f2", "u1", "u2")
    add(store, "summary", source_type="summary", source_info={"members": ["f1", "x"]})
    add(store, "summary of summaries", source_type="summary", source_info={"members": ["summary"]})
    add(store, "other")

    shown = preview(store, "f1")
    change(store, lambda changes: changes.delete("f1"))

    assert [each.id for each in shown.memories] == ["f1"]
    assert [each.id for each in shown.derived] == ["summary", "summary of summaries"]
    assert [each.id for each in shown.utterances] == ["u1"]
    assert alive(store) == {"u2", "f2", "other"}
    change(store, lambda changes: changes.undo())
    assert alive(store) == {"u1", "u2", "f1", "f2", "summary", "summary of summaries", "other"}


def test_deleting_an_utterance_takes_along_only_facts_that_rest_on_nothing_else(store: Store) -> None:
    said(store, "u1", "u2")
    add_fact(store, "f1", "u1")
    add_fact(store, "f2", "u1", "u2")

    assert [each.id for each in preview(store, "u1").everything] == ["u1", "f1"]
    assert {each.id for each in preview(store, "u1", "u2").everything} == {"u1", "u2", "f1", "f2"}


def test_a_preview_changes_nothing(store: Store) -> None:
    said(store, "u1")
    add_fact(store, "f1", "u1")
    before = store.read_now(lambda tx: tx.memories.ledger.of_person(ANN))

    preview(store, "f1")

    assert store.read_now(lambda tx: tx.memories.ledger.of_person(ANN)) == before
    assert alive(store) == {"u1", "f1"}


def test_a_final_deletion_erases_the_content_and_cannot_be_undone(store: Store) -> None:
    said(store, "u1")
    add_fact(store, "f1", "u1")
    change(store, lambda changes: changes.delete("f1"))

    act = change(store, lambda changes: changes.delete("f1", final=True))

    assert not act.can_be_undone
    assert memory(store, "f1").content == ""
    with pytest.raises(AnamnesisError):
        change(store, lambda changes: changes.undo())
    assert list(departures(store.read_now(lambda tx: tx.memories.ledger.of_person(ANN)))) == []
    assert check(store) == []


def test_a_deleted_memory_is_not_found_until_the_deletion_is_undone(store: Store) -> None:
    import_texts(store, ANN, "I am allergic to penicillin.", "My knee hurts.")
    service = a_service(store)

    change(store, lambda changes: changes.delete("m1"))
    assert service.search(ANN, "penicillin allergy").memories == ()
    change(store, lambda changes: changes.undo(memory_id="m1"))

    assert service.search(ANN, "penicillin allergy").memories[0].external_id == "m1"


def test_the_last_act_of_one_memory_is_undone_although_others_changed_later(store: Store) -> None:
    add(store, "m")
    add(store, "n")
    change(store, lambda changes: changes.pin("m"))
    change(store, lambda changes: changes.pin("n"))

    change(store, lambda changes: changes.undo(memory_id="m"))

    assert (memory(store, "m").pinned, memory(store, "n").pinned) == (False, True)


def test_a_value_that_was_changed_again_is_not_undone(store: Store) -> None:
    add(store, "m")
    first = change(store, lambda changes: changes.edit("m", content="one"))
    change(store, lambda changes: changes.edit("m", content="two"))

    with pytest.raises(AnamnesisError, match="changed again"):
        change(store, lambda changes: changes.undo(first.id))

    assert memory(store, "m").content == "two"


def test_an_act_is_too_old_to_be_undone_after_some_time(store: Store) -> None:
    add(store, "m")
    change(store, lambda changes: changes.pin("m"))

    with pytest.raises(AnamnesisError, match="no change"):
        store.write_now(lambda tx: MemoryChanges(tx, ANN, "eve", undo_days=-1).undo())


@pytest.mark.parametrize("id", ["bens", "block", "none"])
def test_memories_of_others_and_blocks_cannot_be_changed(store: Store, id: str) -> None:
    add(store, "bens", person=BEN)
    add(store, "block", source_type=MEMORY_BLOCK)

    for what in (
        lambda changes: changes.edit(id, content="x"),
        lambda changes: changes.rate(id, 1),
        lambda changes: changes.pin(id),
        lambda changes: changes.archive(id),
        lambda changes: changes.delete(id),
        lambda changes: changes.delete(id, final=True),
        lambda changes: changes.undo(memory_id=id),
    ):
        with pytest.raises(AnamnesisError, match="no such memory"):
            change(store, what)


def test_a_rating_beyond_five_and_an_unknown_column_are_refused(store: Store) -> None:
    add(store, "m")

    for what in (
        lambda changes: changes.rate("m", 6),
        lambda changes: changes.edit("m", user_id="ben"),
        lambda changes: changes.edit("m"),
    ):
        with pytest.raises(AnamnesisError):
            change(store, what)
    assert memory(store, "m").user_id == ANN
