"""The page's TypeScript: its types are correct, and its own tests pass."""

import subprocess
from pathlib import Path

import pytest

from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment


@pytest.fixture(scope="module")
def node() -> Path:
    return ensure_packages()


def test_the_types_are_correct(node: Path) -> None:
    done = _run(node, MODULES / "typescript" / "bin" / "tsc", "--noEmit")

    assert done.returncode == 0, done.stdout


@pytest.mark.requirement("003-148")
def test_the_tests_of_the_client_pass(node: Path) -> None:
    done = _run(node, MODULES / "vitest" / "vitest.mjs", "run", "--no-color", "--no-cache")

    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout


def test_no_lock_file_names_a_registry() -> None:
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
