"""`anamnesis keys`: makes, lists and revokes API keys."""

import json
from datetime import timedelta

import click

from orchestrator.cli.options import (
    FOUND_SOMETHING,
    Invocation,
    operator_name,
    shared_options,
    with_invocation,
)

_ROLES = click.Choice(["person", "service", "analyst", "operator", "privacy", "auditor"])


@click.group()
@shared_options
def keys() -> None:
    """Make, list and revoke the API keys of programs and of staff.

    Only a digest of a key is stored. Each person's own key is in keys.json instead.
    """


@keys.command()
@click.argument("name")
@click.option("--user", required=True, help="The person who uses the key; traces name them.")
@click.option("--role", "roles", type=_ROLES, multiple=True, help="May be repeated.  [default: person]")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="What it is for, such as traces:read; may be repeated.  [default: *]",
)
@click.option("--days", type=click.IntRange(1, 366), default=90, show_default=True, help="Until it expires.")
@click.option("--reason", help="Why; needed for the scope texts:read, and kept in the traces of its reads.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@with_invocation
def create(
    invocation: Invocation,
    name: str,
    user: str,
    roles: tuple[str, ...],
    scopes: tuple[str, ...],
    days: int,
    reason: str | None,
    as_json: bool,
) -> None:
    """Make a key and print it, once. NAME says what it is for.

    The scope * stands for all scopes but texts:read, which lets an analyst see what people said.

    \b
    Examples:
      anamnesis keys create "nightly report" --user reports --role analyst --scope traces:read
      anamnesis keys create "study 12" --user ida --role analyst --scope '*' --scope texts:read \\
        --days 14 --reason "study 12, approved by the board"
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.api.access.api_keys import NewKey, make_key
    from orchestrator.api.access.roles import ALL_SCOPES, Role
    from orchestrator.ops.clock import as_text
    from orchestrator.wiring import open_store

    new = NewKey(
        name=name,
        person=user,
        roles=[Role(role) for role in roles] or [Role.PERSON],
        scopes=scopes or (ALL_SCOPES,),
        reason=reason,
        lasts=timedelta(days=days),
    )
    store = open_store(settings)
    try:
        row, key = store.write_now(lambda tx: make_key(tx, new, created_by=operator_name()))
    finally:
        store.close_now()
    if as_json:
        click.echo(json.dumps({"id": row.id, "key": key, "expires_at": as_text(row.expires_at)}))
    else:
        click.echo(key)
        click.echo(f"It is shown only now and expires {as_text(row.expires_at)}.", err=True)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per key.")
@with_invocation
def show(invocation: Invocation, as_json: bool) -> None:
    """List all API keys, without the keys themselves."""
    settings = invocation.settings(quietly=True)

    from orchestrator.ops.clock import SystemClock, as_text
    from orchestrator.wiring import open_store

    store = open_store(settings)
    try:
        found = store.read_now(lambda tx: tx.api_keys.all())
    finally:
        store.close_now()
    now = SystemClock().now()
    for key in found:
        state = "revoked" if key.revoked_at else "expired" if key.expires_at <= now else "valid"
        if as_json:
            facts = {
                "id": key.id,
                "name": key.name,
                "user": key.user_id,
                "roles": key.roles,
                "scopes": key.scopes,
                "reason": key.reason,
                "state": state,
                "created_by": key.created_by,
                "created_at": as_text(key.created_at),
                "expires_at": as_text(key.expires_at),
                "revoked_at": as_text(key.revoked_at) if key.revoked_at else None,
            }
            click.echo(json.dumps(facts, ensure_ascii=False))
        else:
            click.echo(
                f"{key.id}  {state:<7} until {as_text(key.expires_at)}  {key.user_id}"
                f"  {', '.join(key.roles)}  {', '.join(key.scopes)}  {key.name}"
            )
    if not found and not as_json:
        click.echo("There are no API keys.")


@keys.command()
@click.argument("id")
@with_invocation
def revoke(invocation: Invocation, id: str) -> None:
    """Revoke the key with this ID at once. The exit code is 1 if there is no valid key with it."""
    settings = invocation.settings(quietly=True)

    from orchestrator.wiring import open_store

    store = open_store(settings)
    try:
        revoked = store.write_now(lambda tx: tx.api_keys.revoke(id))
    finally:
        store.close_now()
    click.echo("The key was revoked." if revoked else "No valid key has this ID.")
    if not revoked:
        raise click.exceptions.Exit(FOUND_SOMETHING)
