"""Staff get one alert per danger by a webhook, without what the person wrote."""

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

from orchestrator.errors import AnamnesisError
from orchestrator.health import Health
from orchestrator.orchestrator import Orchestrator
from orchestrator.safety.alerts import AlertSender
from orchestrator.safety.webhook import Webhook
from orchestrator.store.engine.database import Store
from tests.support.builders import HandClock
from tests.support.orchestrators import a_monitor, a_store, an_orchestrator
from tests.support.protocol_client import conversing
from tests.support.stores import on_both_databases

CHEST = "I have crushing chest pain"


class _Pager(BaseHTTPRequestHandler):
    answers: ClassVar[list[int]] = []
    received: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(self.answers.pop(0) if self.answers else 204)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def a_pager(*answers: int) -> Iterator[tuple[str, list[str]]]:
    """A real webhook that first answers with these status codes, and the alerts that it received."""
    received: list[str] = []
    handler = type("Pager", (_Pager,), {"answers": list(answers), "received": received})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/page", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def in_danger(url: str) -> None:
    monitor = replace(a_monitor(), alerts=True)
    async with an_orchestrator(url, monitor=monitor).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask(CHEST)
        await peer.ask("thank you")


def states(store: Store) -> list[tuple[str, int, str | None]]:
    rows = store.read_now(
        lambda tx: tx.unit.connection.execute(
            "SELECT state, attempts, error FROM safety_alerts ORDER BY id"
        ).fetchall()
    )
    return [tuple(row) for row in rows]


@on_both_databases
async def test_danger_is_reported_once_without_what_the_person_wrote(address: str) -> None:
    await in_danger(address)
    store = a_store(address)
    with a_pager() as (url, received):
        sender = AlertSender(store, Webhook(url, 5), attempts=3)
        assert await sender.send_one()
        assert not await sender.send_one()

    assert states(store) == [("sent", 1, None)]
    (alert,) = received
    assert json.loads(alert).items() >= {"kind": "emergency", "tier": 3}.items()
    assert "chest pain" not in alert
    await store.close()


