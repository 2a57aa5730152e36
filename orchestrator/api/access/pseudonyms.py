"""Names of people as a caller may see them: an analyst gets pseudonyms, which nobody can compute."""

import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from orchestrator.api.access.roles import Caller, Role
from orchestrator.errors import KEYS_UNREADABLE, MISSING_ROLE, AnamnesisError, os_errors_as
from orchestrator.store.repositories.turn.traces import PERSON

FILE: Final = "pseudonyms.key"


class Pseudonyms:
    """Computes pseudonyms with a secret in the data folder, which is made when first needed.

    The same person always has the same one.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._secret = b""

    def of(self, person_id: str) -> str:
        """The pseudonym of a person."""
        digest = hmac.digest(self._key(), person_id.encode(), sha256)
        return f"p_{urlsafe_b64encode(digest)[:16].decode()}"

    def _key(self) -> bytes:
        if not self._secret:
            with os_errors_as(KEYS_UNREADABLE, file=FILE):
                if not self._file.exists():
                    draft = self._file.with_suffix(f".{os.getpid()}.new")
                    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(secrets.token_hex(32).encode())
                    try:
                        os.link(draft, self._file)  # of two processes, one is first
                    except FileExistsError:
                        pass
                    finally:
                        draft.unlink()
                self._secret = self._file.read_bytes()
        return self._secret


@dataclass(frozen=True, slots=True)
class Names:
    """What one caller sees of names and of the reasons that staff gives, which may contain names."""

    caller: Caller
    pseudonyms: Pseudonyms

    def person(self, person_id: str) -> str:
        """The id of a person, or their pseudonym."""
        is_shown = person_id == self.caller.person or self.caller.sees_names
        return person_id if is_shown else self.pseudonyms.of(person_id)

    def actor(self, actor: str) -> str:
        """An actor. Of a person who looked or changed something, the name is replaced."""
        kind, colon, name = actor.partition(":")
        return f"{PERSON}:{self.person(name)}" if colon and kind == PERSON else actor

    def reason(self, reason: str | None, *, is_own: bool) -> str | None:
        """Why staff looked: for the person whose memory it was, for auditors, and for those who see names."""
        is_shown = is_own or self.caller.sees_names or Role.AUDITOR in self.caller.roles
        return reason if is_shown else None

    def refuse_if_hidden(self, actor: str | None) -> None:
        """Refuse a filter by the actor whose name the caller does not see."""
        kind, colon, name = (actor or "").partition(":")
        if colon and kind.casefold() == PERSON and self.person(name) != name:
            raise AnamnesisError(MISSING_ROLE, roles=f"{Role.OPERATOR}, {Role.PRIVACY}")
