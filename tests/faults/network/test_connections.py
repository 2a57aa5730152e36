"""The network breaks between two frames or within one; a client that reconnects has missed nothing."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from tests.faults.client import Client, Cut
from tests.faults.crash_checks import Run, finish
from tests.faults.crashes.test_crash_points import SAID
from tests.faults.deployment import Deployment, Server
from tests.faults.tcp_proxy import between

STANZAS = 11
"""The number of stanzas before the last of an answer: acknowledgement, start, traces, a sentence, traces."""


async def test_a_client_that_leaves_after_any_stanza_of_an_answer_misses_nothing(
    deployment: Deployment,
) -> None:
    server = await deployment.start("recalling")

    for heard in range(1, STANZAS + 1):
        client = Client()
        await server.meet(client)
        await hear(client, await client.say(SAID[0]), heard)
        client.cut()
        await come_back(server, client, SAID[1:2])

    await nothing_was_lost(deployment, server, client)


async def test_a_connection_that_breaks_within_a_frame_to_the_client_loses_nothing(
    deployment: Deployment,
) -> None:
    server = await deployment.start("recalling")

    for most in range(700, 12_000, 607):
        client = await through_a_break(server, to_client=most)

    await nothing_was_lost(deployment, server, client)


async def test_a_connection_that_breaks_within_a_frame_to_the_server_loses_nothing(
    deployment: Deployment,
) -> None:
    server = await deployment.start("recalling")

    for most in range(280, 900, 37):
        client = await through_a_break(server, to_server=most)

    await nothing_was_lost(deployment, server, client)


async def hear(client: Client, message_id: str, stanzas: int) -> None:
    """Receive so many stanzas; none of them may end the answer."""
    await client.until(lambda: len(client.seen) >= stanzas)
    assert message_id not in client.ends


async def through_a_break(
    server: Server, *, to_client: int | None = None, to_server: int | None = None
) -> Client:
    """Hold a conversation whose first connection breaks after so many bytes."""
    client, left = Client(repeats=True), list(SAID)
    parts = urlsplit(server.address)
    async with between(
        parts.hostname or "", parts.port or 0, to_client=to_client, to_server=to_server
    ) as proxy:
        try:
            await client.connect(parts._replace(netloc=f"127.0.0.1:{proxy.port}").geturl(), server.key)
            while left:
                await client.ask(left.pop(0))
        except Cut:
            pass
        assert proxy.broken
    await come_back(server, client, left)
    return client


async def come_back(server: Server, client: Client, left: Iterable[str]) -> None:
    """Connect again, send the remaining messages, and receive every answer."""
    await server.meet(client)
    for message_id in client.asked:
        assert await client.answered(message_id) == "completed"
    for text in left:
        assert await client.ask(text) == "completed"
    again = Client(conversation_id=client.conversation_id)
    await server.meet(again)
    await again.until(lambda: len(again.seen) >= len(client.seen))
    assert (again.seen, client.problems) == (client.seen, [])
    await again.close()
    await client.close()


async def nothing_was_lost(deployment: Deployment, server: Server, client: Client) -> None:
    """Check that the store is sound and equals what the last client received."""
    run = Run(client)
    await finish(deployment, run, server)
    assert run.problems == []
