"""Starts a server as a process and waits until it answers."""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from tools.setup.progress import SetupError, Word

SECONDS_TO_START = 60
SECONDS_BETWEEN_TRIES = 0.05
LINES_OF_LOG_SHOWN = 40


@contextmanager
def running_process(
    name: str,
    command: Sequence[Word],
    *,
    folder: Path,
    connect: Callable[[], object],
    refusals: tuple[type[Exception], ...],
    seconds: float = SECONDS_TO_START,
    hint: str = "",
    stop_signal: signal.Signals = signal.SIGKILL,
    **options: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server during the body, with its output in `folder`/log and further `options` for Popen.

    The body begins once `connect` raises none of `refusals` any more. If the server ends before, or needs
    more than `seconds`, raise `SetupError` with the end of its log and `hint`, which says what to do next.
    """
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **options,
        )
    attempts = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, refusals) and server.poll() is None),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(SECONDS_BETWEEN_TRIES),
        reraise=True,
    )
    try:
        try:
            attempts(connect)
        except refusals:
            lines = log.read_text(errors="replace").splitlines()[-LINES_OF_LOG_SHOWN:]
            raise SetupError("\n".join([f"{name} did not start within {seconds} s:", *lines, hint])) from None
        yield server
    finally:
        server.send_signal(stop_signal)
        server.wait()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port on the loopback interface that is free at this moment."""
    with contextlib.closing(socket.socket(type=kind)) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
