"""What a field of a message may hold: ids, texts, times, and maps of free shape."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints
from pydantic_core import PydanticCustomError

from orchestrator.clock import cut_to_milliseconds
from orchestrator.wire.ids import ID_PATTERN

MOST_NESTING: Final = 16
"""How deep maps and arrays may stand in each other; the envelope is the first, its body the second."""
MOST_ITEMS: Final = 10_000
"""How many items an array may have."""
MOST_KEYS: Final = 1_000
"""How many keys a map may have."""
MOST_BYTES: Final = 256 * 1024
"""How long a text (in UTF-8) or a binary value may be."""

NUL: Final = "nul_in_text"
"""How a NUL names itself among pydantic's error types; the table of errors has a row for it."""

_ROOM: Final = MOST_NESTING - 2
_ALWAYS_FINE: Final = frozenset({int, bool, type(None)})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLISECOND: Final = 253_402_300_799_999  # of the year 9999, the last that datetime knows
_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)


def wrong(rule: str) -> PydanticCustomError:
    """A value breaks `rule`, which is said in our words and never holds the value."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule})


def missing(field: str) -> PydanticCustomError:
    """A field that is optional in general is needed here; named as on the wire."""
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
    """A time as text (RFC 3339), as epoch milliseconds (some encoders make them floats), or as itself."""
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
    """The map itself, if a frame may carry it."""
    if type(value) is not dict:
        raise wrong("must be a map")
    _check_keys(value)
    _look_through(value.values(), _ROOM - 1)
    return value


def _free(value: Any) -> Any:
    """The value itself, if a frame may carry it, so that every message can be sent and is understood."""
    _look_through((value,), _ROOM)
    return value


def _look_through(values: Iterable[Any], room: int) -> None:
    """As the codec does with a whole frame, and more strictly: neither NUL nor binary data."""
    for value in values:
        kind = type(value)
        if kind is str:
            if "\0" in value:
                raise _nul()
            continue
        if kind in _ALWAYS_FINE:
            continue
        if kind is dict:
            _check_keys(value)
            value = value.values()
        elif kind is list:
            if len(value) > MOST_ITEMS:
                raise wrong(f"must not have more than {MOST_ITEMS} items")
        elif kind is not float:
            raise wrong("must hold only text, numbers, true, false, null, lists and maps")
        elif isfinite(value):
            continue
        else:
            raise wrong("must not hold a number that is not finite")
        if not room:
            raise wrong(f"must not be nested deeper than {_ROOM}")
        _look_through(value, room - 1)


def _check_keys(node: dict[Any, Any]) -> None:
    try:
        names = "".join(node)
    except TypeError:
        raise wrong("must have text keys only") from None
    if "\0" in names:
        raise _nul()
    if len(node) > MOST_KEYS:
        raise wrong(f"must not have more than {MOST_KEYS} keys")


IdRule: Final = StringConstraints(pattern=ID_PATTERN)
"""The form of every id."""
IdOrEmptyRule: Final = StringConstraints(pattern=ID_PATTERN.replace("{1,", "{0,"))
"""The form of a conversation's id where there may be no conversation yet."""

AnyId: TypeAlias = Annotated[str, IdRule]
"""An id of whatever it may be."""
Text: TypeAlias = Annotated[str, AfterValidator(_without_nul)]
"""A text as it was written. NUL is refused, because no database of ours can keep it."""
SpokenText: TypeAlias = Annotated[Text, AfterValidator(_not_blank)]
"""A text that says something."""
Moment: TypeAlias = Annotated[datetime, PlainValidator(_moment)]
"""A time in UTC, in milliseconds."""
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A score or a confidence, from 0 to 1."""
Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
"""How many, or how long."""
Position: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]
"""The place in a sequence that begins with 1."""
Stanza: TypeAlias = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""A stanza's number: the client's are positive, the server's negative, 0 counts for neither."""
Code: TypeAlias = Annotated[int | str, PlainValidator(_code)]
"""An error's code in the words of whoever reports it."""
FreeValue: TypeAlias = Annotated[Any, PlainValidator(_free)]
"""A value of any shape that MessagePack and JSON both have."""
FreeMap: TypeAlias = Annotated[dict[str, Any], PlainValidator(free_map)]
"""A map of free shape. It is not copied, for speed: who hands it over leaves it as it is."""
