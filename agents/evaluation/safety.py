"""How often the guard flags phrases of known kinds."""

import tomllib
from pathlib import Path
from typing import Final

from agents.safety.rules.guard import Guard

KINDS: Final = ("emergencies", "crises", "calm", "ordinary")


def flagged_shares(guard: Guard, folder: Path) -> dict[str, dict[str, float | int]]:
    """For each kind of phrase, how many there are and which share the guard flags.

    Calm and ordinary phrases should not be flagged. These are the phrases that the rules were written for.
    """
    measured: dict[str, dict[str, float | int]] = {}
    for name in KINDS:
        tables = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        phrases = [text for table in tables.values() for text in table["phrases"]]
        flagged = sum(guard.check(text).flagged for text in phrases) / len(phrases)
        measured[name] = {"phrases": len(phrases), "flagged": round(flagged, 4)}
    return measured
