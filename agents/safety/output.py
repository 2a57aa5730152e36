"""What no brain may say: diagnoses, prescriptions and doses are refused, sentence by sentence. Pure."""

import re
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRules
from agents.safety.text import clean


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_.]*$")]
    patterns: Annotated[tuple[str, ...], Field(min_length=1)]


class OutputGuard:
    """Reads what a brain says before anybody else does."""

    def __init__(self, rules: dict[str, re.Pattern[str]]) -> None:
        self._rules = rules

    def refusals(self, sentence: str) -> tuple[str, ...]:
        """The rules that a sentence breaks; it may be said when there is none."""
        plain = clean(sentence)
        return tuple(name for name, pattern in self._rules.items() if pattern.search(plain))


def load(folder: Path) -> OutputGuard:
    """The output guard of a folder of rules."""
    try:
        said = tomllib.loads((folder / "output.toml").read_text(encoding="utf-8"))
        rules = [_Rule.model_validate(rule) for rule in said["rule"]]
        return OutputGuard({rule.id: re.compile("|".join(rule.patterns)) for rule in rules})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRules("output.toml", ".".join(map(str, first["loc"])), first["msg"]) from None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, re.error):
        raise BadRules("output.toml", "$", "cannot be read as rules") from None
