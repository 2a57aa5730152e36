"""Starts `anamnesis` processes quickly: one process imports everything once, and each server is a fork of it.

A normal start takes seconds, nearly all of it for imports and for loading the model. The forked child then
runs the command from its first line on.
"""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import pytest

from tools.setup.toolchain import CHECKOUT

MESSAGE = 1 << 16
LOADED = ("load_embedder", "load_roster", "load_router", "load_local_brain", "load_guard", "load_classifier")
"""Functions that load the model and the configuration; their results never change."""


class Forker:
    """Asks the forking process for servers, and ends them all when it is closed."""

    def __init__(self) -> None:
        self._socket, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with child_end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.servers.forked_servers", str(child_end.fileno())],
                cwd=CHECKOUT,
                pass_fds=[child_end.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def fork(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        changes: Sequence[str],
        stdout: int,
        stderr: int,
        *stdin: int,
    ) -> int:
        """Start `anamnesis` with `changes` of tests.faults.modified_servers; the id of the process."""
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "changes": list(changes),
        }
        socket.send_fds(self._socket, [json.dumps(request).encode()], [stdout, stderr, *stdin])
        return int(self._socket.recv(MESSAGE))

    def run(
        self,
        data: Path,
        *arguments: str,
        typed: bytes = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        """Run `anamnesis` with that data folder to its end; its exit code and output."""
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(typed)
            for each in (stdin, stdout, stderr):
                each.seek(0)
            words = ["--data", str(data), *arguments]
            files = [each.fileno() for each in (stdout, stderr, stdin)]
            code = self.exit_code(self.fork(words, environment, [], *files))
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(words, code, stdout.read().decode(), stderr.read().decode())

    def exit_code(self, pid: int) -> int:
        """The exit code of a process that has ended; negative if a signal ended it."""
        self._socket.sendall(json.dumps({"ended": pid}).encode())
        return int(self._socket.recv(MESSAGE))

    def is_stopped(self, pid: int) -> bool:
        """Whether a process has stopped since the last call."""
        self._socket.sendall(json.dumps({"stopped": pid}).encode())
        return self._socket.recv(MESSAGE) == b"True"

    def close(self) -> None:
        """Kill the processes that still run."""
        self._socket.close()
        self._process.wait()


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    """The forking process of this worker."""
    forker = Forker()
    yield forker
    forker.close()


def main(requests: socket.socket) -> None:
    """Fork on every request until the socket is closed."""
    _load_everything()
    gc.collect()
    gc.freeze()  # so that a child's garbage collection does not copy these pages
    children: set[int] = set()
    while True:
        packet, fds, _, _ = socket.recv_fds(requests, MESSAGE, 3)
        if not packet:
            break
        request = json.loads(packet)
        if ended := request.get("ended"):
            children.remove(ended)
            requests.sendall(str(os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1])).encode())
            continue
        if stopped := request.get("stopped"):
            flags = os.WUNTRACED | os.WNOHANG
            requests.sendall(str(os.waitpid(stopped, flags)[0] == stopped).encode())
            continue
        child = os.fork()
        if child == 0:
            requests.close()
            _become_anamnesis(request, *fds)
        for each in fds:
            os.close(each)
        children.add(child)
        requests.sendall(str(child).encode())
    for child in children:
        os.kill(child, signal.SIGKILL)


def _load_everything() -> None:
    """Import and load everything a server needs, and answer once, so that every statement is compiled.

    The model computes on the thread of its caller, so a fork can use it.
    """
    import alembic.command
    import psycopg

    import orchestrator.cli
    import orchestrator.letta.upkeep
    import tests.faults.modified_servers
    from orchestrator import wiring

    # Named so that linters do not call these imports unused.
    _ = (alembic.command, psycopg, orchestrator, tests)
    for name in LOADED:
        setattr(wiring, name, _once(getattr(wiring, name)))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_answer_once(folder))


def _once(load: Callable[..., object]) -> Callable[..., object]:
    """Load once and return the same object from then on: every server has the same configuration."""
    kept: list[object] = []

    def loaded(*arguments: object, **options: object) -> object:
        if not kept:
            kept.append(load(*arguments, **options))
        return kept[0]

    return loaded


async def _answer_once(folder: str) -> None:
    from orchestrator.api.app import create_app
    from orchestrator.api.authentication import Authentication
    from orchestrator.api.server import listening
    from orchestrator.ops import logs
    from orchestrator.settings import load
    from orchestrator.wiring import build_orchestrator
    from tests.support.protocol_client import conversing

    logs.configure("error")
    async with (
        build_orchestrator(load(given={"data.dir": folder})).open() as orchestrator,
        listening(create_app(orchestrator, Authentication(Path(folder), session_seconds=3600))),
        conversing(orchestrator) as peer,
    ):
        await peer.ask()


def _become_anamnesis(request: Mapping[str, object], stdout: int, stderr: int, *stdin: int) -> NoReturn:
    from orchestrator.cli import main as anamnesis
    from orchestrator.ops import faults
    from tests.faults import modified_servers

    code = 1
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for each in stdin:
            os.dup2(each, 0)
        for each in (stdout, stderr, *stdin):
            os.close(each)
        os.environ.update(request["environment"])  # type: ignore[call-overload]
        faults.arm(os.environ.get("ANAMNESIS_FAULT", ""))
        for name in request["changes"]:  # type: ignore[attr-defined]
            modified_servers.CHANGES[name]()
        sys.argv = ["anamnesis", *request["arguments"]]  # type: ignore[misc]
        anamnesis()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        main(given)
