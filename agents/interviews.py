"""How a specialist interviews without a model: what it asks, tells and says in the end."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import AgentError, BadRoster, UnknownKey

_Text = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """A part of the configuration. What it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Question(Section):
    """One question of an interview. A fact of any kind in `asks` answers it; summaries call it `topic`.

    With `about` it is asked only of concerns that have one of these words, with `not_about` of none that has;
    with `given` only where something of that kind is known to be there, with `not_given` where nothing is;
    with `sex` of nobody who is known to be of the other, with `pregnant` by whether that is known.
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

    def suits(self, sex: str, *, pregnant: bool) -> bool:
        """Whether it makes sense to ask it of somebody of this sex, if known, who may be pregnant."""
        return (not sex or self.sex in (None, sex)) and self.pregnant in (None, pregnant)

    def fits(self, concern: str) -> bool:
        """Whether it makes sense to ask it about a concern."""
        low = concern.lower().replace("hay fever", "hay")  # which is none
        wanted = not self.about or any(word in low for word in self.about)
        return wanted and not any(word in low for word in self.not_about)


class Information(Section):
    """Something general that is known about a concern, and where it is known from; it never diagnoses.

    Where it has `together_with`, it is about concerns that have a word of both. `children` says that it is
    for them alone, or not for them; who has or is something of `unless` is not told it.
    """

    about: Annotated[tuple[_Text, ...], Field(min_length=1)]
    together_with: tuple[_Text, ...] = ()
    unless: tuple[_Text, ...] = ()
    children: bool | None = None
    text: Annotated[str, Field(pattern=r"[^.]$")]
    source: _Text


class Warning(Section):
    """When someone with such a concern should be seen. What is said `at_once` does not wait for questions."""

    about: Annotated[tuple[_Text, ...], Field(min_length=1)]
    text: Annotated[str, Field(pattern=r"\.$")]
    at_once: bool = False


class Interview(Section):
    """All that a specialist says by itself. Where there are several wordings, they take turns.

    Who only wants to know something, and was told, hears `in_general` and no question about a complaint.
    """

    opening: tuple[_Text, ...] = ()
    closing: str = ""
    unsure: tuple[_Text, ...] = ()
    in_general: tuple[_Text, ...] = ()
    unclear: tuple[_Text, ...] = ()
    out_of_scope: tuple[_Text, ...] = ()
    questions: tuple[Question, ...] = ()
    information: tuple[Information, ...] = ()
    see_someone: tuple[Warning, ...] = ()


class Manner(Section):
    """What every specialist says alike. Wordings of a list take turns; a part that is missing is not said."""

    acknowledgements: tuple[_Text, ...] = ("Thank you.",)
    not_sure: tuple[_Text, ...] = ()
    not_said: tuple[_Text, ...] = ()
    corrected: tuple[_Text, ...] = ()
    why: tuple[_Text, ...] = ()
    again: tuple[_Text, ...] = ()
    handoff: tuple[_Text, ...] = ()
    summary: tuple[_Text, ...] = ()
    added: tuple[_Text, ...] = ()
    still: tuple[_Text, ...] = ()
    farewell: tuple[_Text, ...] = ("All the best.",)
    welcome: tuple[_Text, ...] = ("What can I help you with?",)
    which: tuple[_Text, ...] = ()
    sources: Mapping[str, _Text] = {}
    severity: Mapping[str, tuple[_Text, ...]] = {}
    reflections: Mapping[str, tuple[_Text, ...]] = {}
    none: Mapping[str, tuple[_Text, ...]] = {}
    which_holds: Mapping[str, _Text] = {}


def load(path: Path) -> Interview:
    """The interview that a file holds."""
    try:
        return Interview.model_validate(_said(path))
    except ValidationError as error:
        raise refusal(path.name, error) from None


def load_manner(path: Path) -> Manner:
    """The manner that a file holds; the plainest where there is none."""
    try:
        return Manner.model_validate(_said(path)) if path.is_file() else Manner()
    except ValidationError as error:
        raise refusal(path.name, error) from None


def _said(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None


def refusal(where: str, error: ValidationError) -> AgentError:
    """What is wrong with a file, by the key and the rule that it breaks."""
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        return UnknownKey(where, key)
    return BadRoster(where, key, first["msg"][:1].lower() + first["msg"][1:])
