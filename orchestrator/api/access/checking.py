"""Checks every request against the rule of its route, before the route sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from typing import Final

from starlette.requests import HTTPConnection, Request

from orchestrator.api.access import api_keys
from orchestrator.api.access.oidc import OidcTokens
from orchestrator.api.access.rate_limits import RateLimits
from orchestrator.api.access.roles import Caller, Role, look_at_facts, look_at_texts
from orchestrator.api.access.rules import rule_of
from orchestrator.api.authentication import Authentication, bearer_token
from orchestrator.errors import (
    INVALID_FIELD,
    ITEM_NOT_FOUND,
    MISSING_ROLE,
    MISSING_SCOPE,
    NOT_ALLOWED,
    NOT_FOUND,
    AnamnesisError,
)
from orchestrator.inspection.looks import Look
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Conversation

LOCAL: Final = "local"
"""The person who runs the installation. On the loopback, their key has all roles."""
REASON: Final = "Anamnesis-Reason"
LONGEST_REASON: Final = 200


class AccessCheck:
    """A dependency of every route: finds out who calls, and refuses what their role or scope forbids."""

    def __init__(
        self,
        authentication: Authentication,
        store: Store | None = None,
        oidc: OidcTokens | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        self._authentication, self._store, self._oidc, self._limits = authentication, store, oidc, limits

    async def __call__(self, connection: HTTPConnection) -> None:
        """Let the request through and note its caller, or raise."""
        scope = connection.scope
        rule = rule_of(scope.get("method", "GET"), getattr(scope.get("route"), "path", ""))
        if rule is None:
            raise AnamnesisError(NOT_ALLOWED, what="A route without a rule")
        if rule.is_public or (rule.from_this_machine and is_from_this_machine(connection)):
            self._count(f"at {connection.client.host if connection.client else ''}")
            return
        caller = await self.identify(connection)
        self._count(caller.person)
        if not caller.has_any(rule.roles):
            raise AnamnesisError(MISSING_ROLE, roles=", ".join(sorted(rule.roles)))
        if rule.scope is not None and not caller.may_use(rule.scope):
            raise AnamnesisError(MISSING_SCOPE, scope=rule.scope.value)
        connection.state.caller = caller

    async def identify(self, connection: HTTPConnection) -> Caller:
        """Who sends the request: by an API key, an OIDC token, a person's own key or a session."""
        token = bearer_token(connection)
        if token is not None and self._store is not None and api_keys.is_api_key(token):
            return self._authentication.known(await api_keys.caller_of(self._store, token))
        if token is not None and self._oidc is not None and token.count(".") == 2:
            return self._authentication.known(await self._oidc.caller_of(token))
        caller = self._authentication.caller(connection)
        if caller.person == LOCAL and is_from_this_machine(connection):
            return replace(caller, roles=frozenset(Role))
        return caller

    async def is_still_valid(self, connection: HTTPConnection) -> bool:
        """Whether the caller of an open connection would be let in again: the key or session still holds."""
        try:
            await self.identify(connection)
        except AnamnesisError as error:
            return error.problem.http not in (401, 429)  # 429: too many wrong keys, this one included
        return True

    def _count(self, caller: str) -> None:
        if self._limits is not None:
            self._limits.count(caller)


def is_from_this_machine(connection: HTTPConnection) -> bool:
    """Whether the request comes from the loopback."""
    try:
        return connection.client is not None and ip_address(connection.client.host).is_loopback
    except ValueError:  # a proxy in front of the server did not pass on an address
        return False


def caller_of(connection: HTTPConnection) -> Caller:
    """The caller that the check has found."""
    caller: Caller = connection.state.caller
    return caller


def reason_of(request: Request) -> str | None:
    """Why staff looks at somebody's memory, as the request says it."""
    reason = request.headers.get(REASON, "").strip()
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        rule = f"must be at most {LONGEST_REASON} printable characters"
        raise AnamnesisError(INVALID_FIELD, field=REASON, rule=rule)
    return reason or None


def facts_of(tx: Transaction, caller: Caller, conversation_id: str) -> tuple[Conversation, Look]:
    """A conversation that the caller may see facts about. Others seem not to exist."""
    found = tx.conversations.get(conversation_id)
    if found is None:
        raise AnamnesisError(NOT_FOUND)
    return found, look_at_facts(caller, found.user_id)


def texts_of(
    tx: Transaction, caller: Caller, conversation_id: str, reason: str | None
) -> tuple[Conversation, Look]:
    """A conversation whose texts the caller may see."""
    found = tx.conversations.get(conversation_id)
    if found is None:
        raise AnamnesisError(NOT_FOUND)
    return found, look_at_texts(caller, found.user_id, reason)


def item_texts(
    tx: Transaction, caller: Caller, conversation_id: str, reason: str | None, what: str
) -> tuple[Conversation, Look]:
    """`texts_of` for an item with its own id. That of another person gives the error of an unknown id."""
    with _unknown(what):
        return texts_of(tx, caller, conversation_id, reason)


def item_of(caller: Caller, owner: str, reason: str | None, what: str) -> Look:
    """`look_at_texts` for an item of a person. That of another person gives the error of an unknown id."""
    with _unknown(what):
        return look_at_texts(caller, owner, reason)


@contextmanager
def _unknown(what: str) -> Iterator[None]:
    """Say that there is no such item instead of no such conversation or person."""
    try:
        yield
    except AnamnesisError as error:
        if error.problem is not NOT_FOUND:
            raise
    else:
        return
    raise AnamnesisError(ITEM_NOT_FOUND, what=what)
