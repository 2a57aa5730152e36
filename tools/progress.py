"""Tells whoever waits what is being done, how long it took, and what to do when it failed."""

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
    """Something the project needs could not be had. The text says why and what to do next."""


@contextmanager
def step(doing: str) -> Iterator[None]:
    """Show `doing` while the body runs, then the seconds it took; on stderr, since stdout is for results."""
    started = time.perf_counter()
    print(f"· {doing} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    except BaseException:
        print(" failed", file=sys.stderr, flush=True)
        raise
    print(f" {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)


def run(
    command: Sequence[Word],
    *,
    otherwise: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
) -> str:
    """What `command` printed. If it fails: the end of that, and `otherwise`, which says what to do next."""
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
        raise SetupError(f"{command[0]}: {error.strerror}.\n{otherwise}") from None
    if done.returncode != 0:
        output = "\n".join(done.stdout.splitlines()[-LINES_OF_OUTPUT_SHOWN:])
        spoken = " ".join(map(str, command))
        raise SetupError(f"`{spoken}` ended with {done.returncode}:\n{output}\n{otherwise}")
    return done.stdout
