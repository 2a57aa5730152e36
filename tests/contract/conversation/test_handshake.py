"""How a connection opens: its conversation is created or found, and both sides learn the stanza counts."""

from typing import Any

import msgpack
import pytest

from orchestrator.orchestrator import Orchestrator
from orchestrator.store.rows import Conversation
from orchestrator.wire.ids import ConversationId
from orchestrator.wire.messages import ModelInfo, ServerInfo
from tests.support.orchestrators import ANN, BOB, an_orchestrator, everything
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    CONFIGURATION,
    NOTE,
    SERVER_INFO,
    START_ANSWER,
    STOP,
    USER_MESSAGE,
    Frame,
    conversing,
    new_id,
    visiting,
)
from tests.support.stores import on_both_databases


async def conversations(orchestrator: Orchestrator, person: str = ANN) -> list[Conversation]:
    return await orchestrator.store.read(lambda tx: tx.conversations.of_person(person))


async def an_answered_conversation(orchestrator: Orchestrator, person: str = ANN) -> tuple[str, list[Frame]]:
    """The id of a conversation with one turn, and every numbered frame of it."""
    async with conversing(orchestrator, person) as peer:
        return peer.conversation_id, await peer.ask()


@pytest.mark.requirement("003-013", "003-014", "003-002", "003-003", "003-004")
async def test_a_configuration_without_an_id_creates_exactly_one_conversation(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as peer:
        replies = await peer.open()

        (made,) = await conversations(orchestrator)
        assert made.id == made.livekit_room_name == peer.conversation_id
        assert made.user_id == ANN
        assert {reply.conversation_id for reply in replies} == {made.id}
        assert {frame.conversation_id for frame in await peer.ask()} == {made.id}


async def test_the_replies_have_stanza_0_and_carry_the_settings_both_counts_and_the_brain(
    address: str,
) -> None:
    settings = {"clientVersion": "1.2", "preferredLanguage": "en", "device": "phone"}
    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as peer:
        replies = await peer.open(stanza=7, features=["streaming", "reasoning"], **settings)

        configured, acknowledged, info = replies
        assert [(reply.stanza, reply.type) for reply in replies] == [
            (0, CONFIGURATION),
            (0, ACKNOWLEDGEMENT),
            (0, SERVER_INFO),
        ]
        assert configured.body == {
            "conversationId": peer.conversation_id,
            "features": ["streaming", "reasoning"],
            "lastClientStanza": 7,
            "lastServerStanza": 0,
            **settings,
        }
        assert acknowledged.body == {
            "conversationId": peer.conversation_id,
            "acknowledgedStanzaId": 7,
            "success": True,
        }
        assert info.body["model"] == {"name": "scripted", "provider": "anamnesis"}
        assert "GENERAL_HEALTH" in info.body["agents"]


async def test_a_connected_client_gets_server_info_again_when_another_brain_answers(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.orchestrator.SERVER_INFO_SECONDS", 0.01)
    there = ServerInfo(
        conversation_id=ConversationId("none"),
        model=ModelInfo(name="large", provider="letta"),
        backend="letta",
        agents=("GENERAL_HEALTH",),
    )
    local = ModelInfo(name="local", provider="anamnesis")
    stands_in = there.model_copy(update={"model": local, "backend": "embedded"})
    answers = there
    async with (
        an_orchestrator(embedded, server_info=lambda: answers).open() as orchestrator,
        visiting(orchestrator) as peer,
    ):
        opening = await peer.open()
        first = await peer.ask()
        answers = stands_in
        changed = await peer.next()
        second = await peer.ask()
        answers = there
        again = await peer.next()

    assert (opening[-1].body["backend"], opening[-1].body["model"]["name"]) == ("letta", "large")
    assert (changed.stanza, changed.type, changed.body["backend"]) == (0, SERVER_INFO, "embedded")
    assert changed.body["model"] == {"name": "local", "provider": "anamnesis"}
    assert (again.stanza, again.type, again.body) == (0, SERVER_INFO, opening[-1].body)
    assert SERVER_INFO not in {frame.type for frame in (*first, *second)}


@pytest.mark.requirement("003-016", "003-008", "003-009")
@on_both_databases
async def test_a_known_conversation_continues_from_both_counts(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator, device="phone") as peer:
            await peer.ask()
            sent, seen = peer.sent, peer.seen

        async with visiting(orchestrator) as again:
            settings = (await again.open(peer.conversation_id, stanza=sent + 1))[0].body
            await again.ask("It is an 8")

        assert (settings["lastClientStanza"], settings["lastServerStanza"]) == (sent + 1, -seen)
        assert settings["device"] == "phone"
        assert len(await conversations(orchestrator)) == 1


@pytest.mark.parametrize("place", ["envelope", "body", "both"])
async def test_a_resuming_client_names_its_conversation_in_the_envelope_or_in_the_body(
    address: str, place: str
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        conversation_id, _ = await an_answered_conversation(orchestrator)
        fields: dict[str, Any] = {"stanzaId": 0, "type": CONFIGURATION, "body": {}}
        if place != "body":
            fields["conversationId"] = conversation_id
        if place != "envelope":
            fields["body"]["conversationId"] = conversation_id
        async with visiting(orchestrator) as peer:
            await peer.line.send(msgpack.packb(fields))

            assert (await peer.next()).body["conversationId"] == conversation_id
        assert len(await conversations(orchestrator)) == 1


@pytest.mark.requirement("003-016")
async def test_a_foreign_an_unknown_and_a_deleted_conversation_are_not_found_and_none_is_created(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        foreign, _ = await an_answered_conversation(orchestrator, BOB)
        deleted, _ = await an_answered_conversation(orchestrator)
        await orchestrator.store.write(lambda tx: tx.conversations.delete(deleted))
        before = await everything(orchestrator)
        async with visiting(orchestrator) as peer:
            for asked in (foreign, "conv_that-never-was", deleted):
                peer.conversation_id = asked
                await peer.send(CONFIGURATION, stanza=0, lastSequenceSeen=0)
                peer.conversation_id = ""
                refused = await peer.next()
                assert (refused.stanza, refused.code, refused.conversation_id) == (0, 201, "")
            assert await everything(orchestrator) == before

            await peer.open()  # the connection stays open
            assert await conversations(orchestrator, BOB) != []


@pytest.mark.parametrize(
    ("type", "body"),
    [
        (USER_MESSAGE, {"id": "msg_1", "content": "hello"}),
        (STOP, {}),
        (ACKNOWLEDGEMENT, {"acknowledgedStanzaId": -1, "success": True}),
        (START_ANSWER, {"id": "msg_1", "previousId": "msg_0"}),
        (99, {}),
    ],
)
async def test_anything_but_a_configuration_first_is_refused(
    address: str, type: int, body: dict[str, Any]
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        conversation_id, _ = await an_answered_conversation(orchestrator)
        before = await everything(orchestrator)
        async with visiting(orchestrator) as peer:
            peer.conversation_id = conversation_id
            await peer.send(type, **body)
            peer.conversation_id = ""
            refused = await peer.next()

            assert (refused.stanza, refused.code) == (0, 202)
            assert await everything(orchestrator) == before
            await peer.open(conversation_id)


async def test_stanza_0_of_a_first_configuration_is_neither_counted_nor_stored(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        conversation_id, _ = await an_answered_conversation(orchestrator)
        before = await everything(orchestrator)

        for _ in range(2):
            async with visiting(orchestrator) as peer:
                _, acknowledged, _ = await peer.open(conversation_id, stanza=0, meta={"source": "reload"})
                assert acknowledged.body["acknowledgedStanzaId"] == 0

        assert await everything(orchestrator) == before
        async with visiting(orchestrator) as peer:
            await peer.open(conversation_id, stanza=0)
            assert (await peer.ask("It is an 8"))[0].body["acknowledgedStanzaId"] == 3


async def test_a_first_configuration_is_accepted_under_any_number(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        conversation_id, _ = await an_answered_conversation(orchestrator)

        for stanza, last in ((1, 2), (2, 2), (-5, 2), (0, 2), (90, 90), (90, 90), (3, 90)):
            async with visiting(orchestrator) as peer:
                settings, acknowledged, _ = await peer.open(
                    conversation_id, stanza=stanza, device=f"number{stanza}", meta={"a": 1}
                )
                assert acknowledged.body["acknowledgedStanzaId"] == stanza
                assert (settings.body["lastClientStanza"], settings.body["device"]) == (
                    last,
                    f"number{stanza}",
                )


@pytest.mark.requirement("003-007")
async def test_a_later_configuration_changes_what_it_names_and_nothing_else(address: str) -> None:
    async with (
        an_orchestrator(address).open() as orchestrator,
        conversing(orchestrator, device="phone", features=[]) as peer,
    ):
        await peer.send(CONFIGURATION, preferredLanguage="fr")
        settings, acknowledged = await peer.next(), await peer.next()

        assert [settings.stanza, acknowledged.stanza] == [0, 0]
        assert settings.body["preferredLanguage"] == "fr"
        assert (settings.body["device"], settings.body["features"]) == ("phone", [])
        assert settings.body["lastClientStanza"] == acknowledged.body["acknowledgedStanzaId"] == peer.sent
        (kept,) = await conversations(orchestrator)
        assert kept.preferences == {"device": "phone", "features": [], "preferred_language": "fr"}


@pytest.mark.requirement("003-151", "003-152", "003-153")
async def test_a_later_configuration_with_stanza_0_opens_again_on_the_same_connection(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask()
        packets = [frame.packet for frame in frames]

        replies = await peer.open(peer.conversation_id, stanza=0, lastSequenceSeen=2)
        again = [await peer.next() for _ in packets[2:]]

        assert [reply.stanza for reply in replies] == [0, 0, 0]
        assert [frame.packet for frame in again] == packets[2:]
        assert len(await conversations(orchestrator)) == 1
        assert (await peer.ask("It is an 8"))[-1].ends_an_answer


async def test_a_later_configuration_with_another_id_is_refused(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        other, _ = await an_answered_conversation(orchestrator)
        async with conversing(orchestrator) as peer:
            mine, peer.conversation_id = peer.conversation_id, other
            before = await everything(orchestrator)
            await peer.send(CONFIGURATION)
            peer.conversation_id = mine

            assert (await peer.next()).code == 202
            assert await everything(orchestrator) == before


async def test_a_client_that_names_no_features_gets_sentences_after_any_earlier_client(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator, features=[]) as terse:
            assert (await terse.ask())[-1].body["content"]

        async with visiting(orchestrator) as plain:
            settings = (await plain.open(terse.conversation_id))[0]
            assert settings.body["features"] == ["streaming"]
            assert (await plain.ask("It is an 8"))[-1].body["isFinal"]


async def test_the_last_seen_stanza_decides_where_the_replay_begins(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        conversation_id, frames = await an_answered_conversation(orchestrator)
        packets = [frame.packet for frame in frames]

        for seen in (0, 1, 5, len(frames) - 1, len(frames)):
            async with visiting(orchestrator) as peer:
                settings = (await peer.open(conversation_id, lastSequenceSeen=seen))[0]
                again = [await peer.next() for _ in packets[seen:]]
                assert settings.body["lastServerStanza"] == -len(frames)
                assert [frame.packet for frame in again] == packets[seen:]

        async with visiting(orchestrator) as peer:
            await peer.open(conversation_id)
            note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")
            assert note.stanza == -len(frames) - 1  # without a number, nothing is replayed


async def test_a_last_seen_stanza_above_the_count_is_refused(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        conversation_id, frames = await an_answered_conversation(orchestrator)
        before = await everything(orchestrator)
        async with visiting(orchestrator) as peer:
            peer.conversation_id = conversation_id
            await peer.send(CONFIGURATION, lastSequenceSeen=len(frames) + 1)
            peer.conversation_id = ""
            assert (await peer.next()).code == 105

            assert (
                await peer.request(CONFIGURATION, lastSequenceSeen=1)
            ).code == 105  # in a new conversation
            assert await everything(orchestrator) == before

            await peer.open(conversation_id, stanza=0)
            before = await everything(orchestrator)
            refused = await peer.request(CONFIGURATION, lastSequenceSeen=len(frames) + 1)
            assert refused.code == 105
            assert await everything(orchestrator) == before
