"""Threads that run units of work, each thread on a connection of its own."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar

from orchestrator.errors import STORAGE_UNAVAILABLE, AnamnesisError
from orchestrator.store import refusals
from orchestrator.store.drivers import Driver
from orchestrator.store.statements import Connection

T = TypeVar("T")
Tx = TypeVar("Tx")

MOST_TOGETHER: Final = 64


class Lane(Generic[Tx]):
    """Each unit of work is a transaction of its own."""

    def __init__(
        self, driver: Driver, open: Callable[[Connection], Tx], *, writing: bool, threads: int
    ) -> None:
        self._driver, self._open, self._writing = driver, open, writing
        name = "anamnesis-writes" if writing else "anamnesis-reads"
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._here = threading.local()
        self._connections: list[Connection] = []

    def submit(self, work: Callable[[Tx], T]) -> Future[T]:
        """Queue the work. Once it has begun it runs to its end, whoever waits for it."""
        return self._queue(self._perform, work)

    def close(self) -> None:
        """Finish what was queued, then let go of every connection."""
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
            connection = self._begun()
            try:
                result = work(self._open(connection))
                self._end(connection)
                return result
            except BaseException:
                self._roll_back(connection)
                raise
        except Exception as error:
            refused = self._meant(error)
            if refused is error:
                raise
        raise refused  # out here, so that what the library quoted does not travel along as its context

    def _end(self, connection: Connection) -> None:
        """Make it last. What was only read has been read, even if a damaged file lets nothing end well."""
        try:
            self._driver.commit(connection)
        except self._driver.errors:
            if self._writing:
                raise
            self._roll_back(connection)

    def _meant(self, error: BaseException) -> BaseException:
        """A library's error in our own words; any other as it is."""
        if isinstance(error, self._driver.errors):
            return self._driver.refusal(error)
        if isinstance(error, UnicodeError | OverflowError):
            return refusals.of_value(error)
        return error

    def _begun(self) -> Connection:
        """A connection with a transaction begun; a new one, if it was lost since it was last used."""
        connection: Connection | None = getattr(self._here, "connection", None)
        if connection is not None:
            try:
                self._driver.begin(connection, writing=self._writing)
                return connection
            except self._driver.errors:
                if self._roll_back(connection):
                    raise
        connection = self._here.connection = self._driver.connect(writing=self._writing)
        self._connections.append(connection)
        self._driver.begin(connection, writing=self._writing)
        return connection

    def _roll_back(self, connection: Connection) -> bool:
        usable = self._driver.roll_back(connection)
        if not usable:
            self._connections.remove(connection)
            self._here.connection = None
        return usable


class SharedLane(Lane[Tx]):
    """The one writer of SQLite: what waits when it gets to work is committed together: one wait for the disk.

    Each unit of work is still whole or not at all: it stands behind a savepoint of its own, sees what those
    before it wrote, and is reported once all of them are on disk.
    """

    def __init__(self, driver: Driver, open: Callable[[Connection], Tx]) -> None:
        super().__init__(driver, open, writing=True, threads=1)
        self._waiting: deque[tuple[Callable[[Tx], Any], Future[Any]]] = deque()

    def submit(self, work: Callable[[Tx], T]) -> Future[T]:
        """Queue the work. Once it has begun it runs to its end, whoever waits for it."""
        future: Future[T] = Future()
        self._waiting.append((work, future))
        self._queue(self._drain)
        return future

    def _drain(self) -> None:
        batch: list[tuple[Callable[[Tx], Any], Future[Any]]] = []
        while self._waiting and len(batch) < MOST_TOGETHER:
            work, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                batch.append((work, future))
        if not batch:
            return
        done: list[tuple[Future[Any], Any]] = []
        try:
            connection = self._begun()
            try:
                if len(batch) == 1:
                    done.append((batch[0][1], batch[0][0](self._open(connection))))
                else:
                    for work, future in batch:
                        self._one(connection, work, future, done)
                self._driver.commit(connection)
            except BaseException:
                self._roll_back(connection)
                raise
        except BaseException as error:
            refused = self._meant(error)
            for _, future in batch:
                if not future.done():
                    future.set_exception(refused)
            return
        for future, result in done:
            future.set_result(result)

    def _one(
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
                raise  # the database has undone all of it, that of the others too
            connection.execute("ROLLBACK TO work")
            future.set_exception(self._meant(error))
        connection.execute("RELEASE work")
