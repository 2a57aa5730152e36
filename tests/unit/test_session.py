"""Sessions and turns when something else goes wrong: the store, the blocks, the timing of two events."""

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

from agents.brains.scripted import ScriptedBrain
from memory_blocks.ledger import Ledger
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Conversation as Person
from memory_blocks.models import Label, SessionStatus, changed
from orchestrator import telemetry
from orchestrator.clock import SystemClock
from orchestrator.errors import BUSY, STORAGE_UNAVAILABLE, AnamnesisError
from orchestrator.house import House
from orchestrator.mirror import record
from orchestrator.outbox import Outbox, Page, _Listener, uninterrupted
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.store.rows import Frame as StoredFrame
from orchestrator.store.rows import Lease
from orchestrator.turnstile import Ticket, Turnstile
from orchestrator.wire.envelope import Envelope, Scalar
from orchestrator.wire.ids import ConversationId, MemoryId, MessageId, TraceId
from orchestrator.wire.messages import AssistantMessage, MemoryTrace
from tests.builders import START
from tests.houses import a_house, history, message, messages, meta, over_websockets, turn
from tests.peers import (
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
from tests.world import keep_receipts

# --- the store fails ----------------------------------------------------------------------------------------


Work = Callable[..., Awaitable[Any]]


def failing(work: Work, *errors: AnamnesisError, at: Callable[..., bool] = lambda *_, **__: True) -> Work:
    """The same, but where `at` says so it fails, once for each error."""
    left = list(errors)

    async def fail_or_work(*args: Any, **more: Any) -> Any:
        if left and at(*args, **more):
            raise left.pop(0)
        return await work(*args, **more)

    return fail_or_work


def is_step(name: str) -> Callable[..., bool]:
    """Whether a commit is of that step."""
    return lambda *_, step, **__: step == name


def is_look(name: str) -> Callable[..., bool]:
    """Whether a read is of that kind."""
    return lambda work: getattr(getattr(work, "func", None), "__name__", "") == name


async def test_a_message_that_could_not_be_stored_is_not_acknowledged_and_may_be_sent_again(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(embedded, bad_frames_per_minute=2).open() as house, conversing(house) as peer:
        busy = [AnamnesisError(BUSY)] * 5
        commit = house._outbox.commit
        monkeypatch.setattr(house._outbox, "commit", failing(commit, *busy, at=is_step("accept")))

        for _ in busy:  # more than a peer may do wrong, but it did nothing wrong
            await peer.send(USER_MESSAGE, stanza=2, id="msg_1", content="hello")
            refused = await peer.next()
            assert (refused.stanza, refused.code, refused.body["originatingId"]) == (0, 204, "msg_1")
        assert await messages(house, peer.conversation_id) == []

        await peer.send(USER_MESSAGE, stanza=2, id="msg_1", content="hello")
        assert (await peer.answer())[0].type == ACKNOWLEDGEMENT


async def test_a_turn_whose_end_could_not_be_stored_is_closed_by_whoever_comes_by_next(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("One. ", "Two. ", "Thr", hold, "ee.")])
    async with a_house(embedded, brain, lease_seconds=0.2).open() as house, conversing(house) as peer:
        message_id = await peer.say()
        await peer.until_type(SENTENCE)
        lost, commit = AnamnesisError(STORAGE_UNAVAILABLE), house._outbox.commit
        monkeypatch.setattr(house._outbox, "commit", failing(commit, lost, at=is_step("end")))
        hold.set()

        error = (await peer.answer())[-1]

        assert (error.code, error.meta) == (501, {"error": "interrupted"})
        assert (await turn(house, message_id)).state == "failed"
        await peer.ask("And now?")


async def test_a_connection_that_cannot_follow_is_closed_and_told_the_rest_when_it_comes_back(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(embedded).open() as house:
        async with conversing(house) as peer:
            told = await peer.ask()
        async with visiting(house) as again:
            unavailable = AnamnesisError(STORAGE_UNAVAILABLE)
            monkeypatch.setattr(
                house.store, "read", failing(house.store.read, unavailable, at=is_look("_after"))
            )
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=0)
            assert await again.gone()
        async with visiting(house) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=0)
            assert [(await again.next()).packet for _ in told] == [frame.packet for frame in told]


async def test_a_house_goes_on_watching_the_others_after_the_store_failed_it_once(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("One. ", "Two. ", "Thr", hold, "ee.")])
    async with a_house(embedded, brain).open() as here, a_house(embedded).open() as there:
        async with conversing(here) as peer:
            await peer.say()
            await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0)
            unavailable = AnamnesisError(STORAGE_UNAVAILABLE)
            read = failing(there.store.read, unavailable, at=is_look("_standing"))
            monkeypatch.setattr(there.store, "read", read)
            hold.set()
            async with conversing(here) as other:
                await other.ask()  # something to notice
                await moved.answer()


# --- the blocks ---------------------------------------------------------------------------------------------


