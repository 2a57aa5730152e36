"""Which processes on this machine are alive: each holds a lock on a file of its own until it ends.

A lease says until when its holder may work. If all processes share a folder on one machine, nobody needs to
wait for the lease of a process that died: the lock on its file is gone.
"""

import fcntl
import os
from pathlib import Path


class Presence:
    """The lock file of this process in a folder that all processes share."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = os.open(folder / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def is_gone(self, name: str) -> bool:
        """Whether the process of that name has ended. If so, its file is removed."""
        path = self._folder / Path(name).name
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return not path.exists()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            return True
        except OSError:
            return False
        finally:
            os.close(file)

    def leave(self) -> None:
        """Remove our file, so that other processes see at once that this one has ended."""
        (self._folder / self.name).unlink(missing_ok=True)
        os.close(self._file)
