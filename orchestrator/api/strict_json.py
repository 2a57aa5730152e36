"""Parses JSON strictly: refuses what two parsers could read differently."""

import json
import math
from typing import Any, Final, NoReturn

from orchestrator.errors import MALFORMED_BODY, NUL_IN_TEXT, TOO_DEEP, AnamnesisError

MAX_DEPTH: Final = 16


def parse(body: bytes) -> Any:
    """Parse `body`: UTF-8, no duplicate keys, finite numbers, no lone surrogates, at most 16 levels deep."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_refuse_duplicate_keys,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
        )
    except UnicodeDecodeError:
        rule = "not UTF-8"
    except RecursionError:
        raise AnamnesisError(TOO_DEEP, most=MAX_DEPTH) from None
    except json.JSONDecodeError as error:
        rule = f"not JSON from character {error.pos} on"
    except ValueError:
        rule = "a number has too many digits"
    else:
        _check(value)
        return value
    # Raised outside the handler, because the decoder's error holds the whole body.
    raise AnamnesisError(MALFORMED_BODY, rule=rule)


def _check(value: Any, depth: int = 1) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise AnamnesisError(NUL_IN_TEXT)
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise AnamnesisError(MALFORMED_BODY, rule="half a character")
    elif isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise AnamnesisError(TOO_DEEP, most=MAX_DEPTH)
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(item, depth + 1)


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(value := dict(pairs)) < len(pairs):
        raise AnamnesisError(MALFORMED_BODY, rule="a key comes twice")
    return value


def _refuse_constant(_: str) -> NoReturn:
    raise AnamnesisError(MALFORMED_BODY, rule="a number is not finite")


def _parse_float(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _refuse_constant(text)
