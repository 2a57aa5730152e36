"""Key-value pairs about any other row."""

from sqlalchemy import bindparam

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Meta

_table = Meta.table
_alive = _table.c.deleted_at.is_(None)
_in_order = (_table.c.created_at, _table.c.id)
_BY_ID = Statement(all_of(Meta).where(_table.c.id == bindparam("id"), _alive), Meta)
_OF = Statement(all_of(Meta).where(_table.c.ref == bindparam("ref"), _alive).order_by(*_in_order), Meta)
_FIND = Statement(
    all_of(Meta)
    .where(_table.c.key == bindparam("key"), _table.c.value == bindparam("value"), _alive)
    .order_by(*_in_order),
    Meta,
)


class Metadata:
    """The table `alicia_meta`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(self, ref: str, key: str, value: str, *, id: str | None = None) -> None:
        """Store a pair about the row with the id `ref`."""
        now = self._unit.now
        self._unit.insert(Meta(id or self._unit.ids.new("meta_"), ref, key, value, now, now, None))

    def get(self, id: str) -> Meta | None:
        """The pair with that id."""
        return self._unit.first(_BY_ID, id=id)

    def of(self, ref: str) -> list[Meta]:
        """All pairs about a row."""
        return self._unit.all(_OF, ref=ref)

    def find(self, key: str, value: str) -> list[Meta]:
        """All pairs with that key and value, such as those of one OpenTelemetry trace."""
        return self._unit.all(_FIND, key=key, value=value)

    def delete(self, id: str) -> bool:
        """Mark it as deleted."""
        return self._unit.delete(Meta, id)
