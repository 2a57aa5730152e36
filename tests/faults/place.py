"""A place where servers run, die and are started again: one data folder, one database."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from orchestrator.clock import SystemClock
from orchestrator.store.database import Store
from orchestrator.wire.ids import RandomIds
from tests.faults.client import PATIENCE, Client, Cut
from tests.nursery import Nursery
from tools.servers.livekit import Address

LEASE_SECONDS: Final = 0.25
"""Short, because whoever comes after a killed process has to wait for its lease to end."""


@dataclass
class Server:
    """A process that serves, or served."""

    nursery: Nursery
    pid: int
    output: asyncio.StreamReader
    log: Path
    address: str = ""
    page: str = ""
    """What people open; it carries the key."""
    key: str = ""
    exit_code: int | None = None

    async def meet(self, client: Client) -> None:
        """Let a client connect."""
        if not self.address:
            raise Cut
        await client.connect(self.address, self.key)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.exit_code is None:
            os.kill(self.pid, number)

    async def ended(self) -> int:
        """Wait until the process is gone; how it ended. Then nobody holds the other end of its output."""
        async with asyncio.timeout(PATIENCE):
            await self.output.read()
        if self.exit_code is None:
            self.exit_code = self.nursery.exit_code(self.pid)
        return self.exit_code

    async def kill(self) -> None:
        """End it as `kill -9` does."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def stands_still(self) -> None:
        """Wait until it has stopped, as by SIGSTOP."""
        await _until(lambda: self.nursery.is_stopped(self.pid))

    async def feels(self, **parts: str) -> None:
        """Wait until its health says this of these parts."""

        def parts_now() -> dict[str, str]:
            address = self.address.replace("ws", "http", 1).removesuffix("/v1/ws") + "/health"
            with urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310  an address of our own
                told: dict[str, str] = json.load(answer)["parts"]
            return told

        async with asyncio.timeout(PATIENCE):
            while parts.items() - (await asyncio.to_thread(parts_now)).items():  # noqa: ASYNC110  another process
                await asyncio.sleep(0.1)

    async def has_logged(self, event: str) -> None:
        """Wait until it has logged an event."""
        await _until(lambda: f'"event": "{event}"' in self.log.read_text())


async def _until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110  what another process does has to be looked for
            await asyncio.sleep(0.01)


@dataclass
class Place:
    """Where the servers of one test run, one after the other or beside each other."""

    nursery: Nursery
    folder: Path
    database_url: str = ""
    lease_seconds: float = LEASE_SECONDS
    settings: dict[str, object] = field(default_factory=dict)
    """What every server here is told besides."""
    livekit: Address | None = None
    servers: list[Server] = field(default_factory=list)

    async def start(self, *changes: str, fault: str = "", **settings: object) -> Server:
        """Start a server, which dies at `fault`; `changes` are names of tests.faults.changes."""
        environment = {
            **(self.livekit.environment if self.livekit else {}),
            "ANAMNESIS_FAULT": fault,
            "ANAMNESIS_DATABASE_URL": self.database_url,
            "ANAMNESIS_TURN_LEASE_SECONDS": str(self.lease_seconds),
            **{f"ANAMNESIS_{name.upper()}": str(value) for name, value in (self.settings | settings).items()},
        }
        self.folder.mkdir(exist_ok=True)
        arguments = ["--data", str(self.folder), "serve", "--json", "--port", "0"]
        log = self.folder / f"server-{len(self.servers) + 1}.log"
        read, write = os.pipe()
        with log.open("wb") as stderr:
            pid = self.nursery.fork(arguments, environment, changes, write, stderr.fileno())
        os.close(write)
        server = Server(self.nursery, pid, await _reader(read), log)
        self.servers.append(server)
        if line := await server.output.readline():
            ready = json.loads(line)
            server.address, server.key = ready["ws"], ready["key"]
            server.page = f"{ready['url']}/#{server.key}"
        return server

    @property
    def url(self) -> str:
        """Where everything is stored."""
        return self.database_url or f"sqlite:///{self.folder / 'anamnesis.db'}"

    def open_store(self) -> Store:
        """What the servers have stored, looked at beside them."""
        return Store.open(self.url, clock=SystemClock(), ids=RandomIds(), connections=1)

    def empty_store(self) -> Store:
        """Another one, with nothing in it yet."""
        url = f"sqlite:///{self.folder / 'empty.db'}"
        return Store.open(url, clock=SystemClock(), ids=RandomIds(), create=True, connections=1)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return reader


@asynccontextmanager
async def a_place(nursery: Nursery, folder: Path, database_url: str = "") -> AsyncIterator[Place]:
    """A place of its own; whoever still runs there in the end is killed."""
    place = Place(nursery, folder, database_url)
    try:
        yield place
    finally:
        for server in place.servers:
            server.signal(signal.SIGKILL)
            await server.ended()
