"""A server is started once per test run, by the first worker that needs it, and stops with the run.

The run holds a lock on a file. Each server is started by a process that waits for that lock, then stops it.
So the servers stop after the last test, after Ctrl-C and after a SIGKILL.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import pytest

from tools.setup.progress import SetupError
from tools.setup.toolchain import CHECKOUT, locked

FOLDER = pytest.StashKey[Path]()
LIFE = pytest.StashKey[IO[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Take the lock in the main process, which outlives all workers; pass its path to the workers."""
    if hasattr(config, "workerinput"):
        config.stash[FOLDER] = Path(config.workerinput["servers"])
        return
    folder = Path(tempfile.mkdtemp(prefix="anamnesis-tests-"))
    life = (folder / "life").open("w")
    fcntl.flock(life, fcntl.LOCK_EX)
    config.stash[FOLDER], config.stash[LIFE] = folder, life


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the folder of the servers to a worker."""
    node.workerinput["servers"] = str(node.config.stash[FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Release the lock, and wait until every server has stopped."""
    if (life := config.stash.get(LIFE, None)) is None:
        return
    life.close()
    for kept in config.stash[FOLDER].glob("*.kept"):
        with locked(kept):
            pass
    shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


def start_once(config: pytest.Config, name: str) -> str:
    """The address of the server `tools.servers.<name>`; the first worker that needs it starts it."""
    folder = config.stash[FOLDER]
    address, kept, said = (folder / f"{name}.{ending}" for ending in ("address", "kept", "said"))
    with locked(folder / f"{name}.starting"):
        if address.exists():
            return address.read_text()
        with kept.open("w") as keeper_lives, said.open("w") as stderr:
            fcntl.flock(keeper_lives, fcntl.LOCK_EX)
            keeper = subprocess.Popen(
                [sys.executable, "-m", f"tools.servers.{name}", "--while-locked", folder / "life"],
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=[keeper_lives.fileno()],
                start_new_session=True,
                text=True,
            )
        assert keeper.stdout is not None
        with keeper.stdout:
            line = keeper.stdout.readline().strip()
        keeper.returncode = 0  # it outlives this worker on purpose, so it is not awaited here
        if not line:
            raise SetupError(f"{name} did not start, so its tests fail; none is skipped.\n{said.read_text()}")
        address.write_text(line)
        return line
