"""Threads that run transactions, each thread with its own connection."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar

from orchestrator.errors import STORAGE_UNAVAILABLE, AnamnesisError
from orchestrator.store.engine import refusals
from orchestrator.store.engine.drivers import Driver
from orchestrator.store.engine.statements import Connection

T = TypeVar("T")
Tx = TypeVar("Tx")

MAX_BATCH: Final = 64


class Lane(Generic[Tx]):
    """Threads that run each unit of work in a transaction of its own."""

    def __init__(
        self, driver: Driver, open: Callable[[Connection], Tx], *, writing: bool, threads: int
    ) -> None:
        self._driver, self._open, self._writing = driver, open, writing
        name = "anamnesis-writes" if writing else "anamnesis-reads"
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._local = threading.local()
        self._connections: list[Connection] = []

    def submit(self, work: Callable[[Tx], T]) -> Future[T]:
        """Queue the work. Once begun, it runs to its end, even if nobody waits for the result."""
        return self._queue(self._perform, work)

    def close(self) -> None:
        """Finish the queued work and close all connections."""
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()

    def _queue(self, job: Callable[..., T], *arguments: Any) -> Future[T]:
        try:
            return self._threads.submit(job, *arguments)
        except RuntimeError:
            closed = AnamnesisError(STORAGE_UNAVAILABLE)
        raise closed

    def _perform(self, work: Callable[[Tx], T]) -> T:
        try:
            connection = self._begin()
            try:
                result = work(self._open(connection))
                if self._writing:
                    self._driver.commit(connection)
                else:
                    self._roll_back(connection)
                return result
            except BaseException:
                self._roll_back(connection)
                raise
        except Exception as error:
            refused = self._translate(error)
            if refused is error:
                raise
        raise refused  # outside `except`: the library's error may quote values, and must not be its context

    def _translate(self, error: BaseException) -> BaseException:
        """Our error for an error of the library; any other error unchanged."""
        if isinstance(error, self._driver.errors):
            return self._driver.refusal(error)
        if isinstance(error, UnicodeError | OverflowError):
            return refusals.from_value(error)
        return error

    def _begin(self) -> Connection:
        """Begin a transaction on this thread's connection; reconnect if it was lost since its last use."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            try:
                self._driver.begin(connection, writing=self._writing)
                return connection
            except self._driver.errors:
                if self._roll_back(connection):
                    raise
        connection = self._local.connection = self._driver.connect(writing=self._writing)
        self._connections.append(connection)
        self._driver.begin(connection, writing=self._writing)
        return connection

    def _roll_back(self, connection: Connection) -> bool:
        usable = self._driver.roll_back(connection)
        if not usable:
            self._connections.remove(connection)
            self._local.connection = None
        return usable


class SharedLane(Lane[Tx]):
    """The single writer thread of SQLite. It commits all waiting work together, to sync the disk only once.

    Each unit of work has a savepoint of its own, so that it succeeds or fails as a whole. It sees what those
    before it wrote, and its result is reported once all of them are on disk.
    """

    def __init__(self, driver: Driver, open: Callable[[Connection], Tx]) -> None:
        super().__init__(driver, open, writing=True, threads=1)
        self._waiting: deque[tuple[Callable[[Tx], Any], Future[Any]]] = deque()

    def submit(self, work: Callable[[Tx], T]) -> Future[T]:
        """Queue the work. Once begun, it runs to its end, even if nobody waits for the result."""
        future: Future[T] = Future()
        self._waiting.append((work, future))
        self._queue(self._drain)
        return future

    def _drain(self) -> None:
        batch: list[tuple[Callable[[Tx], Any], Future[Any]]] = []
        while self._waiting and len(batch) < MAX_BATCH:
            work, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                batch.append((work, future))
        if not batch:
            return
        done: list[tuple[Future[Any], Any]] = []
        try:
            connection = self._begin()
            try:
                if len(batch) == 1:
                    done.append((batch[0][1], batch[0][0](self._open(connection))))
                else:
                    for work, future in batch:
                        self._run_in_savepoint(connection, work, future, done)
                self._driver.commit(connection)
            except BaseException:
                self._roll_back(connection)
                raise
        except BaseException as error:
            refused = self._translate(error)
            for _, future in batch:
                if not future.done():
                    future.set_exception(refused)
            return
        for future, result in done:
            future.set_result(result)

    def _run_in_savepoint(
        self,
        connection: Any,
        work: Callable[[Tx], Any],
        future: Future[Any],
        done: list[tuple[Future[Any], Any]],
    ) -> None:
        connection.execute("SAVEPOINT work")
        try:
            done.append((future, work(self._open(connection))))
        except BaseException as error:
            if not connection.in_transaction:
                raise  # the database has rolled back the whole batch
            connection.execute("ROLLBACK TO work")
            future.set_exception(self._translate(error))
        connection.execute("RELEASE work")
