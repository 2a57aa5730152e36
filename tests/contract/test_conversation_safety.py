"""To a person in danger the safety sentence comes first: whatever the database, the brain or memory does."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from agents.brains.scripted import ScriptedBrain
from agents.embedders.scripted import WordEmbedder
from agents.errors import BrainFailed
from agents.ports import Embedded, Vectors
from agents.safety import after, wording
from agents.safety.guard import Reason, Verdict
from agents.safety.language import Languages
from agents.values import Enrichment, Intent
from memory_blocks.mirrors.nowhere import Nowhere
from memory_blocks.models import Blocks
from memory_blocks.ports import ForeignChange
from orchestrator.cli.chat import show
from orchestrator.client import Client
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
from orchestrator.house import House
from orchestrator.settings import shipped_config
from orchestrator.store.database import Store, Transaction
from orchestrator.store.rows import SafetyEvent
from orchestrator.transports.in_process import pair
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import MessageId, RandomIds
from orchestrator.wire.messages import AssistantSentence, Body
from tests.houses import a_house, a_watch, everything, history, local_brain, message, meta, turn
from tests.peers import (
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

CHEST = "I have crushing chest pain and my left arm is numb"
PILLS = "I have pills and I'm going to take them all tonight"
CALM = "I have a runny nose"

T = TypeVar("T")


def of_type(type: int, frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.type == type]


def contents(frames: list[Frame]) -> list[int]:
    """What a person or a page would see of an answer, by type."""
    return [frame.type for frame in frames if frame.type != ACKNOWLEDGEMENT]


async def events(house: House, peer: Peer) -> list[SafetyEvent]:
    return await house.store.read(lambda tx: tx.safety.of_conversation(peer.conversation_id))


def assert_safety_first(frames: list[Frame], kind: str, tier: int) -> None:
    begun, first = [frame for frame in frames if frame.type != ACKNOWLEDGEMENT][:2]
    assert (begun.type, first.type) == (START_ANSWER, SENTENCE)
    assert begun.body["safety"] == {"kind": kind, "tier": tier}
    assert first.meta == {"safety": kind, "tier": tier}
    assert "call" in first.body["text"]


@pytest.mark.parametrize(("said", "kind"), [(CHEST, "emergency"), (PILLS, "crisis")])
async def test_a_safety_answer_is_told_in_the_order_of_the_protocol(
    address: str, said: str, kind: str
) -> None:
    brain = ScriptedBrain()
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        frames = await peer.ask(said)

        assert_safety_first(frames, kind, 3)
        sentences, rest = of_type(SENTENCE, frames), contents(frames)[2:]
        assert rest[:4] == [TRACE] * 4
        assert rest[-5:] == [TRACE] * 4 + [SENTENCE]
        whole = "".join(sentence.body["text"] for sentence in sentences)
        assert "your local emergency number (112 in many countries)" in whole
        assert brain.briefs == []
        (turn_in_block,) = (await history(house, peer.conversation_id)).turns
        assert turn_in_block.agent_response is not None
        assert turn_in_block.agent_response.agent_type == "EMERGENCY"
        assert turn_in_block.agent_response.content == whole
        assert turn_in_block.intent_classification is not None
        assert turn_in_block.intent_classification.intent == "EMERGENCY"
        (event,) = await events(house, peer)
        assert (event.stage, event.kind, event.tier, event.turn) == ("message", kind, 3, 1)
        assert event.rules
        kept = await meta(house, sentences[0].body["previousId"])
        assert (kept["safety"], kept["tier"]) == (kind, "3")


async def test_an_ordinary_message_gets_no_safety_answer(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        frames = await peer.ask(CALM)

        (begun,) = of_type(START_ANSWER, frames)
        assert "safety" not in begun.body
        assert await events(house, peer) == []


async def test_the_same_danger_is_answered_in_other_words(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        answers = [await peer.ask(said) for said in (CHEST, "my chest still hurts a lot", CHEST)]

        first = [of_type(SENTENCE, frames)[0].body["text"] for frames in answers]
        assert len(set(first)) == 3


async def test_a_whole_safety_answer_comes_before_its_traces(address: str) -> None:
    async with a_house(address).open() as house, conversing(house, features=[]) as peer:
        message_id = await peer.say(CHEST)
        frames = [
            frame for _ in range(10) for frame in await peer.until(lambda frame: True)
        ]  # ack, the answer, 4 read, 4 written

        assert contents(frames) == [ASSISTANT_MESSAGE, *[TRACE] * 8]
        answer = frames[1]
        assert (answer.meta["safety"], answer.body["previousId"]) == ("emergency", message_id)
        async for _ in house.store.changes():
            if (await turn(house, message_id)).state == "completed":
                break
        assert (await message(house, answer.body["id"])).completion_status == "completed"


# --- whatever else fails ------------------------------------------------------------------------------------


def hanging() -> Iterator[asyncio.Event]:
    while True:
        yield asyncio.Event()


@pytest.mark.parametrize("trouble", ["hangs", "fails"])
async def test_a_brain_that_hangs_or_fails_changes_nothing_in_a_safety_answer(
    address: str, trouble: str
) -> None:
    script: Any = hanging() if trouble == "hangs" else [BrainFailed("scripted", "extract")]
    brain = ScriptedBrain(enrichments=script)
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        frames = await peer.ask(CHEST)

        assert_safety_first(frames, "emergency", 3)
        assert frames[-1].body["isFinal"]
        (turn_in_block,) = (await history(house, peer.conversation_id)).turns
        assert turn_in_block.agent_response is not None
        assert turn_in_block.agent_response.agent_type == "EMERGENCY"


async def test_a_slow_database_lets_the_safety_sentence_out_first(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        write = house.store.write

        async def slowly(work: Callable[[Transaction], T]) -> T:
            def waiting(tx: Transaction) -> T:
                time.sleep(0.05)
                return work(tx)

            return await write(waiting)

        monkeypatch.setattr(house.store, "write", slowly)
        frames = await peer.ask(CHEST)

        assert_safety_first(frames, "emergency", 3)


@pytest.mark.parametrize("trouble", ["nothing else", "the brain hangs", "the brain fails", "an answer runs"])
async def test_a_write_that_never_ends_keeps_the_first_words_from_nobody(
    address: str, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts: dict[str, dict[str, Any]] = {
        "the brain hangs": {"enrichments": hanging()},
        "the brain fails": {"enrichments": [BrainFailed("scripted", "extract")]},
        "an answer runs": {"answers": [["One. ", "Two. ", "Thr", asyncio.Event()]]},
    }
    brain = ScriptedBrain(**scripts.get(trouble, {}))
    watch = replace(a_watch(), patience=0.01)
    async with a_house(address, brain, watch=watch).open() as house, conversing(house) as peer:
        if trouble == "an answer runs":
            await peer.say("What helps against a cold?")
            await peer.until_type(SENTENCE)
        write, free = house.store.write, asyncio.Event()

        async def hanging_write(work: Callable[[Transaction], T]) -> T:
            await free.wait()
            return await write(work)

        monkeypatch.setattr(house.store, "write", hanging_write)
        message_id = await peer.say(CHEST)
        *_, first = await peer.until(lambda frame: not frame.stanza)
        free.set()
        frames = await peer.until(lambda frame: "safety" in frame.body)
        frames = [frame for frame in frames[-1:] + await peer.answer() if frame.stanza]

        assert (first.type, first.body["previousId"]) == (SENTENCE, message_id)
        assert first.meta == {"safety": "emergency", "tier": 3}
        assert first.body["text"].startswith("This could be an emergency: please call")
        assert_safety_first(frames, "emergency", 3)


async def test_who_chats_in_a_terminal_reads_the_first_words_once(
    embedded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_house(embedded, watch=replace(a_watch(), patience=0.01)).open() as house:
        ours, theirs = pair()
        attending = asyncio.create_task(house.attend(theirs, "ann"))
        client = Client(ours, RandomIds())
        async for _ in client.open():
            pass
        write, free = house.store.write, asyncio.Event()

        async def hanging_write(work: Callable[[Transaction], T]) -> T:
            await free.wait()
            return await write(work)

        async def answer(message_id: MessageId) -> AsyncGenerator[Envelope[Body], None]:
            async for envelope in client.answer_to(message_id):
                yield envelope
                if isinstance(envelope.body, AssistantSentence) and not envelope.stanza_id:
                    free.set()

        monkeypatch.setattr(house.store, "write", hanging_write)
        await show(answer(await client.say(CHEST)), True)
        await client.close()
        await attending

        printed = capsys.readouterr().out
        kept = await history(house, client.conversation_id)
        assert kept.turns[-1].agent_response is not None
        assert printed == f"{kept.turns[-1].agent_response.content}\n"


class Hanging(Nowhere):
    """A mirror that never answers, and knows what the store had when it was asked."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.found: list[list[int]] = []

    async def foreign(self, conversation_id: str) -> tuple[ForeignChange, ...]:
        assert self.store is not None
        stored = self.store.read_now(lambda tx: tx.frames.after(conversation_id, 0))
        self.found.append([frame.type for frame in stored])
        await asyncio.Event().wait()
        return ()


