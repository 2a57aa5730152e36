"""Who answers: the specialists of `agents.toml`, and the choice among them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import AgentError, BadRoster, UnknownKey
from agents.values import COORDINATOR, EMERGENCY, OUT_OF_SCOPE, UNCLEAR, Intent

_Text = Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Question(_Section):
    """One question of an interview. A fact of any kind in `asks` answers it; summaries call it `topic`."""

    asks: Annotated[tuple[Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")], ...], Field(min_length=1)]
    text: Annotated[str, Field(pattern=r"\?$")]
    topic: _Text


class Specialist(_Section):
    """An agent: what it is called, what belongs to it, what it asks and what it says at the end.

    `says` is the fixed answer of one who does not interview.
    """

    agent_type: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
    display_name: _Text
    description: _Text
    scope: _Text
    prompt: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    keywords: tuple[_Text, ...] = ()
    examples: tuple[_Text, ...] = ()
    interview: tuple[Question, ...] = ()
    closing: str = ""
    says: str = ""


class Roster(_Section):
    """Everyone who may answer, in the order of `agents.toml`. Below `sure_enough` the coordinator asks."""

    sure_enough: Annotated[float, Field(ge=0, le=1)]
    agents: Mapping[str, Specialist]

    @property
    def agent_types(self) -> frozenset[str]:
        """Who can have given an answer."""
        return frozenset(self.agents)

    @property
    def intents(self) -> frozenset[str]:
        """Where a message can belong."""
        return self.agent_types - {COORDINATOR} | {UNCLEAR, OUT_OF_SCOPE}

    @property
    def specialists(self) -> tuple[Specialist, ...]:
        """Those who answer a concern: all but the coordinator and the emergency answer."""
        return tuple(each for name, each in self.agents.items() if name not in _ALWAYS)


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


def load(path: Path) -> Roster:
    """The roster that a file says. An unknown key is refused by its name."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None
    for key in said.keys() - {"routing", "agents"}:
        raise UnknownKey(path.name, key)
    agents = {name: dict(section) | {"agent_type": name} for name, section in said.get("agents", {}).items()}
    try:
        roster = Roster.model_validate({**said.get("routing", {}), "agents": agents})
    except ValidationError as error:
        raise _refusal(path.name, error) from None
    for name in _ALWAYS:
        if name not in roster.agents:
            raise BadRoster(path.name, f"agents.{name}", "is missing")
    return roster


def _refusal(where: str, error: ValidationError) -> AgentError:
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        return UnknownKey(where, key)
    return BadRoster(where, key, first["msg"][:1].lower() + first["msg"][1:])
