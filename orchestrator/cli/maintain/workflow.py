"""`anamnesis workflow`: checks a workflow file, and runs it."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import Invocation, model_options, shared_options, with_invocation

if TYPE_CHECKING:
    from orchestrator.remember.creators.history import HistoryMessage
    from orchestrator.workflows.manager import NodeRun

_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
@shared_options
def workflow() -> None:
    """Check and run workflows: JSON files whose nodes make memories, read them or ask a model."""


@workflow.command()
@_file
@with_invocation
def check(invocation: Invocation, file: Path) -> None:
    """Check that FILE can be used. Names the node that is wrong."""
    from orchestrator.workflows.building import build_workflows

    loaded = build_workflows(invocation.config).load(file)
    click.echo(f"{len(loaded.nodes)} nodes: {', '.join(node.type for node in loaded.nodes)}")


@workflow.command()
@_file
@click.option("--conversation", metavar="ID", help="The conversation whose memories are made and read.")
@click.option(
    "--messages",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Without a conversation: a JSON array of objects with `role` and `content`.",
)
@click.option("--input", "inputs", multiple=True, help="{agent1Input}; can be given up to four times.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with the output of each node.")
@model_options
@with_invocation
def run(
    invocation: Invocation,
    file: Path,
    conversation: str | None,
    messages: Path | None,
    inputs: tuple[str, ...],
    as_json: bool,
    model: str | None,
    endpoint: str | None,
) -> None:
    """Run FILE, and print the output of its last node with returnToUser.

    Without --conversation, nothing is stored, and the nodes read only the messages.
    """
    from orchestrator.workflows.definition import MOST_INPUTS

    if len(inputs) > MOST_INPUTS:
        raise click.UsageError(f"--input can be given {MOST_INPUTS} times at most.")
    if conversation is not None and messages is not None:
        raise click.UsageError("--messages is for runs without --conversation.")
    given = {"chat.model": model, "chat.endpoint": endpoint}
    options = {key: value for key, value in given.items() if value}
    said = _messages(messages) if messages is not None else []
    output, steps = asyncio.run(_run(invocation, options, file, conversation, said, inputs))
    if as_json:
        shown = [{"id": step.id, "type": step.type, "output": step.output} for step in steps]
        click.echo(json.dumps({"output": output, "nodes": shown}, ensure_ascii=False))
    else:
        click.echo(output)


async def _run(
    invocation: Invocation,
    options: dict[str, str],
    file: Path,
    conversation: str | None,
    said: "list[HistoryMessage]",
    inputs: tuple[str, ...],
) -> "tuple[str, list[NodeRun]]":
    from orchestrator.errors import NOT_FOUND, AnamnesisError
    from orchestrator.remember.creators.history import history_after
    from orchestrator.remember.ledger.lines import Discussion
    from orchestrator.turn.outbox import Outbox
    from orchestrator.wiring import load_embedder, load_memory_embedders, memory_model, open_store
    from orchestrator.workflows.building import build_creator
    from orchestrator.workflows.memory_nodes import WorkflowScope

    settings = invocation.settings(options, quietly=True)
    store, model = open_store(settings, invocation.config), memory_model(settings)
    try:
        embedder = load_memory_embedders(settings, load_embedder(settings)).passages
        _, workflows = build_creator(settings, store, embedder, Outbox(store), model, invocation.config)
        loaded = workflows.load(file)
        scope = WorkflowScope(None, said, inputs)
        if conversation is not None:
            found = await store.read(lambda tx: tx.conversations.get(conversation))
            if found is None:
                raise AnamnesisError(NOT_FOUND)
            history = await store.read(lambda tx: history_after(tx, conversation, None))
            last = history[-1].id if history else None
            scope = WorkflowScope(Discussion(found.user_id, found.id), history, inputs, last)
        return await workflows.run(loaded, scope)
    finally:
        if model is not None:
            await model.close()
        await store.close()


def _messages(file: Path) -> "list[HistoryMessage]":
    from orchestrator.ops.clock import SystemClock
    from orchestrator.remember.creators.history import PERSON, HistoryMessage

    now = SystemClock().now()
    try:
        given: Any = json.loads(file.read_text(encoding="utf-8"))
        return [
            HistoryMessage(f"m{number}", number, each.get("role", PERSON), str(each["content"]), now)
            for number, each in enumerate(given, 1)
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise click.UsageError(
            f"{file.name} is no JSON array of objects with `role` and `content`."
        ) from None