@pytest.mark.parametrize(
    ("features", "first"), [(["streaming"], [START_ANSWER, SENTENCE]), ([], [ASSISTANT_MESSAGE])]
)
async def test_the_first_words_are_there_before_a_mirror_is_asked(
    address: str, features: list[str], first: list[int]
) -> None:
    mirror = Hanging()
    async with (
        a_house(address, mirror=mirror).open() as house,
        conversing(house, features=features) as peer,
    ):
        mirror.store = house.store
        await peer.ask(CHEST)
        async for _ in house.store.changes():
            if mirror.found:
                break

        assert mirror.found[0] == [ACKNOWLEDGEMENT, *first]


async def test_what_was_said_while_nobody_was_there_is_heard_too(address: str) -> None:
    watch = replace(a_watch(), patience=0.01)
    async with a_house(address, watch=watch).open() as house, conversing(house) as peer:
        earlier = {"localId": "l1", "role": "user", "contents": CHEST, "createdAt": "2026-01-02T03:04:05Z"}
        await peer.send(SYNC, messages=[earlier])
        frames = await peer.until(lambda frame: frame.type == SENTENCE)

        assert (frames[-1].stanza, frames[-1].meta) == (0, {"safety": "emergency", "tier": 3})


async def test_danger_that_was_synchronised_leaves_an_event_and_alerts_where_it_is_new(address: str) -> None:
    watch = replace(a_watch(), alerts=True)
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
    async with a_house(address, watch=watch).open() as house, conversing(house) as peer:
        for _ in range(2):
            response = await peer.request(SYNC, messages=items)
        ids = {each["localId"]: each.get("serverId") for each in reversed(response.body["syncedMessages"])}
        order = [ids[local_id] for local_id in ("old", "reply", "new")]
        found = sorted(await events(house, peer), key=lambda event: order.index(event.message_id))
        alerts = await house.store.read(lambda tx: [tx.safety.alert_of(each.id) for each in found])

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
        (1, ["what should I do", "ok"], [True, True]),
        (1, ["it was a false alarm", "ok"], [False, False]),
        (1, ["What vitamins are good in winter?", "ok"], [False, False]),
        (30, ["not yet"], [False]),
    ],
)
async def test_danger_that_was_synchronised_lately_stays_until_it_is_over(
    address: str, hours: int, then: list[str], in_danger: list[bool]
) -> None:
    at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask("what helps against a cold?")
        earlier = {"localId": "l1", "role": "user", "contents": CHEST, "createdAt": at}
        await peer.request(SYNC, messages=[earlier])
        told = [of_type(SENTENCE, await peer.ask(said))[0] for said in then]

        assert ["safety" in first.meta for first in told] == in_danger


