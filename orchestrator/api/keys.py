"""The key of each person, kept in `keys.json` in the data folder."""

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from orchestrator.api import strict_json
from orchestrator.errors import INVALID_FIELD, KEYS_EXPOSED, KEYS_UNREADABLE, AnamnesisError, os_errors_as
from orchestrator.wire.ids import PERSON_RULE, PersonId, is_person_id

FILE: Final = "keys.json"


def _check_person(text: PersonId) -> PersonId:
    if not is_person_id(text):
        raise ValueError(PERSON_RULE)
    return text


_Person = Annotated[PersonId, AfterValidator(_check_person)]
_Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43,}$")]
_contents = TypeAdapter(dict[_Person, _Key], config=ConfigDict(hide_input_in_errors=True))


class Keys:
    """The keys of one data folder: 256 random bits per person, for programs.

    They are stored in plain text, because programs read them there. The file must be readable by its owner
    only. It is read again whenever it has changed, so a removed key is refused at once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / FILE
        self._keys: Mapping[PersonId, str] = {}
        self._version: tuple[int, ...] = ()

    def of(self, person: PersonId) -> str:
        """Return the person's key; make one if there is none yet."""
        if not is_person_id(person):
            raise AnamnesisError(INVALID_FIELD, field="user", rule=PERSON_RULE)
        with self._lock():
            keys = self._load()
            if person not in keys:
                keys = {**keys, person: secrets.token_urlsafe(32)}
                self._write(keys)
            return keys[person]

    def find(self, person: PersonId) -> str | None:
        """Return the person's key, or None if there is none."""
        return self._load().get(person)

    def owner(self, key: str) -> PersonId | None:
        """Return whose key it is, or None.

        Compares with every key, each in constant time, so that the time taken reveals nothing.
        """
        found = None
        for person, known in self._load().items():
            if hmac.compare_digest(known.encode(), key.encode()):
                found = person
        return found

    def _load(self) -> Mapping[PersonId, str]:
        with os_errors_as(KEYS_UNREADABLE, file=FILE):
            try:
                state = self._file.stat()
            except FileNotFoundError:
                return {}
            version = (state.st_ino, state.st_mtime_ns, state.st_size, state.st_mode)
            if version != self._version:
                if state.st_mode & 0o077:
                    raise AnamnesisError(KEYS_EXPOSED, file=FILE)
                self._keys, self._version = parse_keys(self._file.read_bytes()), version
        return self._keys

    def _write(self, keys: Mapping[PersonId, str]) -> None:
        """Write a new file and rename it over the old one, so that a crash leaves one of the two."""
        draft = self._file.with_suffix(".new")
        with os_errors_as(KEYS_UNREADABLE, file=FILE):
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(keys, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._file)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the folder, so that two processes that start together do not each make a key."""
        with os_errors_as(KEYS_UNREADABLE, file=FILE):
            folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def parse_keys(text: bytes) -> dict[PersonId, str]:
    """Read the contents of a key file: a JSON object from persons to keys."""
    try:
        return _contents.validate_python(strict_json.parse(text))
    except (AnamnesisError, ValidationError):
        rule = f"it is not a map from persons to keys; a person {PERSON_RULE}"
    raise AnamnesisError(KEYS_UNREADABLE, file=FILE, rule=rule)
