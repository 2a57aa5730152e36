"""Lists the files of the checkout without git, which a newcomer may not have."""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.setup.toolchain import CHECKOUT

PACKAGES = ("orchestrator", "agents", "memory_blocks")
PYTHON = (*PACKAGES, "tools", "tests", "benchmarks")


@cache
def our_files() -> tuple[Path, ...]:
    """Every file of the project, relative to the checkout: all files that `.gitignore` does not exclude."""
    names = (CHECKOUT / ".gitignore").read_text().split()
    everywhere = {name.strip("/") for name in names if not name.startswith("/")} | {".git"}
    here = {Path(name.strip("/")) for name in names if "/" in name.rstrip("/")}
    return tuple(_files_below(Path(), everywhere, here))


def _files_below(folder: Path, everywhere: set[str], here: set[Path]) -> Iterator[Path]:
    for entry in sorted(os.scandir(CHECKOUT / folder), key=lambda entry: entry.name):
        path = folder / entry.name
        if entry.name in everywhere or path in here:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(path, everywhere, here)
        else:
            yield path


def python_files(*tops: str) -> list[Path]:
    """Our Python files below these folders, relative to the checkout."""
    return [path for path in our_files() if path.suffix == ".py" and path.parts[0] in tops]


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of one of our files."""
    return ast.parse((CHECKOUT / path).read_bytes(), str(path))
