"""JSON without surprises: what two readers could understand differently is refused."""

import json
import math
from typing import Any, Final, NoReturn

from orchestrator.errors import MALFORMED_BODY, NUL_IN_TEXT, TOO_DEEP, AnamnesisError

DEEPEST: Final = 16


def parse(body: bytes) -> Any:
    """The value that `body` holds: UTF-8, each key once, finite numbers, whole characters, not too deep."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_each_key_once,
            parse_constant=_not_a_number,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        rule = "not UTF-8"
    except RecursionError:
        raise AnamnesisError(TOO_DEEP, most=DEEPEST) from None
    except json.JSONDecodeError as error:
        rule = f"not JSON from character {error.pos} on"
    except ValueError:
        rule = "a number has too many digits"
    else:
        _check(value)
        return value
    # Raised out here, so that the decoder's error, which holds the whole body, is not carried along.
    raise AnamnesisError(MALFORMED_BODY, rule=rule)


def _check(value: Any, depth: int = 1) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise AnamnesisError(NUL_IN_TEXT)
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise AnamnesisError(MALFORMED_BODY, rule="half a character")
    elif isinstance(value, dict | list):
        if depth > DEEPEST:
            raise AnamnesisError(TOO_DEEP, most=DEEPEST)
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(item, depth + 1)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(value := dict(pairs)) < len(pairs):
        raise AnamnesisError(MALFORMED_BODY, rule="a key comes twice")
    return value


def _not_a_number(_: str) -> NoReturn:
    raise AnamnesisError(MALFORMED_BODY, rule="a number is not finite")


def _finite(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _not_a_number(text)
