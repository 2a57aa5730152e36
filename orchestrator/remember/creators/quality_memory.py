"""Makes the memories of a conversation, each message in exactly one chunk. The only writer of the ledger.

One run compares the history with the last processed point, cuts what is new into chunks, makes memories of
each chunk, appends them to the ledger, and then stores them in the index. The ledger moves the point in the
same step in which it keeps a chunk. A run that fails or dies is therefore completed by the next one: a chunk
that is not in the ledger is made again, and one that is in the ledger is only brought into the index.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from agents.ports import Embedder
from memory_blocks.ports import Clock
from orchestrator.errors import AnamnesisError
from orchestrator.ops import faults
from orchestrator.ops.clock import as_text
from orchestrator.ops.logs import get_logger
from orchestrator.remember import indexing
from orchestrator.remember.creators import projection
from orchestrator.remember.creators.chunking import Chunk, chunks
from orchestrator.remember.creators.generation import Context, Generator, Made, RequestOrigin
from orchestrator.remember.creators.history import HistoryMessage, history_after
from orchestrator.remember.creators.settling import KINDS, Settling
from orchestrator.remember.indexing import Item
from orchestrator.remember.ledger.lines import (
    Discussion,
    Kind,
    Line,
    NewLine,
    Point,
    RollingSummary,
    alive,
    is_current,
    next_summary,
)
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Memory

log = get_logger()

Keep: TypeAlias = Callable[[str, Callable[[Transaction], Sequence[Memory]]], Awaitable[None]]
"""Stores memories of a conversation in one transaction, each with a trace."""


@dataclass(slots=True)
class MemoryRun:
    """What a run did. `error` is the name of the error that ended it early."""

    chunks: int = 0
    messages: int = 0
    memories: list[str] = field(default_factory=list)
    dropped: int = 0
    error: str = ""


class QualityMemory:
    """The creator of memories (the source document calls it SlowButQualityRAGTool)."""

    def __init__(
        self,
        store: Store,
        ledger: MemoryLedger,
        embedder: Embedder,
        generator: Generator,
        keep: Keep,
        clock: Clock,
    ) -> None:
        self._store, self.ledger, self._embedder = store, ledger, embedder
        self._generator, self._keep, self._clock = generator, keep, clock
        self.settling = Settling(store, ledger, clock, characters=generator.config.summary_characters)

    @property
    def kind(self) -> Kind:
        """The kind of memories that it makes."""
        return self._generator.config.kind

    async def handle_discussion_id_flow(
        self, of: Discussion, *, whole: bool = False, eager: bool = False
    ) -> MemoryRun:
        """Bring the memories of a conversation up to date.

        With `whole`, the newest messages do not wait; with `eager`, a last chunk that is not full does not.
        A chunk that fails ends the run; the next run tries it again. Errors are in the result, not raised.
        """
        run = MemoryRun()
        try:
            await self.settle(of)
            point = await asyncio.to_thread(self.ledger.point, of, self.kind)
            for chunk in await self._chunks_after(of, point, whole=whole, eager=eager):
                if not await self._remember(of, point, chunk, run):
                    break
                point = chunk[-1].point
        except AnamnesisError as error:
            run.error = error.problem.name
            log.warning("memories_not_made", conversation_id=of.id, error=run.error)
        try:
            run.dropped += await self._roll(of)
        except AnamnesisError as error:
            run.error = run.error or error.problem.name
            log.warning("summary_not_made", conversation_id=of.id, error=error.problem.name)
        with suppress(AnamnesisError):
            await self._note_error(of, run.error or None)
        return run

    async def without_discussion(self, messages: Sequence[HistoryMessage]) -> str:
        """The memories of messages that belong to no conversation. Nothing is stored."""
        if not messages:
            return ""
        made = await self._generator.generate(tuple(messages), self.kind, Context(), RequestOrigin())
        return "\n\n".join(body.text for body in made.bodies)

    async def settle(self, of: Discussion) -> None:
        """Let the ledger follow every change, and bring what an earlier run left undone into the index."""
        await asyncio.to_thread(self.settling.settle, of)
        for kind in KINDS:
            await self._project(of, kind)

    async def findable(self, of: Discussion) -> list[Item]:
        """The living memories that searches find: none, unless `find_in_searches` is set."""
        if not self._generator.config.find_in_searches:
            return []
        found: list[Item] = []
        for kind in KINDS:
            lines = await asyncio.to_thread(self.ledger.lines, of, kind)
            found += await self._store.read(
                lambda tx, kind=kind, lines=lines: projection.living(tx, of, kind, lines)  # type: ignore[misc]
            )
        return found

    async def _chunks_after(
        self, of: Discussion, point: Point | None, *, whole: bool, eager: bool
    ) -> list[Chunk]:
        new = await self._store.read(lambda tx: history_after(tx, of.id, point))
        return self.ready(new, whole=whole, eager=eager)

    def ready(self, new: Sequence[HistoryMessage], *, whole: bool, eager: bool) -> list[Chunk]:
        """The chunks of new messages that a run would process."""
        config = self._generator.config
        return chunks(
            new,
            tokens=config.chunk_estimated_token_size,
            lookback=config.lookback_messages,
            least=1 if eager else config.messages_between_chunks,
            whole=whole,
        )

    async def _remember(self, of: Discussion, point: Point | None, chunk: Chunk, run: MemoryRun) -> bool:
        """Make and keep the memories of the chunk after a point; False if another process was faster."""
        lines = await asyncio.to_thread(self.ledger.lines, of, self.kind)
        summaries = await asyncio.to_thread(self.ledger.summaries, of)
        current = summaries[-1].text or "" if summaries else ""
        known = Context(tuple(line.body.text for line in alive(lines) if line.body), current)
        made = await self._generator.generate(chunk, self.kind, known, RequestOrigin(of, chunk[-1].id))
        faults.point("after_generate")
        new = self._lines(of, chunk, made, number=1 + max((line.chunk for line in lines), default=0))
        if not await asyncio.to_thread(self.ledger.append, of, self.kind, point, new):
            return False
        run.chunks += 1
        run.messages += len(chunk)
        run.dropped += made.dropped
        run.memories += [line.memory_id for line in new if line.memory_id]
        log.info("chunk_remembered", conversation_id=of.id, count=len(chunk), number=new[0].chunk)
        await self.settle(of)  # a message may have been deleted while the memories were made
        return True

    def _lines(self, of: Discussion, chunk: Chunk, made: Made, number: int) -> list[NewLine]:
        point, at = chunk[-1].point, as_text(self._clock.now())
        messages = tuple(said.id for said in chunk)
        lines = [
            NewLine(
                action="memory",
                memory_id=projection.memory_id(of, self.kind, number, point.message_id, place),
                chunk=number,
                point=point,
                messages=messages,
                rests_on=made.rests_on,
                maker=made.maker,
                dropped=made.dropped if place == 0 else 0,
                at=at,
                body=body,
            )
            for place, body in enumerate(made.bodies)
        ]
        empty = NewLine("empty", "", number, point, messages, (), made.maker, made.dropped, at, None)
        return lines or [empty]

    async def _note_error(self, of: Discussion, error: str | None) -> None:
        """Keep why the run failed, for `memory status`."""
        work = await self._store.read(lambda tx: tx.memory_work.get(of.id))
        if error != (work.error if work else None):
            await self._store.write(lambda tx: tx.memory_work.note_error(of.id, error))

    async def _project(self, of: Discussion, kind: Kind) -> None:
        """Store the memories of the ledger that are not in the index yet."""
        lines = await asyncio.to_thread(self.ledger.lines, of, kind)
        items = await self._store.read(lambda tx: projection.missing(tx, of, kind, lines))
        if not items:
            return
        embeddings = None
        if self._generator.config.find_in_searches:
            embeddings = await asyncio.to_thread(indexing.embed, items, self._embedder)
        await self._keep(of.id, lambda tx: projection.store_missing(tx, of, items, embeddings))

    async def _roll(self, of: Discussion) -> int:
        """Bring the rolling summary up to date with the memories of kind `file`.

        Returns how many sentences of a model were dropped.
        """
        last, living, new, lines = await asyncio.to_thread(self._to_roll, of)
        if not living or not new:
            return 0
        current = (last.text or "") if last is not None and len(new) < len(living) else ""
        memories = [line.body.text for line in living if line.body]
        caller = RequestOrigin(of, living[-1].point.message_id)
        made = await self._generator.roll(memories, current, memories[-len(new) :], caller)
        faults.point("before_summary")
        text = made.bodies[0].text
        now = self._clock.now()
        summary = await asyncio.to_thread(next_summary, last, text, living[-1], lines, made.maker, now)
        await asyncio.to_thread(self.ledger.add_summary, of, summary)
        faults.point("after_summary")
        if made.dropped:
            await self._store.write(lambda tx: tx.memory_work.note_dropped(of.id, made.dropped))
        return made.dropped

    def _to_roll(
        self, of: Discussion
    ) -> tuple[RollingSummary | None, Sequence[Line], Sequence[Line], Sequence[Line]]:
        """The last summary, the living memories, those of them that it does not hold, and all lines."""
        lines, summaries = self.ledger.lines(of, "file"), self.ledger.summaries(of)
        last, living = summaries[-1] if summaries else None, alive(lines)
        return last, living, _unheld(last, living, lines), lines


def _unheld(last: RollingSummary | None, living: Sequence[Line], lines: Sequence[Line]) -> Sequence[Line]:
    """The memories that the summary does not hold: all of them if one was changed since it was made."""
    if last is None or not is_current(last, lines):
        return living
    return [line for line in living if line.number > last.seen]
