"""A block that is changed without the ledger is noticed, and the turn continues."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from agents.models.scripted import ScriptedBrain
from agents.values import Enrichment
from memory_blocks.errors import BlockInvalid, MirrorUnavailable, StaleRevision
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import DEFAULTS
from memory_blocks.mirrors.scripted import ScriptedMirror
from memory_blocks.models import ActiveSession, Conversation, ConversationHistory, Label, Sentiment
from memory_blocks.ports import ForeignChange, StoredBlock
from memory_blocks.trace import digest
from orchestrator.connection import idle
from orchestrator.ops.waiting import Waiting
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.store.engine.packing import pack
from orchestrator.store.rows import Quarantined
from orchestrator.turn.block_sync import BlockSync
from orchestrator.turn.outbox import Outbox
from tests.support.builders import HandClock
from tests.support.commands import run
from tests.support.orchestrators import a_store, agents, an_orchestrator, everything, history, local_brain
from tests.support.protocol_client import TIMEOUT, TRACE, Frame, conversing, visiting
from tests.support.stores import empty_store, on_both_databases

AGENT = "letta:health_agent"
SUMMARY, SESSION, METADATA = Label.CONTEXT_SUMMARY, Label.ACTIVE_SESSION, Label.MEMORY_METADATA
HISTORY = Label.CONVERSATION_HISTORY


def traced(frames: Sequence[Frame], *actions: str) -> list[tuple[str, str, str, bool]]:
    """The traces of some actions: the action, the block, the actor, and whether a value was quarantined."""
    return [
        (each.body["action"], about["label"], about["agent"], "quarantined" in about)
        for each in frames
        if each.type == TRACE and each.body["action"] in actions
        for about in [each.body["metadata"]]
    ]


async def set_aside(orchestrator: Orchestrator, conversation_id: str) -> list[Quarantined]:
    return await orchestrator.store.read(lambda tx: tx.blocks.quarantined(conversation_id))


async def stored(orchestrator: Orchestrator, conversation_id: str) -> dict[str, str]:
    blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(conversation_id))
    return {label: block.value or "" for label, block in blocks.items()}


# --- in the store -----------------------------------------------------------------------------------------


@pytest.mark.requirement("001-118")
@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("text", ["", "{", "I am in pain", '{"turns":[]}'])
async def test_a_block_that_was_damaged_in_the_store_is_quarantined_and_the_turn_continues(
    embedded: str, label: Label, text: str
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache")
        await peer.ask("8")
        before = await stored(orchestrator, peer.conversation_id)
        await spoil(orchestrator, peer.conversation_id, label, text)

        frames = await peer.ask("Since yesterday")

        assert frames[-1].ends_an_answer
        assert frames[-1].code is None
        (kept,) = await set_aside(orchestrator, peer.conversation_id)
        assert (kept.label, kept.value, kept.reason) == (label, text, "$: is not what was written")
        restored = next(each for each in frames if "quarantined" in each.body.get("metadata", {}))
        assert traced([restored], "updated") == [("updated", label, "context_extractor", True)]
        assert restored.body["metadata"]["quarantined"] == kept.id
        assert restored.body["content"].startswith(
            "invalid text put into quarantine, last valid text restored: "
        )
        at = restored.body["metadata"]["revision"]
        written = await orchestrator.store.read(
            lambda tx: tx.blocks.text_at(peer.conversation_id, label, at) or ""
        )
        assert written == before[label]
        turns = (await history(orchestrator, peer.conversation_id)).turns
        assert [turn.user_message.content for turn in turns] == [
            "I am having a headache",
            "8",
            "Since yesterday",
        ]


async def test_blocks_that_are_damaged_during_an_answer_are_restored_before_it_is_written(
    embedded: str,
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask()
        await peer.say("8")
        await peer.until_type(TRACE)
        await spoil(orchestrator, peer.conversation_id, SESSION, "{}")

        frames = await peer.answer()
        frames += await peer.ask("Since yesterday")

        assert [kept.value for kept in await set_aside(orchestrator, peer.conversation_id)] == ["{}"]
        assert traced(frames, "updated").count(("updated", SESSION, "context_extractor", True)) == 1
        assert (await history(orchestrator, peer.conversation_id)).total_turns == 3


@pytest.mark.requirement("001-118")
@pytest.mark.parametrize(
    ("label", "old", "new"),
    [
        (METADATA, '"total_archived_turns":0', '"total_archived_turns":5'),
        (SESSION, '"total_exchanges":2', '"total_exchanges":7'),
        (HISTORY, '"session_id":"', '"session_id":"not_'),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_forged_block_that_contradicts_the_others_is_quarantined_and_the_turn_continues(
    database_url: str, label: Label, old: str, new: str
) -> None:
    async with an_orchestrator(database_url).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache")
        await peer.ask("8")
        text = (await stored(orchestrator, peer.conversation_id))[label]
        forged = text.replace(old, new)
        await spoil(orchestrator, peer.conversation_id, label, forged, revision=2)

        frames = await peer.ask("Since yesterday")

        assert (frames[-1].ends_an_answer, frames[-1].code) == (True, None)
        assert forged != text
        assert [kept.value for kept in await set_aside(orchestrator, peer.conversation_id)] == [forged]
        result = [
            turn.user_message.content for turn in (await history(orchestrator, peer.conversation_id)).turns
        ]
        assert result[-1] == "Since yesterday"


@pytest.fixture
def loose(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store from which rows may be missing."""
    with empty_store("sqlite", request, tmp_path) as url:
        yield url


