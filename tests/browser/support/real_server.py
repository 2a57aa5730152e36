"""The real `anamnesis serve` in a process of its own, which a test can kill and start again."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import Self

from tests.support.servers.forked_servers import Forker


@dataclass(slots=True)
class RealServer(AbstractContextManager["RealServer"]):
    """A data folder and its server. The server keeps its port when it is started again."""

    forker: Forker
    data: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    key: str = ""
    _pid: int | None = None

    @property
    def address(self) -> str:
        """A new address of the page, which signs in once."""
        return self.address_for("local")

    def address_for(self, person: str) -> str:
        """A new address that signs this person in, as `anamnesis open` prints it."""
        opened = self.forker.run(self.data, "open", "--json", "--user", person)
        address: str = json.loads(opened.stdout)["page"]
        return address

    def start(self, *changes: str, fault: str = "") -> Self:
        """Start the server with `changes` of `tests.faults.modified_servers`, to die at `fault`."""
        port = self.url.rpartition(":")[2] or "0"
        arguments = ["--data", str(self.data), "serve", "--json", "--port", port]
        environment = {**self.environment, "ANAMNESIS_FAULT": fault}
        read, write = os.pipe()
        with (self.data.parent / "server.log").open("a") as log, os.fdopen(read) as stdout:
            self._pid = self.forker.fork(arguments, environment, changes, write, log.fileno())
            os.close(write)
            ready = json.loads(stdout.readline())
        self.url, self.key = ready["url"], ready["key"]
        return self

    def signal(self, number: Signals) -> None:
        """Send the server a signal."""
        assert self._pid is not None
        os.kill(self._pid, number)

    def wait(self) -> None:
        """Wait until the server has ended by itself, for instance by a fault."""
        if self._pid is not None:
            self.forker.exit_code(self._pid)
            self._pid = None

    def kill(self) -> None:
        """End the server with SIGKILL."""
        if self._pid is not None:
            self.signal(SIGKILL)
            self.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
