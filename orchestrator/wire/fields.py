"""The types of the fields of messages: ids, texts, times, numbers and free-form maps."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints
from pydantic_core import PydanticCustomError

from orchestrator.ops.clock import cut_to_milliseconds
from orchestrator.wire.ids import ID_PATTERN

MAX_NESTING: Final = 16
"""The maximum nesting of maps and arrays. The envelope is the first level, its body the second."""
MAX_ITEMS: Final = 10_000
"""The maximum number of items of an array."""
MAX_KEYS: Final = 1_000
"""The maximum number of keys of a map."""
MAX_FIELD_BYTES: Final = 256 * 1024
"""The maximum length of a text (in UTF-8) or a binary value."""

NUL: Final = "nul_in_text"
"""The pydantic error type of a text with a NUL character. It has a row in the table of errors."""

_ROOM: Final = MAX_NESTING - 2
_ALWAYS_ALLOWED: Final = frozenset({int, bool, type(None)})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLISECOND: Final = 253_402_300_799_999  # the end of the year 9999, the last of datetime
_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)


def wrong(rule: str) -> PydanticCustomError:
    """The validation error for a value that breaks `rule`. The rule never contains the value."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule})


def missing(field: str) -> PydanticCustomError:
    """The validation error for an optional field that is needed here; `field` is its wire name."""
    return PydanticCustomError("missing", "missing", {"field": field})


def _nul() -> PydanticCustomError:
    return PydanticCustomError(NUL, "NUL")


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise _nul()
    return text


def _not_blank(text: str) -> str:
    if not text or text.isspace():
        raise wrong("must not be empty")
    return text


def _moment(value: Any) -> datetime:
    """Accept a datetime, an RFC 3339 text or epoch milliseconds, which some encoders send as floats."""
    try:
        if type(value) is str and _RFC_3339.fullmatch(value):
            value = datetime.fromisoformat(value.upper())
        elif type(value) in (int, float) and 0 <= value <= _LAST_MILLISECOND:
            value = _EPOCH + timedelta(milliseconds=int(value))
        if isinstance(value, datetime) and value.tzinfo and value >= _EPOCH:
            return cut_to_milliseconds(value)
    except (ValueError, OverflowError):
        pass
    raise wrong("must be a time from 1970 on: RFC 3339 text with an offset, or epoch milliseconds")


def _code(value: Any) -> int | str:
    if type(value) is str:
        return _without_nul(value)
    if type(value) is int and -(2**63) <= value < 2**64:
        return value
    raise wrong("must be text or a whole number")


def free_map(value: Any) -> dict[str, Any]:
    """Check a free-form map and return it unchanged."""
    if type(value) is not dict:
        raise wrong("must be a map")
    _check_keys(value)
    _check_values(value.values(), _ROOM - 1)
    return value


def _free(value: Any) -> Any:
    """Check a free-form value and return it unchanged, so that every message can be encoded."""
    _check_values((value,), _ROOM)
    return value


def _check_values(values: Iterable[Any], room: int) -> None:
    """Check values as the codec checks a frame, but stricter: no NUL and no binary data."""
    for value in values:
        kind = type(value)
        if kind is str:
            if "\0" in value:
                raise _nul()
            continue
        if kind in _ALWAYS_ALLOWED:
            continue
        if kind is dict:
            _check_keys(value)
            value = value.values()
        elif kind is list:
            if len(value) > MAX_ITEMS:
                raise wrong(f"must not have more than {MAX_ITEMS} items")
        elif kind is not float:
            raise wrong("must contain only text, numbers, true, false, null, lists and maps")
        elif isfinite(value):
            continue
        else:
            raise wrong("must not contain a number that is not finite")
        if not room:
            raise wrong(f"must not be nested deeper than {_ROOM}")
        _check_values(value, room - 1)


def _check_keys(node: dict[Any, Any]) -> None:
    try:
        names = "".join(node)
    except TypeError:
        raise wrong("must have text keys only") from None
    if "\0" in names:
        raise _nul()
    if len(node) > MAX_KEYS:
        raise wrong(f"must not have more than {MAX_KEYS} keys")


IdRule: Final = StringConstraints(pattern=ID_PATTERN)
"""The pattern of ids."""
IdOrEmptyRule: Final = StringConstraints(pattern=ID_PATTERN.replace("{1,", "{0,"))
"""The pattern of a conversation id that may be empty, because there is no conversation yet."""

AnyId: TypeAlias = Annotated[str, IdRule]
"""An id of any kind of object."""
Text: TypeAlias = Annotated[str, AfterValidator(_without_nul)]
"""Any text without NUL, which PostgreSQL cannot store."""
SpokenText: TypeAlias = Annotated[Text, AfterValidator(_not_blank)]
"""A text that is not blank."""
Moment: TypeAlias = Annotated[datetime, PlainValidator(_moment)]
"""A time in UTC with milliseconds."""
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A score or a confidence, from 0 to 1."""
Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
"""A number or a duration, from 0."""
Position: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]
"""A position in a sequence that begins with 1."""
Stanza: TypeAlias = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""A stanza number: positive from a client, negative from the server, 0 for a frame without a number."""
Code: TypeAlias = Annotated[int | str, PlainValidator(_code)]
"""An error code of a tool."""
FreeValue: TypeAlias = Annotated[Any, PlainValidator(_free)]
"""Any value that both MessagePack and JSON can represent."""
FreeMap: TypeAlias = Annotated[dict[str, Any], PlainValidator(free_map)]
"""A free-form map. It is not copied, for speed, so the caller must not change it afterwards."""
