"""The real `anamnesis serve` in a process of its own, to be stopped, killed and started again."""

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import Self

from tests.faults.changes import served


@dataclass(slots=True)
class House(AbstractContextManager["House"]):
    """One data folder and the server over it. It keeps its port when it is started again."""

    data: Path
    url: str = ""
    key: str = ""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """What `anamnesis serve` prints for people: it carries the key."""
        return f"{self.url}/#{self.key}"

    def start(self, *, fault: str = "", change: str = "") -> Self:
        """Open it, perhaps with a fault waiting, or with a change of `tests.faults.changes`."""
        port = self.url.rpartition(":")[2] or "0"
        env = {**os.environ, "ANAMNESIS_FAULT": fault} if fault else None
        with (self.data.parent / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-c", served(change)),
                    *("serve", "--json", "--port", port, "--data", self.data),
                ],
                env=env,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        ready = json.loads(self._process.stdout.readline())
        self.url, self.key = ready["url"], ready["key"]
        return self

    def signal(self, number: Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> None:
        """Until it has ended by itself, as by a fault."""
        if self._process is not None:
            self._process.communicate()

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
