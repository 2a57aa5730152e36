"""Whoever changes a block behind the house's back: it is seen, and the person's turn goes on."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from agents.brains.scripted import ScriptedBrain
from agents.values import Enrichment
from memory_blocks.errors import BlockInvalid, MirrorUnavailable, StaleRevision
from memory_blocks.ledger import Ledger
from memory_blocks.limits import DEFAULTS
from memory_blocks.mirrors.scripted import ScriptedMirror
from memory_blocks.models import ActiveSession, Conversation, ConversationHistory, Label, Sentiment
from memory_blocks.ports import ForeignChange, StoredBlock
from memory_blocks.trace import digest
from orchestrator.house import House
from orchestrator.outbox import Outbox
from orchestrator.shown import Shown
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Transaction
from orchestrator.store.packing import pack
from orchestrator.store.rows import Quarantined
from orchestrator.waiting import Waiting
from tests.builders import HandClock
from tests.commands import run
from tests.houses import a_house, a_store, agents, history, local_brain
from tests.peers import PATIENCE, TRACE, Frame, conversing, visiting
from tests.stores import empty_store

AGENT = "letta:health_agent"
SUMMARY, SESSION, METADATA = Label.CONTEXT_SUMMARY, Label.ACTIVE_SESSION, Label.MEMORY_METADATA
HISTORY = Label.CONVERSATION_HISTORY


def traced(frames: Sequence[Frame], *actions: str) -> list[tuple[str, str, str, bool]]:
    """The traces of some actions: what was done, to which block, by whom, and whether one was set aside."""
    return [
        (each.body["action"], about["label"], about["agent"], "quarantined" in about)
        for each in frames
        if each.type == TRACE and each.body["action"] in actions
        for about in [each.body["metadata"]]
    ]


async def set_aside(house: House, conversation_id: str) -> list[Quarantined]:
    return await house.store.read(lambda tx: tx.blocks.quarantined(conversation_id))


async def stored(house: House, conversation_id: str) -> dict[str, str]:
    blocks = await house.store.read(lambda tx: tx.blocks.load(conversation_id))
    return {label: block.value or "" for label, block in blocks.items()}


# --- in the store -----------------------------------------------------------------------------------------


@pytest.mark.requirement("001-118")
@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("text", ["", "{", "I am in pain", '{"turns":[]}'])
async def test_a_block_that_was_spoiled_in_the_store_is_set_aside_and_the_turn_goes_on(
    embedded: str, label: Label, text: str
) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.ask("I am having a headache")
        await peer.ask("8")
        before = await stored(house, peer.conversation_id)
        await spoil(house, peer.conversation_id, label, text)

        frames = await peer.ask("Since yesterday")

        assert frames[-1].ends_an_answer
        assert frames[-1].code is None
        (kept,) = await set_aside(house, peer.conversation_id)
        assert (kept.label, kept.value, kept.reason) == (label, text, "$: is not what was written")
        restored = next(each for each in frames if "quarantined" in each.body.get("metadata", {}))
        assert traced([restored], "updated") == [("updated", label, "context_extractor", True)]
        assert restored.body["metadata"]["quarantined"] == kept.id
        assert restored.body["content"] == before[label][:1000]
        turns = (await history(house, peer.conversation_id)).turns
        assert [turn.user_message.content for turn in turns] == [
            "I am having a headache",
            "8",
            "Since yesterday",
        ]


async def test_blocks_that_are_spoiled_while_an_answer_is_made_are_restored_before_it_is_written(
    embedded: str,
) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.ask()
        await peer.say("8")
        await peer.until_type(TRACE)
        await spoil(house, peer.conversation_id, SESSION, "{}")

        frames = await peer.answer()
        frames += await peer.ask("Since yesterday")

        assert [kept.value for kept in await set_aside(house, peer.conversation_id)] == ["{}"]
        assert traced(frames, "updated").count(("updated", SESSION, "context_extractor", True)) == 1
        assert (await history(house, peer.conversation_id)).total_turns == 3


@pytest.mark.requirement("001-118")
@pytest.mark.parametrize(
    ("label", "old", "new"),
    [
        (METADATA, '"total_archived_turns":0', '"total_archived_turns":5'),
        (SESSION, '"total_exchanges":2', '"total_exchanges":7'),
        (HISTORY, '"session_id":"', '"session_id":"not_'),
    ],
)
async def test_a_forged_block_that_departs_from_the_others_is_set_aside_and_the_turn_goes_on(
    database_url: str, label: Label, old: str, new: str
) -> None:
    async with a_house(database_url).open() as house, conversing(house) as peer:
        await peer.ask("I am having a headache")
        await peer.ask("8")
        text = (await stored(house, peer.conversation_id))[label]
        forged = text.replace(old, new)
        await spoil(house, peer.conversation_id, label, forged, revision=2)

        frames = await peer.ask("Since yesterday")

        assert (frames[-1].ends_an_answer, frames[-1].code) == (True, None)
        assert forged != text
        assert [kept.value for kept in await set_aside(house, peer.conversation_id)] == [forged]
        told = [turn.user_message.content for turn in (await history(house, peer.conversation_id)).turns]
        assert told[-1] == "Since yesterday"


@pytest.fixture
def loose(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store in which something may be missing for good."""
    with empty_store("sqlite", request, tmp_path) as url:
        yield url


