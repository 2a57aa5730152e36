"""`anamnesis serve`: runs the server."""

import asyncio
import gc
import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import Invocation, model_options, user_option, with_invocation

if TYPE_CHECKING:
    from fastapi import FastAPI

    from orchestrator.api.authentication import Authentication
    from orchestrator.connection.rooms import Rooms
    from orchestrator.orchestrator import Orchestrator
    from orchestrator.settings import Settings

_WELCOME: Final = """\
Anamnesis is running. Open this address: {page}
It works once, within 10 minutes; `anamnesis open` prints another. Ctrl-C stops it."""


@click.command()
@click.option("--host", help="Listen on this address.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port; 0 picks a free one.")
@model_options
@user_option("The person who is signed in by the printed address.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON once the server answers requests."
)
@with_invocation
def serve(
    invocation: Invocation,
    host: str | None,
    port: int | None,
    model: str | None,
    endpoint: str | None,
    user: str,
    as_json: bool,
) -> None:
    """Run the server: the chat page, its WebSocket, /health and /metrics.

    Prints the address to open. It signs you in once, within ten minutes; `anamnesis open` prints another.
    Programs use the key instead: --json prints it, and keys.json in the data folder keeps it.
    """
    gc.disable()  # what is loaded until the server answers stays, so a collection would find nothing
    options = {"server.host": host, "server.port": port, "chat.model": model, "chat.endpoint": endpoint}
    settings = invocation.settings({key: value for key, value in options.items() if value is not None})

    from orchestrator.api.authentication import Authentication
    from orchestrator.api.running import announced
    from orchestrator.api.server import run_server
    from orchestrator.local_models import where_messages_go
    from orchestrator.ops import telemetry
    from orchestrator.wire.ids import PersonId
    from orchestrator.wiring import build_orchestrator, open_rooms

    data, person, address = settings.data.prepare(), PersonId(user), settings.server.host
    authentication = Authentication(data, session_seconds=settings.server.sign_in_hours * 3600)
    key = authentication.keys.of(person)

    async def run(running: ExitStack) -> None:
        def announce(listening: int) -> None:
            netloc = f"[{address}]:{listening}" if ":" in address else f"{address}:{listening}"
            url = f"http://{netloc}"
            page = f"{url}/#{authentication.sessions.issue_code(person)}"
            running.enter_context(announced(data, url))
            ready = {
                "url": url,
                "ws": f"ws://{netloc}/v1/ws",
                "key": key,
                "pid": os.getpid(),
                "page": page,
            }
            click.echo(json.dumps(ready) if as_json else f"{_WELCOME.format(page=page)}\n{notice}")

        looking = asyncio.create_task(where_messages_go(settings))
        orchestrator = await asyncio.to_thread(build_orchestrator, settings, invocation.config)
        notice = await looking
        gc.freeze()  # collections skip what was loaded; walking it would stop every conversation for 0.1 s
        gc.enable()
        async with orchestrator.open(), open_rooms(settings, orchestrator) as rooms:
            app = _build_app(settings, orchestrator, authentication, rooms)
            await run_server(app, address, settings.server.port, announce)

    telemetry.start(settings.telemetry.endpoint)
    try:
        with ExitStack() as running:
            asyncio.run(run(running))
    finally:
        gc.enable()
        telemetry.stop()


def _build_app(
    settings: "Settings",
    orchestrator: "Orchestrator",
    authentication: "Authentication",
    rooms: "Rooms | None",
) -> "FastAPI":
    from orchestrator.api.app import AppOptions, create_app
    from orchestrator.api.ports import Resources
    from orchestrator.wiring import open_oidc

    return create_app(
        orchestrator,
        authentication,
        AppOptions(
            hosts=[settings.server.host],
            origins=settings.server.allowed_origins.split(),
            body_limit=settings.limits.http_body_bytes,
            requests_per_minute=settings.limits.http_requests_per_minute,
        ),
        rooms=rooms,
        memory=orchestrator.memory,
        resources=Resources(
            orchestrator.store, orchestrator.ledger, orchestrator.created, orchestrator.memories_changed
        ),
        oidc=open_oidc(settings),
    )
