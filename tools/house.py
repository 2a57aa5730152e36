"""Runs `anamnesis serve` beside servers of its own, until Ctrl-C."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tools.bootstrap import PYTHON
from tools.progress import Word
from tools.toolchain import CHECKOUT


def serve(port: int, told: Mapping[str, str], further: Sequence[str]) -> int:
    """Serve until told to stop, with these settings in the environment; how it ended."""
    command: list[Word] = [PYTHON, "-m", "orchestrator", "serve", "--port", str(port), *further]
    house = subprocess.Popen(command, env={**os.environ, **told}, cwd=CHECKOUT)
    signal.signal(signal.SIGTERM, lambda *_: house.terminate())
    with suppress(KeyboardInterrupt):  # the house hears it, too
        house.wait()
    return house.wait()