async def test_blocks_that_somebody_changed_meanwhile_are_read_again(embedded: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("Hi.",), (hold, "Since when?")])
    async with a_house(embedded, brain).open() as house, conversing(house) as peer:
        await peer.ask("Hello")
        await peer.say("My knee hurts")
        await peer.until_type(START_ANSWER)
        await house.store.write(lambda tx: _pause(tx, peer.conversation_id))
        hold.set()
        frames = await peer.answer()

        done = [frame.body["action"] for frame in frames if frame.type == TRACE]
        assert done == [*["retrieved"] * 4, "updated", *["retrieved"] * 4, *["updated"] * 4]
        assert len((await history(house, peer.conversation_id)).turns) == 2
        revisions = await house.store.read(
            lambda tx: tx.blocks.revisions(peer.conversation_id, Label.ACTIVE_SESSION)
        )
        assert [each.actor for each in revisions] == ["context_extractor", "staff", "context_extractor"]


def _pause(tx: Transaction, conversation_id: str) -> None:
    """What someone on the staff does to a block, through a ledger of their own."""
    ledger, store = Ledger(SystemClock()), SqlBlockStore(tx.blocks)
    person = Person(conversation_id, "ann", tx.conversations.lock(conversation_id).created_at)
    reading = ledger.read(store, person, actor="staff")
    session = reading.blocks.active_session
    session = changed(session, session_info=changed(session.session_info, status=SessionStatus.PAUSED))
    after = replace(reading.blocks, active_session=session)
    keep_receipts(tx, conversation_id, ledger.write(store, person, reading, after, actor="staff").receipts)


async def test_a_turn_that_the_blocks_cannot_hold_fails_and_what_was_said_stays(embedded: str) -> None:
    limits = replace(DEFAULTS, conversation_history_limit=200, rotation_enabled=False)
    brain = ScriptedBrain(answers=[("One. ", "Two.")])
    async with a_house(embedded, brain, limits=limits).open() as house, conversing(house) as peer:
        frames = await peer.ask("I am having a headache")

        assert (frames[-1].type, frames[-1].code) == (ERROR, 402)
        row = await message(house, frames[1].body["id"])
        assert (row.contents, row.completion_status) == ("One. ", "failed")
        assert await house.store.read(lambda tx: tx.blocks.load(peer.conversation_id)) == {}


async def test_what_is_stored_in_the_background_is_told_when_it_happens(embedded: str) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        frames = await peer.ask()
        answer_id = frames[1].body["id"]

        def remember(page: Page) -> None:
            memory = page.tx.memories.add("Drinks tea", user_id="ann")
            page.say(
                MemoryTrace(
                    id=TraceId("trace_later"),
                    conversation_id=page.conversation_id,
                    previous_id=MessageId(answer_id),
                    memory_id=MemoryId(memory.id),
                    action="stored",
                    content="Drinks tea",
                    metadata={"background": True},
                )
            )

        await Outbox(house.store).commit(peer.conversation_id, remember, step="recall")

        told = await peer.next()
        assert (told.type, told.body["id"], told.body["previousId"]) == (TRACE, "trace_later", answer_id)
        assert "memoryType" not in told.body
        stored = await house.store.read(lambda tx: tx.traces.get("trace_later"))
        assert stored is not None
        assert (stored.message_id, stored.memory_type, stored.meta) == (answer_id, None, {"background": True})


# --- two things at once -------------------------------------------------------------------------------------


def a_frame(stanza_id: int) -> StoredFrame:
    return StoredFrame("conv_1", "server", stanza_id, -stanza_id, 8, b"", None, None, None, START)


@pytest.mark.parametrize(
    ("heard", "taken", "look"),
    [
        ([-4, -5, -6], [-4, -5, -6], False),
        ([-2, -3, -4], [-4], False),
        ([-1, -2, -3], [], False),
        ([-5], [], True),
        ([-4, -6, -5], [-4, -5], True),
        ([-6, -4, -5], [-4, -5], True),
    ],
)
def test_stanzas_are_taken_in_their_order_whatever_the_order_they_are_heard_of_in(
    heard: list[int], taken: list[int], look: bool
) -> None:
    listener = _Listener(look=False)
    for stanza_id in heard:
        listener.hear([a_frame(stanza_id)])

    assert [frame.stanza_id for frame in listener.take(seen=3)] == taken
    assert (listener.look, listener.known) == (look, -min(heard))
    assert listener.take(seen=9) == []


class Scene:
    """A turnstile over no store, with a turn that runs until it is stopped."""

    def __init__(self) -> None:
        async def nothing(_: Ticket) -> None: ...

        store: Any = None
        self.turnstile = Turnstile(store, nothing, holder="proc_1", lease_seconds=15, deadline_seconds=30)

    def running(self, number: int) -> Ticket:
        class Numbered:
            conversation_id = "conv_1"

        numbered: Any = Numbered()
        numbered.number = number
        ticket = Ticket(numbered, Lease("conv_1", "proc_1", 1, datetime.max.replace(tzinfo=START.tzinfo)))
        self.turnstile._tickets["conv_1"] = ticket
        return ticket


