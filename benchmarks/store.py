"""Rows per second through the store, against the same statements given to the bare driver.

What the store asks is written down once; then the store and the bare driver do it in turns, each on its own
copy of the database with the same durability.
"""

import asyncio
import gc
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg
from sqlalchemy import make_url

from orchestrator.clock import SystemClock
from orchestrator.store import migrations
from orchestrator.store.database import Store, Transaction
from orchestrator.store.drivers import Synchronous
from orchestrator.store.rows import Trace
from orchestrator.wire.ids import RandomIds
from tests.servers.postgres import as_psycopg, fresh_database
from tools.servers.postgres import running_postgres

ROUNDS = 50
TRANSACTIONS = 40
MANY = 100
HERE, ASKED, MEMORY = "conv_bench", "msg_bench", "mem_bench"

Work = Callable[[Transaction], None]
Statements = list[tuple[str, Any, bool]]


def fill(tx: Transaction) -> None:
    """Something that traces and frames can belong to."""
    tx.conversations.create("bench", id=HERE)
    tx.messages.append(HERE, "user", "Hello", id=ASKED)
    tx.memories.add("likes tea", user_id="bench", id=MEMORY)


def a_trace(tx: Transaction) -> Trace:
    """A receipt of usual size."""
    return Trace(
        id=tx.ids.new("trace_"),
        conversation_id=HERE,
        message_id=ASKED,
        memory_id=MEMORY,
        memory_type="profile",
        action="retrieved",
        content="Prefers tea to coffee, most of all in the morning. " * 3,
        confidence=0.5,
        similarity_score=0.5,
        query_prompt="what to drink",
        query_prompt_meta={"terms": 3},
        position_in_results=1,
        actor="recall",
        meta={"label": "active_session", "revision": 7, "digest": "0" * 64, "tags": ["drink", "habit"]},
        created_at=tx.now,
        updated_at=tx.now,
        deleted_at=None,
    )


def a_trace_and_its_frame(tx: Transaction) -> None:
    """What the house writes most often."""
    trace = a_trace(tx)
    tx.traces.add([trace])
    first = tx.conversations.lock(HERE).last_server_stanza_id - 1
    tx.frames.append_server(HERE, first, [(14, trace.content.encode() * 3)])


def many_traces(tx: Transaction) -> None:
    """What a large recall or an import writes."""
    tx.traces.add([a_trace(tx) for _ in range(MANY)])


SCENES: list[tuple[str, Work, int]] = [
    ("a trace and its frame per transaction", a_trace_and_its_frame, 2),
    (f"{MANY} traces per transaction", many_traces, MANY),
]


