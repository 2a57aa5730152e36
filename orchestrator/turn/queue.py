"""Runs one turn per conversation at a time, across processes: the holder of the conversation's lease answers.

The lease is a row with an epoch. Each takeover raises the epoch, and every write of a turn checks it inside
its own transaction, so a worker that slept past its lease can no longer write. A worker takes the oldest open
turn, whether the turn is new or was left by a process that died: recovery needs no code of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias, TypeVar

from agents.safety.verdict import MISTAKE
from orchestrator.errors import (
    BUSY,
    DATABASE_FILE_LOST,
    FENCED,
    NOT_FOUND,
    STORAGE_FULL,
    STORAGE_UNAVAILABLE,
    AnamnesisError,
)
from orchestrator.ops import faults
from orchestrator.ops.logs import get_logger
from orchestrator.safety.assessment import Assessment, SafetyRecord
from orchestrator.safety.context import standing_events
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Conversation, Lease, Message, SafetyEvent, Turn

log = get_logger()

T = TypeVar("T")

DELAYS: Final = (BUSY, STORAGE_FULL, STORAGE_UNAVAILABLE, DATABASE_FILE_LOST)
"""Errors after which nothing can be stored now. The turn stays open and is tried again."""

OnDelay: TypeAlias = Callable[[str, str | None, AnamnesisError], None]
"""Called with the conversation, the delayed message if it is known, and the error of the store."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A message that waits for its answer, with everything that the answer depends on."""

    conversation: Conversation
    turn: Turn
    message: Message
    answers_id: str
    """The message that the answer follows: the person's, or an answer that was stopped."""
    said: str
    """What the answer already says: of an earlier attempt, or of the stopped answer that it continues."""
    message_ids: frozenset[str]
    """The message ids under which this turn may already be in the blocks."""
    meta: Mapping[str, str]
    safety: SafetyRecord
    answered: str = ""
    """What of this answer an earlier attempt has sent."""
    is_sent_whole: bool = False
    """Whether the answer was sent as one AssistantMessage, though the turn is not finished."""

    @property
    def conversation_id(self) -> str:
        """The conversation of the turn."""
        return self.conversation.id

    @property
    def number(self) -> int:
        """Its position among the conversation's turns, from 1."""
        return self.turn.number

    @property
    def begun(self) -> bool:
        """Whether an earlier attempt has sent the StartAnswer."""
        return self.turn.answer_id is not None

    @property
    def is_cut(self) -> bool:
        """Whether a process died within the answer. It is then closed, never answered again.

        An answer that had begun without a sentence is not cut: the next attempt continues it.
        """
        return self.is_sent_whole or bool(self.answered)

    @property
    def streaming(self) -> bool:
        """Whether the answer is sent sentence by sentence: it began so, or the client wants it (default)."""
        features = self.conversation.preferences.get("features")
        began_so = self.begun and not self.is_sent_whole
        return began_so or not isinstance(features, list) or "streaming" in features

    @property
    def reasoning(self) -> bool:
        """Whether the client wants to see why the message was understood as it was."""
        features = self.conversation.preferences.get("features")
        return self.streaming and isinstance(features, list) and "reasoning" in features

    @property
    def client_has_tools(self) -> bool:
        """Whether the client runs the tools that are to be run on its side."""
        features = self.conversation.preferences.get("features")
        return isinstance(features, list) and "tools" in features


