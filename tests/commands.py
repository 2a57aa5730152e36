"""`anamnesis` as a test calls it: in this process or in one of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli import cli
from orchestrator.settings import VARIABLES


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The settings of whoever runs the tests do not count, and their data folder is left alone."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path / "data"))


def run(*arguments: str | Path) -> Result:
    """`anamnesis` with these arguments, in this process."""
    return CliRunner().invoke(cli, list(map(str, arguments)), prog_name="anamnesis")


def start(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """`anamnesis` with these arguments, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def findings(done: Result) -> dict[str, dict[str, str]]:
    """What `doctor --json` told, by name."""
    return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
