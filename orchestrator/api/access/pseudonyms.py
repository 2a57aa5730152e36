"""Pseudonyms of people for analysts: the same person always has the same one, and nobody can compute it."""

import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

from orchestrator.errors import KEYS_UNREADABLE, os_errors_as

FILE: Final = "pseudonyms.key"


class Pseudonyms:
    """Computes pseudonyms with a secret in the data folder, which is made when first needed."""

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
