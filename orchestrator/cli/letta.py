"""`anamnesis letta`: what stands for our conversations in Letta, brought up to date or removed."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.frame import FOUND_SOMETHING, Invocation, pass_invocation, shared_options

if TYPE_CHECKING:
    from orchestrator.letta_upkeep import Found, Upkeep

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.group()
@shared_options
def letta() -> None:
    """Look at the agents and blocks in Letta, and set them right.

    Needs LETTA_BASE_URL.
    """


@letta.command()
@_as_json
@click.option("--all", "everything", is_flag=True, help="List what is ok, too.")
@shared_options
@pass_invocation
@click.pass_context
def status(context: click.Context, invocation: Invocation, as_json: bool, everything: bool) -> None:
    """Say what exists there, what fell behind or drifted, and what is orphaned, by id and name.

    A block is ok when its digest there is the one here. Ends with 1 when anything is not.
    """
    found = _ask(invocation, lambda upkeep: upkeep.inspect())
    _tell(found, as_json, everything=everything)
    if any(each.state != "ok" for each in found):
        context.exit(FOUND_SOMETHING)


@letta.command()
@_as_json
@shared_options
@pass_invocation
@click.pass_context
def sync(context: click.Context, invocation: Invocation, as_json: bool) -> None:
    """Bring agents, blocks and archive there to what they are to be.

    What stands for archived conversations is removed. Ends with 1 when something could not be.
    """
    left = _ask(invocation, lambda upkeep: upkeep.sync())
    _tell(left, as_json)
    if left:
        context.exit(FOUND_SOMETHING)


@letta.command()
@_as_json
@shared_options
@pass_invocation
def prune(invocation: Invocation, as_json: bool) -> None:
    """Remove what is there of archived conversations, and what under our tag is nobody's.

    Agents and blocks are removed, and people of whom no conversation goes on.
    """
    _tell(_ask(invocation, lambda upkeep: upkeep.prune()), as_json)


def _ask(invocation: Invocation, ask: "Callable[[Upkeep], Awaitable[Sequence[Found]]]") -> "Sequence[Found]":
    settings = invocation.settings(quietly=True)

    from orchestrator.wiring import open_upkeep

    async def asking() -> "Sequence[Found]":
        async with open_upkeep(settings, invocation.config) as upkeep:
            return await ask(upkeep)

    return asyncio.run(asking())


def _tell(found: "Sequence[Found]", as_json: bool, *, everything: bool = False) -> None:
    """Tell what was found; in words, what is ok only where `everything` was asked for."""
    if as_json:
        told = [
            {
                "state": each.state,
                "conversation": each.conversation_id,
                "what": each.what,
                "id": each.id,
                "name": each.name,
            }
            for each in found
        ]
        click.echo(json.dumps({"found": told}))
        return
    for each in found:
        if everything or each.state != "ok":
            id = "" if each.id in each.what else each.id
            words = [f"{each.state:<9}", f"{each.conversation_id:<30}", each.what, id, each.name]
            click.echo("  ".join(filter(None, words)))
    counted = Counter(each.state for each in found)
    click.echo(", ".join(f"{count} {state}" for state, count in counted.items()) or "nothing to tell")
