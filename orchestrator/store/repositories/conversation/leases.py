"""Leases: which worker may write a conversation's turns. An epoch excludes earlier workers."""

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import bindparam, text

from orchestrator.errors import FENCED, AnamnesisError
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Lease

_table = Lease.table
_mine = _table.c.conversation_id == bindparam("conversation_id")
_LOCK_FOR_UPDATE = Statement(all_of(Lease).where(_mine).with_for_update(), Lease)
_LOCK_FOR_SHARE = Statement(all_of(Lease).where(_mine).with_for_update(read=True), Lease)
_FIRST = Statement(
    text(
        "INSERT INTO leases (conversation_id, holder, epoch, expires_at)"
        " VALUES (:conversation_id, :holder, 1, :expires_at) ON CONFLICT DO NOTHING"
    ).bindparams(bindparam("expires_at", type_=_table.c.expires_at.type)),
    lambda: None,
)


class Leases:
    """The table `leases`.

    The time only decides when another worker may take over. The epoch ensures that the former one writes
    nothing afterwards, so the time of the transaction is precise enough, and tests can set it.
    """

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def acquire(
        self,
        conversation_id: str,
        holder: str,
        *,
        seconds: float,
        is_gone: Callable[[str], bool] = lambda holder: False,
    ) -> Lease | None:
        """Take the lease if it is free, expired, ours, or held by a process that `is_gone`; else None.

        A lease that ends much later than a new one would was made before a clock was set back, and counts as
        free. One that ends only a little later was renewed while this transaction waited for it.
        """
        now = self._unit.now
        until = now + timedelta(seconds=seconds)
        held = self._unit.first(_LOCK_FOR_UPDATE, conversation_id=conversation_id)
        if held is None:
            if self._unit.run(_FIRST, conversation_id=conversation_id, holder=holder, expires_at=until):
                return Lease(conversation_id, holder, 1, until)
            held = self._unit.first(_LOCK_FOR_UPDATE, conversation_id=conversation_id)
        if held is None:
            return None
        if held.holder == holder and held.expires_at > now:
            taken = Lease(conversation_id, holder, held.epoch, until)
        elif (
            held.expires_at <= now
            or held.expires_at > until + timedelta(seconds=seconds)
            or (held.holder != holder and is_gone(held.holder))
        ):
            taken = Lease(conversation_id, holder, held.epoch + 1, until)
        else:
            return None
        self._set(taken)
        return taken

    def renew(self, lease: Lease, *, seconds: float) -> Lease:
        """Extend the lease; raises if another worker has taken over."""
        self._check(lease.conversation_id, lease.epoch, _LOCK_FOR_UPDATE)
        renewed = Lease(
            lease.conversation_id, lease.holder, lease.epoch, self._unit.now + timedelta(seconds=seconds)
        )
        self._set(renewed)
        return renewed

    def release(self, lease: Lease) -> None:
        """End the lease now, so that the next worker need not wait. Does nothing if another one has it."""
        held = self._unit.first(_LOCK_FOR_UPDATE, conversation_id=lease.conversation_id)
        if held is not None and held.epoch == lease.epoch:
            self._set(Lease(lease.conversation_id, lease.holder, lease.epoch, self._unit.now))

    def check_epoch(self, conversation_id: str, epoch: int) -> None:
        """Raise unless this is the current epoch; it cannot change until the transaction has ended."""
        self._check(conversation_id, epoch, _LOCK_FOR_SHARE)

    def get(self, conversation_id: str) -> Lease | None:
        """The lease, current or expired."""
        return self._unit.find_one(Lease, conversation_id=conversation_id)

    def _check(self, conversation_id: str, epoch: int, lock: Statement[Lease]) -> None:
        held = self._unit.first(lock, conversation_id=conversation_id)
        if held is None or held.epoch != epoch:
            raise AnamnesisError(FENCED)

    def _set(self, lease: Lease) -> None:
        new = {"holder": lease.holder, "epoch": lease.epoch, "expires_at": lease.expires_at}
        self._unit.change(Lease, {"conversation_id": lease.conversation_id}, **new)
