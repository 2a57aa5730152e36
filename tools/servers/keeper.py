"""Keeps a server running until the test run that started it has ended, even if it was killed."""

import argparse
import contextlib
import fcntl
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tools.setup.progress import SetupError


def keep(server: Callable[[], AbstractContextManager[str]], arguments: Sequence[str] | None = None) -> None:
    """Start the server and print its address as one line. Stop it on a signal or at the end of a test run.

    A test run holds a lock on the file of `--while-locked`. The system releases that lock when the run ends,
    also after SIGKILL, so no server outlives its test run.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--while-locked", type=Path, help="stop once no process holds a lock on this file")
    lock_file: Path | None = parser.parse_args(arguments).while_locked
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with contextlib.suppress(KeyboardInterrupt), server() as address:
            print(address, flush=True)
            if lock_file is None:
                signal.pause()
            else:
                with lock_file.open() as lock:
                    fcntl.flock(lock, fcntl.LOCK_SH)
    except SetupError as failure:
        sys.exit(str(failure))
