"""Answers to requests with an Idempotency-Key, kept for a day, for requests that are sent again."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from sqlalchemy import bindparam, delete

from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import HttpReply

KEPT: Final = timedelta(days=1)
"""How long an answer is kept."""
ABANDONED: Final = timedelta(minutes=2)
"""A request without an answer after this long was abandoned, and may be carried out again."""
ERASED: Final = 404
"""The status of an answer that was erased with the memory it named."""

_NO_FINGERPRINT: Final = "0" * 64
_table = HttpReply.table
_FORGET = Statement(
    delete(_table).where(_table.c.created_at < bindparam("until", type_=_table.c.created_at.type)),
    lambda: None,
)

_ABANDON = Statement(
    delete(_table).where(
        _table.c.user_id == bindparam("user_id"),
        _table.c.idempotency_key == bindparam("idempotency_key"),
        _table.c.status.is_(None),
    ),
    lambda: None,
)


class Replies:
    """The table `http_replies`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def begin(self, user_id: str, idempotency_key: str, fingerprint: str) -> HttpReply | None:
        """Reserve the key for a request; returns None, or the request that has used it before."""
        self._unit.run(_FORGET, until=self._unit.now - KEPT)
        known = self._unit.find_one(HttpReply, user_id=user_id, idempotency_key=idempotency_key)
        if known is not None and (known.status is not None or known.created_at > self._unit.now - ABANDONED):
            return known
        if known is not None:
            self.abandon(user_id, idempotency_key)
        self._unit.insert(HttpReply(user_id, idempotency_key, fingerprint, None, None, self._unit.now))
        return None

    def finish(self, user_id: str, idempotency_key: str, status: int, body: str) -> None:
        """Keep the answer."""
        which = {"user_id": user_id, "idempotency_key": idempotency_key}
        self._unit.change(HttpReply, which, status=status, body=body)

    def erase(self, user_id: str, memory_ids: Iterable[str]) -> None:
        """Remove the answers that name one of these memories, and what identifies their requests.

        The keys stay in use, so that none of the requests is carried out again.
        """
        wanted = set(memory_ids)
        for each in self._unit.find(HttpReply, "created_at", user_id=user_id):
            if each.body and any(f'"{id}"' in each.body for id in wanted):
                which = {"user_id": user_id, "idempotency_key": each.idempotency_key}
                self._unit.change(HttpReply, which, fingerprint=_NO_FINGERPRINT, status=ERASED, body="{}")

    def abandon(self, user_id: str, idempotency_key: str) -> None:
        """Release the key, unless its request has an answer: the request failed and may be sent again."""
        self._unit.run(_ABANDON, user_id=user_id, idempotency_key=idempotency_key)
