"""Downloads: `/v1/conversations/{id}/export`, a whole conversation, and `/v1/traces/export`, many traces."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from orchestrator.api.access.checking import caller_of, reason_of, texts_of
from orchestrator.api.answers import Id, Of, problems
from orchestrator.api.ports import Resources
from orchestrator.api.routes.memory.traces import (
    GivenFilter,
    TraceFacts,
    read_page,
    trace_facts,
    within_reach,
)
from orchestrator.inspection.export import FORMATS, gather
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.pages import Position, TraceFilter

BATCH: Final = 500
"""So many traces are read at once."""

CONTENT_TYPES: Final = MappingProxyType(
    {"json": "application/json", "jsonl": "application/jsonl", "csv": "text/csv", "md": "text/markdown"}
)
_COLUMNS: Final = tuple(field.serialization_alias or name for name, field in TraceFacts.model_fields.items())


def _answers(*formats: str) -> dict[int | str, dict[str, Any]]:
    content: dict[str, Any] = {CONTENT_TYPES[each]: {} for each in formats}
    return {200: {"description": "The file", "content": content}}


def build_router(resources: Resources) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["exports"])
    store = resources.store

    @router.get(
        "/v1/conversations/{conversation_id}/export",
        response_class=Response,
        responses=_answers(*CONTENT_TYPES) | problems(404),
    )
    async def export_conversation(
        request: Request,
        conversation_id: Id,
        format: Annotated[
            Literal["json", "jsonl", "csv", "md"],
            Query(description="`csv` and `md` have the messages only, for tables and for reading."),
        ] = "json",
    ) -> Response:
        """Download everything that is stored about a conversation. Leaves traces of the look."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> dict[str, Any]:
            row, look = texts_of(tx, caller, conversation_id, reason)
            return gather(tx, resources.ledger, row, look)

        text = FORMATS[format](await store.write(read))
        return Response(text, headers=_as_file(conversation_id, format), media_type=CONTENT_TYPES[format])

    @router.get(
        "/v1/traces/export",
        response_class=StreamingResponse,
        responses=_answers("jsonl", "csv") | problems(),
    )
    async def export_traces(
        request: Request,
        which: GivenFilter,
        of: Of = "me",
        format: Literal["jsonl", "csv"] = "jsonl",
    ) -> StreamingResponse:
        """Download traces without their contents, newest first, with the filters of the list."""
        lines = _lines(store, within_reach(caller_of(request), of, which), _WRITERS[format])
        kind = CONTENT_TYPES[format]
        return StreamingResponse(lines, headers=_as_file("traces", format), media_type=kind)

    return router


async def _lines(
    store: Store, which: TraceFilter, write: Callable[[list[TraceFacts], bool], str]
) -> AsyncIterator[str]:
    """The traces as text, read page by page, so that the memory it takes does not depend on how many."""
    after: Position | None = None
    while True:
        page = await store.read(partial(read_page, which=which, after=after, limit=BATCH))
        yield write([trace_facts(each) for each in page], after is None)
        if len(page) < BATCH:
            return
        after = page[-1].position


def _json_lines(page: list[TraceFacts], begins: bool) -> str:
    return "".join(f"{each.model_dump_json(by_alias=True)}\n" for each in page)


def _table(page: list[TraceFacts], begins: bool) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\r\n")
    if begins:
        table.writeheader()
    table.writerows(each.model_dump(mode="json", by_alias=True) for each in page)
    return text.getvalue()


_WRITERS: Final[Mapping[str, Callable[[list[TraceFacts], bool], str]]] = MappingProxyType(
    {"jsonl": _json_lines, "csv": _table}
)


def _as_file(name: str, format: str) -> dict[str, str]:
    """Let browsers save the answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
