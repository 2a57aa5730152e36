"""The rule of every route: which roles and which scope it needs. A route without a rule is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from orchestrator.api.access.roles import Role, Scope


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may call a route: one of the roles, with the scope. Without roles, everybody may."""

    roles: frozenset[Role] = frozenset()
    scope: Scope | None = None
    from_this_machine: bool = False
    """Whether requests from this machine need no key."""

    @property
    def is_public(self) -> bool:
        """Whether nobody has to sign in."""
        return not self.roles


EVERYBODY: Final = frozenset(Role)
_PUBLIC: Final = Rule()
_OWN: Final = frozenset({Role.PERSON})
_FACTS: Final = frozenset({Role.PERSON, Role.OPERATOR, Role.PRIVACY, Role.ANALYST})
_START: Final = frozenset({Role.PERSON, Role.SERVICE})
_OPERATE: Final = frozenset({Role.OPERATOR})
_CONVERSATION: Final = "/v1/conversations/{conversation_id}"
_MEMORY: Final = "/v1/memories/{memory_id}"
_BLOCK: Final = f"{_CONVERSATION}/blocks/{{label}}"

RULES: Final[Mapping[tuple[str, str], Rule]] = MappingProxyType(
    {
        ("GET", "/"): _PUBLIC,
        ("GET", "/docs"): _PUBLIC,
        ("GET", "/openapi.json"): _PUBLIC,
        ("GET", "/health"): _PUBLIC,
        ("GET", "/metrics"): Rule(EVERYBODY, Scope.METRICS_READ, from_this_machine=True),
        ("GET", "/v1/session"): Rule(EVERYBODY),
        ("POST", "/v1/session"): _PUBLIC,
        ("DELETE", "/v1/session"): _PUBLIC,
        ("POST", "/v1/livekit/webhook"): _PUBLIC,  # LiveKit signs its body
        ("GET", "/v1/ws"): Rule(_OWN, Scope.CHAT),
        ("GET", "/v1/conversations"): Rule(_FACTS, Scope.CONVERSATIONS_READ),
        ("POST", "/v1/conversations"): Rule(_START, Scope.CONVERSATIONS_WRITE),
        ("GET", _CONVERSATION): Rule(_FACTS, Scope.CONVERSATIONS_READ),
        ("PATCH", _CONVERSATION): Rule(_OWN, Scope.CONVERSATIONS_WRITE),
        ("POST", f"{_CONVERSATION}/token"): Rule(_START, Scope.CHAT),
        ("GET", f"{_CONVERSATION}/messages"): Rule(_FACTS, Scope.CONVERSATIONS_READ),
        ("GET", f"{_CONVERSATION}/transcript"): Rule(_FACTS, Scope.CONVERSATIONS_READ),
        ("GET", f"{_CONVERSATION}/notes"): Rule(_FACTS, Scope.CONVERSATIONS_READ),
        ("GET", f"{_CONVERSATION}/export"): Rule(_OWN | {Role.PRIVACY}, Scope.CONVERSATIONS_READ),
        ("GET", "/v1/messages/{message_id}"): Rule(_FACTS, Scope.CONVERSATIONS_READ),
        ("GET", "/v1/messages/{message_id}/explanation"): Rule(_FACTS, Scope.EXPLANATIONS_READ),
        ("GET", f"{_CONVERSATION}/blocks"): Rule(_FACTS, Scope.BLOCKS_READ),
        ("POST", f"{_CONVERSATION}/blocks/validate"): Rule(_OWN | _OPERATE, Scope.BLOCKS_READ),
        ("POST", f"{_CONVERSATION}/blocks/rotate"): Rule(_OPERATE, Scope.BLOCKS_WRITE),
        ("GET", _BLOCK): Rule(_FACTS, Scope.BLOCKS_READ),
        ("GET", f"{_BLOCK}/revisions"): Rule(_FACTS, Scope.BLOCKS_READ),
        ("GET", f"{_BLOCK}/revisions/{{revision}}"): Rule(_FACTS, Scope.BLOCKS_READ),
        ("GET", f"{_BLOCK}/diff"): Rule(_FACTS, Scope.BLOCKS_READ),
        ("GET", f"{_CONVERSATION}/archived-turns"): Rule(_FACTS, Scope.BLOCKS_READ),
        ("GET", f"{_CONVERSATION}/archived-turns/{{turn}}"): Rule(_FACTS, Scope.BLOCKS_READ),
        ("POST", "/v1/memories/search"): Rule(_OWN, Scope.MEMORIES_READ),
        ("GET", "/v1/memories"): Rule(_OWN | {Role.OPERATOR, Role.PRIVACY}, Scope.MEMORIES_READ),
        ("GET", "/v1/memories/conflicts"): Rule(_OWN, Scope.MEMORIES_READ),
        ("POST", "/v1/memories/undo"): Rule(_OWN, Scope.MEMORIES_WRITE),
        ("GET", _MEMORY): Rule(_FACTS, Scope.MEMORIES_READ),
        ("PATCH", _MEMORY): Rule(_OWN, Scope.MEMORIES_WRITE),
        ("DELETE", _MEMORY): Rule(_OWN, Scope.MEMORIES_WRITE),
        ("GET", f"{_MEMORY}/deletion"): Rule(_OWN, Scope.MEMORIES_READ),
        ("POST", f"{_MEMORY}/undo"): Rule(_OWN, Scope.MEMORIES_WRITE),
        ("GET", f"{_MEMORY}/lineage"): Rule(_FACTS, Scope.MEMORIES_READ),
        ("GET", "/v1/retrievals"): Rule(_FACTS, Scope.MEMORIES_READ),
        ("GET", "/v1/retrievals/{retrieval_id}"): Rule(_FACTS, Scope.MEMORIES_READ),
        ("GET", "/v1/overview"): Rule(_FACTS, Scope.OVERVIEW_READ),
        ("GET", "/v1/rotations"): Rule(_FACTS, Scope.OVERVIEW_READ),
        ("GET", "/v1/turns"): Rule(_FACTS, Scope.OVERVIEW_READ),
        ("GET", "/v1/traces"): Rule(_FACTS | {Role.AUDITOR}, Scope.TRACES_READ),
        ("GET", "/v1/traces/export"): Rule(_FACTS | {Role.AUDITOR}, Scope.TRACES_READ),
        ("GET", "/v1/traces/stream"): Rule(_FACTS | {Role.AUDITOR}, Scope.TRACES_READ),
        ("GET", "/v1/traces/{trace_id}"): Rule(_FACTS, Scope.TRACES_READ),
        ("GET", f"{_CONVERSATION}/traces"): Rule(_FACTS, Scope.TRACES_READ),
        ("GET", f"{_CONVERSATION}/tool-uses"): Rule(_FACTS, Scope.TOOLS_READ),
        ("GET", "/v1/tool-uses/{tool_use_id}"): Rule(_FACTS, Scope.TOOLS_READ),
        ("GET", "/v1/safety-events"): Rule(_FACTS, Scope.SAFETY_READ),
        ("GET", f"{_CONVERSATION}/safety-events"): Rule(_FACTS, Scope.SAFETY_READ),
        ("GET", "/v1/safety-events/{event_id}"): Rule(_FACTS, Scope.SAFETY_READ),
    }
)
"""The rule of each method and path. HEAD has the rule of GET."""


def rule_of(method: str, path: str) -> Rule | None:
    """The rule of a route; None if there is none, which means that nobody may call it."""
    return RULES.get(("GET" if method == "HEAD" else method, path))
