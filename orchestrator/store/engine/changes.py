"""Detects writes of other processes: by notifications on PostgreSQL, by polling a counter on SQLite."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from orchestrator.store.engine.drivers import Driver

CHANNEL: Final = "anamnesis"
POLL_SECONDS: Final = 0.05
"""SQLite has no notifications, so its change counter is polled this often."""
SILENCE_SECONDS: Final = 1.0
"""A change is assumed after this long without a notification, since the connection may have been lost."""


async def changes(driver: Driver) -> AsyncIterator[None]:
    """Yields whenever a process has written, and sometimes when none has."""
    wait = _poll_counter if driver.one_writer else _listen
    while True:
        try:
            async for _ in wait(driver):
                yield
        except driver.errors:
            await asyncio.sleep(SILENCE_SECONDS)


async def _poll_counter(driver: Driver) -> AsyncIterator[None]:
    connection: Any = driver.connect(writing=False)
    try:
        counter = None
        while True:
            (now,) = connection.execute("PRAGMA data_version").fetchone()
            if now != counter:
                counter = now
                yield
            await asyncio.sleep(POLL_SECONDS)
    finally:
        connection.close()


async def _listen(driver: Driver) -> AsyncIterator[None]:
    from psycopg import AsyncConnection

    _, options = driver.dialect.create_connect_args(driver.url)
    async with await AsyncConnection.connect(**options, autocommit=True) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        while True:
            async for _ in connection.notifies(timeout=SILENCE_SECONDS, stop_after=1):
                pass
            yield
