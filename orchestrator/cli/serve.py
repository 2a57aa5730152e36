"""`anamnesis serve`: opens the house."""

import asyncio
import gc
import json
import os

import click

from orchestrator.cli.frame import Invocation, pass_invocation, shared_options, user_option


@click.command()
@click.option("--host", help="Listen on this address.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port; 0 picks a free one.")
@user_option("The person whose key is printed.")
@click.option("--json", "as_json", is_flag=True, help="Print one line for scripts once the house is open.")
@shared_options
@pass_invocation
def serve(invocation: Invocation, host: str | None, port: int | None, user: str, as_json: bool) -> None:
    """Open the house: the chat page, its WebSocket, /health and /metrics.

    Prints the address to open. It carries your key after the #, so treat it like a password.
    """
    gc.disable()  # until the house stands: all that is loaded for it stays
    given = {"server.host": host, "server.port": port}
    settings = invocation.settings({key: value for key, value in given.items() if value is not None})

    from orchestrator import telemetry
    from orchestrator.api.app import create_app
    from orchestrator.api.keys import Keys
    from orchestrator.api.server import run_server
    from orchestrator.wire.ids import PersonId
    from orchestrator.wiring import build_house, open_rooms

    keys = Keys(settings.data.prepare())
    key = keys.of(PersonId(user))
    where = settings.server.host

    def tell(listening: int) -> None:
        netloc = f"[{where}]:{listening}" if ":" in where else f"{where}:{listening}"
        if as_json:
            ready = {"url": f"http://{netloc}", "ws": f"ws://{netloc}/v1/ws", "key": key, "pid": os.getpid()}
            click.echo(json.dumps(ready))
        else:
            click.echo(f"Anamnesis is open. Your page: http://{netloc}/#{key}")
            click.echo("It answers until you press Ctrl-C.")

    async def run() -> None:
        house = await asyncio.to_thread(build_house, settings, invocation.config)
        gc.freeze()  # it stays: looking it through for garbage would stop everybody for a tenth of a second
        gc.enable()
        async with house.open(), open_rooms(settings, house) as rooms:
            most = settings.limits.http_body_bytes
            app = create_app(house, keys, hosts=[where], body_most=most, rooms=rooms)
            await run_server(app, where, settings.server.port, tell)

    telemetry.start(settings.telemetry.endpoint)
    try:
        asyncio.run(run())
    finally:
        gc.enable()
        telemetry.stop()
