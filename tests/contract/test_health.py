"""Health says what the orchestrator can do now, not what it could do when it was started."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.errors import STORAGE_FULL, AnamnesisError
from orchestrator.health import Health
from orchestrator.ops import telemetry
from orchestrator.store import migrations
from orchestrator.store.engine.database import Transaction
from tests.support.orchestrators import an_orchestrator, everything, rows
from tests.support.protocol_client import ACKNOWLEDGEMENT, ERROR, SENTENCE, conversing
from tests.support.stores import on_both_databases


@on_both_databases
async def test_an_orchestrator_that_can_read_and_write_is_ok_and_the_check_leaves_nothing_behind(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        before = await everything(orchestrator)

        assert await orchestrator.health() == Health("ok", {"store": "ok", "writes": "ok"})

        assert await everything(orchestrator) == before
        assert len(await rows(orchestrator, "SELECT * FROM alembic_version")) == 1
        assert migrations.status(address).is_current


@on_both_databases
async def test_a_store_that_is_closed_is_reported(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        orchestrator.store.close_now()

        assert await orchestrator.health() == Health(
            "degraded", {"store": "down: storage_unavailable", "writes": "down: storage_unavailable"}
        )


async def test_a_disk_that_filled_in_a_turn_is_reported_until_a_write_succeeds(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.health.FRESH_SECONDS", 0.0)
    async with (
        an_orchestrator(embedded, lease_seconds=0.2).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        write, commits, has_room = orchestrator.store.write, asyncio.Queue[None](), asyncio.Event()

        async def write_first_or_small(work: Callable[[Transaction], Any]) -> Any:
            if getattr(work, "__qualname__", "").startswith("Outbox.commit"):
                await commits.put(None)
                if commits.qsize() > 1 and not has_room.is_set():
                    raise AnamnesisError(STORAGE_FULL)
            return await write(work)

        monkeypatch.setattr(orchestrator.store, "write", write_first_or_small)
        message_id = await peer.say()
        acknowledged, delayed = await peer.until_type(ERROR)
        while commits.qsize() < 12:  # noqa: ASYNC110  more attempts than a message has that fails by itself
            await asyncio.sleep(0.01)
        full = await orchestrator.health()
        has_room.set()
        *_, last = await peer.answer()

        assert acknowledged.type == ACKNOWLEDGEMENT
        assert (delayed.stanza, delayed.code, delayed.body["originatingId"]) == (0, 503, message_id)
        assert delayed.meta == {"error": "answer_delayed"}
        assert delayed.body["message"].startswith("If this is an emergency, call")
        assert full == Health("degraded", {"store": "ok", "writes": "down: storage_full"})
        assert last.type == SENTENCE
        assert await orchestrator.health() == Health("ok", {"store": "ok", "writes": "ok"})


async def test_a_refused_message_does_not_keep_the_disk_reported_as_full_for_ever(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.health.FRESH_SECONDS", 0.0)
    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:

        async def full(work: object) -> None:
            raise AnamnesisError(STORAGE_FULL)

        with monkeypatch.context() as without_room:
            without_room.setattr(orchestrator.store, "write", full)
            await peer.say()
            (refused,) = await peer.until_type(ERROR)
        has_room_again = await orchestrator.health()
        monkeypatch.setattr("orchestrator.turn.outbox.FULL_SECONDS", 0.0, raising=False)
        later = await orchestrator.health()

        assert refused.meta["error"] == "storage_full"
        assert has_room_again == Health("degraded", {"store": "ok", "writes": "down: storage_full"})
        assert later == Health("ok", {"store": "ok", "writes": "ok"})


@pytest.mark.parametrize(
    ("reached", "status", "says"), [(True, "ok", "ok"), (False, "degraded", "down: not_sent")]
)
async def test_a_collector_that_takes_no_spans_is_reported(
    embedded: str, monkeypatch: pytest.MonkeyPatch, reached: bool, status: str, says: str
) -> None:
    monkeypatch.setattr(telemetry, "collector_reached", lambda: reached)

    async with an_orchestrator(embedded).open() as orchestrator:
        now = await orchestrator.health()

    assert (now.status, now.parts["telemetry"]) == (status, says)
