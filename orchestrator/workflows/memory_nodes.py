"""Routes each memory node of a workflow to the creator or to its retriever."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from orchestrator.errors import WORKFLOW_FAILED, WORKFLOW_INVALID, AnamnesisError
from orchestrator.remember.creators.generation import CHUNK_BREAK
from orchestrator.remember.creators.history import HistoryMessage
from orchestrator.remember.creators.quality_memory import QualityMemory
from orchestrator.remember.ledger.lines import Discussion, Line, alive
from orchestrator.workflows.definition import Node
from orchestrator.workflows.retrievers import Reading, Retriever

CREATOR: Final = "QualityMemory"

NoteReads: TypeAlias = Callable[[Discussion, Sequence[Line], str], Awaitable[None]]
"""Stores the trace of reads: the conversation, the memories, and the text that was returned."""


@dataclass(frozen=True, slots=True)
class WorkflowScope:
    """What a workflow runs for. Without `discussion`, nothing is stored and only `messages` are read."""

    discussion: Discussion | None = None
    messages: Sequence[HistoryMessage] = ()
    inputs: Sequence[str] = ()
    message_id: str | None = None
    is_sub_workflow: bool = False


class MemoryNodes:
    """Runs memory nodes."""

    def __init__(self, creator: QualityMemory, note_reads: NoteReads) -> None:
        self._creator, self._note_reads = creator, note_reads

    async def run(
        self, node: Node, input: str, scope: WorkflowScope, retrievers: Mapping[str, Retriever]
    ) -> str:
        """The output of a node. Raises for a type that neither creates nor retrieves."""
        if node.type == CREATOR:
            return await self._create(node, scope)
        if node.type not in retrievers:
            rule = f"node {node.id} has the unknown type {node.type}"
            raise AnamnesisError(WORKFLOW_INVALID, where="the workflow", rule=rule)
        if scope.discussion is not None:
            await asyncio.to_thread(self._creator.settling.settle_if_changed, scope.discussion.id)
        reading = Reading(self._creator.ledger, scope.discussion, scope.messages, input, node.limit)
        found = await asyncio.to_thread(retrievers[node.type], reading)
        if scope.discussion is not None and found.lines:
            await self._note_reads(scope.discussion, found.lines, found.text)
        return found.text

    async def _create(self, node: Node, scope: WorkflowScope) -> str:
        """Make memories; the output has the new ones."""
        if scope.is_sub_workflow:
            rule = "a workflow that makes memories cannot have a QualityMemory node itself"
            raise AnamnesisError(WORKFLOW_INVALID, where="the workflow", rule=rule)
        if scope.discussion is None:
            return await self._creator.without_discussion(scope.messages)
        run = await self._creator.handle_discussion_id_flow(scope.discussion)
        if run.error:
            rule = f"not all memories could be made ({run.error}); the next run tries again"
            raise AnamnesisError(WORKFLOW_FAILED, where="the workflow", node=node.id, rule=rule)
        lines = await asyncio.to_thread(self._creator.ledger.lines, scope.discussion, self._creator.kind)
        made = [line for line in alive(lines) if line.memory_id in run.memories]
        return CHUNK_BREAK.join(line.body.text for line in made if line.body)
