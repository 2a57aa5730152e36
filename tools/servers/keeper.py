"""Keeps a server up for as long as somebody needs it, and never longer, however that somebody ends."""

import argparse
import contextlib
import fcntl
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tools.progress import SetupError


def keep(server: Callable[[], AbstractContextManager[str]], arguments: Sequence[str] | None = None) -> None:
    """Start the server, print its address as one line, stop it on a signal or once `--while-locked` is free.

    A test run holds that lock. The system frees it when the run ends, even by SIGKILL; nothing stays behind.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--while-locked", type=Path, help="stop once no process holds a lock on this file")
    watched: Path | None = parser.parse_args(arguments).while_locked
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with contextlib.suppress(KeyboardInterrupt), server() as address:
            print(address, flush=True)
            if watched is None:
                signal.pause()
            else:
                with watched.open() as lock:
                    fcntl.flock(lock, fcntl.LOCK_SH)
    except SetupError as failure:
        sys.exit(str(failure))


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of the loopback that nobody listens on at this moment."""
    with contextlib.closing(socket.socket(type=kind)) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
