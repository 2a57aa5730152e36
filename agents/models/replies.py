"""Structured replies of a model: their JSON Schema, and how a reply is parsed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from agents.errors import UnreadableReply

MAX_REPLY: Final = 16_000
"""Maximum length of a structured reply."""

Parsed = TypeVar("Parsed", bound=BaseModel)

_FENCED: Final = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL | re.IGNORECASE)
_CONTROL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Schema:
    """The JSON Schema of a structured reply."""

    name: str
    schema: Mapping[str, Any]


def object_schema(**properties: Any) -> dict[str, Any]:
    """The schema of an object. Strict endpoints require every property to be listed as required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def without_control_characters(text: str) -> str:
    """A model's text without characters that frames and databases cannot hold."""
    return _CONTROL_CHARACTERS.sub("", text)


def parse_reply(kind: type[Parsed], reply: str) -> Parsed:
    """Parse a reply, or raise `UnreadableReply`, which names the broken rule and quotes nothing."""
    if len(reply) > MAX_REPLY:
        raise UnreadableReply("it is too long")
    if "\\u0000" in reply:
        raise UnreadableReply("it has a NUL")
    fenced = _FENCED.fullmatch(reply)
    try:
        return kind.model_validate_json(without_control_characters(fenced[1] if fenced else reply))
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False, include_context=False)[0]
        rule = f"{'.'.join(map(str, first['loc'])) or 'it'} breaks the rule {first['type']}"
    raise UnreadableReply(rule)
