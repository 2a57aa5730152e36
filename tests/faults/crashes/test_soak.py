"""Longer tests: servers die and stall at random moments, and at every point while they recover from another.

`make soak` runs them; with `-s` each prints what it did. `ANAMNESIS_TEST_SEED` repeats a run.
"""

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.faults.client import Client, Cut
from tests.faults.crash_checks import Run, after_a_death, converse, heard_again, in_the_end
from tests.faults.crashes.test_crash_points import IN_EVERY_TURN, SAID
from tests.faults.deployment import Deployment, Server, a_deployment
from tests.support.servers.forked_servers import Forker

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("ANAMNESIS_TEST_KILLS", "400"))
CLIENTS = 4
MOST_SAID = 12
"""The number of messages in one conversation before the next begins."""
THOROUGHLY = 20
"""After this many kills the whole store is checked, not only what the clients received."""
SEED = int(os.environ.get("ANAMNESIS_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)


class Turmoil:
    """Several clients talk while their servers die and stall."""

    def __init__(self, deployment: Deployment, chance: random.Random, *, servers: int) -> None:
        self.deployment, self.chance = deployment, chance
        self.runs: list[Run] = []
        self.kills = 0
        self.problems: list[str] = []
        self._up: list[Server] = []
        self._servers = servers
        self._over = asyncio.Event()

    async def last(self, kills: int) -> None:
        """Continue until so many servers were killed; then receive all last answers, and check."""
        async with asyncio.TaskGroup() as people:
            for _ in range(CLIENTS):
                people.create_task(self._talk())
            while len(self._up) < self._servers:
                self._up.append(await self.deployment.start("recalling"))
            while self.kills < kills:
                await asyncio.sleep(self.chance.uniform(0, 0.4))
                if self._servers > 1:
                    await self._stall()
                await self._kill()
            self._over.set()
        for run in self.runs:
            self.problems += await heard_again(self._up[0], run.client)
        for server in self._up:
            await server.kill()
        self.problems += in_the_end(self.deployment, *self.runs)

    async def _kill(self) -> None:
        self.kills += 1
        victim = self._up.pop(self.chance.randrange(len(self._up)))
        await victim.kill()
        talking = [run for run in self.runs if not run.over]
        self.problems += after_a_death(self.deployment, *talking, thoroughly=self.kills % THOROUGHLY == 0)
        if self._up:
            for run in talking:
                run.deaths.clear()  # a living server may continue the turns that were begun
        assert self.problems == []
        self._up.append(await self.deployment.start("recalling"))

    async def _stall(self) -> None:
        stalled = self.chance.choice(self._up)
        stalled.signal(signal.SIGSTOP)
        await asyncio.sleep(self.chance.uniform(0, 2.4) * self.deployment.lease_seconds)
        stalled.signal(signal.SIGCONT)

    async def _talk(self) -> None:
        """Hold one conversation after the other."""
        while not self._over.is_set():
            run = Run(Client(repeats=self.chance.random() < 0.5))
            self.runs.append(run)
            await self._converse(run.client, self.chance.randint(1, MOST_SAID))
            run.over = True

    async def _converse(self, client: Client, most: int) -> None:
        while len(client.ends) < len(client.asked) or (len(client.asked) < most and not self._over.is_set()):
            try:
                if not self._up:
                    await asyncio.sleep(0.01)
                    continue
                await self.chance.choice(self._up).meet(client)
                for message_id in client.asked:
                    await client.answered(message_id)
                while len(client.asked) < most and not self._over.is_set():
                    for _ in range(self.chance.randint(1, 3)):
                        await client.say(self.chance.choice(SAID))
                    for message_id in client.asked:
                        await client.answered(message_id)
                    if self.chance.random() < 0.1:
                        client.cut()
            except Cut:
                continue


@pytest.mark.parametrize("servers", [1, 2])
async def test_kills_at_random_moments_lose_nothing(either_deployment: Deployment, servers: int) -> None:
    deployment = either_deployment
    began = time.monotonic()
    turmoil = Turmoil(deployment, random.Random(SEED), servers=servers)

    try:
        await turmoil.last(KILLS)
    finally:
        minutes = (time.monotonic() - began) / 60
        said = sum(len(run.client.asked) for run in turmoil.runs)
        print(  # noqa: T201  a soak is run to be read
            f"\n{deployment.url.partition(':')[0]}, {servers} servers, seed {SEED}: {turmoil.kills} kills,"
            f" {turmoil.kills / minutes:.0f} a minute; {len(turmoil.runs)} conversations, {said} messages;"
            f" {len(turmoil.problems)} violations"
        )

    assert turmoil.problems == []


@pytest.mark.parametrize("first", IN_EVERY_TURN)
async def test_a_server_killed_at_any_step_while_recovering_from_any_other_loses_nothing(
    forker: Forker, tmp_path: Path, first: str
) -> None:
    for second in IN_EVERY_TURN:
        async with a_deployment(forker, tmp_path / second) as deployment:
            deaths = [f"{first}:1", f"{second}:1"]
            run = await converse(deployment, Client(repeats=True), SAID, "recalling", faults=deaths)

        assert run.problems == [], second
