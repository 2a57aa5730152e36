"""Makes a checkout ready: `python3 -m tools.bootstrap [--run | --tests]` with the standard library alone.

The result is `.venv` with the pinned dependencies and the project itself, editable. `--run` also builds the
web page, `--tests` fetches the tools and servers that tests need as well. What is ready is not done again: a
second call compares fingerprints.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tools.chromium import ensure_chromium
from tools.console import build_console, ensure_packages
from tools.progress import SetupError, run, step
from tools.toolchain import (
    CHECK_THE_NETWORK,
    CHECKOUT,
    VENV,
    cache_dir,
    ensure_go,
    ensure_letta,
    ensure_livekit,
    ensure_node,
    ensure_postgres,
    ensure_uv,
    fingerprint,
    installer_environment,
    locked,
)

PYTHON = VENV / "bin" / "python"
PINNED = CHECKOUT / "requirements" / "dev.txt"
PROJECT = CHECKOUT / "pyproject.toml"
CONFIG = CHECKOUT / "config"
MODELS = (
    CONFIG / "models.toml",
    CONFIG / "agents.toml",
    *sorted((CONFIG / "safety" / "phrases").glob("*.toml")),
)
BUILD_HOOK = CHECKOUT / "hatch_build.py"
INSTALLING = CHECKOUT / ".cache" / "installing"


def main(arguments: Sequence[str] | None = None) -> None:
    """Set up what is missing; end with a sentence that says what to do if that fails."""
    parser = argparse.ArgumentParser(description="Make this checkout ready to run and to test.")
    parser.add_argument("--run", action="store_true", help="also build the web page")
    parser.add_argument("--tests", action="store_true", help="also fetch the tools and servers tests need")
    parser.add_argument("--letta", action="store_true", help="fetch the Letta server, and nothing else")
    chosen = parser.parse_args(arguments)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupt)
    try:
        if chosen.letta:
            ensure_letta()
            return
        with locked(CHECKOUT / ".cache" / "bootstrap.lock"):
            make_ready()
            fetch_models()
            if chosen.tests:
                fetch_for_tests()
            if chosen.run or chosen.tests:
                build_console()
    except SetupError as failure:
        sys.exit(f"\n{failure}")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted; the same command goes on from here.")


def _interrupt(*_: object) -> NoReturn:
    """End as Ctrl-C does, so that what we started is ended with us."""
    raise KeyboardInterrupt


def fetch_for_tests() -> None:
    """The tools and servers that tests use; they try the packaged Node and Go even where there are others."""
    with letta_beside():
        ensure_node(search="")
        ensure_packages()
        ensure_chromium()
        ensure_postgres()
        ensure_go(search="")
        ensure_livekit()


@contextmanager
def letta_beside() -> Iterator[None]:
    """Fetch the Letta server in a process of its own while the body runs: both wait for the network most."""
    with subprocess.Popen(
        [PYTHON, "-m", "tools.bootstrap", "--letta"],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as fetching:
        try:
            yield
            _, said = fetching.communicate()
        except BaseException:
            fetching.terminate()
            raise
    if fetching.returncode != 0:
        raise SetupError(said.strip())
    print(said, end="", file=sys.stderr, flush=True)


def fetch_models() -> None:
    """The embedding model and what is learned with it: the same command as for a user of the wheel."""
    stamp, models = VENV / "ready" / "models", cache_dir() / "models"
    if not models.is_dir():
        stamp.unlink(missing_ok=True)
    once(stamp, fingerprint(*MODELS, str(models)), _fetch_models)


def _fetch_models() -> None:
    with step("fetching the embedding model, and learning the examples"):
        run(
            [PYTHON, "-m", "orchestrator", "models", "install"],
            env={**os.environ, "ANAMNESIS_CACHE_DIR": str(cache_dir())},
            cwd=CHECKOUT,
            otherwise=CHECK_THE_NETWORK,
        )


def make_ready() -> None:
    """`.venv`, then the dependencies, then the project: each only if its inputs changed since it was made."""
    if INSTALLING.exists() or not PYTHON.exists() or not ((VENV / "ready").is_dir() or _has_pip()):
        _make_environment()
    (VENV / "ready").mkdir(exist_ok=True)
    where = [str(CHECKOUT), os.path.realpath(PYTHON)]
    once(VENV / "ready" / "dependencies", fingerprint(PINNED, *where), _install_dependencies)
    once(VENV / "ready" / "project", fingerprint(PINNED, PROJECT, BUILD_HOOK, *where), _install_project)


def once(stamp: Path, inputs: str, do: Callable[[], None]) -> None:
    """Do it unless `stamp` says that it was done before with the same inputs."""
    if stamp.exists() and stamp.read_text() == inputs:
        return
    stamp.unlink(missing_ok=True)
    do()
    stamp.write_text(inputs)


@contextmanager
def to_its_end(marker: Path) -> Iterator[None]:
    """Leave `marker` unless the body comes to its end.

    A package that was half written looks whole later on, so an environment with a marker is made anew. The
    marker lies outside of it, because its removal may be killed, too.
    """
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    yield
    marker.unlink()


def _make_environment() -> None:
    with to_its_end(INSTALLING), step(f"making .venv with Python {sys.version.split()[0]}"):
        try:
            shutil.rmtree(VENV, ignore_errors=True)
            venv.create(VENV, with_pip=True, symlinks=True)
        except Exception as error:
            shutil.rmtree(VENV, ignore_errors=True)
            raise SetupError(
                f"`{sys.executable}` could not make a virtual environment ({error}).\n"
                "Install its venv module (on Debian and Ubuntu: apt install python3-venv), "
                "or name another Python: make PYTHON=python3.12 run"
            ) from None


def _has_pip() -> bool:
    """False for an environment that was left half made."""
    return (
        subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def _install_dependencies() -> None:
    uv, env = ensure_uv(PYTHON), installer_environment(PYTHON)
    with to_its_end(INSTALLING), step("installing the dependencies"):
        run(
            [uv, "pip", "sync", "--python", PYTHON, "--require-hashes", "--compile-bytecode", PINNED],
            env=env,
            cwd=CHECKOUT,
            otherwise=CHECK_THE_NETWORK,
        )


def _install_project() -> None:
    uv, env = ensure_uv(PYTHON), installer_environment(PYTHON)
    with to_its_end(INSTALLING), step("installing the project itself"):
        options = ["--no-deps", "--no-build-isolation", "--offline", "--editable"]
        run(
            [uv, "pip", "install", "--python", PYTHON, *options, CHECKOUT],
            env=env,
            cwd=CHECKOUT,
            otherwise="pyproject.toml may be wrong; the lines above say where.",
        )


if __name__ == "__main__":
    main()
