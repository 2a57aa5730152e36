"""`anamnesis blocks`: shows, checks and rotates the four memory blocks of a conversation.

Every command that shows the text of a block reads it through the ledger, which leaves a trace with the name
of the operator; so does `validate`. `history`, `verify` and the list of `quarantine` show no text and leave
no trace.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import click

from orchestrator.cli.options import (
    FOUND_SOMETHING,
    Invocation,
    operator_name,
    shared_options,
    with_invocation,
)

if TYPE_CHECKING:
    from memory_blocks.ledger.ledger import Ledger
    from memory_blocks.models import Conversation, Label
    from memory_blocks.ports import QuarantinedText, Revision
    from memory_blocks.trace import Receipt
    from orchestrator.store.block_store import SqlBlockStore
    from orchestrator.store.engine.database import Transaction

Found = TypeVar("Found")
Result: TypeAlias = "tuple[Found, tuple[Receipt, ...]]"

_conversation = click.argument("conversation")
_LABELS: Final = click.Choice(
    ["conversation_history", "active_session", "context_summary", "memory_metadata"]
)
_label = click.argument("label", type=_LABELS, required=False, metavar="[LABEL]")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.group()
@shared_options
def blocks() -> None:
    """Show and check the memory blocks of a conversation, at present or after any turn.

    A LABEL is conversation_history, active_session, context_summary or memory_metadata.
    """


@blocks.command()
@_conversation
@_label
@click.option("--at-turn", type=click.IntRange(1), help="Show the state after this turn.")
@click.option("--revision", type=click.IntRange(1), help="Show this revision.")
@_as_json
@with_invocation
def show(
    invocation: Invocation,
    conversation: str,
    label: str | None,
    at_turn: int | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Show all blocks, or only the one with a LABEL.

    A LABEL is conversation_history, active_session, context_summary or memory_metadata.
    """
    if at_turn and revision:
        raise click.UsageError("Give --at-turn or --revision, not both.")
    wanted = _labels(label)

    def read(access: "Access") -> "Result[dict[str, str]]":
        view = access.ledger.view(
            access.store,
            access.conversation,
            actor=access.actor,
            labels=wanted,
            revision=revision,
            turn=at_turn,
        )
        return {label.value: block.text for label, block in view.blocks.items()}, view.receipts

    texts, found = with_ledger(invocation, conversation, read)
    receipts = {receipt.label.value: receipt for receipt in found}
    if as_json:
        shown = {
            each: {
                "revision": receipts[each].revision,
                "size": receipts[each].size,
                "limit": receipts[each].limit,
                "utilization": receipts[each].utilization,
                "level": receipts[each].level.value,
                "digest": receipts[each].digest,
                "block": _value(each, text),
            }
            for each, text in texts.items()
        }
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for each, text in texts.items():
        receipt = receipts[each]
        facts = f"revision {receipt.revision}, {receipt.size} of {receipt.limit} characters, {receipt.level}"
        click.echo(click.style(each, bold=True) + f"  {facts}")
        value = _value(each, text)
        readable = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        click.echo(readable or "(empty)")
        click.echo()


@blocks.command()
@_conversation
@_label
@_as_json
@with_invocation
def history(invocation: Invocation, conversation: str, label: str | None, as_json: bool) -> None:
    """List the revisions of all blocks, or of one: who wrote each, at which turn. Shows no text."""
    from orchestrator.ops.clock import as_text

    def read(access: "Access") -> "Result[list[tuple[str, Revision]]]":
        labels = _labels(label)
        return [(each.value, at) for each in labels for at in access.store.revisions(conversation, each)], ()

    found, _ = with_ledger(invocation, conversation, read)
    for each, revision in found:
        facts = {
            "label": each,
            "revision": revision.revision,
            "turn": revision.turn,
            "actor": revision.actor,
            "size": revision.size,
            "digest": revision.digest,
            "schema_version": revision.schema_version,
            "written_at": as_text(revision.written_at),
        }
        if as_json:
            click.echo(json.dumps(facts))
        else:
            click.echo(
                f"{facts['written_at']}  {each:<21} revision {revision.revision:<5}"
                f" turn {revision.turn or '-':<5} {revision.size:>6} characters  {revision.digest[:12]}"
                f"  by {revision.actor}"
            )
    if not found and not as_json:
        click.echo("Nothing has been written yet.")


