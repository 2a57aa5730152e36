"""The check reports a broken store in any case, and never ends early."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Column, Double, Integer, LargeBinary, Text

from orchestrator.store.checks.invariants import check_all
from orchestrator.store.checks.violations import Violation
from orchestrator.store.engine.database import Store
from orchestrator.store.engine.types import Flag, JsonValue, Moment, Vector, Words
from orchestrator.store.rows import metadata
from tests.contract.store.breakable_store import BreakableStore, rules_ignored
from tests.contract.store.test_rules import WORLD
from tests.support.stored_turns import PERSON, take_turn

CANARY = "my chest hurts since Tuesday"


class Broken:
    """A store with rows in each table: a test breaks it, checks it and restores it."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = BreakableStore(store, url)
        self.is_sqlite = self._store.is_sqlite
        self.before = set(self.look())

    def look(self, *spoil: str) -> list[Violation]:
        """The findings of the check after these statements, which are then rolled back."""
        with self._store.rolled_back() as tx:
            with rules_ignored(tx):
                for statement in spoil:
                    tx.unit.connection.execute(statement)
            return check_all(tx.unit, quiesced=True, mirrored=True).violations

    def close(self) -> None:
        """Close the connection."""
        self._store.close()


@pytest.fixture
def broken(loose_store: Store, database_url: str) -> Iterator[Broken]:
    def fill(tx: Any) -> None:
        for row in WORLD:
            tx.unit.insert(row)
        here = tx.conversations.create(PERSON)
        take_turn(tx, here.id)

    loose_store.write_now(fill)
    with closing(Broken(loose_store, database_url)) as world:
        yield world


def is_reported(broken: Broken, *spoil: str) -> None:
    """The check reports something more than before, with ids, and without what a person said."""
    found = broken.look(*spoil)

    assert set(found) - broken.before
    assert all(violation.ids for violation in found)
    assert CANARY not in "".join(map(str, found))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_value_of_the_wrong_type_is_reported(broken: Broken, subtests: pytest.Subtests) -> None:
    for table in metadata.sorted_tables:
        for column in table.c:
            for value in wrong_values(column):
                with subtests.test(column=str(column), value=value):
                    last = f"rowid = (SELECT max(rowid) FROM {table.name})"  # noqa: S608
                    is_reported(broken, f"UPDATE {table.name} SET {column.name} = {value} WHERE {last}")  # noqa: S608


def wrong_values(column: Column[Any]) -> list[str]:
    """Wrong values that SQLite stores in a column, with its rules disabled or not."""
    if column.computed or column.name == "audio_data":  # any bytes are valid there
        return []
    match column.type:
        case Moment():
            return ["'2024-13-99T99:99:99.999Z'", f"'{CANARY}'"]
        case Flag():
            return ["2"]
        case Integer():
            return ["999999999999"]
        case JsonValue() if column.name != "tool_result":
            return [f"'{CANARY}'", "'[]'"]
        case Words():
            return [f"'{CANARY}'", f"'[1, null, \"{CANARY}\"]'"]
        case JsonValue() | Text():
            return [f"CAST(x'ff' || '{'an id' if column.primary_key else CANARY}' AS TEXT)"]
        case Double():
            return ["9e999"]
        case Vector() | LargeBinary():
            return ["x'ff'"]
    raise AssertionError(column)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_time_outside_of_pythons_range_is_reported(broken: Broken, subtests: pytest.Subtests) -> None:
    for table in metadata.sorted_tables:
        for column in table.c:
            if isinstance(column.type, Moment) and column.name != "deleted_at":
                with subtests.test(column=str(column)):
                    where = f"{column.name} IS NOT NULL"
                    is_reported(broken, f"UPDATE {table.name} SET {column.name} = 'infinity' WHERE {where}")  # noqa: S608


def test_a_missing_table_is_reported_by_name(broken: Broken, subtests: pytest.Subtests) -> None:
    for table in metadata.sorted_tables:
        with subtests.test(table=table.name):
            found = broken.look(f"DROP TABLE {table.name}" + ("" if broken.is_sqlite else " CASCADE"))

            missing = Violation("I21", "a table, a column or a rule is missing", (table.name,))
            assert missing in found


def test_an_emptied_table_is_reported_by_the_rows_that_refer_to_it(
    broken: Broken, subtests: pytest.Subtests
) -> None:
    for table in metadata.sorted_tables:
        with subtests.test(table=table.name):
            found = broken.look(f"DELETE FROM {table.name}")  # noqa: S608

            named_by = {
                (str(rule.name), 1 + len(other.primary_key))
                for other in metadata.sorted_tables
                for rule in other.foreign_key_constraints
                if rule.referred_table is table and other is not table
            }
            dangling = [each.ids for each in found if each.why == "a row refers to a missing row"]
            assert {(ids[0], len(ids)) for ids in dangling} == named_by
