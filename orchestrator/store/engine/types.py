"""Column types with a form per database: times, booleans, JSON, lists of words and vectors.

SQLAlchemy compiles the statements, but the driver runs them (`statements.py`), so each type defines all
conversions of its values here.
"""

import json
import re
from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import Boolean, Dialect, Double, Integer, LargeBinary, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP
from sqlalchemy.dialects.sqlite import REAL
from sqlalchemy.types import TypeDecorator, TypeEngine

from orchestrator.errors import BAD_NUMBER, NUL_IN_TEXT, AnamnesisError
from orchestrator.ops.clock import cut_to_milliseconds

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
Convert: TypeAlias = Callable[[Any], Any] | None

VECTOR_WIDTH: Final = 1024

_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def json_text(value: object) -> str:
    """Write JSON compactly, without escaping non-ASCII; raises for values that a database cannot store."""
    finite = True
    try:
        text = _encode(value)
    except ValueError:
        finite = False
    if not finite:
        raise AnamnesisError(BAD_NUMBER)
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise AnamnesisError(NUL_IN_TEXT)
    return text


class PerDatabase(TypeDecorator[Any]):
    """A type with its own column type and conversions per database. None is NULL and is not converted."""

    impl = Text
    cache_ok = True

    sqlite: TypeEngine[Any] = Text()
    postgres: TypeEngine[Any] = Text()
    into_sqlite: Convert = None
    from_sqlite: Convert = None
    into_postgres: Convert = None
    from_postgres: Convert = None

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type."""
        return dialect.type_descriptor(self.sqlite if dialect.name == "sqlite" else self.postgres)

    def bind_processor(self, dialect: Dialect) -> Convert:
        """The conversion of a value for the database."""
        return self.into_sqlite if dialect.name == "sqlite" else self.into_postgres

    def result_processor(self, dialect: Dialect, coltype: object = None) -> Convert:
        """The conversion of a value from the database."""
        return self.from_sqlite if dialect.name == "sqlite" else self.from_postgres


@lru_cache(maxsize=256)  # most rows of a transaction have the same time
def _moment_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class Moment(PerDatabase):
    """A time in UTC with milliseconds: an aware datetime in Python, RFC 3339 text or timestamptz."""

    cache_ok = True
    postgres = TIMESTAMP(timezone=True)
    into_sqlite = staticmethod(_moment_text)
    from_sqlite = staticmethod(datetime.fromisoformat)
    into_postgres = staticmethod(cut_to_milliseconds)


class Flag(PerDatabase):
    """A boolean."""

    cache_ok = True
    sqlite = Integer()
    postgres = Boolean()
    into_sqlite = int
    from_sqlite = bool


class JsonValue(PerDatabase):
    """Any JSON value. The JSON value null is stored as NULL."""

    cache_ok = True
    postgres = JSONB()
    into_sqlite = staticmethod(json_text)
    from_sqlite = staticmethod(json.loads)
    into_postgres = staticmethod(json_text)


def _words(words: Sequence[str]) -> list[str]:
    return [str(word) for word in words]


class Words(PerDatabase):
    """A list of short texts, such as tags; a tuple in Python."""

    cache_ok = True
    postgres = ARRAY(Text())
    into_sqlite = staticmethod(lambda words: json_text(_words(words)))
    from_sqlite = staticmethod(lambda text: tuple(json.loads(text)))
    into_postgres = staticmethod(_words)
    from_postgres = tuple


def _floats(text: str) -> tuple[float, ...]:
    return tuple(array("f", map(float, text[1:-1].split(","))))


def _padded(vector: Sequence[float]) -> str:
    whole = array("f", vector)
    return f"[{','.join(map(repr, whole))}{',0' * (VECTOR_WIDTH - len(whole))}]"


class Vector(PerDatabase):
    """An embedding in float32, with the model's dimensions on SQLite, padded to 1024 on PostgreSQL.

    Zeros change neither the dot product nor the norm, so the cosine stays the same.
    """

    cache_ok = True
    sqlite = LargeBinary()
    postgres = VECTOR(VECTOR_WIDTH)
    into_sqlite = staticmethod(lambda vector: array("f", vector).tobytes())
    from_sqlite = staticmethod(lambda data: tuple(array("f", data)))
    into_postgres = staticmethod(_padded)
    from_postgres = staticmethod(_floats)


Real: Final[TypeEngine[float]] = Double().with_variant(REAL(), "sqlite")
"""A double precision number."""
