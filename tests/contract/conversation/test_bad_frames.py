"""Every kind of bad frame is refused with its code and stores nothing; the next good frame is answered."""

import asyncio
from typing import Any

import msgpack
import pytest

from orchestrator.wire.codec import MAX_FRAME_BYTES
from tests.support.orchestrators import ANN, an_orchestrator, everything, message, rows
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    AUDIO,
    CONFIGURATION,
    ERROR,
    NOTE,
    START_ANSWER,
    STOP,
    USER_MESSAGE,
    Peer,
    conversing,
    envelope,
    new_id,
    visiting,
)
from tests.support.stores import on_both_databases
from tests.wire import hostile

HERE = "conv_7H93k"
SAID: dict[str, Any] = {"conversationId": HERE, "id": "msg_1", "content": "CANARY"}
GOOD: dict[str, Any] = {"stanzaId": 2, "conversationId": HERE, "type": USER_MESSAGE, "body": SAID}


def packed(value: Any) -> bytes:
    data: bytes = msgpack.packb(value)
    return data


def spoiled(**fields: Any) -> bytes:
    """A good envelope with some fields changed; `...` removes a field."""
    return packed({key: value for key, value in {**GOOD, **fields}.items() if value is not ...})


def saying(**fields: Any) -> bytes:
    """A good UserMessage with some fields of its body changed."""
    return spoiled(body={key: value for key, value in {**SAID, **fields}.items() if value is not ...})


def of_type(type: int, **body: Any) -> bytes:
    return spoiled(type=type, body={"conversationId": HERE, **body})


def with_raw(value: bytes, *, where: str = "body") -> bytes:
    """A good envelope with raw bytes as the value of one field."""
    mark = packed("HERE GOES IT")
    data = saying(extra="HERE GOES IT") if where == "body" else spoiled(meta={"extra": "HERE GOES IT"})
    assert mark in data
    return data.replace(mark, value)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 0