@blocks.command()
@_conversation
@click.argument("label", type=_LABELS, metavar="LABEL")
@click.argument("first", type=click.IntRange(1))
@click.argument("second", type=click.IntRange(1))
@with_invocation
def diff(invocation: Invocation, conversation: str, label: str, first: int, second: int) -> None:
    """Show the differences between two revisions of a block."""
    from memory_blocks.diff import line_changes
    from memory_blocks.models import Label

    def read(access: "Access") -> "Result[tuple[str, str]]":
        old, new = (
            access.ledger.view(
                access.store,
                access.conversation,
                actor=access.actor,
                labels=[Label(label)],
                revision=revision,
            )
            for revision in (first, second)
        )
        texts = old.blocks[Label(label)].text, new.blocks[Label(label)].text
        return texts, (*old.receipts, *new.receipts)

    (old, new), _ = with_ledger(invocation, conversation, read)
    colors = {"+": "green", "-": "red", "~": "yellow"}
    for sign, line in line_changes(Label(label), old, new):
        click.echo(click.style(f"{sign} {line}", fg=colors[sign]))


@blocks.command()
@_conversation
@_as_json
@with_invocation
def validate(invocation: Invocation, conversation: str, as_json: bool) -> None:
    """List every rule that the blocks break, by path. Shows no text and changes nothing.

    The exit code is 1 if a rule is broken.
    """

    def examine(access: "Access") -> "Result[Sequence[tuple[str, str, str]]]":
        return access.ledger.examine(access.store, access.conversation, actor=access.actor)

    found, _ = with_ledger(invocation, conversation, examine)
    _print_departures(found, as_json)


@blocks.command()
@_conversation
@_as_json
@with_invocation
def verify(invocation: Invocation, conversation: str, as_json: bool) -> None:
    """Compare blocks, revisions, archive and traces with each other. Shows no text and changes nothing.

    Follows the chain of digests through every revision up to the present block.
    The exit code is 1 if something is missing or is not what was written.
    """
    from orchestrator.store.checks.evidence import departures

    def compare(access: "Access") -> "Result[Sequence[tuple[str, str, str]]]":
        keep = access.ledger.limits.revisions_kept
        return tuple(departures(access.tx, conversation, revisions_kept=keep)), ()

    found, _ = with_ledger(invocation, conversation, compare)
    _print_departures(found, as_json)


@blocks.command()
@_conversation
@click.argument("id", required=False, metavar="[ID]")
@_as_json
@with_invocation
def quarantine(invocation: Invocation, conversation: str, id: str | None, as_json: bool) -> None:
    """List the invalid texts of blocks in quarantine and why they are there. With an ID, show that text."""
    from orchestrator.ops.clock import as_text

    def read(access: "Access") -> "Result[Sequence[QuarantinedText]]":
        if id is None:
            return access.store.quarantined_texts(conversation), ()
        return access.ledger.view_quarantined(access.store, access.conversation, actor=access.actor, ids=[id])

    kept, _ = with_ledger(invocation, conversation, read)
    if id is not None and not kept:
        raise click.UsageError("Nothing in quarantine has this ID.")
    for each in kept:
        facts = _quarantine_facts(each)
        if as_json:
            click.echo(json.dumps(facts if id is None else facts | {"text": each.text}, ensure_ascii=False))
            continue
        click.echo(
            f"{as_text(each.found_at)}  {each.label.value:<21} {each.id}  {len(each.text):>6} characters"
            f"  by {each.actor}: {each.reason}"
        )
        if id is not None:
            click.echo(each.text)
    if not kept and not as_json:
        click.echo("Nothing is in quarantine.")


@blocks.command()
@_conversation
@with_invocation
def rotate(invocation: Invocation, conversation: str) -> None:
    """Archive all but the last turns now, whether or not rotation is switched on."""

    def write(access: "Access") -> "Result[tuple[int, ...]]":
        written = access.ledger.rotate(access.store, access.conversation, actor=access.actor)
        return written.rotated_out, written.receipts

    archived, _ = with_ledger(invocation, conversation, write)
    if len(archived) == 1:
        click.echo(f"Turn {archived[0]} was archived.")
    elif archived:
        click.echo(f"Turns {archived[0]} to {archived[-1]} were archived.")
    else:
        click.echo("There was nothing to archive.")


