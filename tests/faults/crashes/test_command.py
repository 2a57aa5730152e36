"""The command as a newcomer starts it: killed, started again, and its data folder checked."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.client import Client, Cut
from tests.faults.crashes.test_crash_points import SAID
from tools.setup.toolchain import CHECKOUT

ANAMNESIS = [sys.executable, "-m", "orchestrator"]


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`anamnesis serve` in its own process, and the line that it prints when it is ready."""
    with subprocess.Popen(
        [*ANAMNESIS, "--data", folder, "serve", "--json", "--port", "0"],
        cwd=CHECKOUT,
        env={**os.environ, "ANAMNESIS_TURN_LEASE_SECONDS": "0.5", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


async def test_a_server_that_dies_and_is_started_again_has_lost_nothing(tmp_path: Path) -> None:
    client = Client()
    with served(tmp_path, ANAMNESIS_FAULT="after_take_commit:1") as (dying, ready):
        try:
            await client.connect(ready["ws"], ready["key"])
            await client.ask(SAID[0])
        except Cut:
            assert dying.wait() == -signal.SIGKILL

    with served(tmp_path) as (process, ready):
        assert ready["pid"] == process.pid
        await client.connect(ready["ws"], ready["key"])
        ends = [await client.answered(message_id) for message_id in client.asked]
        ends.append(await client.ask(SAID[1]))
        await client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0

    assert (ends, client.problems) == (["completed"] * 2, [])
    assert violations(tmp_path) == (0, [])


def violations(folder: Path) -> tuple[int, list[Any]]:
    """The exit code and the findings of `anamnesis check`, while no server is running."""
    looked = subprocess.run(
        [*ANAMNESIS, "--data", folder, "check", "--at-rest", "--json"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    return looked.returncode, json.loads(looked.stdout)["violations"]
