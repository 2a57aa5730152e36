"""A process that has imported everything once and forks an `anamnesis` whenever one is asked for.

Starting one takes seconds, nearly all of it imports and what is read of the model; a fork has them. The child
then does what the command does, from its first line on.
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
from typing import NoReturn

import pytest

from tools.toolchain import CHECKOUT

MESSAGE = 1 << 16
LOADED = ("load_embedder", "load_roster", "load_router", "load_lexicon", "load_guard", "load_ears")
"""What a server reads of the model and the configuration; none of it ever changes."""


class Nursery:
    """The test's end: asks for processes, and ends them all when it is closed."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.nursery", str(theirs.fileno())],
                cwd=CHECKOUT,
                pass_fds=[theirs.fileno()],
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
        """The id of a process that runs `anamnesis`, with `changes` of tests.faults.changes made to it."""
        asked = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "changes": list(changes),
        }
        socket.send_fds(self._line, [json.dumps(asked).encode()], [stdout, stderr, *stdin])
        return int(self._line.recv(MESSAGE))

    def run(self, data: Path, *arguments: str, typed: bytes = b"") -> subprocess.CompletedProcess[str]:
        """`anamnesis` with that data folder, until it has ended, and what it printed."""
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(typed)
            for each in (stdin, stdout, stderr):
                each.seek(0)
            words = ["--data", str(data), *arguments]
            code = self.exit_code(self.fork(words, {}, [], stdout.fileno(), stderr.fileno(), stdin.fileno()))
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(words, code, stdout.read().decode(), stderr.read().decode())

    def exit_code(self, pid: int) -> int:
        """How a process ended, which has; negative, if by a signal."""
        self._line.sendall(json.dumps({"ended": pid}).encode())
        return int(self._line.recv(MESSAGE))

    def is_stopped(self, pid: int) -> bool:
        """Whether a process has stopped since this was last asked."""
        self._line.sendall(json.dumps({"stopped": pid}).encode())
        return self._line.recv(MESSAGE) == b"True"

    def close(self) -> None:
        """End whoever is still running."""
        self._line.close()
        self._process.wait()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where the processes of this run come from."""
    nursery = Nursery()
    yield nursery
    nursery.close()


def main(line: socket.socket) -> None:
    """Fork on every request until the other end is closed."""
    _import_everything()
    gc.collect()
    gc.freeze()  # what never changes is neither looked through nor, for that, copied by a child
    children: set[int] = set()
    while True:
        packet, fds, _, _ = socket.recv_fds(line, MESSAGE, 3)
        if not packet:
            break
        asked = json.loads(packet)
        if ended := asked.get("ended"):
            children.remove(ended)
            line.sendall(str(os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1])).encode())
            continue
        if stopped := asked.get("stopped"):
            flags = os.WUNTRACED | os.WNOHANG
            line.sendall(str(os.waitpid(stopped, flags)[0] == stopped).encode())
            continue
        child = os.fork()
        if child == 0:
            line.close()
            _become_anamnesis(asked, *fds)
        for each in fds:
            os.close(each)
        children.add(child)
        line.sendall(str(child).encode())
    for child in children:
        os.kill(child, signal.SIGKILL)


def _import_everything() -> None:
    """Import and load all that a server needs, and let one answer here, so that every statement is compiled.

    The model computes on one thread, the caller's, so a fork has all of it.
    """
    import alembic.command
    import psycopg

    import orchestrator.cli
    import orchestrator.letta_upkeep
    import tests.faults.changes
    from orchestrator import wiring

    # Named, so that no tool takes them for unused: what they bring is wanted, not they.
    _ = (alembic.command, psycopg, orchestrator, tests)
    for name in LOADED:
        setattr(wiring, name, _once(getattr(wiring, name)))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_answer_once(folder))


def _once(load: Callable[..., object]) -> Callable[..., object]:
    """What it loads first, from then on: every server here has the same configuration."""
    kept: list[object] = []

    def loaded(*arguments: object, **options: object) -> object:
        if not kept:
            kept.append(load(*arguments, **options))
        return kept[0]

    return loaded


async def _answer_once(folder: str) -> None:
    from orchestrator import logs
    from orchestrator.api.app import create_app
    from orchestrator.api.keys import Keys
    from orchestrator.api.server import listening
    from orchestrator.settings import load
    from orchestrator.wiring import build_house
    from tests.peers import conversing

    logs.configure("error")
    async with (
        build_house(load(given={"data.dir": folder})).open() as house,
        listening(create_app(house, Keys(Path(folder)))),
        conversing(house) as peer,
    ):
        await peer.ask()


def _become_anamnesis(asked: Mapping[str, object], stdout: int, stderr: int, *stdin: int) -> NoReturn:
    from orchestrator import faults
    from orchestrator.cli import main as anamnesis
    from tests.faults import changes

    code = 1
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for each in stdin:
            os.dup2(each, 0)
        for each in (stdout, stderr, *stdin):
            os.close(each)
        os.environ.update(asked["environment"])  # type: ignore[call-overload]
        faults.arm(os.environ.get("ANAMNESIS_FAULT", ""))
        for name in asked["changes"]:  # type: ignore[attr-defined]
            changes.CHANGES[name]()
        sys.argv = ["anamnesis", *asked["arguments"]]  # type: ignore[misc]
        anamnesis()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        main(given)
