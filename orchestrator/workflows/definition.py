"""A workflow as a JSON file: a list of nodes, checked when it is loaded."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import WORKFLOW_INVALID, AnamnesisError
from orchestrator.remember.creators.generation import PLACEHOLDER

MOST_INPUTS = 4


class Node(BaseModel):
    """One node. `prompt` is for a node that asks a model, `input` for one that searches by keywords."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=True)

    id: Annotated[str, Field(min_length=1, max_length=100)]
    type: Annotated[str, Field(min_length=1, max_length=100)]
    title: str = ""
    prompt: str = ""
    input: str = ""
    limit: Annotated[int, Field(ge=1, le=1000)] = 3
    returnToUser: bool = False  # noqa: N815  the name in the file


class Workflow(BaseModel):
    """The nodes of a file, in the order in which they run."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    name: str
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]


def load(path: Path, known: Collection[str]) -> Workflow:
    """Read a file. Raises if it is not a list of nodes, or if a node has a type that is not registered."""
    try:
        nodes: Any = json.loads(path.read_text(encoding="utf-8"))
        workflow = Workflow(name=path.stem, nodes=nodes if isinstance(nodes, list) else [])
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        rule = f"node {where}: {first['msg'].lower()}" if where else "it is not a list of nodes"
    except (OSError, ValueError, RecursionError) as error:
        rule = f"it cannot be read as JSON ({type(error).__name__})"
    else:
        for found in _wrong(workflow, known):
            raise AnamnesisError(WORKFLOW_INVALID, where=path.name, rule=found)
        return workflow
    raise AnamnesisError(WORKFLOW_INVALID, where=path.name, rule=rule)


def _wrong(workflow: Workflow, known: Collection[str]) -> list[str]:
    """The rules that a workflow breaks."""
    found = [
        f"node {node.id} has the unknown type {node.type}; known types are {', '.join(sorted(known))}"
        for node in workflow.nodes
        if node.type not in known
    ]
    if len({node.id for node in workflow.nodes}) < len(workflow.nodes):
        found.append("two nodes have the same id")
    for place, node in enumerate(workflow.nodes):
        for number, what in PLACEHOLDER.findall(node.prompt + node.input):
            most = MOST_INPUTS if what == "Input" else place
            if not 1 <= int(number) <= most:
                found.append(f"node {node.id} uses {{agent{number}{what}}}, which no earlier step gives")
        if node.type == "Standard" and not node.prompt.strip():
            found.append(f"node {node.id} has no prompt")
        if node.type == "VectorMemorySearch" and not node.input.strip():
            found.append(f"node {node.id} has no input with keywords")
    if not any(node.returnToUser for node in workflow.nodes):
        found.append("no node has returnToUser")
    return found
