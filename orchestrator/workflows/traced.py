"""Stores memories that are made or read outside of a turn, each with its trace."""

from collections.abc import Callable, Sequence
from typing import Final

from orchestrator.remember.ledger.lines import Discussion, Line
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Memory
from orchestrator.turn.outbox import ConversationWrite, Outbox
from orchestrator.wire.ids import MemoryId, TraceId
from orchestrator.wire.messages import MemoryTrace, MemoryUse

READER: Final = "workflow"
"""The name under which workflows read memories."""


class TracedMemories:
    """Writes memories and traces of a conversation in one transaction. The traces have `background`."""

    def __init__(self, outbox: Outbox, *, characters: int) -> None:
        """A trace has at most so many `characters` of a memory."""
        self._outbox, self._characters = outbox, characters

    async def keep(self, conversation_id: str, work: Callable[[Transaction], Sequence[Memory]]) -> None:
        """Run `work`, and store a trace for each memory that it returns."""

        def transact(write: ConversationWrite) -> None:
            for memory in work(write.tx):
                actor = memory.created_by or READER
                self._say(write, memory, "stored", actor, memory.content)

        await self._outbox.commit(conversation_id, transact, step="memory", quiet=True)

    async def note_reads(self, of: Discussion, lines: Sequence[Line], text: str) -> None:
        """Store the traces of reads. `text` is what was returned."""

        def transact(write: ConversationWrite) -> None:
            for line in lines:
                memory = write.tx.memories.get_even_deleted(line.memory_id)
                if memory is not None:
                    self._say(write, memory, "retrieved", READER, line.body.text if line.body else text)

        await self._outbox.commit(of.id, transact, step="memory", quiet=True)

    def _say(
        self, write: ConversationWrite, memory: Memory, action: MemoryUse, actor: str, content: str
    ) -> None:
        facts = {
            "agent": actor,
            "tags": list(memory.tags),
            "source": f"{memory.source_type}:{write.conversation.id}",
            "background": True,
            "truncated": True if len(content) > self._characters else None,
        }
        write.say(
            MemoryTrace(
                id=TraceId(write.tx.ids.new("trace_")),
                conversation_id=write.conversation_id,
                memory_id=MemoryId(memory.id),
                memory_type=memory.source_type,
                action=action,
                content=content[: self._characters],
                metadata={name: fact for name, fact in facts.items() if fact is not None},
            )
        )
