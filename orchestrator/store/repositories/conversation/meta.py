"""Key-value pairs about any other row."""

from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import Meta


class Metadata(ById[Meta]):
    """The table `alicia_meta`."""

    row_type = Meta

    def add(self, ref: str, key: str, value: str, *, id: str | None = None) -> None:
        """Store a pair about the row with the id `ref`."""
        now = self._unit.now
        self._unit.insert(Meta(id or self._unit.ids.new("meta_"), ref, key, value, now, now, None))

    def replace(self, ref: str, key: str, value: str | None) -> None:
        """Store a pair in place of all others about `ref`; None only removes those."""
        self._unit.remove(Meta, ref=ref)
        if value is not None:
            self.add(ref, key, value)

    def remove(self, id: str) -> None:
        """Remove a pair for good."""
        self._unit.remove(Meta, id=id)

    def of(self, ref: str) -> list[Meta]:
        """All pairs about a row."""
        return self._unit.find(Meta, "created_at", "id", ref=ref)

    def find(self, key: str, value: str) -> list[Meta]:
        """All pairs with that key and value, such as those of one OpenTelemetry trace."""
        return self._unit.find(Meta, "created_at", "id", key=key, value=value)
