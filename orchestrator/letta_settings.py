"""The settings that a server used with Letta last, for commands that are given only Letta's address."""

import json
from contextlib import suppress
from typing import Final

from pydantic import ValidationError

from orchestrator.settings import LettaSettings, Settings

FILE: Final = "letta.json"
NOT_KEPT: Final = {"base_url", "api_key"}


def remember(settings: Settings) -> None:
    """Keep what the agents in Letta are meant to look like, in the data folder. The key is not kept."""
    draft = (folder := settings.data.prepare()) / f"{FILE}.new"
    draft.write_text(settings.letta.model_dump_json(exclude=NOT_KEPT), encoding="utf-8")
    draft.rename(folder / FILE)


def recall(settings: Settings) -> Settings:
    """The settings, with the values that the last server used in place of defaults. Explicit values win."""
    with suppress(OSError, ValueError, ValidationError):
        kept = json.loads((settings.data.dir / FILE).read_text(encoding="utf-8"))
        chosen = {
            name for name in LettaSettings.model_fields if f"letta.{name}" in settings.origins
        } | NOT_KEPT
        update = {
            name: value for name, value in kept.items() if name in LettaSettings.model_fields.keys() - chosen
        }
        letta = LettaSettings.model_validate({**dict(settings.letta), **update})
        return settings.model_copy(update={"letta": letta})
    return settings
