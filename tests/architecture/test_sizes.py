"""How large a function, a class, a constructor and a folder may grow before it is divided."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, parsed, python_files

MOST_LINES = {ast.FunctionDef: 80, ast.AsyncFunctionDef: 80, ast.ClassDef: 300}
MOST_PARAMETERS = 7
MOST_MODULES = 13

FULLER = {
    "orchestrator/cli",
    "orchestrator/store/migrations/versions",
    "orchestrator/store/repositories",
    "tools",
}
"""Folders with more modules; `docs/decisions/folders.md` says why they stay flat."""


def definitions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every function and class, with its file."""
    for path in python_files(*PACKAGES, "tools"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield path, node


def test_no_function_and_no_class_is_too_long() -> None:
    long = {
        f"{path} {node.name}"
        for path, node in definitions()
        if (node.end_lineno or 0) - node.lineno >= MOST_LINES[type(node)]
    }

    assert long == set()


def test_no_constructor_has_too_many_parameters() -> None:
    many = [
        str(path)
        for path, node in definitions()
        if node.name == "__init__"
        and not isinstance(node, ast.ClassDef)
        and len(node.args.args) + len(node.args.kwonlyargs) - 1 > MOST_PARAMETERS
    ]

    assert many == []


def test_no_folder_is_too_full() -> None:
    modules = Counter(
        str(path.parent) for path in python_files(*PACKAGES, "tools") if path.name != "__init__.py"
    )

    assert {folder for folder, count in modules.items() if count > MOST_MODULES} == FULLER
