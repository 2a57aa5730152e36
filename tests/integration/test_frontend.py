"""The code of docs/frontend.md: its Python calls a real server, its TypeScript fits the library."""

import asyncio
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.orchestrators import an_orchestrator
from tests.support.protocol_client import ERROR, SENTENCE, START_ANSWER, TIMEOUT, TRACE
from tests.support.servers.livekit_rooms import over_livekit, serving
from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment
from tools.servers.livekit import Address
from tools.servers.process import free_port
from tools.setup.toolchain import CHECKOUT

PAGE = (CHECKOUT / "docs" / "frontend.md").read_text(encoding="utf-8")


def code(language: str) -> str:
    """The one block of the page in that language."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(block)


async def test_the_python_asks_and_is_answered_through_a_room(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    page: dict[str, Any] = {}
    exec(code("python"), page)  # noqa: S102
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        result = await page["ask"](str(site.http.base_url), site.key, "I am having a headache")

    types = [frame["type"] for frame in result]
    assert types[-1] == SENTENCE
    assert TRACE in types


@pytest.mark.parametrize(
    ("fault", "last"), [("after_begin_commit:1", SENTENCE), ("after_sentence_commit:1", ERROR)]
)
async def test_the_python_loses_nothing_if_the_server_is_killed_in_the_middle_of_an_answer(
    tmp_path: Path, livekit: Address, fault: str, last: int
) -> None:
    """Killed before a word was said, the answer continues; killed after its first sentence, it failed."""
    page: dict[str, Any] = {}
    exec(code("python"), page)  # noqa: S102
    page["SILENCE"] = 5.0
    port = free_port()
    async with asyncio.timeout(4 * TIMEOUT), asyncio.TaskGroup() as group:
        async with serving(tmp_path, livekit, port=port, fault=fault) as (door, killed):
            asking = group.create_task(page["ask"](door["url"], door["key"], "I am having a headache"))
            assert await killed.wait() == -signal.SIGKILL
        async with serving(tmp_path, livekit, port=port):
            frames = await asking

    assert [-frame["stanzaId"] for frame in frames] == list(range(1, len(frames) + 1))
    assert frames[-1]["type"] == last
    assert [frame["type"] for frame in frames].count(START_ANSWER) == 1


def test_the_typescript_fits_the_library(tmp_path: Path) -> None:
    node = ensure_packages()
    shutil.copytree(CONSOLE / "src" / "protocol", tmp_path / "src" / "protocol")
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "src" / "frontend.ts").write_text(code("ts"))
    shutil.copy(CONSOLE / "tsconfig.json", tmp_path)

    result = subprocess.run(
        [node / "node", MODULES / "typescript" / "bin" / "tsc", "--noEmit", "--project", tmp_path],
        cwd=tmp_path,
        env=npm_environment(node),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "")
