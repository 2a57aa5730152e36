"""How far a client has read in each conversation with a server, kept in a folder from one run to the next."""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit


class Bookmarks:
    """The last stanza seen of each conversation with one server, in a small file each.

    A file's name is a digest: a conversation's id may be typed by hand, and the folder tells nobody who was
    talked to.
    """

    def __init__(self, folder: Path, server: str) -> None:
        self._folder, self._server = folder, urlsplit(server).netloc

    def seen(self, conversation_id: str) -> int | None:
        """The last stanza seen there; None where nothing is known, and then nothing is asked for again."""
        try:
            return int(self._file(conversation_id).read_text())
        except (OSError, ValueError):
            return None

    def keep(self, conversation_id: str, seen: int) -> None:
        """Remember it. What cannot be written costs nothing but stanzas that are told once more."""
        file = self._file(conversation_id)
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = file.with_suffix(f".{os.getpid()}")
            draft.write_text(f"{seen}\n")
            draft.replace(file)

    def _file(self, conversation_id: str) -> Path:
        return self._folder / sha256(f"{self._server}\n{conversation_id}".encode()).hexdigest()[:32]
