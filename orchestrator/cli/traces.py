"""`anamnesis traces`: lists which memories a conversation has read and written."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import Invocation, with_invocation

if TYPE_CHECKING:
    from orchestrator.store.engine.database import Transaction
    from orchestrator.store.rows import Trace


@click.command()
@click.argument("conversation")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per trace.")
@with_invocation
def traces(invocation: Invocation, conversation: str, as_json: bool) -> None:
    """List every read and write of a memory in a conversation, in order."""
    settings = invocation.settings(quietly=True)

    from memory_blocks.trace_text import as_line
    from orchestrator.errors import NOT_FOUND, AnamnesisError
    from orchestrator.ops.clock import as_text
    from orchestrator.wire.codec import MAX_FRAME_BYTES, decode
    from orchestrator.wire.messages import MemoryTrace
    from orchestrator.wiring import open_store

    def read(tx: "Transaction") -> "list[Trace]":
        """The traces in order. Those of one transaction have the same time; their frames have the order."""
        if tx.conversations.get(conversation) is None:
            raise AnamnesisError(NOT_FOUND)
        order: dict[str, int] = {}
        for frame in tx.frames.of_type(conversation, MemoryTrace.TYPE):
            body = decode(frame.payload, sender="server", max_bytes=MAX_FRAME_BYTES).body
            if isinstance(body, MemoryTrace):
                order[body.id] = frame.position
        found = tx.traces.of_conversation(conversation)
        return sorted(found, key=lambda trace: (trace.created_at, order.get(trace.id, 0)))

    store = open_store(settings)
    try:
        found = store.read_now(read)
    finally:
        store.close_now()
    for trace in found:
        if as_json:
            row = {name: value for name, value in asdict(trace).items() if not name.endswith("_at")}
            times = {"created_at": as_text(trace.created_at), "updated_at": as_text(trace.updated_at)}
            click.echo(json.dumps({**row, **times}, ensure_ascii=False))
        else:
            about = trace.meta or {}
            name = about.get("label") or trace.memory_type or trace.memory_id
            revision = f" revision {about['revision']}" if "revision" in about else ""
            score = f" relevance {trace.confidence:.2f}" if trace.confidence is not None else ""
            who = f" by {trace.actor}" if trace.actor else ""
            click.echo(
                f"{as_text(trace.created_at)}  {trace.action:<9} {name}{revision}{score}{who}"
                f"  for {trace.message_id or 'no message'}  ({trace.id})"
            )
            click.echo(f"    {as_line(trace.content)}")
    if not found and not as_json:
        click.echo("No memory has been read or written yet.")
