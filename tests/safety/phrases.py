"""The phrases that the guard is tested with."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.setup.toolchain import CHECKOUT

RULES: Final = CHECKOUT / "config" / "safety"
KNOWN: Final = RULES / "phrases"
HELD_OUT: Final = Path(__file__).parent / "held_out"
BLIND: Final = Path(__file__).parent / "blind"
"""Messages as many different people write, written before the rules were widened."""
BLIND_LATER: Final = Path(__file__).parent / "blind_later"
"""The same, written after the rules were widened."""
ASIDE: Final = Path(__file__).parent / "aside"
"""Every fifth phrase that was written for the classifier, set aside before the first training."""
UNSEEN: Final = Path(__file__).parent / "unseen"
"""Written by a person who had seen neither rules nor phrases; only counted, never read one by one."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A message, the table of the file that contains it, and the lowest correct tier."""

    theme: str
    text: str
    tier: int = 0


def phrases(folder: Path, name: str) -> list[Phrase]:
    """All phrases of one file."""
    tables = read(folder / f"{name}.toml")
    return [
        Phrase(theme, text, table.get("tier", 0))
        for theme, table in tables.items()
        for text in table["phrases"]
    ]


def read(path: Path) -> dict[str, Any]:
    """A TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def injections() -> list[str]:
    """Texts that ask the guard to ignore a danger."""
    texts: list[str] = read(Path(__file__).parent / "injections.toml")["texts"]
    return texts


SAID_FOR_RULES: Final = read(Path(__file__).parent / "rules.toml")
"""For each rule: a text that only this rule finds, its kind and its tier."""
