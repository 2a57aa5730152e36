"""A brain that plays a script, for tests: values, waits, failures and endless answers."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, Final, TypeAlias, TypeVar

from agents.ports import Brief, Embedded, MemoryHit, Recalled, Situation
from agents.values import Act, Enrichment, FactReading, Intent, Understanding

Value = TypeVar("Value")
Step: TypeAlias = Value | Exception | asyncio.Event
Answer: TypeAlias = Iterable[str | Exception | asyncio.Event]

GENERAL: Final = Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning="As scripted")
REPLY: Final = ("I understand. ", "How severe is it on a scale of 1 to 10?")


class ScriptedBrain:
    """Follows one script for each part of a reading, and one for answers. A call takes steps until a value.

    `requests` sets the fields of a reading that are about changes of memories, such as `proposed`.
    An exception in a script is raised. An event is waited for; if it is never set, the call hangs. An answer
    may be an endless iterator. After the end of a script, a default value is returned.
    """

    name = "scripted"

    def __init__(
        self,
        *,
        enrichments: Iterable[Step[Enrichment]] = (),
        intents: Iterable[Step[Intent]] = (),
        changes: Iterable[Step[tuple[FactReading, ...]]] = (),
        acts: Iterable[Step[tuple[Act, ...]]] = (),
        requests: Iterable[Step[Mapping[str, Any]]] = (),
        answers: Iterable[Answer] = (),
    ) -> None:
        self._enrichments = iter(enrichments)
        self._intents = iter(intents)
        self._changes = iter(changes)
        self._acts = iter(acts)
        self._requests = iter(requests)
        self._answers = iter(answers)
        self.messages: list[str] = []
        self.situations: list[Situation] = []
        self.briefs: list[Brief] = []
        self.closed = 0

    async def understand(self, message: str, situation: Situation) -> Understanding:
        """Return the next scripted enrichment, intent, acts and changes."""
        self.messages.append(message)
        self.situations.append(situation)
        turns = situation.blocks.conversation_history.turns
        default = Enrichment(
            previous_context="A turn came before" if turns else "No previous context - first message",
            enriched_message=f'User says: "{message[:300]}"',
            relevant_history=(f"turn_{turns[-1].turn_id}",) if turns else (),
            topic="scripted_conversation",
            trigger="new_message" if turns else "new_session",
        )
        return Understanding(
            enrichment=await _next(self._enrichments, default),
            intent=await _next(self._intents, GENERAL),
            acts=await _next(self._acts, ()),
            changes=await _next(self._changes, ()),
            **await _next(self._requests, {}),
        )

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """Yield the next scripted answer, fragment by fragment."""
        self.briefs.append(brief)
        try:
            for step in next(self._answers, REPLY):
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    yield step
                    await asyncio.sleep(0)
        finally:
            self.closed += 1


class ScriptedRecall:
    """Finds the same memories for every query and every person."""

    def __init__(self, *hits: MemoryHit) -> None:
        self._hits = hits
        self.queries: list[str] = []

    async def search(
        self,
        query: Embedded,
        person_id: str,
        conversation_id: str,
        watched: Sequence[str] = (),
        zone: tzinfo = UTC,
    ) -> Recalled:
        """Return the scripted memories."""
        self.queries.append(query.text)
        return Recalled(self._hits)


async def _next(script: Iterator[Step[Value]], default: Value) -> Value:
    for step in script:
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, asyncio.Event):
            return step
        await step.wait()
    return default
