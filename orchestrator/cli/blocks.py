"""`anamnesis blocks`: the four memory blocks of a conversation, as they stand and as they stood.

Whoever is shown what a block says sees it through the ledger, and leaves a trace with their own name, as
does `validate`. `history`, `verify` and the list of `quarantine` show no text, and leave none.
"""

import getpass
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.frame import FOUND_SOMETHING, Invocation, pass_invocation, shared_options

if TYPE_CHECKING:
    from memory_blocks.ledger import Ledger
    from memory_blocks.models import Conversation, Label
    from memory_blocks.ports import Revision, SetAside
    from memory_blocks.trace import Receipt
    from orchestrator.store.block_store import SqlBlockStore
    from orchestrator.store.database import Transaction

_conversation = click.argument("conversation")
_LABELS: Final = click.Choice(
    ["conversation_history", "active_session", "context_summary", "memory_metadata"]
)
_label = click.argument("label", type=_LABELS, required=False, metavar="[LABEL]")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.group()
@shared_options
def blocks() -> None:
    """Look at the memory blocks of a conversation, now or at any turn.

    A LABEL is conversation_history, active_session, context_summary or memory_metadata.
    """


@blocks.command()
@_conversation
@_label
@click.option("--at-turn", type=click.IntRange(1), help="As it stood after this turn.")
@click.option("--revision", type=click.IntRange(1), help="As it stood at this revision.")
@_as_json
@shared_options
@pass_invocation
def show(
    invocation: Invocation,
    conversation: str,
    label: str | None,
    at_turn: int | None,
    revision: int | None,
    as_json: bool,
) -> None:
    """Show the blocks, or the one with a LABEL.

    That is conversation_history, active_session, context_summary or memory_metadata.
    """
    if at_turn and revision:
        raise click.UsageError("Give --at-turn or --revision, not both.")
    wanted = _labels(label)

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        looked = door.ledger.look(
            door.store, door.conversation, actor=door.actor, labels=wanted, revision=revision, turn=at_turn
        )
        texts.update({label.value: block.text for label, block in looked.blocks.items()})
        return looked.receipts

    texts: dict[str, str] = {}
    receipts = {
        receipt.label.value: receipt for receipt in _through_the_ledger(invocation, conversation, look)
    }
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
@shared_options
@pass_invocation
def history(invocation: Invocation, conversation: str, label: str | None, as_json: bool) -> None:
    """List the revisions of the blocks, or of one of them: who wrote what, at which turn. Shows no text."""
    from orchestrator.clock import as_text

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        for each in _labels(label):
            for revision in door.store.revisions(conversation, each):
                found.append((each.value, revision))
        return ()

    found: list[tuple[str, Revision]] = []
    _through_the_ledger(invocation, conversation, look)
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
        click.echo("Nothing was written yet.")


@blocks.command()
@_conversation
@click.argument("label", type=_LABELS, metavar="LABEL")
@click.argument("first", type=click.IntRange(1))
@click.argument("second", type=click.IntRange(1))
@shared_options
@pass_invocation
def diff(invocation: Invocation, conversation: str, label: str, first: int, second: int) -> None:
    """Show what changed in a block between two revisions."""
    from memory_blocks.diff import line_changes
    from memory_blocks.models import Label

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        receipts: list[Receipt] = []
        for revision in (first, second):
            looked = door.ledger.look(
                door.store, door.conversation, actor=door.actor, labels=[Label(label)], revision=revision
            )
            texts.append(looked.blocks[Label(label)].text)
            receipts.extend(looked.receipts)
        return tuple(receipts)

    texts: list[str] = []
    _through_the_ledger(invocation, conversation, look)
    colors = {"+": "green", "-": "red", "~": "yellow"}
    for sign, line in line_changes(Label(label), *texts):
        click.echo(click.style(f"{sign} {line}", fg=colors[sign]))


