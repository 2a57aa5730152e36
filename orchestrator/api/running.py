"""Which servers run with a data folder. Each has a file there with its address, locked while it runs."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FOLDER: Final = "servers"


@contextmanager
def announced(data: Path, url: str) -> Iterator[None]:
    """List the server of this process while the block runs. If the process crashes, the lock is gone."""
    folder = data / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    file, draft = folder / str(os.getpid()), folder / f".{os.getpid()}"
    descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, url.encode())
        draft.replace(file)  # only now, so that nobody finds it unlocked and takes its process for dead
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def running_servers(data: Path) -> list[str]:
    """Return the addresses of the running servers. Removes the files of those that crashed."""
    folder = data / FOLDER
    files = sorted(file for file in folder.glob("[0-9]*")) if folder.is_dir() else []
    return [url for file in files if (url := _url_if_locked(file))]


def _url_if_locked(file: Path) -> str | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 1024).decode()
    else:
        file.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)