@pytest.mark.parametrize("gone", ["revision = 2", "revision > 0"])
@pytest.mark.parametrize("label", Label)
async def test_a_block_whose_revisions_were_deleted_is_restored_and_the_turn_continues(
    loose: str, label: Label, gone: str
) -> None:
    async with an_orchestrator(loose).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache")
        await peer.ask("8")
        with closing(sqlite3.connect(loose.removeprefix("sqlite:///"))) as file, file:
            file.execute(f"DELETE FROM block_revisions WHERE label = ? AND {gone}", [label])  # noqa: S608

        frames = await peer.ask("Since yesterday")

        assert (frames[-1].ends_an_answer, frames[-1].code) == (True, None)
        assert [kept.label for kept in await set_aside(orchestrator, peer.conversation_id)] == [label]
        here = peer.conversation_id
        latest = await orchestrator.store.read(lambda tx: tx.blocks.text_at(here, label, 4))
        assert latest == (await stored(orchestrator, here))[label]
        assert (await peer.ask("It is better now"))[-1].code is None


async def spoil(
    orchestrator: Orchestrator, conversation_id: str, label: Label, text: str, revision: int | None = None
) -> None:
    """Change a block and its digest in the database, without the ledger.

    If `revision` is given, that revision is changed, too.
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

    await orchestrator.store.write(work)


async def test_a_turn_that_can_never_write_its_blocks_ends_with_a_conflict_error(
    embedded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def outrun(*_: object, **__: object) -> None:
        raise StaleRevision(HISTORY, stored=3, yours=2)

    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache")
        with monkeypatch.context() as others:
            others.setattr(Ledger, "write", outrun)
            frames = await peer.ask("8")
        after = await peer.ask("Since yesterday")

        assert frames[-1].code == 403
        assert '"event": "blocks_not_written"' in capsys.readouterr().err
        assert after[-1].code is None
        turns = (await history(orchestrator, peer.conversation_id)).turns
        assert [turn.user_message.content for turn in turns] == ["I am having a headache", "Since yesterday"]


async def test_a_turn_that_is_in_no_block_is_not_counted_in_the_blocks(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache")
        with monkeypatch.context() as others:
            others.setattr(Ledger, "write", _refuse)
            assert (await peer.ask("I was never here"))[-1].code == 401
        await peer.ask("8")
        await peer.ask("Since yesterday")

        def result(tx: Transaction) -> list[list[str]]:
            here = Conversation(peer.conversation_id, "ann", tx.now)
            looked = [
                Ledger(HandClock())
                .view(SqlBlockStore(tx.blocks), here, actor="ann", turn=turn)
                .blocks[HISTORY]
                for turn in (1, 2, 3)
            ]
            read = [ConversationHistory.model_validate_json(each.text) for each in looked]
            return [[turn.user_message.content for turn in each.turns] for each in read]

        first, second, third = "I am having a headache", "8", "Since yesterday"
        assert await orchestrator.store.read(result) == [[first], [first, second], [first, second, third]]


def _refuse(*_: object, **__: object) -> None:
    raise BlockInvalid(HISTORY, "turns", "cannot be")


# --- in a mirror ------------------------------------------------------------------------------------------


async def until_copied(orchestrator: Orchestrator, mirror: ScriptedMirror, conversation_id: str) -> None:
    """Wait until the mirror has the stored blocks: they are copied after the last frame is sent."""
    async with asyncio.timeout(TIMEOUT):
        while mirror.texts(conversation_id) != await stored(orchestrator, conversation_id):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_every_turn_is_copied_to_the_mirror_once_it_is_stored(address: str) -> None:
    mirror = ScriptedMirror()
    async with an_orchestrator(address, mirror=mirror).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            for text in ("I am having a headache", "8"):
                await peer.ask(text)

        await until_copied(orchestrator, mirror, peer.conversation_id)
        assert '"8"' in mirror.text(peer.conversation_id, Label.CONVERSATION_HISTORY)


@pytest.mark.requirement("001-060", "001-038")
async def test_what_an_agent_changed_in_the_mirror_is_adopted_with_the_next_turn(address: str) -> None:
    mirror = ScriptedMirror()
    async with (
        an_orchestrator(address, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        await until_copied(orchestrator, mirror, peer.conversation_id)
        mirror.append(peer.conversation_id, SUMMARY, "Prefers short answers.", actor=AGENT)

        frames = await peer.ask("8")
        await until_copied(orchestrator, mirror, peer.conversation_id)

        first = traced(frames, "updated")[:2]
        assert first == [("updated", SUMMARY, AGENT, False), ("updated", METADATA, AGENT, False)]
        texts = await stored(orchestrator, peer.conversation_id)
        assert texts[SUMMARY].endswith("--- NOTES ---\nPrefers short answers.")
        assert await set_aside(orchestrator, peer.conversation_id) == []


@pytest.mark.parametrize("content", ["I am in pain", "x" * 40_000, "NUL \0 and \ud800"])
async def test_an_invalid_change_in_the_mirror_is_quarantined_and_undone(address: str, content: str) -> None:
    mirror = ScriptedMirror()
    async with (
        an_orchestrator(address, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        await until_copied(orchestrator, mirror, peer.conversation_id)
        mirror.append(peer.conversation_id, Label.CONVERSATION_HISTORY, content, actor=AGENT)

        frames = await peer.ask("8")
        await until_copied(orchestrator, mirror, peer.conversation_id)

        assert frames[-1].code is None
        assert ("retrieved", "conversation_history", AGENT, True) in traced(frames, "retrieved")
        (kept,) = await set_aside(orchestrator, peer.conversation_id)
        assert kept.value.endswith(content.replace("\0", "\u2400").replace("\ud800", "?"))
        assert content not in mirror.text(peer.conversation_id, Label.CONVERSATION_HISTORY)


class EditsWhileAnswering(ScriptedMirror):
    """An agent of the mirror writes a note during a turn."""

    def __init__(self, asked: int) -> None:
        super().__init__()
        self.before = asked

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        self.before -= 1
        if self.before == 0:
            self.append(conversation_id, SUMMARY, "Prefers short answers.", actor=AGENT)
        return await super().foreign_changes(conversation_id)


async def test_a_change_in_the_mirror_during_a_turn_is_in_the_blocks_of_that_turn(embedded: str) -> None:
    mirror = EditsWhileAnswering(asked=7)  # each turn reads, copies, reads and copies; copying reads, too
    async with (
        an_orchestrator(embedded, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        await until_copied(orchestrator, mirror, peer.conversation_id)

        frames = await peer.ask("8")
        await until_copied(orchestrator, mirror, peer.conversation_id)

        assert [who for _, _, who, _ in traced(frames, "updated")] == [AGENT] * 2 + ["context_extractor"] * 4
        summary = (await stored(orchestrator, peer.conversation_id))[SUMMARY]
        assert "Turn 2" in summary
        assert summary.endswith("--- NOTES ---\nPrefers short answers.")
        assert await set_aside(orchestrator, peer.conversation_id) == []


class Quicker(ScriptedMirror):
    """A block is changed right before ours overwrites it, as in a mirror that does not compare."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        if self.times and (conversation_id, SUMMARY) in self._put:
            self.times -= 1
            self.append(conversation_id, SUMMARY, f"Note {self.times}.", actor=AGENT)
        return await super().put(conversation_id, blocks, followed)


