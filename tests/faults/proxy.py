"""A TCP proxy that breaks the connection after so many bytes, wherever in a frame that is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Proxy:
    """Stands before a server; each direction is let through up to its number of bytes."""

    def __init__(self, host: str, port: int, *, to_client: int | None, to_server: int | None) -> None:
        self._server = (host, port)
        self._to_client, self._to_server = to_client, to_server
        self.broke = False

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._server)
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._carry(reader, there_writer, self._to_server))
                both_ways.create_task(self._carry(there_reader, writer, self._to_client))
        except* (_Broken, ConnectionError):
            pass
        finally:
            for each in (writer, there_writer):
                each.transport.abort()

    async def _carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, most: int | None
    ) -> None:
        while data := await source.read(1024):
            target.write(data[:most])
            await target.drain()
            if most is not None:
                most -= len(data)
                if most <= 0:
                    self.broke = True
                    await asyncio.sleep(0)  # what was let through is on its way
                    raise _Broken
        raise _Broken


class _Broken(Exception):
    """The end of both directions."""


@asynccontextmanager
async def between(
    address: str, *, to_client: int | None = None, to_server: int | None = None
) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the WebSocket at that address, and the address to use instead."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port, to_client=to_client, to_server=to_server)
    listening = await asyncio.start_server(proxy._attend, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        yield proxy, parts._replace(netloc=f"127.0.0.1:{port}").geturl()
