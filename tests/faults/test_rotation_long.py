"""A conversation that goes on and on through the corridor: blocks stay bounded, every turn can be seen."""

import asyncio
import json
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Label
from orchestrator.store import migrations
from orchestrator.store.database import Transaction
from orchestrator.store.invariants import check
from tests.houses import a_house
from tests.peers import conversing


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    migrations.upgrade(address)
    return address


async def talk(url: str, turns: int) -> None:
    """Take so many turns, then look at what is kept."""
    took = []
    async with a_house(url).open() as house, conversing(house) as peer:
        for number in range(1, turns + 1):
            began = perf_counter()
            frames = await peer.ask(f"Message {number}: it hurts here, since day {number * 7919 % 365}.")
            took.append(perf_counter() - began)
            assert frames[-1].ends_an_answer
        conversation_id = frames[-1].conversation_id

        def look(tx: Transaction) -> tuple[dict[str, int], list[int], str, int]:
            blocks = {label: block.value or "" for label, block in tx.blocks.load(conversation_id).items()}
            left = [turn.turn_id for turn in tx.blocks.archived(conversation_id)]
            at = tx.blocks.revision_at_turn(conversation_id, "conversation_history", 137)
            then = tx.blocks.text_at(conversation_id, "conversation_history", at or 0) or ""
            query = "SELECT sum(length(packed)) FROM block_revisions"
            packed = tx.unit.connection.execute(query).fetchone()[0]
            active = json.loads(blocks["conversation_history"])["turns"]
            return (
                {label: len(text) for label, text in blocks.items()},
                [*left, *(turn["turn_id"] for turn in active)],
                then,
                packed,
            )

        sizes, ids, then, packed = await house.store.read(look)
        problems = await asyncio.to_thread(check, house.store)
    assert problems == []
    assert ids == list(range(1, turns + 1))
    assert all(sizes[label.value] <= DEFAULTS.of(label) for label in Label)
    history = json.loads(then)
    assert (history["total_turns"], history["turns"][-1]["turn_id"]) == (137, 137)
    assert history["turns"][-1]["user_message"]["content"].startswith("Message 137:")
    early, late = median(took[30:50]), median(took[-20:])
    print(  # noqa: T201
        f"\n{turns} turns: {packed / turns:,.0f} bytes of revisions per turn; a turn took"
        f" {early * 1000:.1f} ms around turn 40 and {late * 1000:.1f} ms at the end: {late / early:.2f} times"
    )


@pytest.mark.requirement("001-005", "001-031", "001-033")
async def test_three_hundred_turns_leave_bounded_blocks_and_each_can_be_seen_again(url: str) -> None:
    await talk(url, 300)


@pytest.mark.soak
@pytest.mark.timeout(3_000)
async def test_ten_thousand_turns_do_so_too(url: str) -> None:
    await talk(url, 10_000)
