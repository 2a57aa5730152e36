"""One turn per conversation at a time, across processes: whoever holds the conversation's lease may answer.

The lease is a row with an epoch. Each takeover raises the epoch, and every write of a turn checks it inside
its own transaction, so a worker that slept past its lease can write nothing any more. A worker takes the
oldest open turn, whether it is new or was left by a process that died: recovery is the same road.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from orchestrator import faults
from orchestrator.errors import FENCED, NOT_FOUND, AnamnesisError
from orchestrator.logs import get_logger
from orchestrator.store.database import Store, Transaction
from orchestrator.store.rows import Conversation, Lease, Message, SafetyEvent, Turn

log = get_logger()


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A message that waits for its answer, with all that answering needs to know of it.

    `answers_id` is what the answer follows: the message, or an answer that was cut short. `said` is what was
    said before it came to this attempt. `message_ids` are those under which the turn may stand in the blocks.
    `heard` is what the guard noted when the message came, `heard_before` in messages before it.
    `heard_last` is what it noted of the message before this one.
    `told` says that the answer was told as a whole, though the turn is not over.
    """

    conversation: Conversation
    turn: Turn
    message: Message
    answers_id: str
    said: str
    message_ids: frozenset[str]
    meta: Mapping[str, str]
    heard: tuple[SafetyEvent, ...] = ()
    heard_before: tuple[SafetyEvent, ...] = ()
    heard_last: tuple[SafetyEvent, ...] = ()
    told: bool = False

    @property
    def conversation_id(self) -> str:
        """Where it was said."""
        return self.conversation.id

    @property
    def number(self) -> int:
        """Its place among the conversation's turns."""
        return self.turn.number

    @property
    def begun(self) -> bool:
        """Whether an answer had begun when a process died: it is then closed, never spoken over."""
        return self.turn.answer_id is not None

    @property
    def streaming(self) -> bool:
        """Whether the client wants the answer sentence by sentence, as all do who do not say otherwise."""
        features = self.conversation.preferences.get("features")
        return not isinstance(features, list) or "streaming" in features

    @property
    def reasoning(self) -> bool:
        """Whether the client wants to see why the message was understood as it was."""
        features = self.conversation.preferences.get("features")
        return self.streaming and isinstance(features, list) and "reasoning" in features

    @property
    def client_has_tools(self) -> bool:
        """Whether the client does what tools ask for on its side."""
        features = self.conversation.preferences.get("features")
        return isinstance(features, list) and "tools" in features


@dataclass(slots=True)
class Ticket:
    """The right to answer one message: the turn, the epoch it may be written under, and whether to stop."""

    turn: OpenTurn
    lease: Lease
    stopped: bool = False
    _scope: asyncio.Timeout | None = field(default=None, repr=False)

    def stop(self) -> None:
        """End the answer as soon as possible, keeping what was said."""
        self.stopped = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def stoppable(self, scope: asyncio.Timeout) -> Iterator[None]:
        """While this lasts, `stop` cuts `scope` short."""
        self._scope = scope
        if self.stopped:
            self.stop()
        try:
            yield
        finally:
            self._scope = None


