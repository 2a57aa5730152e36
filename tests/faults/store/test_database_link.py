"""The connection to PostgreSQL breaks repeatedly, in any statement or commit; nothing is lost."""

import asyncio
from collections.abc import Iterable

import pytest
from sqlalchemy import make_url

from tests.faults.client import Client, Cut
from tests.faults.crash_checks import Run, finish
from tests.faults.crashes.test_crash_points import SAID
from tests.faults.deployment import Deployment, Server
from tests.faults.tcp_proxy import between

BYTES = (70_001, *(pytest.param(most, marks=pytest.mark.soak) for most in (83_003, 96_001)), 109_013)
"""The number of bytes after which each connection breaks. One transaction must fit."""


@pytest.mark.parametrize("direction", ["to_server", "to_client"])
@pytest.mark.parametrize("most", BYTES)
async def test_a_database_connection_that_breaks_after_any_number_of_bytes_loses_nothing(
    postgres_deployment: Deployment, direction: str, most: int
) -> None:
    url = make_url(postgres_deployment.database_url)
    client = Client(insists=True)
    async with between(url.host or "", url.port or 0, **{direction: most}) as proxy:
        broken = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        server = await postgres_deployment.start("recalling", database_url=broken)
        await talk(server, client, SAID * 3)
        assert proxy.broken
        await server.kill()

    server = await postgres_deployment.start()
    run = Run(client)
    await finish(postgres_deployment, run, server)

    assert run.problems == []


async def talk(server: Server, client: Client, texts: Iterable[str]) -> None:
    """Send all messages and receive every answer; reconnect whenever the server closes the connection."""
    left = list(texts)
    while left or len(client.ends) < len(client.asked):
        try:
            await server.meet(client)
            for message_id in client.asked:
                await client.answered(message_id)
            while left:
                await client.ask(left.pop(0))
        except Cut:
            await asyncio.sleep(0.05)
