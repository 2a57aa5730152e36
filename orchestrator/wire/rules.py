"""Converts pydantic's validation errors to our errors, without the values."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from orchestrator.errors import INVALID_FIELD, MISSING_FIELD, NUL_IN_TEXT, AnamnesisError
from orchestrator.wire.fields import NUL

_RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rule": "{rule}",
        "string_type": "must be text",
        "string_unicode": "must be text without lone surrogates",
        "string_pattern_mismatch": "must be 1 to 128 letters, digits, or any of - _ . ~",
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "bool_type": "must be true or false",
        "bytes_type": "must be binary data",
        "tuple_type": "must be a list",
        "model_type": "must be a map",
        "is_instance_of": "must be a map",
        "literal_error": "must be one of {expected}",
        "greater_than_equal": "must be at least {ge}",
        "less_than_equal": "must be at most {le}",
        "less_than": "must be below {lt}",
        "finite_number": "must be a finite number",
        "too_long": "must not have more than {max_length} items",
        "bytes_too_long": "must not have more than {max_length} bytes",
    }
)
"""Our text for each error type of pydantic, whose own texts may quote the value."""


def in_words(error: ValidationError) -> str:
    """The first error as one text."""
    first = _first(error)
    return "A text has a NUL character." if first["type"] == NUL else f"`{_path(first)}`: {_rule(first)}."


def refusal(error: ValidationError, *, within: str = "") -> AnamnesisError:
    """The first error as one of ours; `within` is the path to the validated map."""
    first = _first(error)
    if first["type"] == NUL:
        return AnamnesisError(NUL_IN_TEXT)
    path = f"{within}{_path(first)}"
    if first["type"] == "missing":
        return AnamnesisError(MISSING_FIELD, field=path)
    return AnamnesisError(INVALID_FIELD, field=path, rule=_rule(first))


def _first(error: ValidationError) -> ErrorDetails:
    return error.errors(include_url=False, include_input=False)[0]


def _path(details: ErrorDetails) -> str:
    """The path to the field: our names and positions, never a key of a free-form map."""
    steps = [*map(str, details["loc"]), *filter(None, [details.get("ctx", {}).get("field")])]
    return ".".join(steps)


def _rule(details: ErrorDetails) -> str:
    if details["type"] == "missing":
        return "is missing"
    return _RULES.get(details["type"], "is not allowed").format_map(details.get("ctx", {}))
