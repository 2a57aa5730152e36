"""API keys: made once, shown once, and recognised by their SHA-256 in the database."""

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Final

from orchestrator.api.access.roles import ALL_SCOPES, Caller, Role, Scope
from orchestrator.errors import INVALID_FIELD, AnamnesisError
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import ApiKey
from orchestrator.wire.ids import PERSON_RULE, PersonId, is_person_id

PREFIX: Final = "key_"
LONGEST: Final = timedelta(days=366)
_NO_DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that is to be made: for whom, what for, and for how long."""

    name: str
    person: str
    roles: Collection[Role] = (Role.PERSON,)
    scopes: Collection[str] = (ALL_SCOPES,)
    reason: str | None = None
    lasts: timedelta


def is_api_key(token: str) -> bool:
    """Whether a bearer token has the form of an API key: its id, a point, and 256 random bits."""
    return token.startswith(PREFIX) and token.count(".") == 1


def make_key(tx: Transaction, new: NewKey, *, created_by: str) -> tuple[ApiKey, str]:
    """Store a new key; returns its row and the key itself, which is not stored and cannot be shown again."""
    _check(new)
    id = tx.ids.new(PREFIX)
    token = f"{id}.{secrets.token_urlsafe(32)}"
    stored = tx.api_keys.add(
        id,
        _digest(token),
        name=new.name,
        user_id=new.person,
        roles=tuple(sorted(new.roles)),
        scopes=tuple(sorted(new.scopes)),
        reason=new.reason,
        created_by=created_by,
        lasts=new.lasts,
    )
    return stored, token


async def caller_of(store: Store, token: str) -> Caller | None:
    """Who has this key; None if it is unknown, has expired or was revoked."""
    id = token.partition(".")[0]

    def find(tx: Transaction) -> Caller | None:
        known = tx.api_keys.get(id)
        digest = known.digest if known else _NO_DIGEST
        matches = hmac.compare_digest(digest, _digest(token))  # also for an unknown id, which takes as long
        if known is None or not matches or known.revoked_at is not None or known.expires_at <= tx.now:
            return None
        roles = frozenset(Role(role) for role in known.roles if role in set(Role))
        return Caller(
            PersonId(known.user_id), roles=roles, scopes=frozenset(known.scopes), reason=known.reason
        )

    return await store.read(find)


def _check(new: NewKey) -> None:
    """Refuse a key that says too little. Texts of others need a reason."""
    known = {ALL_SCOPES, *Scope}
    if not is_person_id(new.person):
        raise AnamnesisError(INVALID_FIELD, field="user", rule=PERSON_RULE)
    if not new.name.strip():
        raise AnamnesisError(INVALID_FIELD, field="name", rule="must not be empty")
    if not set(new.scopes) <= known or not new.scopes:
        raise AnamnesisError(INVALID_FIELD, field="scope", rule=f"must be one of {', '.join(sorted(known))}")
    if not timedelta() < new.lasts <= LONGEST:
        raise AnamnesisError(INVALID_FIELD, field="days", rule=f"must be 1 to {LONGEST.days}")
    if Scope.TEXTS_READ in new.scopes and not (new.reason or "").strip():
        rule = f"the scope {Scope.TEXTS_READ} is granted only with a reason"
        raise AnamnesisError(INVALID_FIELD, field="reason", rule=rule)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
