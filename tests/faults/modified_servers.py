"""Changes that a test makes to a server: parts that are not built yet, and deliberate bugs."""

import asyncio
import signal
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any, Final

from agents.local import LocalBrain
from agents.ports import Brief, Embedded, MemoryHit, Recalled
from orchestrator import orchestrator as orchestrator
from orchestrator import wiring
from orchestrator.connection import handlers, session
from orchestrator.ops import faults
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.drivers import Sqlite
from orchestrator.store.frame_records import record
from orchestrator.store.repositories.conversation.leases import Leases
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Frame, Lease
from orchestrator.turn.outbox import ConversationWrite, Fence, Outbox
from orchestrator.turn.queue import OpenTurn
from orchestrator.turn.services import TurnAgents, TurnLimits, TurnMemory, TurnServices
from orchestrator.wire.ids import MessageId
from orchestrator.wire.messages import Acknowledgement, UserMessage

CHANGES: Final[dict[str, Callable[[], None]]] = {}


def _put(where: object, **parts: object) -> None:
    """Replace attributes of a module or class."""
    for name, part in parts.items():
        setattr(where, name, part)


def served(change: str = "") -> str:
    """The source of a program that makes the change of that name and then runs `anamnesis`."""
    make = f"from tests.faults.modified_servers import CHANGES; CHANGES[{change!r}]()" if change else "pass"
    return f"{make}; from orchestrator.cli import main; main()"


def change(make: Callable[[], None]) -> Callable[[], None]:
    """Register a change under the name of its function."""
    CHANGES[make.__name__] = make
    return make


# --- parts that are not built yet, or that a test needs slower ----------------------------------------------


class _FixedRecall:
    """Long-term memory that finds the same few memories for every query."""

    def __init__(self, store: Store, count: int) -> None:
        self._store, self._count = store, count

    async def search(
        self,
        query: Embedded,
        person_id: str,
        conversation_id: str,
        watched: Sequence[str] = (),
        zone: tzinfo = UTC,
    ) -> Recalled:
        """The memories of this person, created at the first search."""

        def find(tx: Transaction) -> list[str]:
            known = tx.memories.of_person(person_id, limit=self._count)
            known += [
                tx.memories.add(NewMemory(content="Likes tea.", user_id=person_id))
                for _ in range(self._count - len(known))
            ]
            return [memory.id for memory in known]

        found = await self._store.write(find)
        return Recalled(
            tuple(
                MemoryHit(id, "Likes tea.", 0.5, position=position)
                for position, id in enumerate(found, start=1)
            )
        )


def _recalling(count: int) -> None:
    def services(
        agents: TurnAgents, memory: TurnMemory, monitor: SafetyMonitor, outbox: Outbox, limits: TurnLimits
    ) -> TurnServices:
        fixed = replace(memory, recall=_FixedRecall(outbox.store, count))
        return TurnServices(agents, fixed, monitor, outbox, limits)

    _put(wiring, TurnServices=services)


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
    """The brain pauses after each sentence."""
    _speaking(0.15)


@change
def silent() -> None:
    """The brain thinks for a minute before its first word."""
    speak = LocalBrain.speak

    async def late(self: LocalBrain, brief: Brief) -> AsyncIterator[str]:
        await asyncio.sleep(60)
        async for fragment in speak(self, brief):
            yield fragment

    _put(LocalBrain, speak=late)


@change
def endless() -> None:
    """The answer never ends, and the orchestrator waits only briefly for it when it closes."""
    _speaking(0.05, endless=True)
    _put(orchestrator, GRACE_SECONDS=0.3)


@change
def falls_silent() -> None:
    """The answer begins, then stops without an end."""

    async def speak(self: LocalBrain, brief: Brief) -> AsyncIterator[str]:
        for fragment in ("Let me think. ", "I wonder. ", "Now"):
            yield fragment
        await asyncio.Event().wait()

    _put(LocalBrain, speak=speak)


@change
def waits_in_the_middle() -> None:
    """The answer has ten sentences; the second half waits for SIGUSR1."""
    may_go_on = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: may_go_on.set())

    async def speak(self: LocalBrain, brief: Brief) -> AsyncIterator[str]:
        for number in range(1, 11):
            yield f"Sentence {number} of ten. "
            if number == 5:
                await asyncio.to_thread(may_go_on.wait)

    _put(LocalBrain, speak=speak)


@change
def dies_on_demand() -> None:
    """After SIGUSR1 the process is killed when it has sent fifty more stanzas."""
    signal.signal(signal.SIGUSR1, lambda *_: faults.arm("after_send:50"))


@change
def full() -> None:
    """The disk is full: every commit of a write fails until SIGUSR1 comes."""
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