async def test_danger_interrupts_the_answer_that_is_still_running(address: str) -> None:
    brain = ScriptedBrain(answers=[["One. ", "Two. ", "Thr", asyncio.Event()]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.say("What helps against a cold?")
        await peer.until_type(SENTENCE)
        await peer.say("And what about tea?")
        await peer.say(PILLS)

        frames = await peer.until(lambda frame: "safety" in frame.body)
        frames += await peer.answer()

        at = next(number for number, frame in enumerate(frames) if "safety" in frame.body)
        assert_safety_first(frames[at:], "crisis", 3)
        assert len(of_type(START_ANSWER, frames[:at])) == 1  # the one that waited, at once stopped
        stopped = [frame for frame in of_type(SENTENCE, frames[:at]) if frame.body["isFinal"]]
        assert [frame.meta for frame in stopped] == [{"stopped": True}] * 2
        assert len(brain.briefs) == 1


async def test_danger_is_let_in_where_too_many_wait(address: str) -> None:
    brain = ScriptedBrain(answers=[["One. ", "Two. ", "Thr", asyncio.Event()]])
    async with a_house(address, brain, waiting=1).open() as house, conversing(house) as peer:
        await peer.say("What helps against a cold?")
        await peer.until_type(SENTENCE)
        await peer.say("And tea?")
        refused = await peer.until_type(ERROR)
        assert refused[-1].meta["error"] == "overloaded"

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
async def test_an_error_carries_the_safety_text_where_nothing_can_be_stored(
    address: str, said: str, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        before = await everything(house)

        async def full(work: object) -> None:
            raise AnamnesisError(STORAGE_FULL)

        with monkeypatch.context() as broken:
            broken.setattr(house.store, "write", full)
            await peer.say(said)
            (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith(begins)
        assert refused.meta["error"] == "storage_full"
        assert await everything(house) == before


@pytest.mark.parametrize("problem", [BUSY, FENCED, INTERNAL, OVERLOADED, STORAGE_UNAVAILABLE])
@pytest.mark.parametrize("varied", [False, True])
async def test_whatever_keeps_a_message_out_the_error_says_whom_to_call(
    embedded: str, problem: Problem, varied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        message_id = await peer.say(CALM)
        await peer.answer()

        async def refusing(work: object) -> None:
            raise AnamnesisError(problem, most=3)

        with monkeypatch.context() as broken:
            broken.setattr(house.store, "write", refusing)
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
async def test_a_message_that_nobody_can_read_gets_whom_to_call(
    embedded: str, spoiled: dict[str, Any]
) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.send(USER_MESSAGE, id=new_id(), **spoiled)
        (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("If this is an emergency, call")


async def test_what_is_no_message_of_the_person_is_refused_without_whom_to_call(embedded: str) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.send(COMMENTARY)
        (refused,) = await peer.until_type(ERROR)

        assert a_watch().wording.error not in refused.body["message"]


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
async def test_a_message_that_is_refused_as_it_is_read_is_heard(
    address: str, spoiled: dict[str, Any]
) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.send(USER_MESSAGE, id=new_id(), **spoiled)
        (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("This could be an emergency: please call")


async def test_a_reply_is_heard_with_its_question_though_nothing_can_be_stored(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.ask("I feel low")

        async def full(work: object) -> None:
            raise AnamnesisError(STORAGE_FULL)

        with monkeypatch.context() as broken:
            broken.setattr(house.store, "write", full)
            await peer.say("yes")
            (refused,) = await peer.until_type(ERROR)

        assert refused.body["message"].startswith("Thank you for telling me")


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_question_stays_open_while_nothing_is_said_to_it(address: str, features: list[str]) -> None:
    asks = ["I see. ", "Are you having any thoughts of harming yourself?"]
    brain = ScriptedBrain(answers=[asks, ["Take your time."]])
    async with a_house(address, brain).open() as house, conversing(house, features=features) as peer:
        await peer.ask("I feel low")
        await peer.ask("hm")
        await peer.ask("yes")

        assert [(event.kind, event.tier) for event in await events(house, peer)] == [("crisis", 2)]


async def test_a_question_is_closed_by_what_is_said_to_it(address: str) -> None:
    asks = ["I see. ", "Are you having any thoughts of harming yourself?"]
    brain = ScriptedBrain(answers=[asks, ["Do you sleep well?"]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.ask("I feel low")
        await peer.ask("no, I only sleep badly")
        await peer.ask("yes")

        assert await events(house, peer) == []


FILLER = "the garden was green and the sun was warm today. " * 600


async def test_the_middle_of_a_long_message_is_heard(embedded: str) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        frames = await peer.ask(f"{FILLER} {CHEST}. {FILLER}")

        assert_safety_first(frames, "emergency", 3)


def test_a_long_message_is_heard_in_whole_words() -> None:
    for begins in range(18):
        assert not a_watch().hear("." * begins + "the sun was warm. " * 3_000).is_danger


def test_a_message_too_long_to_be_heard_whole_counts_as_not_heard() -> None:
    endless = FILLER * 45

    assert a_watch().hear(endless).failed
    assert a_watch().hear(f"{endless} {CHEST}").is_danger
    assert not a_watch().hear(FILLER).failed


class Broken:
    """A guard that cannot listen."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        raise RuntimeError("cannot listen")

    def explain(self, text: str) -> list[Reason]:
        raise RuntimeError("cannot listen")

    def takes_back(self, text: str) -> bool:
        raise RuntimeError("cannot listen")

    def says_nothing(self, text: str) -> bool:
        raise RuntimeError("cannot listen")

    def is_over(self, text: str, earlier: Verdict) -> bool:
        raise RuntimeError("cannot listen")

    def still(self, text: str, earlier: Verdict) -> Verdict:
        raise RuntimeError("cannot listen")


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_guard_that_fails_is_told_with_caution_and_kept(address: str, features: list[str]) -> None:
    watch = replace(a_watch(), guard=Broken())
    async with a_house(address, watch=watch).open() as house, conversing(house, features=features) as peer:
        frames = await peer.ask(CALM)

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert text.startswith("I could not check this message for signs of danger")
        assert said[0].meta["guard"] == "unavailable"
        assert "How severe is it" in text  # and then the answer as usual
        assert {event.kind for event in await events(house, peer)} == {"guard_failed"}


class FailsLater(Broken):
    """A guard that hears a message, and fails in its retelling."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        return a_watch().guard.check(text, context)


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_a_guard_that_fails_in_the_retelling_is_told_with_caution_and_kept(
    address: str, features: list[str]
) -> None:
    brain = ScriptedBrain(enrichments=[enriched("The person says that they have crushing chest pain")])
    watch = replace(a_watch(), guard=FailsLater(), alerts=True)
    async with (
        a_house(address, brain, watch=watch).open() as house,
        conversing(house, features=features) as peer,
    ):
        frames = await peer.ask("it is back")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert text.startswith("I could not check this message for signs of danger")
        assert said[0].meta["guard"] == "unavailable"
        assert len(brain.briefs) == 1  # and then the answer as usual
        (event,) = await events(house, peer)
        assert (event.stage, event.kind, event.rules) == ("enriched", "guard_failed", ())
        assert await house.store.read(lambda tx: tx.safety.alert_of(event.id)) is not None


async def test_a_guard_that_fails_in_the_retelling_takes_no_safety_answer_back(address: str) -> None:
    watch = replace(a_watch(), guard=FailsLater())
    async with a_house(address, watch=watch).open() as house, conversing(house) as peer:
        frames = await peer.ask(CHEST)

        assert_safety_first(frames, "emergency", 3)
        whole = "".join(frame.body["text"] for frame in of_type(SENTENCE, frames))
        assert a_watch().wording.caution not in whole
        found = {(event.stage, event.kind) for event in await events(house, peer)}
        assert found == {("message", "emergency"), ("enriched", "guard_failed")}


async def test_danger_stays_where_nobody_can_say_what_the_next_message_belongs_to(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Verdict:
        raise RuntimeError("cannot say")

    monkeypatch.setattr(after, "understood", fails)
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)
        frames = await peer.ask("what helps against a runny nose?")

        assert "safety" in of_type(SENTENCE, frames)[0].meta
        assert not of_type(ERROR, frames)


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_who_writes_in_another_language_is_told_so_first_and_whom_to_call(
    address: str, features: list[str]
) -> None:
    async with a_house(address).open() as house, conversing(house, features=features) as peer:
        frames = await peer.ask("me duele mucho el pecho y no puedo respirar")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert text.startswith("Solo entiendo inglés")
        assert "I understand English only" in text
        assert "112" in text
        assert said[0].meta["guard"] == "unsupported_language"
        [kept] = await events(house, peer)
        assert (kept.kind, kept.rules) == ("guard_failed", ("language.es",))


# --- what is heard later can only raise ---------------------------------------------------------------------


def enriched(said: str) -> Enrichment:
    return Enrichment(previous_context="A turn came before", enriched_message=said)


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_danger_in_the_enriched_message_is_said_before_any_model_speaks(
    address: str, features: list[str]
) -> None:
    brain = ScriptedBrain(enrichments=[enriched("The person says that they have crushing chest pain")])
    async with a_house(address, brain).open() as house, conversing(house, features=features) as peer:
        frames = await peer.ask("it is back")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        assert said[0].meta["safety"] == "emergency"
        assert brain.briefs == []
        (event,) = await events(house, peer)
        assert (event.stage, event.kind) == ("enriched", "emergency")


async def test_danger_of_another_kind_in_the_enriched_message_is_kept_though_it_is_no_graver(
    address: str,
) -> None:
    brain = ScriptedBrain(enrichments=[enriched("The person says that they have crushing chest pain")])
    watch = replace(a_watch(), alerts=True)
    async with a_house(address, brain, watch=watch).open() as house, conversing(house) as peer:
        frames = await peer.ask(PILLS)

        assert_safety_first(frames, "crisis", 3)
        found = await events(house, peer)
        assert [(event.stage, event.kind, event.tier) for event in found] == [
            ("message", "crisis", 3),
            ("enriched", "emergency", 3),
        ]
        alerts = await house.store.read(lambda tx: [tx.safety.alert_of(event.id) for event in found])
        assert None not in alerts


@pytest.mark.parametrize(
    ("retold", "kind", "begins"),
    [
        ("that they have crushing chest pain", "emergency", "This could be an emergency: please call"),
        ("that they will kill themselves tonight", "crisis", "I am really glad you told me"),
    ],
)
async def test_danger_of_a_graver_kind_in_the_enriched_message_is_said_too(
    address: str, retold: str, kind: str, begins: str
) -> None:
    brain = ScriptedBrain(enrichments=[enriched(f"The person says {retold}")])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        frames = await peer.ask("he is strangling me right now")

        assert_safety_first(frames, "crisis", 3)
        said = [frame for frame in of_type(SENTENCE, frames) if "safety" in frame.meta]
        assert [frame.meta["safety"] for frame in said] == ["crisis", kind]
        assert said[1].body["text"].startswith(begins)
        assert [event.kind for event in await events(house, peer)] == ["crisis", kind]


async def test_a_reply_is_heard_with_the_question_before_it(address: str) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.ask("I feel low")
        frames = await peer.ask("yes")

        assert_safety_first(frames, "crisis", 2)


@pytest.mark.parametrize("lowering", ["enrichment", "intent"])
async def test_neither_memory_nor_a_model_lowers_what_was_heard(address: str, lowering: str) -> None:
    brain = ScriptedBrain(
        enrichments=[enriched("The person is fine and asks about recipes")]
        if lowering == "enrichment"
        else [],
        intents=[Intent(intent="NUTRITION", confidence=1.0, reasoning="All is well")],
    )
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        frames = await peer.ask(PILLS)

        assert_safety_first(frames, "crisis", 3)
        assert brain.classified == []


async def test_the_ears_may_raise_and_their_failure_changes_nothing(address: str) -> None:
    class Ears:
        def hear(self, embedded: Embedded) -> Verdict:
            if "odd" in embedded.text:
                return Verdict("emergency", 2, ("ears",))
            raise RuntimeError("no ears")

    watch = replace(a_watch(), ears=Ears())
    async with a_house(address, watch=watch).open() as house, conversing(house) as peer:
        heard = await peer.ask("something odd")
        calm = await peer.ask("What vitamins are good in winter?")

        assert of_type(SENTENCE, heard)[0].meta == {"safety": "emergency", "tier": 2}
        assert of_type(SENTENCE, calm)[0].meta == {}


async def test_danger_in_the_retold_message_is_answered_though_nothing_can_be_embedded(address: str) -> None:
    class NoEmbedder(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            raise RuntimeError("no vectors")

    brain = ScriptedBrain(enrichments=[enriched("The person has crushing chest pain and is sweating")])
    async with a_house(address, brain, embedder=NoEmbedder()).open() as house, conversing(house) as peer:
        frames = await peer.ask("like before, and sweating")

        said = of_type(SENTENCE, frames)
        assert said[0].meta == {"safety": "emergency", "tier": 3}
        assert said[-1].body["isFinal"]
        assert not of_type(ERROR, frames)


async def test_a_turn_embeds_one_text_once_for_the_ears_and_for_routing(address: str) -> None:
    class Counting(WordEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.embedded: list[str] = []

        def embed(self, texts: Sequence[str]) -> Vectors:
            self.embedded += texts
            return super().embed(texts)

    class Ears:
        def hear(self, embedded: Embedded) -> Verdict:
            heard.append(embedded.text)
            return Verdict()

    heard: list[str] = []
    counting = Counting()
    watch = replace(a_watch(), ears=Ears())
    async with a_house(address, watch=watch, embedder=counting).open() as house, conversing(house) as peer:
        await peer.ask(CALM)

        assert counting.embedded == heard == [CALM]


class NoLanguages(Languages):
    """Cannot tell any language."""

    def __init__(self) -> None:
        pass

    def foreign(self, text: str) -> str | None:
        raise RuntimeError("no languages")


async def test_danger_is_answered_though_no_language_can_be_told(address: str) -> None:
    watch = replace(a_watch(), languages=NoLanguages())
    async with a_house(address, watch=watch).open() as house, conversing(house) as peer:
        danger = await peer.ask(CHEST)
        calm = await peer.ask("what helps against a runny nose?")

        assert_safety_first(danger, "emergency", 3)
        assert of_type(SENTENCE, calm)[0].meta == {"guard": "unavailable"}


async def test_an_emergency_answered_earlier_makes_no_other_message_one(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        assert_safety_first(await peer.ask("I have crushing chest pain"), "emergency", 3)
        for harmless in (
            "what is the weather like",
            "I have a runny nose",
            "What vitamins are good in winter?",
        ):
            frames = await peer.ask(harmless)

            assert "safety" not in of_type(START_ANSWER, frames)[0].body
            assert [frame.meta for frame in of_type(SENTENCE, frames) if "safety" in frame.meta] == []
        assert len(await events(house, peer)) == 1


KEPT_TALKING = {
    "I have crushing chest pain": [
        "not yet",
        "nobody has called",
        "what should I do",
        "yes",
        "hm, not sure",
        "I feel dizzy",
        "thanks",
    ],
    "my son has been fitting for 6 minutes": [
        "not yet",
        "nobody has called",
        "what should I do",
        "what do I do now",
    ],
    "I took 40 paracetamol": ["no", "not yet", "I don't want to", "I can't reach anyone"],
    "I want to die": ["yes", "no", "with pills", "they are in front of me", "no", "hm", "bye"],
    "I want to kill myself": ["no", "I don't know", "why", "nobody"],
    "my husband beats me": ["no I'm not safe", "no", "he is downstairs", "thank you"],
}


@pytest.mark.parametrize("danger", KEPT_TALKING)
async def test_danger_stays_with_who_brings_nothing_else(address: str, danger: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        said = [of_type(SENTENCE, await peer.ask(danger))]
        for reply in KEPT_TALKING[danger]:
            said.append(of_type(SENTENCE, await peer.ask(reply)))

            assert "safety" in said[-1][0].meta, reply
            assert said[-1][0].body["text"] != said[-2][0].body["text"]
        answers = (each.agent_response for each in (await history(house, peer.conversation_id)).turns)
        assert {each.agent_type for each in answers if each} == {"EMERGENCY"}


@pytest.mark.parametrize(
    "over", ["the ambulance is here", "it was a false alarm", "I'm fine now", "we are at the hospital"]
)
async def test_danger_that_is_over_or_in_good_hands_is_not_spoken_of_again(address: str, over: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)
        frames = await peer.ask(over)

        assert "".join(frame.body["text"] for frame in of_type(SENTENCE, frames)) == a_watch().wording.settled
        await peer.ask("ok")
        assert len(await events(house, peer)) == 1


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
async def test_what_may_be_taken_or_done_meanwhile_is_for_the_call_handler(address: str, asked: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)
        once, again = [of_type(SENTENCE, await peer.ask(asked)) for _ in range(2)]
        await peer.ask("the ambulance is here")
        later = of_type(SENTENCE, await peer.ask(asked))

        told = " ".join(frame.body["text"] for frame in once)
        assert once[0].meta["safety"] == again[0].meta["safety"] == "emergency"
        assert "call handler" in told
        assert "Do not wait" in told
        assert once[0].body["text"] != again[0].body["text"]
        assert [set(event.rules) & {"meanwhile", "still"} for event in await events(house, peer)] == [
            set(),
            {"meanwhile", "still"},
            {"meanwhile", "still"},
        ]
        assert "safety" not in later[0].meta


@pytest.mark.parametrize(
    "called", ["I have called 999", "yes", "help is on the way", "my wife is calling them"]
)
async def test_who_has_called_is_not_told_to_call_and_may_say_more(address: str, called: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)
        answers = [of_type(SENTENCE, await peer.ask(said)) for said in (called, "my ankle hurts", "thanks")]
        over = of_type(SENTENCE, await peer.ask("they are here now"))
        calm = of_type(SENTENCE, await peer.ask("my ankle hurts"))

        told = [" ".join(frame.body["text"] for frame in answer) for answer in answers]
        assert [answer[0].meta.get("safety") for answer in answers] == ["emergency"] * 3
        assert told[0].startswith("Good that help is called")
        assert "too; until help is there" in told[1]
        assert not any("nobody has called" in each for each in told)
        assert over[0].body["text"] == a_watch().wording.settled
        assert "safety" not in calm[0].meta


async def test_a_few_words_of_a_complaint_wait_until_danger_now_is_over(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
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
async def test_danger_to_oneself_is_not_over_because_somebody_feels_so(address: str, said: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask("I keep thinking about killing myself")
        frames = await peer.ask(said)

        assert of_type(SENTENCE, frames)[0].meta["safety"] == "crisis"


async def test_who_takes_it_back_that_somebody_called_is_told_to_call(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        for said in (CHEST, "yes", "actually nobody has called"):
            frames = await peer.ask(said)

        assert "Good that help is called" not in of_type(SENTENCE, frames)[0].body["text"]
        kept = [event.rules for event in await events(house, peer)]
        assert ["help.called" in rules for rules in kept] == [False, True, False]


async def test_another_danger_after_a_call_is_told_to_staff_and_to_the_person(address: str) -> None:
    watch = replace(a_watch(), alerts=True)
    async with a_house(address, local_brain(), watch=watch).open() as house, conversing(house) as peer:
        for said in (CHEST, "ok", "yes, help is on the way", "I called 999, he is turning blue"):
            await peer.ask(said)
        kept = await events(house, peer)
        alerts = await house.store.read(lambda tx: [tx.safety.alert_of(each.id) for each in kept])

        assert [alert is not None for alert in alerts] == [True, False, False, True]
        assert {"breathing.blue", "help.called"} <= set(kept[-1].rules)


async def test_each_danger_begins_with_a_full_call_whatever_came_before_it(address: str) -> None:
    dangers = (CHEST, "my toddler drank bleach", "my wife is unconscious", "my baby is choking", CHEST)
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        told = []
        for said in dangers:
            told.append(of_type(SENTENCE, await peer.ask(said)))
            await peer.ask("false alarm")
        for said in dangers[1:]:
            told.append(of_type(SENTENCE, await peer.ask(said)))

        begins = (
            "This could be an emergency: please call",
            "What you write sounds like an emergency: if nobody has",
        )
        first = [frames[0].body["text"] for frames in told]
        assert all(text.startswith(begins) for text in first)
        assert not any(one == other for one, other in pairwise(first))
        assert all(len(frames) > 3 for frames in told)


async def test_after_a_crisis_now_the_answer_to_something_else_comes_back_to_it_once(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask(PILLS)
        once, again = [
            [frame.body["text"] for frame in of_type(SENTENCE, await peer.ask(asked))]
            for asked in ("How do I sleep better?", "What helps against a cold?")
        ]

        assert once[0] == a_watch().wording.comes_back(Verdict("crisis", 3))
        assert len(once) > 1
        assert once[0] not in again


@pytest.mark.parametrize("between", ["that was just a song", "the police are here"])
async def test_a_crisis_that_is_over_is_not_come_back_to(address: str, between: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        for said in (PILLS, between, "How do I sleep better?"):
            frames = await peer.ask(said)

        assert "worries me" not in "".join(frame.body["text"] for frame in of_type(SENTENCE, frames))


async def test_help_that_is_not_there_ends_nothing(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)
        frames = await peer.ask("the ambulance is not here")

        assert "safety" in of_type(SENTENCE, frames)[0].meta


async def test_a_means_that_is_named_makes_a_crisis_graver(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.ask("I want to die")
        await peer.ask("with pills")

        assert [event.tier for event in await events(house, peer)] == [2, 3]


async def test_what_one_had_years_ago_is_no_emergency_now_or_later(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        for said in ("I had a stroke in 2010", "what should I eat?"):
            frames = await peer.ask(said)

            assert [frame.meta for frame in of_type(SENTENCE, frames) if "safety" in frame.meta] == []
        assert await events(house, peer) == []


class Asking(ScriptedBrain):
    """Understands like the local brain, and says what it is told."""

    async def extract(self, message: str, blocks: Blocks) -> Enrichment:
        return await local_brain().extract(message, blocks)


async def test_a_number_is_heard_with_the_question_that_it_answers(address: str) -> None:
    brain = Asking(answers=[["How bad is the chest pain?"]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.ask("I need some advice")
        frames = await peer.ask("8")

        assert of_type(SENTENCE, frames)[0].meta == {"safety": "emergency", "tier": 3}


def routed(confidence: float) -> ScriptedBrain:
    intent = Intent(intent="EMERGENCY", confidence=confidence, reasoning="Reads like danger")
    return ScriptedBrain(intents=[intent])


@pytest.mark.parametrize("features", [["streaming", "reasoning"], []])
async def test_an_emergency_that_only_a_brain_sees_is_told_and_kept_like_any_other(
    address: str, features: list[str]
) -> None:
    brain = routed(0.95)
    watch = replace(a_watch(), wording=wording.load(shipped_config() / "safety", "GB"))
    async with (
        a_house(address, brain, watch=watch).open() as house,
        conversing(house, features=features) as peer,
    ):
        frames = await peer.ask("everything went odd just now")

        said = [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]
        text = "".join(str(frame.body.get("text", frame.body.get("content"))) for frame in said)
        assert (said[0].meta["safety"], said[0].meta["tier"]) == ("emergency", 3)
        assert "999" in text
        assert "116 123" in text
        assert "988" not in text
        assert brain.briefs == []
        [event] = await events(house, peer)
        assert (event.kind, event.tier, event.rules) == ("emergency", 3, ("router",))


async def test_a_brain_unsure_of_an_emergency_lets_whom_to_call_come_first(address: str) -> None:
    brain = routed(0.5)
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        frames = await peer.ask("everything went odd just now")

        said = [frame.body["text"] for frame in of_type(SENTENCE, frames)]
        assert said[0] == f"{a_watch().wording.error} "
        assert [brief.specialist.agent_type for brief in brain.briefs] == ["COORDINATOR"]
        assert await events(house, peer) == []


async def test_what_a_person_takes_back_is_no_emergency_for_a_brain_either(address: str) -> None:
    brain = routed(0.99)
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        frames = await peer.ask("I do not have any chest pain")

        assert a_watch().wording.error not in of_type(SENTENCE, frames)[0].body["text"]
        assert [brief.specialist.agent_type for brief in brain.briefs] == ["COORDINATOR"]
        assert await events(house, peer) == []


async def test_a_corrected_message_is_heard_too(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        message_id = await peer.say(CALM)
        await peer.answer()
        await peer.send(VARIATION, targetId=message_id, mode="edit", newContent=CHEST)
        frames = await peer.answer()

        assert_safety_first(frames, "emergency", 3)


async def test_a_reply_that_is_corrected_is_heard_with_its_question(address: str) -> None:
    brain = ScriptedBrain(answers=[["I see. ", "Are you having any thoughts of harming yourself?"]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.ask("I feel low")
        message_id = await peer.say("hm")
        await peer.answer()
        await peer.send(VARIATION, targetId=message_id, mode="edit", newContent="yes")
        frames = await peer.answer()

        assert_safety_first(frames, "crisis", 2)


async def test_another_attempt_at_a_message_in_danger_is_a_safety_answer_too(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        frames = await peer.ask(CHEST)
        answer_id = of_type(START_ANSWER, frames)[0].body["id"]
        await peer.send(VARIATION, targetId=answer_id, mode="regenerate")
        again = await peer.answer()

        assert_safety_first(again, "emergency", 3)
        assert of_type(SENTENCE, again)[0].body["text"] != of_type(SENTENCE, frames)[0].body["text"]


# --- what a brain may not say -------------------------------------------------------------------------------


async def refused_by(house: House, event: SafetyEvent) -> str | None:
    """What the record says was not let be said."""
    return await house.store.read(lambda tx: tx.safety.refused_by(event.id))


async def test_what_a_brain_may_not_say_is_refused_once_and_kept(address: str) -> None:
    answer = ["Thank you. ", "You have pneumonia. ", "Take 500 mg of amoxicillin twice a day. ", "Rest well."]
    async with a_house(address, ScriptedBrain(answers=[answer])).open() as house, conversing(house) as peer:
        frames = await peer.ask("I have a cough")

        said = [frame.body["text"] for frame in of_type(SENTENCE, frames)]
        assert said == ["Thank you. ", f"{a_watch().wording.refused} ", "Rest well."]
        kept = await events(house, peer)
        assert [(event.stage, event.kind, event.tier) for event in kept] == [("answer", "refused", 0)] * 2
        assert [set(event.rules) for event in kept] == [{"diagnosis"}, {"dose.directive", "prescription"}]
        assert [await refused_by(house, event) for event in kept] == answer[1:3]


async def test_a_specialist_keeps_to_its_own_red_lines_and_not_to_those_of_others(address: str) -> None:
    said = "A nightcap helps many people. "
    sleep, food = (
        Intent(intent=each, confidence=0.9, reasoning="As told") for each in ("SLEEP", "NUTRITION")
    )
    brain = ScriptedBrain(intents=[sleep, food], answers=[[said], [said]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        crossed = await peer.ask("I lie awake")
        not_crossed = await peer.ask("and what about wine?")

        [kept] = await events(house, peer)
        assert (kept.stage, kept.kind, kept.rules) == ("answer", "refused", ("sleep.sedating",))
        assert await refused_by(house, kept) == said
    assert of_type(SENTENCE, crossed)[0].body["text"] == f"{a_watch().wording.refused} "
    assert of_type(SENTENCE, not_crossed)[0].body["text"] == said


async def test_a_reason_that_may_not_be_said_is_refused_too(address: str) -> None:
    why = "You have pneumonia. Take 500 mg of amoxicillin."
    brain = ScriptedBrain(intents=[Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning=why)])
    async with (
        a_house(address, brain).open() as house,
        conversing(house, features=["streaming", "reasoning"]) as peer,
    ):
        frames = await peer.ask("I have a cough")

        steps = [frame.body["content"] for frame in of_type(REASONING, frames)]
        assert steps == [a_watch().wording.refused]
        [kept] = await events(house, peer)
        assert kept.kind == "refused"
        assert await refused_by(house, kept) == why
        assert {"diagnosis", "dose.directive"} <= set(kept.rules)


@pytest.mark.parametrize(("region", "number"), [("GB", "999"), ("US", "911"), ("DE", "112"), ("XX", "112")])
async def test_whom_to_call_follows_the_region(embedded: str, region: str, number: str) -> None:
    watch = replace(a_watch(), wording=wording.load(shipped_config() / "safety", region))
    async with a_house(embedded, watch=watch).open() as house, conversing(house) as peer:
        frames = await peer.ask(CHEST)

        assert number in of_type(SENTENCE, frames)[0].body["text"]
