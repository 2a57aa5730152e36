"""The database file is deleted, moved or replaced under a running server: nothing more is acknowledged."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import DATABASE_FILE_LOST, AnamnesisError
from orchestrator.ops.clock import SystemClock
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.faults.client import Client
from tests.faults.crash_checks import Run, finish
from tests.faults.crashes.test_crash_points import SAID
from tests.faults.deployment import Deployment
from tests.faults.store.test_trouble import refusal

LOST = f"down: {DATABASE_FILE_LOST.name}"


def delete(file: Path) -> None:
    """Delete the database with its log."""
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


def move(file: Path) -> None:
    """Move the file away; its log stays."""
    file.rename(file.with_name("moved.db"))


def replace(file: Path) -> None:
    """Replace the file by a copy, as when a backup is restored."""
    copy = file.with_name("copy.db")
    shutil.copyfile(file, copy)
    copy.replace(file)


def delete_log(file: Path) -> None:
    """Delete only the write-ahead log, which contains the latest writes."""
    file.with_name(f"{file.name}-wal").unlink()


@pytest.mark.parametrize("lose", [delete, replace], ids=lambda lose: lose.__name__)
async def test_a_server_that_lost_its_file_refuses_messages_and_says_so(
    deployment: Deployment, lose: Callable[[Path], None]
) -> None:
    client, server = Client(), await deployment.start()
    await server.meet(client)
    await client.ask(SAID[0])
    stored = list(client.acknowledged_ids)

    lose(deployment.folder / "anamnesis.db")
    message_id = await client.say(SAID[1])

    assert await refusal(client) == (DATABASE_FILE_LOST.number, message_id)
    assert client.acknowledged_ids == stored
    await server.feels(store=LOST, writes=LOST)
    await server.has_logged("database_file_lost")


async def test_a_file_that_is_moved_back_is_used_again(deployment: Deployment) -> None:
    client, server = Client(), await deployment.start()
    await server.meet(client)
    await client.ask(SAID[0])
    file = deployment.folder / "anamnesis.db"
    move(file)
    message_id = await client.say(SAID[1])
    await refusal(client)

    file.with_name("moved.db").rename(file)
    await client.send_again()

    assert await client.answered(message_id) == "completed"
    await server.has_logged("database_file_found_again")
    run = Run(client)
    await finish(deployment, run, server)
    assert run.problems == []


async def test_a_server_whose_log_was_removed_saves_all_when_stopped(deployment: Deployment) -> None:
    client, server = Client(), await deployment.start()
    await server.meet(client)
    await client.ask(SAID[0])
    delete_log(deployment.folder / "anamnesis.db")
    message_id = await client.say(SAID[1])
    await refusal(client)

    server.signal(signal.SIGTERM)
    await server.ended()
    after = await deployment.start()
    await after.meet(client)
    await client.send_again()

    assert await client.answered(message_id) == "completed"
    run = Run(client)
    await finish(deployment, run, after)
    assert run.problems == []


@pytest.mark.parametrize("lose", [delete, move, replace, delete_log], ids=lambda lose: lose.__name__)
def test_a_file_that_is_lost_inside_a_transaction_makes_it_fail(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    file = tmp_path / "anamnesis.db"
    store = Store.open(f"sqlite:///{file}", clock=SystemClock(), ids=RandomIds(), create=True)
    store.write_now(lambda tx: tx.conversations.create("ada"))

    def write_and_lose(tx: Transaction) -> None:
        tx.conversations.create("ada")
        lose(file)

    with pytest.raises(AnamnesisError) as refused:
        store.write_now(write_and_lose)
    store.close_now()

    assert refused.value.problem is DATABASE_FILE_LOST


def test_a_connection_opened_after_the_file_was_replaced_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "anamnesis.db"
    store = Store.open(f"sqlite:///{file}", clock=SystemClock(), ids=RandomIds(), create=True)
    store.write_now(lambda tx: tx.conversations.create("ada"))

    replace(file)  # the reading threads have no connection yet

    with pytest.raises(AnamnesisError) as refused:
        store.read_now(lambda tx: tx.conversations.get("nobody"))
    store.close_now()
    assert refused.value.problem is DATABASE_FILE_LOST