@blocks.command()
@_conversation
@_as_json
@shared_options
@pass_invocation
@click.pass_context
def validate(context: click.Context, invocation: Invocation, conversation: str, as_json: bool) -> None:
    """Say by path where the blocks are not what they must be. Shows no text, and changes nothing.

    Ends with 1 when there is a departure.
    """

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        departures, receipts = door.ledger.examine(door.store, door.conversation, actor=door.actor)
        found.extend((label.value, path, rule) for label, path, rule in departures)
        return receipts

    found: list[tuple[str, str, str]] = []
    _through_the_ledger(invocation, conversation, look)
    _tell_departures(context, found, as_json)


@blocks.command()
@_conversation
@_as_json
@shared_options
@pass_invocation
@click.pass_context
def verify(context: click.Context, invocation: Invocation, conversation: str, as_json: bool) -> None:
    """Compare blocks, revisions, archive and traces with each other. Shows no text, and changes nothing.

    Follows the chain of digests through every revision up to the block itself.
    Ends with 1 when something is not what was written, or is missing.
    """
    from orchestrator.store.evidence import departures

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        keep = door.ledger.limits.revisions_kept
        found.extend(departures(door.tx, conversation, revisions_kept=keep))
        return ()

    found: list[tuple[str, str, str]] = []
    _through_the_ledger(invocation, conversation, look)
    _tell_departures(context, found, as_json)


@blocks.command()
@_conversation
@click.argument("id", required=False, metavar="[ID]")
@_as_json
@shared_options
@pass_invocation
def quarantine(invocation: Invocation, conversation: str, id: str | None, as_json: bool) -> None:
    """List what could not stand in the blocks, and why; or show the one with an ID."""
    from orchestrator.clock import as_text

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        if id is None:
            kept.extend(door.store.set_aside(conversation))
            return ()
        found, receipts = door.ledger.look_aside(door.store, door.conversation, actor=door.actor, ids=[id])
        kept.extend(found)
        return receipts

    kept: list[SetAside] = []
    _through_the_ledger(invocation, conversation, look)
    if id is not None and not kept:
        raise click.UsageError("Nothing in quarantine has this ID.")
    for each in kept:
        facts = _of_quarantine(each)
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
@shared_options
@pass_invocation
def rotate(invocation: Invocation, conversation: str) -> None:
    """Archive all but the last turns now, whether or not rotation is switched on."""

    def work(door: "_Door") -> "tuple[Receipt, ...]":
        written = door.ledger.rotate(door.store, door.conversation, actor=door.actor)
        archived.extend(written.rotated_out)
        return written.receipts

    archived: list[int] = []
    _through_the_ledger(invocation, conversation, work)
    if len(archived) == 1:
        click.echo(f"Turn {archived[0]} was archived.")
    elif archived:
        click.echo(f"Turns {archived[0]} to {archived[-1]} were archived.")
    else:
        click.echo("There was nothing to archive.")


@blocks.command()
@_conversation
@shared_options
@pass_invocation
def export(invocation: Invocation, conversation: str) -> None:
    """Print the blocks, every archived turn, whole, and what is in quarantine, as one JSON object."""

    def look(door: "_Door") -> "tuple[Receipt, ...]":
        looked = door.ledger.look(door.store, door.conversation, actor=door.actor)
        for each, block in looked.blocks.items():
            value = _value(each.value, block.text)
            exported[each.value] = {"revision": block.revision, "digest": block.digest, "block": value}
        exported["archived_turns"] = [json.loads(turn.text) for turn in door.store.archive(conversation)]
        held = door.store.held(conversation).items()
        exported["shortened_turns"] = [json.loads(text) for _, text in sorted(held)]
        aside, of_those = door.ledger.look_aside(door.store, door.conversation, actor=door.actor)
        exported["quarantined"] = [_of_quarantine(each) | {"text": each.text} for each in aside]
        return *looked.receipts, *of_those

    exported: dict[str, object] = {"conversation": conversation}
    _through_the_ledger(invocation, conversation, look)
    click.echo(json.dumps(exported, ensure_ascii=False, indent=2))


