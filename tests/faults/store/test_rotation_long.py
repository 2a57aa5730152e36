"""A very long conversation: the blocks stay small, and every turn can be shown."""

import asyncio
import json
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest
from click.testing import CliRunner

from memory_blocks import agreement
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Label, from_texts
from orchestrator.cli import cli
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import VARIABLES
from orchestrator.store import migrations
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Transaction
from tests.support.orchestrators import an_orchestrator
from tests.support.protocol_client import Peer, conversing

COMPARED = 30
"""The number of turns of a long conversation that are timed against those of a short one."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    migrations.upgrade(address)
    return address


async def talk(url: str, turns: int) -> str:
    """Take so many turns, then check what is stored. Returns the conversation's id."""
    async with an_orchestrator(url).open() as orchestrator, conversing(orchestrator) as peer:
        for number in range(1, turns + 1):
            await _turn(peer, number)
        conversation_id = peer.conversation_id

        def look(tx: Transaction) -> tuple[dict[str, int], list[int], int]:
            blocks = {label: block.value or "" for label, block in tx.blocks.load(conversation_id).items()}
            left = [turn.turn_id for turn in tx.blocks.archived(conversation_id)]
            query = "SELECT sum(length(packed)) FROM block_revisions"
            packed = tx.unit.connection.execute(query).fetchone()[0]
            active = json.loads(blocks["conversation_history"])["turns"]
            return (
                {label: len(text) for label, text in blocks.items()},
                [*left, *(turn["turn_id"] for turn in active)],
                packed,
            )

        sizes, ids, packed = await orchestrator.store.read(look)
        problems = await asyncio.to_thread(check, orchestrator.store)
        late, early = await _beside_a_young_one(orchestrator, peer, turns)
    assert problems == []
    assert ids == list(range(1, turns + 1))
    assert all(sizes[label.value] <= DEFAULTS.of(label) for label in Label)
    print(  # noqa: T201
        f"\n{turns} turns: {packed / turns:,.0f} bytes of revisions per turn; a turn took"
        f" {early * 1000:.1f} ms around turn 40 and {late * 1000:.1f} ms at the end: {late / early:.2f} times"
    )
    return conversation_id


async def _turn(peer: Peer, number: int) -> float:
    """Take one turn. Returns its duration."""
    began = perf_counter()
    frames = await peer.ask(said(number))
    assert frames[-1].ends_an_answer
    return perf_counter() - began


async def _beside_a_young_one(orchestrator: Orchestrator, old: Peer, turns: int) -> tuple[float, float]:
    """The durations of a turn after so many turns and after forty, measured alternately."""
    took = []
    async with conversing(orchestrator) as young:
        for number in range(1, 40):
            await _turn(young, number)
        for number in range(40, 40 + COMPARED):
            took.append((await _turn(old, turns + number - 39), await _turn(young, number)))
    late, early = zip(*took, strict=True)
    return median(late), median(early)


def said(number: int) -> str:
    """The person's message of a turn."""
    return f"Message {number}: it hurts here, since day {number * 7919 % 365}."


def shows_how_it_stood(monkeypatch: pytest.MonkeyPatch, url: str, conversation_id: str, turn: int) -> None:
    """Check that `anamnesis blocks show --at-turn` prints the four blocks of that turn, in agreement."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", url)
    arguments = ["blocks", "show", conversation_id, "--at-turn", str(turn), "--json"]

    result = CliRunner().invoke(cli, arguments, prog_name="anamnesis")

    assert result.exit_code == 0, result.output
    shown = {Label(label): each["block"] for label, each in json.loads(result.stdout).items()}
    texts = {
        label: block
        if isinstance(block, str)
        else json.dumps(block, ensure_ascii=False, separators=(",", ":"))
        for label, block in shown.items()
    }
    assert list(agreement.departures(from_texts(texts))) == []
    active = shown[Label.CONVERSATION_HISTORY]["turns"]
    assert 15 <= len(active) <= 20
    assert [each["turn_id"] for each in active] == list(range(turn - len(active) + 1, turn + 1))
    assert [each["user_message"]["content"] for each in active] == [said(each["turn_id"]) for each in active]
    assert shown[Label.ACTIVE_SESSION]["conversation_state"]["current_turn"] == turn
    flow = shown[Label.CONTEXT_SUMMARY]
    assert f"\nTurn {turn} (" in flow
    assert f"\nTurn {turn + 1} (" not in flow


@pytest.mark.requirement("001-005", "001-031", "001-033")
async def test_three_hundred_turns_leave_bounded_blocks_and_each_can_be_seen_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await talk(url, 300)

    for turn in (20, 21, 137, 300):
        shows_how_it_stood(monkeypatch, url, conversation_id, turn)


@pytest.mark.soak
@pytest.mark.timeout(3_000)
async def test_ten_thousand_turns_leave_bounded_blocks(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await talk(url, 10_000)

    for turn in (137, 9_999):
        shows_how_it_stood(monkeypatch, url, conversation_id, turn)