def test_a_stop_that_comes_late_does_not_hit_the_next_turn() -> None:
    scene = Scene()
    ticket = scene.running(number=2)

    scene.turnstile.stop("conv_1", 1)
    scene.turnstile.stop("conv_2", 2)
    assert not ticket.stopped

    scene.turnstile.stop("conv_1", 2)
    assert ticket.stopped


async def run(ticket: Ticket, *, stop_again: bool) -> None:
    """A turn that would never end."""
    async with asyncio.timeout(60) as scope:
        with ticket.stoppable(scope):
            try:
                await asyncio.Event().wait()
            finally:
                if stop_again:
                    ticket.stop()


@pytest.mark.parametrize("stop_again", [False, True])
async def test_a_turn_stopped_before_it_began_ends_at_its_first_wait(stop_again: bool) -> None:
    ticket = Scene().running(number=1)
    ticket.stop()

    with pytest.raises(TimeoutError):
        await run(ticket, stop_again=stop_again)
    ticket.stop()  # which is too late to do anything


async def test_a_turn_may_be_stopped_again_while_it_is_ending() -> None:
    ticket = Scene().running(number=1)
    running = asyncio.create_task(run(ticket, stop_again=True))
    await asyncio.sleep(0)

    ticket.stop()
    ticket.stop()

    with pytest.raises(TimeoutError):
        await running


async def test_what_must_not_be_interrupted_is_finished_first(caplog: pytest.LogCaptureFixture) -> None:
    begun, go, done = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        begun.set()
        await go.wait()
        done.append("all of it")
        raise ValueError("nobody is left to hear this")

    task = asyncio.create_task(uninterrupted(work()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["all of it"]
    assert caplog.records == []


# --- seen from outside --------------------------------------------------------------------------------------


@pytest.mark.requirement("003-137", "003-165")
@pytest.mark.parametrize("features", [["streaming"], []], ids=["sentences", "whole"])
async def test_a_turns_spans_continue_the_trace_of_its_message_and_the_answer_names_them(
    embedded: str, spans: InMemorySpanExporter, features: list[str]
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    named = {"messaging.trace_id": trace_id, "messaging.span_id": "b7ad6b7169203331"}
    async with a_house(embedded).open() as house, conversing(house, features=features) as peer:
        await peer.say(meta=named)
        frames = await peer.answer()
        begun = frames[1 if features else -1]

        assert begun.meta["messaging.trace_id"] == trace_id
        assert await meta(house, begun.body["id"]) == begun.meta
    finished = {span.name: span for span in spans.get_finished_spans()}  # a turn ends after its last frame
    assert {"turn", "read", "extract", "recall", "classify", "answer"} <= set(finished)
    assert {format(span.context.trace_id, "032x") for span in finished.values()} == {trace_id}
    assert begun.meta["messaging.span_id"] in {
        format(span.context.span_id, "016x") for span in finished.values()
    }


@pytest.mark.requirement("003-139", "003-032")
def test_what_an_answer_tells_of_itself_are_rows_about_it(loose_store: Store) -> None:
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

    async def ask_alone(house: House) -> str:
        async with conversing(house) as peer:
            await peer.ask("hello")
            return peer.conversation_id

    brain = ScriptedBrain(answers=map(answer, reached))
    async with a_house(embedded, brain).open() as house, asyncio.TaskGroup() as beside:
        waiting = [beside.create_task(ask_alone(house)) for _ in reached]
        for here in reached:
            await here.wait()
        go_on.set()

    assert len({task.result() for task in waiting}) == 3


# --- what is said of connections ----------------------------------------------------------------------------


def connections_open(way: str) -> int:
    text, _ = telemetry.exposition()
    [count] = re.findall(rf'anamnesis_connections_open{{transport="{way}"}} (\d+)', text.decode())
    return int(count)


async def test_connections_are_counted_by_the_way_they_came(embedded: str, tmp_path: Path) -> None:
    async with a_house(embedded).open() as house, over_websockets(house, tmp_path) as opening:
        async with conversing(house), opening() as socket:
            await Peer(WebSocketLine(socket)).open()

            assert (connections_open("in_process"), connections_open("websocket")) == (1, 1)
        async with asyncio.timeout(30):
            while connections_open("in_process") or connections_open("websocket"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_refused_frame_is_logged_with_its_conversation(
    embedded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.request(99)

    [refused] = [line for line in capsys.readouterr().err.splitlines() if "frame_refused" in line]
    assert json.loads(refused)["conversation_id"] == peer.conversation_id


async def test_a_connection_that_is_taken_over_is_no_refused_frame(embedded: str) -> None:
    before = refused_frames()
    async with a_house(embedded).open() as house, conversing(house) as first, visiting(house) as second:
        await second.open(first.conversation_id)

        assert (await first.next()).code == 202
        assert await first.gone()
    assert refused_frames() == before


def refused_frames() -> list[str]:
    text, _ = telemetry.exposition()
    return re.findall(r'anamnesis_frames_refused_total{error="session_replaced"} .*', text.decode())