@blocks.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@shared_options
def schemas(folder: Path) -> None:
    """Write the JSON Schema of every block and version into a folder."""
    from memory_blocks.schema import publications

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in publications():
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(name)


# --- through the ledger -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Door:
    """What a command needs to ask the ledger, in one transaction."""

    ledger: "Ledger"
    store: "SqlBlockStore"
    conversation: "Conversation"
    actor: str
    tx: "Transaction"


def _through_the_ledger(
    invocation: Invocation, conversation_id: str, ask: "Callable[[_Door], tuple[Receipt, ...]]"
) -> "tuple[Receipt, ...]":
    """Ask in one transaction, and keep the receipts as traces of whoever is at the keyboard.

    The person is told of what was written; what staff has looked at stays between staff and the tables.
    """
    settings = invocation.settings(quietly=True)

    from memory_blocks.errors import BlockError
    from memory_blocks.models import Conversation
    from memory_blocks.trace import Action
    from orchestrator.errors import AnamnesisError, as_ours
    from orchestrator.outbox import beside
    from orchestrator.store.block_store import SqlBlockStore
    from orchestrator.traces import of_block, row_of_block
    from orchestrator.wiring import build_ledger, load_roster, open_store

    ledger = build_ledger(settings, load_roster(invocation.config))

    def work(tx: "Transaction") -> "tuple[Receipt, ...]":
        with beside(tx, conversation_id) as page:
            found = page.conversation
            conversation = Conversation(found.id, found.user_id, found.created_at)
            receipts = ask(_Door(ledger, SqlBlockStore(tx.blocks), conversation, _operator(), tx))
            for receipt in receipts:
                trace_id = tx.ids.new("trace_")
                if receipt.action is Action.RETRIEVED:
                    tx.traces.add([row_of_block(receipt, trace_id, found.id, tx.now)])
                else:
                    page.say(of_block(receipt, trace_id, found.id))
        return receipts

    store = open_store(settings)
    problem: AnamnesisError | None = None
    try:
        receipts = store.write_now(work)
        _tell_restored(receipts)
        return receipts
    except BlockError as error:
        problem = as_ours(error)
    finally:
        store.close_now()
    raise problem


def _tell_restored(receipts: "Sequence[Receipt]") -> None:
    """Say beside what was asked for that a block could not stand, and another stands in its place."""
    for each in receipts:
        if each.quarantined and each.action != "retrieved":
            click.echo(
                f"{each.label.value} could not stand and is in quarantine as {each.quarantined};"
                f" revision {each.revision} is the last valid one again.",
                err=True,
            )


def _of_quarantine(kept: "SetAside") -> dict[str, object]:
    """What is told of a text in quarantine without the text."""
    from orchestrator.clock import as_text

    return {
        "id": kept.id,
        "label": kept.label.value,
        "size": len(kept.text),
        "actor": kept.actor,
        "reason": kept.reason,
        "found_at": as_text(kept.found_at),
    }


def _operator() -> str:
    from orchestrator.store.traces import STAFF

    try:
        return f"{STAFF}:{getpass.getuser()}"
    except (KeyError, OSError):  # no name for this user on this machine
        return STAFF


def _labels(label: str | None) -> "Sequence[Label]":
    from memory_blocks.models import Label

    return tuple(Label) if label is None else (Label(label),)


def _value(label: str, text: str) -> object:
    """What a block holds: JSON, but for the summary, which is text."""
    return text if label == "context_summary" else json.loads(text)


def _tell_departures(context: click.Context, found: Sequence[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        told = [{"label": label, "path": path, "rule": rule} for label, path, rule in found]
        click.echo(json.dumps({"departures": told}))
    else:
        for label, path, rule in found:
            click.echo(f"{label}, at {path}: {rule}")
        click.echo(f"{len(found) or 'no'} departure{'' if len(found) == 1 else 's'}")
    if found:
        context.exit(FOUND_SOMETHING)
