"""API keys of programs, of which only the digests are stored."""

from datetime import timedelta

from sqlalchemy import bindparam, update

from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import ApiKey

_table = ApiKey.table
_REVOKE = Statement(
    update(_table)
    .where(_table.c.id == bindparam("id"), _table.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("now")),
    lambda: None,
)


class ApiKeys:
    """The table `api_keys`. Keys are never deleted, so that a trace can always be attributed."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(
        self,
        id: str,
        digest: str,
        *,
        name: str,
        user_id: str,
        roles: tuple[str, ...],
        scopes: tuple[str, ...],
        reason: str | None,
        created_by: str,
        lasts: timedelta,
    ) -> ApiKey:
        """Store a new key by its digest."""
        now = self._unit.now
        key = ApiKey(
            id, name, user_id, roles, scopes, digest, reason, created_by, now, now + lasts, revoked_at=None
        )
        self._unit.insert(key)
        return key

    def get(self, id: str) -> ApiKey | None:
        """A key by its id, valid or not."""
        return self._unit.find_one(ApiKey, id=id)

    def all(self) -> list[ApiKey]:
        """All keys, valid or not, oldest first."""
        found = self._unit.every(ApiKey, "id")
        return sorted(found, key=lambda key: (key.created_at, key.id))

    def revoke(self, id: str) -> bool:
        """Make a key invalid from now on; False if there is none or it was revoked before."""
        return self._unit.run(_REVOKE, id=id) == 1