@dataclass(slots=True)
class ClaimedTurn:
    """The right to answer one message: the turn, the lease to write under, and whether to stop."""

    turn: OpenTurn
    lease: Lease
    stopped: bool = False
    another_waits: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set when another message of the conversation arrives in this process."""
    _scope: asyncio.Timeout | None = field(default=None, repr=False)

    async def unless_another_waits(self, work: Coroutine[None, None, T]) -> T | None:
        """The result of work that is not worth a wait; None if it fails or another message arrives before."""
        task, waiting = asyncio.create_task(work), asyncio.create_task(self.another_waits.wait())
        try:
            await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            waiting.cancel()
            (result, _) = await asyncio.gather(task, waiting, return_exceptions=True)
        if isinstance(result, BaseException):
            log.info("reading_given_up", error=type(result).__name__)
            return None
        return result

    def stop(self) -> None:
        """End the answer as soon as possible and keep what was said."""
        self.stopped = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def stoppable(self, scope: asyncio.Timeout) -> Iterator[None]:
        """Let `stop` cancel the body of `scope`."""
        self._scope = scope
        if self.stopped:
            self.stop()
        try:
            yield
        finally:
            self._scope = None


class TurnQueue:
    """Runs the open turns of each conversation, one after the other."""

    def __init__(
        self,
        store: Store,
        take_turn: Callable[[ClaimedTurn], Awaitable[None]],
        *,
        holder: str,
        lease_seconds: float,
        deadline_seconds: float,
        is_gone: Callable[[str], bool] = lambda holder: False,
        on_delay: OnDelay = lambda conversation_id, message_id, error: None,
    ) -> None:
        """`is_gone` says whether the process that holds a lease has ended.

        `on_delay` is called when the store refused a turn, which stays open and is tried again.
        """
        self._store = store
        self._take_turn = take_turn
        self._holder = holder
        self._lease_seconds, self._deadline_seconds = lease_seconds, deadline_seconds
        self._is_gone, self._on_delay = is_gone, on_delay
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._nudged_again: set[str] = set()
        self._running: dict[str, ClaimedTurn] = {}
        self._closing = False

    def nudge(self, conversation_id: str) -> None:
        """Start a worker for the conversation, which may have an open turn."""
        if self._closing:
            return
        if conversation_id in self._workers:
            self._nudged_again.add(conversation_id)
            if conversation_id in self._running:
                self._running[conversation_id].another_waits.set()
            return
        worker = asyncio.create_task(self._work(conversation_id), name=f"turns of {conversation_id}")
        self._workers[conversation_id] = worker
        worker.add_done_callback(lambda done: self._worker_ended(conversation_id, done))

    def stop(self, conversation_id: str, number: int) -> None:
        """Stop the turn if it runs in this process. Another process reads the request from the turn's row."""
        claimed = self._running.get(conversation_id)
        if claimed is not None and claimed.turn.number == number:
            claimed.stop()

    @property
    def is_running(self) -> bool:
        """Whether any turn runs in this process."""
        return bool(self._running)

    async def sweep(self) -> None:
        """Runs until cancelled: starts workers for open turns, such as those of a process that died."""
        while True:
            try:
                for conversation_id in await self._store.read(lambda tx: tx.turns.conversations_with_open()):
                    if conversation_id not in self._workers:
                        self.nudge(conversation_id)
            except AnamnesisError as error:
                log.warning("sweep_failed", error=error.problem.name)
            await asyncio.sleep(self._lease_seconds / 2)

    async def close(self, grace_seconds: float) -> None:
        """Wait for running turns; cancel those that take longer, so that each ends as interrupted."""
        self._closing = True
        workers = list(self._workers.values())
        if workers:
            _, late = await asyncio.wait(workers, timeout=grace_seconds)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _worker_ended(self, conversation_id: str, worker: asyncio.Task[None]) -> None:
        del self._workers[conversation_id]
        if not worker.cancelled() and (error := worker.exception()):
            log.error("turn_worker_failed", conversation_id=conversation_id, exc_info=error)
        if conversation_id in self._nudged_again:
            self._nudged_again.discard(conversation_id)
            self.nudge(conversation_id)

    async def _work(self, conversation_id: str) -> None:
        lease: Lease | None = None
        running: OpenTurn | None = None
        delayed: OpenTurn | None = None
        try:
            while not self._closing:
                self._nudged_again.discard(conversation_id)
                claimed = await self._store.write(partial(self._claim, conversation_id, lease))
                if claimed is None:
                    if lease is not None:
                        faults.point("after_release_commit")
                        lease = None
                    return
                faults.point("after_take_commit")
                lease, running = claimed.lease, claimed.turn
                await self._run(claimed)
                running = None
        except AnamnesisError as error:
            if error.problem in DELAYS:
                delayed = running
                self._on_delay(conversation_id, running.message.id if running else None, error)
            raise
        finally:
            if lease is not None:  # the next worker then need not wait until the lease expires
                with suppress(AnamnesisError):
                    await self._store.write(partial(_release, lease, delayed))

    async def _run(self, claimed: ClaimedTurn) -> None:
        conversation_id = claimed.turn.conversation_id
        self._running[conversation_id] = claimed
        renewing = asyncio.create_task(self._renew(claimed), name=f"lease of {conversation_id}")
        try:
            await self._take_turn(claimed)
        finally:
            del self._running[conversation_id]
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    def _claim(self, conversation_id: str, held: Lease | None, tx: Transaction) -> ClaimedTurn | None:
        """Claim the oldest open turn. If there is none, or another process has the lease, return None."""
        lease, turn = held, tx.turns.next_open(conversation_id)
        if turn is not None:
            lease = tx.leases.acquire(
                conversation_id, self._holder, seconds=self._lease_seconds, is_gone=self._is_gone
            )
            if lease is None:
                return None
            turn = tx.turns.next_open(conversation_id)  # the former holder may just have finished it
        if lease is None or turn is None:
            if lease is not None:
                tx.leases.release(lease)
                faults.point("before_release_commit")
            return None
        deadline = tx.now + timedelta(seconds=self._deadline_seconds)
        begun = tx.turns.begin(conversation_id, turn.number, deadline=deadline)
        claimed = ClaimedTurn(_open_turn(tx, begun), lease, stopped=turn.stop_requested)
        faults.point("before_take_commit")
        return claimed

    async def _renew(self, claimed: ClaimedTurn) -> None:
        """Renew the lease while the turn runs, and stop the turn if another process was asked to."""
        turn = claimed.turn

        def renew(tx: Transaction) -> bool:
            tx.leases.renew(claimed.lease, seconds=self._lease_seconds)
            now = tx.turns.get(turn.conversation_id, turn.number)
            return now is not None and now.stop_requested

        while True:
            await asyncio.sleep(self._lease_seconds / 4)
            try:
                if await self._store.write(renew) and not claimed.stopped:
                    claimed.stop()
            except AnamnesisError as error:
                log.warning(
                    "lease_not_renewed", conversation_id=turn.conversation_id, error=error.problem.name
                )
                if error.problem is FENCED:
                    return


