"""Counts over many conversations: turns, times, routes, alarms, rotations and errors. It reads no texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, bindparam, distinct, func, or_, select

from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.expressions import Day
from orchestrator.store.rows import ArchivedTurn, Conversation, SafetyEvent, StationTime, Turn, TurnRun

_PERCENTILES: Final = (50, 95, 99)

_turns, _runs, _stations = Turn.table, TurnRun.table, StationTime.table
_events, _archive, _conversations = SafetyEvent.table, ArchivedTurn.table, Conversation.table


@dataclass(frozen=True, slots=True)
class DayOfTurns:
    """How many turns began on a day, and how many of them failed."""

    day: str
    turns: int
    failed: int


@dataclass(frozen=True, slots=True)
class StationPercentiles:
    """How long a station took, in milliseconds: of half the turns at most `p50`, and so on."""

    name: str
    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Route:
    """How many turns a specialist answered, and how confident the routing was on average."""

    specialist: str
    turns: int
    confidence: float | None


@dataclass(frozen=True, slots=True)
class DayOfAlarms:
    """How many messages were found dangerous on a day, for certain and possibly."""

    day: str
    certain: int
    possible: int


@dataclass(frozen=True, slots=True)
class DayOfRotations:
    """How often old turns were moved to the archive on a day."""

    day: str
    count: int


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """How many turns an error ended."""

    name: str
    count: int


class Overview:
    """Counts from `since` to before `until`, of one person or of all (None)."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def turns(self, since: datetime, until: datetime, user_id: str | None) -> Sequence[DayOfTurns]:
        """Turns by the day on which they began."""
        return self._read(_turns_by_day, since, until, user_id)

    def stations(self, since: datetime, until: datetime, user_id: str | None) -> Sequence[StationPercentiles]:
        """The percentiles of each station, by nearest rank."""
        rows = self._read(_times, since, until, user_id)
        found: dict[str, dict[int, float]] = {}
        counts: dict[str, int] = {}
        for station, milliseconds, rank, count in rows:
            counts[station] = count
            for percent in _PERCENTILES:
                if rank == -(-count * percent // 100):
                    found.setdefault(station, {})[percent] = milliseconds
        return [
            StationPercentiles(name, counts[name], *(times[percent] for percent in _PERCENTILES))
            for name, times in sorted(found.items())
        ]

    def routes(self, since: datetime, until: datetime, user_id: str | None) -> Sequence[Route]:
        """Turns by specialist, most first."""
        return self._read(_routes, since, until, user_id)

    def alarms(self, since: datetime, until: datetime, user_id: str | None) -> Sequence[DayOfAlarms]:
        """Dangerous messages by day. A message with several findings counts once, as certain if one is."""
        return self._read(_alarms, since, until, user_id)

    def rotations(self, since: datetime, until: datetime, user_id: str | None) -> Sequence[DayOfRotations]:
        """Rotations by day. One rotation may move several turns."""
        return self._read(_rotations, since, until, user_id)

    def errors(self, since: datetime, until: datetime, user_id: str | None) -> Sequence[ErrorCount]:
        """Failed turns by error, most first."""
        return self._read(_errors, since, until, user_id)

    def _read(self, build: Any, since: datetime, until: datetime, user_id: str | None) -> list[Any]:
        owner = {} if user_id is None else {"user_id": user_id}
        return self._unit.all(build(bool(owner)), since=since, until=until, **owner)


def _within(query: Any, at: ColumnElement[Any], here: ColumnElement[Any], of_person: bool) -> Any:
    """Limit a query to the period and, if wanted, to the conversations of a person."""
    query = query.where(at >= bindparam("since", type_=at.type), at < bindparam("until", type_=at.type))
    if not of_person:
        return query
    owned = select(_conversations.c.id).where(_conversations.c.user_id == bindparam("user_id"))
    return query.where(here.in_(owned))


@cache
def _turns_by_day(of_person: bool) -> Statement[DayOfTurns]:
    day = Day(_turns.c.created_at)
    query = select(day, func.count(), func.count(_turns.c.error))
    query = _within(query, _turns.c.created_at, _turns.c.conversation_id, of_person)
    return Statement(query.group_by(day).order_by(day), DayOfTurns)


@cache
def _times(of_person: bool) -> Statement[tuple[str, float, int, int]]:
    """The times at the ranks of the percentiles: station, milliseconds, rank, and how many there are."""
    table = _stations.c
    ranked = select(
        table.station,
        table.milliseconds,
        func.row_number().over(partition_by=table.station, order_by=table.milliseconds).label("rank"),
        func.count().over(partition_by=table.station).label("count"),
    ).join(_runs, _runs.c.id == table.run_id)
    inner = _within(ranked, table.created_at, _runs.c.conversation_id, of_person).subquery()
    wanted = [
        (inner.c.rank * 100 >= inner.c.count * percent) & (inner.c.rank * 100 < inner.c.count * percent + 100)
        for percent in _PERCENTILES
    ]
    query = select(inner.c.station, inner.c.milliseconds, inner.c.rank, inner.c.count).where(or_(*wanted))
    return Statement(query, lambda *record: record)


@cache
def _routes(of_person: bool) -> Statement[Route]:
    table = _runs.c
    query = select(table.specialist, func.count().label("turns"), func.avg(table.confidence))
    query = _within(
        query.where(table.specialist.is_not(None)), table.created_at, table.conversation_id, of_person
    )
    return Statement(query.group_by(table.specialist).order_by(func.count().desc(), table.specialist), Route)


@cache
def _alarms(of_person: bool) -> Statement[DayOfAlarms]:
    table = _events.c
    day = Day(table.created_at)
    certain = func.count(distinct(table.message_id)).filter(table.certainty == "certain")
    dangerous = func.count(distinct(table.message_id))
    query = select(day, certain, dangerous - certain).where(table.certainty.is_not(None))
    query = _within(query, table.created_at, table.conversation_id, of_person)
    return Statement(query.group_by(day).order_by(day), DayOfAlarms)


@cache
def _rotations(of_person: bool) -> Statement[DayOfRotations]:
    table = _archive.c
    at_once = select(table.conversation_id, table.archived_at).where(table.has_left).distinct()
    each = _within(at_once, table.archived_at, table.conversation_id, of_person).subquery()
    day = Day(each.c.archived_at)
    return Statement(select(day, func.count()).group_by(day).order_by(day), DayOfRotations)


@cache
def _errors(of_person: bool) -> Statement[ErrorCount]:
    table = _turns.c
    query = select(table.error, func.count()).where(table.error.is_not(None))
    query = _within(query, table.created_at, table.conversation_id, of_person)
    return Statement(query.group_by(table.error).order_by(func.count().desc(), table.error), ErrorCount)
