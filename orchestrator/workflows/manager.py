"""Registers the types of nodes, loads workflows, and runs them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.errors import WORKFLOW_FAILED, WORKFLOW_INVALID, AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.remember.creators.generation import Complete, RequestOrigin, filled
from orchestrator.workflows import definition
from orchestrator.workflows.definition import Node, Workflow
from orchestrator.workflows.memory_nodes import CREATOR, MemoryNodes, WorkflowScope
from orchestrator.workflows.retrievers import RETRIEVERS, Retriever

log = get_logger()

STANDARD: Final = "Standard"


@dataclass(frozen=True, slots=True)
class NodeRun:
    """A node that ran, with its output."""

    id: str
    type: str
    output: str


@dataclass(slots=True)
class WorkflowManager:
    """Runs workflows. `folders` are searched for a workflow by its name, in their order.

    `nodes` is set before a memory node runs; loading and checking a file does not need it.
    """

    folders: Sequence[Path]
    complete: Complete | None = None
    nodes: MemoryNodes | None = None
    retrievers: dict[str, Retriever] = field(default_factory=lambda: dict(RETRIEVERS))

    def register(self, node_type: str, retriever: Retriever) -> None:
        """Add a type of node that reads memories."""
        self.retrievers[node_type] = retriever

    @property
    def types(self) -> frozenset[str]:
        """The types that a node may have."""
        return frozenset((STANDARD, CREATOR, *self.retrievers))

    def load(self, path: Path) -> Workflow:
        """Read a file; raises if it cannot be used, and names an unknown type of node."""
        return definition.load(path, self.types)

    def named(self, name: str) -> Workflow:
        """The workflow of that name."""
        file = Path(f"{name}.json").name  # a name is no path
        for folder in self.folders:
            if (folder / file).is_file():
                return self.load(folder / file)
        raise AnamnesisError(WORKFLOW_INVALID, where=file, rule="there is no such file")

    def can_run(self, workflow: Workflow) -> bool:
        """Whether no node needs a model, or there is one."""
        return self.complete is not None or all(node.type != STANDARD for node in workflow.nodes)

    async def run(self, workflow: Workflow, scope: WorkflowScope) -> tuple[str, list[NodeRun]]:
        """Run the nodes in order. The result is the output of the last node that returns to the user."""
        steps: list[NodeRun] = []
        for node in workflow.nodes:
            outputs = [step.output for step in steps]
            steps.append(NodeRun(node.id, node.type, await self._run_node(workflow, node, scope, outputs)))
            log.info("workflow_node_ran", kind=node.type, label=workflow.name, number=len(steps))
        shown = [step.output for node, step in zip(workflow.nodes, steps, strict=True) if node.returnToUser]
        return shown[-1], steps

    async def run_sub_workflow(self, name: str, inputs: Sequence[str], caller: RequestOrigin) -> str:
        """Run the workflow that makes memories of a chunk."""
        scope = WorkflowScope(caller.discussion, (), inputs, caller.message_id, is_sub_workflow=True)
        output, _ = await self.run(self.named(name), scope)
        return output

    async def _run_node(
        self, workflow: Workflow, node: Node, scope: WorkflowScope, outputs: Sequence[str]
    ) -> str:
        if node.type != STANDARD:
            if self.nodes is None:
                raise _failed(workflow, node, "there is no memory here")
            input = filled(node.input, scope.inputs, outputs)
            return await self.nodes.run(node, input, scope, self.retrievers)
        if self.complete is None:
            raise _failed(workflow, node, "no model is configured; set chat.model")
        caller = RequestOrigin(scope.discussion, scope.message_id)
        return await self.complete(filled(node.prompt, scope.inputs, outputs), caller)


def _failed(workflow: Workflow, node: Node, rule: str) -> AnamnesisError:
    return AnamnesisError(WORKFLOW_FAILED, where=workflow.name, node=node.id, rule=rule)
