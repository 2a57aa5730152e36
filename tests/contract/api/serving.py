"""The whole API over an orchestrator with a store, and callers of every kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from agents.models.scripted import ScriptedBrain
from orchestrator.api.access.api_keys import NewKey, make_key
from orchestrator.api.access.roles import ALL_SCOPES, Role
from orchestrator.api.app import create_app
from orchestrator.api.authentication import Authentication
from orchestrator.api.ports import Resources
from orchestrator.errors import NOT_FOUND, AnamnesisError
from orchestrator.orchestrator import Orchestrator
from orchestrator.wire.ids import PersonId
from tests.support.memory.memories import a_service
from tests.support.orchestrators import ANN, an_orchestrator
from tests.support.protocol_client import Peer, conversing

REASON = "Anamnesis-Reason"


@dataclass(frozen=True)
class Admission:
    """What a client would get to join a room."""

    url: str = "ws://127.0.0.1:1"
    room: str = "room"
    identity: str = "user:1"
    token: str = "token"
    topic: str = "anamnesis"
    expires_at: datetime = datetime(2030, 1, 1, tzinfo=UTC)


class RoomsDouble:
    """Rooms without a LiveKit server. Every conversation belongs to one person."""

    url = "ws://127.0.0.1:1"

    def __init__(self, owner: str) -> None:
        self._owner = owner

    async def create(self, person_id: str) -> str:
        return f"conv_of_{person_id}"

    async def admit(self, person_id: str | None, conversation_id: str) -> Admission:
        if person_id not in (None, self._owner):
            raise AnamnesisError(NOT_FOUND)
        return Admission()

    def receive_webhook(self, body: bytes, authorization: str) -> None:
        """Accept anything."""


@dataclass(frozen=True)
class Site:
    """A running application with a client for it."""

    orchestrator: Orchestrator
    authentication: Authentication
    app: FastAPI
    http: httpx.AsyncClient

    def person(self, name: str = ANN) -> dict[str, str]:
        """The header with a person's own key."""
        return {"Authorization": f"Bearer {self.authentication.keys.of(PersonId(name))}"}

    async def staff(self, *roles: Role, name: str = "eve", reason: str = "", **given: Any) -> dict[str, str]:
        """The headers of staff with an API key, and with a reason if one is given."""
        token = await self.key(name, *roles, **given)
        return {"Authorization": f"Bearer {token}", **({REASON: reason} if reason else {})}

    async def key(
        self,
        name: str,
        *roles: Role,
        scopes: tuple[str, ...] = (ALL_SCOPES,),
        granted_for: str | None = None,
        days: float = 1,
    ) -> str:
        """A new API key."""
        new = NewKey(
            name="test",
            person=name,
            roles=roles,
            scopes=scopes,
            reason=granted_for,
            lasts=timedelta(days=days),
        )
        _, token = await self.orchestrator.store.write(lambda tx: make_key(tx, new, created_by="test"))
        return token

    async def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Any:
        """The JSON of a resource that must be there."""
        answer = await self.http.get(path, headers=headers or self.person(), params=query or None)
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def a_site(
    address: str,
    folder: Path,
    brain: ScriptedBrain | None = None,
    *,
    remembers: bool = False,
    **app: Any,
) -> AsyncIterator[Site]:
    """The application over an orchestrator that runs; with `remembers`, it has a long-term memory."""
    authentication = Authentication(folder, session_seconds=3600)
    async with an_orchestrator(address, brain, remembers=remembers).open() as orchestrator:
        resources = Resources(
            orchestrator.store, orchestrator.ledger, orchestrator.created, orchestrator.memories_changed
        )
        memory = a_service(orchestrator.store)
        made = create_app(orchestrator, authentication, resources=resources, memory=memory, **app)
        transport = httpx.ASGITransport(made, client=("127.0.0.1", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as http:
            yield Site(orchestrator, authentication, made, http)


@asynccontextmanager
async def a_talk(site: Site, *said: str, person: str = ANN) -> AsyncIterator[Peer]:
    """A conversation with these messages, all answered."""
    async with conversing(site.orchestrator, person) as peer:
        for each in said:
            await peer.ask(each)
        yield peer
