"""The reference client over a connection that loses frames and breaks: it receives everything once."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from orchestrator.client import client as reference
from orchestrator.client.bookmarks import Bookmarks
from orchestrator.client.client import Client
from orchestrator.errors import DISCONNECTED, AnamnesisError
from orchestrator.orchestrator import Orchestrator
from orchestrator.ports import Transport
from orchestrator.transports.in_process import End, pair
from orchestrator.wire.ids import RandomIds
from tests.support.orchestrators import ANN, an_orchestrator, messages


class Lossy(End):
    """A connection that loses the frames with these numbers, counted from 1 in each direction."""

    def __init__(self, end: End, *, sent: frozenset[int] = frozenset(), received: frozenset[int]) -> None:
        self.__dict__.update(end.__dict__)
        self._to_lose = {"sent": set(sent), "received": set(received)}
        self._turns = {"sent": 0, "received": 0}

    def _lost(self, direction: str) -> bool:
        self._turns[direction] += 1
        return self._turns[direction] in self._to_lose[direction]

    async def send(self, packet: bytes) -> None:
        if not self._lost("sent"):
            await super().send(packet)

    async def receive(self) -> bytes | None:
        frame = await super().receive()
        while frame is not None and self._lost("received"):
            frame = await super().receive()
        return frame


def dialling(
    orchestrator: Orchestrator, made_of: Callable[[End], End]
) -> Callable[[], "asyncio.Future[Transport]"]:
    """A function that connects a client to an orchestrator in this process, over connections of that kind."""
    loop, serving = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    def dial() -> asyncio.Future[Transport]:
        ours, theirs = pair()
        task = asyncio.create_task(orchestrator.serve(theirs, ANN))
        serving.add(task)
        task.add_done_callback(serving.discard)
        line: asyncio.Future[Transport] = loop.create_future()
        line.set_result(made_of(ours))
        return line

    return dial


async def answers(client: Client, *said: str) -> list[int]:
    """Send all messages, one after the other. Returns the numbers of the received stanzas."""
    numbers: list[int] = []
    for words in said:
        async with aclosing(client.answer_to(await client.say(words))) as answer:
            async for envelope in answer:
                numbers += [-envelope.stanza_id] if envelope.stanza_id else []
    return numbers


@pytest.mark.parametrize("lost", [{4}, {5, 6, 7}, {8, 20}, {14}, set(range(9, 30))], ids=str)
@pytest.mark.requirement("003-151", "003-153")
async def test_frames_of_the_server_that_are_lost_are_asked_for_again(
    embedded: str, monkeypatch: pytest.MonkeyPatch, lost: set[int]
) -> None:
    monkeypatch.setattr(reference, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(reference, "QUIET_SECONDS", 0.2)
    async with an_orchestrator(embedded).open() as orchestrator:
        dial = dialling(orchestrator, lambda end: Lossy(end, received=frozenset(lost)))
        client = Client(await dial(), RandomIds(), dial=dial)
        async for _ in client.open():
            pass

        numbers = await answers(client, "I am having a headache", "8")
        await client.close()

    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("lost", [{2}, {3}, {2, 3}], ids=str)
async def test_a_message_that_was_lost_is_sent_again_and_answered_once(
    embedded: str, monkeypatch: pytest.MonkeyPatch, lost: set[int]
) -> None:
    monkeypatch.setattr(reference, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(reference, "QUIET_SECONDS", 0.2)
    async with an_orchestrator(embedded).open() as orchestrator:
        dial = dialling(orchestrator, lambda end: Lossy(end, sent=frozenset(lost), received=frozenset()))
        client = Client(await dial(), RandomIds(), dial=dial)
        async for _ in client.open():
            pass
        numbers = await answers(client, "I am having a headache", "8")

        said = [message.contents for message in await messages(orchestrator, client.conversation_id)][::2]
        await client.close()

    assert numbers == list(range(1, len(numbers) + 1))
    assert said == ["I am having a headache", "8"]


async def test_a_broken_connection_is_opened_again_and_without_a_dialer_is_an_error(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator:
        lines: list[End] = []
        dial = dialling(orchestrator, lambda end: lines.append(end) or end)  # type: ignore[func-returns-value]
        client = Client(await dial(), RandomIds(), dial=dial)
        async for _ in client.open():
            pass
        await lines[-1].close()
        numbers = await answers(client, "I am having a headache")
        await client.close()

        alone = Client(await dial(), RandomIds())
        async for _ in alone.open():
            pass
        await lines[-1].close()
        with pytest.raises(AnamnesisError) as ended:
            await alone.receive()

    assert numbers == list(range(1, len(numbers) + 1))
    assert ended.value.problem is DISCONNECTED


@pytest.mark.requirement("003-148", "003-151", "003-153")
async def test_a_returning_client_gets_everything_after_the_last_stanza_it_kept(
    embedded: str, tmp_path: Path
) -> None:
    bookmarks = Bookmarks(tmp_path / "seen", "http://127.0.0.1:8321/")
    async with an_orchestrator(embedded).open() as orchestrator:
        dial = dialling(orchestrator, lambda end: end)
        client = Client(await dial(), RandomIds(), dial=dial, keep=bookmarks.keep)
        async for _ in client.open():
            pass
        first = await answers(client, "I am having a headache")
        other = Client(await dial(), RandomIds())
        async for _ in other.open(client.conversation_id):
            pass
        elsewhere = await answers(other, "8")

        later = Bookmarks(tmp_path / "seen", "http://127.0.0.1:8321")
        again = Client(await dial(), RandomIds(), keep=later.keep)
        opening = again.open(client.conversation_id, seen=later.seen(client.conversation_id))
        missed = [-said.stanza_id async for said in opening if said.stanza_id]
        for each in (client, other, again):
            await each.close()

    assert missed == [first[-1], *elsewhere]  # the last one was returned, and may not have been processed
    assert later.seen(client.conversation_id) == elsewhere[-1]
    assert later.seen("conv_another") is None
    assert Bookmarks(tmp_path / "seen", "http://elsewhere").seen(client.conversation_id) is None


class Renewed(End):
    """A connection whose other end is replaced without notice, as in a room whose server has restarted."""

    def renew(self, end: End) -> None:
        self.__dict__.update(end.__dict__)


async def test_a_client_opens_the_conversation_again_if_the_server_has_forgotten_it(embedded: str) -> None:
    async with an_orchestrator(embedded).open() as orchestrator:
        dial = dialling(orchestrator, lambda end: end)
        first = await dial()
        assert isinstance(first, End)
        line = Renewed.__new__(Renewed)
        line.renew(first)
        client = Client(line, RandomIds(), dial=dial)
        async for _ in client.open():
            pass
        second = await dial()
        assert isinstance(second, End)
        line.renew(second)

        numbers = await answers(client, "I am having a headache")
        said = [message.contents for message in await messages(orchestrator, client.conversation_id)][::2]
        await client.close()
        await first.close()

    assert numbers == list(range(1, len(numbers) + 1))
    assert said == ["I am having a headache"]
