"""`anamnesis explain`: shows everything that led to one answer."""

from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import Invocation, operator_name, with_invocation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.api.routes.memory.explanations import WholeExplanation
    from orchestrator.inspection.explanation import Explanation
    from orchestrator.store.engine.database import Transaction


@click.command()
@click.argument("message")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as the API does.")
@click.option("--requests", is_flag=True, help="Also print what models were sent.")
@click.option("--diff", is_flag=True, help="Also print how that differs from the turn before.")
@with_invocation
def explain(invocation: Invocation, message: str, as_json: bool, requests: bool, diff: bool) -> None:
    """Explain an answer: how the message was understood, what was remembered, and how long it took.

    MESSAGE is the id of the person's message or of the answer. Looking leaves traces with your name.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.api.routes.memory.explanations import to_response
    from orchestrator.errors import ITEM_NOT_FOUND, AnamnesisError
    from orchestrator.inspection.explanation import explain as build
    from orchestrator.inspection.looks import Look
    from orchestrator.wiring import build_ledger, load_roster, open_store

    ledger = build_ledger(settings, load_roster(invocation.config))

    def read(tx: "Transaction") -> "Explanation":
        found = tx.messages.get(message)
        row = tx.conversations.get(found.conversation_id) if found else None
        if found is None or row is None:
            raise AnamnesisError(ITEM_NOT_FOUND, what="message")
        return build(tx, ledger, row, found, Look(operator_name()))

    store = open_store(settings)
    try:
        explanation = to_response(store.write_now(read))
    finally:
        store.close_now()
    if as_json:
        click.echo(explanation.model_dump_json(by_alias=True, indent=2))
    else:
        for line in _lines(explanation):
            click.echo(line)
        for line in _request_lines(explanation, whole=requests, diff=diff):
            click.echo(line)


def _lines(turn: "WholeExplanation") -> "Iterator[str]":
    """The explanation for people to read, in the order of the turn."""
    yield f"Turn {turn.turn} of {turn.conversation_id}: {turn.state}{_after_colon(turn.error)}"
    yield from ("", "Message", f"  {turn.message.content}")
    for found in turn.safety:
        how = found.certainty or "no danger"
        yield f"  safety: {found.kind}, tier {found.tier}, {how}, by {', '.join(found.rules)}"
    if turn.understood is not None:
        understood = turn.understood
        yield from ("", "Understood as", f"  {understood.enriched_message or '-'}")
        if understood.previous_context:
            yield f"  because: {understood.previous_context}"
        if understood.intent:
            sure = f"{understood.confidence:.2f}"
            yield f"  intent {understood.intent} ({sure}): {understood.reasoning}"
        yield f"  answered by {understood.specialist or 'nobody'}"
    if turn.prompt is not None:
        yield f"  with the prompt {turn.prompt}, revision {turn.prompt_revision}"
    yield from ("", "Memory")
    for block in turn.blocks:
        yield f"  {block.action:<9} {block.label} revision {block.revision}  ({block.trace_id})"
    for memory in turn.memories:
        yield f"  retrieved memory {memory.memory_id} {memory.role or ''}".rstrip()
    for tool in turn.tools:
        yield f"  called tool {tool.tool_name}: {tool.status}"
    yield from ("", "Answer", f"  {turn.answer.content if turn.answer else '-'}", "", "Times")
    for step in turn.steps:
        yield f"  {step.milliseconds:>7} ms  {step.name}"
    if turn.stations:
        yield from ("", "Stations, in milliseconds after the turn began")
    for station in turn.stations:
        yield f"  {station.start:>9.1f}  {station.milliseconds:>9.1f} ms  {station.name}"
    if turn.model is not None:
        model = turn.model
        tokens = f"{model.prompt_tokens} tokens sent, {model.completion_tokens} received"
        yield from ("", f"Model: {model.requests} requests, {tokens}{_after_colon(model.trouble)}")


def _request_lines(turn: "WholeExplanation", *, whole: bool, diff: bool) -> "Iterator[str]":
    """What models were sent, each with a line about it."""
    for each in turn.model_requests:
        tokens = f"{each.prompt_tokens} tokens sent, {each.completion_tokens} received"
        yield from ("", f"Request {each.number} to {each.model} as {each.role}: {each.outcome}, {tokens}")
        if whole:
            yield each.readable or "(erased)"
        if diff:
            yield each.diff or "(there is no such request in the turn before, or it is the same)"


def _after_colon(text: str | None) -> str:
    return f": {text}" if text else ""
