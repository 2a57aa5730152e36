"""A conversation as lines of who said what, and the turns that it has."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import UnreadableLine
from agents.known import Exchange

_MOST_TEXT: Final = 100_000


class Utterance(BaseModel):
    """One thing that was said, by either side. Other fields of a record may stand beside these."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    role: Literal["user", "assistant", "agent"]
    text: Annotated[str, Field(max_length=_MOST_TEXT)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: str | int | float | None = None
    history: tuple[Utterance, ...] = ()
    message: Annotated[str, Field(max_length=_MOST_TEXT)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A message to be understood, after the turns before it; `opening` was said before the first of them."""

    id: str | int | float | None
    message: str
    exchanges: tuple[Exchange, ...]
    opening: str


def read_line(line: bytes | str) -> Asked:
    """The message of one JSON line, or `UnreadableLine`."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine("line", "is not JSON") from None
    if not isinstance(record, dict):
        raise UnreadableLine("line", "is not a JSON object")
    try:
        asked = _Line.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        own = record.get("id")
        rule = first["msg"][:1].lower() + first["msg"][1:]
        raise UnreadableLine(path, rule, own if isinstance(own, str | int | float) else None) from None
    opening, exchanges = turns_of(asked.history)
    return Asked(asked.id, asked.message, exchanges, opening)


def turns_of(history: Iterable[Utterance]) -> tuple[str, tuple[Exchange, ...]]:
    """What was said before the first turn, and the turns: each begins where the person speaks."""
    opening: list[str] = []
    turns: list[tuple[str, list[str]]] = []
    for each in history:
        if each.role == "user":
            turns.append((each.text, []))
        else:
            (turns[-1][1] if turns else opening).append(each.text)
    return "\n".join(opening), tuple(
        Exchange(number, said, "\n".join(answers)) for number, (said, answers) in enumerate(turns, start=1)
    )
