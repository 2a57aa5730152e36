"""Downloads: `/v1/conversations/{id}/export`, a whole conversation, and `/v1/traces/export`, many traces."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from orchestrator.api.access.checking import caller_of, reason_of, texts_of
from orchestrator.api.access.pseudonyms import Names, Pseudonyms
from orchestrator.api.answers import Id, Of, problems
from orchestrator.api.ports import Resources
from orchestrator.api.routes.memory.traces import (
    GivenFilter,
    TraceFacts,
    TraceView,
    read_page,
    within_reach,
)
from orchestrator.errors import PARQUET_NOT_INSTALLED, AnamnesisError
from orchestrator.inspection.export import FORMATS, gather
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.api.pages import Position

BATCH: Final = 500
"""So many traces are read at once."""
ROW_GROUP: Final = 10_000
"""So many traces are written to a Parquet file at once."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would read a text that begins like this as a formula."""

CONTENT_TYPES: Final = MappingProxyType(
    {"json": "application/json", "jsonl": "application/jsonl", "csv": "text/csv", "md": "text/markdown"}
)
PARQUET: Final = "application/vnd.apache.parquet"
_COLUMNS: Final = tuple(field.serialization_alias or name for name, field in TraceFacts.model_fields.items())


def _answers(*content_types: str) -> dict[int | str, dict[str, Any]]:
    content: dict[str, Any] = {each: {} for each in content_types}
    return {200: {"description": "The file", "content": content}}


def build_router(resources: Resources, pseudonyms: Pseudonyms) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["exports"])
    store = resources.store

    @router.get(
        "/v1/conversations/{conversation_id}/export",
        response_class=Response,
        responses=_answers(*CONTENT_TYPES.values()) | problems(404),
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
        responses=_answers(CONTENT_TYPES["jsonl"], CONTENT_TYPES["csv"], PARQUET) | problems(501),
    )
    async def export_traces(
        request: Request,
        which: GivenFilter,
        of: Of = "me",
        format: Annotated[
            Literal["jsonl", "csv", "parquet"],
            Query(description="`parquet` needs pyarrow on the server; without it, the answer is 501."),
        ] = "jsonl",
    ) -> StreamingResponse:
        """Download traces without their contents, newest first, with the filters of the list."""
        pages = _pages(store, within_reach(Names(caller_of(request), pseudonyms), of, which))
        headers = _as_file("traces", format)
        if format == "parquet":
            return StreamingResponse(_parquet(pages, _ParquetFile()), headers=headers, media_type=PARQUET)
        lines = _lines(pages, _WRITERS[format])
        return StreamingResponse(lines, headers=headers, media_type=CONTENT_TYPES[format])

    return router


async def _pages(store: Store, seen: TraceView) -> AsyncIterator[list[TraceFacts]]:
    """The traces page by page, so that the memory it takes does not depend on how many there are."""
    after: Position | None = None
    while True:
        page = await store.read(partial(read_page, which=seen.which, after=after, limit=BATCH))
        yield [seen.facts(each) for each in page]
        if len(page) < BATCH:
            return
        after = page[-1].position


async def _lines(
    pages: AsyncIterator[list[TraceFacts]], write: Callable[[list[TraceFacts], bool], str]
) -> AsyncIterator[str]:
    """The traces as text."""
    begins = True
    async for page in pages:
        yield write(page, begins)
        begins = False


async def _parquet(pages: AsyncIterator[list[TraceFacts]], file: "_ParquetFile") -> AsyncIterator[bytes]:
    """The traces as a Parquet file."""
    rows: list[dict[str, Any]] = []
    async for page in pages:
        rows += [_plain(each) for each in page]
        if len(rows) >= ROW_GROUP:
            yield await asyncio.to_thread(file.write, rows)
            rows = []
    yield await asyncio.to_thread(file.end, rows)


class _ParquetFile:
    """Writes a Parquet file in parts. Raises if pyarrow is not installed."""

    def __init__(self) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise AnamnesisError(PARQUET_NOT_INSTALLED) from None
        kinds = {
            "revision": pyarrow.int64(),
            "confidence": pyarrow.float64(),
            "utilization": pyarrow.float64(),
            "background": pyarrow.bool_(),
            "createdAt": pyarrow.timestamp("ms", tz="UTC"),
        }
        self._schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in _COLUMNS])
        self._as_table = pyarrow.Table.from_pylist
        self._parts = _Parts()
        self._writer = parquet.ParquetWriter(self._parts, self._schema)

    def write(self, rows: list[dict[str, Any]]) -> bytes:
        """Write rows; returns the bytes of the file since the last call."""
        self._writer.write_table(self._as_table(rows, schema=self._schema))
        return self._parts.take()

    def end(self, rows: list[dict[str, Any]]) -> bytes:
        """Write the last rows and the end of the file."""
        if rows:
            self._writer.write_table(self._as_table(rows, schema=self._schema))
        self._writer.close()
        return self._parts.take()


class _Parts(io.RawIOBase):
    """A file that keeps only what was written since it was last taken."""

    def __init__(self) -> None:
        self._written, self._position = bytearray(), 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        self._written += data
        self._position += len(data)
        return len(data)

    def take(self) -> bytes:
        """What was written since the last call."""
        taken, self._written = bytes(self._written), bytearray()
        return taken


def _plain(trace: TraceFacts) -> dict[str, Any]:
    return {**trace.model_dump(mode="json", by_alias=True), "createdAt": trace.created_at}


def _json_lines(page: list[TraceFacts], begins: bool) -> str:
    return "".join(f"{each.model_dump_json(by_alias=True)}\n" for each in page)


def _table(page: list[TraceFacts], begins: bool) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\r\n")
    if begins:
        table.writeheader()
    for each in page:
        table.writerow(
            {name: _cell(value) for name, value in each.model_dump(mode="json", by_alias=True).items()}
        )
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


_WRITERS: Final[Mapping[str, Callable[[list[TraceFacts], bool], str]]] = MappingProxyType(
    {"jsonl": _json_lines, "csv": _table}
)


def _as_file(name: str, format: str) -> dict[str, str]:
    """Let browsers save the answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
