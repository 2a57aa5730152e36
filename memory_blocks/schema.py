"""The JSON Schema of each block: publishes it, checks texts from outside with it, upgrades older texts."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, cast

from memory_blocks import summary_text
from memory_blocks.errors import BlockInvalid
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.models import MODELS, NOT_A_TIME, RFC_3339, SCHEMA_VERSION, SCHEMA_VERSIONS, Label, parse

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

Departure: TypeAlias = tuple[str, str]
"""A path (`$` is the block itself) and the rule that is broken there, never the value."""

_UNKNOWN_FIELD: Final = "has an unknown field"
_MAX_DEPARTURES: Final = 50
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_TYPES: Final = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


# --- publishing -------------------------------------------------------------------------------------------


def published(label: Label, version: str = SCHEMA_VERSION) -> Mapping[str, Any]:
    """The JSON Schema of a block. An earlier version lacks the fields that were added later."""
    about = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:anamnesis:block:{label}:{version}",
        "title": label.value,
    }
    if label is Label.CONTEXT_SUMMARY:
        first = f"^{summary_text.TITLE}"
        return about | {"type": "string", "anyOf": [{"pattern": first}, {"maxLength": 0}]}
    schema: dict[str, Any] = _of_version(MODELS[label].model_json_schema(), version)
    used = json.dumps(schema)
    while True:  # also remove the definitions that only removed fields used
        unused = [name for name in schema["$defs"] if f'"#/$defs/{name}"' not in used]
        if not unused:
            return about | schema
        schema["$defs"] = {name: part for name, part in schema["$defs"].items() if name not in unused}
        used = json.dumps(schema)


def publications() -> Iterator[tuple[str, str]]:
    """Every schema of every version: the name and the text of its file."""
    for label in Label:
        for version in SCHEMA_VERSIONS:
            text = json.dumps(published(label, version), indent=2, ensure_ascii=False)
            yield f"{label}.{version}.schema.json", f"{text}\n"


def _of_version(part: Any, version: str) -> Any:
    if isinstance(part, list):
        return [_of_version(each, version) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {name: value for name, value in part.items() if name not in ("title", "default")}
    if part.get("enum") == list(SCHEMA_VERSIONS[1:]):
        versions = [each for each in SCHEMA_VERSIONS[1:] if each <= version]
        named = {"const": versions[0]} if len(versions) == 1 else {"enum": versions}
        kept = named | {name: value for name, value in kept.items() if name != "enum"}
    if "properties" in part:
        kept["properties"] = {
            name: value for name, value in part["properties"].items() if value.get("since", "1.0") <= version
        }
    return {name: _of_version(value, version) for name, value in kept.items()}


# --- checking what comes from outside ---------------------------------------------------------------------


def departures(label: Label, text: str, limits: Limits = DEFAULTS) -> tuple[Departure, ...]:
    """Every rule that `text` breaks: those of the published schema, or else those between the fields."""
    if len(text) > limits.of(label):
        return (("$", f"has more than {limits.of(label)} characters"),)
    if "\0" in text:
        return (("$", "has a NUL character"),)
    try:
        text.encode()
        value = text if label is Label.CONTEXT_SUMMARY else _strict(text)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return (("$", "has a lone surrogate"),)
    except RecursionError:
        return (("$", "is nested too deeply"),)
    except _NotStrict as refused:
        return (("$", str(refused)),)
    except ValueError:
        return (("$", "is not JSON"),)
    found: dict[Departure, None] = {}
    for error in _validator(label).iter_errors(value):
        found |= dict.fromkeys(_translate(error))
    return tuple(found)[:_MAX_DEPARTURES] or _field_departures(label, text)


class _NotStrict(Exception):
    """JSON that two parsers could read differently."""


def _strict(text: str) -> Any:
    value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    if _ESCAPED_NUL.search(text):
        raise _NotStrict("has a NUL character")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise _NotStrict("has a field twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _NotStrict("has a number that is not finite")


@cache
def _validator(label: Label) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(published(label))


def _translate(error: "ValidationError") -> Iterator[Departure]:
    """An error of the library in our words, because its own message quotes the value."""
    path = ".".join(map(str, error.absolute_path)) or "$"
    rule, given, instance = str(error.validator), cast(Any, error.validator_value), cast(Any, error.instance)
    if rule == "anyOf":
        if all(branch.validator == "type" and not branch.path for branch in error.context or ()):
            kinds = [_TYPES[str(branch.validator_value)] for branch in error.context or ()]
            yield path, f"is not {' or '.join(kinds)}"
        else:
            first = [branch for branch in error.context or () if branch.schema_path[0] == 0]
            for branch in first:
                yield from _translate(branch)
    elif rule == "required":
        under = "" if path == "$" else f"{path}."
        yield from ((f"{under}{name}", "is missing") for name in given if name not in instance)
    elif rule == "additionalProperties":
        yield path, _UNKNOWN_FIELD
    elif rule == "pattern":
        yield path, NOT_A_TIME if given == RFC_3339 else f"does not have the form {given}"
    elif rule == "enum":
        yield path, f"is none of {', '.join(given)}"
    elif rule == "type":
        yield path, f"is not {_TYPES[given]}"
    else:
        yield path, _BOUNDS[rule].format(given)


_BOUNDS: Final = {
    "const": "is not {}",
    "minimum": "is below {}",
    "maximum": "is above {}",
    "minLength": "is empty",
    "maxLength": "has more than {} characters",
}


def _field_departures(label: Label, text: str) -> tuple[Departure, ...]:
    try:
        parse(label, text)
        if label is Label.CONTEXT_SUMMARY and text:
            summary_text.parse(text)
    except BlockInvalid as refused:
        return ((str(refused.facts["path"]), str(refused.facts["rule"])),)
    return ()


# --- upgrading --------------------------------------------------------------------------------------------


def upgrade(label: Label, text: str) -> str:
    """The text marked as our version. A text of our version is returned unchanged."""
    if label is Label.CONTEXT_SUMMARY:
        return text
    block = {"schema_version": SCHEMA_VERSION, **json.loads(text)}
    return json.dumps(block, ensure_ascii=False, separators=(",", ":"))
