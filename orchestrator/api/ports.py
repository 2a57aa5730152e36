"""What the HTTP API needs from the rest of the orchestrator."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from memory_blocks.ledger.ledger import Ledger
from orchestrator.ports import Transport
from orchestrator.store.engine.database import Store


class Health(Protocol):
    """The state of the server."""

    @property
    def status(self) -> Literal["ok", "degraded"]:
        """`ok` if every part works."""

    @property
    def parts(self) -> Mapping[str, str]:
        """For each part by name: `ok`, or `down: ` and the name of the reason."""


class ConversationServer(Protocol):
    """Serves conversations."""

    async def serve(self, transport: Transport, person_id: str) -> None:
        """Serve one connection until it ends."""

    async def health(self) -> Health:
        """Check every part now."""


class Memories(Protocol):
    """Searches long-term memory."""

    def search_for(
        self,
        person_id: str,
        query: str,
        *,
        limit: int | None,
        mode: Literal["flat", "packed", "tiered"],
        token_budget: int | None,
        recipe: str | None,
        skip_repair: bool,
    ) -> dict[str, Any]:
        """Search the memories of a person and record the search. Blocks: call it from a thread."""


class Admission(Protocol):
    """What a client needs to join a LiveKit room."""

    @property
    def url(self) -> str: ...
    @property
    def room(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def expires_at(self) -> datetime: ...


class Rooms(Protocol):
    """The LiveKit rooms of the conversations."""

    @property
    def url(self) -> str:
        """The address clients connect to."""

    async def create(self, person_id: str) -> str:
        """Start a conversation of that person and create its room; returns the id of both."""

    async def admit(self, person_id: str | None, conversation_id: str) -> Admission:
        """Make a token for a conversation of that person, or of anybody if no person is given."""

    def receive_webhook(self, body: bytes, authorization: str) -> None:
        """Take a webhook from LiveKit; a wrong signature is refused."""


async def _index_nothing(person_id: str) -> None:
    """Leave changed memories to the next turn of the person."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What the routes of conversations read and write.

    `on_created` is called with the id of each new conversation, `on_memories_changed` with the person whose
    memories were changed, to make them searchable again.
    """

    store: Store
    ledger: Ledger
    on_created: Callable[[str], None] = lambda _: None
    on_memories_changed: Callable[[str], Awaitable[None]] = _index_nothing
