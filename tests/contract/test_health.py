"""A house says how it is: what it can do now, not what it could when it was opened."""

import pytest

from orchestrator import telemetry
from orchestrator.health import Health
from orchestrator.store import migrations
from tests.houses import a_house, everything, rows


async def test_a_house_that_can_read_and_write_is_well_and_trying_leaves_nothing_behind(address: str) -> None:
    async with a_house(address).open() as house:
        before = await everything(house)

        assert await house.health() == Health("ok", {"store": "ok", "writes": "ok"})

        assert await everything(house) == before
        assert len(await rows(house, "SELECT * FROM alembic_version")) == 1
        assert migrations.status(address).is_current


async def test_a_house_whose_store_is_gone_says_so(address: str) -> None:
    async with a_house(address).open() as house:
        house.store.close_now()

        assert await house.health() == Health(
            "degraded", {"store": "down: storage_unavailable", "writes": "down: storage_unavailable"}
        )


@pytest.mark.parametrize(
    ("reached", "status", "says"), [(True, "ok", "ok"), (False, "degraded", "down: not_sent")]
)
async def test_a_collector_that_takes_no_spans_is_told_of(
    embedded: str, monkeypatch: pytest.MonkeyPatch, reached: bool, status: str, says: str
) -> None:
    monkeypatch.setattr(telemetry, "reached", lambda: reached)

    async with a_house(embedded).open() as house:
        now = await house.health()

    assert (now.status, now.parts["telemetry"]) == (status, says)
