"""The commands for the database: `anamnesis db upgrade`, `db status` and `check`."""

import json
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import FOUND_SOMETHING, Invocation, shared_options, with_invocation
from orchestrator.errors import DATABASE_DAMAGED, AnamnesisError

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from orchestrator.store.migrations import SchemaStatus


def schema_status(settings: "Settings") -> "SchemaStatus":
    """The schema version of the configured database. Creates nothing."""
    from orchestrator.store import migrations

    return migrations.status(settings.database_url(), busy_seconds=settings.database.busy_timeout_seconds)


def missing_parts(settings: "Settings") -> list[str]:
    """The tables, columns and rules that the configured database lacks although its schema is ours."""
    from orchestrator.store import migrations

    return migrations.missing(settings.database_url(), busy_seconds=settings.database.busy_timeout_seconds)


def upgrade_database(settings: "Settings") -> "SchemaStatus":
    """Create the configured database, or upgrade an older one to our schema."""
    from orchestrator.store import migrations

    if not settings.database.url:
        settings.data.prepare()
    migrations.upgrade(settings.database_url())
    return schema_status(settings)


def state_of(schema: "SchemaStatus") -> str:
    """The schema version compared with the one we need: current, missing, older or newer."""
    if schema.is_current:
        return "current"
    if schema.found is None:
        return "missing"
    return "newer" if schema.is_newer else "older"


@click.group()
@shared_options
def db() -> None:
    """Create, upgrade or inspect the database."""


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_invocation
def upgrade(invocation: Invocation, as_json: bool) -> None:
    """Create the database, or upgrade an older one."""
    settings = invocation.settings()
    before, after = schema_status(settings), upgrade_database(settings)
    if as_json:
        click.echo(json.dumps({"before": before.found, "found": after.found, "needed": after.needed}))
    elif before.is_current:
        click.echo(f"The database is up to date (schema {after.found}).")
    else:
        click.echo(f"The database now has schema {after.found}.")


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_invocation
def status(invocation: Invocation, as_json: bool) -> None:
    """Show which schema version the database has and which one is needed.

    The exit code is 1 if they differ.
    """
    schema = schema_status(invocation.settings())
    state = state_of(schema)
    if as_json:
        click.echo(json.dumps({"found": schema.found, "needed": schema.needed, "state": state}))
    elif state == "missing":
        click.echo("There is no database yet. `anamnesis db upgrade` creates it.")
    elif state == "current":
        click.echo(f"The database is up to date (schema {schema.found}).")
    else:
        then = "Run `anamnesis db upgrade`." if state == "older" else "Install a newer anamnesis."
        click.echo(f"The database has schema {schema.found}; this program needs {schema.needed}. {then}")
    if state != "current":
        raise click.exceptions.Exit(FOUND_SOMETHING)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--at-rest",
    is_flag=True,
    help="No server is running: open turns and unfinished copies count as violations, too.",
)
@with_invocation
def check(invocation: Invocation, as_json: bool, at_rest: bool) -> None:
    """Check the invariants of the database.

    The exit code is 1 if a violation was found. Prints ids and never what people wrote; changes nothing.
    """
    from dataclasses import asdict, replace

    from orchestrator.ops.clock import SystemClock
    from orchestrator.remember.creators.status import broken_ledgers
    from orchestrator.store.checks.invariants import Report, check_all
    from orchestrator.store.checks.violations import Violation
    from orchestrator.store.engine.database import Store
    from orchestrator.wire.ids import RandomIds
    from orchestrator.workflows.building import build_memory_ledger, load_memory_config

    def check_database(settings: "Settings") -> Report:
        store = Store.open(
            settings.database_url(),
            clock=SystemClock(),
            ids=RandomIds(),
            busy_seconds=settings.database.busy_timeout_seconds,
            synchronous=settings.database.synchronous,
        )
        mirrored = bool(settings.letta.base_url)
        try:
            report = store.read_now(lambda tx: check_all(tx.unit, quiesced=at_rest, mirrored=mirrored))
            ledger = build_memory_ledger(settings, store, load_memory_config(invocation.config))
            return replace(report, violations=[*report.violations, *broken_ledgers(store, ledger)])
        finally:
            store.close_now()

    try:
        report = check_database(invocation.settings())
    except AnamnesisError as refused:
        if refused.problem is not DATABASE_DAMAGED:
            raise
        report = Report([Violation("I21", "the file is damaged", (str(refused.facts["where"]),))], 0)
    if as_json:
        click.echo(json.dumps(asdict(report)))
    else:
        for violation in report.violations:
            click.echo(violation)
        click.echo(f"{len(report.violations) or 'no'} violations in {report.conversations} conversations")
    if report.violations:
        raise click.exceptions.Exit(FOUND_SOMETHING)
