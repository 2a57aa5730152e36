"""How a connection opens: its conversation is made or found, and both sides learn where they stand."""

from typing import Any

import msgpack
import pytest

from orchestrator.house import House
from orchestrator.store.rows import Conversation
from orchestrator.wire.ids import ConversationId
from orchestrator.wire.messages import ModelInfo, ServerInfo
from tests.houses import ANN, BOB, a_house, everything
from tests.peers import (
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


async def conversations(house: House, person: str = ANN) -> list[Conversation]:
    return await house.store.read(lambda tx: tx.conversations.of_person(person))


async def an_answered_conversation(house: House, person: str = ANN) -> tuple[str, list[Frame]]:
    """The id of a conversation with one turn, and every numbered frame of it."""
    async with conversing(house, person) as peer:
        return peer.conversation_id, await peer.ask()


@pytest.mark.requirement("003-013", "003-014", "003-002", "003-003", "003-004")
async def test_a_configuration_without_an_id_makes_exactly_one_conversation(address: str) -> None:
    async with a_house(address).open() as house, visiting(house) as peer:
        replies = await peer.open()

        (made,) = await conversations(house)
        assert made.id == made.livekit_room_name == peer.conversation_id
        assert made.user_id == ANN
        assert {reply.conversation_id for reply in replies} == {made.id}
        assert {frame.conversation_id for frame in await peer.ask()} == {made.id}


async def test_the_replies_have_stanza_0_and_tell_the_settings_both_counts_and_who_answers(
    address: str,
) -> None:
    settings = {"clientVersion": "1.2", "preferredLanguage": "en", "device": "phone"}
    async with a_house(address).open() as house, visiting(house) as peer:
        replies = await peer.open(stanza=7, features=["streaming", "reasoning"], **settings)

        told, acknowledged, info = replies
        assert [(reply.stanza, reply.type) for reply in replies] == [
            (0, CONFIGURATION),
            (0, ACKNOWLEDGEMENT),
            (0, SERVER_INFO),
        ]
        assert told.body == {
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


async def test_who_is_connected_is_told_when_somebody_else_answers(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.house.WHO_SECONDS", 0.01)
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
        a_house(embedded, server_info=lambda: answers).open() as house,
        visiting(house) as peer,
    ):
        opening = await peer.open()
        first = await peer.ask()
        answers = stands_in
        told = await peer.next()
        second = await peer.ask()
        answers = there
        again = await peer.next()

    assert (opening[-1].body["backend"], opening[-1].body["model"]["name"]) == ("letta", "large")
    assert (told.stanza, told.type, told.body["backend"]) == (0, SERVER_INFO, "embedded")
    assert told.body["model"] == {"name": "local", "provider": "anamnesis"}
    assert (again.stanza, again.type, again.body) == (0, SERVER_INFO, opening[-1].body)
    assert SERVER_INFO not in {frame.type for frame in (*first, *second)}


@pytest.mark.requirement("003-016", "003-008", "003-009")
async def test_a_known_conversation_goes_on_where_both_sides_had_counted_to(address: str) -> None:
    async with a_house(address).open() as house:
        async with conversing(house, device="phone") as peer:
            await peer.ask()
            sent, seen = peer.sent, peer.seen

        async with visiting(house) as again:
            told = (await again.open(peer.conversation_id, stanza=sent + 1))[0].body
            await again.ask("It is an 8")

        assert (told["lastClientStanza"], told["lastServerStanza"]) == (sent + 1, -seen)
        assert told["device"] == "phone"
        assert len(await conversations(house)) == 1


@pytest.mark.parametrize("place", ["envelope", "body", "both"])
async def test_a_resuming_client_names_its_conversation_in_either_place(address: str, place: str) -> None:
    async with a_house(address).open() as house:
        conversation_id, _ = await an_answered_conversation(house)
        fields: dict[str, Any] = {"stanzaId": 0, "type": CONFIGURATION, "body": {}}
        if place != "body":
            fields["conversationId"] = conversation_id
        if place != "envelope":
            fields["body"]["conversationId"] = conversation_id
        async with visiting(house) as peer:
            await peer.line.send(msgpack.packb(fields))

            assert (await peer.next()).body["conversationId"] == conversation_id
        assert len(await conversations(house)) == 1


@pytest.mark.requirement("003-016")
async def test_a_foreign_an_unknown_and_a_deleted_conversation_are_not_found_and_none_is_made(
    address: str,
) -> None:
    async with a_house(address).open() as house:
        foreign, _ = await an_answered_conversation(house, BOB)
        deleted, _ = await an_answered_conversation(house)
        await house.store.write(lambda tx: tx.conversations.delete(deleted))
        before = await everything(house)
        async with visiting(house) as peer:
            for asked in (foreign, "conv_that-never-was", deleted):
                peer.conversation_id = asked
                await peer.send(CONFIGURATION, stanza=0, lastSequenceSeen=0)
                peer.conversation_id = ""
                refused = await peer.next()
                assert (refused.stanza, refused.code, refused.conversation_id) == (0, 201, "")
            assert await everything(house) == before

            await peer.open()  # the connection lives
            assert await conversations(house, BOB) != []


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
    async with a_house(address).open() as house:
        conversation_id, _ = await an_answered_conversation(house)
        before = await everything(house)
        async with visiting(house) as peer:
            peer.conversation_id = conversation_id
            await peer.send(type, **body)
            peer.conversation_id = ""
            refused = await peer.next()

            assert (refused.stanza, refused.code) == (0, 202)
            assert await everything(house) == before
            await peer.open(conversation_id)


async def test_stanza_0_of_a_first_configuration_is_neither_counted_nor_kept(address: str) -> None:
    async with a_house(address).open() as house:
        conversation_id, _ = await an_answered_conversation(house)
        before = await everything(house)

        for _ in range(2):
            async with visiting(house) as peer:
                _, acknowledged, _ = await peer.open(conversation_id, stanza=0, meta={"source": "reload"})
                assert acknowledged.body["acknowledgedStanzaId"] == 0

        assert await everything(house) == before
        async with visiting(house) as peer:
            await peer.open(conversation_id, stanza=0)
            assert (await peer.ask("It is an 8"))[0].body["acknowledgedStanzaId"] == 3


async def test_a_first_configuration_is_taken_whatever_its_number_is(address: str) -> None:
    async with a_house(address).open() as house:
        conversation_id, _ = await an_answered_conversation(house)

        for stanza, last in ((1, 2), (2, 2), (-5, 2), (0, 2), (90, 90), (90, 90), (3, 90)):
            async with visiting(house) as peer:
                told, acknowledged, _ = await peer.open(
                    conversation_id, stanza=stanza, device=f"number{stanza}", meta={"a": 1}
                )
                assert acknowledged.body["acknowledgedStanzaId"] == stanza
                assert (told.body["lastClientStanza"], told.body["device"]) == (last, f"number{stanza}")


@pytest.mark.requirement("003-007")
async def test_a_later_configuration_changes_what_it_names_and_nothing_else(address: str) -> None:
    async with a_house(address).open() as house, conversing(house, device="phone", features=[]) as peer:
        await peer.send(CONFIGURATION, preferredLanguage="fr")
        told, acknowledged = await peer.next(), await peer.next()

        assert [told.stanza, acknowledged.stanza] == [0, 0]
        assert told.body["preferredLanguage"] == "fr"
        assert (told.body["device"], told.body["features"]) == ("phone", [])
        assert told.body["lastClientStanza"] == acknowledged.body["acknowledgedStanzaId"] == peer.sent
        (kept,) = await conversations(house)
        assert kept.preferences == {"device": "phone", "features": [], "preferred_language": "fr"}


@pytest.mark.requirement("003-151", "003-152", "003-153")
async def test_a_later_configuration_with_stanza_0_begins_anew_on_the_same_connection(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        frames = await peer.ask()
        packets = [frame.packet for frame in frames]

        replies = await peer.open(peer.conversation_id, stanza=0, lastSequenceSeen=2)
        again = [await peer.next() for _ in packets[2:]]

        assert [reply.stanza for reply in replies] == [0, 0, 0]
        assert [frame.packet for frame in again] == packets[2:]
        assert len(await conversations(house)) == 1
        assert (await peer.ask("It is an 8"))[-1].ends_an_answer


async def test_a_later_configuration_with_another_id_is_refused(address: str) -> None:
    async with a_house(address).open() as house:
        other, _ = await an_answered_conversation(house)
        async with conversing(house) as peer:
            mine, peer.conversation_id = peer.conversation_id, other
            before = await everything(house)
            await peer.send(CONFIGURATION)
            peer.conversation_id = mine

            assert (await peer.next()).code == 202
            assert await everything(house) == before


async def test_a_client_that_names_no_features_gets_sentences_whoever_was_there_before(address: str) -> None:
    async with a_house(address).open() as house:
        async with conversing(house, features=[]) as terse:
            assert (await terse.ask())[-1].body["content"]

        async with visiting(house) as plain:
            told = (await plain.open(terse.conversation_id))[0]
            assert told.body["features"] == ["streaming"]
            assert (await plain.ask("It is an 8"))[-1].body["isFinal"]


async def test_the_last_seen_stanza_says_from_where_on_the_server_tells_again(address: str) -> None:
    async with a_house(address).open() as house:
        conversation_id, frames = await an_answered_conversation(house)
        packets = [frame.packet for frame in frames]

        for seen in (0, 1, 5, len(frames) - 1, len(frames)):
            async with visiting(house) as peer:
                told = (await peer.open(conversation_id, lastSequenceSeen=seen))[0]
                again = [await peer.next() for _ in packets[seen:]]
                assert told.body["lastServerStanza"] == -len(frames)
                assert [frame.packet for frame in again] == packets[seen:]

        async with visiting(house) as peer:
            await peer.open(conversation_id)
            note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")
            assert note.stanza == -len(frames) - 1  # without a number, nothing is told again


async def test_more_than_was_ever_sent_cannot_have_been_seen(address: str) -> None:
    async with a_house(address).open() as house:
        conversation_id, frames = await an_answered_conversation(house)
        before = await everything(house)
        async with visiting(house) as peer:
            peer.conversation_id = conversation_id
            await peer.send(CONFIGURATION, lastSequenceSeen=len(frames) + 1)
            peer.conversation_id = ""
            assert (await peer.next()).code == 105

            assert (await peer.request(CONFIGURATION, lastSequenceSeen=1)).code == 105  # in a new one
            assert await everything(house) == before

            await peer.open(conversation_id, stanza=0)
            before = await everything(house)
            refused = await peer.request(CONFIGURATION, lastSequenceSeen=len(frames) + 1)
            assert refused.code == 105
            assert await everything(house) == before
