"""Reads the prompts from files and fills in their variables. A prompt's revision is the digest of its text.

`{{name}}` in a prompt is a variable: a value of the settings or of the specialist, or else the file
`parts/name.md`, which may contain variables itself. So what prompts share is written once.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from agents.ports import Prompt
from agents.roster import Roster, Specialist
from agents.values import COORDINATOR, EMERGENCY
from orchestrator.errors import BAD_SETTING, AnamnesisError

VARIABLE: Final = re.compile(r"\{\{([a-z_]+)\}\}")
_MAX_DEPTH: Final = 4
_BY_VIEW: Final = {
    "given": ("given_in_request", "given_in_blocks"),
    "reads": ("reads_from_request", "reads_from_blocks"),
}
"""The variables whose part depends on what a model sees: a request of ours, or memory blocks."""


@dataclass(frozen=True, slots=True)
class PromptValues:
    """The values of the variables that are the same in every prompt.

    `numbers` are whom to call, by kind. `output_rules` are the sentences about what is never said. With
    `in_blocks`, the model sees memory blocks, as Letta's agents do; else it sees what a request contains.
    """

    region: str = ""
    numbers: Mapping[str, str] = field(default_factory=dict)
    output_rules: tuple[str, ...] = ()
    roster: Roster | None = None
    in_blocks: bool = False

    def of(self, specialist: Specialist | None) -> dict[str, str]:
        """The values of the variables in the prompt of a specialist, or in one of no specialist."""
        agents = self.roster.agents.values() if self.roster else ()
        others = [each.scope for each in agents if each.agent_type not in (EMERGENCY, COORDINATOR)]
        shared = {
            **self.numbers,
            "region": self.region or "unknown",
            "output_rules": "\n".join(f"- {rule}" for rule in self.output_rules),
            "agents": "\n".join(f"- {name}: {text}" for name, text in self._intents().items()),
        }
        if specialist is None:
            return shared
        return shared | {
            "name": specialist.display_name,
            "scope": specialist.scope,
            "red_lines": "\n".join(f"- Never {line.never}." for line in specialist.red_lines),
            "tools": f"{', '.join(specialist.tools)}." if specialist.tools else "none.",
            "others": ", ".join(scope for scope in others if scope != specialist.scope),
        }

    def _intents(self) -> dict[str, str]:
        if self.roster is None:
            return {}
        sections = {**self.roster.agents, **self.roster.other_intents}
        return {name: section.description for name, section in sections.items() if name != COORDINATOR}


class PromptFiles:
    """Folders of prompts. Each prompt is read and filled in once, from the first folder that has it."""

    def __init__(self, *folders: Path, values: PromptValues | None = None) -> None:
        self._folders, self._values = folders, values or PromptValues()
        self.prompt_named = cache(self._render)
        self._of_type: dict[str, Prompt] = {}

    def prompt(self, specialist: Specialist) -> Prompt:
        """The prompt of this specialist."""
        if specialist.agent_type not in self._of_type:
            self._of_type[specialist.agent_type] = self._render(specialist.prompt, specialist)
        return self._of_type[specialist.agent_type]

    def _render(self, name: str, specialist: Specialist | None = None) -> Prompt:
        text = self._fill(name, self._read(name), self._values.of(specialist))
        return Prompt(name, text, hashlib.sha256(text.encode()).hexdigest()[:12])

    def _fill(self, name: str, text: str, values: Mapping[str, str], depth: int = 0) -> str:
        """The text with its variables replaced, and with at most one empty line in a row."""

        def value_of(found: re.Match[str]) -> str:
            variable = found[1]
            if variable in values:
                return values[variable]
            if depth == _MAX_DEPTH:
                raise _bad(name, f"includes {{{{{variable}}}}} within itself")
            part = self._read(f"parts/{self._part(variable)}", f"{name}.md has {{{{{variable}}}}}, but it")
            return self._fill(name, part.rstrip("\n"), values, depth + 1)

        return re.sub(r"\n{3,}", "\n\n", VARIABLE.sub(value_of, text))

    def _part(self, variable: str) -> str:
        """The file of a variable."""
        return _BY_VIEW[variable][self._values.in_blocks] if variable in _BY_VIEW else variable

    def _read(self, name: str, what: str = "") -> str:
        paths = [folder / f"{name}.md" for folder in self._folders]
        try:
            return next((path for path in paths if path.exists()), paths[-1]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise _bad(name, f"{what} cannot be read".strip()) from None


def _bad(name: str, rule: str) -> AnamnesisError:
    return AnamnesisError(BAD_SETTING, key=f"prompts/{name}.md", where="config", rule=rule)
