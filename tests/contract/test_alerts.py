"""Staff is told of danger by a webhook: once it arrives, once, and not with what the person wrote."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from orchestrator.alerts import AlertDesk, Webhook
from orchestrator.store.database import Store
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
    assert '"kind": "emergency", "tier": 3' in told
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


def _unreachable(alert: dict[str, Any]) -> str:
    return "ConnectionRefusedError"


async def test_what_two_processes_find_due_is_sent_by_one(address: str) -> None:
    await in_danger(address)
    stores = [a_store(address), a_store(address)]
    sent: list[str] = []
    desks = [AlertDesk(store, lambda alert: sent.append(alert["id"]), attempts=3) for store in stores]

    await asyncio.gather(*(desk.send_one() for desk in desks))

    assert len(sent) == 1
    for store in stores:
        await store.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:99999/"])
def test_a_webhook_that_cannot_be_reached_says_why_by_name(url: str) -> None:
    why = Webhook(url, 1)({})

    assert why is not None
    assert why.isidentifier()


async def test_nobody_is_told_where_nobody_asked_to_be(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.ask(CHEST)

        assert states(house.store) == []
