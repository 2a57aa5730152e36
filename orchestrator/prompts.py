"""Reads the prompts of the specialists from files. A prompt's revision is the digest of its text."""

import hashlib
from functools import cache
from pathlib import Path

from agents.ports import Prompt
from agents.roster import Specialist
from orchestrator.errors import BAD_SETTING, AnamnesisError


class PromptFiles:
    """Folders of prompts. Each prompt is read once, from the first folder that has it."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self.prompt_named = cache(self._read)

    def prompt(self, specialist: Specialist) -> Prompt:
        """The prompt of this specialist."""
        return self.prompt_named(specialist.prompt)

    def _read(self, name: str) -> Prompt:
        paths = [folder / f"{name}.md" for folder in self._folders]
        try:
            text = next((path for path in paths if path.exists()), paths[-1]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            raise AnamnesisError(BAD_SETTING, key=f"prompts/{name}.md", where="config", rule="cannot be read")
        return Prompt(name, text, hashlib.sha256(text.encode()).hexdigest()[:12])
