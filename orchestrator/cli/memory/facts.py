"""`anamnesis facts`: shows and changes what is known about the people of a conversation.

A change is used from the next turn on. Like every access to a block, it leaves a trace with the operator's
name.
"""

import json
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.memory.blocks import Access, Result, with_ledger
from orchestrator.cli.options import Invocation, shared_options, with_invocation

if TYPE_CHECKING:
    from memory_blocks.facts.changes import CurrentFact, FactChange, Op

_conversation = click.argument("conversation")
_fact = click.argument("fact", metavar="FACT")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


@click.group()
@shared_options
def facts() -> None:
    """Show and change what is known about the people of a conversation.

    A FACT is an id that `show` prints, or its beginning.
    """


@facts.command()
@_conversation
@click.option("--all", "every_change", is_flag=True, help="Show every change instead, oldest first.")
@_as_json
@with_invocation
def show(invocation: Invocation, conversation: str, every_change: bool, as_json: bool) -> None:
    """List the facts that hold now: whose they are, since when, and who decided on them."""

    def read(access: Access) -> "Result[list[CurrentFact | FactChange]]":
        from memory_blocks.facts.changes import current_facts

        found = access.ledger.read(access.store, access.conversation, actor=access.actor)
        changes = access.ledger.fact_changes(access.store, access.conversation, found.blocks)
        return list(changes if every_change else current_facts(changes)), found.receipts

    found, _ = with_ledger(invocation, conversation, read)
    for each in found:
        if as_json:
            click.echo(json.dumps(each.model_dump(mode="json"), ensure_ascii=False))
        else:
            click.echo(_line(each))
    if not found and not as_json:
        click.echo("Nothing is known yet.")


@facts.command()
@_conversation
@click.argument("kind")
@click.argument("value")
@click.option("--subject", default="person", show_default=True, help="Whose it is, such as daughter.")
@click.option("--about", default="", help="What the value belongs to, such as headache for a severity.")
@click.option("--stable", is_flag=True, help="It lasts beyond this episode, like an allergy.")
@click.option("--when", "true_when", default="", help="When it was true.")
@with_invocation
def add(invocation: Invocation, conversation: str, kind: str, value: str, **fields: Any) -> None:
    """Add a fact, such as `allergies penicillin --stable`."""
    from memory_blocks.facts.changes import Op, subject_named

    fields["subject"] = subject_named(fields["subject"])
    _change(invocation, conversation, Op.ADD, None, kind=kind, value=value, **fields)
    click.echo("Added.")


@facts.command()
@_conversation
@_fact
@click.argument("value")
@with_invocation
def replace(invocation: Invocation, conversation: str, fact: str, value: str) -> None:
    """Give a FACT another value."""
    from memory_blocks.facts.changes import Op

    _change(invocation, conversation, Op.REPLACE, fact, value=value)
    click.echo("Replaced.")


@facts.command()
@_conversation
@_fact
@with_invocation
def retract(invocation: Invocation, conversation: str, fact: str) -> None:
    """End a FACT, because it does not hold any more or never did."""
    from memory_blocks.facts.changes import Op

    _change(invocation, conversation, Op.RETRACT, fact)
    click.echo("Retracted.")


def _change(invocation: Invocation, conversation: str, op: "Op", fact: str | None, **fields: object) -> None:
    """Make one change, decided by the operator."""
    from pydantic import ValidationError

    from memory_blocks.facts.changes import Decider, FactChange, current_facts
    from memory_blocks.facts.edits import change_facts

    def write(access: Access) -> "Result[None]":
        found = access.ledger.read(access.store, access.conversation, actor=access.actor)
        known = current_facts(access.ledger.fact_changes(access.store, access.conversation, found.blocks))
        target = None if fact is None else _found(known, fact)
        kept = target.model_dump(include={"kind", "subject", "about", "value", "stable"}) if target else {}
        change = FactChange.model_validate(
            {
                "id": access.tx.ids.new("fact_"),
                "op": op,
                "target": target.id if target else None,
                "said_at": access.tx.now,
                "turn": max(1, found.blocks.conversation_history.total_turns),
                "decided_by": Decider.OPERATOR,
                **kept,
                **fields,
            }
        )
        written = change_facts(access.ledger, access.store, access.conversation, [change], actor=access.actor)
        return None, written.receipts

    try:
        with_ledger(invocation, conversation, write)
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False)[0]
        rule = f"{'.'.join(map(str, first['loc']))}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    else:
        return
    raise click.UsageError(rule)


def _found(known: "tuple[CurrentFact, ...]", beginning: str) -> "CurrentFact":
    matching = [fact for fact in known if fact.id.startswith(beginning)]
    if len(matching) != 1:
        raise click.UsageError(
            f"{len(matching) or 'No'} facts have this id; `anamnesis facts show` lists them."
        )
    return matching[0]


def _line(fact: "CurrentFact | FactChange") -> str:
    what = f"{fact.kind} of {fact.about}" if fact.about else fact.kind
    op = getattr(fact, "op", None)
    notes = [
        *([op.value] if op else []),
        *(["lasting"] if fact.stable else []),
        *([] if getattr(fact, "sure", True) else ["not sure"]),
        *([fact.true_when] if fact.true_when else []),
        f"turn {fact.turn or '-'}",
        f"by {fact.decided_by.value}",
    ]
    return f"{fact.id}  {fact.subject}: {what} = {fact.value}  ({', '.join(notes)})"
