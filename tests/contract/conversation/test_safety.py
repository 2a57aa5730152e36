"""A person in danger gets the safety sentence first, even if the database, the brain or memory fails."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal, TypeVar

import pytest

from agents.embedders.scripted import WordEmbedder
from agents.errors import BrainFailed
from agents.models.scripted import GENERAL, ScriptedBrain
from agents.ports import Situation, Vectors
from agents.safety.classifier import Likeness
from agents.safety.language import Languages
from agents.safety.replies import wording
from agents.safety.rules.guard import Reason
from agents.safety.verdict import Verdict
from agents.values import Enrichment, Intent, Understanding
from memory_blocks.mirrors.no_mirror import NoMirror
from memory_blocks.ports import ForeignChange
from orchestrator.cli.chat import show
from orchestrator.client.client import Client
from orchestrator.errors import (
    BUSY,
    FENCED,
    INTERNAL,
    OVERLOADED,
    STORAGE_FULL,
    STORAGE_UNAVAILABLE,
    AnamnesisError,
    Problem,
)
from orchestrator.orchestrator import Orchestrator
from orchestrator.safety.monitor import LearnedChecks
from orchestrator.settings import shipped_config
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import SafetyEvent
from orchestrator.transports.in_process import pair
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import MessageId, RandomIds
from orchestrator.wire.messages import AssistantSentence, Body
from tests.support.brains.models import the_moves
from tests.support.orchestrators import (
    a_monitor,
    an_orchestrator,
    everything,
    history,
    local_brain,
    message,
    meta,
    turn,
)
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    ASSISTANT_MESSAGE,
    COMMENTARY,
    ERROR,
    REASONING,
    SENTENCE,
    START_ANSWER,
    SYNC,
    TRACE,
    USER_MESSAGE,
    VARIATION,
    Frame,
    Peer,
    conversing,
    new_id,
)
from tests.support.stores import on_both_databases

CHEST = "I have crushing chest pain and my left arm is numb"
PILLS = "I have pills and I'm going to take them all tonight"
CALM = "I have a runny nose"

T = TypeVar("T")


def of_type(type: int, frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.type == type]


def contents(frames: list[Frame]) -> list[int]:
    """The types of the frames that make up an answer."""
    return [frame.type for frame in frames if frame.type != ACKNOWLEDGEMENT]


async def events(orchestrator: Orchestrator, peer: Peer) -> list[SafetyEvent]:
    return await orchestrator.store.read(lambda tx: tx.safety.of_conversation(peer.conversation_id))


def assert_safety_first(frames: list[Frame], kind: str, tier: int) -> None:
    begun, first = [frame for frame in frames if frame.type != ACKNOWLEDGEMENT][:2]
    assert (begun.type, first.type) == (START_ANSWER, SENTENCE)
    assert begun.body["safety"] == {"kind": kind, "tier": tier, "certainty": "certain"}
    assert first.meta == {"safety": kind, "tier": tier, "certainty": "certain"}
    assert "call" in first.body["text"]


@pytest.mark.parametrize(("said", "kind"), [(CHEST, "emergency"), (PILLS, "crisis")])
@on_both_databases
async def test_a_safety_answer_is_sent_in_the_order_of_the_protocol(
    address: str, said: str, kind: str
) -> None:
    brain = ScriptedBrain()
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(said)

        assert_safety_first(frames, kind, 3)
        sentences, rest = of_type(SENTENCE, frames), contents(frames)[2:]
        assert rest[:4] == [TRACE] * 4
        assert rest[-5:] == [TRACE] * 4 + [SENTENCE]
        whole = "".join(sentence.body["text"] for sentence in sentences)
        assert "your local emergency number (112 in many countries)" in whole
        assert brain.briefs == []
        (turn_in_block,) = (await history(orchestrator, peer.conversation_id)).turns
        assert turn_in_block.agent_response is not None
        assert turn_in_block.agent_response.agent_type == "EMERGENCY"
        assert turn_in_block.agent_response.content == whole
        assert turn_in_block.intent_classification is not None
        assert turn_in_block.intent_classification.intent == "EMERGENCY"
        (event,) = await events(orchestrator, peer)
        assert (event.stage, event.kind, event.tier, event.turn) == ("message", kind, 3, 1)
        assert event.rules
        kept = await meta(orchestrator, sentences[0].body["previousId"])
        assert (kept["safety"], kept["tier"]) == (kind, "3")


async def test_an_ordinary_message_gets_no_safety_answer(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(CALM)

        (begun,) = of_type(START_ANSWER, frames)
        assert "safety" not in begun.body
        assert await events(orchestrator, peer) == []


async def test_the_same_danger_is_answered_in_other_words(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        answers = [await peer.ask(said) for said in (CHEST, "my chest still hurts a lot", CHEST)]

        first = [of_type(SENTENCE, frames)[0].body["text"] for frames in answers]
        assert len(set(first)) == 3


async def test_a_whole_safety_answer_comes_before_its_traces(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator, features=[]) as peer:
        message_id = await peer.say(CHEST)
        frames = [
            frame for _ in range(10) for frame in await peer.until(lambda frame: True)
        ]  # acknowledgement, answer, 4 blocks read, 4 written

        assert contents(frames) == [ASSISTANT_MESSAGE, *[TRACE] * 8]
        answer = frames[1]
        assert (answer.meta["safety"], answer.body["previousId"]) == ("emergency", message_id)
        async for _ in orchestrator.store.changes():
            if (await turn(orchestrator, message_id)).state == "completed":
                break
        assert (await message(orchestrator, answer.body["id"])).completion_status == "completed"


# --- other parts fail ---------------------------------------------------------------------------------------


def hanging() -> Iterator[asyncio.Event]:
    while True:
        yield asyncio.Event()


@pytest.mark.parametrize("trouble", ["hangs", "fails"])
async def test_a_brain_that_hangs_or_fails_changes_nothing_in_a_safety_answer(
    address: str, trouble: str
) -> None:
    script: Any = hanging() if trouble == "hangs" else [BrainFailed("scripted", "understand")]
    brain = ScriptedBrain(enrichments=script)
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(CHEST)

        assert_safety_first(frames, "emergency", 3)
        assert frames[-1].body["isFinal"]
        (turn_in_block,) = (await history(orchestrator, peer.conversation_id)).turns
        assert turn_in_block.agent_response is not None
        assert turn_in_block.agent_response.agent_type == "EMERGENCY"


async def test_the_safety_sentence_comes_first_with_a_slow_database(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        write = orchestrator.store.write

        async def slowly(work: Callable[[Transaction], T]) -> T:
            def waiting(tx: Transaction) -> T:
                time.sleep(0.05)
                return work(tx)

            return await write(waiting)

        monkeypatch.setattr(orchestrator.store, "write", slowly)
        frames = await peer.ask(CHEST)

        assert_safety_first(frames, "emergency", 3)


@pytest.mark.parametrize("trouble", ["nothing else", "the brain hangs", "the brain fails", "an answer runs"])
async def test_a_write_that_hangs_does_not_hold_back_the_first_sentence(
    address: str, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts: dict[str, dict[str, Any]] = {
        "the brain hangs": {"enrichments": hanging()},
        "the brain fails": {"enrichments": [BrainFailed("scripted", "understand")]},
        "an answer runs": {"answers": [["One. ", "Two. ", "Thr", asyncio.Event()]]},
    }
    brain = ScriptedBrain(**scripts.get(trouble, {}))
    monitor = replace(a_monitor(), store_wait_seconds=0.01)
    async with (
        an_orchestrator(address, brain, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        if trouble == "an answer runs":
            await peer.say("What helps against a cold?")
            await peer.until_type(SENTENCE)
        write, free = orchestrator.store.write, asyncio.Event()

        async def hanging_write(work: Callable[[Transaction], T]) -> T:
            await free.wait()
            return await write(work)

        monkeypatch.setattr(orchestrator.store, "write", hanging_write)
        message_id = await peer.say(CHEST)
        *_, first = await peer.until(lambda frame: not frame.stanza)
        free.set()
        frames = await peer.until(lambda frame: "safety" in frame.body)
        frames = [frame for frame in frames[-1:] + await peer.answer() if frame.stanza]

        assert (first.type, first.body["previousId"]) == (SENTENCE, message_id)
        assert first.meta == {"safety": "emergency", "tier": 3, "certainty": "certain"}
        assert first.body["text"].startswith("This could be an emergency: please call")
        assert_safety_first(frames, "emergency", 3)


async def test_the_terminal_shows_the_first_sentence_once(
    embedded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with an_orchestrator(
        embedded, monitor=replace(a_monitor(), store_wait_seconds=0.01)
    ).open() as orchestrator:
        ours, theirs = pair()
        serving = asyncio.create_task(orchestrator.serve(theirs, "ann"))
        client = Client(ours, RandomIds())
        async for _ in client.open():
            pass
        write, free = orchestrator.store.write, asyncio.Event()

        async def hanging_write(work: Callable[[Transaction], T]) -> T:
            await free.wait()
            return await write(work)

        async def answer(message_id: MessageId) -> AsyncGenerator[Envelope[Body], None]:
            async for envelope in client.answer_to(message_id):
                yield envelope
                if isinstance(envelope.body, AssistantSentence) and not envelope.stanza_id:
                    free.set()

        monkeypatch.setattr(orchestrator.store, "write", hanging_write)
        await show(answer(await client.say(CHEST)), True)
        await client.close()
        await serving

        printed = capsys.readouterr().out
        kept = await history(orchestrator, client.conversation_id)
        assert kept.turns[-1].agent_response is not None
        assert printed == f"{kept.turns[-1].agent_response.content}\n"


class Hanging(NoMirror):
    """A mirror that never answers, and remembers what was stored when it was asked."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.found: list[list[int]] = []

    async def foreign_changes(self, conversation_id: str) -> tuple[ForeignChange, ...]:
        assert self.store is not None
        stored = self.store.read_now(lambda tx: tx.frames.after(conversation_id, 0))
        self.found.append([frame.type for frame in stored])
        await asyncio.Event().wait()
        return ()


