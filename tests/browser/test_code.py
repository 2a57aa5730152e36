"""The page's code: its types hold, and its own tests pass."""

import subprocess
from pathlib import Path

import pytest

from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment


@pytest.fixture(scope="module")
def node() -> Path:
    return ensure_packages()


def test_every_type_holds(node: Path) -> None:
    told = _run(node, MODULES / "typescript" / "bin" / "tsc", "--noEmit")

    assert told.returncode == 0, told.stdout


@pytest.mark.requirement("003-148")
def test_the_client_loses_nothing_and_takes_nothing_twice(node: Path) -> None:
    told = _run(node, MODULES / "vitest" / "vitest.mjs", "run", "--no-color", "--no-cache")

    assert told.returncode == 0, told.stdout
    assert "failed" not in told.stdout


def test_no_registry_is_written_down() -> None:
    locks = [CONSOLE / "package-lock.json", Path(__file__).with_name("package-lock.json")]

    assert ['"resolved"' in lock.read_text() for lock in locks] == [False, False]


def _run(node: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [node / "node", *command],
        cwd=CONSOLE,
        env=npm_environment(node),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
