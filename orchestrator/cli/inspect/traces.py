"""`anamnesis traces`: lists which memories were read and written, or follows them live."""

import asyncio
import json
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import Invocation, operator_name, with_invocation

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from orchestrator.store.engine.database import Store, Transaction
    from orchestrator.store.repositories.api.pages import TraceEntry, TraceFilter
    from orchestrator.store.rows import Trace


@click.command()
@click.argument("conversation", required=False)
@click.option("--follow", is_flag=True, help="Print new traces as they are stored, until Ctrl-C.")
@click.option("--action", type=click.Choice(["retrieved", "stored", "updated"]), help="Only this action.")
@click.option("--type", "memory_type", help="Only memories of this type, such as memory_block.")
@click.option("--label", help="Only this block, such as active_session.")
@click.option("--actor", help="Only this actor; operator matches operator:NAME, too.")
@click.option("--since", type=click.DateTime(), help="Only from this time on, in UTC.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    help="At most so many, without CONVERSATION.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per trace.")
@with_invocation
def traces(
    invocation: Invocation,
    conversation: str | None,
    follow: bool,
    since: datetime | None,
    limit: int,
    as_json: bool,
    **which: Any,
) -> None:
    """List every read and write of a memory in a CONVERSATION, in order.

    Without CONVERSATION, lists the newest ones of all conversations, newest first, without their contents;
    so does --follow. Reading the contents leaves a trace with your name.
    """
    settings = invocation.settings(quietly=True)

    from datetime import UTC

    from orchestrator.store.repositories.api.pages import TraceFilter

    wanted = TraceFilter(
        conversation_id=conversation, since=since.replace(tzinfo=UTC) if since else None, **which
    )
    if follow:
        with suppress(KeyboardInterrupt):
            asyncio.run(_follow(settings, wanted, as_json))
    elif conversation is None:
        _with_store(settings, lambda store: _list(store, wanted, limit, as_json))
    else:
        _with_store(settings, lambda store: _show(store, wanted, conversation, as_json))


def _with_store(settings: "Settings", work: Any) -> None:
    from orchestrator.wiring import open_store

    store = open_store(settings)
    try:
        work(store)
    finally:
        store.close_now()


async def _follow(settings: "Settings", which: "TraceFilter", as_json: bool) -> None:
    """Print new traces until the command is interrupted."""
    from contextlib import aclosing

    from orchestrator.inspection.live import TraceFeed
    from orchestrator.wiring import open_store

    store = await asyncio.to_thread(open_store, settings)
    try:
        async with aclosing(TraceFeed(store).follow(which)) as found:
            async for entry in found:
                if entry is not None:
                    _print_entry(entry, as_json)
    finally:
        await store.close()


def _list(store: "Store", which: "TraceFilter", limit: int, as_json: bool) -> None:
    found = store.read_now(lambda tx: tx.pages.traces(which, None, limit))
    for entry in found:
        _print_entry(entry, as_json)
    if not found and not as_json:
        click.echo("No memory has been read or written yet.")


def _show(store: "Store", which: "TraceFilter", conversation: str, as_json: bool) -> None:
    """The traces of one conversation in order, with their contents."""
    from memory_blocks.trace_text import as_line
    from orchestrator.ops.clock import as_text

    found = store.write_now(lambda tx: _read(tx, which, conversation))
    for trace in found:
        if as_json:
            row = {name: value for name, value in asdict(trace).items() if not name.endswith("_at")}
            times = {"created_at": as_text(trace.created_at), "updated_at": as_text(trace.updated_at)}
            click.echo(json.dumps({**row, **times}, ensure_ascii=False))
        else:
            click.echo(_line(trace, trace.confidence))
            click.echo(f"    {as_line(trace.content)}")
    if not found and not as_json:
        click.echo("No memory has been read or written yet.")


def _read(tx: "Transaction", which: "TraceFilter", conversation: str) -> "list[Trace]":
    """The traces in order. That they were read is itself traced."""
    from orchestrator.inspection.looks import Look, trace_text

    found = _in_order(tx, which, conversation)
    if found:
        trace_text(tx, conversation, Look(operator_name()), f"{len(found)} traces")
    return found


def _in_order(tx: "Transaction", which: "TraceFilter", conversation: str) -> "list[Trace]":
    """The traces in order. Those of one transaction have the same time; their frames have the order."""
    from orchestrator.errors import NOT_FOUND, AnamnesisError
    from orchestrator.wire.codec import MAX_FRAME_BYTES, decode
    from orchestrator.wire.messages import MemoryTrace

    if tx.conversations.get(conversation) is None:
        raise AnamnesisError(NOT_FOUND)
    order: dict[str, int] = {}
    for frame in tx.frames.of_type(conversation, MemoryTrace.TYPE):
        body = decode(frame.payload, sender="server", max_bytes=MAX_FRAME_BYTES).body
        if isinstance(body, MemoryTrace):
            order[body.id] = frame.position
    kept = {entry.id for entry in tx.pages.traces(which, None, 2**31 - 1)}
    found = [trace for trace in tx.traces.of_conversation(conversation) if trace.id in kept]
    return sorted(found, key=lambda trace: (trace.created_at, order.get(trace.id, 0)))


def _print_entry(entry: "TraceEntry", as_json: bool) -> None:
    """Print a trace without its content, which a list does not have."""
    from orchestrator.ops.clock import as_text

    if as_json:
        facts = {name: value for name, value in asdict(entry).items() if name not in ("meta", "created_at")}
        about = entry.meta or {}
        labelled = {"label": about.get("label"), "revision": about.get("revision")}
        times = {"created_at": as_text(entry.created_at)}
        click.echo(json.dumps({**facts, **labelled, **times}, ensure_ascii=False))
    else:
        click.echo(f"{_line(entry, entry.confidence)}  in {entry.conversation_id}")


def _line(trace: "Trace | TraceEntry", relevance: float | None) -> str:
    from orchestrator.ops.clock import as_text

    about = trace.meta or {}
    name = about.get("label") or trace.memory_type or trace.memory_id
    revision = f" revision {about['revision']}" if "revision" in about else ""
    score = f" relevance {relevance:.2f}" if relevance is not None else ""
    who = f" by {trace.actor}" if trace.actor else ""
    return (
        f"{as_text(trace.created_at)}  {trace.action:<9} {name}{revision}{score}{who}"
        f"  for {trace.message_id or 'no message'}  ({trace.id})"
    )