async def test_a_change_that_was_overwritten_is_stored_and_traced(embedded: str) -> None:
    mirror = Quicker()
    async with (
        an_orchestrator(embedded, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        await until_copied(orchestrator, mirror, peer.conversation_id)
        mirror.times = 2

        frames = await peer.ask("8")
        await until_copied(orchestrator, mirror, peer.conversation_id)

        kept = [each.value for each in await set_aside(orchestrator, peer.conversation_id)]
        noted = (await stored(orchestrator, peer.conversation_id))[SUMMARY]
        assert all(any(f"Note {at}." in text for text in (*kept, noted)) for at in (0, 1))
        traces = await orchestrator.store.read(lambda tx: tx.traces.of_conversation(peer.conversation_id))
        stored_aside = {each.id: each.meta for each in traces if each.message_id is None}
        while len(in_background(frames)) < len(stored_aside):
            frames.append(await peer.next())
        async with visiting(orchestrator) as again:
            await again.open(peer.conversation_id, lastSequenceSeen=0)
            replayed = await again.until(lambda frame: frame.stanza == -peer.seen)
        assert stored_aside
        assert in_background(frames) == in_background(replayed) == stored_aside
        assert {about["agent"] for about in stored_aside.values() if about} == {AGENT}


def in_background(frames: Sequence[Frame]) -> dict[str, object]:
    """The traces that belong to no message."""
    return {
        frame.body["id"]: frame.body["metadata"]
        for frame in frames
        if frame.type == TRACE and frame.body.get("previousId") is None
    }


class Hanging(ScriptedMirror):
    """A mirror that takes the blocks and does not answer."""

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        await asyncio.Event().wait()
        return ()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_mirror_that_does_not_answer_does_not_prevent_the_answer(embedded: str, hangs: bool) -> None:
    mirror = Hanging() if hangs else ScriptedMirror()
    mirror.silent = True
    async with (
        an_orchestrator(embedded, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask()

        assert frames[-1].code is None
        assert (await history(orchestrator, peer.conversation_id)).total_turns == 1


class NotReadyFor(ScriptedMirror):
    """A mirror that has no place for one conversation yet."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__()
        self._without = conversation_id

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        if conversation_id == self._without:
            raise MirrorUnavailable(for_one=True)
        return await super().foreign_changes(conversation_id)


async def test_a_mirror_without_one_conversation_still_gets_the_others(embedded: str) -> None:
    store = a_store(embedded)
    ledger = Ledger(HandClock(), DEFAULTS, agents().agent_types)
    mirror = NotReadyFor("conv_1")
    sync = BlockSync(mirror, ledger, Outbox(store), rest_seconds=600)
    block = StoredBlock("What is known.", 1, digest("What is known."), "mem_1")
    try:
        assert await sync.foreign_changes("conv_1") == ()
        await mirror.put("conv_2", {SUMMARY: block})
        mirror.append("conv_2", SUMMARY, "And more.", actor=AGENT)
        assert [each.actor for each in await sync.foreign_changes("conv_2")] == [AGENT]

        mirror.silent = True
        assert await sync.foreign_changes("conv_3") == ()
        mirror.silent = False
        assert await sync.foreign_changes("conv_2") == ()
    finally:
        store.close_now()


class Slow(ScriptedMirror):
    """A mirror that is slow for one conversation, and has no place for another yet."""

    def __init__(self, waits: str, comes: str) -> None:
        super().__init__()
        self.waits, self.comes = waits, comes

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        if conversation_id == self.waits:
            await asyncio.Event().wait()
        if conversation_id == self.comes:
            raise MirrorUnavailable(soon=True)
        return await super().foreign_changes(conversation_id)


async def test_only_the_conversation_for_which_a_mirror_was_slow_is_not_asked_for_a_while(
    embedded: str,
) -> None:
    store = a_store(embedded)
    ledger = Ledger(HandClock(), DEFAULTS, agents().agent_types)
    mirror = Slow(waits="conv_1", comes="conv_2")
    sync = BlockSync(mirror, ledger, Outbox(store), Waiting(0.05, 0.05), rest_seconds=600)
    block = StoredBlock("What is known.", 1, digest("What is known."), "mem_1")
    try:
        assert await sync.foreign_changes("conv_1") == ()
        assert await sync.foreign_changes("conv_2") == ()
        mirror.waits = mirror.comes = ""
        for conversation_id in ("conv_1", "conv_2", "conv_3"):
            await mirror.put(conversation_id, {SUMMARY: block})
            mirror.append(conversation_id, SUMMARY, "And more.", actor=AGENT)

        result = {each: len(await sync.foreign_changes(each)) for each in ("conv_1", "conv_2", "conv_3")}

        assert result == {"conv_1": 0, "conv_2": 1, "conv_3": 1}
    finally:
        store.close_now()


async def test_a_mirror_that_answers_again_gets_what_it_missed(embedded: str) -> None:
    mirror = ScriptedMirror()
    async with (
        an_orchestrator(embedded, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        await until_copied(orchestrator, mirror, peer.conversation_id)
        mirror.silent = True
        await peer.ask("8")
        await peer.ask("Since yesterday")
        assert '"8"' not in mirror.text(peer.conversation_id, Label.CONVERSATION_HISTORY)

        mirror.silent = False
        await peer.ask("No")

        await until_copied(orchestrator, mirror, peer.conversation_id)


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
    async with an_orchestrator(embedded, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("The headache is gone!")
        await peer.ask("Thank you")

        first, second = (await history(orchestrator, peer.conversation_id)).turns

        assert (first.sentiment, first.topics, first.context_score) == (
            "positive",
            ("headache_evaluation",),
            0.8,
        )
        assert second.sentiment is None
        assert '"sentiment"' not in second.text


@pytest.mark.requirement("001-102")
async def test_a_new_session_knows_the_persons_earlier_ones_and_nobody_elses(address: str) -> None:
    async with an_orchestrator(address, local_brain()).open() as orchestrator:
        async with conversing(orchestrator, "bob") as peer:
            await peer.ask("I cannot sleep")
        before = []
        for text in ("My knee hurts", "I am having a headache"):
            async with conversing(orchestrator) as peer:
                await peer.ask(text)
                await peer.ask("8")
                before.append(peer.conversation_id)
        async with conversing(orchestrator):
            pass  # a conversation without messages has nothing to read

        async with conversing(orchestrator) as peer:
            await peer.ask("I have a rash")
            await peer.ask("Since yesterday")
            texts = await stored(orchestrator, peer.conversation_id)

        session = ActiveSession.model_validate_json(texts[SESSION])
        earlier = session.earlier_sessions or ()
        assert [each.session_id for each in earlier] == before
        assert [each.summary.partition(" with ")[0] for each in earlier] == ["Knee hurts", "Headache"]
        for each in earlier:
            then = ActiveSession.model_validate_json((await stored(orchestrator, each.session_id))[SESSION])
            assert each.ended_at == then.session_info.last_activity
            looked_at = await orchestrator.store.read(partial(_without_a_message, each.session_id))
            assert looked_at[-1:] == [("retrieved", "context_extractor", "active_session")]


def _without_a_message(conversation_id: str, tx: Transaction) -> list[tuple[str, str, str]]:
    """The actions on the blocks of a conversation outside of its turns, with their actors."""
    traces = tx.traces.of_conversation(conversation_id)
    return [
        (each.action, each.actor or "", str((each.meta or {})["label"]))
        for each in traces
        if each.message_id is None
    ]


@pytest.mark.requirement("003-071")
async def test_a_connected_client_gets_a_trace_at_once_when_a_later_session_reads_its_blocks(
    address: str,
) -> None:
    async with (
        an_orchestrator(address).open() as orchestrator,
        conversing(orchestrator) as earlier,
        conversing(orchestrator) as later,
    ):
        await earlier.ask()

        await later.ask()

        (result,) = await earlier.until_type(TRACE)
        assert traced([result], "retrieved") == [("retrieved", SESSION, "context_extractor", False)]


@pytest.mark.requirement("003-071")
@on_both_databases
async def test_a_connected_client_gets_traces_of_what_staff_write_in_another_process_but_not_of_reads(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", address)
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        for _ in range(5):
            await peer.ask()
        last_active = await orchestrator.store.read(partial(_last_active, peer.conversation_id))

        for command in ("show", "rotate"):
            ended = await asyncio.to_thread(run, "blocks", command, peer.conversation_id)
            assert ended.exit_code == 0, ended.output
        result = await peer.until(lambda frame: frame.body["metadata"]["label"] == METADATA)

        actions = {(each.body["action"], each.body["metadata"]["agent"].partition(":")[0]) for each in result}
        assert actions == {("updated", "operator")}
        assert await orchestrator.store.read(partial(_last_active, peer.conversation_id)) == last_active
        async with visiting(orchestrator) as again:
            await again.open(peer.conversation_id, lastSequenceSeen=peer.seen - len(result))
            assert [(await again.next()).packet for _ in result] == [each.packet for each in result]


def _last_active(conversation_id: str, tx: Transaction) -> datetime:
    return tx.conversations.owned(conversation_id, "ann").updated_at


async def test_an_earlier_session_with_damaged_blocks_is_skipped(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator:
        async with conversing(orchestrator) as spoiled:
            await spoiled.ask()
            await spoil(orchestrator, spoiled.conversation_id, SESSION, "{")
        async with conversing(orchestrator) as peer:
            frames = await peer.ask()
            texts = await stored(orchestrator, peer.conversation_id)
        async with visiting(orchestrator) as again:
            await again.open(spoiled.conversation_id)
            await again.ask()

        assert frames[-1].code is None
        assert ActiveSession.model_validate_json(texts[SESSION]).earlier_sessions is None
        assert len(await set_aside(orchestrator, spoiled.conversation_id)) == 1


# --- sessions -----------------------------------------------------------------------------------------------


async def status(orchestrator: Orchestrator, conversation_id: str) -> str:
    session = ActiveSession.model_validate_json((await stored(orchestrator, conversation_id))[SESSION])
    return session.session_info.status.value


async def revisions(orchestrator: Orchestrator, conversation_id: str) -> list[tuple[str, int | None]]:
    """The actor and the turn of each revision of the session."""
    kept = await orchestrator.store.read(lambda tx: tx.blocks.revisions(conversation_id, SESSION))
    return [(each.actor, each.turn) for each in kept]


@pytest.mark.requirement("001-043")
async def test_a_session_pauses_when_nobody_writes_and_resumes_with_the_next_turn(address: str) -> None:
    clock = HandClock()
    mirror = ScriptedMirror()
    async with (
        an_orchestrator(address, clock=clock, mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        clock.tick(29 * 60)
        await orchestrator.idle.check()
        assert await status(orchestrator, peer.conversation_id) == "ACTIVE"

        clock.tick(2 * 60)
        await orchestrator.idle.check()
        await orchestrator.idle.check()

        assert await status(orchestrator, peer.conversation_id) == "PAUSED"
        assert await revisions(orchestrator, peer.conversation_id) == [
            ("context_extractor", 1),
            ("orchestrator:paused", None),
        ]
        result = await peer.until(lambda frame: frame.body.get("action") == "updated")
        assert traced(result, "retrieved", "updated") == [
            *[("retrieved", label, "orchestrator:paused", False) for label in Label],
            ("updated", SESSION, "orchestrator:paused", False),
        ]
        assert all(each.body["metadata"]["background"] and "previousId" not in each.body for each in result)
        await until_copied(orchestrator, mirror, peer.conversation_id)
        await peer.ask("8")
        assert await status(orchestrator, peer.conversation_id) == "ACTIVE"


@pytest.mark.requirement("001-043")
async def test_a_session_ends_when_its_conversation_is_archived(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask()
        await orchestrator.store.write(
            lambda tx: tx.conversations.update(peer.conversation_id, status="archived")
        )

        await orchestrator.idle.check()
        await orchestrator.idle.check()

        assert await status(orchestrator, peer.conversation_id) == "ENDED"
        assert (await revisions(orchestrator, peer.conversation_id))[1:] == [("orchestrator:ended", None)]


async def test_a_session_that_an_older_version_paused_is_not_paused_again(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    with monkeypatch.context() as older:
        older.setattr("orchestrator.connection.idle._ACTORS", idle._FORMER_ACTORS)
        async with (
            an_orchestrator(embedded, clock=clock).open() as orchestrator,
            conversing(orchestrator) as peer,
        ):
            await peer.ask()
            clock.tick(31 * 60)
            await orchestrator.idle.check()
            await peer.until(lambda frame: frame.body.get("action") == "updated")

    async with an_orchestrator(embedded, clock=clock).open() as orchestrator:
        before = await everything(orchestrator)
        await orchestrator.idle.check()

        assert await status(orchestrator, peer.conversation_id) == "PAUSED"
        assert (await revisions(orchestrator, peer.conversation_id))[-1] == ("house:paused", None)
        assert await everything(orchestrator) == before


async def test_a_session_with_a_running_answer_is_not_paused(embedded: str) -> None:
    clock, go_on = HandClock(), asyncio.Event()
    brain = ScriptedBrain(answers=[["Yes."], [go_on, "No."]])
    async with (
        an_orchestrator(
            embedded, brain, clock=clock, deadline_seconds=9_000, lease_seconds=9_000
        ).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()
        await peer.say("8")
        await peer.until_type(TRACE)
        clock.tick(31 * 60)

        await orchestrator.idle.check()

        assert await status(orchestrator, peer.conversation_id) == "ACTIVE"
        go_on.set()
        await peer.answer()