@blocks.command()
@_conversation
@with_invocation
def export(invocation: Invocation, conversation: str) -> None:
    """Print the blocks, archived turns, changes to facts and texts in quarantine as one JSON object."""

    def read(access: "Access") -> "Result[dict[str, object]]":
        store, ledger = access.store, access.ledger
        view = ledger.view(store, access.conversation, actor=access.actor)
        quarantined, receipts = ledger.view_quarantined(store, access.conversation, actor=access.actor)
        shortened = sorted(store.shortened_turns(conversation).items())
        exported: dict[str, object] = {"conversation": conversation}
        for each, block in view.blocks.items():
            value = _value(each.value, block.text)
            exported[each.value] = {"revision": block.revision, "digest": block.digest, "block": value}
        exported["archived_turns"] = [json.loads(turn.text) for turn in store.archived_turns(conversation)]
        exported["shortened_turns"] = [json.loads(text) for _, text in shortened]
        changes = store.fact_changes(conversation)
        exported["fact_changes"] = [change.model_dump(mode="json") for change in changes]
        exported["quarantined"] = [_quarantine_facts(each) | {"text": each.text} for each in quarantined]
        return exported, (*view.receipts, *receipts)

    exported, _ = with_ledger(invocation, conversation, read)
    click.echo(json.dumps(exported, ensure_ascii=False, indent=2))


@blocks.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@shared_options
def schemas(folder: Path) -> None:
    """Write the JSON Schemas of every block, in every version, into a folder."""
    from memory_blocks.schema import publications

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in publications():
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(name)


# --- using the ledger ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """What a command needs to use the ledger within one transaction."""

    ledger: "Ledger"
    store: "SqlBlockStore"
    conversation: "Conversation"
    actor: str
    tx: "Transaction"


def with_ledger(
    invocation: Invocation, conversation_id: str, work: "Callable[[Access], Result[Found]]"
) -> "Result[Found]":
    """Run `work` in one transaction, and store its receipts as traces of the operator.

    Traces of writes are also sent to the person's client; traces of reads are only stored.
    """
    settings = invocation.settings(quietly=True)

    from memory_blocks.errors import BlockError
    from memory_blocks.models import Conversation
    from memory_blocks.trace import Action
    from orchestrator.errors import AnamnesisError, as_ours
    from orchestrator.store.block_store import SqlBlockStore
    from orchestrator.turn.outbox import in_transaction
    from orchestrator.turn.traces import of_block, row_of_block
    from orchestrator.wiring import build_ledger, load_roster, open_store

    ledger = build_ledger(settings, load_roster(invocation.config))

    def transaction(tx: "Transaction") -> "Result[Found]":
        with in_transaction(tx, conversation_id) as write:
            row = write.conversation
            conversation = Conversation(row.id, row.user_id, row.created_at)
            found, receipts = work(
                Access(ledger, SqlBlockStore(tx.blocks), conversation, operator_name(), tx)
            )
            for receipt in receipts:
                trace_id = tx.ids.new("trace_")
                if receipt.action is Action.RETRIEVED:
                    tx.traces.add([row_of_block(receipt, trace_id, row.id, tx.now)])
                else:
                    write.say(of_block(receipt, trace_id, row.id))
        return found, receipts

    store = open_store(settings)
    problem: AnamnesisError | None = None
    try:
        found, receipts = store.write_now(transaction)
        _report_restored(receipts)
        return found, receipts
    except BlockError as error:
        problem = as_ours(error)
    finally:
        store.close_now()
    raise problem


def _report_restored(receipts: "Sequence[Receipt]") -> None:
    """Print on stderr which blocks were not valid and were restored."""
    for each in receipts:
        if each.quarantined and each.action != "retrieved":
            click.echo(
                f"{each.label.value} was not valid and is in quarantine as {each.quarantined};"
                f" revision {each.revision} is the last valid text again.",
                err=True,
            )


def _quarantine_facts(kept: "QuarantinedText") -> dict[str, object]:
    """What is shown about a text in quarantine, without the text."""
    from orchestrator.ops.clock import as_text

    return {
        "id": kept.id,
        "label": kept.label.value,
        "size": len(kept.text),
        "actor": kept.actor,
        "reason": kept.reason,
        "found_at": as_text(kept.found_at),
    }


def _labels(label: str | None) -> "Sequence[Label]":
    from memory_blocks.models import Label

    return tuple(Label) if label is None else (Label(label),)


def _value(label: str, text: str) -> object:
    """The value of a block: JSON, except that of the summary, which is text."""
    return text if label == "context_summary" else json.loads(text)


def _print_departures(found: Sequence[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        departures = [{"label": label, "path": path, "rule": rule} for label, path, rule in found]
        click.echo(json.dumps({"departures": departures}))
    else:
        for label, path, rule in found:
            click.echo(f"{label}, at {path}: {rule}")
        click.echo(f"{len(found) or 'no'} departure{'' if len(found) == 1 else 's'}")
    if found:
        raise click.exceptions.Exit(FOUND_SOMETHING)
