"""Runs `anamnesis serve` until Ctrl-C, for tools that start another server for it."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tools.bootstrap import PYTHON
from tools.setup.progress import Word
from tools.setup.toolchain import CHECKOUT


def serve(port: int, settings: Mapping[str, str], options: Sequence[str]) -> int:
    """Serve with these environment variables and options until stopped. Returns the exit code."""
    command: list[Word] = [PYTHON, "-m", "orchestrator", "serve", "--port", str(port), *options]
    server = subprocess.Popen(command, env={**os.environ, **settings}, cwd=CHECKOUT)
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    with suppress(KeyboardInterrupt):  # Ctrl-C reaches the server too, which then stops by itself
        server.wait()
    return server.wait()
