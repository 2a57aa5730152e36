"""`anamnesis memory`: imports long-term memories, searches them, and says why one was or was not found."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import (
    FOUND_SOMETHING,
    Invocation,
    operator_name,
    person_argument,
    shared_options,
    with_invocation,
)

if TYPE_CHECKING:
    from agents.ports import Embedder
    from orchestrator.recall.context.result import RetrievalResult
    from orchestrator.recall.service import MemoryService
    from orchestrator.store.engine.database import Store, Transaction

_file = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@dataclass(frozen=True, slots=True)
class Access:
    """An open store with what searches it."""

    store: "Store"
    embedder: "Embedder"
    service: "MemoryService"
    actor: str


@contextmanager
def opened(invocation: Invocation, *, quietly: bool = True) -> Iterator[Access]:
    """Open the store and load the embedding model, while the block runs."""
    from orchestrator.wiring import build_memory, load_embedder, load_memory_embedders, open_store

    settings = invocation.settings(quietly=quietly)
    store = open_store(settings, invocation.config)
    try:
        embedders = load_memory_embedders(settings, load_embedder(settings))
        service = build_memory(settings, store, embedders.queries, invocation.config)
        yield Access(store, embedders.passages, service, operator_name())
    finally:
        store.close_now()


@click.group()
@shared_options
def memory() -> None:
    """Import, search and change what is remembered of a person.

    USER is the id of a person. An ID is that of a memory, or the one it was imported under.
    """


@memory.command("import")
@person_argument
@click.argument("file", type=_file)
@_as_json
@with_invocation
def import_(invocation: Invocation, user: str, file: Path, as_json: bool) -> None:
    """Import memories from FILE, which has one JSON object per line; - is standard input.

    Each has `id` and `text`, and may have `speaker`, `date`, `episode` and `tags`. A line whose id is known
    changes that memory, or nothing if it is the same; so an import that was interrupted can be run again.
    """
    from orchestrator.remember.importing import Progress, import_lines

    with (
        click.open_file(str(file), encoding="utf-8", errors="replace") as lines,
        opened(invocation) as access,
    ):
        known = list(lines)
        progress = Progress()
        with click.progressbar(length=len(known), label="importing", file=sys.stderr) as bar:
            for progress in import_lines(access.store, access.embedder, user, known, actor=access.actor):
                bar.update(progress.read - bar.pos)
            bar.update(len(known) - bar.pos)
    for number, reason in progress.unreadable:
        click.echo(f"line {number}: {reason}", err=True)
    counts = {
        "read": progress.read,
        "added": progress.added,
        "updated": progress.updated,
        "unchanged": progress.unchanged,
        "undated": progress.undated,
        "unreadable": len(progress.unreadable),
    }
    if as_json:
        click.echo(json.dumps(counts))
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
    if progress.unreadable:
        raise click.exceptions.Exit(FOUND_SOMETHING)


@memory.command()
@person_argument
@click.argument("query", required=False)
@click.option("--queries", type=_file, help="Search for each line of a file: JSON with `id` and `query`.")
@click.option("--limit", type=click.IntRange(1, 10_000), help="How many memories to return.")
@click.option("--recipe", help="The recipe of recall.toml to search by.")
@click.option(
    "--mode", type=click.Choice(["flat", "packed", "tiered"]), default="flat", show_default=True,
    help="How the context is laid out: without a budget, within one, or in tiers within one.",
)  # fmt: skip
@click.option("--budget", type=click.IntRange(1), help="How many tokens the context may have.")
@click.option("--explain", is_flag=True, help="Show every signal, and the way from candidate to context.")
@click.option("--why", "why_id", metavar="ID", help="Say why this memory was found, or where it fell out.")
@click.option("--skip-repair", is_flag=True, help="Do not search again with corrected spelling.")
@_as_json
@with_invocation
def search(
    invocation: Invocation,
    user: str,
    query: str | None,
    queries: Path | None,
    limit: int | None,
    recipe: str | None,
    mode: Any,
    budget: int | None,
    explain: bool,
    why_id: str | None,
    skip_repair: bool,
    as_json: bool,
) -> None:
    """Search the memories of USER, best first."""
    from orchestrator.recall.service import SearchOptions

    if (query is None) == (queries is None):
        raise click.UsageError("Give QUERY or --queries FILE.")
    with opened(invocation) as access:
        options = SearchOptions(limit, recipe, mode, budget, skip_repair)
        if queries is not None:
            _search_all(access, user, queries, options)
            return
        if why_id is not None:
            _say_why(access, user, query or "", options, why_id, as_json=as_json)
            return
        result = access.service.search(user, query or "", options)
        _record(access, user, [result])
    if as_json:
        click.echo(json.dumps(result.plain(), ensure_ascii=False, indent=2))
    else:
        _show(result, explain=explain)


def _search_all(access: Access, user: str, queries: Path, options: Any) -> None:
    """Print one line of JSON per query, in the order of the file."""
    results: list[RetrievalResult] = []
    with click.open_file(str(queries), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                asked = json.loads(line)
                known_id, query = asked["id"], str(asked["query"])
            except (ValueError, KeyError, TypeError):
                raise click.UsageError(f"Line {number} is no JSON object with `id` and `query`.") from None
            result = access.service.search(user, query, options)
            results.append(result)
            found = [
                {"id": each.external_id or each.id, "score": each.score, "signals": dict(each.signals)}
                for each in result.memories
            ]
            click.echo(json.dumps({"id": known_id, "results": found}, ensure_ascii=False))
    _record(access, user, results)


def _record(access: Access, user: str, results: "list[RetrievalResult]") -> None:
    """Store which searches were made, and a trace of the look if memories were found.

    A search that named a memory found it without searching.
    """
    from orchestrator.inspection.looks import Look, trace_memory
    from orchestrator.recall.service import retrieval_row

    searched = [each for each in results if each.retrieval_summary is not None]
    found = sum(len(each.memories) for each in results)

    def write(tx: "Transaction") -> None:
        tx.memory_index.record([retrieval_row(each, tx, user, actor=access.actor) for each in searched])
        if found:
            trace_memory(tx, Look(access.actor), user, f"{found} memories that a search found")

    access.store.write_now(write)


def _say_why(access: Access, user: str, query: str, options: Any, why_id: str, *, as_json: bool) -> None:
    from dataclasses import replace

    from orchestrator.recall.service import own_memory
    from orchestrator.recall.why import why

    found = access.store.read_now(lambda tx: own_memory(tx, user, why_id))
    watched = (found.id,) if found else ()
    result = access.service.search(user, query, replace(options, watched=watched))
    _record(access, user, [result])
    indexed = access.store.read_now(lambda tx: tx.memory_index.get(user, found.id)) if found else None
    boundary, says = why(result, found, indexed, access.embedder.name)
    click.echo(json.dumps({"id": why_id, "boundary": boundary, "reason": says}) if as_json else says)


def _show(result: "RetrievalResult", *, explain: bool) -> None:
    packaging, retrieval = result.packaging_summary, result.retrieval_summary
    for each in result.memories:
        said = f"{each.said_at:%Y-%m-%d}" if each.said_at else "no date"
        role = packaging.evidence_roles.get(each.id, "") if packaging else ""
        who = f"{each.speaker}: " if each.speaker else ""
        click.echo(f"{each.position:>3}  {each.score:.3f}  {said}  {role:<10}  {each.external_id or each.id}")
        click.echo(f"     {who}{' '.join(each.content.split())}")
        if explain:
            signals = "  ".join(f"{name} {value:+.2f}" for name, value in each.signals.items())
            click.echo(click.style(f"     cosine {each.similarity:.2f}  {signals}", dim=True))
    if retrieval is None:
        return
    if not result.memories:
        click.echo("Nothing was found.")
    dates = f", only {retrieval.period}" if retrieval.period else ""
    click.echo(
        f"{retrieval.searched_count} memories searched{dates}; {retrieval.below_minimum_count} scored below"
        f" {retrieval.minimum_score}. {result.milliseconds:.1f} ms without the embedding."
    )
    if explain:
        _show_journey(result)


def _show_journey(result: "RetrievalResult") -> None:
    """The way of each candidate: found, included, in the final context."""
    retrieval, packaging = result.retrieval_summary, result.packaging_summary
    assembly = result.assembly_summary
    if retrieval is None or packaging is None or assembly is None:
        return
    click.echo(f"\n{'candidate':<28} {'score':<6} {'included':<16} final")
    for candidate in retrieval.candidates:
        id, name = candidate["id"], candidate.get("externalId", candidate["id"])
        included = packaging.evidence_roles.get(id) or packaging.drop_reasons.get(id) or "-"
        final = f"{assembly.final_ids.index(id) + 1}" if id in assembly.final_ids else "-"
        click.echo(f"{name:<28} {candidate['score']:<6.3f} {included:<16} {final}")
    budget = assembly.token_budget if assembly.token_budget is not None else "no budget"
    click.echo(
        f"{packaging.package_type}: {packaging.token_cost} tokens packaged,"
        f" {assembly.final_token_cost} in the context, {budget}"
    )
