"""Warns when a medicine that is asked about does not go with what the person takes, has or reacts to.

The table is `config/local/medicines.toml`. It may warn; that it does not is never an assurance.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRoster

_Text = Annotated[str, Field(min_length=1)]


_NO_MEDICINES: Final = frozenset(("alcohol", "grapefruit", "potassium"))


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Warning(_Section):
    """A warning about medicines of the class `asked`, for people to whom another field applies."""

    asked: _Text
    allergy: tuple[_Text, ...] = ()
    medicines: tuple[_Text, ...] = ()
    conditions: tuple[_Text, ...] = ()
    pregnancy: bool = False
    text: _Text
    source: _Text


class Medicines(_Section):
    """The classes of medicines and the warnings."""

    classes: Mapping[str, tuple[_Text, ...]]
    warnings: tuple[Warning, ...]

    def named(self, text: str) -> dict[str, str]:
        """The classes of which a text names a medicine, with the name."""
        low = text.lower()
        return {
            name: found[0]
            for name, members in self.classes.items()
            if (found := re.search(rf"(?<![\w-])(?:{'|'.join(map(re.escape, members))})(?![\w-])", low))
        }

    def medicine_in(self, text: str) -> str:
        """The first medicine that a text names; empty if it names none. Drinks and food are no medicines."""
        return next((found for name, found in self.named(text).items() if name not in _NO_MEDICINES), "")

    def warning(self, question: str, known: Mapping[str, str]) -> str:
        """The warning for a question, given the person's facts by kind; empty if the table has none."""
        low = question.lower()
        asked = self.named(question)
        takes = f"{known.get('medications', '')}, {known.get('other_medicines', '')}"
        for warning in self.warnings:
            name = asked.get(warning.asked)
            if name is None:
                continue
            other = self._clash(warning, name, low, takes, known)
            if other:
                text = warning.text.format(asked=name, other=other)
                return f"{text[:1].upper()}{text[1:]} (source: {warning.source})."
        return ""

    def _clash(self, warning: Warning, name: str, low: str, takes: str, known: Mapping[str, str]) -> str:
        """What of the person's facts, or of the question itself, the medicine does not go with."""
        rest = low.replace(name, " ", 1)
        for each in warning.allergy:
            told = rest if "allerg" in rest else ""
            if found := self._member(each, f"{known.get('allergies', '')} {told}"):
                return found
        for each in warning.medicines:
            found = self._member(
                each, takes.lower().replace(name, " ") if each == warning.asked else takes
            ) or self._member(each, rest)
            if found and found != name:
                return found
        for each in warning.conditions:
            if re.search(rf"\b{re.escape(each)}", f"{known.get('conditions', '')} {rest}".lower()):
                return each
        if warning.pregnancy and (re.search(r"pregnan|expecting", f"{known.get('pregnancy', '')} {rest}")):
            return "pregnancy"
        return ""

    def _member(self, name: str, text: str) -> str:
        members = self.classes.get(name, ())
        found = re.search(rf"(?<![\w-])(?:{'|'.join(map(re.escape, members))})(?![\w-])", text.lower())
        return found[0] if found else ""


def load(path: Path) -> Medicines:
    """Load the table. A warning that names an unknown class is refused."""
    try:
        table = Medicines.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError):
        raise BadRoster(path.name, "$", "cannot be read as a table of medicines") from None
    for warning in table.warnings:
        for name in (warning.asked, *warning.allergy, *warning.medicines):
            if name not in table.classes:
                raise BadRoster(path.name, f"classes.{name}", "is missing")
    return table
