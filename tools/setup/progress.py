"""Runs commands and prints progress: what is being done, how long it took, what to do if it failed."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

LINES_OF_OUTPUT_SHOWN = 30
Word: TypeAlias = str | Path


class SetupError(Exception):
    """Something the project needs could not be obtained. The text says why and what to do next."""


@contextmanager
def step(description: str) -> Iterator[None]:
    """Print `description` while the body runs, then the seconds it took. Prints to stderr."""
    started = time.perf_counter()
    print(f"· {description} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    except BaseException:
        print(" failed", file=sys.stderr, flush=True)
        raise
    print(f" {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)


def run(
    command: Sequence[Word],
    *,
    hint: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
) -> str:
    """Run a command and return its output.

    If it fails, raise `SetupError` with the end of its output and with `hint`, which says what to do next.
    """
    try:
        done = subprocess.run(
            command,
            env=env,
            cwd=cwd,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SetupError(f"{command[0]}: {error.strerror}.\n{hint}") from None
    if done.returncode != 0:
        output = "\n".join(done.stdout.splitlines()[-LINES_OF_OUTPUT_SHOWN:])
        line = " ".join(map(str, command))
        raise SetupError(f"`{line}` ended with {done.returncode}:\n{output}\n{hint}")
    return done.stdout
