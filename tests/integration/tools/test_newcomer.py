"""A newcomer with a fresh clone and an empty home can set the project up, and needs the network only once."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tools.setup.toolchain import CHECKOUT

ABOUT_THE_NETWORK = re.compile(r"cert|ssl|proxy|ca_bundle|^pip_|^uv_", re.IGNORECASE)
TAKEN_FOR_GRANTED = (
    "make sh bash env git uname rm cat ls cp mv ln mkdir mktemp dirname basename chmod id nproc"
)
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"), "http://127.0.0.1:9")

Make = Callable[..., subprocess.CompletedProcess[str]]


def bare_path(folder: Path) -> str:
    """A PATH with Python, make and the commands every system has; no Node, Go, PostgreSQL, Chromium or uv."""
    folder.mkdir()
    for name in TAKEN_FOR_GRANTED.split():
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    (folder / "python3").symlink_to(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
    return str(folder)


@pytest.fixture(params=["the machine as it is", "a bare machine"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A fresh clone, and the environment of a machine with an empty home."""
    whole = f"{Path(sys.base_prefix, 'bin')}{os.pathsep}{os.environ['PATH']}"
    path = bare_path(tmp_path / "bin") if request.param == "a bare machine" else whole
    kept = {name: value for name, value in os.environ.items() if ABOUT_THE_NETWORK.search(name)}
    environment = kept | {"PATH": path, "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    subprocess.run(["git", "clone", "--quiet", CHECKOUT, tmp_path / "clone"], check=True)
    return tmp_path / "clone", environment


@pytest.fixture
def make(machine: tuple[Path, dict[str, str]]) -> Make:
    """Runs make there."""
    clone, environment = machine

    def run(target: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", target],
            cwd=clone,
            env=environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return run


@pytest.mark.soak
def test_a_fresh_clone_checks_itself_and_needs_the_network_only_once(make: Make) -> None:
    first = make("check")
    again = make("check", **NO_NETWORK)

    assert first.returncode == 0, first.stdout
    assert again.returncode == 0, again.stdout
    assert "installing" not in again.stdout


@pytest.mark.soak
def test_a_fresh_clone_opens_the_orchestrator_and_answers(
    machine: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    clone, environment = machine
    for network in ({}, NO_NETWORK):
        with subprocess.Popen(
            ["make", "run", "ARGS=--port 0 --json"],
            cwd=clone,
            env=environment | network | {"ANAMNESIS_DATA_DIR": str(tmp_path / "data")},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as running:
            assert running.stdout is not None
            ready = next(json.loads(line) for line in running.stdout if line.startswith("{"))
            page = urlopen(ready["url"], timeout=30).read().decode()  # noqa: S310 - our own address
            os.killpg(running.pid, signal.SIGTERM)
        assert '<div id="page">' in page


@pytest.mark.soak
def test_a_fresh_clone_passes_all_its_tests(make: Make) -> None:
    done = make("test")

    assert done.returncode == 0, done.stdout
