"""`make livekit`: both servers come up together, speak with each other, and end together."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

from tests.peers import PATIENCE
from tools.toolchain import CHECKOUT


async def test_it_serves_through_livekit_until_it_is_stopped(tmp_path: Path) -> None:
    environment = {**os.environ, "ANAMNESIS_DATA_DIR": str(tmp_path)}
    both = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.livekit", "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        env=environment,
        cwd=CHECKOUT,
    )
    assert both.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            page = None
            while page is None:
                page = re.search(rb"http://\S+#\S+", await both.stdout.readline())
        chat = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator", "chat", "--json", "--livekit", "--server"),
            page.group().decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=CHECKOUT,
        )
        said, _ = await chat.communicate(b"I am having a headache\n")
    finally:
        both.send_signal(signal.SIGTERM)
        code = await both.wait()

    assert b'"isFinal":true' in said.replace(b" ", b"")
    assert (chat.returncode, code) == (0, 0)
