"""The commands that look after the database: `anamnesis db upgrade`, `db status` and `check`."""

import json
from typing import TYPE_CHECKING

import click

from orchestrator.cli.frame import FOUND_SOMETHING, Invocation, pass_invocation, shared_options
from orchestrator.errors import DATABASE_DAMAGED, AnamnesisError

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from orchestrator.store.migrations import SchemaStatus


def schema_status(settings: "Settings") -> "SchemaStatus":
    """Which schema the configured database has. Makes nothing."""
    from orchestrator.store import migrations

    return migrations.status(settings.database_url(), busy_seconds=settings.database.busy_timeout_seconds)


def what_it_lacks(settings: "Settings") -> list[str]:
    """Tables, columns and rules that the configured database should have by its schema, and has not."""
    from orchestrator.store import migrations

    return migrations.missing(settings.database_url(), busy_seconds=settings.database.busy_timeout_seconds)


def bring_up(settings: "Settings") -> "SchemaStatus":
    """Make the configured database, or bring an older one to our schema."""
    from orchestrator.store import migrations

    if not settings.database.url:
        settings.data.prepare()
    migrations.upgrade(settings.database_url())
    return schema_status(settings)


def tell(schema: "SchemaStatus") -> str:
    """How a database's schema stands to the one we need, in a word."""
    if schema.is_current:
        return "current"
    if schema.found is None:
        return "missing"
    return "newer" if schema.is_newer else "older"


@click.group()
@shared_options
def db() -> None:
    """Make, bring up to date, or look at the database."""


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@shared_options
@pass_invocation
def upgrade(invocation: Invocation, as_json: bool) -> None:
    """Make the database, or bring an older one up to date."""
    settings = invocation.settings()
    before, after = schema_status(settings), bring_up(settings)
    if as_json:
        click.echo(json.dumps({"before": before.found, "found": after.found, "needed": after.needed}))
    elif before.is_current:
        click.echo(f"The database is up to date (schema {after.found}).")
    else:
        click.echo(f"The database now has schema {after.found}.")


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@shared_options
@pass_invocation
@click.pass_context
def status(context: click.Context, invocation: Invocation, as_json: bool) -> None:
    """Say which schema the database has and which one is needed.

    Ends with 1 when they differ.
    """
    schema = schema_status(invocation.settings())
    state = tell(schema)
    if as_json:
        click.echo(json.dumps({"found": schema.found, "needed": schema.needed, "state": state}))
    elif state == "missing":
        click.echo("There is no database yet. `anamnesis db upgrade` makes it.")
    elif state == "current":
        click.echo(f"The database is up to date (schema {schema.found}).")
    else:
        then = "Run `anamnesis db upgrade`." if state == "older" else "Install a newer anamnesis."
        click.echo(f"The database has schema {schema.found}; this program needs {schema.needed}. {then}")
    if state != "current":
        context.exit(FOUND_SOMETHING)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--at-rest", is_flag=True, help="No server is running: what is unfinished counts, too.")
@shared_options
@pass_invocation
@click.pass_context
def check(context: click.Context, invocation: Invocation, as_json: bool, at_rest: bool) -> None:
    """Look for anything in the database that must never be.

    Ends with 1 and the ids in question when something was found. Shows no text, and changes nothing.
    """
    from dataclasses import asdict

    from orchestrator.clock import SystemClock
    from orchestrator.store.database import Store
    from orchestrator.store.invariants import Look, look_through
    from orchestrator.store.soundness import Violation
    from orchestrator.wire.ids import RandomIds

    def look(settings: "Settings") -> Look:
        store = Store.open(
            settings.database_url(),
            clock=SystemClock(),
            ids=RandomIds(),
            busy_seconds=settings.database.busy_timeout_seconds,
            synchronous=settings.database.synchronous,
        )
        mirrored = bool(settings.letta.base_url)
        try:
            return store.read_now(lambda tx: look_through(tx.unit, quiesced=at_rest, mirrored=mirrored))
        finally:
            store.close_now()

    try:
        looked = look(invocation.settings())
    except AnamnesisError as refused:
        if refused.problem is not DATABASE_DAMAGED:
            raise
        looked = Look([Violation("I21", "the file is damaged", (str(refused.facts["where"]),))], 0)
    if as_json:
        click.echo(json.dumps(asdict(looked)))
    else:
        for violation in looked.violations:
            click.echo(violation)
        click.echo(f"{len(looked.violations) or 'no'} violations in {looked.conversations} conversations")
    if looked.violations:
        context.exit(FOUND_SOMETHING)
