"""`anamnesis` as a test calls it: in this process or in one of its own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli import cli
from orchestrator.settings import VARIABLES
from tools.setup.toolchain import CHECKOUT


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ignore the settings and the data folder of the user who runs the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path / "data"))


def run(*arguments: str | Path) -> Result:
    """Run `anamnesis` with these arguments in this process."""
    return CliRunner().invoke(cli, list(map(str, arguments)), prog_name="anamnesis")


def start(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """Start `anamnesis` with these arguments in its own process."""
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True)
class Served:
    """The exit codes of a tool and of a chat with its server, the tool's output and the chat's frames."""

    codes: tuple[int | None, int | None]
    printed: str
    frames: list[dict[str, Any]]

    @property
    def last(self) -> dict[str, Any]:
        """The body of the answer's last frame."""
        (last,) = [frame["body"] for frame in self.frames if frame.get("body", {}).get("isFinal")]
        found: dict[str, Any] = last
        return found


async def served(tool_and_options: str, *of_chat: str, seconds: float, **environment: str) -> Served:
    """Let a tool serve on a free port, send one message to its server, and stop it."""
    tool = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *tool_and_options.split(), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
        cwd=CHECKOUT,
    )
    assert tool.stdout is not None
    printed, page = "", None
    key_file = str(Path(environment["ANAMNESIS_DATA_DIR"]) / "keys.json")
    try:
        async with asyncio.timeout(seconds):
            while page is None:
                line = (await tool.stdout.readline()).decode()
                assert line, "it ended before it served"
                page = re.search(r"(http://\S+)/#\S+", line)
                printed += line
        chat = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator", "chat", "--json", *of_chat),
            *("--server", page[1], "--key-file", key_file),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=CHECKOUT,
        )
        said, _ = await chat.communicate(b"I am having a headache\n")
    finally:
        if tool.returncode is None:
            tool.send_signal(signal.SIGTERM)
        code = await tool.wait()
    return Served((chat.returncode, code), printed, [json.loads(line) for line in said.splitlines()])


def findings(done: Result) -> dict[str, dict[str, str]]:
    """The findings of `doctor --json`, by name."""
    return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


def a_distribution(folder: Path, name: str, package: str) -> Path:
    """A folder with an installed distribution that contains `package`."""
    (folder / package).mkdir(parents=True, exist_ok=True)
    (folder / package / "__init__.py").write_text("")
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "RECORD").write_text(
        f"{package}/__init__.py,,\n{metadata.name}/METADATA,,\n{metadata.name}/RECORD,,\n"
    )
    return folder