@pytest.mark.parametrize(
    ("features", "first"), [(["streaming"], [START_ANSWER, SENTENCE]), ([], [ASSISTANT_MESSAGE])]
)
async def test_the_first_sentence_is_stored_before_a_mirror_is_asked(
    address: str, features: list[str], first: list[int]
) -> None:
    mirror = Hanging()
    async with (
        an_orchestrator(address, mirror=mirror).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        mirror.store = orchestrator.store
        await peer.ask(CHEST)
        async for _ in orchestrator.store.changes():
            if mirror.found:
                break

        assert mirror.found[0] == [ACKNOWLEDGEMENT, *first]


async def test_synchronised_messages_are_checked_too(address: str) -> None:
    monitor = replace(a_monitor(), store_wait_seconds=0.01)
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        earlier = {"localId": "l1", "role": "user", "contents": CHEST, "createdAt": "2026-01-02T03:04:05Z"}
        await peer.send(SYNC, messages=[earlier])
        frames = await peer.until(lambda frame: frame.type == SENTENCE)

        assert (frames[-1].stanza, frames[-1].meta) == (
            0,
            {"safety": "emergency", "tier": 3, "certainty": "certain"},
        )


async def test_danger_in_a_synchronised_message_is_recorded_and_alerts_only_if_it_is_recent(
    address: str,
) -> None:
    monitor = replace(a_monitor(), alerts=True)
    now = datetime.now(UTC)

    def earlier(local_id: str, contents: str, hours: int, role: str = "user") -> dict[str, str]:
        at = (now - timedelta(hours=hours)).isoformat()
        return {"localId": local_id, "role": role, "contents": contents, "createdAt": at}

    items = [
        earlier("old", CHEST, 30),
        earlier("tea", "I had some tea", 3),
        earlier("asked", "Any thoughts of harming yourself?", 2, "assistant"),
        earlier("reply", "yes", 2),
        earlier("new", CHEST, 1),
        earlier("new", "I had some cake", 1),
    ]
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for _ in range(2):
            response = await peer.request(SYNC, messages=items)
        ids = {each["localId"]: each.get("serverId") for each in reversed(response.body["syncedMessages"])}
        order = [ids[local_id] for local_id in ("old", "reply", "new")]
        found = sorted(await events(orchestrator, peer), key=lambda event: order.index(event.message_id))
        alerts = await orchestrator.store.read(lambda tx: [tx.safety.alert_of(each.id) for each in found])

        assert [(each.message_id, each.turn, each.stage, each.kind, each.tier) for each in found] == [
            (ids["old"], None, "message", "emergency", 3),
            (ids["reply"], None, "message", "crisis", 2),
            (ids["new"], None, "message", "emergency", 3),
        ]
        assert [alert is not None for alert in alerts] == [False, True, True]


@pytest.mark.parametrize(
    ("hours", "then", "in_danger"),
    [
        (1, ["not yet"], [True]),
        (1, ["what should I do", "not yet"], [True, True]),
        (1, ["what should I do", "ok"], [True, False]),
        (1, ["it was a false alarm", "no", "not yet"], [True, False, False]),
        (1, ["What vitamins are good in winter?", "ok"], [False, False]),
        (30, ["not yet"], [False]),
    ],
)
async def test_danger_in_a_recent_synchronised_message_stays_until_it_is_over(
    address: str, hours: int, then: list[str], in_danger: list[bool]
) -> None:
    at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("what helps against a cold?")
        earlier = {"localId": "l1", "role": "user", "contents": CHEST, "createdAt": at}
        await peer.request(SYNC, messages=[earlier])
        answers = [of_type(SENTENCE, await peer.ask(said))[0] for said in then]

        assert ["safety" in first.meta for first in answers] == in_danger


async def test_danger_stops_the_answer_that_is_running(address: str) -> None:
    brain = ScriptedBrain(answers=[["One. ", "Two. ", "Thr", asyncio.Event()]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.say("What helps against a cold?")
        await peer.until_type(SENTENCE)
        await peer.say("And what about tea?")
        await peer.say(PILLS)

        frames = await peer.until(lambda frame: "safety" in frame.body)
        frames += await peer.answer()

        at = next(number for number, frame in enumerate(frames) if "safety" in frame.body)
        assert_safety_first(frames[at:], "crisis", 3)
        assert len(of_type(START_ANSWER, frames[:at])) == 1  # the waiting one, stopped at once
        stopped = [frame for frame in of_type(SENTENCE, frames[:at]) if frame.body["isFinal"]]
        assert [frame.meta for frame in stopped] == [{"stopped": True}] * 2
        assert len(brain.briefs) == 1


@pytest.mark.parametrize(("here", "everywhere", "error"), [(1, 100, "overloaded"), (100, 1, "server_busy")])
async def test_danger_is_accepted_above_the_waiting_limit(
    address: str, here: int, everywhere: int, error: str
) -> None:
    brain = ScriptedBrain(answers=[["One. ", "Two. ", "Thr", asyncio.Event()]])
    async with (
        an_orchestrator(address, brain, waiting=here, waiting_everywhere=everywhere).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.say("What helps against a cold?")
        await peer.until_type(SENTENCE)
        await peer.say("And tea?")
        refused = await peer.until_type(ERROR)
        assert refused[-1].meta["error"] == error

        await peer.say(CHEST)
        frames = await peer.until(lambda frame: "safety" in frame.body)
        frames += await peer.answer()

        assert frames[-1].body["isFinal"]


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        (CHEST, "This could be an emergency: please call"),
        (PILLS, "I am really glad you told me"),
        (CALM, "If this is an emergency, call"),
    ],
)
async def test_an_error_begins_with_the_safety_text_if_nothing_can_be_stored(
    address: str, said: str, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        before = await everything(orchestrator)

        async def full(work: object) -> None:
            raise AnamnesisError(STORAGE_FULL)

        with monkeypatch.context() as broken:
            broken.setattr(orchestrator.store, "write", full)
            await peer.say(said)
            (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith(begins)
        assert refused.meta["error"] == "storage_full"
        assert await everything(orchestrator) == before


@pytest.mark.parametrize("is_edit", [False, True])
@pytest.mark.parametrize(
    ("said", "begins"),
    [(CHEST, "This could be an emergency: please call"), (CALM, "If this is an emergency, call")],
)
async def test_an_error_about_a_delayed_answer_begins_with_the_safety_text_of_its_message(
    embedded: str, said: str, begins: str, is_edit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        an_orchestrator(embedded, lease_seconds=0.2).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        write, accepted = orchestrator.store.write, asyncio.Event()

        async def full_after_the_first_commit(work: Callable[[Transaction], T]) -> T:
            if getattr(work, "__qualname__", "").startswith("Outbox.commit"):
                if accepted.is_set():
                    raise AnamnesisError(STORAGE_FULL)
                accepted.set()
            return await write(work)

        message_id = await peer.say("good morning")
        await peer.answer()
        with monkeypatch.context() as filling:
            filling.setattr(orchestrator.store, "write", full_after_the_first_commit)
            if is_edit:
                await peer.send(VARIATION, targetId=message_id, mode="edit", newContent=said)
            else:
                await peer.say(said)
            *_, delayed = await peer.until_type(ERROR)
        await peer.answer()

        assert delayed.meta["error"] == "answer_delayed"
        assert delayed.body["message"].startswith(begins)


@pytest.mark.parametrize("problem", [BUSY, FENCED, INTERNAL, OVERLOADED, STORAGE_UNAVAILABLE])
@pytest.mark.parametrize("varied", [False, True])
async def test_any_error_about_a_message_says_whom_to_call(
    embedded: str, problem: Problem, varied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say(CALM)
        await peer.answer()

        async def refusing(work: object) -> None:
            raise AnamnesisError(problem, most=3)

        with monkeypatch.context() as broken:
            broken.setattr(orchestrator.store, "write", refusing)
            if varied:
                await peer.send(VARIATION, targetId=message_id, mode="edit", newContent="I have a cough")
            else:
                await peer.say("how much water should I drink")
            (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("If this is an emergency, call")
        assert refused.meta["error"] == problem.name


@pytest.mark.parametrize(
    "spoiled",
    [
        {"content": f"{CALM}\0"},
        {"content": CALM.encode()},
        {"content": CALM, "timestamp": "the day before yesterday"},
        {"content": CALM, "number": float("nan")},
        {},
    ],
    ids=["NUL", "bytes", "timestamp", "not a number", "nothing"],
)
async def test_the_error_about_an_unreadable_message_says_whom_to_call(
    embedded: str, spoiled: dict[str, Any]
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.send(USER_MESSAGE, id=new_id(), **spoiled)
        (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("If this is an emergency, call")


async def test_the_error_about_another_frame_does_not_say_whom_to_call(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.send(COMMENTARY)
        (refused,) = await peer.until_type(ERROR)

        assert a_monitor().wording.error not in refused.body["message"]


@pytest.mark.parametrize(
    "spoiled",
    [
        {"content": f"{CHEST}\0"},
        {"content": CHEST, "timestamp": "the day before yesterday"},
        {"content": CHEST, "previousId": 7},
        {"content": f"{'the sun was warm. ' * 25_000} {CHEST}. {'the garden was green. ' * 20_500}"},
        {
            "content": CHEST,
            "unknown": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],
        },
    ],
    ids=["NUL", "timestamp", "previous", "900 kB", "depth"],
)
async def test_a_message_that_cannot_be_read_is_checked(address: str, spoiled: dict[str, Any]) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.send(USER_MESSAGE, id=new_id(), **spoiled)
        (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("This could be an emergency: please call")


async def test_a_reply_is_checked_with_its_question_though_nothing_can_be_stored(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I feel low")

        async def full(work: object) -> None:
            raise AnamnesisError(STORAGE_FULL)

        with monkeypatch.context() as broken:
            broken.setattr(orchestrator.store, "write", full)
            await peer.say("yes")
            (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("Thank you for telling me")


async def test_a_reply_is_checked_with_its_question_though_the_store_cannot_even_be_read(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with an_orchestrator(embedded, brain).open() as orchestrator:
        read, reads = orchestrator.store.read, asyncio.Queue[None]()

        async def counted(work: Callable[[Transaction], T]) -> T:
            result = await read(work)
            if "Screening" in getattr(work, "__qualname__", ""):
                await reads.put(None)
            return result

        async def unavailable(work: object) -> None:
            raise AnamnesisError(STORAGE_UNAVAILABLE)

        monkeypatch.setattr(orchestrator.store, "read", counted)
        async with conversing(orchestrator) as peer:
            await peer.ask("I feel low")
            for _ in range(3):  # when the connection opened, for the message, and after its answer
                await reads.get()
            with monkeypatch.context() as broken:
                broken.setattr(orchestrator.store, "read", unavailable)
                broken.setattr(orchestrator.store, "write", unavailable)
                await peer.say("yes")
                (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("Thank you for telling me")


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_question_stays_open_while_the_person_does_not_answer_it(
    address: str, features: list[str]
) -> None:
    asks = ["I see. ", "Are you having any thoughts of harming yourself?"]
    brain = ScriptedBrain(answers=[asks, ["Take your time."]])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        await peer.ask("I feel low")
        await peer.ask("hm")
        await peer.ask("yes")

        assert [(event.kind, event.tier) for event in await events(orchestrator, peer)] == [("crisis", 2)]


async def test_a_question_is_closed_by_an_answer(address: str) -> None:
    asks = ["I see. ", "Are you having any thoughts of harming yourself?"]
    brain = ScriptedBrain(answers=[asks, ["Do you sleep well?"]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I feel low")
        await peer.ask("no, I only sleep badly")
        await peer.ask("yes")

        assert await events(orchestrator, peer) == []


FILLER = "the garden was green and the sun was warm today. " * 600


async def test_the_middle_of_a_long_message_is_checked(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(f"{FILLER} {CHEST}. {FILLER}")

        assert_safety_first(frames, "emergency", 3)


def test_a_long_message_is_checked_in_whole_words() -> None:
    for begins in range(18):
        assert not a_monitor().message_received("." * begins + "the sun was warm. " * 3_000).is_danger


def test_a_message_too_long_to_be_checked_counts_as_not_checked() -> None:
    endless = FILLER * 45

    assert a_monitor().message_received(endless).assessment.failed
    assert a_monitor().message_received(f"{endless} {CHEST}").is_danger
    assert not a_monitor().message_received(FILLER).assessment.failed


class Broken:
    """A guard that always fails."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        raise RuntimeError("cannot check")

    def explain(self, text: str) -> list[Reason]:
        raise RuntimeError("cannot check")

    def takes_back(self, text: str) -> bool:
        raise RuntimeError("cannot check")

    def says_nothing(self, text: str) -> bool:
        raise RuntimeError("cannot check")

    def is_over(self, text: str, earlier: Verdict) -> bool:
        raise RuntimeError("cannot check")

    def is_mistake(self, text: str, earlier: Verdict) -> bool:
        raise RuntimeError("cannot check")

    def is_light(self, text: str) -> bool:
        raise RuntimeError("cannot check")

    def check_reply(self, text: str, context: str) -> Verdict:
        raise RuntimeError("cannot check")

    def always(self, verdict: Verdict) -> Verdict:
        raise RuntimeError("cannot check")

    def as_read(self, text: str) -> str:
        raise RuntimeError("cannot check")

    def completed(self, before: str, said: str) -> list[str]:
        raise RuntimeError("cannot check")

    def answer(self, text: str) -> Literal["yes", "no", "unsure"] | None:
        raise RuntimeError("cannot check")

    def brings_nothing(self, text: str) -> bool:
        raise RuntimeError("cannot check")

    def means_of(self, text: str, earlier: Verdict) -> Verdict:
        raise RuntimeError("cannot check")

    def has_finding(self, text: str) -> bool:
        raise RuntimeError("cannot check")


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_guard_that_fails_leads_to_a_sentence_of_caution_and_is_recorded(
    address: str, features: list[str]
) -> None:
    monitor = replace(a_monitor(), guard=Broken())
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        frames = await peer.ask(CALM)

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert text.startswith("I could not check this message for signs of danger")
        assert said[0].meta["guard"] == "unavailable"
        assert "How severe is it" in text  # then the usual answer
        assert {event.kind for event in await events(orchestrator, peer)} == {"guard_failed"}


class FailsLater(Broken):
    """A guard that checks a message, and fails on the enriched one."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        return a_monitor().guard.check(text, context)


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_guard_that_fails_on_the_enriched_message_leads_to_caution_and_is_recorded(
    address: str, features: list[str]
) -> None:
    brain = ScriptedBrain(enrichments=[enriched("The person says that they have crushing chest pain")])
    monitor = replace(a_monitor(), guard=FailsLater(), alerts=True)
    async with (
        an_orchestrator(address, brain, monitor=monitor).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        frames = await peer.ask("it is back")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert text.startswith("I could not check this message for signs of danger")
        assert said[0].meta["guard"] == "unavailable"
        assert len(brain.briefs) == 1  # then the usual answer
        (event,) = await events(orchestrator, peer)
        assert (event.stage, event.kind, event.rules) == ("enriched", "guard_failed", ())
        assert await orchestrator.store.read(lambda tx: tx.safety.alert_of(event.id)) is not None


async def test_a_guard_that_fails_on_the_enriched_message_does_not_change_a_safety_answer(
    address: str,
) -> None:
    monitor = replace(a_monitor(), guard=FailsLater())
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask(CHEST)

        assert_safety_first(frames, "emergency", 3)
        whole = "".join(frame.body["text"] for frame in of_type(SENTENCE, frames))
        assert a_monitor().wording.caution not in whole
        found = {(event.stage, event.kind) for event in await events(orchestrator, peer)}
        assert found == {("message", "emergency"), ("enriched", "guard_failed")}


async def test_danger_stays_if_the_check_of_the_next_message_fails(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Verdict:
        raise RuntimeError("cannot say")

    monkeypatch.setattr("orchestrator.safety.checks.after", fails)
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask(CHEST)
        frames = await peer.ask("what helps against a runny nose?")

        assert "safety" in of_type(SENTENCE, frames)[0].meta
        assert not of_type(ERROR, frames)


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_message_in_another_language_gets_a_notice_and_whom_to_call_first(
    address: str, features: list[str]
) -> None:
    async with (
        an_orchestrator(address).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        frames = await peer.ask("me duele mucho el pecho y no puedo respirar")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert text.startswith("Solo entiendo inglés")
        assert "I understand English only" in text
        assert "112" in text
        assert said[0].meta["guard"] == "unsupported_language"
        [kept] = await events(orchestrator, peer)
        assert (kept.kind, kept.rules) == ("guard_failed", ("language.es",))


# --- later checks can only raise the verdict ----------------------------------------------------------------


def enriched(said: str) -> Enrichment:
    return Enrichment(previous_context="A turn came before", enriched_message=said)


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_danger_in_the_enriched_message_is_said_before_any_model_speaks(
    address: str, features: list[str]
) -> None:
    brain = ScriptedBrain(enrichments=[enriched("The person says that they have crushing chest pain")])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        frames = await peer.ask("it is back")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        assert said[0].meta["safety"] == "emergency"
        assert brain.briefs == []
        (event,) = await events(orchestrator, peer)
        assert (event.stage, event.kind) == ("enriched", "emergency")


async def test_danger_of_another_kind_in_the_enriched_message_is_recorded_even_if_not_graver(
    address: str,
) -> None:
    brain = ScriptedBrain(enrichments=[enriched("The person says that they have crushing chest pain")])
    monitor = replace(a_monitor(), alerts=True)
    async with (
        an_orchestrator(address, brain, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask(PILLS)

        assert_safety_first(frames, "crisis", 3)
        found = await events(orchestrator, peer)
        assert [(event.stage, event.kind, event.tier) for event in found] == [
            ("message", "crisis", 3),
            ("enriched", "emergency", 3),
        ]
        alerts = await orchestrator.store.read(lambda tx: [tx.safety.alert_of(event.id) for event in found])
        assert None not in alerts


@pytest.mark.parametrize(
    ("retold", "kind", "begins"),
    [
        ("that they have crushing chest pain", "emergency", "This could be an emergency: please call"),
        ("that they will kill themselves tonight", "crisis", "I am really glad you told me"),
    ],
)
async def test_a_graver_danger_in_the_enriched_message_is_said_too(
    address: str, retold: str, kind: str, begins: str
) -> None:
    brain = ScriptedBrain(enrichments=[enriched(f"The person says {retold}")])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask("he is strangling me right now")

        assert_safety_first(frames, "crisis", 3)
        said = [frame for frame in of_type(SENTENCE, frames) if "safety" in frame.meta]
        assert [frame.meta["safety"] for frame in said] == ["crisis", kind]
        assert said[1].body["text"].startswith(begins)
        assert [event.kind for event in await events(orchestrator, peer)] == ["crisis", kind]


async def test_a_reply_is_checked_with_the_question_before_it(address: str) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I feel low")
        frames = await peer.ask("yes")

        assert_safety_first(frames, "crisis", 2)


@pytest.mark.parametrize("lowering", ["enrichment", "intent"])
async def test_neither_memory_nor_a_model_lowers_the_verdict(address: str, lowering: str) -> None:
    brain = ScriptedBrain(
        enrichments=[enriched("The person is fine and asks about recipes")]
        if lowering == "enrichment"
        else [],
        intents=[Intent(intent="NUTRITION", confidence=1.0, reasoning="All is well")],
    )
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(PILLS)

        assert_safety_first(frames, "crisis", 3)
        assert brain.briefs == []


async def test_the_danger_classifier_may_raise_the_verdict_and_its_failure_changes_nothing(
    address: str,
) -> None:
    class DangerClassifier:
        def likeness(self, texts: Sequence[str]) -> list[Likeness]:
            if "odd" in texts[0]:
                return [Likeness(0.9, 0.0) for _ in texts]
            raise RuntimeError("no classifier")

    monitor = replace(a_monitor(), learned=LearnedChecks(DangerClassifier(), the_moves()))
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        danger = await peer.ask("something odd")
        calm = await peer.ask("What vitamins are good in winter?")

        meta_of_danger = {"safety": "emergency", "tier": 2, "certainty": "possible"}
        assert of_type(SENTENCE, danger)[0].meta == meta_of_danger
        assert of_type(SENTENCE, calm)[0].meta == {}


async def test_danger_in_the_enriched_message_is_answered_though_nothing_can_be_embedded(
    address: str,
) -> None:
    class NoEmbedder(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            raise RuntimeError("no vectors")

    brain = ScriptedBrain(enrichments=[enriched("The person has crushing chest pain and is sweating")])
    async with (
        an_orchestrator(address, brain, embedder=NoEmbedder()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask("like before, and sweating")

        said = of_type(SENTENCE, frames)
        assert said[0].meta == {"safety": "emergency", "tier": 3, "certainty": "certain"}
        assert said[-1].body["isFinal"]
        assert not of_type(ERROR, frames)


async def test_a_turn_embeds_one_text_once_for_the_danger_classifier_and_for_routing(address: str) -> None:
    class Counting(WordEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.embedded: list[str] = []

        def embed(self, texts: Sequence[str]) -> Vectors:
            self.embedded += texts
            return super().embed(texts)

    class DangerClassifier:
        def likeness(self, texts: Sequence[str]) -> list[Likeness]:
            checked.extend(dict.fromkeys(texts))
            return [Likeness(0.0, 0.0) for _ in texts]

    checked: list[str] = []
    counting = Counting()
    monitor = replace(a_monitor(), learned=LearnedChecks(DangerClassifier(), the_moves()))
    async with (
        an_orchestrator(address, monitor=monitor, embedder=counting).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CALM)

        assert counting.embedded == checked == [CALM]


class NoLanguages(Languages):
    """Always fails."""

    def __init__(self) -> None:
        pass

    def foreign(self, text: str) -> str | None:
        raise RuntimeError("no languages")


async def test_danger_is_answered_though_the_language_check_fails(address: str) -> None:
    monitor = replace(a_monitor(), languages=NoLanguages())
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        danger = await peer.ask(CHEST)
        calm = await peer.ask("what helps against a runny nose?")

        assert_safety_first(danger, "emergency", 3)
        assert of_type(SENTENCE, calm)[0].meta == {"guard": "unavailable"}


async def test_an_earlier_emergency_does_not_make_other_messages_emergencies(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        assert_safety_first(await peer.ask("I have crushing chest pain"), "emergency", 3)
        for harmless in (
            "what is the weather like",
            "I have had a runny nose since Monday",
            "What vitamins are good in winter?",
        ):
            frames = await peer.ask(harmless)

            assert "safety" not in of_type(START_ANSWER, frames)[0].body
            assert [frame.meta for frame in of_type(SENTENCE, frames) if "safety" in frame.meta] == []
        assert ["aside" in event.rules for event in await events(orchestrator, peer)] == [
            False,
            True,
            True,
            True,
        ]


async def test_a_specialists_answer_does_not_clear_a_danger(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        beside = of_type(SENTENCE, await peer.ask("What vitamins are good in winter?"))
        called = of_type(SENTENCE, await peer.ask("I have called 999"))
        again = of_type(SENTENCE, await peer.ask("the chest pain is crushing now"))

        assert "safety" not in beside[0].meta
        assert called[0].body["text"].startswith("Good that help is called")
        assert again[0].meta["safety"] == "emergency"
        kept = await events(orchestrator, peer)
        assert {event.certainty for event in kept} == {"certain"}


async def test_the_number_is_said_once_while_the_person_talks_of_other_things(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("I have crushing chest pain")  # not firm at once, as signs of a stroke are
        said = [
            "".join(frame.body["text"] for frame in of_type(SENTENCE, await peer.ask(other)))
            for other in ("What vitamins are good in winter?", "I have had a runny nose since Monday")
        ]

        assert ["112" in each for each in said] == [True, False]


KEPT_TALKING = {
    "I have crushing chest pain": [
        "not yet",
        "nobody has called",
        "what should I do",
        "yes",
        "hm, not sure",
        "I feel dizzy",
    ],
    "my son has been fitting for 6 minutes": [
        "not yet",
        "nobody has called",
        "what should I do",
        "what do I do now",
    ],
    "I took 40 paracetamol": ["no", "not yet", "I don't want to", "I can't reach anyone"],
    "I want to die": ["yes", "no", "with pills", "they are in front of me", "no", "hm"],
    "I want to kill myself": ["no", "I don't know", "why", "nobody"],
    "my husband beats me": ["no I'm not safe", "no", "he is downstairs"],
}


@pytest.mark.parametrize("danger", KEPT_TALKING)
async def test_danger_stays_while_the_person_brings_no_other_topic(address: str, danger: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        said = [of_type(SENTENCE, await peer.ask(danger))]
        for reply in KEPT_TALKING[danger]:
            said.append(of_type(SENTENCE, await peer.ask(reply)))

            assert "safety" in said[-1][0].meta, reply
            assert said[-1][0].body["text"] != said[-2][0].body["text"]
        answers = (each.agent_response for each in (await history(orchestrator, peer.conversation_id)).turns)
        assert {each.agent_type for each in answers if each} == {"EMERGENCY"}


@pytest.mark.parametrize("over", ["the ambulance is here", "I'm fine now", "we are at the hospital"])
async def test_danger_that_is_over_or_taken_care_of_is_not_mentioned_again(address: str, over: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        frames = await peer.ask(over)

        assert "".join(
            frame.body["text"] for frame in of_type(SENTENCE, frames)
        ) == a_monitor().wording.settled(Verdict("emergency", 3))
        await peer.ask("ok")
        assert ["over" in event.rules for event in await events(orchestrator, peer)] == [False, True]


@pytest.mark.parametrize(
    "asked",
    [
        "can I take aspirin",
        "should I give him his tablets?",
        "how much water should I drink?",
        "can I drive to the hospital myself?",
        "is it ok to wait until tomorrow",
        "how long will the ambulance take",
    ],
)
async def test_questions_about_what_to_do_meanwhile_get_first_aid_and_the_call_handler(
    address: str, asked: str
) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        once, again = [of_type(SENTENCE, await peer.ask(asked)) for _ in range(2)]
        await peer.ask("the ambulance is here")
        later = of_type(SENTENCE, await peer.ask(asked))

        answer = " ".join(frame.body["text"] for frame in once)
        assert once[0].meta["safety"] == again[0].meta["safety"] == "emergency"
        assert "112" in answer
        assert once[0].body["text"] != again[0].body["text"]
        rules = [event.rules for event in await events(orchestrator, peer)]
        assert [{*each} & {"meanwhile", "still"} for each in rules] == [
            set(),
            {"meanwhile", "still"},
            {"meanwhile", "still"},
            {"still"},
        ]
        aided = [any(rule.startswith("first_aid.") for rule in each) for each in rules]
        assert aided == [False, True, False, False]
        assert "safety" not in later[0].meta


@pytest.mark.parametrize(
    "called", ["I have called 999", "yes", "help is on the way", "my wife is calling them"]
)
async def test_a_person_who_has_called_is_not_asked_to_call_again(address: str, called: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        answers = [of_type(SENTENCE, await peer.ask(said)) for said in (called, "my ankle hurts", "it hurts")]
        over = of_type(SENTENCE, await peer.ask("they are here now"))
        calm = of_type(SENTENCE, await peer.ask("my ankle hurts"))

        texts = [" ".join(frame.body["text"] for frame in answer) for answer in answers]
        assert [answer[0].meta.get("safety") for answer in answers] == ["emergency"] * 3
        assert texts[0].startswith("Good that help is called")
        assert "too; until help is there" in texts[1]
        assert not any("nobody has called" in each for each in texts)
        assert over[0].body["text"] == a_monitor().wording.settled(Verdict("emergency", 3))
        assert "safety" not in calm[0].meta


async def test_a_short_complaint_waits_until_the_emergency_is_over(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        beside = of_type(SENTENCE, await peer.ask("runny nose"))
        await peer.ask("it's gone now, I'm fine")
        calm = of_type(SENTENCE, await peer.ask("runny nose"))

        assert beside[0].meta["safety"] == "emergency"
        assert "safety" not in calm[0].meta
        assert "runny nose" in calm[0].body["text"]


@pytest.mark.parametrize(
    "said", ["it's over", "I feel better now, I took them", "I'm fine now, the pills are working"]
)
async def test_danger_to_oneself_is_not_over_because_the_person_feels_better(address: str, said: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("I keep thinking about killing myself")
        frames = await peer.ask(said)

        assert of_type(SENTENCE, frames)[0].meta["safety"] == "crisis"


async def test_a_person_who_takes_back_that_somebody_called_is_asked_to_call(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for said in (CHEST, "yes", "actually nobody has called"):
            frames = await peer.ask(said)

        assert "Good that help is called" not in of_type(SENTENCE, frames)[0].body["text"]
        kept = [event.rules for event in await events(orchestrator, peer)]
        assert ["help.called" in rules for rules in kept] == [False, True, False]


async def test_another_danger_after_a_call_alerts_staff_and_is_said(address: str) -> None:
    monitor = replace(a_monitor(), alerts=True)
    async with (
        an_orchestrator(address, local_brain(), monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for said in (CHEST, "ok", "yes, help is on the way", "I called 999, he is turning blue"):
            await peer.ask(said)
        kept = await events(orchestrator, peer)
        alerts = await orchestrator.store.read(lambda tx: [tx.safety.alert_of(each.id) for each in kept])

        assert [alert is not None for alert in alerts] == [True, False, False, True]
        assert {"breathing.blue", "help.called"} <= set(kept[-1].rules)


async def test_each_new_danger_begins_with_the_full_safety_answer(address: str) -> None:
    dangers = (CHEST, "my toddler drank bleach", "my wife is unconscious", "my baby is choking", CHEST)
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        answers = []
        for said in dangers:
            answers.append(of_type(SENTENCE, await peer.ask(said)))
            await peer.ask("false alarm")
        for said in dangers[1:]:
            answers.append(of_type(SENTENCE, await peer.ask(said)))

        begins = (
            "This could be an emergency: please call",
            "What you write sounds like an emergency: if nobody has",
        )
        first = [frames[0].body["text"] for frames in answers]
        assert all(text.startswith(begins) for text in first)
        assert not any(one == other for one, other in pairwise(first))
        assert all(len(frames) > 3 for frames in answers)


async def test_after_an_acute_crisis_the_next_answer_mentions_it_once(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(PILLS)
        once, again = [
            [frame.body["text"] for frame in of_type(SENTENCE, await peer.ask(asked))]
            for asked in ("How do I sleep better?", "What helps against a cold?")
        ]

        assert once[0] == a_monitor().wording.comes_back(Verdict("crisis", 3))
        assert len(once) > 1
        assert once[0] not in again


@pytest.mark.parametrize("between", ["that was just a song", "the police are here"])
async def test_a_crisis_that_is_over_is_not_mentioned_again(address: str, between: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for said in (PILLS, between, "How do I sleep better?"):
            frames = await peer.ask(said)

        assert "worries me" not in "".join(frame.body["text"] for frame in of_type(SENTENCE, frames))


async def test_help_that_has_not_arrived_does_not_end_the_danger(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        frames = await peer.ask("the ambulance is not here")

        assert "safety" in of_type(SENTENCE, frames)[0].meta


async def test_naming_a_means_makes_a_crisis_graver(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I want to die")
        await peer.ask("with pills")

        assert [event.tier for event in await events(orchestrator, peer)] == [2, 3]


async def test_an_illness_of_years_ago_is_no_emergency(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for said in ("I had a stroke in 2010", "what should I eat?"):
            frames = await peer.ask(said)

            assert [frame.meta for frame in of_type(SENTENCE, frames) if "safety" in frame.meta] == []
        assert await events(orchestrator, peer) == []


class BrainThatAsks(ScriptedBrain):
    """Understands like the local brain, and says a script."""

    async def understand(self, message: str, situation: Situation) -> Understanding:
        found = await local_brain().understand(message, situation)
        return found.model_copy(update={"intent": GENERAL})


async def test_a_number_is_checked_with_the_question_that_it_answers(address: str) -> None:
    brain = BrainThatAsks(answers=[["How bad is the chest pain?"]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I need some advice")
        frames = await peer.ask("8")

        assert of_type(SENTENCE, frames)[0].meta == {"safety": "emergency", "tier": 3, "certainty": "certain"}


def routed(confidence: float) -> ScriptedBrain:
    intent = Intent(intent="EMERGENCY", confidence=confidence, reasoning="Reads like danger")
    return ScriptedBrain(intents=[intent])


@pytest.mark.parametrize("features", [["streaming", "reasoning"], []])
async def test_an_emergency_that_only_the_brain_finds_is_said_and_recorded_like_any_other(
    address: str, features: list[str]
) -> None:
    brain = routed(0.95)
    monitor = replace(a_monitor(), wording=wording.load(shipped_config() / "safety", "GB"))
    async with (
        an_orchestrator(address, brain, monitor=monitor).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        frames = await peer.ask("everything went odd just now")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert (said[0].meta["safety"], said[0].meta["tier"]) == ("emergency", 3)
        assert "999" in text
        assert "116 123" in text
        assert "988" not in text
        assert brain.briefs == []
        [event] = await events(orchestrator, peer)
        assert (event.kind, event.tier, event.rules) == ("emergency", 3, ("router",))


async def test_the_emergency_number_comes_first_if_the_brain_is_unsure_of_an_emergency(address: str) -> None:
    brain = routed(0.5)
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask("everything went odd just now")

        said = [frame.body["text"] for frame in of_type(SENTENCE, frames)]
        assert said[0] == f"{a_monitor().wording.error} "
        assert [brief.specialist.agent_type for brief in brain.briefs] == ["COORDINATOR"]
        assert await events(orchestrator, peer) == []


async def test_danger_that_the_person_denies_is_no_emergency_for_the_brain_either(address: str) -> None:
    brain = routed(0.99)
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask("I do not have any chest pain")

        assert a_monitor().wording.error not in of_type(SENTENCE, frames)[0].body["text"]
        assert [brief.specialist.agent_type for brief in brain.briefs] == ["COORDINATOR"]
        assert await events(orchestrator, peer) == []


async def test_an_edited_message_is_checked_too(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say(CALM)
        await peer.answer()
        await peer.send(VARIATION, targetId=message_id, mode="edit", newContent=CHEST)
        frames = await peer.answer()

        assert_safety_first(frames, "emergency", 3)


async def test_an_edited_reply_is_checked_with_its_question(address: str) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I feel low")
        message_id = await peer.say("hm")
        await peer.answer()
        await peer.send(VARIATION, targetId=message_id, mode="edit", newContent="yes")
        frames = await peer.answer()

        assert_safety_first(frames, "crisis", 2)


async def test_a_regenerated_answer_to_a_message_in_danger_is_a_safety_answer_too(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(CHEST)
        answer_id = of_type(START_ANSWER, frames)[0].body["id"]
        await peer.send(VARIATION, targetId=answer_id, mode="regenerate")
        again = await peer.answer()

        assert_safety_first(again, "emergency", 3)
        assert of_type(SENTENCE, again)[0].body["text"] != of_type(SENTENCE, frames)[0].body["text"]


# --- what a brain may not say -------------------------------------------------------------------------------


async def refused_by(orchestrator: Orchestrator, event: SafetyEvent) -> str | None:
    """The text that was refused, as recorded."""
    return await orchestrator.store.read(lambda tx: tx.safety.refused_text(event.id))


async def test_sentences_that_a_brain_may_not_say_are_replaced_once_by_kind_and_recorded(
    address: str,
) -> None:
    claims = ["You have pneumonia. ", "Take 500 mg of amoxicillin twice a day. ", "This sounds like asthma. "]
    answer = ["Thank you. ", *claims, "Rest well."]
    async with (
        an_orchestrator(address, ScriptedBrain(answers=[answer])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask("I have a cough")

        said = [frame.body["text"] for frame in of_type(SENTENCE, frames)]
        diagnosis, dose = (
            f"{a_monitor().wording.refused([rule])} " for rule in ("diagnosis", "dose.directive")
        )
        assert said == ["Thank you. ", diagnosis, dose, "Rest well."]
        kept = await events(orchestrator, peer)
        assert [(event.stage, event.kind, event.tier) for event in kept] == [("answer", "refused", 0)] * 3
        broken = [{"diagnosis"}, {"dose.directive", "prescription"}, {"diagnosis"}]
        assert [set(event.rules) for event in kept] == broken
        assert [await refused_by(orchestrator, event) for event in kept] == claims


async def test_a_specialist_is_held_to_its_own_red_lines_only(address: str) -> None:
    said = "A nightcap helps many people. "
    sleep, food = (
        Intent(intent=each, confidence=0.9, reasoning="As scripted") for each in ("SLEEP", "NUTRITION")
    )
    brain = ScriptedBrain(intents=[sleep, food], answers=[[said], [said]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        crossed = await peer.ask("I lie awake")
        not_crossed = await peer.ask("and what about wine?")

        [kept] = await events(orchestrator, peer)
        assert (kept.stage, kept.kind, kept.rules) == ("answer", "refused", ("sleep.sedating",))
        assert await refused_by(orchestrator, kept) == said
    assert of_type(SENTENCE, crossed)[0].body["text"] == f"{a_monitor().wording.refused(['sleep.sedating'])} "
    assert of_type(SENTENCE, not_crossed)[0].body["text"] == said


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        ("You have pneumonia. Take 500 mg of amoxicillin.", []),
        ("The message names a cough. You have pneumonia. Take 500 mg.", ["The message names a cough."]),
    ],
)
async def test_what_of_a_reason_may_not_be_said_is_left_out_and_recorded(
    address: str, why: str, shown: list[str]
) -> None:
    brain = ScriptedBrain(intents=[Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning=why)])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=["streaming", "reasoning"]) as peer,
    ):
        frames = await peer.ask("I have a cough")

        steps = [frame.body["content"] for frame in of_type(REASONING, frames)]
        assert steps == shown
        [kept] = await events(orchestrator, peer)
        assert kept.kind == "refused"
        assert await refused_by(orchestrator, kept) == why
        assert {"diagnosis", "dose.directive"} <= set(kept.rules)


@pytest.mark.parametrize(("region", "number"), [("GB", "999"), ("US", "911"), ("DE", "112"), ("XX", "112")])
async def test_the_emergency_number_depends_on_the_region(embedded: str, region: str, number: str) -> None:
    monitor = replace(a_monitor(), wording=wording.load(shipped_config() / "safety", region))
    async with (
        an_orchestrator(embedded, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask(CHEST)

        assert number in of_type(SENTENCE, frames)[0].body["text"]
