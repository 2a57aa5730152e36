"""Messages to be routed in bulk, one per line, after the question that each may answer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import UnreadableLine
from agents.leaning import says_little
from agents.ports import Embedded, Embedder
from agents.router import Router
from agents.safety.guard import Guard
from agents.values import Intent

_MOST_TEXT: Final = 100_000
_Id = str | int | float | None


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and the assistant's last question before it."""

    id: _Id
    text: str
    context: str = ""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: _Id = None
    text: Annotated[str, Field(max_length=_MOST_TEXT)]
    context: Annotated[str | None, Field(max_length=_MOST_TEXT)] = None


def read_line(line: str, number: int) -> Said:
    """The message of a line: a JSON object if it begins like one, else the line itself, numbered from 1."""
    if not line.lstrip().startswith("{"):
        return Said(number, line.strip()[:_MOST_TEXT])
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine("line", "is not JSON") from None
    try:
        asked = _Line.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        rule = first["msg"][:1].lower() + first["msg"][1:]
        own = record.get("id")
        own = own if isinstance(own, str | int | float) else None
        raise UnreadableLine(".".join(str(step) for step in first["loc"]), rule, own) from None
    return Said(number if asked.id is None else asked.id, asked.text, asked.context or "")


def route_lines(router: Router, embedder: Embedder, guard: Guard, lines: Sequence[Said]) -> list[Intent]:
    """Where each message belongs, in the same order.

    What its question is about is the running topic, and a few words are read together with it. What the guard
    hears counts for much, but only in a turn does it decide alone: there it must not miss anything.
    """
    questions = list(dict.fromkeys(said.context for said in lines if said.context))
    bare = [bool(said.context) and says_little(said.text) for said in lines]
    texts = [
        f"{said.context} {said.text}" if few else said.text for said, few in zip(lines, bare, strict=True)
    ]
    vectors = embedder.embed([*texts, *questions])
    asked = [Embedded(text, vector) for text, vector in zip(questions, vectors[len(lines) :], strict=True)]
    about = {
        embedded.text: intent.intent
        for embedded, intent in zip(asked, router.route_all(asked, [None] * len(asked)), strict=True)
    }
    messages = [Embedded(*each) for each in zip(texts, vectors[: len(lines)], bare, strict=True)]
    alarms = [guard.check(said.text, said.context or None).flagged for said in lines]
    return router.route_all(messages, [about.get(said.context) for said in lines], alarms)
