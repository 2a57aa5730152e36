"""Ways in which a server can be other than it is: parts that come later, mistakes that must be noticed."""

import asyncio
import signal
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from agents.brains.local import LocalBrain
from agents.ports import Brief, MemoryHit, Recalled
from orchestrator import desk, house, session, wiring
from orchestrator.mirror import record
from orchestrator.outbox import Fence, Outbox, Page
from orchestrator.store.database import Store, Transaction
from orchestrator.store.drivers import Sqlite
from orchestrator.store.leases import Leases
from orchestrator.store.rows import Frame, Lease
from orchestrator.turn import Stations
from orchestrator.turnstile import OpenTurn
from orchestrator.wire.ids import MessageId
from orchestrator.wire.messages import Acknowledgement, UserMessage

CHANGES: Final[dict[str, Callable[[], None]]] = {}


def _put(where: object, **parts: object) -> None:
    for name, part in parts.items():
        setattr(where, name, part)


def served(change: str = "") -> str:
    """The program of `anamnesis`, changed in the way of that name."""
    as_changed = f"from tests.faults.changes import CHANGES; CHANGES[{change!r}](); " if change else ""
    return f"{as_changed}from orchestrator.cli import main; main()"


def change(make: Callable[[], None]) -> Callable[[], None]:
    """Let a server be asked for by the name of this function."""
    CHANGES[make.__name__] = make
    return make


# --- parts that come later, or that a test needs slower ----------------------------------------------------


class _Finds:
    """Remembers the same few things of everybody, and finds them whatever is asked."""

    def __init__(self, store: Store, count: int) -> None:
        self._store, self._count = store, count

    async def search(self, query: str, person_id: str) -> Recalled:
        """Those things."""

        def find(tx: Transaction) -> list[str]:
            known = tx.memories.of_person(person_id, most=self._count)
            known += [
                tx.memories.add("Likes tea.", user_id=person_id) for _ in range(self._count - len(known))
            ]
            return [memory.id for memory in known]

        found = await self._store.write(find)
        return Recalled(
            tuple(MemoryHit(id, "Likes tea.", 0.5, position=place) for place, id in enumerate(found, start=1))
        )


def _recalling(count: int) -> None:
    def stations(**given: Any) -> Stations:
        return Stations(**{**given, "recall": _Finds(given["outbox"].store, count)})

    _put(wiring, Stations=stations)


@change
def recalling() -> None:
    """Long-term memory finds something in every turn."""
    _recalling(1)


@change
def recalling_much() -> None:
    """Long-term memory finds two hundred things in every turn."""
    _recalling(200)


def _speaking(pause: float, *, endless: bool = False) -> None:
    speak = LocalBrain.speak

    async def slowly(self: LocalBrain, brief: Brief) -> AsyncIterator[str]:
        async for fragment in speak(self, brief):
            yield fragment
            await asyncio.sleep(pause)
        while endless:
            yield "And so on. "
            await asyncio.sleep(pause)

    _put(LocalBrain, speak=slowly)


@change
def slow() -> None:
    """Takes its time for each sentence."""
    _speaking(0.15)


@change
def endless() -> None:
    """Never comes to an end of its answer, and is not given long when the house closes."""
    _speaking(0.05, endless=True)
    _put(house, GRACE_SECONDS=0.3)


@change
def falls_silent() -> None:
    """Says one thing and then nothing more, without coming to an end."""

    async def speak(self: LocalBrain, brief: Brief) -> AsyncIterator[str]:
        for fragment in ("Let me think. ", "I wonder. ", "Now"):
            yield fragment
        await asyncio.Event().wait()

    _put(LocalBrain, speak=speak)


@change
def waits_in_the_middle() -> None:
    """Says ten sentences, the latter half only once SIGUSR1 has come."""
    may_go_on = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: may_go_on.set())

    async def speak(self: LocalBrain, brief: Brief) -> AsyncIterator[str]:
        for number in range(1, 11):
            yield f"Sentence {number} of ten. "
            if number == 5:
                await asyncio.to_thread(may_go_on.wait)

    _put(LocalBrain, speak=speak)


