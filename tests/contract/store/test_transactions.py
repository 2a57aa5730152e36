"""A unit of work is committed whole or not at all, even if its caller is cancelled or the database fails."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from orchestrator.errors import (
    BAD_NUMBER,
    BAD_SETTING,
    BAD_UTF8,
    BUSY,
    CONSTRAINT,
    DATABASE_TOO_OLD,
    DATABASE_UNREACHABLE,
    DATABASE_UNUSABLE,
    FENCED,
    INTERNAL,
    NUL_IN_TEXT,
    SCHEMA_OLDER,
    STORAGE_FULL,
    STORAGE_UNAVAILABLE,
    AnamnesisError,
    Problem,
)
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.wire.ids import RandomIds
from tests.servers.postgres import as_psycopg
from tests.support.builders import CountedIds, HandClock
from tests.support.stored_turns import PERSON, take_turn


def begin(tx: Transaction) -> str:
    return tx.conversations.create(PERSON).id


def is_sqlite(store: Store) -> bool:
    return store.driver.dialect.name == "sqlite"


@contextmanager
def refused(problem: Problem) -> Iterator[pytest.ExceptionInfo[AnamnesisError]]:
    with pytest.raises(AnamnesisError) as caught:
        yield caught
    assert caught.value.problem is problem


@contextmanager
def in_the_way(url: str, held: str) -> Iterator[None]:
    """Hold the lock that the next write needs: that of the file on SQLite, that of a row on PostgreSQL."""
    if url.startswith("sqlite"):
        other: Any = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    else:
        other = psycopg.connect(as_psycopg(url))
        other.execute("SELECT 1 FROM alicia_conversations WHERE id = %s FOR UPDATE", [held])
    yield
    other.rollback()
    other.close()


# --- all or nothing ----------------------------------------------------------------------------------------


async def test_what_is_written_can_be_read(store: Store) -> None:
    conversation_id = await store.write(begin)

    found = await store.read(lambda tx: tx.conversations.get(conversation_id))

    assert found is not None
    assert found.user_id == PERSON


def test_work_that_raises_leaves_nothing_behind(store: Store) -> None:
    def work(tx: Transaction) -> None:
        begin(tx)
        raise LookupError

    with pytest.raises(LookupError):
        store.write_now(work)

    assert store.read_now(lambda tx: tx.conversations.of_person(PERSON)) == []


def test_a_transaction_has_one_moment_cut_to_milliseconds(store: Store, clock: HandClock) -> None:
    clock.moment += timedelta(microseconds=1999)

    def work(tx: Transaction) -> tuple[Any, Any]:
        before = tx.now
        clock.tick()
        return before, tx.now

    before, after = store.write_now(work)

    assert before == after
    assert before.microsecond == 1000


def test_a_reader_sees_a_snapshot(store: Store) -> None:
    has_looked, has_written = threading.Event(), threading.Event()

    def look_twice(tx: Transaction) -> tuple[int, int]:
        before = len(tx.conversations.of_person(PERSON))
        has_looked.set()
        has_written.wait()
        return before, len(tx.conversations.of_person(PERSON))

    seen: list[tuple[int, int]] = []
    reader = threading.Thread(target=lambda: seen.append(store.read_now(look_twice)))
    reader.start()
    has_looked.wait()
    store.write_now(begin)
    has_written.set()
    reader.join()

    assert seen == [(0, 0)]
    assert len(store.read_now(lambda tx: tx.conversations.of_person(PERSON))) == 1


def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises(AnamnesisError):
        store.read_now(begin)

    assert store.read_now(lambda tx: tx.conversations.of_person(PERSON)) == []


# --- the caller is cancelled -------------------------------------------------------------------------------


async def test_work_that_has_begun_is_finished_before_its_caller_is_cancelled(store: Store) -> None:
    loop = asyncio.get_running_loop()
    begun, go_on = asyncio.Event(), threading.Event()

    def work(tx: Transaction) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        begin(tx)

    task = asyncio.create_task(store.write(work))
    await begun.wait()
    task.cancel()
    loop.call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(await store.read(lambda tx: tx.conversations.of_person(PERSON))) == 1


async def test_cancelled_work_that_has_not_begun_never_runs(store: Store) -> None:
    go_on = threading.Event()
    lanes = 2
    ahead = [asyncio.create_task(store.write(lambda tx: go_on.wait())) for _ in range(lanes)]
    task = asyncio.create_task(store.write(begin))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.gather(*ahead)

    assert await store.read(lambda tx: tx.conversations.of_person(PERSON)) == []
    assert await store.write(begin)


async def test_a_failure_after_cancellation_is_not_logged_by_asyncio(store: Store) -> None:
    loop = asyncio.get_running_loop()
    reports: list[object] = []
    loop.set_exception_handler(lambda _, context: reports.append(context))
    begun, go_on = asyncio.Event(), threading.Event()

    def work(tx: Transaction) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        raise LookupError

    task = asyncio.create_task(store.write(work))
    await begun.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    await asyncio.sleep(0)

    assert reports == []


async def test_a_closed_store_raises_an_error(loose_store: Store) -> None:
    await loose_store.close()

    with refused(STORAGE_UNAVAILABLE):
        await loose_store.write(begin)


# --- many at once ------------------------------------------------------------------------------------------


def behind_a_slow_one(store: Store, *works: Callable[[Transaction], Any]) -> list[Any]:
    """The results of units of work that all wait at the same time."""

    async def together() -> list[Any]:
        loop = asyncio.get_running_loop()
        begun, go_on = asyncio.Event(), threading.Event()

        def wait(tx: Transaction) -> None:
            loop.call_soon_threadsafe(begun.set)
            go_on.wait()

        slow = asyncio.create_task(store.write(wait))
        await begun.wait()
        waiting = [asyncio.create_task(store.write(work)) for work in works]
        await asyncio.sleep(0)
        go_on.set()
        await slow
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    return asyncio.run(together())


def test_a_unit_of_work_that_fails_does_not_affect_others_in_its_batch(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        begin(tx)
        raise LookupError

    def break_a_rule(tx: Transaction) -> None:
        tx.messages.append(begin(tx), "robot", "hello")

    outcomes = behind_a_slow_one(store, begin, fail, begin, break_a_rule, begin)

    kept = {each.id for each in store.read_now(lambda tx: tx.conversations.of_person(PERSON))}
    assert {outcomes[0], outcomes[2], outcomes[4]} == kept
    assert isinstance(outcomes[1], LookupError)
    assert outcomes[3].problem is CONSTRAINT


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_units_of_work_that_wait_together_share_one_disk_sync(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = []
    commit = store.driver.commit

    def counted(connection: Any) -> None:
        commits.append(connection)
        commit(connection)

    monkeypatch.setattr(store.driver, "commit", counted)

    outcomes = behind_a_slow_one(store, *([begin] * 10))

    assert len(set(outcomes)) == 10
    assert len(commits) == 2  # one for the slow unit, one for the ten


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_if_the_common_commit_fails_every_unit_of_work_gets_the_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, second = store.driver.commit, iter((False, True))

    def fail_once(connection: Any) -> None:
        if next(second, False):
            raise sqlite3.OperationalError
        commit(connection)

    monkeypatch.setattr(store.driver, "commit", fail_once)

    outcomes = behind_a_slow_one(store, begin, begin)

    assert [outcome.problem for outcome in outcomes] == [INTERNAL, INTERNAL]
    assert store.read_now(lambda tx: tx.conversations.of_person(PERSON)) == []
    assert store.write_now(begin)


# --- the database refuses ----------------------------------------------------------------------------------


def test_no_part_of_an_error_quotes_what_a_person_wrote(store: Store) -> None:
    secret = "".join(("my ", "secret"))
    conversation_id = store.write_now(begin)

    with refused(CONSTRAINT) as caught:
        store.write_now(lambda tx: tx.messages.append(conversation_id, secret, secret))

    assert secret not in "".join(traceback.format_exception(caught.value))
    assert secret not in repr(caught.value.facts)


@pytest.mark.parametrize(
    ("text", "problem"), [("a\0b", NUL_IN_TEXT), ("a\ud800b", BAD_UTF8)], ids=["NUL", "lone surrogate"]
)
def test_values_that_no_database_can_store_are_refused_on_both(
    store: Store, text: str, problem: Problem
) -> None:
    conversation_id = store.write_now(begin)

    with refused(problem):
        store.write_now(lambda tx: tx.messages.append(conversation_id, "system", text))
    with refused(problem):
        store.write_now(lambda tx: tx.conversations.update(conversation_id, preferences={"key": [text]}))
    with refused(problem):
        store.write_now(lambda tx: tx.memories.add(NewMemory(content="tea", user_id=PERSON, tags=(text,))))


def test_an_escaped_nul_in_a_list_of_words_is_stored_as_text(store: Store) -> None:
    words = {"a": r"\u0000", "b": "\\\\u0000"}

    kept = store.write_now(lambda tx: tx.conversations.create(PERSON, preferences=dict(words)))

    found = store.read_now(lambda tx: tx.conversations.get(kept.id))
    assert found is not None
    assert found.preferences == words


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_does_not_know_are_refused(store: Store, number: float) -> None:
    with refused(BAD_NUMBER):
        store.write_now(lambda tx: tx.conversations.create(PERSON, preferences={"n": number}))


@pytest.mark.parametrize("number", [2**31, 2**70])
def test_a_number_that_does_not_fit_is_refused(store: Store, number: int) -> None:
    conversation_id = store.write_now(begin)

    with refused(CONSTRAINT):
        store.write_now(lambda tx: tx.frames.accept_client(conversation_id, number, 2, b"?", sender=PERSON))


def test_the_error_for_a_wrong_statement_names_it_and_quotes_no_value(store: Store) -> None:
    with refused(INTERNAL) as caught:
        store.write_now(lambda tx: tx.unit.connection.execute("SELECT no_such_column FROM turns"))

    assert "no_such_column" in "".join(traceback.format_exception(caught.value))


def test_work_that_ignores_a_database_error_is_not_committed(store: Store) -> None:
    def work(tx: Transaction) -> str:
        conversation_id = begin(tx)
        try:
            tx.messages.append(conversation_id, "robot", "hello")
        except Exception:
            return conversation_id
        return ""

    if is_sqlite(store):
        conversation_id = store.write_now(work)
        assert store.read_now(lambda tx: tx.conversations.get(conversation_id))
    else:
        with refused(INTERNAL):
            store.write_now(work)


# --- the database is missing, full or locked ----------------------------------------------------------------


def test_a_write_that_waits_too_long_is_refused_as_busy_and_the_next_one_works(
    database_url: str, clock: HandClock, ids: CountedIds
) -> None:
    store = Store.open(database_url, clock=clock, ids=ids, busy_seconds=0.05)
    conversation_id = store.write_now(begin)

    with in_the_way(database_url, conversation_id), refused(BUSY):
        store.write_now(lambda tx: tx.conversations.lock(conversation_id))

    assert store.write_now(lambda tx: tx.conversations.lock(conversation_id)).id == conversation_id
    store.close_now()


def test_readers_do_not_wait_for_a_writer(database_url: str, clock: HandClock, ids: CountedIds) -> None:
    store = Store.open(database_url, clock=clock, ids=ids, busy_seconds=0.05)
    conversation_id = store.write_now(begin)

    with in_the_way(database_url, conversation_id):
        assert store.read_now(lambda tx: tx.conversations.get(conversation_id))

    store.close_now()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_full_disk_is_reported_and_the_stored_rows_stay(store: Store) -> None:
    conversation_id = store.write_now(begin)
    (pages,) = store.read_now(lambda tx: tx.unit.connection.execute("PRAGMA page_count").fetchone())
    limit: Callable[[int], Any] = lambda most: store.write_now(  # noqa: E731
        lambda tx: tx.unit.connection.execute(f"PRAGMA max_page_count = {most}").fetchall()
    )
    limit(pages + 1)

    with refused(STORAGE_FULL):
        store.write_now(lambda tx: tx.conversations.update(conversation_id, title="x" * 100_000))

    outcomes = behind_a_slow_one(
        store, begin, lambda tx: tx.messages.append(begin(tx), "system", "x" * 100_000)
    )
    assert outcomes[1].problem is STORAGE_FULL
    assert store.read_now(lambda tx: tx.conversations.get(conversation_id))
    limit(2**30)
    assert store.write_now(lambda tx: tx.conversations.update(conversation_id, title="x" * 100_000))


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_lost_connection_is_reported_and_the_next_write_uses_a_new_one(store: Store) -> None:
    hang_up = "SELECT pg_terminate_backend(pg_backend_pid())"

    def work(tx: Transaction) -> None:
        begin(tx)
        tx.unit.connection.execute(hang_up)

    with refused(STORAGE_UNAVAILABLE):
        store.write_now(work)

    assert store.read_now(lambda tx: tx.conversations.of_person(PERSON)) == []
    assert store.write_now(begin)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_connections_lost_between_two_turns_are_replaced_without_an_error(
    store: Store, database_url: str
) -> None:
    store.write_now(begin)
    store.read_now(lambda tx: tx.conversations.of_person(PERSON))
    with psycopg.connect(as_psycopg(database_url), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    store.write_now(begin)

    assert len(store.read_now(lambda tx: tx.conversations.of_person(PERSON))) == 2


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_deadlock_is_reported_as_busy(store: Store) -> None:
    first, second = store.write_now(begin), store.write_now(begin)
    both_hold_one = threading.Barrier(2)

    def take(one: str, other: str) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            tx.conversations.lock(one)
            both_hold_one.wait()
            tx.conversations.lock(other)

        return work

    async def fight() -> list[Any]:
        fights = (store.write(take(first, second)), store.write(take(second, first)))
        return list(await asyncio.gather(*fights, return_exceptions=True))

    outcomes = asyncio.run(fight())

    assert [o.problem for o in outcomes if isinstance(o, AnamnesisError)] == [BUSY]
    assert None in outcomes


def test_a_missing_store_is_not_created(tmp_path: Path, clock: HandClock, ids: CountedIds) -> None:
    with refused(SCHEMA_OLDER):
        Store.open(f"sqlite:///{tmp_path / 'none.db'}", clock=clock, ids=ids)

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_reported(tmp_path: Path, clock: HandClock, ids: CountedIds) -> None:
    (tmp_path / "notes.db").write_text("dear diary, " * 100)

    with refused(DATABASE_UNUSABLE):
        Store.open(f"sqlite:///{tmp_path / 'notes.db'}", clock=clock, ids=ids)


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///:memory:", "mysql://localhost/x", "not an address"]
)
def test_an_address_of_an_unknown_kind_of_database_is_refused(
    url: str, clock: HandClock, ids: CountedIds
) -> None:
    with refused(BAD_SETTING):
        Store.open(url, clock=clock, ids=ids)


def test_a_server_that_does_not_answer_is_reported_without_its_password(
    clock: HandClock, ids: CountedIds
) -> None:
    password = "".join(("hunter", "2"))

    with refused(DATABASE_UNREACHABLE) as caught:
        Store.open(f"postgresql://ann:{password}@127.0.0.1:1/none", clock=clock, ids=ids)

    assert password not in "".join(traceback.format_exception(caught.value))


def test_an_sqlite_without_strict_tables_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: HandClock, ids: CountedIds
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))

    with refused(DATABASE_TOO_OLD):
        Store.open(f"sqlite:///{tmp_path / 'none.db'}", clock=clock, ids=ids)


# --- several processes -------------------------------------------------------------------------------------

APPEND = """
import sys
from orchestrator.ops.clock import SystemClock
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import RandomIds