class Turnstile:
    """Lets the open turns of each conversation through, one after the other."""

    def __init__(
        self,
        store: Store,
        take_turn: Callable[[Ticket], Awaitable[None]],
        *,
        holder: str,
        lease_seconds: float,
        deadline_seconds: float,
        is_gone: Callable[[str], bool] = lambda holder: False,
    ) -> None:
        self._store = store
        self._is_gone = is_gone
        self._deadline_seconds = deadline_seconds
        self._take_turn = take_turn
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._tickets: dict[str, Ticket] = {}
        self._closing = False

    def nudge(self, conversation_id: str) -> None:
        """There may be something to answer in this conversation."""
        if self._closing:
            return
        if conversation_id in self._workers:
            self._again.add(conversation_id)
            return
        worker = asyncio.create_task(self._work(conversation_id), name=f"turns of {conversation_id}")
        self._workers[conversation_id] = worker
        worker.add_done_callback(lambda done: self._ended(conversation_id, done))

    def stop(self, conversation_id: str, number: int) -> None:
        """Stop the answer to that turn if it runs here; elsewhere, or later, the turn's row tells."""
        ticket = self._tickets.get(conversation_id)
        if ticket is not None and ticket.turn.number == number:
            ticket.stop()

    @property
    def is_running(self) -> bool:
        """Whether any turn runs here."""
        return bool(self._tickets)

    async def sweep(self) -> None:
        """For ever: look for turns that nobody works on, such as those of a process that died."""
        while True:
            try:
                for conversation_id in await self._store.read(lambda tx: tx.turns.conversations_with_open()):
                    self.nudge(conversation_id)
            except AnamnesisError as error:
                log.warning("sweep_failed", error=error.problem.name)
            await asyncio.sleep(self._lease_seconds / 2)

    async def close(self, grace_seconds: float) -> None:
        """Let running turns end within the grace; then cut them off, so that each ends as interrupted."""
        self._closing = True
        workers = list(self._workers.values())
        if workers:
            _, late = await asyncio.wait(workers, timeout=grace_seconds)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, conversation_id: str, worker: asyncio.Task[None]) -> None:
        del self._workers[conversation_id]
        if not worker.cancelled() and (error := worker.exception()):
            log.error("turn_worker_failed", conversation_id=conversation_id, exc_info=error)
        if conversation_id in self._again:
            self._again.discard(conversation_id)
            self.nudge(conversation_id)

    async def _work(self, conversation_id: str) -> None:
        lease: Lease | None = None
        try:
            while not self._closing:
                self._again.discard(conversation_id)
                ticket = await self._store.write(partial(self._take, conversation_id, lease))
                if ticket is None:
                    if lease is not None:
                        faults.point("after_release_commit")
                        lease = None
                    return
                faults.point("after_take_commit")
                lease = ticket.lease
                await self._let_through(ticket)
        finally:
            if lease is not None:  # cut off: whoever comes next need not wait until it expires
                with suppress(AnamnesisError):
                    await self._store.write(partial(_give_back, lease))

    async def _let_through(self, ticket: Ticket) -> None:
        conversation_id = ticket.turn.conversation_id
        self._tickets[conversation_id] = ticket
        renewing = asyncio.create_task(self._renew(ticket), name=f"lease of {conversation_id}")
        try:
            await self._take_turn(ticket)
        finally:
            del self._tickets[conversation_id]
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    def _take(self, conversation_id: str, held: Lease | None, tx: Transaction) -> Ticket | None:
        """The oldest open turn, with the lease on it; when there is none, the lease is given back."""
        lease, turn = held, tx.turns.next_open(conversation_id)
        if turn is not None:
            lease = tx.leases.acquire(
                conversation_id, self._holder, seconds=self._lease_seconds, is_gone=self._is_gone
            )
            if lease is None:
                return None
            turn = tx.turns.next_open(conversation_id)  # whoever had the lease before may just have ended it
        if lease is None or turn is None:
            if lease is not None:
                tx.leases.release(lease)
                faults.point("before_release_commit")
            return None
        deadline = tx.now + timedelta(seconds=self._deadline_seconds)
        begun = tx.turns.begin(conversation_id, turn.number, deadline=deadline)
        ticket = Ticket(_open_turn(tx, begun), lease, stopped=turn.stop_requested)
        faults.point("before_take_commit")
        return ticket

    async def _renew(self, ticket: Ticket) -> None:
        """Keep the lease while the turn runs, and learn whether another process was asked to stop it."""
        turn = ticket.turn

        def renew(tx: Transaction) -> bool:
            tx.leases.renew(ticket.lease, seconds=self._lease_seconds)
            now = tx.turns.get(turn.conversation_id, turn.number)
            return now is not None and now.stop_requested

        while True:
            await asyncio.sleep(self._lease_seconds / 4)
            try:
                if await self._store.write(renew) and not ticket.stopped:
                    ticket.stop()
            except AnamnesisError as error:
                log.warning(
                    "lease_not_renewed", conversation_id=turn.conversation_id, error=error.problem.name
                )
                if error.problem is FENCED:
                    return


def _give_back(lease: Lease, tx: Transaction) -> None:
    tx.leases.release(lease)


def _open_turn(tx: Transaction, turn: Turn) -> OpenTurn:
    conversation = tx.conversations.get(turn.conversation_id)
    message = tx.messages.get(turn.user_message_id)
    if conversation is None or message is None:
        raise AnamnesisError(NOT_FOUND)
    begun, target = tx.messages.get(turn.answer_id or ""), tx.messages.get(turn.target_id or "")
    if target is not None and turn.variation == "regenerate" and target.id != message.id:
        target = tx.messages.get(target.previous_id or "")  # a sibling follows what the other one followed
    follows = message if target is None or turn.variation == "edit" else target
    return OpenTurn(
        conversation=conversation,
        turn=turn,
        message=message,
        answers_id=follows.id,
        said=_spoken(tx, begun or follows),
        message_ids=frozenset({message.id, turn.target_id or message.id}),
        meta={pair.key: pair.value for pair in tx.meta.of(message.id)},
        heard=tuple(tx.safety.of_message(message.id)),
        heard_before=tx.safety.heard_before(conversation.id, message.id, turn.number),
        heard_last=tx.safety.heard_last(conversation.id, turn.number),
        told=begun is not None and begun.completion_status == "completed",
    )


def _spoken(tx: Transaction, message: Message | None) -> str:
    """What an answer says, after what it goes on with; nothing, if it is a message of the person."""
    if message is None or message.message_role != "assistant":
        return ""
    return _spoken(tx, tx.messages.get(message.previous_id or "")) + message.contents
