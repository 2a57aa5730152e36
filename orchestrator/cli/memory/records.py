"""`anamnesis memory list`, `show`, `edit`, `rate`, `pin`, `archive`, `delete`, `undo`, `export`, `report`.

Commands that show a text leave a trace with the operator's name; looking changes nothing else.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.memory.search import memory
from orchestrator.cli.options import Invocation, operator_name, person_argument, with_invocation

if TYPE_CHECKING:
    from orchestrator.inspection.memories import MemoryDecisions
    from orchestrator.remember.changing import Act, Deletion, MemoryChanges
    from orchestrator.store.engine.database import Store, Transaction
    from orchestrator.store.rows import Memory, Retrieval

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_id = click.argument("memory_id", metavar="ID")


@contextmanager
def _store(invocation: Invocation) -> "Iterator[Store]":
    from orchestrator.wiring import open_store

    store = open_store(invocation.settings(quietly=True), invocation.config)
    try:
        yield store
    finally:
        store.close_now()


def _trace_look(
    tx: "Transaction", user: str, found: "Sequence[Memory]", memory_id: str | None = None
) -> None:
    """Store a trace that an operator has read these memories; with `memory_id`, one of that memory."""
    from orchestrator.inspection.looks import Look, trace_memory

    if found:
        what = f"memory {memory_id}" if memory_id else f"{len(found)} memories"
        trace_memory(tx, Look(operator_name()), user, what, memory_id=memory_id)


@memory.command("list")
@person_argument
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.option("--all", "everything", is_flag=True, help="List archived and deleted ones, too.")
@_as_json
@with_invocation
def list_(invocation: Invocation, user: str, limit: int, everything: bool, as_json: bool) -> None:
    """List the memories of USER: pinned ones first, then the newest."""

    def read(tx: "Transaction") -> "tuple[list[Memory], dict[str, str]]":
        memories = tx.memories
        kept = memories.of_person_ever(user)[-limit:] if everything else memories.of_person(user, limit=limit)
        _trace_look(tx, user, kept)
        return kept, _imported_ids(tx, user)

    with _store(invocation) as store:
        found, names = store.write_now(read)
    for each in found:
        if as_json:
            click.echo(json.dumps(_plain(each, names), ensure_ascii=False))
        else:
            state = "deleted" if each.deleted_at else "archived" if each.archived else ""
            marks = " ".join(filter(None, ("pinned" if each.pinned else "", state)))
            text = " ".join(each.content.split())
            click.echo(f"{names.get(each.id, each.id)}  {each.source_type or 'memory'}  {marks}".rstrip())
            click.echo(f"    {text[:200]}")
    if not found and not as_json:
        click.echo("Nothing is remembered of this person.")


@memory.command()
@person_argument
@_id
@_as_json
@with_invocation
def show(invocation: Invocation, user: str, memory_id: str, as_json: bool) -> None:
    """Show one memory: its source, and everything that was changed."""
    from orchestrator.ops.clock import as_text
    from orchestrator.remember.changing import MemoryChanges

    def read(tx: "Transaction") -> "tuple[dict[str, Any], list[dict[str, Any]]]":
        found = MemoryChanges(tx, user, "").get(memory_id)
        entries = [
            {
                "number": each.number,
                "at": as_text(each.created_at),
                "action": each.action,
                "actor": each.actor,
                "changed": json.loads(each.body) if each.body else None,
            }
            for each in tx.memories.ledger.of_memory(user, found.id)
        ]
        _trace_look(tx, user, [found], found.id)
        return _plain(found, _imported_ids(tx, user)), entries

    with _store(invocation) as store:
        shown, entries = store.write_now(read)
    if as_json:
        click.echo(json.dumps({**shown, "ledger": entries}, ensure_ascii=False, indent=2))
        return
    for name, value in shown.items():
        click.echo(f"{name:<12} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    for entry in entries:
        changed = ", ".join(entry["changed"] or ())
        click.echo(f"{entry['at']}  {entry['action']} by {entry['actor']}  {changed}".rstrip())


def _change(
    invocation: Invocation, user: str, change: "Callable[[MemoryDecisions], Act]"
) -> "tuple[Act, dict[str, str]]":
    """Change memories, with traces; returns what changed, and the names of imported memories."""
    from orchestrator.inspection.looks import Look
    from orchestrator.inspection.memories import MemoryDecisions
    from orchestrator.wiring import build_ledger, load_roster

    look = Look(operator_name())
    ledger = build_ledger(invocation.settings(quietly=True), load_roster(invocation.config))

    def work(tx: "Transaction") -> "tuple[Act, dict[str, str]]":
        act = change(MemoryDecisions(tx, ledger, user, look))
        return act, _imported_ids(tx, user)

    with _store(invocation) as store:
        return store.write_now(work)


def _changing(
    name: str, says: str, done: str, change: "Callable[[MemoryChanges, str], Act]"
) -> click.Command:
    """A command that changes one memory."""

    @memory.command(name, help=says)
    @person_argument
    @_id
    @with_invocation
    def command(invocation: Invocation, user: str, memory_id: str) -> None:
        _change(
            invocation,
            user,
            lambda decisions: decisions.carry_out(lambda changes: change(changes, memory_id)),
        )
        click.echo(done)

    return command


pin = _changing("pin", "Pin a memory: searches prefer it.", "pinned", lambda changes, id: changes.pin(id))
unpin = _changing(
    "unpin", "Undo `pin`.", "no longer pinned", lambda changes, id: changes.pin(id, pinned=False)
)
archive = _changing(
    "archive",
    "Archive a memory: searches do not find it any more.",
    "archived; `memory unarchive` undoes it",
    lambda changes, id: changes.archive(id),
)
unarchive = _changing(
    "unarchive",
    "Undo `archive`.",
    "no longer archived",
    lambda changes, id: changes.archive(id, archived=False),
)


@memory.command()
@person_argument
@_id
@click.argument("rating", type=click.IntRange(0, 5))
@with_invocation
def rate(invocation: Invocation, user: str, memory_id: str, rating: int) -> None:
    """Rate a memory from 1 to 5, which counts in searches. 0 takes the rating away."""
    _change(
        invocation,
        user,
        lambda decisions: decisions.carry_out(lambda changes: changes.rate(memory_id, rating or None)),
    )
    click.echo(f"rated {rating}" if rating else "no longer rated")


@memory.command()
@person_argument
@_id
@click.argument("content")
@with_invocation
def edit(invocation: Invocation, user: str, memory_id: str, content: str) -> None:
    """Give a memory another content. If it keeps a fact, its conversations know the new one, too."""
    _change(invocation, user, lambda decisions: decisions.edit(memory_id, content))
    click.echo("edited; `memory undo` undoes it")


@memory.command()
@person_argument
@_id
@click.option("--final", is_flag=True, help="Erase the content for good. This cannot be undone.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@with_invocation
def delete(invocation: Invocation, user: str, memory_id: str, final: bool, dry_run: bool) -> None:
    """Delete a memory, with what was derived from it and the utterances that it rests on.

    `memory undo` brings all of it back, unless it was deleted with --final. The messages themselves stay in
    their conversations.
    """
    from orchestrator.remember.changing import MemoryChanges

    def preview(tx: "Transaction") -> "tuple[Deletion, dict[str, str]]":
        gone = MemoryChanges(tx, user, "").preview(memory_id, even_deleted=final)
        _trace_look(tx, user, [*gone.memories, *gone.derived, *gone.utterances])
        return gone, _imported_ids(tx, user)

    with _store(invocation) as store:
        gone, names = store.write_now(preview)
    groups = {"": gone.memories, "derived from it: ": gone.derived, "it rests on: ": gone.utterances}
    for why, memories in groups.items():
        for each in memories:
            click.echo(f"{names.get(each.id, each.id)}  {why}{' '.join(each.content.split())[:200]}")
    if dry_run:
        return
    _change(
        invocation,
        user,
        lambda decisions: decisions.carry_out(lambda changes: changes.delete(memory_id, final=final)),
    )
    click.echo("erased" if final else "deleted; `memory undo` brings it back")


@memory.command()
@person_argument
@click.argument("memory_id", metavar="[ID]", required=False)
@with_invocation
def undo(invocation: Invocation, user: str, memory_id: str | None) -> None:
    """Undo the last change of the memory with ID, or the last change of all, with all it took along."""
    act, names = _change(
        invocation,
        user,
        lambda decisions: decisions.carry_out(lambda changes: changes.undo(memory_id=memory_id)),
    )
    for each in act.changed:
        click.echo(f"{names.get(each.memory.id, each.memory.id)} is back")


@memory.command()
@person_argument
@with_invocation
def export(invocation: Invocation, user: str) -> None:
    """Print all memories of USER as JSON Lines, which `memory import` reads."""
    from orchestrator.ops.clock import as_text

    def read(tx: "Transaction") -> list[dict[str, Any]]:
        rows = {row.memory_id: row for row in tx.memory_index.since(user, -1)}
        ordered = sorted(
            (each for each in tx.memories.of_person_ever(user) if each.deleted_at is None),
            key=lambda each: rows[each.id].ordinal if each.id in rows else 0,
        )
        lines = []
        for each in ordered:
            row = rows.get(each.id)
            said_at = (row.said_at if row else None) or None
            line = {
                "id": (row.external_id if row else None) or each.id,
                "text": each.content,
                "speaker": row.speaker if row else None,
                "date": as_text(said_at) if said_at else None,
                "episode": row.episode if row else None,
                "tags": list(each.tags) or None,
            }
            lines.append({name: value for name, value in line.items() if value is not None})
        _trace_look(tx, user, ordered)
        return lines

    with _store(invocation) as store:
        for line in store.write_now(read):
            click.echo(json.dumps(line, ensure_ascii=False))


@memory.command()
@person_argument
@_as_json
@click.option(
    "--picture",
    "image",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw tokens, drops, use of the budget and roles into this SVG file.",
)
@with_invocation
def report(invocation: Invocation, user: str, as_json: bool, image: Path | None) -> None:
    """Sum up the recorded searches: candidates, drops, roles, tokens and time."""
    with _store(invocation) as store:
        searches = store.read_now(lambda tx: tx.memory_index.retrievals(user))
    figures = summed_up(searches)
    if image is not None:
        from orchestrator.cli.memory.picture import picture
        from orchestrator.errors import EXPORT_NOT_WRITTEN, os_errors_as

        with os_errors_as(EXPORT_NOT_WRITTEN, where=str(image)):
            image.write_text(picture(searches), encoding="utf-8", newline="")
    if as_json:
        click.echo(json.dumps(figures, indent=2))
        return
    if not figures["searches"]:
        click.echo("No search is recorded.")
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            most = max(value.values(), default=1) or 1
            click.echo(f"{name}:")
            for part, count in value.items():
                click.echo(f"    {part:<12} {count:>6}  {'█' * round(30 * count / most)}")
        else:
            click.echo(f"{name}: {value}")


def summed_up(retrievals: "list[Retrieval]") -> dict[str, Any]:
    """The figures of some recorded searches."""
    parts: list[dict[str, Any]] = [dict(each.observability) for each in retrievals]
    retrieval = [each["retrieval"] for each in parts if "retrieval" in each]
    packaging = [each["packaging"] for each in parts if "packaging" in each]
    assembly = [each["assembly"] for each in parts if "assembly" in each]
    candidates = sum(each["candidateCount"] for each in retrieval)
    dropped = sum(len(each["droppedIds"]) for each in packaging)
    used = [each["finalTokenCost"] / each["tokenBudget"] for each in assembly if each["tokenBudget"]]
    times = sorted(each.milliseconds for each in retrievals)
    return {
        "searches": len(retrievals),
        "without a result": sum(not each["finalIds"] for each in assembly),
        "candidates per search": round(candidates / len(retrieval), 1) if retrieval else 0,
        "share of candidates dropped": round(dropped / candidates, 3) if candidates else 0,
        "below the minimum per search": round(mean([each["belowMinimumCount"] for each in retrieval]), 1)
        if retrieval
        else 0,
        "tokens per search": round(mean([each["finalTokenCost"] for each in assembly]), 1) if assembly else 0,
        "share of the budget used": round(mean(used), 3) if used else None,
        "milliseconds, median": round(median(times), 2) if times else None,
        "milliseconds, 99 of 100 below": round(times[min(int(0.99 * len(times)), len(times) - 1)], 2)
        if times
        else None,
        "roles": dict(Counter(role for each in packaging for role in each["evidenceRoles"].values())),
        "package types": dict(Counter(each["packageType"] for each in packaging)),
    }


def _imported_ids(tx: "Transaction", user: str) -> dict[str, str]:
    """The id under which each imported memory was imported."""
    return {memory_id: external for external, (memory_id, *_) in tx.memory_index.external(user).items()}


def _plain(found: "Memory", names: dict[str, str]) -> dict[str, Any]:
    from orchestrator.ops.clock import as_text

    shown = {
        "id": names.get(found.id, found.id),
        "memory_id": found.id,
        "content": found.content,
        "type": found.source_type,
        "source": found.source_info,
        "tags": list(found.tags),
        "importance": found.importance,
        "confidence": found.confidence,
        "rating": found.user_rating,
        "pinned": found.pinned,
        "archived": found.archived,
        "created_at": as_text(found.created_at),
        "updated_at": as_text(found.updated_at),
        "deleted_at": as_text(found.deleted_at) if found.deleted_at else None,
    }
    return {name: value for name, value in shown.items() if value is not None}
