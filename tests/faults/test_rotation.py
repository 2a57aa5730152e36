"""A process dies at any statement of a rotation: all of it was kept, or none, and the next turn goes on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memory_blocks import agreement
from memory_blocks.ledger import Ledger
from memory_blocks.models import Label, from_texts
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.store.invariants import check
from tests.builders import HandClock
from tests.faults.rotating import HERE, LONG, opened, take_turn
from tools.toolchain import CHECKOUT

BEFORE = 20
"""After so many turns the next one makes the oldest leave."""


def turns_in(store: Store) -> tuple[list[int], list[int], str]:
    """The turns that have left, those that are in the block, and what the latest one said, whole."""

    def look(tx: Transaction) -> tuple[list[int], list[int], str]:
        blocks = SqlBlockStore(tx.blocks)
        reading = Ledger(HandClock()).read(blocks, HERE, actor="test")
        history = reading.blocks.conversation_history
        latest = json.loads(blocks.held(HERE.id).get(history.total_turns, history.turns[-1].text))
        left = [turn.turn_id for turn in blocks.archive(HERE.id)]
        stored = {label: block.text for label, block in blocks.load(HERE.id).items()}
        assert list(agreement.departures(from_texts(stored))) == []
        assert all(blocks.chain_departures(HERE.id, label) == [] for label in Label)
        return left, [turn.turn_id for turn in history.turns], latest["user_message"]["content"]

    return store.read_now(look)


@pytest.mark.requirement("001-033", "001-034", "001-118")
def test_a_rotation_is_whole_or_has_not_begun_wherever_the_process_died(tmp_path: Path) -> None:
    store = opened(tmp_path / "before.db")
    store.write_now(lambda tx: tx.conversations.create(HERE.person_id, id=HERE.id))
    for _ in range(BEFORE):
        take_turn(store)
    store.close_now()
    before = (list(range(1, 1)), list(range(1, BEFORE + 1)), f"message {BEFORE}")
    after = (list(range(1, 19)), [19, 20, 21], LONG)

    subprocess.run(
        [sys.executable, "-m", "tests.faults.rotating", str(tmp_path)], cwd=CHECKOUT, check=True, timeout=100
    )

    died = sorted(tmp_path.glob("died-*.db"))
    lived = sorted(tmp_path.glob("lived-*.db"))
    found = []
    for path in (*died, *lived):
        store = opened(path)
        found.append(turns_in(store))
        assert check(store) == []
        take_turn(store)
        assert check(store) == []
        store.close_now()
    assert all(each in (before, after) for each in found)
    assert found[-len(lived) :] == [after] * len(lived)
    assert before in found
    assert after in found[: len(died)], "nobody died after the commit"
    assert (len(lived), len(died) >= 60) == (2, True)
