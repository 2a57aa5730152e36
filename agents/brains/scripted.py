"""A brain that does what it is told, for tests and rehearsals: values, waits, failures, endless streams."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Final, TypeAlias, TypeVar

from agents.ports import Brief, Embedded, MemoryHit, Recalled
from agents.values import Enrichment, Intent
from memory_blocks.models import Blocks

Value = TypeVar("Value")
Step: TypeAlias = Value | Exception | asyncio.Event
Answer: TypeAlias = Iterable[str | Exception | asyncio.Event]

GENERAL: Final = Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning="As scripted")
REPLY: Final = ("I understand. ", "How severe is it on a scale of 1 to 10?")


class ScriptedBrain:
    """Follows a script per part; a call takes steps up to the first value.

    An exception in a script is raised; an event is waited for, so one that is never set hangs. An answer may
    be an endless iterator. Where a script has ended, a plain value is given.
    """

    name = "scripted"

    def __init__(
        self,
        *,
        enrichments: Iterable[Step[Enrichment]] = (),
        intents: Iterable[Step[Intent]] = (),
        answers: Iterable[Answer] = (),
    ) -> None:
        self._enrichments = iter(enrichments)
        self._intents = iter(intents)
        self._answers = iter(answers)
        self.heard: list[str] = []
        self.classified: list[Enrichment] = []
        self.briefs: list[Brief] = []
        self.closed = 0

    async def extract(self, message: str, blocks: Blocks) -> Enrichment:
        """The next scripted enrichment."""
        self.heard.append(message)
        turns = blocks.conversation_history.turns
        plain = Enrichment(
            previous_context="A turn came before" if turns else "No previous context - first message",
            enriched_message=f'User says: "{message[:300]}"',
            relevant_history=(f"turn_{turns[-1].turn_id}",) if turns else (),
            topic="scripted_conversation",
            trigger="new_message" if turns else "new_session",
        )
        return await _next(self._enrichments, plain)

    async def classify(self, enrichment: Enrichment, blocks: Blocks, embedded: Embedded) -> Intent:
        """The next scripted intent."""
        self.classified.append(enrichment)
        return await _next(self._intents, GENERAL)

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The next scripted answer, fragment by fragment."""
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
    """Finds what it was told to find, whoever asks."""

    def __init__(self, *hits: MemoryHit) -> None:
        self._hits = hits
        self.queries: list[str] = []

    async def search(self, query: Embedded, person_id: str) -> Recalled:
        """The scripted memories."""
        self.queries.append(query.text)
        return Recalled(self._hits)


async def _next(script: Iterator[Step[Value]], plain: Value) -> Value:
    for step in script:
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, asyncio.Event):
            return step
        await step.wait()
    return plain
