"""Importing memories: idempotent by id, resumable, and tolerant of single bad lines."""

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.recall.service import SearchOptions
from orchestrator.remember.dates import read_date
from orchestrator.store.engine.database import Store
from tests.support.memory.memories import a_service, imported

ANN, BEN = "ann", "ben"
LINES: list[dict[str, Any]] = [
    {"id": "D1:1", "text": "How was the concert?", "speaker": "Ben", "date": "1:56 pm on 8 May, 2023"},
    {"id": "D1:2", "text": "Loud, but lovely.", "speaker": "Ann", "date": "2023-05-08T14:00:00Z"},
    {"id": "D2:1", "text": "I adopted a dog.", "speaker": "Ann", "tags": ["pets"]},
]
for line in LINES:
    line["episode"] = line["id"].partition(":")[0]


def rows(store: Store, person: str = ANN) -> list[Any]:
    return store.read_now(lambda tx: tx.memory_index.since(person, -1))


def test_a_second_import_changes_nothing(store: Store) -> None:
    first = imported(store, ANN, LINES)
    before = rows(store)
    entries = store.read_now(lambda tx: tx.memories.ledger.of_person(ANN))

    second = imported(store, ANN, LINES)

    assert (first.read, first.added, first.unchanged) == (3, 3, 0)
    assert (second.read, second.added, second.updated, second.unchanged) == (3, 0, 0, 3)
    assert rows(store) == before
    assert store.read_now(lambda tx: tx.memories.ledger.of_person(ANN)) == entries


def test_an_import_that_was_interrupted_goes_on(store: Store) -> None:
    imported(store, ANN, LINES[:1])

    rest = imported(store, ANN, LINES)

    assert (rest.added, rest.unchanged) == (2, 1)
    assert [row.external_id for row in rows(store)] == ["D1:1", "D1:2", "D2:1"]


def test_changed_lines_change_their_memories_in_place(store: Store) -> None:
    imported(store, ANN, LINES)

    changed = imported(store, ANN, [LINES[0], {**LINES[1], "text": "Quiet and dull."}, LINES[2]])

    assert (changed.updated, changed.unchanged) == (1, 2)
    assert [row.ordinal for row in rows(store)] == [1, 2, 3]
    (best, *_) = a_service(store).search(ANN, "quiet dull concert", SearchOptions(limit=1)).memories
    assert (best.external_id, best.content) == ("D1:2", "Quiet and dull.")


def test_the_last_of_two_lines_with_one_id_counts(store: Store) -> None:
    progress = imported(store, ANN, [LINES[0], {**LINES[0], "text": "Another text"}])

    assert (progress.read, progress.added) == (2, 1)
    (row,) = rows(store)
    assert row.words == "ben anoth text"


def test_a_deleted_memory_comes_back_only_if_its_line_changed(store: Store) -> None:
    imported(store, ANN, LINES)
    deleted = rows(store)[2].memory_id
    store.write_now(lambda tx: tx.memories.delete(deleted))

    imported(store, ANN, LINES)
    still = store.read_now(lambda tx: tx.memories.get(deleted))
    imported(store, ANN, [{**LINES[2], "text": "I adopted two dogs."}])

    assert still is None
    assert store.read_now(lambda tx: tx.memories.get(deleted)) is not None


def test_two_people_can_import_the_same_ids(store: Store) -> None:
    imported(store, ANN, LINES)
    imported(store, BEN, LINES[:1])

    assert {row.user_id for row in rows(store)} == {ANN}
    assert len(rows(store, BEN)) == 1


def test_a_line_that_cannot_be_read_is_reported_and_the_others_are_imported(store: Store) -> None:
    secret = "my secret"
    progress = imported(
        store,
        ANN,
        [
            LINES[0],
            "not json",
            {"text": secret},
            {"id": "x", "text": ""},
            {"id": 5, "text": secret},
            '["a list"]',
            {"id": "nul", "text": "a\0b"},
            "",
            LINES[1],
        ],
    )

    assert [number for number, _ in progress.unreadable] == [2, 3, 4, 5, 6, 7]
    assert secret not in repr(progress.unreadable)
    assert progress.added == 2


def test_a_date_that_cannot_be_read_is_counted_and_the_memory_kept(store: Store) -> None:
    progress = imported(store, ANN, [{"id": "a", "text": "tea", "date": "the day before"}])

    assert (progress.added, progress.undated) == (1, 1)
    assert rows(store)[0].said_at is None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2023-05-08", datetime(2023, 5, 8, tzinfo=UTC)),
        ("2023-05-08T14:00:00+02:00", datetime(2023, 5, 8, 12, tzinfo=UTC)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("8 May 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("May 8, 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        (1683554400, datetime(2023, 5, 8, 14, tzinfo=UTC)),
        (1683554400000, datetime(2023, 5, 8, 14, tzinfo=UTC)),
        ("soon", None),
        (1e300, None),
    ],
)
def test_dates_are_read_in_common_forms(given: Any, read: datetime | None) -> None:
    assert read_date(given) == read
