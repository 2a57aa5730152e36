"""When memories are made: in the background, resumable, within a budget, and never on the person's time."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.errors import ModelTrouble
from agents.models import usage
from agents.models.requests import USER, ModelRequest, Utterance
from agents.ports import NoTools, ToolUser
from orchestrator.errors import MEMORY_NOT_MADE, AnamnesisError
from orchestrator.ops.foreground import Foreground
from orchestrator.remember.creators.background import CLAIM_SECONDS, BackgroundMemories
from orchestrator.remember.creators.generation import RequestOrigin
from orchestrator.remember.creators.lineage import lineage
from orchestrator.remember.creators.model import Completion
from orchestrator.remember.ledger.files import FileLedger
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import ArchivedTurn
from tests.support.builders import CountedIds, HandClock, a_turn
from tests.support.memory.creators import HERE, ScriptedModel, a_creator, problems, talk, texts_of
from tests.support.stores import empty_store

IDLE = timedelta(minutes=30)
WAITING: dict[str, Any] = {
    "lookbackMessages": 2,
    "messagesBetweenChunks": 10,
    "chunkEstimatedTokenSize": 1000,
}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Store]:
    with empty_store(request.param, request, tmp_path) as url:
        store = Store.open(url, clock=clock, ids=CountedIds(), synchronous="OFF", connections=2)
        yield store
        store.close_now()


@pytest.fixture
def ledger(tmp_path: Path) -> FileLedger:
    return FileLedger(tmp_path / "memories")


def background(
    store: Store, ledger: FileLedger, holder: str = "proc_1", **changes: Any
) -> BackgroundMemories:
    creator, _ = a_creator(store, ledger, **{**WAITING, **changes})
    return BackgroundMemories(store, creator, idle=IDLE, seconds=60, holder=holder)


def say(store: Store, messages: int) -> list[str]:
    return talk(store, *(f"Message {number}." for number in range(messages)))


async def test_memories_are_made_after_some_messages_and_the_newest_wait(
    store: Store, ledger: FileLedger
) -> None:
    making = background(store, ledger)
    say(store, 11)
    await making.check()
    early = texts_of(ledger)
    say(store, 3)

    await making.check()

    (line,) = ledger.lines(HERE, "file")
    assert (early, len(line.messages)) == ([], 12)


async def test_when_a_session_pauses_nothing_waits(
    store: Store, ledger: FileLedger, clock: HandClock
) -> None:
    making = background(store, ledger)
    say(store, 3)
    await making.check()
    early = texts_of(ledger)
    clock.tick(IDLE.total_seconds())

    await making.check()

    assert early == []
    assert problems(store, ledger) == []


async def test_when_a_conversation_is_archived_nothing_waits(store: Store, ledger: FileLedger) -> None:
    making = background(store, ledger)
    say(store, 3)
    store.write_now(lambda tx: tx.conversations.update(HERE.id, status="archived"))

    await making.check()

    assert problems(store, ledger) == []


async def test_what_rotates_out_of_the_history_becomes_a_memory(store: Store, ledger: FileLedger) -> None:
    making = background(store, ledger)
    ids = say(store, 6)
    await making.check()
    early = texts_of(ledger)
    archive(store, 1, ids[0])

    await making.check()
    found = lineage(store, ledger, f"{HERE.id}:1")

    (line,) = ledger.lines(HERE, "file")
    assert (early, line.messages) == ([], tuple(ids[:4]))
    assert found["chunks"][0]["messages"][0]["archivedTurn"] == f"{HERE.id}:1"
    assert found["chunks"][0]["memories"][0]["id"] == line.memory_id == found["summary"]["memory"]


def archive(store: Store, number: int, message_id: str) -> None:
    """Let a turn leave the history block."""
    turn = a_turn(number).model_dump(mode="json")
    turn["user_message"]["message_id"] = message_id

    def work(tx: Transaction) -> None:
        tx.unit.insert(ArchivedTurn(HERE.id, number, json.dumps(turn), "0" * 64, True, tx.now))

    store.write_now(work)


async def test_another_process_goes_on_where_one_has_ended(
    store: Store, ledger: FileLedger, clock: HandClock
) -> None:
    say(store, 12)
    await background(store, ledger).check()
    say(store, 2)
    clock.tick(IDLE.total_seconds())

    await background(store, ledger).check()

    assert len({line.chunk for line in ledger.lines(HERE, "file")}) == 2
    assert problems(store, ledger) == []


async def test_a_conversation_that_failed_waits_longer_each_time(
    store: Store, ledger: FileLedger, clock: HandClock
) -> None:
    trouble = [AnamnesisError(MEMORY_NOT_MADE, rule="test") for _ in range(2)]
    model = ScriptedModel(*trouble)
    making = background(store, ledger, complete=model)
    say(store, 12)
    asked = []
    for seconds in (0, 59, 2, 60, 60):
        clock.tick(seconds)
        await making.check()
        asked.append(len(model.prompts))

    assert asked[:4] == [1, 1, 2, 2]
    assert asked[4] > 2
    assert len(ledger.lines(HERE, "file")) == 1


async def test_a_person_can_write_while_a_model_makes_memories(store: Store, ledger: FileLedger) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(prompt: str, caller: RequestOrigin) -> str:
        asked.set()
        await answered.wait()
        return "The person said something."

    making = background(store, ledger, complete=slow)
    say(store, 12)
    running = asyncio.create_task(making.check())
    await asked.wait()

    say(store, 2)
    answered.set()
    await running

    assert len(ledger.lines(HERE, "file")[0].messages) == 10


async def test_a_message_that_was_replaced_is_in_no_memory(store: Store, ledger: FileLedger) -> None:
    creator, _ = a_creator(store, ledger)
    wrong, _ = talk(store, "I take 90 mg.", "Really?")
    store.write_now(lambda tx: tx.meta.add(wrong, "superseded", "true"))
    talk(store, "I take 20 mg.")

    await creator.handle_discussion_id_flow(HERE, whole=True)

    assert "90 mg" not in repr(ledger.lines(HERE, "file"))
    assert "20 mg" in texts_of(ledger)[0]


async def test_only_one_process_asks_the_model_for_the_memories_of_a_conversation(
    store: Store, ledger: FileLedger, clock: HandClock
) -> None:
    say(store, 12)
    asked, answered = asyncio.Event(), asyncio.Event()
    prompts: list[str] = []

    async def slow(prompt: str, caller: RequestOrigin) -> str:
        prompts.append(prompt)
        asked.set()
        await answered.wait()
        return "The person said something."

    names = ("proc_1", "proc_2", "proc_3", "proc_4")
    making = [background(store, ledger, name, complete=slow) for name in names]
    first = asyncio.create_task(making[0].check())
    await asked.wait()
    for other in making[1:]:
        await other.check()
    before = len(prompts)
    answered.set()
    await first
    after = len(prompts)
    for other in making[1:]:
        await other.check()

    assert (before, after, len(prompts)) == (1, 2, 2)
    assert len(ledger.lines(HERE, "file")) == 1


async def test_a_claim_of_a_process_that_died_ends(
    store: Store, ledger: FileLedger, clock: HandClock
) -> None:
    say(store, 12)
    store.write_now(lambda tx: tx.memory_work.claim(HERE.id, "proc_9", seconds=CLAIM_SECONDS))
    making = background(store, ledger)
    await making.check()
    early = texts_of(ledger)
    clock.tick(CLAIM_SECONDS)

    await making.check()

    assert (early, len(texts_of(ledger))) == ([], 1)


async def test_a_check_runs_nothing_if_nothing_is_due(
    store: Store, ledger: FileLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    creator, _ = a_creator(store, ledger, **WAITING)
    making = BackgroundMemories(store, creator, idle=IDLE, seconds=60, holder="proc_1")
    runs: list[Any] = []
    flow = creator.handle_discussion_id_flow

    async def counted(of: Any, **options: Any) -> Any:
        runs.append(of)
        return await flow(of, **options)

    monkeypatch.setattr(creator, "handle_discussion_id_flow", counted)
    say(store, 13)
    counts = []
    for more in (0, 0, 1, 0, 8, 1, 0):
        say(store, more)
        await making.check()
        counts.append(len(runs))

    assert counts == [1, 1, 1, 1, 1, 2, 2]
    assert [len(line.messages) for line in ledger.lines(HERE, "file")] == [11, 10]


# --- the model ----------------------------------------------------------------------------------------------


class Speaker:
    """A model that answers, or raises, and reports 100 tokens per request."""

    def __init__(self, reply: str | Exception = "The person said something.") -> None:
        self.reply = reply

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        used = usage.current()
        call = used.begin_call(request.role, "test", request.dialogue[-1].text)
        used.add_tokens(call, 60, 40)
        if isinstance(self.reply, Exception):
            used.end_call(call, "failed", "")
            raise self.reply
        used.end_call(call, usage.ANSWERED, self.reply)
        yield self.reply


async def test_requests_to_the_model_are_stored_and_have_their_own_budget(
    store: Store, ledger: FileLedger, clock: HandClock
) -> None:
    complete = Completion(Speaker(), store, seconds=5, tokens_per_day=150)
    creator, _ = a_creator(store, ledger, complete=complete, chunkEstimatedTokenSize=1)
    ids = talk(store, "First.", "", "Second.", "", "Third.")

    run = await creator.handle_discussion_id_flow(HERE, whole=True)
    calls = store.read_now(lambda tx: tx.model_calls.of_message(ids[0]))
    of_person = store.read_now(lambda tx: tx.model_calls.tokens_since("ann", clock.now()))
    clock.tick(86_400)
    later = await creator.handle_discussion_id_flow(HERE, whole=True)

    assert (run.error, run.messages) == ("memory_not_made", 4)
    assert [(call.role, call.outcome, call.prompt_tokens) for call in calls] == [("memory", "answered", 60)]
    assert (of_person, later.messages) == (0, 1)


@pytest.mark.parametrize(
    ("speaker", "seconds", "rule"),
    [(Speaker(ModelTrouble("unreachable")), 5, "unreachable"), (Speaker(TimeoutError()), 5, "timed_out")],
)
async def test_a_model_that_does_not_answer_leaves_the_chunk_for_later(
    store: Store, ledger: FileLedger, speaker: Speaker, seconds: float, rule: str
) -> None:
    complete = Completion(speaker, store, seconds=seconds, tokens_per_day=0)
    (id,) = talk(store, "Tea.")

    with pytest.raises(AnamnesisError) as refused:
        await complete("prompt", RequestOrigin(HERE, id))

    assert refused.value.facts["rule"] == f"the model did not answer ({rule})"
    assert [call.outcome for call in store.read_now(lambda tx: tx.model_calls.of_message(id))] == ["failed"]


class OneSlot(Speaker):
    """A model server that answers one request at a time. A cancelled request frees it at once."""

    def __init__(self) -> None:
        super().__init__()
        self.slot, self.busy, self.free = asyncio.Lock(), asyncio.Event(), asyncio.Event()
        self.goes_on = asyncio.Event()
        self.order: list[str] = []

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        async with self.slot:
            self.free.clear()
            self.busy.set()
            try:
                await self.goes_on.wait()
                self.order.append(request.role)
                yield "The person said something."
            finally:
                self.busy.clear()
                self.free.set()


async def test_a_turn_is_answered_before_a_request_in_the_background(
    store: Store, ledger: FileLedger
) -> None:
    model, foreground = OneSlot(), Foreground()
    complete = Completion(model, store, seconds=600, tokens_per_day=0, foreground=foreground)
    (id,) = talk(store, "Tea.")
    making = asyncio.create_task(complete("prompt", RequestOrigin(HERE, id)))
    await model.busy.wait()

    with foreground.turn():
        model.goes_on.set()
        turn = ModelRequest("companion", HERE.id, "", "", (Utterance(USER, "Hello."),), "Hello.")
        answer = [each async for each in model.speak(turn, NoTools())]
    made = await making

    assert answer == [made] == ["The person said something."]
    assert model.order == ["companion", "memory"]


async def test_a_request_that_turns_interrupt_again_and_again_is_made_later(
    store: Store, ledger: FileLedger
) -> None:
    model, foreground = OneSlot(), Foreground()
    complete = Completion(model, store, seconds=600, tokens_per_day=0, foreground=foreground)
    (id,) = talk(store, "Tea.")
    making = asyncio.create_task(complete("prompt", RequestOrigin(HERE, id)))
    for _ in range(3):
        await model.busy.wait()
        with foreground.turn():
            await model.free.wait()

    with pytest.raises(AnamnesisError) as refused:
        await making

    assert refused.value.facts["rule"] == "the model did not answer (turns_run)"
