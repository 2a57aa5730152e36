"""Who holds which key. They lie in the data folder, readable by its owner alone, and survive a restart."""

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from orchestrator.api import strict_json
from orchestrator.errors import INVALID_FIELD, KEYS_EXPOSED, KEYS_UNREADABLE, AnamnesisError
from orchestrator.wire.ids import PERSON_RULE, PersonId, names_a_person

FILE: Final = "keys.json"


def _is_a_person(text: PersonId) -> PersonId:
    if not names_a_person(text):
        raise ValueError(PERSON_RULE)
    return text


_Person = Annotated[PersonId, AfterValidator(_is_a_person)]
_Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43,}$")]
_contents = TypeAdapter(dict[_Person, _Key], config=ConfigDict(hide_input_in_errors=True))


class Keys:
    """The key of each person: 256 random bits, kept as they are, for `anamnesis serve` prints them again.

    The file is read again whenever it changed: a key taken out of it is refused at once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / FILE
        self._read: Mapping[PersonId, str] = {}
        self._as_of: tuple[int, ...] = ()

    def of(self, person: PersonId) -> str:
        """The person's key; a new one if there is none yet."""
        if not names_a_person(person):
            raise AnamnesisError(INVALID_FIELD, field="user", rule=PERSON_RULE)
        with self._alone():
            keys = self._current()
            if person not in keys:
                keys = {**keys, person: secrets.token_urlsafe(32)}
                self._write(keys)
            return keys[person]

    def owner(self, key: str) -> PersonId | None:
        """Whose key it is, if anyone's."""
        return self._match(key, lambda kept: kept)

    def owner_of_cookie(self, cookie: str) -> PersonId | None:
        """Whose session cookie it is, if anyone's."""
        return self._match(cookie, cookie_for)

    def _match(self, given: str, made_of: Callable[[str], str]) -> PersonId | None:
        """Compare with everyone, and with each for as long, so that the time taken tells nothing."""
        found = None
        for person, kept in self._current().items():
            if hmac.compare_digest(made_of(kept).encode(), given.encode()):
                found = person
        return found

    def _current(self) -> Mapping[PersonId, str]:
        with _as_ours():
            try:
                state = self._file.stat()
            except FileNotFoundError:
                return {}
            as_of = (state.st_ino, state.st_mtime_ns, state.st_size, state.st_mode)
            if as_of != self._as_of:
                if state.st_mode & 0o077:
                    raise AnamnesisError(KEYS_EXPOSED, file=FILE)
                self._read, self._as_of = _parse(self._file.read_bytes()), as_of
        return self._read

    def _write(self, keys: Mapping[PersonId, str]) -> None:
        """Whole or not at all: the new file is made beside the old one and takes its place."""
        beside = self._file.with_suffix(".new")
        with _as_ours():
            beside.unlink(missing_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(keys, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._file)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes that start at once must not each make a key."""
        with _as_ours():
            folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def cookie_for(key: str) -> str:
    """What a browser keeps instead of the key. It follows from it, so it too survives a restart."""
    return hmac.digest(key.encode(), b"anamnesis session cookie", "sha256").hex()


def _parse(text: bytes) -> dict[PersonId, str]:
    try:
        return _contents.validate_python(strict_json.parse(text))
    except (AnamnesisError, ValidationError):
        rule = f"it is not a map from persons to keys; a person {PERSON_RULE}"
    raise AnamnesisError(KEYS_UNREADABLE, file=FILE, rule=rule)


@contextmanager
def _as_ours() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        rule = os.strerror(error.errno or 0)
    else:
        return
    raise AnamnesisError(KEYS_UNREADABLE, file=FILE, rule=rule)
