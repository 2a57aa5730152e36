"""A temporary PostgreSQL with pgvector on a free loopback port: `python -m tools.servers.postgres`.

For tests only: every user of this machine may connect and, with `fsync` off, a power cut loses data.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

from tools.servers.keeper import keep
from tools.servers.process import free_port, running_process
from tools.setup.progress import SetupError, run
from tools.setup.toolchain import PACKAGED_POSTGRES, ensure_postgres

NOBODY = 65534
HINT = "ANAMNESIS_TEST_POSTGRES_URL can name a running server instead."
FAST_AND_UNSAFE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
}


@contextmanager
def running_postgres(binaries: Path | None = None) -> Iterator[str]:
    """A PostgreSQL during the body. Yields its address; its data is removed afterwards."""
    binaries = binaries or ensure_postgres()
    if not (binaries / "initdb").exists():
        raise SetupError(f"There is no PostgreSQL in {binaries}. {HINT}")
    user = NOBODY if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    with tempfile.TemporaryDirectory(prefix="anamnesis-postgres-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        if user is not None:
            os.chown(home, user, user)
            binaries = _reachable(binaries, user, home)
        data = home / "data"
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        run(
            [binaries / "initdb", "--pgdata", data, *options],
            user=user,
            cwd=home,
            hint=HINT,
        )
        port = free_port()
        settings = [f"-c{name}={value}" for name, value in (FAST_AND_UNSAFE | {"port": str(port)}).items()]
        with running_process(
            "PostgreSQL",
            [binaries / "postgres", "-D", data, *settings],
            folder=home,
            connect=partial(_connect, port),
            refusals=(psycopg.OperationalError,),
            stop_signal=signal.SIGINT,  # "fast shutdown": closes connections and ends cleanly
            cwd=data,
            user=user,
        ):
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"


def _connect(port: int) -> None:
    psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres").close()


def _reachable(binaries: Path, user: int, home: Path) -> Path:
    """A folder from which `user` may run the executables: the package is copied if its folder is private."""
    try:
        subprocess.run([binaries / "postgres", "--version"], user=user, capture_output=True, check=True)
    except PermissionError:
        packages = binaries.parents[len(PACKAGED_POSTGRES.parts) - 1]
        if binaries != packages / PACKAGED_POSTGRES:
            raise SetupError(f"User {user} may not run {binaries}/postgres. {HINT}") from None
        shutil.copytree(packages, home / "packages", symlinks=True).chmod(0o755)
        return home / "packages" / PACKAGED_POSTGRES
    return binaries


if __name__ == "__main__":
    keep(running_postgres)
