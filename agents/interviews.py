"""The interviews of `config/interviews`: what a specialist without a model asks and says."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import AgentError, BadRoster, UnknownKey

_Text = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """Base of configuration sections. Unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class InterviewQuestion(Section):
    """One question of an interview. A fact of any kind in `asks` answers it; summaries call it `topic`.

    The other fields restrict when it is asked:
    `about`, `not_about`: the concern contains one of these words, or none of them.
    `given`, `not_given`: the person has something of this kind of fact, or is not known to.
    `sex`: the person is not known to be of the other sex.
    `pregnant`: the person is known to be pregnant (true), or is not (false).
    """

    asks: Annotated[tuple[Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")], ...], Field(min_length=1)]
    text: Annotated[str, Field(pattern=r"\?$")]
    topic: _Text
    about: tuple[_Text, ...] = ()
    not_about: tuple[_Text, ...] = ()
    given: str = ""
    not_given: str = ""
    sex: Literal["female", "male"] | None = None
    pregnant: bool | None = None

    def fits_person(self, sex: str, *, pregnant: bool) -> bool:
        """Whether the question makes sense for a person. `sex` is empty if it is unknown."""
        return (not sex or self.sex in (None, sex)) and self.pregnant in (None, pregnant)

    def fits_concern(self, concern: str) -> bool:
        """Whether the question makes sense for a concern."""
        low = concern.lower().replace("hay fever", "hay")  # it is not a fever
        wanted = not self.about or any(word in low for word in self.about)
        return wanted and not any(word in low for word in self.not_about)


class Information(Section):
    """General information about a concern, with its source. It is never a diagnosis.

    It is given for concerns that contain a word of `about`, and one of `together_with` if there are any. A
    person to whom a word of `unless` applies does not get it. `children`: it is only for children (true), or
    not for them (false).
    """

    about: Annotated[tuple[_Text, ...], Field(min_length=1)]
    together_with: tuple[_Text, ...] = ()
    unless: tuple[_Text, ...] = ()
    children: bool | None = None
    text: Annotated[str, Field(pattern=r"[^.]$")]
    source: _Text


class Warning(Section):
    """When a person with a concern should see somebody. With `at_once` it is said before any question."""

    about: Annotated[tuple[_Text, ...], Field(min_length=1)]
    text: Annotated[str, Field(pattern=r"\.$")]
    at_once: bool = False


class Interview(Section):
    """What one specialist asks and tells. `closing` is said after the last question."""

    closing: str = ""
    questions: tuple[InterviewQuestion, ...] = ()
    information: tuple[Information, ...] = ()
    see_someone: tuple[Warning, ...] = ()


class Manner(Section):
    """What all specialists share: the sources that information may name, with their full names."""

    sources: Mapping[str, _Text] = {}


def load(path: Path) -> Interview:
    """Load an interview."""
    try:
        return Interview.model_validate(_read_toml(path))
    except ValidationError as error:
        raise config_error(path.name, error) from None


def load_manner(path: Path) -> Manner:
    """Load the shared wording; the defaults, if the file does not exist."""
    try:
        return Manner.model_validate(_read_toml(path)) if path.is_file() else Manner()
    except ValidationError as error:
        raise config_error(path.name, error) from None


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None


def config_error(where: str, error: ValidationError) -> AgentError:
    """The first validation error, as the key and the rule that it breaks."""
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        return UnknownKey(where, key)
    return BadRoster(where, key, first["msg"][:1].lower() + first["msg"][1:])
