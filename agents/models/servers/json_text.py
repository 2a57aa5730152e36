"""Finds the JSON object in a model's reply: in a code fence, after thoughts, between sentences. Pure."""

import json
import re
from typing import Final

from agents.models.servers.thinking import without_thoughts

_MAX_STARTS: Final = 20
"""At how many opening braces an object is looked for."""

_MAX_TEXT: Final = 64_000
"""In a longer reply, no object is looked for."""

_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")


def find_object(reply: str) -> str:
    """The first JSON object of a reply, as text; the reply itself if it has none.

    A comma before a closing bracket is left out. Nothing else is repaired, so that no reply is understood as
    something that the model did not say.
    """
    text = without_thoughts(reply).strip()
    if len(text) > _MAX_TEXT or _is_object(text):
        return text
    starts = [found.start() for found in re.finditer(r"\{", text)][:_MAX_STARTS]
    for start in starts:
        end = _end_of_object(text, start)
        if end is None:
            continue
        for candidate in (text[start:end], _TRAILING_COMMA.sub(r"\1", text[start:end])):
            if _is_object(candidate):
                return candidate
    return reply


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _end_of_object(text: str, start: int) -> int | None:
    """The position after the brace that closes the one at `start`. Braces in strings do not count."""
    depth, in_string, escaped = 0, False, False
    for position in range(start, len(text)):
        character = text[position]
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return position + 1
    return None
