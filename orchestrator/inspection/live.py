"""Follows new traces as they are stored, by this or another process."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.api.pages import Position, TraceEntry, TraceFilter

LOOKBACK: Final = timedelta(seconds=5)
"""How far back each read begins: a transaction that began earlier may be committed later."""
BATCH: Final = 500
CHECK_SECONDS: Final = 15.0
"""A follower gets None so often, whatever else happens, so that it can check its connection."""


class TraceFeed:
    """Tells all followers of one process about changes of the store. It watches only while there are any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followers: set[asyncio.Event] = set()
        self._waking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def follow(
        self, which: TraceFilter, after: Position | None = None, *, check_seconds: float = CHECK_SECONDS
    ) -> AsyncGenerator[TraceEntry | None, None]:
        """New traces in the order in which they appear, and None every `check_seconds`.

        It ends when the feed closes.
        With `after`, traces since that position come first; some of them may have been seen before.
        """
        with self._following() as woken:
            known: dict[str, datetime] = {}
            if after is None:
                now, recent = await self._store.read(
                    lambda tx: (tx.now, tx.pages.traces_since(_from(which, tx.now - LOOKBACK), BATCH))
                )
                known, newest = {each.id: each.created_at for each in recent}, now
            else:
                known, newest = {after.id: after.at}, after.at
            since, now_seconds = newest - LOOKBACK, asyncio.get_running_loop().time
            check_at = now_seconds() + check_seconds
            while not self._is_closed:
                if now_seconds() >= check_at:
                    yield None
                    check_at = now_seconds() + check_seconds
                woken.clear()
                page = await self._store.read(partial(_read, _from(which, since)))
                for entry in page:
                    if entry.id not in known:
                        known[entry.id] = entry.created_at
                        yield entry
                newest = max([newest, *(entry.created_at for entry in page)])
                if len(page) == BATCH and page[-1].created_at > since:
                    since = page[-1].created_at
                    continue
                since = newest - LOOKBACK
                known = {id: at for id, at in known.items() if at >= since}
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(check_at):
                        await woken.wait()

    def close(self) -> None:
        """End all followers: the server is stopping."""
        self._is_closed = True
        for woken in self._followers:
            woken.set()

    @contextmanager
    def _following(self) -> Iterator[asyncio.Event]:
        woken = asyncio.Event()
        self._followers.add(woken)
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._wake_followers())
        try:
            yield woken
        finally:
            self._followers.discard(woken)
            if not self._followers and self._waking is not None:
                self._waking.cancel()
                self._waking = None

    async def _wake_followers(self) -> None:
        async for _ in self._store.changes():
            for woken in self._followers:
                woken.set()


def _from(which: TraceFilter, since: datetime) -> TraceFilter:
    return replace(which, since=max(since, which.since) if which.since else since)


def _read(which: TraceFilter, tx: Transaction) -> list[TraceEntry]:
    return tx.pages.traces_since(which, BATCH)
