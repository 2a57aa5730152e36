"""Copies of the blocks in a real Letta server: the calls they take, and what agents see meanwhile."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from letta_client import Letta

from memory_blocks.facts.changes import current_facts
from memory_blocks.mirrors import letta as mirror
from memory_blocks.mirrors.letta import UNKNOWN_AUTHOR
from memory_blocks.models import Label
from orchestrator.letta.agents import CARRIED_TURNS, blocks_are_synced, turns_behind
from orchestrator.settings import load
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.wiring import open_upkeep
from tests.integration.letta.test_healing import roles, troubles
from tests.integration.letta.test_scenario import SCALE, a_letta_orchestrator, blocks_of, the_extractor
from tests.support.protocol_client import TRACE, conversing
from tests.support.servers.letta_helpers import assert_all_stand, until_synced
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address
from tools.servers.model_endpoint import ModelEndpoint, Step

HEADACHE = (
    "I am having a headache",
    "8",
    "since Tuesday",
    "it throbs on the left side",
    "no fever",
    "I drink two cups of coffee a day",
    "I work at a desk",
)
"""A conversation. The number is read without a model, so that its turn sends one message."""

LIST, WRITE = "GET /v1/agents/extractor/core-memory/blocks", "PATCH /v1/blocks/ID"
READ, ANSWER = (f"POST /v1/agents/{role}/messages/stream" for role in ("extractor", "GENERAL_HEALTH"))


class Calls:
    """The requests to a Letta server since the last look: the method, the path and the role of the agent.

    The check of its health is left out: a process makes it every few seconds, however many turns there are.
    """

    def __init__(self, base_url: str, roles: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._made: Counter[str] = Counter()
        send, url = httpx.AsyncClient.send, httpx.URL(base_url)
        role_of = {agent_id: role for role, agent_id in roles.items()}

        def name(found: re.Match[str]) -> str:
            return role_of.get(found[0], "ID")

        async def counted(client: httpx.AsyncClient, request: httpx.Request, **how: Any) -> httpx.Response:
            if request.url.port == url.port and request.url.path != "/v1/health/":
                path = re.sub(r"(?:agent|block|identity|archive)-[0-9a-f-]+", name, request.url.path)
                self._made[f"{request.method} {path}"] += 1
            return await send(client, request, **how)

        monkeypatch.setattr(httpx.AsyncClient, "send", counted)

    def taken(self) -> Counter[str]:
        """The requests since the last call of this."""
        made, self._made = self._made, Counter()
        return made


async def test_an_ordinary_turn_makes_three_calls_and_every_sixth_turn_writes_the_copies(
    letta: Address, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "FRESH_SECONDS", 0.0)  # else a quick turn would not list the copies again
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        conversing(orchestrator, features=["streaming"]) as peer,
    ):
        ModelEndpoint(letta.models_url).script(peer.conversation_id, Step(), Step(text=SCALE))
        await peer.ask(HEADACHE[0])  # makes the agents, and writes the copies for the first time
        await until_synced(orchestrator.store, peer.conversation_id)
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            calls = Calls(letta.base_url, roles(client, tag, peer.conversation_id), monkeypatch)
        made, behind, turns = [], [], []
        for text in HEADACHE[1:]:
            if text == HEADACHE[-1]:  # this turn writes the copies after its last sentence
                turns.append(await peer.ask(text))
                await until_synced(orchestrator.store, peer.conversation_id)
            else:
                turns.append(await peer.ask(text))
            behind.append(await orchestrator.store.read(partial(turns_behind, peer.conversation_id)))
            made.append(calls.taken())

    one = {LIST: 1, ANSWER: 1}
    two = {LIST: 1, READ: 1, ANSWER: 1}
    writing = {LIST: 2, READ: 1, ANSWER: 1, WRITE: 4}
    assert troubles(*turns) == [""] * len(turns)
    assert made == [one, two, two, two, two, writing]
    assert behind == [*range(1, CARRIED_TURNS + 1), 0]
    assert sum(sum(each.values()) for each in made) / len(made) <= 4.1


async def test_an_agent_is_sent_the_turns_and_facts_that_its_blocks_lack(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        conversing(orchestrator, features=["streaming"]) as peer,
    ):
        await peer.ask(HEADACHE[0])
        await peer.ask("My daughter is allergic to kiwis & nuts")
        await peer.ask(f"it throbs ({tag})")
        lacking = await orchestrator.store.read(partial(turns_behind, peer.conversation_id))

    requests = ModelEndpoint(letta.models_url).asked(f"({tag})")
    reading, answering = [each["messages"] for each in requests]
    assert lacking == 2
    for messages in (reading, answering):
        system, message = messages[0]["content"], str(messages[-1]["content"])
        assert "kiwis" not in system
        since = message.partition("<since>")[2].partition("</since>")[0]
        assert since.count("Person: ") == 1
        assert "Person: My daughter is allergic to kiwis &amp; nuts" in since
        assert "Answer: " in since
        assert "kiwis" in message.partition("<facts>")[2].partition("</facts>")[0]


async def test_a_fact_that_somebody_adds_to_an_older_copy_is_used_by_the_next_turn(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with (
            a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
            conversing(orchestrator, features=["streaming"]) as peer,
        ):
            await peer.ask(HEADACHE[0])
            await until_synced(orchestrator.store, peer.conversation_id)
            await peer.ask("I take ibuprofen")
            copy = blocks_of(client, the_extractor(client, tag))[Label.ACTIVE_SESSION]
            session = json.loads(copy.value)
            session["facts"].append({"kind": "allergies", "value": "penicillin", "turn": 1})
            client.blocks.update(block_id=copy.id, value=json.dumps(session))
            frames = await peer.ask(f"it throbs ({tag})")
            await until_synced(orchestrator.store, peer.conversation_id)
            facts = await orchestrator.store.read(partial(facts_of, peer.conversation_id))
            quarantined = await orchestrator.store.read(
                lambda tx: tx.blocks.quarantined(peer.conversation_id)
            )
            blocks = blocks_of(client, the_extractor(client, tag))
            assert_all_stand(blocks.values(), orchestrator.store, peer.conversation_id)

    answering = ModelEndpoint(letta.models_url).asked(f"({tag})")[-1]["messages"]
    actors = {frame.body["metadata"]["agent"] for frame in frames if frame.type == TRACE}
    assert {("allergies", "penicillin"), ("medications", "ibuprofen")} <= facts
    assert not quarantined
    assert UNKNOWN_AUTHOR in actors
    assert "penicillin" in str(answering)


async def test_somebody_who_takes_minutes_for_each_message_costs_no_more_calls(
    letta: Address, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "FRESH_SECONDS", 0.0)
    given = {
        "data.dir": str(tmp_path),
        "letta.base_url": letta.base_url,
        "letta.model": LETTA_MODEL,
        "letta.embedding": LETTA_EMBEDDING,
        "letta.tag": tag,
    }
    shipped = timedelta(seconds=load(environment={}).letta.copy_seconds)
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        conversing(orchestrator, features=["streaming"]) as peer,
    ):
        await peer.ask(HEADACHE[0])
        await until_synced(orchestrator.store, peer.conversation_id)
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            calls = Calls(letta.base_url, roles(client, tag, peer.conversation_id), monkeypatch)
        made = []
        async with open_upkeep(load(given=given, environment={})) as upkeep:
            for text in HEADACHE[2:4]:
                turn = await peer.ask(text)
                due = await upkeep.run_once(shipped - timedelta(minutes=5))  # as if five minutes had passed
                made.append((troubles(turn), due, calls.taken()))

    assert made == [([""], 0, {LIST: 1, READ: 1, ANSWER: 1})] * 2


async def test_the_copies_are_written_when_the_conversation_pauses(
    letta: Address, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.letta.upkeep.INTERVAL_SECONDS", 0.5)
    given = {
        "data.dir": str(tmp_path),
        "letta.base_url": letta.base_url,
        "letta.model": LETTA_MODEL,
        "letta.embedding": LETTA_EMBEDDING,
        "letta.tag": tag,
    }
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag, copy_seconds=0.1) as orchestrator,
        conversing(orchestrator, features=["streaming"]) as peer,
    ):
        for text in HEADACHE[:2]:
            await peer.ask(text)
        synced = await orchestrator.store.read(partial(blocks_are_synced, peer.conversation_id))
        async with open_upkeep(load(given=given, environment={})) as upkeep:
            states = Counter(each.state for each in await upkeep.inspect() if each.what.startswith("block"))
        await until_synced(orchestrator.store, peer.conversation_id)
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            blocks = blocks_of(client, the_extractor(client, tag))
        assert_all_stand(blocks.values(), orchestrator.store, peer.conversation_id)

    assert not synced
    assert states == {"due": len(Label)}


def facts_of(conversation_id: str, tx: Transaction) -> set[tuple[str, str]]:
    """The kinds and values of the facts that hold."""
    changes = SqlBlockStore(tx.blocks).fact_changes(conversation_id)
    return {(each.kind, each.value) for each in current_facts(changes)}
