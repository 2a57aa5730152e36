"""Roles and scopes: what a caller of the API may do, and whose data it sees."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from orchestrator.errors import MISSING_ROLE, NOT_FOUND, REASON_REQUIRED, TEXTS_NOT_GRANTED, AnamnesisError
from orchestrator.inspection.looks import Look
from orchestrator.store.repositories.turn.traces import PERSON
from orchestrator.wire.ids import PersonId


class Role(StrEnum):
    """What somebody may do with the data of others. Everybody else is only a person."""

    PERSON = "person"
    """Uses their own conversations."""
    SERVICE = "service"
    """Starts conversations and makes room tokens for people, and reads nothing."""
    ANALYST = "analyst"
    """Sees facts about all conversations under pseudonyms; texts only with the scope `texts:read`."""
    OPERATOR = "operator"
    """Reads the memory of others and rotates blocks, with a reason."""
    PRIVACY = "privacy"
    """Reads and exports the memory of others, with a reason."""
    AUDITOR = "auditor"
    """Sees which memory staff has read, and why; no texts."""


class Scope(StrEnum):
    """What a key may be used for. A key has these by name, or all but `texts:read` by `*`."""

    CONVERSATIONS_READ = "conversations:read"
    CONVERSATIONS_WRITE = "conversations:write"
    CHAT = "chat"
    BLOCKS_READ = "blocks:read"
    BLOCKS_WRITE = "blocks:write"
    TRACES_READ = "traces:read"
    TOOLS_READ = "tools:read"
    SAFETY_READ = "safety:read"
    EXPLANATIONS_READ = "explanations:read"
    MEMORIES_READ = "memories:read"
    MEMORIES_WRITE = "memories:write"
    OVERVIEW_READ = "overview:read"
    METRICS_READ = "metrics:read"
    TEXTS_READ = "texts:read"


ALL_SCOPES: Final = "*"
READS_FACTS: Final = (Role.OPERATOR, Role.PRIVACY, Role.ANALYST)
"""The roles that see facts about the data of others, in the order in which a trace names one of them."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: the person, their roles, what their key may do, and the session if there is one.

    `reason` is why the key was granted; a request may give its own.
    """

    person: PersonId
    session: str | None = None
    roles: frozenset[Role] = frozenset({Role.PERSON})
    scopes: frozenset[str] = frozenset({ALL_SCOPES})
    reason: str | None = None

    def may_use(self, scope: Scope) -> bool:
        """Whether the key has the scope. `texts:read` must be granted by name."""
        return scope in self.scopes or (ALL_SCOPES in self.scopes and scope is not Scope.TEXTS_READ)

    def has_any(self, roles: Iterable[Role]) -> bool:
        """Whether the caller has one of these roles."""
        return not self.roles.isdisjoint(roles)

    @property
    def sees_names(self) -> bool:
        """Whether the ids of people are shown to the caller; an analyst gets pseudonyms."""
        return self.has_any((Role.OPERATOR, Role.PRIVACY))


def person_of(caller: Caller, of: Literal["me", "all"]) -> str | None:
    """Whose entries a list shows: the caller's own, or (None) those of everybody, if a role allows it."""
    needed = (Role.PERSON,) if of == "me" else READS_FACTS
    if not caller.has_any(needed):
        raise AnamnesisError(MISSING_ROLE, roles=", ".join(sorted(needed)))
    return caller.person if of == "me" else None


def look_at_facts(caller: Caller, owner: str) -> Look:
    """How the caller sees facts about a person's data. Without the right, it seems not to exist."""
    if owner == caller.person and Role.PERSON in caller.roles:
        return Look(f"{PERSON}:{caller.person}", is_own=True)
    role = next((role for role in READS_FACTS if role in caller.roles), None)
    if role is None:
        raise AnamnesisError(NOT_FOUND)
    return Look(f"{role}:{caller.person}", is_own=False)


def look_at_texts(caller: Caller, owner: str, reason: str | None) -> Look:
    """How the caller sees what a person said. Staff needs a reason, and an analyst the scope by name."""
    look = look_at_facts(caller, owner)
    if look.is_own:
        return look
    if not caller.sees_names and not caller.may_use(Scope.TEXTS_READ):
        raise AnamnesisError(TEXTS_NOT_GRANTED, scope=Scope.TEXTS_READ.value)
    why = reason or caller.reason
    if not why:
        raise AnamnesisError(REASON_REQUIRED)
    return Look(look.actor, is_own=False, reason=why)
