"""The form of the API's answers: field names in camelCase, times in UTC, lists in pages with a cursor."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    AliasGenerator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from orchestrator.errors import BAD_CURSOR, AnamnesisError
from orchestrator.ops.clock import as_text
from orchestrator.store.repositories.api.pages import Position
from orchestrator.wire.ids import ID_PATTERN

T = TypeVar("T")
E = TypeVar("E")

LARGEST_PAGE: Final = 200
LARGEST_NUMBER: Final = 2**31 - 1


def _within_range(moment: datetime) -> datetime:
    """Refuse years that cannot be converted to another time zone or stored."""
    if not 1970 <= moment.year <= 9998:
        raise ValueError("must be a time from 1970 on")
    return moment.astimezone(UTC)


Moment: TypeAlias = Annotated[
    datetime,
    PlainSerializer(as_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Id: TypeAlias = Annotated[str, Path(pattern=ID_PATTERN)]
GivenTime: TypeAlias = Annotated[AwareDatetime, AfterValidator(_within_range)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Entries per page.")]
Cursor: TypeAlias = Annotated[
    str | None,
    Query(max_length=500, description="`next` of the page before; leave it out for the first page."),
]
Of: TypeAlias = Annotated[
    Literal["me", "all"], Query(description="Your own conversations, or (for staff) all.")
]
Number: TypeAlias = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]


class Answer(BaseModel):
    """Base of what the API answers. It is made from an object with attributes of the same names."""

    model_config = ConfigDict(
        frozen=True,
        from_attributes=True,
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        hide_input_in_errors=True,
    )


class Page(Answer, Generic[T]):
    """Part of a list. `next` is the cursor of the following page; null at the end."""

    items: tuple[T, ...]
    next: str | None = None


class Problem(BaseModel):
    """An error as RFC 9457 describes it. `type` is stable; `detail` says what happened and what to do."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: int
    recoverable: bool


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route for OpenAPI: those of every route, and these."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    every = (400, 401, 403, 405, 408, 413, 421, 422, 429, 500, 503, 507)
    names = {
        400: "The request cannot be read",
        401: "Nobody is signed in",
        403: "Not allowed",
        404: "Not found, or not yours",
        409: "Conflicts with an earlier request",
        422: "A value is not allowed",
        429: "Too many requests",
    }
    return {
        status: {"description": names.get(status, "Error"), "content": content}
        for status in sorted({*every, *statuses})
    }


def page_of(entries: Sequence[E], limit: int, cursor: Callable[[E], str], show: Callable[[E], T]) -> Page[T]:
    """A page of at most `limit` entries. One more was read, to know whether another page follows."""
    following = cursor(entries[limit - 1]) if len(entries) > limit else None
    return Page(items=tuple(show(each) for each in entries[:limit]), next=following)


def position_cursor(position: Position) -> str:
    """The cursor of a place in a list that is ordered by time."""
    return _packed([as_text(position.at), position.id])


def read_position(cursor: str | None) -> Position | None:
    """The place that a cursor names; None for the first page."""
    if cursor is None:
        return None
    match _unpacked(cursor):
        case [str(at), str(id)]:
            try:
                return Position(_within_range(datetime.fromisoformat(at)), id)
            except ValueError:
                pass
    raise AnamnesisError(BAD_CURSOR)


def number_cursor(number: int) -> str:
    """The cursor of a place in a list that is ordered by a number."""
    return _packed([number])


def read_number(cursor: str | None, first: int) -> int:
    """The number that a cursor names; `first` for the first page."""
    if cursor is None:
        return first
    match _unpacked(cursor):
        case [int(number)] if not isinstance(number, bool) and 0 <= number <= LARGEST_NUMBER:
            return number
    raise AnamnesisError(BAD_CURSOR)


def _packed(value: list[str | int]) -> str:
    return urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def _unpacked(cursor: str) -> Any:
    try:
        text = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
        return None if "\\u0000" in text else json.loads(text)
    except (ValueError, RecursionError):
        return None