@pytest.mark.parametrize("gone", ["revision = 2", "revision > 0"])
@pytest.mark.parametrize("label", Label)
async def test_a_block_whose_revisions_were_deleted_is_restored_and_the_turn_goes_on(
    loose: str, label: Label, gone: str
) -> None:
    async with a_house(loose).open() as house, conversing(house) as peer:
        await peer.ask("I am having a headache")
        await peer.ask("8")
        with closing(sqlite3.connect(loose.removeprefix("sqlite:///"))) as file, file:
            file.execute(f"DELETE FROM block_revisions WHERE label = ? AND {gone}", [label])  # noqa: S608

        frames = await peer.ask("Since yesterday")

        assert (frames[-1].ends_an_answer, frames[-1].code) == (True, None)
        assert [kept.label for kept in await set_aside(house, peer.conversation_id)] == [label]
        here = peer.conversation_id
        latest = await house.store.read(lambda tx: tx.blocks.text_at(here, label, 4))
        assert latest == (await stored(house, here))[label]
        assert (await peer.ask("It is better now"))[-1].code is None


async def spoil(
    house: House, conversation_id: str, label: Label, text: str, revision: int | None = None
) -> None:
    """Change a block as somebody could who goes around the ledger, with the digest beside it.

    Whoever knows how forges the revision, too.
    """

    def work(tx: Transaction) -> None:
        sign = "?" if tx.unit.dialect.name == "sqlite" else "%s"
        where = f"conversation_id = {sign} AND label = {sign}"
        query = f"UPDATE blocks SET value = {sign}, digest = {sign} WHERE {where}"  # noqa: S608
        tx.unit.connection.execute(query, (text, digest(text), conversation_id, label.value))
        if revision is not None:
            query = (
                f"UPDATE block_revisions SET base = NULL, packed = {sign}, size = {sign}, digest = {sign}"  # noqa: S608
                f" WHERE {where} AND revision = {sign}"
            )
            forged = (pack(text), len(text), digest(text), conversation_id, label.value, revision)
            tx.unit.connection.execute(query, forged)

    await house.store.write(work)


