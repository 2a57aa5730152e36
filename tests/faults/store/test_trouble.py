"""The store is locked or full, or the process is asked to end: messages may be refused, nothing is lost."""

import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from orchestrator.store.checks import invariants
from tests.faults.client import Client, Type
from tests.faults.crash_checks import Run, finish
from tests.faults.crashes.test_crash_points import SAID
from tests.faults.deployment import Deployment, Server


async def refusal(client: Client) -> tuple[int, str | None]:
    """Receive the next refusal. Returns its code and the id of the refused message."""
    before = len(client.refused)
    await client.until(lambda: len(client.refused) > before)
    return client.refused[-1]


async def test_a_message_that_finds_the_store_locked_is_refused_and_may_be_sent_again(
    deployment: Deployment,
) -> None:
    client, server = Client(), await deployment.start(database_busy_timeout_seconds=0.1)
    await server.meet(client)
    with closing(sqlite3.connect(deployment.folder / "anamnesis.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        message_id = await client.say(SAID[0])
        refused = await refusal(client)
        other.execute("ROLLBACK")

    assert refused == (204, message_id)
    assert client.acknowledged_ids == []
    await client.send_again()
    assert await client.answered(message_id) == "completed"
    run = Run(client)
    await finish(deployment, run, server)
    assert run.problems == []


async def test_a_store_that_is_locked_in_the_middle_of_an_answer_does_not_lose_its_end(
    deployment: Deployment,
) -> None:
    client, server = Client(), await deployment.start("slow", database_busy_timeout_seconds=0.1)
    await server.meet(client)
    message_id = await client.say(SAID[0])
    await client.until(lambda: client.has_seen(Type.SENTENCE))
    with closing(sqlite3.connect(deployment.folder / "anamnesis.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await server.has_logged("turn_worker_failed")
        other.execute("ROLLBACK")

    assert await client.answered(message_id) == "failed"
    assert await client.ask(SAID[1]) == "completed"
    run = Run(client)
    await finish(deployment, run, server)
    assert run.problems == []


async def test_with_a_full_disk_messages_are_refused_reading_works_and_writing_recovers(
    deployment: Deployment,
) -> None:
    client, server = Client(), await deployment.start()
    await server.meet(client)
    await client.ask(SAID[0])
    await server.kill()

    full = await deployment.start("full")
    reader = Client(conversation_id=client.conversation_id)
    await full.meet(reader)
    await reader.until(lambda: len(reader.seen) >= len(client.seen))
    await full.meet(client)
    message_id = await client.say(SAID[1])
    refused = await refusal(client)
    full.signal(signal.SIGUSR1)
    await client.send_again()

    assert refused == (503, message_id)
    assert reader.seen == client.seen[: len(reader.seen)]
    assert await client.answered(message_id) == "completed"
    run = Run(client)
    await finish(deployment, run, full)
    assert run.problems == []


async def test_a_disk_that_fills_in_a_turn_is_reported_at_once_and_the_answer_comes_later(
    deployment: Deployment,
) -> None:
    client, server = Client(), await deployment.start("full_in_a_turn")
    await server.meet(client)
    message_id = await client.say(SAID[0])
    reported = await refusal(client)
    await server.feels(store="ok", writes="down: storage_full")
    acknowledged = list(client.acknowledged_ids)
    server.signal(signal.SIGUSR1)

    assert acknowledged == [message_id]
    assert reported == (503, message_id)
    assert await client.answered(message_id) in ("completed", "failed")
    await server.feels(store="ok", writes="ok")
    run = Run(client)
    await finish(deployment, run, server)
    assert run.problems == []


async def test_health_reports_a_full_disk(deployment: Deployment) -> None:
    server = await deployment.start()
    await server.feels(store="ok", writes="ok")
    await server.kill()

    full = await deployment.start("full")
    await full.feels(store="ok", writes="down: storage_full")
    full.signal(signal.SIGUSR1)

    await full.feels(store="ok", writes="ok")


async def test_health_reports_a_locked_store(deployment: Deployment) -> None:
    impatient = await deployment.start(database_busy_timeout_seconds=0.1)
    patient = await deployment.start(database_busy_timeout_seconds=60)
    with closing(sqlite3.connect(deployment.folder / "anamnesis.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await impatient.feels(store="ok", writes="down: busy_retry")
        await patient.feels(store="ok", writes="down: no_answer")
        other.execute("ROLLBACK")

    await impatient.feels(store="ok", writes="ok")
    await patient.feels(store="ok", writes="ok")


async def test_a_truncated_write_ahead_log_is_sound_up_to_its_end(
    deployment: Deployment, tmp_path: Path
) -> None:
    client, server = Client(), await deployment.start("recalling")
    await server.meet(client)
    for text in SAID:
        await client.ask(text)
    await server.kill()
    log = (tmp_path / "anamnesis.db-wal").read_bytes()
    short = Deployment(deployment.forker, tmp_path / "short")
    short.folder.mkdir()

    stanzas = set()
    for end in range(0, len(log) + 1, len(log) // 40):
        shutil.copyfile(tmp_path / "anamnesis.db", short.folder / "anamnesis.db")
        (short.folder / "anamnesis.db-wal").write_bytes(log[:end])
        store = short.open_store()
        assert invariants.check(store) == []
        stored = store.read_now(lambda tx: tx.frames.after(client.conversation_id, 0))
        store.close_now()
        assert [frame.payload for frame in stored] == client.seen[: len(stored)]
        stanzas.add(len(stored))

    assert len(stanzas) > len(SAID)


async def asked_to_end(deployment: Deployment, *changes: str) -> tuple[Client, str, Server]:
    """A server that gets a signal to end in the middle of an answer."""
    client, server = Client(), await deployment.start(*changes)
    await server.meet(client)
    message_id = await client.say(SAID[0])
    await client.until(lambda: client.has_seen(Type.SENTENCE))
    server.signal(signal.SIGTERM)
    assert await server.ended() == 0
    return client, message_id, await deployment.start()


async def test_a_server_asked_to_end_finishes_the_answer_first(deployment: Deployment) -> None:
    client, message_id, after = await asked_to_end(deployment, "slow")

    await after.meet(client)

    assert await client.answered(message_id) == "completed"
    run = Run(client)
    await finish(deployment, run, after)
    assert run.problems == []


async def test_an_answer_that_does_not_end_in_time_is_closed_with_the_orchestrator(
    deployment: Deployment,
) -> None:
    client, message_id, after = await asked_to_end(deployment, "endless")

    await after.meet(client)

    assert await client.answered(message_id) == "failed"
    assert await client.ask(SAID[1]) == "completed"
    run = Run(client)
    await finish(deployment, run, after)
    assert run.problems == []