@change
def full() -> None:
    """The disk has no room, and what was to be written is refused when it is to last, until SIGUSR1 comes."""
    commit, has_room = Sqlite.commit, threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: has_room.set())

    def refuse(self: Sqlite, connection: sqlite3.Connection) -> None:
        (reading,) = connection.execute("PRAGMA query_only").fetchone()
        if reading or has_room.is_set():
            commit(self, connection)
            return
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    _put(Sqlite, commit=refuse)


# --- mistakes that must be noticed -------------------------------------------------------------------------


def _telling_too_early(*steps: str) -> None:
    commit, send, sent = Outbox.commit, session.Session._send, set[bytes]()
    written: dict[str, list[Frame]] = {}  # what stands before may wait for the same commit: it is told too

    async def send_and_note(self: session.Session, packet: bytes) -> None:
        await send(self, packet)
        sent.add(packet)

    async def hasty(
        self: Outbox,
        conversation_id: str,
        work: Callable[[Page], Any],
        fence: Fence | None = None,
        *,
        step: str,
    ) -> Any:
        loop = asyncio.get_running_loop()

        def hear(said: list[Frame]) -> None:
            for listener in self._listeners.get(conversation_id, ()):
                listener.hear(said)

        def work_and_tell(page: Page) -> Any:
            result = work(page)
            first, now, packets = page.conversation.last_server_stanza_id - 1, page.tx.now, page._packets
            said = written.setdefault(conversation_id, [])
            said += [
                Frame(conversation_id, "server", first - i, 0, kind, packet, None, None, None, now)
                for i, (kind, packet) in enumerate(packets)
            ]
            if step in steps and conversation_id in self._listeners:
                while not sent.issuperset(packet for _, packet in packets):
                    loop.call_soon_threadsafe(hear, said)  # until it has really left, before the process dies
                    time.sleep(0.01)
            return result

        return await commit(self, conversation_id, work_and_tell, fence, step=step)

    _put(Outbox, commit=hasty)
    _put(session.Session, _send=send_and_note)


@change
def acknowledges_before_it_stores() -> None:
    """The Acknowledgement leaves while the message may still be lost."""
    _telling_too_early("accept")


@change
def sends_before_it_stores() -> None:
    """Stanzas of an answer leave before the rows they speak of are there."""
    _telling_too_early("begin", "recall", "sentence", "end")


@change
def takes_a_repeated_message_for_a_new_one() -> None:
    """What a client sends again is stored and answered again."""
    accept = desk.accept

    def accept_all(page: Page, arrival: desk.Arrival) -> desk.Consequence:
        envelope, body = arrival.envelope, arrival.envelope.body
        if not isinstance(body, UserMessage) or page.tx.messages.get(body.id) is None:
            return accept(page, arrival)
        fresh = body.model_copy(update={"id": MessageId(page.tx.ids.new("msg_"))})
        record(page.tx, page.conversation, envelope._replace(body=fresh, meta=None))
        page.tx.turns.enqueue(page.conversation.id, fresh.id)
        acknowledged = Acknowledgement(
            conversation_id=page.conversation_id,
            acknowledged_stanza_id=envelope.stanza_id,
            success=True,
        )
        page.say(acknowledged)
        return desk.Consequence(to_answer=True)

    _put(session, accept=accept_all)


@change
def speaks_over_what_was_said() -> None:
    """An answer that a dead process had begun is begun once more."""
    _put(OpenTurn, begun=property(lambda _: False))


@change
def does_not_look_at_the_epoch() -> None:
    """A worker that slept past its lease writes on."""
    _put(Leases, check_epoch=lambda *_: None)


@change
def lets_go_of_the_lease_at_once() -> None:
    """The conversation is free for others while it is being answered."""
    acquire = Leases.acquire

    def acquire_and_release(self: Leases, conversation_id: str, holder: str, **given: Any) -> Lease | None:
        lease = acquire(self, conversation_id, holder, **given)
        if lease is not None:
            self.release(lease)
        return lease

    _put(Leases, acquire=acquire_and_release, renew=lambda self, lease, *, seconds: lease)
