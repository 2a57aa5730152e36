"""`anamnesis letta`: shows, repairs or removes what belongs to our conversations on the Letta server."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import FOUND_SOMETHING, Invocation, shared_options, with_invocation

if TYPE_CHECKING:
    from orchestrator.letta.inspection import Finding
    from orchestrator.letta.upkeep import Upkeep

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_url = click.option("--url", help="Letta's address, instead of LETTA_BASE_URL.")


@click.group()
@shared_options
def letta() -> None:
    """Inspect and repair the agents and blocks on the Letta server.

    Needs only Letta's address: LETTA_BASE_URL, or --url. Model, tag and the like are those that
    `anamnesis serve` used last with this data folder, unless they are set.
    """


@letta.command()
@_as_json
@_url
@click.option("--all", "everything", is_flag=True, help="List what is ok, too.")
@with_invocation
def status(invocation: Invocation, as_json: bool, url: str | None, everything: bool) -> None:
    """List what is missing, outdated, changed or orphaned on the server, by id and name.

    A block is ok if its digest equals ours, and due if it only lacks the latest turns, which are written when
    the conversation pauses. The exit code is 1 if anything is neither ok nor due.
    """
    found = _run(invocation, url, lambda upkeep: upkeep.inspect())
    _print(found, as_json, everything=everything)
    if any(each.state not in ("ok", "due") for each in found):
        raise click.exceptions.Exit(FOUND_SOMETHING)


@letta.command()
@_as_json
@_url
@with_invocation
def sync(invocation: Invocation, as_json: bool, url: str | None) -> None:
    """Repair agents, blocks and archives, and list what is still wrong.

    What belongs to archived conversations is removed. The exit code is 1 if something could not be repaired.
    """
    still_wrong = _run(invocation, url, lambda upkeep: upkeep.sync())
    _print(still_wrong, as_json)
    if still_wrong:
        raise click.exceptions.Exit(FOUND_SOMETHING)


@letta.command()
@_as_json
@_url
@with_invocation
def prune(invocation: Invocation, as_json: bool, url: str | None) -> None:
    """Remove what belongs to archived conversations, and what has our tag and no conversation.

    This removes agents, blocks, archives, and people without an active conversation.
    """
    _print(_run(invocation, url, lambda upkeep: upkeep.prune()), as_json)


def _run(
    invocation: Invocation, url: str | None, work: "Callable[[Upkeep], Awaitable[Sequence[Finding]]]"
) -> "Sequence[Finding]":
    settings = invocation.settings({"letta.base_url": url} if url else {}, quietly=True)

    from orchestrator.wiring import open_upkeep

    async def run() -> "Sequence[Finding]":
        async with open_upkeep(settings, invocation.config) as upkeep:
            return await work(upkeep)

    return asyncio.run(run())


def _print(found: "Sequence[Finding]", as_json: bool, *, everything: bool = False) -> None:
    """Print the findings. As text, those that are ok are left out unless `everything` is set."""
    if as_json:
        items = [
            {
                "state": each.state,
                "conversation": each.conversation_id,
                "what": each.what,
                "id": each.id,
                "name": each.name,
            }
            for each in found
        ]
        click.echo(json.dumps({"found": items}))
        return
    for each in found:
        if everything or each.state != "ok":
            id = "" if each.id in each.what else each.id
            columns = [f"{each.state:<9}", f"{each.conversation_id:<30}", each.what, id, each.name]
            click.echo("  ".join(filter(None, columns)))
    counts = Counter(each.state for each in found)
    click.echo(", ".join(f"{count} {state}" for state, count in counts.items()) or "nothing found")
