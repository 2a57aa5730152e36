"""A deployment: one data folder and one database, with servers that a test starts and kills."""

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

from orchestrator.ops.clock import SystemClock
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import RandomIds
from tests.faults.client import TIMEOUT, Client, Cut
from tests.support.servers.forked_servers import Forker
from tools.servers.livekit import Address

LEASE_SECONDS: Final = 0.25
"""Short, because the next server waits until the lease of a killed one has ended."""


@dataclass
class Server:
    """A server process, running or ended."""

    forker: Forker
    pid: int
    output: asyncio.StreamReader
    log: Path
    address: str = ""
    url: str = ""
    key: str = ""
    exit_code: int | None = None

    async def meet(self, client: Client) -> None:
        """Connect a client."""
        if not self.address:
            raise Cut
        await client.connect(self.address, self.key)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it still runs."""
        if self.exit_code is None:
            os.kill(self.pid, number)

    async def ended(self) -> int:
        """Wait until the process has ended; its exit code."""
        async with asyncio.timeout(TIMEOUT):
            await self.output.read()
        if self.exit_code is None:
            self.exit_code = self.forker.exit_code(self.pid)
        return self.exit_code

    async def kill(self) -> None:
        """End the process by SIGKILL."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def stands_still(self) -> None:
        """Wait until SIGSTOP has stopped the process."""
        await _until(lambda: self.forker.is_stopped(self.pid))

    async def feels(self, **parts: str) -> None:
        """Wait until /health reports these states of these parts."""

        def parts_now() -> dict[str, str]:
            address = self.address.replace("ws", "http", 1).removesuffix("/v1/ws") + "/health"
            with urlopen(address, timeout=TIMEOUT) as answer:  # noqa: S310  an address of our own
                result: dict[str, str] = json.load(answer)["parts"]
            return result

        async with asyncio.timeout(TIMEOUT):
            while parts.items() - (await asyncio.to_thread(parts_now)).items():  # noqa: ASYNC110  another process
                await asyncio.sleep(0.1)

    async def has_logged(self, event: str) -> None:
        """Wait until the process has logged an event."""
        await _until(lambda: f'"event": "{event}"' in self.log.read_text())


async def _until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not happened():  # noqa: ASYNC110  another process sends no event
            await asyncio.sleep(0.01)


@dataclass
class Deployment:
    """The servers of one test, one after another or at the same time."""

    forker: Forker
    folder: Path
    database_url: str = ""
    lease_seconds: float = LEASE_SECONDS
    settings: dict[str, object] = field(default_factory=dict)
    """Settings of every server of this deployment."""
    livekit: Address | None = None
    servers: list[Server] = field(default_factory=list)

    async def start(self, *changes: str, fault: str = "", **settings: object) -> Server:
        """Start a server that dies at `fault`; `changes` are names in tests.faults.modified_servers."""
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
            pid = self.forker.fork(arguments, environment, changes, write, stderr.fileno())
        os.close(write)
        server = Server(self.forker, pid, await _reader(read), log)
        self.servers.append(server)
        if line := await server.output.readline():
            ready = json.loads(line)
            server.address, server.key = ready["ws"], ready["key"]
            server.url = ready["url"]
        return server

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.database_url or f"sqlite:///{self.folder / 'anamnesis.db'}"

    async def has_paused(self) -> None:
        """Wait until a server has paused a session."""
        count = "SELECT count(*) FROM alicia_memory_used WHERE actor = 'orchestrator:paused'"
        store = self.open_store()
        try:
            await _until(
                lambda: store.read_now(lambda tx: tx.unit.connection.execute(count).fetchone())[0] > 0
            )
        finally:
            store.close_now()

    async def has_released(self, conversation_id: str, server: Server) -> None:
        """Wait until no server works on a conversation, or until this one has ended."""

        def is_free(store: Store) -> bool:
            lease = store.read_now(lambda tx: tx.leases.get(conversation_id))
            return lease is None or lease.expires_at <= SystemClock().now()

        store = self.open_store()
        try:
            await _until(lambda: server.output.at_eof() or is_free(store))
        finally:
            store.close_now()

    def open_store(self) -> Store:
        """Open the store that the servers write to."""
        return Store.open(self.url, clock=SystemClock(), ids=RandomIds(), connections=1)

    def empty_store(self) -> Store:
        """Open another store, which is empty."""
        url = f"sqlite:///{self.folder / 'empty.db'}"
        return Store.open(url, clock=SystemClock(), ids=RandomIds(), create=True, connections=1)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return reader


@asynccontextmanager
async def a_deployment(forker: Forker, folder: Path, database_url: str = "") -> AsyncIterator[Deployment]:
    """A new deployment. Servers that still run at the end are killed."""
    deployment = Deployment(forker, folder, database_url)
    try:
        yield deployment
    finally:
        for server in deployment.servers:
            server.signal(signal.SIGKILL)
            await server.ended()
