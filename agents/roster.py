"""Who answers: the specialists of `agents.toml`, and the choice among them."""

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
from agents.interviews import Interview, Manner, Section, refusal
from agents.values import COORDINATOR, EMERGENCY, OUT_OF_SCOPE, UNCLEAR, Intent

_Text = Annotated[str, Field(min_length=1)]


class Kind(Section):
    """What some messages have in common: a description, and what they sound like."""

    description: _Text
    examples: tuple[_Text, ...] = ()


class RedLine(Section):
    """What one specialist must not say, on top of what nobody may.

    A model is told that it may `never` do this. A sentence that fits one of the patterns is not sent; it is
    read as the output guard reads it: in small plain letters, clause by clause.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    never: _Text
    patterns: Annotated[tuple[_Text, ...], Field(min_length=1)]

    @field_validator("patterns")
    @classmethod
    def _can_be_read(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for number, pattern in enumerate(patterns, 1):
            try:
                re.compile(pattern)
            except re.error:
                raise PydanticCustomError(
                    "pattern", "pattern {number} cannot be read", {"number": number}
                ) from None
        return patterns


class Specialist(Kind):
    """An agent: what it is called, what belongs to it, what it asks and what it says at the end.

    `says` is the fixed answer of one who does not interview. Names that are not given follow from the type.
    It uses the `tools` that it names and no others, and keeps to its `red_lines`.
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
        """The red lines as rules, each by the name under which crossing it is recorded."""
        return {
            f"{self.agent_type.lower()}.{line.id}": re.compile(
                "|".join(f"(?:{each})" for each in line.patterns)
            )
            for line in self.red_lines
        }


class Roster(Section):
    """Everyone who may answer, in the order of `agents.toml`. Below `sure_enough` the coordinator asks."""

    sure_enough: Annotated[float, Field(ge=0, le=1)] = 0.4
    agents: Mapping[str, Specialist]
    manner: Manner = Manner()
    kinds: Mapping[str, Kind] = {}

    @property
    def agent_types(self) -> frozenset[str]:
        """Who can have given an answer."""
        return frozenset(self.agents)

    @property
    def intents(self) -> frozenset[str]:
        """Where a message can belong."""
        return self.agent_types - {COORDINATOR} | {UNCLEAR, OUT_OF_SCOPE}

    @property
    def examples(self) -> dict[str, tuple[str, ...]]:
        """What people say who belong to each intent; where none is given, its description speaks for it."""
        sections: list[tuple[str, Kind]] = [*self.agents.items(), *self.kinds.items()]
        return {name: each.examples or (each.description,) for name, each in sections if name != COORDINATOR}

    @property
    def specialists(self) -> tuple[Specialist, ...]:
        """Those who answer a concern: all but the coordinator and the emergency answer."""
        return tuple(each for name, each in self.agents.items() if name not in _ALWAYS)


GENERAL: Final = "general_health"
"""The interview of a specialist that has none of its own."""

COMMON: Final = "common.toml"
"""What all of them say alike."""

_ALWAYS: Final = (EMERGENCY, COORDINATOR)


def pick(intent: Intent, roster: Roster) -> Specialist:
    """Who answers: an emergency at once, however unsure; nobody's or an unsure intent the coordinator."""
    if intent.intent == EMERGENCY:
        return roster.agents[EMERGENCY]
    if (
        intent.intent not in roster.intents - {UNCLEAR, OUT_OF_SCOPE}
        or intent.confidence < roster.sure_enough
    ):
        return roster.agents[COORDINATOR]
    return roster.agents[intent.intent]


def load(path: Path, folder: Path | None = None, *, to_answer: bool = True) -> Roster:
    """The roster that a file says, its interviews from `folder` or the one beside it.

    An unknown key is refused by its name. To answer, someone must be there for emergencies and for what
    nobody else does; to route alone, nobody.
    """
    folder = folder or path.parent / "interviews"
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None
    for key in said.keys() - {"routing", "agents", "intents"}:
        raise UnknownKey(path.name, key)
    agents = {name: _filled_in(name, section, folder) for name, section in said.get("agents", {}).items()}
    kinds = said.get("intents", {})
    for name in kinds.keys() - {UNCLEAR, OUT_OF_SCOPE}:
        raise UnknownKey(path.name, f"intents.{name}")
    manner = interviews.load_manner(folder / COMMON)
    try:
        roster = Roster.model_validate(
            {**said.get("routing", {}), "agents": agents, "kinds": kinds, "manner": manner}
        )
    except ValidationError as error:
        raise refusal(path.name, error) from None
    for name in _ALWAYS if to_answer else ():
        if name not in roster.agents:
            raise BadRoster(path.name, f"agents.{name}", "is missing")
    return roster


def refuse_unknown_tools(roster: Roster, tools: Collection[str]) -> None:
    """Refuse by its name a tool that a specialist is to use and that nobody has."""
    for name, specialist in roster.agents.items():
        for tool in specialist.tools:
            if tool not in tools:
                raise BadRoster("agents.toml", f"agents.{name}.tools", f"there is no tool {tool}")


def _filled_in(agent_type: str, section: Mapping[str, object], folder: Path) -> dict[str, object]:
    """A section with its interview, and with the names that follow from the type where it gives none."""
    spoken = agent_type.replace("_", " ").lower()
    named = {"display_name": f"{spoken.title()} Agent", "scope": spoken, "prompt": agent_type.lower()}
    whole = named | dict(section)
    return whole | {"agent_type": agent_type, "interview": _interview(folder, whole)}


def _interview(folder: Path, section: Mapping[str, object]) -> Interview:
    """The interview called like the agent's prompt; without one, the general questions are asked."""
    for name in (section.get("prompt"), GENERAL):
        if isinstance(name, str) and (file := folder / f"{Path(name).name}.toml").is_file():
            return interviews.load(file)
    return Interview()
