"""Parses lines of JSON into records, with errors that name the field and quote nothing."""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agents.errors import UnreadableLine

M = TypeVar("M", bound=BaseModel)


def parse(line: bytes | str, model: type[M]) -> M:
    """Parse one JSON line, or raise `UnreadableLine`."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine("line", "is not JSON") from None
    if not isinstance(record, dict):
        raise UnreadableLine("line", "is not a JSON object")
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        own = record.get("id")
        rule = first["msg"][:1].lower() + first["msg"][1:]
        raise UnreadableLine(path, rule, own if isinstance(own, str | int | float) else None) from None


def read_cases(path: Path, model: type[M]) -> tuple[M, ...]:
    """The cases of a file, one JSON object per line. An error names the file and the line."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line:
            continue
        try:
            cases.append(parse(line, model))
        except UnreadableLine as error:
            where = f"{path.name}, line {number}, {error.facts['field']}"
            raise UnreadableLine(where, str(error.facts["rule"])) from None
    return tuple(cases)
