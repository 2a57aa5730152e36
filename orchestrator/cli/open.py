"""`anamnesis open`: prints a new address that signs a browser in."""

import json

import click

from orchestrator.cli.options import Invocation, user_option, with_invocation


@click.command("open")
@user_option("The person who is signed in by the address.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each server.")
@with_invocation
def open_page(invocation: Invocation, user: str, as_json: bool) -> None:
    """Print an address for each server that runs with this data folder.

    The address signs you in once, within ten minutes. It holds a one-time code, not your key.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.api.authentication import Authentication
    from orchestrator.api.running import running_servers
    from orchestrator.api.sessions import CODE_SECONDS
    from orchestrator.errors import NO_SERVER_RUNNING, AnamnesisError
    from orchestrator.wire.ids import PersonId

    servers = running_servers(settings.data.dir)
    if not servers:
        raise AnamnesisError(NO_SERVER_RUNNING, where=str(settings.data.dir))
    sessions = Authentication(
        settings.data.dir, session_seconds=settings.server.sign_in_hours * 3600
    ).sessions
    for url in servers:
        page = f"{url}/#{sessions.issue_code(PersonId(user))}"
        line = {"url": url, "page": page, "expires_in_seconds": CODE_SECONDS}
        click.echo(json.dumps(line) if as_json else page)
