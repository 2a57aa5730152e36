"""Sessions and turns when the store fails, the blocks change, or two things happen at once."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agents.models.scripted import ScriptedBrain
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Conversation as Person
from memory_blocks.models import Label, SessionStatus, changed
from orchestrator.errors import BUSY, STORAGE_UNAVAILABLE, AnamnesisError
from orchestrator.ops import telemetry
from orchestrator.ops.clock import SystemClock
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.frame_records import record
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Frame as StoredFrame
from orchestrator.store.rows import Lease
from orchestrator.turn.outbox import ConversationWrite, Outbox, _Follower, uninterrupted
from orchestrator.turn.queue import ClaimedTurn, TurnQueue
from orchestrator.wire.envelope import Envelope, Scalar
from orchestrator.wire.ids import ConversationId, MemoryId, MessageId, TraceId
from orchestrator.wire.messages import AssistantMessage, MemoryTrace
from tests.support.builders import START
from tests.support.orchestrators import (
    an_orchestrator,
    history,
    message,
    messages,
    meta,
    over_websockets,
    turn,
)
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    ERROR,
    SENTENCE,
    START_ANSWER,
    TRACE,
    USER_MESSAGE,
    Peer,
    WebSocketLine,
    conversing,
    visiting,
)
from tests.support.stored_turns import keep_receipts

# --- the store fails ----------------------------------------------------------------------------------------


Work = Callable[..., Awaitable[Any]]


def failing(work: Work, *errors: AnamnesisError, at: Callable[..., bool] = lambda *_, **__: True) -> Work:
    """The same function, but calls for which `at` is true fail, once for each error."""
    left = list(errors)

    async def fail_or_work(*args: Any, **more: Any) -> Any:
        if left and at(*args, **more):
            raise left.pop(0)
        return await work(*args, **more)

    return fail_or_work


def is_step(name: str) -> Callable[..., bool]:
    """Selects the commits of a step."""
    return lambda *_, step, **__: step == name


def is_read(name: str) -> Callable[..., bool]:
    """Selects the reads of a function."""
    return lambda work: getattr(getattr(work, "func", None), "__name__", "") == name


async def test_a_message_that_could_not_be_stored_is_not_acknowledged_and_may_be_sent_again(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        an_orchestrator(embedded, bad_frames_per_minute=2).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        busy = [AnamnesisError(BUSY)] * 5
        commit = orchestrator._outbox.commit
        monkeypatch.setattr(orchestrator._outbox, "commit", failing(commit, *busy, at=is_step("accept")))

        for _ in busy:  # more than the limit of bad frames, which these are not
            await peer.send(USER_MESSAGE, stanza=2, id="msg_1", content="hello")
            refused = await peer.next()
            assert (refused.stanza, refused.code, refused.body["originatingId"]) == (0, 204, "msg_1")
        assert await messages(orchestrator, peer.conversation_id) == []

        await peer.send(USER_MESSAGE, stanza=2, id="msg_1", content="hello")
        assert (await peer.answer())[0].type == ACKNOWLEDGEMENT


async def test_a_turn_whose_end_could_not_be_stored_is_closed_by_the_next_worker(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("One. ", "Two. ", "Thr", hold, "ee.")])
    async with (
        an_orchestrator(embedded, brain, lease_seconds=0.2).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say()
        await peer.until_type(SENTENCE)
        lost, commit = AnamnesisError(STORAGE_UNAVAILABLE), orchestrator._outbox.commit
        monkeypatch.setattr(orchestrator._outbox, "commit", failing(commit, lost, at=is_step("end")))
        hold.set()

        error = (await peer.answer())[-1]

        assert (error.code, error.meta) == (501, {"error": "interrupted"})
        assert (await turn(orchestrator, message_id)).state == "failed"
        await peer.ask("And now?")


async def test_a_connection_that_cannot_follow_is_closed_and_gets_the_rest_when_it_reconnects(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            frames = await peer.ask()
        async with visiting(orchestrator) as again:
            unavailable = AnamnesisError(STORAGE_UNAVAILABLE)
            monkeypatch.setattr(
                orchestrator.store,
                "read",
                failing(orchestrator.store.read, unavailable, at=is_read("_after")),
            )
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=0)
            assert await again.gone()
        async with visiting(orchestrator) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=0)
            assert [(await again.next()).packet for _ in frames] == [frame.packet for frame in frames]


async def test_an_orchestrator_continues_to_follow_other_processes_after_a_failed_read(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("One. ", "Two. ", "Thr", hold, "ee.")])
    async with an_orchestrator(embedded, brain).open() as here, an_orchestrator(embedded).open() as there:
        async with conversing(here) as peer:
            await peer.say()
            await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0)
            unavailable = AnamnesisError(STORAGE_UNAVAILABLE)
            read = failing(there.store.read, unavailable, at=is_read("_standing"))
            monkeypatch.setattr(there.store, "read", read)
            hold.set()
            async with conversing(here) as other:
                await other.ask()  # a change of the store
                await moved.answer()


# --- the blocks ---------------------------------------------------------------------------------------------


async def test_blocks_that_were_changed_during_a_turn_are_read_again(embedded: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("Hi.",), (hold, "Since when?")])
    async with an_orchestrator(embedded, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("Hello")
        await peer.say("My knee hurts")
        await peer.until_type(START_ANSWER)
        await orchestrator.store.write(lambda tx: _pause(tx, peer.conversation_id))
        hold.set()
        frames = await peer.answer()

        done = [frame.body["action"] for frame in frames if frame.type == TRACE]
        assert done == [*["retrieved"] * 4, "updated", *["retrieved"] * 4, *["updated"] * 4]
        assert len((await history(orchestrator, peer.conversation_id)).turns) == 2
        revisions = await orchestrator.store.read(
            lambda tx: tx.blocks.revisions(peer.conversation_id, Label.ACTIVE_SESSION)
        )
        assert [each.actor for each in revisions] == ["context_extractor", "staff", "context_extractor"]


def _pause(tx: Transaction, conversation_id: str) -> None:
    """Change a block as staff do, through another ledger."""
    ledger, store = Ledger(SystemClock()), SqlBlockStore(tx.blocks)
    person = Person(conversation_id, "ann", tx.conversations.lock(conversation_id).created_at)
    reading = ledger.read(store, person, actor="staff")
    session = reading.blocks.active_session
    session = changed(session, session_info=changed(session.session_info, status=SessionStatus.PAUSED))
    after = replace(reading.blocks, active_session=session)
    keep_receipts(tx, conversation_id, ledger.write(store, person, reading, after, actor="staff").receipts)


async def test_a_turn_that_does_not_fit_into_the_blocks_fails_and_its_sentences_stay(embedded: str) -> None:
    limits = replace(DEFAULTS, conversation_history_limit=200, rotation_enabled=False)
    brain = ScriptedBrain(answers=[("One. ", "Two.")])
    async with (
        an_orchestrator(embedded, brain, limits=limits).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask("I am having a headache")

        assert (frames[-1].type, frames[-1].code) == (ERROR, 402)
        row = await message(orchestrator, frames[1].body["id"])
        assert (row.contents, row.completion_status) == ("One. ", "failed")
        assert await orchestrator.store.read(lambda tx: tx.blocks.load(peer.conversation_id)) == {}


async def test_a_memory_that_is_stored_in_the_background_is_traced_at_once(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask()
        answer_id = frames[1].body["id"]

        def remember(write: ConversationWrite) -> None:
            memory = write.tx.memories.add(NewMemory(content="Drinks tea", user_id="ann"))
            write.say(
                MemoryTrace(
                    id=TraceId("trace_later"),
                    conversation_id=write.conversation_id,
                    previous_id=MessageId(answer_id),
                    memory_id=MemoryId(memory.id),
                    action="stored",
                    content="Drinks tea",
                    metadata={"background": True},
                )
            )

        await Outbox(orchestrator.store).commit(peer.conversation_id, remember, step="recall")

        trace = await peer.next()
        assert (trace.type, trace.body["id"], trace.body["previousId"]) == (TRACE, "trace_later", answer_id)
        assert "memoryType" not in trace.body
        stored = await orchestrator.store.read(lambda tx: tx.traces.get("trace_later"))
        assert stored is not None
        assert (stored.message_id, stored.memory_type, stored.meta) == (answer_id, None, {"background": True})


# --- two things at once -------------------------------------------------------------------------------------


def a_frame(stanza_id: int) -> StoredFrame:
    return StoredFrame("conv_1", "server", stanza_id, -stanza_id, 8, b"", None, None, None, START)


@pytest.mark.parametrize(
    ("arriving", "taken", "must_read_store"),
    [
        ([-4, -5, -6], [-4, -5, -6], False),
        ([-2, -3, -4], [-4], False),
        ([-1, -2, -3], [], False),
        ([-5], [], True),
        ([-4, -6, -5], [-4, -5], True),
        ([-6, -4, -5], [-4, -5], True),
    ],
)
def test_stanzas_are_taken_in_their_order_even_if_they_arrive_in_another(
    arriving: list[int], taken: list[int], must_read_store: bool
) -> None:
    follower = _Follower(must_read_store=False)
    for stanza_id in arriving:
        follower.add([a_frame(stanza_id)])

    assert [frame.stanza_id for frame in follower.take(seen=3)] == taken
    assert (follower.must_read_store, follower.known) == (must_read_store, -min(arriving))
    assert follower.take(seen=9) == []


class QueueWithoutStore:
    """A queue without a store, with a turn that runs until it is stopped."""

    def __init__(self) -> None:
        async def nothing(_: ClaimedTurn) -> None: ...

        store: Any = None
        self.queue = TurnQueue(store, nothing, holder="proc_1", lease_seconds=15, deadline_seconds=30)

    def running(self, number: int) -> ClaimedTurn:
        class Numbered:
            conversation_id = "conv_1"

        numbered: Any = Numbered()
        numbered.number = number
        claimed = ClaimedTurn(
            numbered, Lease("conv_1", "proc_1", 1, datetime.max.replace(tzinfo=START.tzinfo))
        )
        self.queue._running["conv_1"] = claimed
        return claimed


def test_a_late_stop_does_not_stop_the_next_turn() -> None:
    queue = QueueWithoutStore()
    claimed = queue.running(number=2)

    queue.queue.stop("conv_1", 1)
    queue.queue.stop("conv_2", 2)
    assert not claimed.stopped

    queue.queue.stop("conv_1", 2)
    assert claimed.stopped


async def run(claimed: ClaimedTurn, *, stop_again: bool) -> None:
    """A turn that does not end by itself."""
    async with asyncio.timeout(60) as scope:
        with claimed.stoppable(scope):
            try:
                await asyncio.Event().wait()
            finally:
                if stop_again:
                    claimed.stop()


@pytest.mark.parametrize("stop_again", [False, True])
async def test_a_turn_that_was_stopped_before_it_began_ends_at_its_first_await(stop_again: bool) -> None:
    claimed = QueueWithoutStore().running(number=1)
    claimed.stop()

    with pytest.raises(TimeoutError):
        await run(claimed, stop_again=stop_again)
    claimed.stop()  # too late: nothing happens


async def test_a_turn_may_be_stopped_again_while_it_ends() -> None:
    claimed = QueueWithoutStore().running(number=1)
    running = asyncio.create_task(run(claimed, stop_again=True))
    await asyncio.sleep(0)

    claimed.stop()
    claimed.stop()

    with pytest.raises(TimeoutError):
        await running


async def test_uninterrupted_work_is_finished_before_the_cancellation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, go, done = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        begun.set()
        await go.wait()
        done.append("all of it")
        raise ValueError("nobody waits for this")

    task = asyncio.create_task(uninterrupted(work()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["all of it"]
    assert caplog.records == []


# --- telemetry and meta -------------------------------------------------------------------------------------


@pytest.mark.requirement("003-137", "003-165")
@pytest.mark.parametrize("features", [["streaming"], []], ids=["sentences", "whole"])
async def test_a_turns_spans_continue_the_trace_of_its_message_and_the_answer_names_them(
    embedded: str, spans: InMemorySpanExporter, features: list[str]
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    named = {"messaging.trace_id": trace_id, "messaging.span_id": "b7ad6b7169203331"}
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        await peer.say(meta=named)
        frames = await peer.answer()
        begun = frames[1 if features else -1]

        assert begun.meta["messaging.trace_id"] == trace_id
        assert await meta(orchestrator, begun.body["id"]) == begun.meta
    finished = {span.name: span for span in spans.get_finished_spans()}  # a turn ends after its last frame
    assert {"turn", "read", "understand", "recall", "answer"} <= set(finished)
    assert {format(span.context.trace_id, "032x") for span in finished.values()} == {trace_id}
    assert begun.meta["messaging.span_id"] in {
        format(span.context.span_id, "016x") for span in finished.values()
    }


@pytest.mark.requirement("003-139", "003-032")
def test_the_meta_of_an_answer_is_stored_as_rows(loose_store: Store) -> None:
    def tell(tx: Transaction) -> dict[str, str]:
        conversation = tx.conversations.create("ann")
        question = tx.messages.append(conversation.id, "user", "hello")
        body = AssistantMessage(
            id=MessageId("msg_answer"),
            conversation_id=ConversationId(conversation.id),
            previous_id=MessageId(question.id),
            content="Since when?",
        )
        about: dict[str, Scalar] = {"model": "local", "responseTime": 0.25}
        record(tx, conversation, Envelope(-1, body.conversation_id, body, about))
        return {pair.key: pair.value for pair in tx.meta.of("msg_answer")}

    assert loose_store.write_now(tell) == {"model": "local", "responseTime": "0.25"}


async def test_a_person_may_hold_several_conversations_at_once(embedded: str) -> None:
    reached, go_on = [asyncio.Event() for _ in range(3)], asyncio.Event()

    def answer(here: asyncio.Event) -> Iterator[str | asyncio.Event]:
        here.set()
        yield go_on
        yield "Since when?"

    async def ask_alone(orchestrator: Orchestrator) -> str:
        async with conversing(orchestrator) as peer:
            await peer.ask("hello")
            return peer.conversation_id

    brain = ScriptedBrain(answers=map(answer, reached))
    async with an_orchestrator(embedded, brain).open() as orchestrator, asyncio.TaskGroup() as beside:
        waiting = [beside.create_task(ask_alone(orchestrator)) for _ in reached]
        for here in reached:
            await here.wait()
        go_on.set()

    assert len({task.result() for task in waiting}) == 3


# --- connections --------------------------------------------------------------------------------------------


def connections_open(way: str) -> int:
    text, _ = telemetry.exposition()
    [count] = re.findall(rf'anamnesis_connections_open{{transport="{way}"}} (\d+)', text.decode())
    return int(count)


async def test_connections_are_counted_by_transport(embedded: str, tmp_path: Path) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_websockets(orchestrator, tmp_path) as opening,
    ):
        async with conversing(orchestrator), opening() as socket:
            await Peer(WebSocketLine(socket)).open()

            assert (connections_open("in_process"), connections_open("websocket")) == (1, 1)
        async with asyncio.timeout(30):
            while connections_open("in_process") or connections_open("websocket"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_refused_frame_is_logged_with_its_conversation(
    embedded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.request(99)

    [refused] = [line for line in capsys.readouterr().err.splitlines() if "frame_refused" in line]
    assert json.loads(refused)["conversation_id"] == peer.conversation_id


async def test_a_takeover_is_not_counted_as_a_refused_frame(embedded: str) -> None:
    before = refused_frames()
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        conversing(orchestrator) as first,
        visiting(orchestrator) as second,
    ):
        await second.open(first.conversation_id)

        assert (await first.next()).code == 202
        assert await first.gone()
    assert refused_frames() == before


def refused_frames() -> list[str]:
    text, _ = telemetry.exposition()
    return re.findall(r'anamnesis_frames_refused_total{error="session_replaced"} .*', text.decode())
