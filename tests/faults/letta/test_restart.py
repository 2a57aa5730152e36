"""Letta is killed and restarted during conversations: each continues, and all copies agree in the end."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from letta_client import Letta

from memory_blocks.models import Label
from orchestrator.letta.agents import blocks_are_synced
from orchestrator.orchestrator import Orchestrator
from tests.integration.letta.test_scenario import a_letta_orchestrator, said
from tests.support.commands import run
from tests.support.orchestrators import history
from tests.support.protocol_client import SENTENCE, SERVER_INFO, Frame, Peer, conversing
from tests.support.servers.letta_helpers import digests_here, digests_in_letta
from tools.servers.letta import Address, letta_database, serving
from tools.servers.model_endpoint import running_model_endpoint
from tools.servers.process import free_port

pytestmark = pytest.mark.timeout(900)

TAG: Final = "restarted"
CONVERSATIONS: Final = 20
AT_ONCE: Final = 3
"""The number of messages at the same time. Letta answers more of them too slowly."""


class Restarted:
    """A Letta server that can be killed and started again: another process on the same database and port."""

    def __init__(self, database: str, models_url: str) -> None:
        self._start = partial(serving, database, models_url, free_port())
        self._running = ExitStack()

    def start(self) -> Address:
        """Start the server."""
        return self._running.enter_context(self._start())

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._running.close()


@contextmanager
def a_restarted_letta() -> Iterator[Restarted]:
    """A server that is not started yet. If it runs at the end, it is killed."""
    with running_model_endpoint() as endpoint, letta_database() as database:
        server = Restarted(database, endpoint.url)
        try:
            yield server
        finally:
            server.kill()


@dataclass
class Talk:
    """One conversation: the messages sent and the frames received."""

    peer: Peer
    said: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    backend: str = "letta"
    """The brain that answers, as the server reported last."""

    async def is_answered_by(self, backend: str) -> None:
        """Wait until the server reports that this brain answers."""
        while self.backend != backend:
            self._take_note([await self.peer.next()])

    def _take_note(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if frame.type == SERVER_INFO:
                self.backend = frame.body["backend"]

    async def ask(self, content: str) -> Frame:
        """Send a message and receive the whole answer. Returns its last frame."""
        frames = await self.peer.ask(content)
        self._take_note(frames)
        self.said.append(content)
        self.heard.append(said(frames))
        assert frames[-1].type == SENTENCE, "the turn ended with an error"
        return frames[-1]


async def ask_all(talks: Sequence[Talk], content: str) -> list[Frame]:
    """Send a message in all conversations, a few at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(talk: Talk) -> Frame:
        async with gate:
            return await talk.ask(content)

    return await asyncio.gather(*map(ask, talks))


async def all_synced(orchestrator: Orchestrator, talks: Sequence[Talk]) -> None:
    """Wait until every block in Letta equals the stored one."""
    for talk in talks:
        while not await orchestrator.store.read(partial(blocks_are_synced, talk.peer.conversation_id)):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


@pytest.mark.soak
async def test_every_turn_ends_nothing_is_lost_and_the_digests_agree_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.letta.upkeep.INTERVAL_SECONDS", 0.5)
    with a_restarted_letta() as server:
        address = await asyncio.to_thread(server.start)
        async with a_letta_orchestrator(address.base_url, tmp_path, TAG, copy_seconds=0) as orchestrator:
            async with AsyncExitStack() as line:
                talks = [
                    Talk(await line.enter_async_context(conversing(orchestrator, f"person_{number}")))
                    for number in range(CONVERSATIONS)
                ]
                with_it = await ask_all(talks, "I am having a headache")

                answering = asyncio.create_task(ask_all(talks, "8"))
                while sum(len(talk.heard) > 1 for talk in talks) < CONVERSATIONS // 4:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.kill)
                without = await answering
                await talks[0].is_answered_by("embedded")
                starting = asyncio.create_task(asyncio.to_thread(server.start))
                without += await ask_all(talks, "since this morning")
                await starting
                await all_synced(orchestrator, talks)
                while "model.stood_in" in (await talks[0].ask("nothing else")).meta:  # noqa: ASYNC110
                    await asyncio.sleep(1)
                await talks[0].is_answered_by("letta")
                await all_synced(orchestrator, talks)
            kept = [(await history(orchestrator, talk.peer.conversation_id)).turns for talk in talks]
            stored = {
                talk.peer.conversation_id: await orchestrator.store.read(
                    partial(digests_here, talk.peer.conversation_id)
                )
                for talk in talks
            }
        with Letta(base_url=address.base_url, max_retries=0) as client:
            there = {id: digests_in_letta(client, TAG, id) for id in stored}
    checked = run("--data", tmp_path, "check", "--at-rest")

    assert not any("model.stood_in" in frame.meta for frame in with_it)
    assert any("model.stood_in" in frame.meta for frame in without)
    for talk, turns in zip(talks, kept, strict=True):
        assert [turn.user_message.content for turn in turns] == talk.said
        assert [turn.agent_response and turn.agent_response.content for turn in turns] == talk.heard
    assert all(blocks.keys() == set(Label) for blocks in stored.values())
    assert there == stored
    assert checked.exit_code == 0, checked.output
