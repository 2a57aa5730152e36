"""A violation of an invariant, and how checks survive rows that cannot be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.store.engine.refusals import is_busy
from orchestrator.store.engine.unit import Unit


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant: its name, the reason, and the ids of the rows; never what a person wrote."""

    invariant: str
    why: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.invariant}: {self.why} ({', '.join(self.ids)})"


Found: TypeAlias = Iterator[Violation]


def tolerating_broken_rows(unit: Unit, found: Found, *where: str) -> Found:
    """The violations in `found`. If a row cannot be read, that is one more violation, and `found` ends.

    A broken row may raise any exception, so all are caught, and only their type is reported. An exception is
    raised if the database is busy, or if it cannot roll back.
    """
    unit.connection.execute("SAVEPOINT looking")
    try:
        yield from found
    except Exception as error:
        if is_busy(error):
            raise
        unit.connection.execute("ROLLBACK TO looking")
        yield Violation("I21", "a row cannot be read", (*where, type(error).__name__))
    unit.connection.execute("RELEASE looking")
