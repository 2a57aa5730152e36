"""The last stanza a client received in each conversation, kept in a folder from one run to the next."""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit


class Bookmarks:
    """One small file per conversation with one server.

    A file's name is a digest, because a conversation's id may be typed by hand and contain anything, and so
    that the folder does not reveal which servers were used.
    """

    def __init__(self, folder: Path, server: str) -> None:
        self._folder, self._server = folder, urlsplit(server).netloc

    def seen(self, conversation_id: str) -> int | None:
        """Return the last stanza received; None if unknown, and then the server repeats nothing."""
        try:
            return int(self._file(conversation_id).read_text())
        except (OSError, ValueError):
            return None

    def keep(self, conversation_id: str, seen: int) -> None:
        """Store the last stanza received. If that fails, the next run only receives some stanzas twice."""
        file = self._file(conversation_id)
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = file.with_suffix(f".{os.getpid()}")
            draft.write_text(f"{seen}\n")
            draft.replace(file)

    def _file(self, conversation_id: str) -> Path:
        return self._folder / sha256(f"{self._server}\n{conversation_id}".encode()).hexdigest()[:32]
