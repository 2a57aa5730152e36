"""How a process learns that another one has stored something: a notification, or a look at a counter."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from orchestrator.store.drivers import Driver

CHANNEL: Final = "anamnesis"
LOOK_SECONDS: Final = 0.05
"""SQLite notifies nobody, so its change counter is looked at this often."""
SILENCE_SECONDS: Final = 1.0
"""After this long without a notification one looks anyway: a connection may have been lost in between."""


async def changes(driver: Driver) -> AsyncIterator[None]:
    """Goes on whenever somebody has written; now and then also when nobody has."""
    look = _counted if driver.one_writer else _notified
    while True:
        try:
            async for _ in look(driver):
                yield
        except driver.errors:
            await asyncio.sleep(SILENCE_SECONDS)


async def _counted(driver: Driver) -> AsyncIterator[None]:
    connection: Any = driver.connect(writing=False)
    try:
        counter = None
        while True:
            (now,) = connection.execute("PRAGMA data_version").fetchone()
            if now != counter:
                counter = now
                yield
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        connection.close()


async def _notified(driver: Driver) -> AsyncIterator[None]:
    from psycopg import AsyncConnection

    _, options = driver.dialect.create_connect_args(driver.url)
    async with await AsyncConnection.connect(**options, autocommit=True) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        while True:
            async for _ in connection.notifies(timeout=SILENCE_SECONDS, stop_after=1):
                pass
            yield
