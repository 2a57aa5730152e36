"""A server is killed at every step of a turn; the next one loses nothing."""

import ast
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from orchestrator.ops import faults
from tests.architecture.sources import PACKAGES, parsed, python_files
from tests.faults.client import Client, Type
from tests.faults.crash_checks import ATTEMPTS, Run, after_a_death, converse, finish
from tests.faults.deployment import Deployment, a_deployment
from tests.support.servers.forked_servers import Forker

SAID = ("I am having a headache", "8", "Since yesterday")
"""Two messages during which a server dies, and one that must be answered afterwards."""

IN_DANGER = ("I have crushing chest pain", "Which vitamins are good in winter?")
"""The first gets a safety answer before anything else happens; the second is about something else."""

WITH_A_TOOL = ("I weigh 80 kg and I am 180 cm tall, what is my BMI?", "Thank you")
"""The first needs a tool; its request and its result are stored in one transaction each."""

CHANGED = b"session_info.status"
"""The field that a pause changes, as its trace names it."""

ELSEWHERE = (*faults.IN_IDLE_SESSIONS, *faults.IN_LETTA, *faults.IN_MEMORIES)
IN_EVERY_TURN = [point for point in faults.POINTS if "_tool_" not in point and point not in ELSEWHERE]

SWEEPS = [
    *((point, 1, 1) for point in IN_EVERY_TURN if not point.endswith("_send")),
    ("before_send", 1, 2),
    pytest.param("before_send", 2, 2, marks=pytest.mark.soak),
    ("after_send", 1, 6),
]
"""Each point, the first pass at which it kills, and the step to the next pass."""

ONLY_WITH_SENTENCES = ("before_sentence_commit", "after_sentence_commit")


def soak_except(kept: str, points: Iterable[str]) -> list[Any]:
    """The points as parameters; `make test` runs the one that is kept, `make soak` runs the others."""
    return [point if point == kept else pytest.param(point, marks=pytest.mark.soak) for point in points]


@pytest.mark.requirement("000-049", "003-008", "003-009", "003-016")
@pytest.mark.parametrize(("point", "first", "step"), SWEEPS)
async def test_a_server_killed_at_any_step_loses_nothing(
    forker: Forker, tmp_path: Path, point: str, first: int, step: int
) -> None:
    kills = 0
    for number in count(first, step):
        async with a_deployment(forker, tmp_path / str(number)) as deployment:
            client = Client(repeats=True)
            run = await converse(deployment, client, SAID, "recalling", faults=[f"{point}:{number}"])
        assert run.problems == [], f"{point}:{number}"
        if run.survived or run.asked_at_first_death == len(SAID):
            break
        kills += 1

    assert kills > 0


@pytest.mark.parametrize("where", ["there", pytest.param("at the end", marks=pytest.mark.soak)])
@pytest.mark.parametrize("point", soak_except("after_sentence_commit", IN_EVERY_TURN))
async def test_a_server_killed_while_recovering_loses_nothing(
    deployment: Deployment, point: str, where: str
) -> None:
    deaths = [f"{point}:1", f"{point if where == 'there' else 'before_end_commit'}:1"]

    run = await converse(deployment, Client(), (SAID[0], *SAID), "recalling", faults=deaths)

    assert (len(run.deaths), run.problems) == (2, [])


@pytest.mark.parametrize(
    "point",
    soak_except("before_end_commit", [point for point in IN_EVERY_TURN if point not in ONLY_WITH_SENTENCES]),
)
async def test_a_client_without_streaming_loses_nothing(deployment: Deployment, point: str) -> None:
    client = Client(features=[])

    run = await converse(deployment, client, SAID, "recalling", faults=[f"{point}:1"])

    assert (len(run.deaths), run.problems) == (1, [])
    assert list(client.ends.values()) == [["completed"]] * len(SAID)


@pytest.mark.parametrize("point", soak_except("after_begin_commit", IN_EVERY_TURN))
async def test_on_postgres_nothing_is_lost(postgres_deployment: Deployment, point: str) -> None:
    run = await converse(postgres_deployment, Client(repeats=True), SAID, "recalling", faults=[f"{point}:1"])

    assert (len(run.deaths), run.problems) == (1, [])


@pytest.mark.parametrize("point", ["after_take_commit", "before_begin_commit"])
async def test_a_message_that_always_kills_the_server_is_set_aside_and_the_next_one_works(
    deployment: Deployment, point: str
) -> None:
    client = Client()

    run = await converse(deployment, client, SAID, faults=[f"{point}:1"] * ATTEMPTS)

    assert run.problems == []
    assert list(client.ends.values()) == [["failed"], ["completed"], ["completed"]]
    assert run.end is not None
    assert [turn.error for turn in run.end.turns.values()] == ["poison_message", None, None]