def _release(lease: Lease, delayed: OpenTurn | None, tx: Transaction) -> None:
    """Release the lease. A turn that the store refused is put back, so that the attempt does not count."""
    if delayed is not None:
        tx.leases.check_epoch(lease.conversation_id, lease.epoch)
        tx.turns.put_back(delayed.conversation_id, delayed.number)
    tx.leases.release(lease)


def _open_turn(tx: Transaction, turn: Turn) -> OpenTurn:
    conversation = tx.conversations.get(turn.conversation_id)
    message = tx.messages.get(turn.user_message_id)
    if conversation is None or message is None:
        raise AnamnesisError(NOT_FOUND)
    begun, target = tx.messages.get(turn.answer_id or ""), tx.messages.get(turn.target_id or "")
    if target is not None and turn.variation == "regenerate" and target.id != message.id:
        target = tx.messages.get(target.previous_id or "")  # the new answer follows the same message
    follows = message if target is None or turn.variation == "edit" else target
    return OpenTurn(
        conversation=conversation,
        turn=turn,
        message=message,
        answers_id=follows.id,
        said=_text_of_answer(tx, begun or follows),
        message_ids=frozenset({message.id, turn.target_id or message.id}),
        meta={pair.key: pair.value for pair in tx.meta.of(message.id)},
        safety=SafetyRecord(
            turn.number,
            events=tuple(tx.safety.of_message(message.id)),
            before=tx.safety.danger_before(conversation.id, message.id, turn.number),
            last=(last := standing_events(tx, conversation.id, turn.number)),
            unanswered=_unanswered(tx, last),
            is_repeated=turn.variation is not None,
        ),
        answered=begun.contents if begun else "",
        is_sent_whole=begun is not None and begun.completion_status == "completed",
    )


def _unanswered(tx: Transaction, last: Sequence[SafetyEvent]) -> str:
    """The message before, if the answer to it was only the question about a possible danger in it."""
    danger = Assessment.from_events(last).verdict
    raised = next((event for event in last if event.turn is not None), None)
    if raised is None or not danger.is_possible or MISTAKE in danger.rule_ids:
        return ""
    message = tx.messages.get(raised.message_id)
    return message.contents if message else ""


def _text_of_answer(tx: Transaction, message: Message | None) -> str:
    """The text of an answer and of the answers that it continues; nothing for a message of the person."""
    if message is None or message.message_role != "assistant":
        return ""
    return _text_of_answer(tx, tx.messages.get(message.previous_id or "")) + message.contents