@change
def full_in_a_turn() -> None:
    """The disk has room for messages, and none for answers until SIGUSR1 comes."""
    commit_write, commit, has_room = Outbox.commit, Sqlite.commit, threading.Event()
    in_turn = threading.local()
    signal.signal(signal.SIGUSR1, lambda *_: has_room.set())

    async def commit_turn(
        self: Outbox,
        conversation_id: str,
        work: Callable[[ConversationWrite], Any],
        fence: Fence | None = None,
        **given: Any,
    ) -> Any:
        def work_in_turn(write: ConversationWrite) -> Any:
            in_turn.is_set = fence is not None
            return work(write)

        return await commit_write(self, conversation_id, work_in_turn, fence, **given)

    def refuse(self: Sqlite, connection: sqlite3.Connection) -> None:
        is_turn, in_turn.is_set = getattr(in_turn, "is_set", False), False
        if not is_turn or has_room.is_set():
            commit(self, connection)
            return
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    _put(Outbox, commit=commit_turn)
    _put(Sqlite, commit=refuse)


# --- deliberate bugs that the checks must detect -----------------------------------------------------------


def _sending_before_commit(*steps: str) -> None:
    commit, send, sent = Outbox.commit, session.Session._send, set[bytes]()
    written: dict[str, list[Frame]] = {}  # earlier frames may wait for the same commit, so they are sent too

    async def send_and_note(self: session.Session, packet: bytes) -> None:
        await send(self, packet)
        sent.add(packet)

    async def commit_after_sending(
        self: Outbox,
        conversation_id: str,
        work: Callable[[ConversationWrite], Any],
        fence: Fence | None = None,
        *,
        step: str,
    ) -> Any:
        loop = asyncio.get_running_loop()

        def hear(said: list[Frame]) -> None:
            for follower in self._followers.get(conversation_id, ()):
                follower.add(said)

        def work_and_send(write: ConversationWrite) -> Any:
            result = work(write)
            first, now, packets = write.conversation.last_server_stanza_id - 1, write.tx.now, write._packets
            said = written.setdefault(conversation_id, [])
            said += [
                Frame(conversation_id, "server", first - i, 0, kind, packet, None, None, None, now)
                for i, (kind, packet) in enumerate(packets)
            ]
            if step in steps and conversation_id in self._followers:
                while not sent.issuperset(packet for _, packet in packets):
                    loop.call_soon_threadsafe(hear, said)  # until the frames were really sent
                    time.sleep(0.01)
            return result

        return await commit(self, conversation_id, work_and_send, fence, step=step)

    _put(Outbox, commit=commit_after_sending)
    _put(session.Session, _send=send_and_note)


@change
def acknowledges_before_it_stores() -> None:
    """The Acknowledgement is sent before the message is committed."""
    _sending_before_commit("accept")


@change
def sends_before_it_stores() -> None:
    """Stanzas of an answer are sent before their rows are committed."""
    _sending_before_commit("begin", "recall", "sentence", "end")


@change
def takes_a_repeated_message_for_a_new_one() -> None:
    """A message that the client repeats is stored and answered again."""
    accept = handlers.accept

    def accept_all(
        write: ConversationWrite, arrival: handlers.Arrival, limits: handlers.ConversationLimits
    ) -> handlers.Consequence:
        envelope, body = arrival.envelope, arrival.envelope.body
        if not isinstance(body, UserMessage) or write.tx.messages.get(body.id) is None:
            return accept(write, arrival, limits)
        fresh = body.model_copy(update={"id": MessageId(write.tx.ids.new("msg_"))})
        record(write.tx, write.conversation, envelope._replace(body=fresh, meta=None))
        write.tx.turns.enqueue(write.conversation.id, fresh.id)
        acknowledged = Acknowledgement(
            conversation_id=write.conversation_id,
            acknowledged_stanza_id=envelope.stanza_id,
            success=True,
        )
        write.say(acknowledged)
        return handlers.Consequence(to_answer=fresh.id)

    _put(session, accept=accept_all)


@change
def speaks_over_what_was_said() -> None:
    """An answer of which a dead process had said a part is answered again."""
    _put(OpenTurn, is_cut=property(lambda _: False))


@change
def does_not_look_at_the_epoch() -> None:
    """A worker goes on writing after its lease has ended."""
    _put(Leases, check_epoch=lambda *_: None)


@change
def lets_go_of_the_lease_at_once() -> None:
    """The lease is released while the turn is still running."""
    acquire = Leases.acquire

    def acquire_and_release(self: Leases, conversation_id: str, holder: str, **given: Any) -> Lease | None:
        lease = acquire(self, conversation_id, holder, **given)
        if lease is not None:
            self.release(lease)
        return lease

    _put(Leases, acquire=acquire_and_release, renew=lambda self, lease, *, seconds: lease)
