"""What the repositories of all tables with an `id` and a `deleted_at` have in common."""

from typing import Any, Generic, TypeVar

from orchestrator.store.engine.statements import IsRow
from orchestrator.store.engine.unit import Unit

R = TypeVar("R", bound=IsRow)


class ById(Generic[R]):
    """A table whose rows are found, changed and deleted by their id."""

    row_type: type[R]

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def get(self, id: str) -> R | None:
        """The row with that id, unless it is deleted."""
        return self._unit.find_one(self.row_type, id=id)

    def get_even_deleted(self, id: str) -> R | None:
        """The row with that id, deleted or not. An id is used only once."""
        return self._unit.find_one(self.row_type, even_deleted=True, id=id)

    def update(self, id: str, **columns: Any) -> bool:
        """Set some columns; false if there is no such row or it is deleted."""
        return self._unit.change(self.row_type, {"id": id}, **columns) == 1

    def delete(self, id: str) -> bool:
        """Mark the row as deleted. It stays in the table, but normal reads skip it."""
        return self.update(id, deleted_at=self._unit.now)