async def test_a_turn_that_others_always_outran_ends_with_a_conflict_that_is_said(
    embedded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def outrun(*_: object, **__: object) -> None:
        raise StaleRevision(HISTORY, stored=3, yours=2)

    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.ask("I am having a headache")
        with monkeypatch.context() as others:
            others.setattr(Ledger, "write", outrun)
            frames = await peer.ask("8")
        after = await peer.ask("Since yesterday")

        assert frames[-1].code == 403
        assert '"event": "blocks_not_written"' in capsys.readouterr().err
        assert after[-1].code is None
        turns = (await history(house, peer.conversation_id)).turns
        assert [turn.user_message.content for turn in turns] == ["I am having a headache", "Since yesterday"]


async def test_a_turn_that_is_in_no_block_does_not_count_among_those_that_are(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.ask("I am having a headache")
        with monkeypatch.context() as others:
            others.setattr(Ledger, "write", _refuse)
            assert (await peer.ask("I was never here"))[-1].code == 401
        await peer.ask("8")
        await peer.ask("Since yesterday")

        def told(tx: Transaction) -> list[list[str]]:
            here = Conversation(peer.conversation_id, "ann", tx.now)
            looked = [
                Ledger(HandClock())
                .look(SqlBlockStore(tx.blocks), here, actor="ann", turn=turn)
                .blocks[HISTORY]
                for turn in (1, 2, 3)
            ]
            read = [ConversationHistory.model_validate_json(each.text) for each in looked]
            return [[turn.user_message.content for turn in each.turns] for each in read]

        first, second, third = "I am having a headache", "8", "Since yesterday"
        assert await house.store.read(told) == [[first], [first, second], [first, second, third]]


def _refuse(*_: object, **__: object) -> None:
    raise BlockInvalid(HISTORY, "turns", "cannot be")


# --- in a mirror ------------------------------------------------------------------------------------------


async def until_shown(house: House, mirror: ScriptedMirror, conversation_id: str) -> None:
    """Wait until the mirror has what is stored: it is told after the last frame has left."""
    async with asyncio.timeout(PATIENCE):
        while mirror.texts(conversation_id) != await stored(house, conversation_id):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_every_turn_is_shown_in_the_mirror_once_it_is_stored(address: str) -> None:
    mirror = ScriptedMirror()
    async with a_house(address, mirror=mirror).open() as house:
        async with conversing(house) as peer:
            for text in ("I am having a headache", "8"):
                await peer.ask(text)

        await until_shown(house, mirror, peer.conversation_id)
        assert '"8"' in mirror.text(peer.conversation_id, Label.CONVERSATION_HISTORY)


@pytest.mark.requirement("001-060", "001-038")
async def test_what_an_agent_changed_in_the_mirror_is_adopted_with_the_next_turn(address: str) -> None:
    mirror = ScriptedMirror()
    async with a_house(address, mirror=mirror).open() as house, conversing(house) as peer:
        await peer.ask()
        await until_shown(house, mirror, peer.conversation_id)
        mirror.append(peer.conversation_id, SUMMARY, "Prefers short answers.", actor=AGENT)

        frames = await peer.ask("8")
        await until_shown(house, mirror, peer.conversation_id)

        first = traced(frames, "updated")[:2]
        assert first == [("updated", SUMMARY, AGENT, False), ("updated", METADATA, AGENT, False)]
        texts = await stored(house, peer.conversation_id)
        assert texts[SUMMARY].endswith("--- NOTES ---\nPrefers short answers.")
        assert await set_aside(house, peer.conversation_id) == []


@pytest.mark.parametrize("content", ["I am in pain", "x" * 40_000, "NUL \0 and \ud800"])
async def test_what_cannot_stand_is_set_aside_and_undone_in_the_mirror(address: str, content: str) -> None:
    mirror = ScriptedMirror()
    async with a_house(address, mirror=mirror).open() as house, conversing(house) as peer:
        await peer.ask()
        await until_shown(house, mirror, peer.conversation_id)
        mirror.append(peer.conversation_id, Label.CONVERSATION_HISTORY, content, actor=AGENT)

        frames = await peer.ask("8")
        await until_shown(house, mirror, peer.conversation_id)

        assert frames[-1].code is None
        assert ("retrieved", "conversation_history", AGENT, True) in traced(frames, "retrieved")
        (kept,) = await set_aside(house, peer.conversation_id)
        assert kept.value.endswith(content.replace("\0", "\u2400").replace("\ud800", "?"))
        assert content not in mirror.text(peer.conversation_id, Label.CONVERSATION_HISTORY)


class EditsWhileAnswering(ScriptedMirror):
    """An agent over there writes a note after a turn has begun, before it ends."""

    def __init__(self, asked: int) -> None:
        super().__init__()
        self.before = asked

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        self.before -= 1
        if self.before == 0:
            self.append(conversation_id, SUMMARY, "Prefers short answers.", actor=AGENT)
        return await super().foreign(conversation_id)


async def test_what_an_agent_changes_while_it_answers_is_in_that_turns_blocks(embedded: str) -> None:
    mirror = EditsWhileAnswering(asked=7)  # each turn asks, shows, asks and shows; showing asks, too
    async with a_house(embedded, mirror=mirror).open() as house, conversing(house) as peer:
        await peer.ask()
        await until_shown(house, mirror, peer.conversation_id)

        frames = await peer.ask("8")
        await until_shown(house, mirror, peer.conversation_id)

        assert [who for _, _, who, _ in traced(frames, "updated")] == [AGENT] * 2 + ["context_extractor"] * 4
        summary = (await stored(house, peer.conversation_id))[SUMMARY]
        assert "Turn 2" in summary
        assert summary.endswith("--- NOTES ---\nPrefers short answers.")
        assert await set_aside(house, peer.conversation_id) == []


class Quicker(ScriptedMirror):
    """Somebody changes a block right before ours is written over it, as happens where nothing is compared."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        if self.times and (conversation_id, SUMMARY) in self._given:
            self.times -= 1
            self.append(conversation_id, SUMMARY, f"Note {self.times}.", actor=AGENT)
        return await super().put(conversation_id, blocks, followed)


async def test_what_is_written_over_is_kept_and_told_all_the_same(embedded: str) -> None:
    mirror = Quicker()
    async with a_house(embedded, mirror=mirror).open() as house, conversing(house) as peer:
        await peer.ask()
        await until_shown(house, mirror, peer.conversation_id)
        mirror.times = 2

        frames = await peer.ask("8")
        await until_shown(house, mirror, peer.conversation_id)

        kept = [each.value for each in await set_aside(house, peer.conversation_id)]
        noted = (await stored(house, peer.conversation_id))[SUMMARY]
        assert all(any(f"Note {at}." in text for text in (*kept, noted)) for at in (0, 1))
        traces = await house.store.read(lambda tx: tx.traces.of_conversation(peer.conversation_id))
        stored_aside = {each.id: each.meta for each in traces if each.message_id is None}
        while len(in_background(frames)) < len(stored_aside):
            frames.append(await peer.next())
        async with visiting(house) as again:
            await again.open(peer.conversation_id, lastSequenceSeen=0)
            replayed = await again.until(lambda frame: frame.stanza == -peer.seen)
        assert stored_aside
        assert in_background(frames) == in_background(replayed) == stored_aside
        assert {about["agent"] for about in stored_aside.values() if about} == {AGENT}


def in_background(frames: Sequence[Frame]) -> dict[str, object]:
    """What the traces tell that belong to no message."""
    return {
        frame.body["id"]: frame.body["metadata"]
        for frame in frames
        if frame.type == TRACE and frame.body.get("previousId") is None
    }


class Hanging(ScriptedMirror):
    """A place that takes what it is given and says nothing."""

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        await asyncio.Event().wait()
        return ()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_mirror_that_does_not_answer_costs_nobody_their_answer(embedded: str, hangs: bool) -> None:
    mirror = Hanging() if hangs else ScriptedMirror()
    mirror.silent = True
    async with a_house(embedded, mirror=mirror).open() as house, conversing(house) as peer:
        frames = await peer.ask()

        assert frames[-1].code is None
        assert (await history(house, peer.conversation_id)).total_turns == 1


class NotReadyFor(ScriptedMirror):
    """A place that one conversation does not have yet."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__()
        self._without = conversation_id

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        if conversation_id == self._without:
            raise MirrorUnavailable(for_one=True)
        return await super().foreign(conversation_id)


async def test_a_conversation_without_a_place_there_keeps_no_other_from_being_shown(embedded: str) -> None:
    store = a_store(embedded)
    ledger = Ledger(HandClock(), DEFAULTS, agents().agent_types)
    mirror = NotReadyFor("conv_1")
    shown = Shown(mirror, ledger, Outbox(store), rest_seconds=600)
    block = StoredBlock("What is known.", 1, digest("What is known."), "mem_1")
    try:
        assert await shown.changes("conv_1") == ()
        await mirror.put("conv_2", {SUMMARY: block})
        mirror.append("conv_2", SUMMARY, "And more.", actor=AGENT)
        assert [each.actor for each in await shown.changes("conv_2")] == [AGENT]

        mirror.silent = True
        assert await shown.changes("conv_3") == ()
        mirror.silent = False
        assert await shown.changes("conv_2") == ()
    finally:
        store.close_now()


class Slow(ScriptedMirror):
    """A place that lets some wait, and has none yet for others."""

    def __init__(self, waits: str, comes: str) -> None:
        super().__init__()
        self.waits, self.comes = waits, comes

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        if conversation_id == self.waits:
            await asyncio.Event().wait()
        if conversation_id == self.comes:
            raise MirrorUnavailable(soon=True)
        return await super().foreign(conversation_id)


async def test_who_had_to_wait_rests_alone_and_whose_place_comes_soon_does_not_rest(embedded: str) -> None:
    store = a_store(embedded)
    ledger = Ledger(HandClock(), DEFAULTS, agents().agent_types)
    mirror = Slow(waits="conv_1", comes="conv_2")
    shown = Shown(mirror, ledger, Outbox(store), Waiting(0.05, 0.05), rest_seconds=600)
    block = StoredBlock("What is known.", 1, digest("What is known."), "mem_1")
    try:
        assert await shown.changes("conv_1") == ()
        assert await shown.changes("conv_2") == ()
        mirror.waits = mirror.comes = ""
        for conversation_id in ("conv_1", "conv_2", "conv_3"):
            await mirror.put(conversation_id, {SUMMARY: block})
            mirror.append(conversation_id, SUMMARY, "And more.", actor=AGENT)

        told = {each: len(await shown.changes(each)) for each in ("conv_1", "conv_2", "conv_3")}

        assert told == {"conv_1": 0, "conv_2": 1, "conv_3": 1}
    finally:
        store.close_now()


async def test_a_mirror_that_answers_again_is_shown_what_it_missed(embedded: str) -> None:
    mirror = ScriptedMirror()
    async with a_house(embedded, mirror=mirror).open() as house, conversing(house) as peer:
        await peer.ask()
        await until_shown(house, mirror, peer.conversation_id)
        mirror.silent = True
        await peer.ask("8")
        await peer.ask("Since yesterday")
        assert '"8"' not in mirror.text(peer.conversation_id, Label.CONVERSATION_HISTORY)

        mirror.silent = False
        await peer.ask("No")

        await until_shown(house, mirror, peer.conversation_id)


# --- what a later version of the blocks added -------------------------------------------------------------


@pytest.mark.requirement("001-100", "001-101", "001-103")
async def test_a_turn_keeps_what_was_understood_of_it(embedded: str) -> None:
    understood = Enrichment(
        previous_context="No previous context - first message",
        enriched_message="User is glad that the headache is gone",
        topic="headache_evaluation",
        quality=0.8,
        sentiment=Sentiment.POSITIVE,
    )
    brain = ScriptedBrain(enrichments=[understood])
    async with a_house(embedded, brain).open() as house, conversing(house) as peer:
        await peer.ask("The headache is gone!")
        await peer.ask("Thank you")

        first, second = (await history(house, peer.conversation_id)).turns

        assert (first.sentiment, first.topics, first.context_score) == (
            "positive",
            ("headache_evaluation",),
            0.8,
        )
        assert second.sentiment is None
        assert '"sentiment"' not in second.text


@pytest.mark.requirement("001-102")
async def test_a_new_session_knows_the_persons_earlier_ones_and_nobody_elses(address: str) -> None:
    async with a_house(address, local_brain()).open() as house:
        async with conversing(house, "bob") as peer:
            await peer.ask("I cannot sleep")
        before = []
        for text in ("My knee hurts", "I am having a headache"):
            async with conversing(house) as peer:
                await peer.ask(text)
                await peer.ask("8")
                before.append(peer.conversation_id)
        async with conversing(house):
            pass  # nothing was said: there is nothing to know of it

        async with conversing(house) as peer:
            await peer.ask("I have a rash")
            await peer.ask("Since yesterday")
            texts = await stored(house, peer.conversation_id)

        session = ActiveSession.model_validate_json(texts[SESSION])
        earlier = session.earlier_sessions or ()
        assert [each.session_id for each in earlier] == before
        assert [each.summary.partition(" with ")[0] for each in earlier] == ["Knee pain", "Headache"]
        for each in earlier:
            then = ActiveSession.model_validate_json((await stored(house, each.session_id))[SESSION])
            assert each.ended_at == then.session_info.last_activity
            looked_at = await house.store.read(partial(_without_a_message, each.session_id))
            assert looked_at[-1:] == [("retrieved", "context_extractor", "active_session")]


def _without_a_message(conversation_id: str, tx: Transaction) -> list[tuple[str, str, str]]:
    """What was done to the blocks of a conversation outside of its turns, by whom."""
    traces = tx.traces.of_conversation(conversation_id)
    return [
        (each.action, each.actor or "", str((each.meta or {})["label"]))
        for each in traces
        if each.message_id is None
    ]


@pytest.mark.requirement("003-071")
async def test_who_is_connected_is_told_at_once_when_a_later_session_looks_at_theirs(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as earlier, conversing(house) as later:
        await earlier.ask()

        await later.ask()

        (told,) = await earlier.until_type(TRACE)
        assert traced([told], "retrieved") == [("retrieved", SESSION, "context_extractor", False)]


@pytest.mark.requirement("003-071")
async def test_who_is_connected_is_told_what_staff_writes_from_another_process_and_not_what_it_reads(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", address)
    async with a_house(address).open() as house, conversing(house) as peer:
        for _ in range(5):
            await peer.ask()
        last_active = await house.store.read(partial(_last_active, peer.conversation_id))

        for command in ("show", "rotate"):
            ended = await asyncio.to_thread(run, "blocks", command, peer.conversation_id)
            assert ended.exit_code == 0, ended.output
        told = await peer.until(lambda frame: frame.body["metadata"]["label"] == METADATA)

        actions = {(each.body["action"], each.body["metadata"]["agent"].partition(":")[0]) for each in told}
        assert actions == {("updated", "operator")}
        assert await house.store.read(partial(_last_active, peer.conversation_id)) == last_active
        async with visiting(house) as again:
            await again.open(peer.conversation_id, lastSequenceSeen=peer.seen - len(told))
            assert [(await again.next()).packet for _ in told] == [each.packet for each in told]


def _last_active(conversation_id: str, tx: Transaction) -> datetime:
    return tx.conversations.owned(conversation_id, "ann").updated_at


async def test_an_earlier_session_that_was_spoiled_is_passed_over(embedded: str) -> None:
    async with a_house(embedded).open() as house:
        async with conversing(house) as spoiled:
            await spoiled.ask()
            await spoil(house, spoiled.conversation_id, SESSION, "{")
        async with conversing(house) as peer:
            frames = await peer.ask()
            texts = await stored(house, peer.conversation_id)
        async with visiting(house) as again:
            await again.open(spoiled.conversation_id)
            await again.ask()

        assert frames[-1].code is None
        assert ActiveSession.model_validate_json(texts[SESSION]).earlier_sessions is None
        assert len(await set_aside(house, spoiled.conversation_id)) == 1


# --- sessions -----------------------------------------------------------------------------------------------


async def status(house: House, conversation_id: str) -> str:
    session = ActiveSession.model_validate_json((await stored(house, conversation_id))[SESSION])
    return session.session_info.status.value


async def revisions(house: House, conversation_id: str) -> list[tuple[str, int | None]]:
    """By whom, and at which turn, the session was written."""
    kept = await house.store.read(lambda tx: tx.blocks.revisions(conversation_id, SESSION))
    return [(each.actor, each.turn) for each in kept]


@pytest.mark.requirement("001-043")
async def test_a_session_pauses_when_nobody_speaks_and_goes_on_with_the_next_turn(address: str) -> None:
    clock = HandClock()
    mirror = ScriptedMirror()
    async with a_house(address, clock=clock, mirror=mirror).open() as house, conversing(house) as peer:
        await peer.ask()
        clock.tick(29 * 60)
        await house.idle.look()
        assert await status(house, peer.conversation_id) == "ACTIVE"

        clock.tick(2 * 60)
        await house.idle.look()
        await house.idle.look()

        assert await status(house, peer.conversation_id) == "PAUSED"
        assert await revisions(house, peer.conversation_id) == [
            ("context_extractor", 1),
            ("house:paused", None),
        ]
        told = await peer.until(lambda frame: frame.body.get("action") == "updated")
        assert traced(told, "retrieved", "updated") == [
            *[("retrieved", label, "house:paused", False) for label in Label],
            ("updated", SESSION, "house:paused", False),
        ]
        assert all(each.body["metadata"]["background"] and "previousId" not in each.body for each in told)
        await until_shown(house, mirror, peer.conversation_id)
        await peer.ask("8")
        assert await status(house, peer.conversation_id) == "ACTIVE"


@pytest.mark.requirement("001-043")
async def test_a_session_ends_when_its_conversation_is_archived(embedded: str) -> None:
    async with a_house(embedded).open() as house, conversing(house) as peer:
        await peer.ask()
        await house.store.write(lambda tx: tx.conversations.update(peer.conversation_id, status="archived"))

        await house.idle.look()
        await house.idle.look()

        assert await status(house, peer.conversation_id) == "ENDED"
        assert (await revisions(house, peer.conversation_id))[1:] == [("house:ended", None)]


async def test_a_session_in_which_an_answer_is_under_way_is_not_paused(embedded: str) -> None:
    clock, go_on = HandClock(), asyncio.Event()
    brain = ScriptedBrain(answers=[["Yes."], [go_on, "No."]])
    async with (
        a_house(embedded, brain, clock=clock, deadline_seconds=9_000, lease_seconds=9_000).open() as house,
        conversing(house) as peer,
    ):
        await peer.ask()
        await peer.say("8")
        await peer.until_type(TRACE)
        clock.tick(31 * 60)

        await house.idle.look()

        assert await status(house, peer.conversation_id) == "ACTIVE"
        go_on.set()
        await peer.answer()
