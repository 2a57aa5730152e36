"""Staff is told of danger by a webhook: once it arrives, once, and not with what the person wrote."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from orchestrator.alerts import AlertDesk
from orchestrator.errors import AnamnesisError
from orchestrator.health import Health
from orchestrator.house import House
from orchestrator.store.database import Store
from orchestrator.webhook import Webhook
from tests.builders import HandClock
from tests.houses import a_house, a_store, a_watch
from tests.peers import conversing

CHEST = "I have crushing chest pain"


class _Pager(BaseHTTPRequestHandler):
    answers: ClassVar[list[int]] = []
    heard: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.heard.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(self.answers.pop(0) if self.answers else 204)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def a_pager(*answers: int) -> Iterator[tuple[str, list[str]]]:
    """A real webhook that answers with these numbers first, and what it was told."""
    heard: list[str] = []
    handler = type("Pager", (_Pager,), {"answers": list(answers), "heard": heard})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/page", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def in_danger(url: str) -> None:
    watch = replace(a_watch(), alerts=True)
    async with a_house(url, watch=watch).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)
        await peer.ask("thank you")


def states(store: Store) -> list[tuple[str, int, str | None]]:
    rows = store.read_now(
        lambda tx: tx.unit.connection.execute(
            "SELECT state, attempts, error FROM safety_alerts ORDER BY id"
        ).fetchall()
    )
    return [tuple(row) for row in rows]


async def test_danger_is_told_once_and_quotes_nobody(address: str) -> None:
    await in_danger(address)
    store = a_store(address)
    with a_pager() as (url, heard):
        desk = AlertDesk(store, Webhook(url, 5), attempts=3)
        assert await desk.send_one()
        assert not await desk.send_one()

    assert states(store) == [("sent", 1, None)]
    (told,) = heard
    assert json.loads(told).items() >= {"kind": "emergency", "tier": 3}.items()
    assert "chest pain" not in told
    await store.close()


async def test_a_message_in_another_language_alerts_nobody(address: str) -> None:
    watch = replace(a_watch(), alerts=True)
    async with a_house(address, watch=watch).open() as house, conversing(house) as peer:
        await peer.ask("me duele mucho la rodilla desde ayer por la noche")
        (kept,) = await house.store.read(lambda tx: tx.safety.of_conversation(peer.conversation_id))

        assert kept.rules == ("language.es",)
        assert states(house.store) == []


async def test_an_alert_that_does_not_arrive_is_tried_again_and_given_up_at_last(address: str) -> None:
    await in_danger(address)
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    with a_pager(500, 302, 404) as (url, heard):
        desk = AlertDesk(store, Webhook(url, 5), attempts=3)
        seen = []
        for _ in range(4):
            clock.tick(600)
            await desk.send_one()
            seen += states(store)

    assert seen == [
        ("pending", 1, "http_500"),
        ("pending", 2, "http_302"),
        ("given_up", 3, "http_404"),
        ("given_up", 3, "http_404"),
    ]
    assert len(heard) == 3
    await store.close()


async def test_an_alert_waits_longer_after_each_attempt(address: str) -> None:
    await in_danger(address)
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    desk = AlertDesk(store, _unreachable, attempts=9)
    clock.tick(600)

    tries = [await desk.send_one()]
    clock.tick(1)
    tries.append(await desk.send_one())
    clock.tick(1.5)
    tries.append(await desk.send_one())

    assert tries == [True, False, True]
    await store.close()


async def test_an_alert_may_be_tried_as_often_as_one_likes(embedded: str) -> None:
    await in_danger(embedded)
    clock = HandClock(datetime.now(UTC))
    store = a_store(embedded, clock)
    desk = AlertDesk(store, _unreachable, attempts=100)
    for _ in range(60):
        clock.tick(600)
        await desk.send_one()

    assert states(store) == [("pending", 60, "ConnectError")]
    await store.close()


async def _unreachable(alert: dict[str, Any]) -> str:
    return "ConnectError"


async def test_what_two_processes_find_due_is_sent_by_one(address: str) -> None:
    await in_danger(address)
    stores = [a_store(address), a_store(address)]
    sent: list[str] = []

    async def deliver(alert: dict[str, Any]) -> None:
        sent.append(alert["id"])

    desks = [AlertDesk(store, deliver, attempts=3) for store in stores]

    await asyncio.gather(*(desk.send_one() for desk in desks))

    assert len(sent) == 1
    for store in stores:
        await store.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:99999/"])
async def test_a_webhook_that_cannot_be_reached_says_why_by_name(url: str) -> None:
    why = await Webhook(url, 60)({})

    assert why is not None
    assert why.isidentifier()


@asynccontextmanager
async def answering(*pieces: bytes, for_ever: bool = False) -> AsyncIterator[str]:
    """A webhook that answers with these bytes, whatever it is told, and hangs up; or begins anew."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            while True:
                writer.writelines(pieces)
                await writer.drain()
                if not for_ever:
                    break
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    "answer",
    [
        b"hello there\r\n\r\n",
        b"",
        b"HTTP/1.1 2OO OK\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nno colon\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n" + b"x" * 1_000_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::\r\n\r\n",
        b"\0\xff" * 100,
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_reason_by_name(answer: bytes) -> None:
    async with answering(answer) as url:
        why = await Webhook(url, 60)({})

    assert why is not None
    assert why.isidentifier()


async def test_a_webhook_that_never_comes_to_an_answer_is_not_waited_for() -> None:
    async with answering(b"HTTP/1.1 100 Continue\r\n\r\n", for_ever=True) as url:
        assert await Webhook(url, 0.2)({}) == "TimeoutError"


async def test_what_is_answered_beyond_the_number_is_not_waited_for() -> None:
    async with answering(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nmore\r\n" * 1_000, for_ever=True
    ) as url:
        assert await Webhook(url, 60)({}) is None


class Stumbling(AlertDesk):
    """Fails, once, where nobody thought that it could."""

    stumbled = False

    async def send_one(self) -> bool:
        if not self.stumbled:
            self.stumbled = True
            raise RuntimeError("of no kind that anybody thought of")
        return await super().send_one()


def alerting(address: str, desk: Callable[[Store], AlertDesk]) -> House:
    return a_house(address, watch=replace(a_watch(), alerts=True), alerts=desk)


async def test_a_house_goes_on_sending_after_a_failure(address: str) -> None:
    told = asyncio.Event()

    async def deliver(alert: dict[str, Any]) -> None:
        told.set()

    house = alerting(address, lambda store: Stumbling(store, deliver, attempts=3))
    async with house.open(), conversing(house) as peer:
        await peer.ask(CHEST)

        await told.wait()


# --- how it is ----------------------------------------------------------------------------------------------


async def until(house: House, state: str) -> None:
    async for _ in house.store.changes():
        if [each for each, *_ in states(house.store)] == [state]:
            return


async def test_a_house_is_well_while_its_alerts_arrive(address: str) -> None:
    async def deliver(alert: dict[str, Any]) -> None:
        """It arrives."""

    house = alerting(address, lambda store: AlertDesk(store, deliver, attempts=3))
    async with house.open(), conversing(house) as peer:
        await peer.ask(CHEST)
        await until(house, "sent")

        assert await house.health() == Health("ok", {"store": "ok", "writes": "ok", "alerts": "ok"})


async def test_a_house_whose_alerts_do_not_arrive_says_so(address: str) -> None:
    house = alerting(address, lambda store: AlertDesk(store, _unreachable, attempts=1))
    async with house.open(), conversing(house) as peer:
        await peer.ask(CHEST)
        await until(house, "given_up")
        now = await house.health()

        assert (now.status, now.parts["alerts"]) == ("degraded", "down: alerts_not_sent")


async def test_staff_counts_as_told_again_once_an_alert_arrives_or_a_day_has_passed(address: str) -> None:
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    answers = ["http_500", "http_500", "http_404", None, "http_404", "http_404", "http_404"]

    async def deliver(alert: dict[str, Any]) -> str | None:
        return answers.pop(0)

    async def how(seconds: float) -> str:
        clock.tick(seconds)
        await desk.send_one()
        return await arriving(desk)

    desk = AlertDesk(store, deliver, attempts=3)
    seen = []
    await in_danger(address)
    seen += [await how(60) for _ in range(3)]  # tried, tried, given up
    await in_danger(address)
    seen += [await how(60)]  # another arrives
    await in_danger(address)
    seen += [await how(60) for _ in range(3)]
    seen += [await how(24 * 60 * 60)]

    assert seen == ["http_500", "http_500", "http_404", "ok", "http_404", "http_404", "http_404", "ok"]
    await store.close()


async def test_an_alert_that_nobody_sends_is_told_of(address: str) -> None:
    await in_danger(address)
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    desk = AlertDesk(store, _unreachable, attempts=3)
    soon = await arriving(desk)
    clock.tick(600)

    assert [soon, await arriving(desk)] == ["ok", "overdue"]
    await store.close()


async def arriving(desk: AlertDesk) -> str:
    try:
        await desk.arrive()
    except AnamnesisError as error:
        return str(error.facts["rule"])
    return "ok"


async def test_nobody_is_told_where_nobody_asked_to_be(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)

        assert states(house.store) == []
