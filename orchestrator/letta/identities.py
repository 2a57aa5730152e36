"""The identities of people in Letta: one per person who has a conversation."""

from collections import OrderedDict
from typing import Final

from orchestrator.letta.server import LettaServer
from orchestrator.letta.specs import AgentSpecs

MAX_CACHED: Final = 1_000
"""How many identity ids are cached."""


class Identities:
    """Creates and removes identities, and caches the ids of those used last."""

    def __init__(self, server: LettaServer, specs: AgentSpecs) -> None:
        self._server, self._specs = server, specs
        self._cached: OrderedDict[str, str] = OrderedDict()

    async def ensure(self, person_id: str) -> str:
        """The id of a person's identity, which is created if needed."""
        if person_id not in self._cached:
            key = self._specs.identity_key(person_id)
            self._cached[person_id] = await self._server.ensure_identity(key, person_id)
            if len(self._cached) > MAX_CACHED:
                self._cached.popitem(last=False)
        return self._cached[person_id]

    def uncache(self, person_id: str) -> None:
        """Drop a cached id, because somebody may have removed the identity."""
        self._cached.pop(person_id, None)

    async def remove(self, person_id: str) -> None:
        """Remove a person's identity."""
        await self.remove_key(self._specs.identity_key(person_id))
        self.uncache(person_id)

    async def remove_key(self, key: str) -> None:
        """Remove the identity with this key, which may belong to another tag."""
        for identity in await self._server.identities(key):
            await self._server.delete_identity(identity.id)
