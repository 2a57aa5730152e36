"""The code of docs/frontend.md: its Python calls a real server, its TypeScript fits the library."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.livekit_rooms import over_livekit
from tests.orchestrators import an_orchestrator
from tests.protocol_client import SENTENCE, TRACE
from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment
from tools.servers.livekit import Address
from tools.toolchain import CHECKOUT

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
