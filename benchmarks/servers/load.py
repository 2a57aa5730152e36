"""200 people at once over WebSockets, each with a message every two seconds for a minute.

It starts `anamnesis serve` with default settings in a process of its own, and measures there: how long people
wait for the first sentence and for the end of their answers, errors, and the memory of the process. On a
machine that cannot answer a hundred messages a second, the messages queue up and the waiting times grow.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

import msgpack
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from orchestrator.api.authentication import Authentication
from orchestrator.wire.ids import PersonId

CLIENTS, EVERY_SECONDS, SECONDS = 200, 2.0, 60.0
DRAIN_SECONDS = 120.0
"""So long the answers that are still due when the last message was sent are waited for."""
SAMPLES = 6
MESSAGES = ("I am having a headache", "8", "since Tuesday", "on the left side", "no fever", "thank you")


class Type(IntEnum):
    """The numbers of the messages that are used here."""

    ERROR = 1
    USER_MESSAGE = 2
    CONFIGURATION = 12
    SENTENCE = 16


@dataclass
class Measured:
    """What all clients together have seen."""

    sent: int = 0
    answered: int = 0
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    megabytes: list[float] = field(default_factory=list)


class Visitor:
    """One person with one conversation. Answers come in the order of the messages."""

    def __init__(self, number: int, socket: ClientConnection, measured: Measured) -> None:
        self._number, self._socket, self._measured = number, socket, measured
        self._due: deque[float] = deque()
        self._has_begun = False
        self._conversation = ""
        self.is_open, self.is_idle = asyncio.Event(), asyncio.Event()
        self.is_idle.set()

    async def send(self, stanza: int, type: int, **body: Any) -> None:
        """Send a frame."""
        named = {"conversationId": self._conversation} if self._conversation else {}
        frame = {"stanzaId": stanza, "conversationId": self._conversation, "type": type}
        await self._socket.send(msgpack.packb({**frame, "body": {**body, **named}}))

    async def read(self) -> None:
        """Read until the connection is closed."""
        with suppress(ConnectionClosed):
            await self._read()
        self._measured.errors[f"closed with {self._socket.close_code}"] += 1
        self.is_idle.set()

    async def _read(self) -> None:
        async for packet in self._socket:
            frame, now = msgpack.unpackb(packet), perf_counter()
            match frame["type"]:
                case Type.CONFIGURATION if not self._conversation:
                    self._conversation = frame["conversationId"]
                    self.is_open.set()
                case Type.ERROR:
                    self._measured.errors[str(frame["body"].get("code"))] += 1
                    if frame["stanzaId"] < 0:
                        self._end(now)
                case Type.SENTENCE:
                    if not self._has_begun and self._due:
                        self._has_begun = True
                        self._measured.first.append(now - self._due[0])
                    if frame["body"]["isFinal"]:
                        self._measured.answered += 1
                        self._end(now)

    def _end(self, now: float) -> None:
        if self._due:
            self._measured.whole.append(now - self._due.popleft())
        self._has_begun = False
        if not self._due:
            self.is_idle.set()

    async def talk(self) -> None:
        """Send messages at even intervals, whether or not the last one is answered."""
        await asyncio.sleep(EVERY_SECONDS * self._number / CLIENTS)
        began = perf_counter()
        for number in range(round(SECONDS / EVERY_SECONDS)):
            await asyncio.sleep(max(began + number * EVERY_SECONDS - perf_counter(), 0))
            self._due.append(perf_counter())
            self.is_idle.clear()
            self._measured.sent += 1
            text = MESSAGES[number % len(MESSAGES)]
            with suppress(ConnectionClosed):  # it is counted where frames are read
                await self.send(
                    number + 1, Type.USER_MESSAGE, id=f"msg_{self._number}_{number}", content=text
                )


async def measure(url: str, keys: list[str], pid: int) -> Measured:
    """Connect everybody, let them talk, and wait until everything is answered."""
    measured = Measured()

    async def visit(number: int) -> Visitor:
        headers = {"Authorization": f"Bearer {keys[number]}"}
        socket = await connect(
            f"{url.replace('http', 'ws', 1)}/v1/ws",
            additional_headers=headers,
            open_timeout=60,
            ping_timeout=None,
        )
        visitor = Visitor(number, socket, measured)
        readers.append(asyncio.create_task(visitor.read()))
        await visitor.send(0, Type.CONFIGURATION, features=["streaming"])
        async with asyncio.timeout(60):
            await visitor.is_open.wait()
        return visitor

    async def sample() -> None:
        for _ in range(SAMPLES):
            await asyncio.sleep(SECONDS / SAMPLES)
            measured.megabytes.append(_resident_megabytes(pid))

    readers: list[asyncio.Task[None]] = []
    visitors = [await visit(number) for number in range(CLIENTS)]
    measured.megabytes.append(_resident_megabytes(pid))
    await asyncio.gather(sample(), *(visitor.talk() for visitor in visitors))
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            await asyncio.gather(*(visitor.is_idle.wait() for visitor in visitors))
    measured.megabytes.append(_resident_megabytes(pid))
    for reader in readers:
        reader.cancel()
    return measured


def _resident_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """Run `anamnesis serve`; yields its address and process id."""
    command = [sys.executable, "-m", "orchestrator", "serve", "--json", "--port", "0", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            yield ready["url"], process.pid
        finally:
            process.terminate()


def main() -> None:
    """Measure, and print the figures beside each other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authentication = Authentication(folder, session_seconds=60)
        keys = [authentication.keys.of(PersonId(f"person_{number}")) for number in range(CLIENTS)]
        with serving(folder) as (url, pid):
            began = perf_counter()
            measured = asyncio.run(measure(url, keys, pid))
            total = perf_counter() - began
    print(f"{CLIENTS} clients, {measured.sent} messages, {measured.answered} answers in {total:.0f} s")
    print(f"{measured.answered / total:.0f} answers per second")
    print(f"errors: {dict(measured.errors) or 'none'}")
    for what, seconds in (("first sentence", measured.first), ("whole answer", measured.whole)):
        cuts = quantiles(seconds or [0.0, 0.0], n=100)
        print(f"{what:<15} p50 {cuts[49] * 1000:8.0f} ms   p99 {cuts[98] * 1000:8.0f} ms")
    print("memory of the server: " + ", ".join(f"{each:.0f} MB" for each in measured.megabytes))


if __name__ == "__main__":
    main()
