"""How a browser signs in: a one-time code is exchanged for a session. Both are files in the data folder.

A file's name is the SHA-256 of the code or of the session's token; its content says whose it is and when it
expires. The server therefore never stores a secret, every process with the same data folder knows the same
codes and sessions, and removing a file, which is atomic, uses a code or ends a session.
"""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.api.keys import Keys
from orchestrator.errors import SESSIONS_UNWRITABLE, os_errors_as
from orchestrator.wire.ids import PersonId

CODE_SECONDS: Final = 600


class _Record(BaseModel):
    """The content of a file. `key` is a digest of the person's key: removing the key ends its sessions."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    person: PersonId
    key: str
    expires: float


class Sessions:
    """The one-time codes and the sessions of one data folder. A session lasts `seconds`."""

    def __init__(
        self, folder: Path, keys: Keys, *, seconds: float, now: Callable[[], float] = time.time
    ) -> None:
        self._codes, self._sessions = folder / "codes", folder / "sessions"
        self._keys, self._seconds, self._now = keys, seconds, now

    def issue_code(self, person: PersonId) -> str:
        """Make a code that signs this person in once, within ten minutes."""
        return self._create(self._codes, person, self._keys.of(person), CODE_SECONDS)

    def redeem(self, code: str) -> PersonId | None:
        """Use a code up and return whose it is; None if it is unknown, expired, or was used before."""
        file = _file(self._codes, code)
        person = self._person(file)
        return person if _remove(file) else None  # of two processes, only one removes the file

    def start(self, person: PersonId) -> str:
        """Start a session of this person and return its token."""
        return self._create(self._sessions, person, self._keys.of(person), self._seconds)

    def person(self, token: str) -> PersonId | None:
        """Return whose session it is; None if it is unknown, has expired or was ended."""
        return self._person(_file(self._sessions, token))

    def end(self, token: str) -> None:
        """End a session. Nothing happens if there is none."""
        _remove(_file(self._sessions, token))

    def _create(self, folder: Path, person: PersonId, key: str, seconds: float) -> str:
        secret = secrets.token_urlsafe(32)
        record = _Record(person=person, key=_digest(key), expires=self._now() + seconds)
        with os_errors_as(SESSIONS_UNWRITABLE):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._remove_expired(folder)
            descriptor = os.open(_file(folder, secret), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(record.model_dump_json())
        return secret

    def _remove_expired(self, folder: Path) -> None:
        for file in folder.iterdir():
            record = _read(file)
            if record is not None and record.expires <= self._now():
                _remove(file)

    def _person(self, file: Path) -> PersonId | None:
        record = _read(file)
        if record is None or record.expires <= self._now():
            return None
        key = self._keys.find(record.person)
        return record.person if key is not None and _digest(key) == record.key else None


def _file(folder: Path, secret: str) -> Path:
    return folder / _digest(secret)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _read(file: Path) -> _Record | None:
    with suppress(OSError, ValidationError):
        return _Record.model_validate_json(file.read_bytes())
    return None


def _remove(file: Path) -> bool:
    """Remove a file; False if another process was faster or there was none."""
    with os_errors_as(SESSIONS_UNWRITABLE):
        try:
            file.unlink()
        except FileNotFoundError:
            return False
    return True
