"""`/v1/overview`: how the installation does; `/v1/turns`, `/v1/rotations`: the rows behind the numbers."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request

from orchestrator.api.access.checking import caller_of
from orchestrator.api.access.roles import person_of
from orchestrator.api.answers import (
    Answer,
    Cursor,
    GivenTime,
    Limit,
    Moment,
    Of,
    Page,
    page_of,
    position_cursor,
    problems,
    read_position,
)
from orchestrator.api.ports import Resources
from orchestrator.errors import INVALID_FIELD, AnamnesisError
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import RotationFilter, RunFilter
from orchestrator.wire.ids import ID_PATTERN

USUAL: Final = timedelta(days=30)
"""How much of the past an overview shows unless `since` is given."""
LONGEST: Final = timedelta(days=366)

Name = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_]{1,60}$")]


class DayOfTurns(Answer):
    """How many turns began on a day (UTC), and how many of them failed."""

    day: str
    turns: int
    failed: int


class StationPercentiles(Answer):
    """How many milliseconds a station took: at most `p50` in half of the turns, and so on."""

    name: str
    count: int
    p50: float
    p95: float
    p99: float


class Route(Answer):
    """How many turns a specialist answered, and how confident the routing was on average."""

    specialist: str
    turns: int
    confidence: float | None


class DayOfAlarms(Answer):
    """How many messages were found dangerous on a day."""

    day: str
    certain: int
    possible: int


class DayOfRotations(Answer):
    """How often old turns were moved to the archive on a day."""

    day: str
    count: int


class ErrorCount(Answer):
    """How many turns an error ended."""

    name: str
    count: int


class WholeOverview(Answer):
    """Counts of a period. Days without anything are left out."""

    since: Moment
    until: Moment
    turns_per_day: tuple[DayOfTurns, ...]
    stations: tuple[StationPercentiles, ...]
    routing: tuple[Route, ...]
    alarms: tuple[DayOfAlarms, ...]
    rotations: tuple[DayOfRotations, ...]
    errors: tuple[ErrorCount, ...]


class TurnFacts(Answer):
    """One attempt at a turn: how it was routed, how long it took, and the error that ended it."""

    id: str
    conversation_id: str
    turn: int
    message_id: str
    intent: str | None
    confidence: float | None
    specialist: str | None
    prompt_revision: str | None
    error: str | None
    milliseconds: float
    created_at: Moment


class Rotation(Answer):
    """Turns `first` to `last` moved to the archive. `turn` was being written then; null if it was by hand."""

    conversation_id: str
    turn: int | None
    first: int
    last: int
    count: int
    created_at: Moment


def build_router(resources: Resources) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["overview"])
    store = resources.store

    @router.get("/v1/overview", responses=problems())
    async def show(
        request: Request, of: Of = "me", since: GivenTime | None = None, until: GivenTime | None = None
    ) -> WholeOverview:
        """Count turns, times, routes, alarms, rotations and errors; by default of the last 30 days."""
        person = person_of(caller_of(request), of)
        first, last = _period(since, until)

        def read(tx: Transaction) -> WholeOverview:
            counts, period = tx.overview, (first, last, person)
            return WholeOverview(
                since=first,
                until=last,
                turns_per_day=tuple(map(DayOfTurns.model_validate, counts.turns(*period))),
                stations=tuple(map(StationPercentiles.model_validate, counts.stations(*period))),
                routing=tuple(map(Route.model_validate, counts.routes(*period))),
                alarms=tuple(map(DayOfAlarms.model_validate, counts.alarms(*period))),
                rotations=tuple(map(DayOfRotations.model_validate, counts.rotations(*period))),
                errors=tuple(map(ErrorCount.model_validate, counts.errors(*period))),
            )

        return await store.read(read)

    _add_rows(router, resources)
    return router


def _add_rows(router: APIRouter, resources: Resources) -> None:
    """Add the lists of the rows behind the numbers."""
    store = resources.store

    @router.get("/v1/turns", responses=problems())
    async def show_turns(
        request: Request,
        of: Of = "me",
        conversation: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
        specialist: Name = None,
        error: Name = None,
        failed: Annotated[Literal["true"] | None, Query(description="Only turns that failed.")] = None,
        slower_than: Annotated[
            float | None, Query(alias="slowerThan", ge=0, le=1e9, description="At least so many ms.")
        ] = None,
        station: Annotated[Name, Query(description="Only turns that passed this station.")] = None,
        station_slower_than: Annotated[
            float | None,
            Query(alias="stationSlowerThan", ge=0, le=1e9, description="At least so many ms in `station`."),
        ] = None,
        since: GivenTime | None = None,
        until: GivenTime | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Page[TurnFacts]:
        """List attempts at turns, newest first: the rows behind the numbers of the overview."""
        person, after = person_of(caller_of(request), of), read_position(cursor)
        if station_slower_than is not None and station is None:
            raise AnamnesisError(INVALID_FIELD, field="stationSlowerThan", rule="needs a `station`")
        which = RunFilter(
            conversation_id=conversation,
            specialist=specialist,
            error=error,
            failed=True if failed else None,
            slower_than=slower_than,
            station=station,
            station_slower_than=station_slower_than,
            since=since,
            until=until,
        )
        found = await store.read(lambda tx: tx.pages.runs(which, after, limit + 1, user_id=person))
        return page_of(found, limit, lambda entry: position_cursor(entry.position), TurnFacts.model_validate)

    @router.get("/v1/rotations", responses=problems())
    async def show_rotations(
        request: Request,
        of: Of = "me",
        conversation: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
        since: GivenTime | None = None,
        until: GivenTime | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Page[Rotation]:
        """List when old turns were moved to the archive, the latest first."""
        person, after = person_of(caller_of(request), of), read_position(cursor)
        which = RotationFilter(conversation_id=conversation, user_id=person, since=since, until=until)
        found = await store.read(lambda tx: tx.pages.rotations(which, after, limit + 1))
        return page_of(found, limit, lambda entry: position_cursor(entry.position), Rotation.model_validate)


def _period(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    last = until or datetime.now(UTC)
    first = since or last - USUAL
    if not timedelta(0) <= last - first <= LONGEST:
        rule = f"must be before `until`, by at most {LONGEST.days} days"
        raise AnamnesisError(INVALID_FIELD, field="since", rule=rule)
    return first, last
