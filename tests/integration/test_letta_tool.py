"""`make letta`: a house over a Letta server, until it is stopped."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.houses import a_store
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, SECONDS_TO_START, Address
from tools.toolchain import CHECKOUT

pytestmark = pytest.mark.timeout(900)


async def test_it_serves_over_a_running_server_until_it_is_stopped(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    told = {
        "LETTA_BASE_URL": letta.base_url,
        "ANAMNESIS_LETTA_MODEL": LETTA_MODEL,
        "ANAMNESIS_LETTA_EMBEDDING": LETTA_EMBEDDING,
        "ANAMNESIS_LETTA_TAG": tag,
    }

    code, printed, kept = await served(tmp_path, told)

    assert (code, printed) == (0, "")
    assert kept["model.asked"] == "1"
    assert "model.stood_in" not in kept


@pytest.mark.soak
async def test_it_starts_a_server_of_its_own_and_takes_it_along(tmp_path: Path) -> None:
    code, printed, kept = await served(tmp_path, {"LETTA_BASE_URL": ""})

    assert code == 0
    assert kept["model.asked"] == "1"
    ports = re.findall(r"127\.0\.0\.1:(\d+)", printed)
    assert len(ports) == 2
    for port in ports:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(port))):
            pass


async def served(folder: Path, told: Mapping[str, str]) -> tuple[int, str, dict[str, str]]:
    """How the tool ended that answered one message, what it said of Letta, and what is kept of the answer."""
    patient = {"ANAMNESIS_LETTA_SHOW_SECONDS": "60", "ANAMNESIS_BRAIN_REPLY_SECONDS": "60"}
    tool = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.letta", "--port", "0", "--letta-port", "0"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **patient, **told, "ANAMNESIS_DATA_DIR": str(folder)},
        cwd=CHECKOUT,
    )
    assert tool.stdout is not None
    printed = ""
    try:
        async with asyncio.timeout(SECONDS_TO_START):
            while (
                page := re.search(r"http://\S+#\S+", line := (await tool.stdout.readline()).decode())
            ) is None:
                printed += line if "Letta listens" in line else ""
        chat = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator", "chat", "--json", "--server", page.group()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=CHECKOUT,
        )
        heard, _ = await chat.communicate(b"I am having a headache\n")
    finally:
        tool.send_signal(signal.SIGTERM)
        code = await tool.wait()
    frames = [json.loads(line) for line in heard.splitlines()]
    (last,) = [frame["body"] for frame in frames if frame.get("body", {}).get("isFinal")]
    store = a_store(f"sqlite:///{folder / 'anamnesis.db'}")
    kept = store.read_now(lambda tx: {pair.key: pair.value for pair in tx.meta.of(last["previousId"])})
    store.close_now()
    return code, printed, kept
