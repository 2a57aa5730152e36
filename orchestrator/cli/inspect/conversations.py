"""`anamnesis conversations`: lists conversations, without their messages."""

import json
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import Invocation, operator_name, with_invocation

if TYPE_CHECKING:
    from orchestrator.store.engine.database import Transaction
    from orchestrator.store.repositories.api.pages import ConversationEntry


@click.command()
@click.option("--user", help="Only those of this person.")
@click.option("--status", type=click.Choice(["active", "archived"]), help="Only those with this status.")
@click.option("--search", help="Only those with this text in the title or in a message.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per conversation.")
@with_invocation
def conversations(
    invocation: Invocation,
    user: str | None,
    status: str | None,
    search: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List conversations, the most recently active first.

    `anamnesis export` and `anamnesis blocks` show what is in one of them; `anamnesis explain` shows why an
    answer was given. A search leaves a trace with your name in each conversation that it finds.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.inspection.looks import Look, trace_text
    from orchestrator.ops.clock import as_text
    from orchestrator.store.repositories.api.pages import ConversationFilter
    from orchestrator.wiring import open_store

    which = ConversationFilter(user_id=user, status=status, search=search)

    def read(tx: "Transaction") -> "list[ConversationEntry]":
        listed = tx.pages.conversations(which, None, limit)
        for each in listed if search is not None else ():
            trace_text(tx, each.id, Look(operator_name()), "messages, to search them")
        return listed

    store = open_store(settings)
    try:
        found = store.write_now(read) if search is not None else store.read_now(read)
    finally:
        store.close_now()
    for each in found:
        if as_json:
            facts = {
                "id": each.id,
                "person": each.user_id,
                "title": each.title,
                "status": each.status,
                "turns": each.turns,
                "created_at": as_text(each.created_at),
                "updated_at": as_text(each.updated_at),
            }
            click.echo(json.dumps(facts, ensure_ascii=False))
        else:
            click.echo(
                f"{as_text(each.updated_at)}  {each.id}  {each.status:<8} {each.turns:>4} turns"
                f"  {each.user_id}  {each.title or ''}".rstrip()
            )
    if not found and not as_json:
        click.echo("No conversation was found.")
