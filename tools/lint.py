"""Runs every linter at the same time and prints what each one found: `python -m tools.lint`."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.setup.toolchain import CHECKOUT

LINTERS = {
    "types": ["mypy"],
    "format": ["ruff", "format", "--check", "--quiet", "."],
    "style": ["ruff", "check", "--quiet", "."],
    "imports": ["lint-imports"],
    "dependencies": ["deptry", "orchestrator", "agents", "memory_blocks"],
    "spelling": ["codespell"],
}


def main() -> None:
    """Print one line per linter, and the output of each that found something. Then exit with 1."""
    with ThreadPoolExecutor() as pool:
        clean = list(pool.map(_lint, LINTERS))
    if not all(clean):
        sys.exit(1)


def _lint(name: str) -> bool:
    """Run one linter. True if it found nothing."""
    program, *arguments = LINTERS[name]
    started = time.perf_counter()
    done = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    clean = done.returncode == 0
    print(
        f"{'✓' if clean else '✗'} {name} ({program}, {time.perf_counter() - started:.1f} s)",
        *([] if clean else [done.stdout.rstrip()]),
        sep="\n",
        flush=True,
    )
    return clean


if __name__ == "__main__":
    main()
