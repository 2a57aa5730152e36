"""A TCP proxy that breaks each connection after a number of bytes, also within a frame or a statement."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Forwards each direction of each connection up to its number of bytes."""

    def __init__(self, host: str, port: int, *, to_client: int | None, to_server: int | None) -> None:
        self._server = (host, port)
        self._to_client, self._to_server = to_client, to_server
        self.port = 0
        self.broken = 0

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward bytes both ways until one side closes or the limit is reached."""
        there_reader, there_writer = await asyncio.open_connection(*self._server)
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._carry(reader, there_writer, self._to_server))
                both_ways.create_task(self._carry(there_reader, writer, self._to_client))
        except* (_Ended, ConnectionError):
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
                    self.broken += 1
                    break
        raise _Ended


class _Ended(Exception):
    """The end of both directions."""


@asynccontextmanager
async def between(
    host: str, port: int, *, to_client: int | None = None, to_server: int | None = None
) -> AsyncIterator[Proxy]:
    """Run a proxy before the server at that address. Yields the proxy, with its own port on 127.0.0.1."""
    proxy = Proxy(host, port, to_client=to_client, to_server=to_server)
    async with await asyncio.start_server(proxy.relay, "127.0.0.1", 0) as listening:
        proxy.port = listening.sockets[0].getsockname()[1]
        yield proxy