@pytest.mark.parametrize("kills", range(1, ATTEMPTS))
async def test_a_message_is_tried_again_before_it_is_set_aside(deployment: Deployment, kills: int) -> None:
    client = Client()

    run = await converse(deployment, client, SAID, faults=["after_take_commit:1"] * kills)

    assert run.problems == []
    assert list(client.ends.values()) == [["completed"]] * len(SAID)


@pytest.mark.parametrize("kills", range(1, ATTEMPTS))
async def test_an_answer_without_a_sentence_is_continued_by_the_next_server(
    deployment: Deployment, kills: int
) -> None:
    client = Client()
    run = Run(client)
    for _ in range(kills):
        server = await deployment.start("silent")
        await server.meet(client)
        if not client.asked:
            await client.say(SAID[0])
        await client.until(lambda: client.has_seen(Type.START_ANSWER))
        await server.has_logged("memory_traced")
        await server.kill()
        run.problems += after_a_death(deployment, run)

    server = await deployment.start()
    await server.meet(client)
    ends = [await client.answered(message_id) for message_id in client.asked]
    ends.append(await client.ask(SAID[1]))
    await finish(deployment, run, server)

    assert (ends, run.problems) == (["completed"] * 2, [])


async def test_a_message_that_kills_every_server_before_the_first_sentence_is_set_aside(
    deployment: Deployment,
) -> None:
    client = Client()

    run = await converse(deployment, client, SAID, faults=["after_understand:1"] * ATTEMPTS)

    assert run.problems == []
    assert list(client.ends.values()) == [["failed"], ["completed"], ["completed"]]


@pytest.mark.parametrize("fault", ["before_begin_commit:1", "after_begin_commit:1", "before_end_commit:1"])
async def test_a_server_killed_in_a_safety_answer_loses_nothing(deployment: Deployment, fault: str) -> None:
    run = await converse(deployment, Client(), IN_DANGER, "recalling", faults=[fault])

    assert (len(run.deaths), run.problems) == (1, [])


@pytest.mark.parametrize(
    "fault",
    [
        "before_begin_commit:1",
        "after_begin_commit:1",
        "after_begin_commit:2",
        "before_end_commit:1",
        "after_end_commit:1",
    ],
)
async def test_a_safety_answer_that_was_sent_whole_has_no_second_end(
    deployment: Deployment, fault: str
) -> None:
    client = Client(features=[])

    run = await converse(deployment, client, IN_DANGER, "recalling", faults=[fault])

    assert (len(run.deaths), run.problems) == (1, [])
    assert list(client.ends.values()) == [["completed"]] * len(IN_DANGER)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("point", ["before_tool_commit", "after_tool_commit"])
async def test_a_server_killed_while_a_tool_runs_loses_nothing(
    deployment: Deployment, point: str, number: int
) -> None:
    run = await converse(deployment, Client(), WITH_A_TOOL, faults=[f"{point}:{number}"])

    assert (len(run.deaths), run.problems) == (1, [])


@pytest.mark.parametrize("point", faults.IN_IDLE_SESSIONS)
async def test_a_session_pause_that_a_kill_interrupted_is_completed_by_the_next_server(
    deployment: Deployment, point: str
) -> None:
    client = Client()
    run = Run(client)
    server = await deployment.start()
    await server.meet(client)
    await client.ask(SAID[0])
    await server.kill()
    long_ago = "UPDATE alicia_conversations SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')"
    store = deployment.open_store()
    store.write_now(lambda tx: tx.unit.connection.execute(long_ago))
    store.close_now()

    code = await (await deployment.start(fault=point)).ended()
    run.problems += after_a_death(deployment, run)
    server = await deployment.start()
    await deployment.has_paused()  # a client that connects before it makes the session active again
    await server.meet(client)
    await client.until(lambda: any(b"orchestrator:paused" in packet for packet in client.seen))
    await client.ask(SAID[1])
    await finish(deployment, run, server)

    paused = [packet for packet in client.seen if b"orchestrator:paused" in packet and CHANGED in packet]
    assert (code, run.problems) == (-9, [])
    assert len(paused) == 1


def test_every_fault_point_in_the_code_is_known_and_every_known_one_is_there() -> None:
    used = {name for path in python_files(*PACKAGES) for name in points_in(parsed(path))}

    assert used == set(faults.POINTS)


def points_in(tree: ast.Module) -> Iterator[str]:
    """The names in calls of `faults.point`, and those that the outbox forms from the name of a step."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("faults"), "point"), [ast.Constant(str(name))]):
                yield name
            case ast.keyword("step", ast.Constant(str(step))):
                yield from (f"before_{step}_commit", f"after_{step}_commit")