url, conversation_id, count = sys.argv[1:]
store = Store.open(url, clock=SystemClock(), ids=RandomIds(), synchronous="OFF")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(count)):
    store.write_now(lambda tx: tx.messages.append(conversation_id, "system", "beep"))
store.close_now()
"""


def test_two_processes_number_one_conversation_without_a_gap(database_url: str) -> None:
    store = Store.open(database_url, clock=HandClock(), ids=RandomIds(), synchronous="OFF")
    conversation_id = store.write_now(begin)
    command = [sys.executable, "-c", APPEND, database_url, conversation_id, "40"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:
        for process in (one, other):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in (one, other):
            process.communicate("go\n")

    messages = store.read_now(lambda tx: tx.messages.in_order(conversation_id))
    store.close_now()
    assert (one.returncode, other.returncode) == (0, 0)
    assert [message.sequence_number for message in messages] == list(range(1, 81))


def test_a_worker_that_lost_its_lease_writes_nothing_more(
    store: Store, database_url: str, clock: HandClock
) -> None:
    other = Store.open(database_url, clock=clock, ids=RandomIds(), synchronous="OFF")
    conversation_id = store.write_now(begin)
    mine = store.write_now(lambda tx: tx.leases.acquire(conversation_id, "worker_1", seconds=15))
    assert mine is not None
    assert other.write_now(lambda tx: tx.leases.acquire(conversation_id, "worker_2", seconds=15)) is None
    clock.tick(16)
    theirs = other.write_now(lambda tx: tx.leases.acquire(conversation_id, "worker_2", seconds=15))
    assert theirs is not None

    def go_on(tx: Transaction) -> None:
        take_turn(tx, conversation_id, holder="worker_2")
        tx.leases.check_epoch(conversation_id, mine.epoch)

    with refused(FENCED):
        store.write_now(go_on)
    with refused(FENCED):
        store.write_now(lambda tx: tx.leases.renew(mine, seconds=15))
    store.write_now(lambda tx: tx.leases.release(mine))

    assert theirs.epoch == mine.epoch + 1
    assert store.read_now(lambda tx: tx.leases.get(conversation_id)) == theirs
    assert store.read_now(lambda tx: tx.messages.in_order(conversation_id)) == []
    other.close_now()


def test_no_worker_takes_over_between_the_check_of_an_epoch_and_the_commit(
    store: Store, database_url: str, clock: HandClock
) -> None:
    other = Store.open(database_url, clock=clock, ids=RandomIds(), synchronous="OFF")
    conversation_id = store.write_now(begin)
    mine = store.write_now(lambda tx: tx.leases.acquire(conversation_id, "worker_1", seconds=15))
    assert mine is not None
    clock.tick(16)
    has_checked, goes_on = threading.Event(), threading.Event()

    def write_slowly(tx: Transaction) -> None:
        tx.leases.check_epoch(conversation_id, mine.epoch)
        has_checked.set()
        goes_on.wait()
        tx.messages.append(conversation_id, "system", "the last of worker 1")

    def take_over(tx: Transaction) -> int:
        goes_on.set()
        assert tx.leases.acquire(conversation_id, "worker_2", seconds=15)
        return len(tx.messages.in_order(conversation_id))

    slow = threading.Thread(target=lambda: store.write_now(write_slowly))
    slow.start()
    has_checked.wait()
    if is_sqlite(store):
        goes_on.set()  # on SQLite the other one begins only after this one
    seen = other.write_now(take_over)
    slow.join()

    assert seen == 1
    other.close_now()
