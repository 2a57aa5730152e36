"""The specialists of `agents.toml`, and which of them answers."""

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from agents import interviews
from agents.errors import BadRoster, UnknownKey
from agents.interviews import Interview, Manner, Section, config_error
from agents.values import COORDINATOR, EMERGENCY, OUT_OF_SCOPE, UNCLEAR, Intent

_Text = Annotated[str, Field(min_length=1)]


class IntentSection(Section):
    """A group of messages: a description, and examples from which the router learns."""

    description: _Text
    examples: tuple[_Text, ...] = ()


class RedLine(Section):
    """What one specialist must not say, in addition to what no specialist may say.

    `never` is part of the request to a model. A sentence that matches one of the `patterns` is not sent. As
    in the output guard, patterns are matched against each clause in plain lower-case letters.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    never: _Text
    patterns: Annotated[tuple[_Text, ...], Field(min_length=1)]

    @field_validator("patterns")
    @classmethod
    def _compile_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for number, pattern in enumerate(patterns, 1):
            try:
                re.compile(pattern)
            except re.error:
                raise PydanticCustomError(
                    "pattern", "pattern {number} cannot be read", {"number": number}
                ) from None
        return patterns


class Specialist(IntentSection):
    """One agent: its names, its scope, its prompt and its interview.

    `says` is the fixed answer of an agent without an interview. Names that are not given follow from the
    type. It may use only the `tools` listed here, and must keep to its `red_lines`.
    """

    agent_type: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
    display_name: _Text
    scope: _Text
    prompt: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    interview: Interview = Interview()
    says: str = ""
    tools: tuple[_Text, ...] = ()
    red_lines: tuple[RedLine, ...] = ()

    @cached_property
    def lines(self) -> Mapping[str, re.Pattern[str]]:
        """The patterns of the red lines, by the name under which a violation is recorded."""
        return {
            f"{self.agent_type.lower()}.{line.id}": re.compile(
                "|".join(f"(?:{each})" for each in line.patterns)
            )
            for line in self.red_lines
        }


class Roster(Section):
    """All agents, in the order of `agents.toml`.

    If the confidence of an intent is below `sure_enough`, the coordinator asks what the person means.
    """

    sure_enough: Annotated[float, Field(ge=0, le=1)] = 0.4
    agents: Mapping[str, Specialist]
    manner: Manner = Manner()
    other_intents: Mapping[str, IntentSection] = {}

    @property
    def agent_types(self) -> frozenset[str]:
        """The types of all agents."""
        return frozenset(self.agents)

    @property
    def intents(self) -> frozenset[str]:
        """All intents that a message can have."""
        return self.agent_types - {COORDINATOR} | {UNCLEAR, OUT_OF_SCOPE}

    @property
    def examples(self) -> dict[str, tuple[str, ...]]:
        """Example messages of each intent; the description, if no examples are given."""
        sections: list[tuple[str, IntentSection]] = [*self.agents.items(), *self.other_intents.items()]
        return {name: each.examples or (each.description,) for name, each in sections if name != COORDINATOR}

    @property
    def specialists(self) -> tuple[Specialist, ...]:
        """All agents but the coordinator and the emergency answer."""
        return tuple(each for name, each in self.agents.items() if name not in _REQUIRED)


GENERAL: Final = "general_health"
"""The interview of a specialist that has no file of its own."""

COMMON: Final = "common.toml"
"""The file with the wording that all specialists share."""

_REQUIRED: Final = (EMERGENCY, COORDINATOR)


def pick(intent: Intent, roster: Roster) -> Specialist:
    """The agent for an intent.

    The emergency answer is picked at any confidence. The coordinator is picked if the intent is unclear,
    unknown, out of scope or not sure enough.
    """
    if intent.intent == EMERGENCY:
        return roster.agents[EMERGENCY]
    if (
        intent.intent not in roster.intents - {UNCLEAR, OUT_OF_SCOPE}
        or intent.confidence < roster.sure_enough
    ):
        return roster.agents[COORDINATOR]
    return roster.agents[intent.intent]


def load(path: Path, folder: Path | None = None, *, to_answer: bool = True) -> Roster:
    """Load a roster, and its interviews from `folder` or the folder `interviews` next to it.

    An unknown key is refused. With `to_answer`, the emergency answer and the coordinator must exist; for
    routing alone they need not.
    """
    folder = folder or path.parent / "interviews"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None
    for key in document.keys() - {"routing", "agents", "intents"}:
        raise UnknownKey(path.name, key)
    agents = {name: _complete(name, section, folder) for name, section in document.get("agents", {}).items()}
    other_intents = document.get("intents", {})
    for name in other_intents.keys() - {UNCLEAR, OUT_OF_SCOPE}:
        raise UnknownKey(path.name, f"intents.{name}")
    manner = interviews.load_manner(folder / COMMON)
    try:
        sections = {"agents": agents, "other_intents": other_intents, "manner": manner}
        roster = Roster.model_validate({**document.get("routing", {}), **sections})
    except ValidationError as error:
        raise config_error(path.name, error) from None
    for name in _REQUIRED if to_answer else ():
        if name not in roster.agents:
            raise BadRoster(path.name, f"agents.{name}", "is missing")
    return roster


def refuse_unknown_tools(roster: Roster, tools: Collection[str]) -> None:
    """Raise `BadRoster` if a specialist lists a tool that does not exist."""
    for name, specialist in roster.agents.items():
        for tool in specialist.tools:
            if tool not in tools:
                raise BadRoster("agents.toml", f"agents.{name}.tools", f"there is no tool {tool}")


def _complete(agent_type: str, section: Mapping[str, object], folder: Path) -> dict[str, object]:
    """A section with its interview, and with default names that follow from the type."""
    words = agent_type.replace("_", " ").lower()
    defaults = {"display_name": f"{words.title()} Agent", "scope": words, "prompt": agent_type.lower()}
    complete = defaults | dict(section)
    return complete | {"agent_type": agent_type, "interview": _load_interview(folder, complete)}


def _load_interview(folder: Path, section: Mapping[str, object]) -> Interview:
    """The interview with the name of the agent's prompt, else the general one."""
    for name in (section.get("prompt"), GENERAL):
        if isinstance(name, str) and (file := folder / f"{Path(name).name}.toml").is_file():
            return interviews.load(file)
    return Interview()
