"""The real `anamnesis serve` in a process of its own, to be stopped, killed and started again."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import Self

from tests.nursery import Nursery


@dataclass(slots=True)
class House(AbstractContextManager["House"]):
    """One data folder and the server over it. It keeps its port when it is started again."""

    nursery: Nursery
    data: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    key: str = ""
    _pid: int | None = None

    @property
    def address(self) -> str:
        """What `anamnesis serve` prints for people: it carries the key."""
        return f"{self.url}/#{self.key}"

    def start(self, *changes: str, fault: str = "") -> Self:
        """Open it, perhaps with a fault waiting, or with changes of `tests.faults.changes`."""
        port = self.url.rpartition(":")[2] or "0"
        arguments = ["--data", str(self.data), "serve", "--json", "--port", port]
        environment = {**self.environment, "ANAMNESIS_FAULT": fault}
        read, write = os.pipe()
        with (self.data.parent / "server.log").open("a") as log, os.fdopen(read) as told:
            self._pid = self.nursery.fork(arguments, environment, changes, write, log.fileno())
            os.close(write)
            ready = json.loads(told.readline())
        self.url, self.key = ready["url"], ready["key"]
        return self

    def signal(self, number: Signals) -> None:
        """Send it a signal."""
        assert self._pid is not None
        os.kill(self._pid, number)

    def wait(self) -> None:
        """Until it has ended by itself, as by a fault."""
        if self._pid is not None:
            self.nursery.exit_code(self._pid)
            self._pid = None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._pid is not None:
            self.signal(SIGKILL)
            self.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
