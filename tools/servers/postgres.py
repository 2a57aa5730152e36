"""A throw-away PostgreSQL with pgvector on a free loopback port: `python -m tools.servers.postgres`.

For tests only: it trusts everyone on this machine and, with `fsync` off, would not survive a power cut.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tools.progress import SetupError, run
from tools.servers.keeper import free_port, keep
from tools.toolchain import PACKAGED_POSTGRES, ensure_postgres

NOBODY = 65534
SECONDS_TO_START = 60
OTHERWISE = "ANAMNESIS_TEST_POSTGRES_URL can name a running server instead."
QUICK_AND_FORGETFUL = {
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
    """The address of a PostgreSQL that is up during the body, with all its data gone afterwards."""
    binaries = binaries or ensure_postgres()
    if not (binaries / "initdb").exists():
        raise SetupError(f"There is no PostgreSQL in {binaries}. {OTHERWISE}")
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
            otherwise=OTHERWISE,
        )
        with _serving(binaries, data, user) as port:
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"


@contextmanager
def _serving(binaries: Path, data: Path, user: int | None) -> Iterator[int]:
    """The port PostgreSQL listens on while the body runs."""
    port = free_port()
    log = data.parent / "log"
    options = [f"-c{name}={value}" for name, value in (QUICK_AND_FORGETFUL | {"port": str(port)}).items()]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, *options],
            user=user,
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(server, port, log)
        yield port
    finally:
        server.send_signal(signal.SIGINT)  # "fast": cuts connections, ends cleanly
        server.wait()


def _wait_until_it_answers(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")
                raise SetupError(f"PostgreSQL did not start within {SECONDS_TO_START} s:\n{said}") from None
            time.sleep(0.05)


def _reachable(binaries: Path, user: int, home: Path) -> Path:
    """The same executables where `user` may run them: our own package is copied out of a closed folder."""
    try:
        subprocess.run([binaries / "postgres", "--version"], user=user, capture_output=True, check=True)
    except PermissionError:
        packages = binaries.parents[len(PACKAGED_POSTGRES.parts) - 1]
        if binaries != packages / PACKAGED_POSTGRES:
            raise SetupError(f"User {user} may not run {binaries}/postgres. {OTHERWISE}") from None
        shutil.copytree(packages, home / "packages", symlinks=True).chmod(0o755)
        return home / "packages" / PACKAGED_POSTGRES
    return binaries


if __name__ == "__main__":
    keep(running_postgres)
