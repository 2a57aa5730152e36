"""Two processes serve one database; one of them stalls, or both want the same conversation."""

import asyncio
import signal

import pytest

from tests.faults.client import Client, Cut, Type
from tests.faults.crash_checks import Run, finish
from tests.faults.deployment import Deployment, Server

LEASE_SECONDS = 1.5
"""Long enough for a living process to renew it, also on a busy machine."""

NEVER_ENDING = 600.0
"""A lease that outlasts the test."""


@pytest.fixture
def shared(either_deployment: Deployment) -> Deployment:
    """A deployment with several servers."""
    either_deployment.lease_seconds = LEASE_SECONDS
    return either_deployment


async def stall(
    deployment: Deployment, client: Client, point: str, *changes: str, **settings: object
) -> tuple[Server, str]:
    """Start a server that accepts a message and stops at a point of its turn."""
    server = await deployment.start(*changes, fault=f"{point}:1:stop", **settings)
    await server.meet(client)
    message_id = await client.say("I am having a headache")
    await server.stands_still()
    return server, message_id


async def come_over(client: Client, server: Server) -> None:
    """Connect to another server as soon as it accepts the connection."""
    while True:
        try:
            await server.meet(client)
            return
        except Cut:
            await asyncio.sleep(0.05)


async def take_over(deployment: Deployment, client: Client, stalled: Server, message_id: str) -> Run:
    """Let another server answer, continue the stalled one meanwhile, and use both afterwards."""
    other = await deployment.start("slow")
    client.cut()
    await other.meet(client)
    await client.until(lambda: client.has_seen(Type.START_ANSWER))
    stalled.signal(signal.SIGCONT)
    await client.answered(message_id)
    await stalled.has_logged("turn_lost")
    for server in (stalled, other):
        await server.meet(client)
        assert await client.ask("8") == "completed"
    run = Run(client)
    await finish(deployment, run, other)
    return run


async def test_a_process_that_stalls_before_an_answer_is_replaced_and_writes_nothing(
    shared: Deployment,
) -> None:
    client = Client()
    stalled, message_id = await stall(shared, client, "after_take_commit")

    run = await take_over(shared, client, stalled, message_id)

    assert run.problems == []
    assert list(client.ends.values()) == [["completed"]] * 3


@pytest.mark.parametrize(
    ("point", "end"), [("after_begin_commit", "completed"), ("after_sentence_commit", "failed")]
)
async def test_a_process_that_stalls_in_an_answer_finds_it_ended_and_writes_nothing(
    shared: Deployment, point: str, end: str
) -> None:
    client = Client()
    stalled, message_id = await stall(shared, client, point)
    other = await shared.start()
    client.cut()
    await other.meet(client)
    await client.answered(message_id)

    stalled.signal(signal.SIGCONT)
    await stalled.has_logged("turn_lost")
    run = Run(client)
    await finish(shared, run, other)

    assert run.problems == []
    assert client.ends == {message_id: [end]}


async def test_postgres_disconnects_a_process_that_stalls_within_a_transaction(
    postgres_deployment: Deployment,
) -> None:
    client, shared = Client(), postgres_deployment
    shared.lease_seconds, busy_seconds = LEASE_SECONDS, 1.0
    stalled, message_id = await stall(
        shared, client, "before_sentence_commit", database_busy_timeout_seconds=busy_seconds
    )
    other = await shared.start(database_busy_timeout_seconds=busy_seconds)
    client.cut()
    await come_over(client, other)

    assert await client.answered(message_id) == "completed"
    stalled.signal(signal.SIGCONT)
    await stalled.has_logged("turn_lost")
    run = Run(client)
    await finish(shared, run, other)
    assert run.problems == []


async def test_an_answer_longer_than_the_lease_stays_with_its_process(shared: Deployment) -> None:
    client, (one, other) = Client(), await both(shared, "slow")
    await one.meet(client)

    ends = [await client.ask(text) for text in ("I am having a headache", "8")]
    run = Run(client)
    await finish(shared, run, other)

    assert (ends, run.problems) == (["completed"] * 2, [])


async def test_an_answer_given_by_one_process_is_followed_in_another(shared: Deployment) -> None:
    client, (one, other) = Client(), await both(shared, "slow")
    await one.meet(client)
    message_id = await client.say("I am having a headache")
    await client.until(lambda: client.has_seen(Type.START_ANSWER))

    await other.meet(client)

    assert await client.answered(message_id) == "completed"
    run = Run(client)
    await finish(shared, run, one)
    assert run.problems == []


async def stopped_from_the_other(deployment: Deployment, how: str) -> None:
    """Stop an answer of one process through the other one."""
    client, (one, other) = Client(), await both(deployment, how)
    await one.meet(client)
    message_id = await client.say("I am having a headache")
    await client.until(lambda: client.has_seen(Type.SENTENCE))

    await other.meet(client)
    await client.send(Type.CONTROL_STOP)

    assert await client.answered(message_id) == "completed"
    run = Run(client)
    await finish(deployment, run, one)
    assert run.problems == []


async def test_a_stop_reaches_the_process_that_answers(shared: Deployment) -> None:
    await stopped_from_the_other(shared, "endless")


async def test_a_stop_reaches_a_silent_process_with_a_long_lease(
    either_deployment: Deployment,
) -> None:
    either_deployment.lease_seconds = NEVER_ENDING
    await stopped_from_the_other(either_deployment, "falls_silent")


@pytest.mark.parametrize(
    ("point", "end"), [("after_take_commit", "completed"), ("after_sentence_commit", "failed")]
)
@pytest.mark.parametrize("is_there_before", [True, False])
async def test_a_killed_process_is_replaced_before_its_lease_ends(
    deployment: Deployment, point: str, end: str, is_there_before: bool
) -> None:
    deployment.lease_seconds = NEVER_ENDING
    client, other = Client(), await deployment.start() if is_there_before else None
    dying = await deployment.start(fault=f"{point}:1")
    await dying.meet(client)
    message_id = await client.say("I am having a headache")
    await dying.ended()

    other = other or await deployment.start()
    await other.meet(client)

    assert await client.answered(message_id) == end
    run = Run(client)
    await finish(deployment, run, other)
    assert run.problems == []


async def both(deployment: Deployment, *changes: str) -> tuple[Server, Server]:
    """Two servers at the same time."""
    one, other = await asyncio.gather(deployment.start(*changes), deployment.start(*changes))
    return one, other


async def test_a_worker_that_ignores_the_epoch_is_detected(deployment: Deployment) -> None:
    client = Client()
    deployment.lease_seconds = LEASE_SECONDS
    stalled, message_id = await stall(deployment, client, "after_take_commit", "does_not_look_at_the_epoch")
    other = await deployment.start("slow")
    client.cut()
    await other.meet(client)
    await client.until(lambda: client.has_seen(Type.START_ANSWER))

    stalled.signal(signal.SIGCONT)
    await client.answered(message_id)
    await stalled.has_logged("turn_ended")
    run = Run(client)
    await finish(deployment, run, other)

    assert run.problems != []


async def test_a_worker_that_releases_its_lease_early_is_detected(deployment: Deployment) -> None:
    client, server = Client(), await deployment.start("endless", "lets_go_of_the_lease_at_once")
    await server.meet(client)
    message_id = await client.say("I am having a headache")
    await client.until(lambda: client.has_seen(Type.SENTENCE))

    await deployment.start()

    assert await client.answered(message_id) == "failed"
