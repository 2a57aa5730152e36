"""`anamnesis memory status`, `embed`, `reindex` and `lineage`: how memories were made and made searchable."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from orchestrator.cli.memory.search import memory, opened
from orchestrator.cli.options import FOUND_SOMETHING, Invocation, person_argument, with_invocation

if TYPE_CHECKING:
    from orchestrator.remember.creators.config import MemoryConfig
    from orchestrator.remember.ledger.port import MemoryLedger
    from orchestrator.store.engine.database import Store

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@contextmanager
def _ledger(invocation: Invocation) -> "Iterator[tuple[Store, MemoryLedger, MemoryConfig]]":
    from orchestrator.wiring import open_store
    from orchestrator.workflows.building import build_memory_ledger, load_memory_config

    settings = invocation.settings(quietly=True)
    config = load_memory_config(invocation.config)
    store = open_store(settings, invocation.config)
    try:
        yield store, build_memory_ledger(settings, store, config), config
    finally:
        store.close_now()


@memory.command()
@click.option("--user", help="Only the conversations of this person.")
@_as_json
@with_invocation
def status(invocation: Invocation, user: str | None, as_json: bool) -> None:
    """Show how far the memories of each conversation are behind its messages.

    Exits with 1 if a ledger is broken.
    """
    from orchestrator.remember.creators.status import statuses

    with _ledger(invocation) as (store, ledger, config):
        found = list(statuses(store, ledger, config.kind, user))
        vectors = store.read_now(lambda tx: tx.memory_index.counts_by_model())
    for each in found:
        if as_json:
            click.echo(json.dumps(asdict(each), ensure_ascii=False))
        else:
            click.echo(
                f"{each.conversation}  {each.behind} of {each.messages} messages behind,"
                f" {each.memories} memories of {each.chunks} chunks, {each.dropped} sentences dropped"
            )
            if each.error:
                click.echo(f"    the last run failed: {each.error}")
            if each.unsettled:
                click.echo("    the ledger does not follow all changes of memories yet")
            for why in each.broken:
                click.echo(f"    {why}")
    if not found and not as_json:
        click.echo("There are no conversations.")
    if not as_json:
        for model, count in sorted(vectors.items()):
            click.echo(f"{count} memories have vectors of {model}")
    if any(each.broken for each in found):
        raise click.exceptions.Exit(FOUND_SOMETHING)


@memory.command()
@_as_json
@with_invocation
def embed(invocation: Invocation, as_json: bool) -> None:
    """Compute all vectors anew that another model made than `embeddings.model` names.

    A server does the same in the background. Both can be interrupted, and go on where they stopped.
    """
    from orchestrator.remember.reembedding import progress, reembed_some

    with opened(invocation) as access:
        now = progress(access.store, access.embedder.name)
        with click.progressbar(length=now.total - now.done, label="embedding", file=sys.stderr) as bar:
            while count := reembed_some(access.store, access.embedder):
                bar.update(count)
        now = progress(access.store, access.embedder.name)
    if as_json:
        click.echo(json.dumps(asdict(now)))
    else:
        click.echo(f"{now.done} of {now.total} memories have vectors of {now.model}")


@memory.command()
@person_argument
@_as_json
@with_invocation
def reindex(invocation: Invocation, user: str, as_json: bool) -> None:
    """Rebuild the index of USER's memories from the ledger and the messages. Deleted ones stay deleted."""
    from orchestrator.remember.reindexing import rebuild
    from orchestrator.turn.outbox import Outbox
    from orchestrator.workflows.building import build_creator

    with opened(invocation) as access:
        settings, outbox = invocation.settings(quietly=True), Outbox(access.store)
        creator, _ = build_creator(settings, access.store, access.embedder, outbox, None, invocation.config)
        done = asyncio.run(rebuild(access.store, access.embedder, user, creator.settle, creator.findable))
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        click.echo(
            f"{done.conversations} conversations; {done.stored} memories stored again, {done.indexed} indexed"
        )


@memory.command()
@click.argument("id", metavar="ID")
@_as_json
@with_invocation
def lineage(invocation: Invocation, id: str, as_json: bool) -> None:
    """Show what a memory was made of, and what was made of a message.

    ID is that of a memory, a message or a conversation; CONVERSATION:TURN is a turn, CONVERSATION#file:NUMBER
    or CONVERSATION#vector:NUMBER a chunk, CONVERSATION#summary:NUMBER a version of the rolling summary.
    """
    from orchestrator.remember.creators.lineage import lineage as find
    from orchestrator.workflows.building import settle_all

    with _ledger(invocation) as (store, ledger, config):
        settle_all(store, ledger, config)
        found = find(store, ledger, id)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    click.echo(f"conversation {found['conversation']}")
    for chunk in found["chunks"]:
        click.echo(f"  chunk {chunk['id']}  {chunk['kind']}  by {chunk['maker']}  {chunk['line'][:12]}")
        for message in chunk["messages"]:
            turn = f"  turn {message['archivedTurn']}" if message["archivedTurn"] else ""
            mark = "*" if message["id"] in chunk["restsOn"] else " "
            click.echo(f"   {mark}{message['number']:>4}  {message['id']}  {message['role']}{turn}")
            click.echo(f"          {_shortened(message['text'])}")
            if message["utterance"]:
                click.echo(click.style(f"          utterance {message['utterance']}", dim=True))
        for each in chunk["memories"]:
            click.echo(f"    memory {each['id']}  {each['state']}")
            click.echo(f"          {_shortened(each['text'] or '')}")
    for message in found["notInAMemoryYet"]:
        click.echo(f"  in no memory yet: {message['id']}  {_shortened(message['text'])}")
    if found["summary"]:
        summary = found["summary"]
        click.echo(f"  rolling summary, version {summary['number']}, up to memory {summary['memory']}")
        click.echo(f"          {_shortened(summary['text'] or '')}")


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