class Recorder:
    """A connection that also writes down what is asked of it."""

    def __init__(self, connection: Any, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def execute(self, sql: str, parameters: Any = None) -> Any:
        """Ask, and write it down."""
        self._statements.append((sql, parameters, False))
        return self._connection.execute(sql, *(() if parameters is None else (parameters,)))

    def cursor(self) -> "Recorder":
        """Itself: only `executemany` is asked of a cursor."""
        return self

    def executemany(self, sql: str, parameters: Any) -> None:
        """Ask for many, and write it down."""
        self._statements.append((sql, parameters, True))
        self._connection.cursor().executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def opened(url: str, synchronous: Synchronous = "FULL") -> Store:
    """A store with one connection to write on, as a bare driver would have."""
    return Store.open(url, clock=SystemClock(), ids=RandomIds(), connections=1, synchronous=synchronous)


def written_down(url: str, work: Work, times: int) -> Statements:
    """Every statement that the store makes of that work."""
    statements: Statements = []
    store = opened(url)
    connect = store.driver.connect
    store.driver.connect = lambda *, writing: Recorder(connect(writing=writing), statements)  # type: ignore[method-assign]
    store.write_now(lambda tx: None)
    statements.clear()
    for _ in range(times):
        store.write_now(work)
    store.close_now()
    return statements


async def through_the_store(store: Store, work: Work, times: int) -> float:
    """Seconds for that many transactions, one after the other, awaited as the house awaits them."""
    began = perf_counter()
    for _ in range(times):
        await store.write(work)
    return perf_counter() - began


async def at_once(store: Store, work: Work, times: int) -> float:
    """Seconds for that many transactions, asked for at the same time."""
    began = perf_counter()
    await asyncio.gather(*(store.write(work) for _ in range(times)))
    return perf_counter() - began


def through_the_driver(connection: Any, statements: Statements) -> float:
    """Seconds for the same statements with nothing in between."""
    began = perf_counter()
    for sql, parameters, many in statements:
        if many:
            connection.cursor().executemany(sql, parameters)
        else:
            cursor = connection.execute(sql, *(() if parameters is None else (parameters,)))
            if cursor.description:
                cursor.fetchall()
    return perf_counter() - began


async def compare(
    name: str, copies: Callable[[], str], bare: Callable[[str], Any], synchronous: Synchronous = "FULL"
) -> None:
    """Both, in short turns, so that a disk or a processor that is busy elsewhere slows both alike."""
    for scene, work, rows in SCENES:
        times = max(TRANSACTIONS // rows, 1)
        statements = written_down(copies(), work, times * ROUNDS)
        share = len(statements) // ROUNDS
        store, together, connection = (
            opened(copies(), synchronous),
            opened(copies(), synchronous),
            bare(copies()),
        )
        await store.write(lambda tx: None)
        await together.write(lambda tx: None)
        ours = crowd = driver = 0.0
        gc.disable()
        for turn in range(ROUNDS):
            ours += await through_the_store(store, work, times)
            driver += through_the_driver(connection, statements[turn * share : (turn + 1) * share])
            crowd += await at_once(together, work, times)
        gc.enable()
        connection.close()
        await store.close()
        await together.close()
        done = rows * times * ROUNDS
        print(
            f"  {name}, {scene}: bare {done / driver:,.0f} rows/s,"
            f" store {done / ours:,.0f} ({driver / ours:.2f} of bare),"
            f" {times} asked for at once {done / crowd:,.0f} ({driver / crowd:.2f})"
        )


def bare_sqlite(url: str, synchronous: Synchronous = "FULL") -> sqlite3.Connection:
    """A connection as the store has it, without the store."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, cached_statements=512)
    for setting in ("foreign_keys = ON", f"synchronous = {synchronous}", "journal_mode = WAL"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def bare_postgres(url: str) -> Any:
    """A connection as the store has it, without the store."""
    return psycopg.connect(as_psycopg(url), autocommit=True)


def filled(url: str) -> None:
    """Bring a database to the point where the scenes begin."""
    migrations.upgrade(url)
    store = opened(url)
    store.write_now(fill)
    store.close_now()


@contextmanager
def files() -> Iterator[Callable[[], str]]:
    """Copies of one SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.db"
        filled(f"sqlite:///{template}")
        numbers = iter(range(1000))

        def copy() -> str:
            path = template.with_name(f"{next(numbers)}.db")
            shutil.copyfile(template, path)
            return f"sqlite:///{path}"

        yield copy


@contextmanager
def databases() -> Iterator[Callable[[], str]]:
    """Copies of one database of a Postgres that, as for tests, does not wait for its disk."""
    with running_postgres() as server, fresh_database(server) as template, ExitStack() as copies:
        filled(template)
        name = make_url(template).database
        yield lambda: copies.enter_context(fresh_database(server, template=name))


def main() -> None:
    """SQLite with the default durability, SQLite that does not wait for its disk, then Postgres."""
    with files() as copies:
        asyncio.run(compare("SQLite", copies, bare_sqlite))
        forgetful = partial(bare_sqlite, synchronous="OFF")
        asyncio.run(compare("SQLite without fsync", copies, forgetful, "OFF"))
    with databases() as copies:
        asyncio.run(compare("Postgres", copies, bare_postgres))