async def test_a_message_in_another_language_alerts_nobody(address: str) -> None:
    monitor = replace(a_monitor(), alerts=True)
    async with (
        an_orchestrator(address, monitor=monitor).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("me duele mucho la rodilla desde ayer por la noche")
        (kept,) = await orchestrator.store.read(lambda tx: tx.safety.of_conversation(peer.conversation_id))

        assert kept.rules == ("language.es",)
        assert states(orchestrator.store) == []


async def test_an_alert_that_does_not_arrive_is_repeated_and_finally_given_up(address: str) -> None:
    await in_danger(address)
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    with a_pager(500, 302, 404) as (url, received):
        sender = AlertSender(store, Webhook(url, 5), attempts=3)
        seen = []
        for _ in range(4):
            clock.tick(600)
            await sender.send_one()
            seen += states(store)

    assert seen == [
        ("pending", 1, "http_500"),
        ("pending", 2, "http_302"),
        ("given_up", 3, "http_404"),
        ("given_up", 3, "http_404"),
    ]
    assert len(received) == 3
    await store.close()


async def test_an_alert_waits_longer_after_each_attempt(address: str) -> None:
    await in_danger(address)
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    sender = AlertSender(store, _unreachable, attempts=9)
    clock.tick(600)

    tries = [await sender.send_one()]
    clock.tick(1)
    tries.append(await sender.send_one())
    clock.tick(1.5)
    tries.append(await sender.send_one())

    assert tries == [True, False, True]
    await store.close()


async def test_an_alert_may_be_repeated_any_number_of_times(embedded: str) -> None:
    await in_danger(embedded)
    clock = HandClock(datetime.now(UTC))
    store = a_store(embedded, clock)
    sender = AlertSender(store, _unreachable, attempts=100)
    for _ in range(60):
        clock.tick(600)
        await sender.send_one()

    assert states(store) == [("pending", 60, "ConnectError")]
    await store.close()


async def _unreachable(alert: dict[str, Any]) -> str:
    return "ConnectError"


@on_both_databases
async def test_an_alert_that_two_processes_find_due_is_sent_by_one(address: str) -> None:
    await in_danger(address)
    stores = [a_store(address), a_store(address)]
    sent: list[str] = []

    async def deliver(alert: dict[str, Any]) -> None:
        sent.append(alert["id"])

    senders = [AlertSender(store, deliver, attempts=3) for store in stores]

    await asyncio.gather(*(sender.send_one() for sender in senders))

    assert len(sent) == 1
    for store in stores:
        await store.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:99999/"])
async def test_an_unreachable_webhook_gives_the_name_of_the_reason(url: str) -> None:
    why = await Webhook(url, 60)({})

    assert why is not None
    assert why.isidentifier()


@asynccontextmanager
async def answering(*pieces: bytes, for_ever: bool = False) -> AsyncIterator[str]:
    """A webhook that answers every request with these bytes and closes the connection, or repeats them."""

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
async def test_an_invalid_response_gives_the_name_of_the_reason(answer: bytes) -> None:
    async with answering(answer) as url:
        why = await Webhook(url, 60)({})

    assert why is not None
    assert why.isidentifier()


async def test_a_webhook_that_never_answers_times_out() -> None:
    async with answering(b"HTTP/1.1 100 Continue\r\n\r\n", for_ever=True) as url:
        assert await Webhook(url, 0.2)({}) == "TimeoutError"


async def test_the_body_of_a_response_is_not_read() -> None:
    async with answering(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nmore\r\n" * 1_000, for_ever=True
    ) as url:
        assert await Webhook(url, 60)({}) is None


class Stumbling(AlertSender):
    """Fails once with an unexpected error."""

    stumbled = False

    async def send_one(self) -> bool:
        if not self.stumbled:
            self.stumbled = True
            raise RuntimeError("of no kind that anybody thought of")
        return await super().send_one()


def alerting(address: str, sender: Callable[[Store], AlertSender]) -> Orchestrator:
    return an_orchestrator(address, monitor=replace(a_monitor(), alerts=True), alerts=sender)


async def test_an_orchestrator_continues_to_send_after_a_failure(address: str) -> None:
    is_sent = asyncio.Event()

    async def deliver(alert: dict[str, Any]) -> None:
        is_sent.set()

    orchestrator = alerting(address, lambda store: Stumbling(store, deliver, attempts=3))
    async with orchestrator.open(), conversing(orchestrator) as peer:
        await peer.ask(CHEST)

        await is_sent.wait()


# --- health -------------------------------------------------------------------------------------------------


async def until(orchestrator: Orchestrator, state: str) -> None:
    async for _ in orchestrator.store.changes():
        if [each for each, *_ in states(orchestrator.store)] == [state]:
            return


async def test_health_is_ok_while_alerts_arrive(address: str) -> None:
    async def deliver(alert: dict[str, Any]) -> None:
        """Deliver every alert."""

    orchestrator = alerting(address, lambda store: AlertSender(store, deliver, attempts=3))
    async with orchestrator.open(), conversing(orchestrator) as peer:
        await peer.ask(CHEST)
        await until(orchestrator, "sent")

        assert await orchestrator.health() == Health("ok", {"store": "ok", "writes": "ok", "alerts": "ok"})


async def test_health_reports_that_alerts_do_not_arrive(address: str) -> None:
    orchestrator = alerting(address, lambda store: AlertSender(store, _unreachable, attempts=1))
    async with orchestrator.open(), conversing(orchestrator) as peer:
        await peer.ask(CHEST)
        await until(orchestrator, "given_up")
        now = await orchestrator.health()

        assert (now.status, now.parts["alerts"]) == ("degraded", "down: alerts_not_sent")


async def test_health_is_ok_again_once_an_alert_arrives_or_a_day_has_passed(address: str) -> None:
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    answers = ["http_500", "http_500", "http_404", None, "http_404", "http_404", "http_404"]

    async def deliver(alert: dict[str, Any]) -> str | None:
        return answers.pop(0)

    async def state_after(seconds: float) -> str:
        clock.tick(seconds)
        await sender.send_one()
        return await state(sender)

    sender = AlertSender(store, deliver, attempts=3)
    seen = []
    await in_danger(address)
    seen += [await state_after(60) for _ in range(3)]  # failed, failed, given up
    await in_danger(address)
    seen += [await state_after(60)]  # another arrives
    await in_danger(address)
    seen += [await state_after(60) for _ in range(3)]
    seen += [await state_after(24 * 60 * 60)]

    assert seen == ["http_500", "http_500", "http_404", "ok", "http_404", "http_404", "http_404", "ok"]
    await store.close()


async def test_health_reports_an_alert_that_no_process_sends(address: str) -> None:
    await in_danger(address)
    clock = HandClock(datetime.now(UTC))
    store = a_store(address, clock)
    sender = AlertSender(store, _unreachable, attempts=3)
    at_once = await state(sender)
    clock.tick(600)

    assert [at_once, await state(sender)] == ["ok", "overdue"]
    await store.close()


async def state(sender: AlertSender) -> str:
    try:
        await sender.check()
    except AnamnesisError as error:
        return str(error.facts["rule"])
    return "ok"


async def test_without_an_alert_address_there_are_no_alerts(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask(CHEST)

        assert states(orchestrator.store) == []
