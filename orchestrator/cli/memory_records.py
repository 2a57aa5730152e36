"""`anamnesis memory list`, `show`, `pin`, `archive`, `delete`, `undo`, `export` and `report`."""

import getpass
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.memory import memory
from orchestrator.cli.options import Invocation, person_argument, with_invocation

if TYPE_CHECKING:
    from orchestrator.store.engine.database import Store, Transaction
    from orchestrator.store.rows import Memory, Retrieval

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_id = click.argument("memory_id", metavar="ID")


@contextmanager
def _store(invocation: Invocation) -> "Iterator[Store]":
    from orchestrator.wiring import open_store

    store = open_store(invocation.settings(quietly=True))
    try:
        yield store
    finally:
        store.close_now()


@memory.command("list")
@person_argument
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.option("--all", "everything", is_flag=True, help="List archived and deleted ones, too.")
@_as_json
@with_invocation
def list_(invocation: Invocation, user: str, limit: int, everything: bool, as_json: bool) -> None:
    """List the memories of USER: pinned ones first, then the newest."""
    with _store(invocation) as store:
        if everything:
            found = store.read_now(lambda tx: tx.memories.of_person_ever(user))[-limit:]
        else:
            found = store.read_now(lambda tx: tx.memories.of_person(user, limit=limit))
        names = store.read_now(lambda tx: _imported_ids(tx, user))
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

    def read(tx: "Transaction") -> "tuple[dict[str, Any], list[dict[str, Any]]]":
        found = _own(tx, user, memory_id)
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
        return _plain(found, _imported_ids(tx, user)), entries

    with _store(invocation) as store:
        shown, entries = store.read_now(read)
    if as_json:
        click.echo(json.dumps({**shown, "ledger": entries}, ensure_ascii=False, indent=2))
        return
    for name, value in shown.items():
        click.echo(f"{name:<12} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    for entry in entries:
        changed = ", ".join(entry["changed"] or ())
        click.echo(f"{entry['at']}  {entry['action']} by {entry['actor']}  {changed}".rstrip())


def _changing(
    name: str, says: str, done: str, change: "Callable[[Transaction, str, str], bool]"
) -> click.Command:
    """A command that changes one memory."""

    @memory.command(name, help=says)
    @person_argument
    @_id
    @with_invocation
    def command(invocation: Invocation, user: str, memory_id: str) -> None:
        from orchestrator.store.repositories.traces import STAFF

        actor = f"{STAFF}:{getpass.getuser()}"
        with _store(invocation) as store:
            store.write_now(lambda tx: change(tx, _own(tx, user, memory_id).id, actor))
        click.echo(done)

    return command


pin = _changing(
    "pin",
    "Pin a memory: searches prefer it.",
    "pinned",
    lambda tx, id, by: tx.memories.update(id, by=by, pinned=True),
)
unpin = _changing(
    "unpin", "Undo `pin`.", "no longer pinned", lambda tx, id, by: tx.memories.update(id, by=by, pinned=False)
)
archive = _changing(
    "archive",
    "Archive a memory: searches do not find it any more.",
    "archived; `memory unarchive` undoes it",
    lambda tx, id, by: tx.memories.update(id, by=by, archived=True),
)
unarchive = _changing(
    "unarchive",
    "Undo `archive`.",
    "no longer archived",
    lambda tx, id, by: tx.memories.update(id, by=by, archived=False),
)


@memory.command()
@person_argument
@_id
@click.option("--final", is_flag=True, help="Erase the content for good. This cannot be undone.")
@with_invocation
def delete(invocation: Invocation, user: str, memory_id: str, final: bool) -> None:
    """Delete a memory. `memory undo` brings it back, unless it was deleted with --final."""
    from orchestrator.store.repositories.traces import STAFF

    actor = f"{STAFF}:{getpass.getuser()}"

    def work(tx: "Transaction") -> None:
        found = _own(tx, user, memory_id, even_deleted=final)
        if final:
            tx.memories.erase(found.id, by=actor)
        else:
            tx.memories.delete(found.id, by=actor)

    with _store(invocation) as store:
        store.write_now(work)
    click.echo("erased" if final else "deleted; `memory undo` brings it back")


@memory.command()
@person_argument
@click.argument("memory_id", metavar="[ID]", required=False)
@with_invocation
def undo(invocation: Invocation, user: str, memory_id: str | None) -> None:
    """Bring back a deleted memory: the one with ID, or the one that was deleted last."""
    from orchestrator.errors import NOT_FOUND, AnamnesisError
    from orchestrator.store.repositories.traces import STAFF

    actor = f"{STAFF}:{getpass.getuser()}"

    def work(tx: "Transaction") -> str:
        deleted = [each for each in tx.memories.of_person_ever(user) if each.deleted_at and each.content]
        if memory_id is not None:
            wanted = _own(tx, user, memory_id, even_deleted=True).id
            deleted = [each for each in deleted if each.id == wanted]
        if not deleted:
            raise AnamnesisError(NOT_FOUND)
        last = max(deleted, key=lambda each: (each.deleted_at or each.created_at, each.id))
        tx.memories.restore(last.id, by=actor)
        return _imported_ids(tx, user).get(last.id, last.id)

    with _store(invocation) as store:
        click.echo(f"{store.write_now(work)} is back")


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
        return lines

    with _store(invocation) as store:
        for line in store.read_now(read):
            click.echo(json.dumps(line, ensure_ascii=False))


@memory.command()
@person_argument
@_as_json
@with_invocation
def report(invocation: Invocation, user: str, as_json: bool) -> None:
    """Sum up the recorded searches: candidates, drops, roles, tokens and time."""
    with _store(invocation) as store:
        figures = summed_up(store.read_now(lambda tx: tx.memory_index.retrievals(user)))
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


def _own(tx: "Transaction", user: str, memory_id: str, *, even_deleted: bool = False) -> "Memory":
    """A memory of this person by its id or the id of its import; raises if there is none."""
    from orchestrator.errors import NOT_FOUND, AnamnesisError
    from orchestrator.store.repositories.memories import MEMORY_BLOCK

    imported = tx.memory_index.by_external_id(user, memory_id)
    known = imported.memory_id if imported else memory_id
    found = tx.memories.get_even_deleted(known) if even_deleted else tx.memories.get(known)
    if found is None or found.user_id != user or found.source_type == MEMORY_BLOCK:
        raise AnamnesisError(NOT_FOUND)
    return found


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