WHOLE = packed(GOOD)
ANYTHING: dict[str, dict[str, Any]] = {
    "of good form": {"body": {**SAID, "memoryId": "mem_1", "action": "stored"}},
    "without a body": {"body": ...},
    "without a stanza": {"stanzaId": ..., "conversationId": 5, "body": "CANARY"},
}
BAD: dict[int, dict[str, bytes]] = {
    101: {
        "nothing": b"",
        "cut": WHOLE[:-1],
        "cut early": WHOLE[:9],
        "a list": packed([GOOD]),
        "a number": packed(7),
        "a text": packed("hello"),
        "null": packed(None),
        "trailing bytes": WHOLE + b"\x00",
        "two envelopes": WHOLE + WHOLE,
        "never used": b"\xc1",
        "key twice": bytes([WHOLE[0] + 1]) + WHOLE[1:] + packed("type") + packed(2),
        "key twice within": with_raw(b"\x82\xa1a\x01\xa1a\x02"),
        "key is a number": with_raw(b"\x81\x01\x02"),
        "key is binary": with_raw(b"\x81\xc4\x01a\x02"),
        "extension": with_raw(b"\xd4\x05a"),
        "time extension": with_raw(b"\xd6\xff\x00\x00\x00\x00"),
        "not a number": with_raw(b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
        "infinity": with_raw(b"\xca\xff\x80\x00\x00", where="meta"),
        "not UTF-8": with_raw(b"\xa2\xc3\x28"),
        "lone surrogate": with_raw(b"\xa3\xed\xa0\x80"),
        "names that differ": of_type(AUDIO, format="opus", durationMs=1, duration=2),
    },
    102: {"type 0": of_type(0), "type 99": of_type(99), "type 65535": of_type(65535, id=[])},
    103: {
        "nested 17 deep": saying(extra=nested(15)),
        "bomb of lists": b"\x91" * 5000 + b"\xc0",
        "10,001 items": saying(extra=[0] * 10_001),
        "1,001 keys": saying(extra={str(number): 0 for number in range(1_001)}),
        "a long text": saying(content="a" * (256 * 1024 + 1)),
        "a long text in bytes": saying(content="ä" * (128 * 1024 + 1)),
        "a long binary": saying(extra=b"a" * (256 * 1024 + 1)),
    },
    104: {
        "no type": spoiled(type=...),
        "no stanza": spoiled(stanzaId=...),
        "no body": spoiled(body=...),
        "no conversation": spoiled(conversationId=...),
        "an empty conversation": spoiled(conversationId="", body={**SAID, "conversationId": ""}),
        "no conversation within": saying(conversationId=...),
        "no id": saying(id=...),
        "no content": saying(content=...),
        "null content": saying(content=None),
        "an edit without content": of_type(11, targetId="msg_1", mode="edit"),
        "an acknowledgement of nothing": of_type(ACKNOWLEDGEMENT, success=True),
        "an item without its id": of_type(17, messages=[{"role": "user"}]),
    },
    105: {
        "NUL": saying(content="a\0b"),
        "NUL in meta": spoiled(meta={"source": "a\0b"}),
        "NUL in a name in meta": spoiled(meta={"a\0b": 1}),
        "NUL in a setting": of_type(CONFIGURATION, device="\0"),
        "a type too large": spoiled(type=65536),
        "a type below 0": spoiled(type=-1),
        "a type in words": spoiled(type="2"),
        "a type that is true": spoiled(type=True),
        "a stanza too large": spoiled(stanzaId=2**31),
        "a stanza in words": spoiled(stanzaId="2"),
        "a body in a list": spoiled(body=[SAID]),
        "meta in a list": spoiled(meta=[1]),
        "a map in meta": spoiled(meta={"a": {}}),
        "a list in meta": spoiled(meta={"a": [1]}),
        "content that is a number": saying(content=5),
        "content that is binary": saying(content=b"hello"),
        "no words": saying(content=""),
        "blank": saying(content=" \n\t"),
        "an id with a space": saying(id="msg 1"),
        "an id with a slash": saying(id="../msg"),
        "an empty id": saying(id=""),
        "an id too long": saying(id="m" * 129),
        "another conversation within": saying(conversationId="conv_other"),
        "a time in words": saying(timestamp="yesterday"),
        "a time without a zone": saying(timestamp="2024-01-15T10:30:00"),
        "a time before 1970": saying(timestamp=-1),
        "a stop of something else": of_type(STOP, stopType="thinking"),
        "success that is 1": of_type(7, id="res_1", requestId="tool_1", success=1),
        "an unknown action": of_type(NOTE, id="note_1", content="hm", action="burn"),
        "a cursor below 0": of_type(CONFIGURATION, lastSequenceSeen=-1),
        "features in words": of_type(CONFIGURATION, features="streaming"),
    },
    203: {
        f"type {type}, {name}": spoiled(type=type, **fields)
        for type in (3, 5, 6, 9, 13, 14, 16, 18, 23, 25, 26)
        for name, fields in ANYTHING.items()
    },
}


async def in_this_conversation(peer: Peer) -> None:
    await peer.open(HERE, stanza=1)


@pytest.mark.requirement("000-002")
@pytest.mark.parametrize("code", BAD)
@on_both_databases
async def test_a_bad_frame_is_refused_with_its_code_and_stores_nothing(address: str, code: int) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        await orchestrator.store.write(lambda tx: tx.conversations.create(ANN, id=HERE))
        async with visiting(orchestrator) as peer:
            await in_this_conversation(peer)
            before = await everything(orchestrator)

            for name, packet in BAD[code].items():
                await peer.line.send(packet)
                refused = await peer.next()

                assert (refused.stanza, refused.type, refused.code) == (0, ERROR, code), name
                assert refused.body["id"].startswith("err_")
                assert (refused.body["recoverable"], refused.body["severity"] in (1, 2)) == (True, True)
                assert refused.body["message"].endswith(".")
                assert "CANARY" not in str(refused), name
            assert await everything(orchestrator) == before

            await peer.line.send(WHOLE)
            assert (await peer.answer())[0].body["acknowledgedStanzaId"] == 2


async def test_a_refusal_names_the_message_that_it_is_about(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        refused = await peer.request(USER_MESSAGE, id="msg_mine", content=5)
        assert refused.body["originatingId"] == "msg_mine"

        refused = await peer.request(USER_MESSAGE, id="a sentence of mine", content="hello")
        assert "originatingId" not in refused.body  # a value that is not an id is not repeated


async def test_frames_of_newer_and_older_clients_are_understood(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        for number, timestamp in enumerate(
            ("2024-01-15T10:30:00.250Z", "2024-01-15T11:30:00+01:00", 1705314600250, 1705314600250.0, None)
        ):
            frames = await peer.ask(
                f"hello {number}", timestamp=timestamp, mood="calm", nested={"unknown": [1, {}]}
            )
            assert frames[-1].body["isFinal"]

        await peer.ask("Zoë\N{ZERO WIDTH JOINER}'s 👩‍🔬\u0007\u2028", id="any.id~of-theirs_" + "x" * 100)
        kept = await message(orchestrator, "any.id~of-theirs_" + "x" * 100)
        assert kept.contents == "Zoë\N{ZERO WIDTH JOINER}'s 👩‍🔬\u0007\u2028"


async def test_a_frame_too_large_is_refused_and_ends_the_connection(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        before = await everything(orchestrator)
        await peer.line.send(b"\xc0" * (MAX_FRAME_BYTES + 1))

        assert (await peer.next()).code == 103
        assert await peer.gone()
        assert await everything(orchestrator) == before


async def test_a_client_that_sends_too_many_bad_frames_is_disconnected_and_may_reconnect(
    address: str,
) -> None:
    async with (
        an_orchestrator(address, bad_frames_per_minute=5).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for _ in range(9):  # refused because of its content, which is not counted
            assert (await peer.request(99)).code == 102
        for _ in range(4):
            await peer.line.send(b"\xc1")
            assert (await peer.next()).code == 101
        await peer.ask()  # good frames in between do not reset the count
        await peer.line.send(b"\xc1")
        assert (await peer.next()).code == 101

        limited = await peer.next()
        assert (limited.stanza, limited.code, limited.meta) == (0, 204, {"error": "rate_limited"})
        assert await peer.gone()
        async with visiting(orchestrator) as again:
            await again.open(peer.conversation_id, stanza=0)
            await again.ask("It is an 8")


@pytest.mark.parametrize("numbered", [False, True], ids=["as they come", "numbered"])
async def test_hostile_frames_do_no_harm(address: str, numbered: bool) -> None:
    """The hostile frames of the codec's tests, sent in a conversation that may accept some of them."""
    async with an_orchestrator(address, bad_frames_per_minute=10_000).open() as orchestrator:
        await orchestrator.store.write(lambda tx: tx.conversations.create(ANN, id=HERE))
        async with visiting(orchestrator) as peer:
            await in_this_conversation(peer)
            note = new_id("note_")

            async def send() -> None:
                sent = 1
                for frame in hostile.frames(seed=4 + numbered, count=400):
                    sent += 1
                    if len(frame) <= MAX_FRAME_BYTES:
                        await peer.line.send(renumbered(frame, sent) if numbered else frame)
                last = envelope(2**31 - 2, NOTE, HERE, {"id": note, "content": "hm", "action": "create"})
                await peer.line.send(last)

            async with asyncio.TaskGroup() as beside:
                beside.create_task(send())
                frames = await peer.until(lambda frame: frame.body.get("requestId") == note)

            refused = [frame.body["message"] for frame in frames if frame.type == ERROR and not frame.stanza]
            assert len(refused) > 100
            assert not any("CANARY" in message for message in refused)
            assert all(frame.code != 501 for frame in frames), "something failed on our side"
            last = new_id()
            await peer.line.send(envelope(2**31 - 1, USER_MESSAGE, HERE, {"id": last, "content": "hi"}))
            answers = {last}  # under this id, or under the id that it begins with
            while not frames[-1].ends_an_answer or frames[-1].body["previousId"] not in answers:
                frames.append(await peer.next())
                if frames[-1].type == START_ANSWER and frames[-1].body["previousId"] == last:
                    answers.add(frames[-1].body["id"])
            taken = await rows(orchestrator, "SELECT count(*) FROM frames WHERE direction = 'client'")
            assert taken[0][0] > (10 if numbered else 2)


def renumbered(frame: bytes, number: int) -> bytes:
    """The frame under another number, if it has a number."""
    try:
        fields = msgpack.unpackb(frame)
        return packed({**fields, "stanzaId": number}) if "stanzaId" in fields else frame
    except (ValueError, TypeError, OverflowError):
        return frame
