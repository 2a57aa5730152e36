"""How large a function, a class, a constructor and a folder may grow before it is divided."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.sources import PACKAGES, PYTHON, parsed, python_files

MOST_LINES = {ast.FunctionDef: 80, ast.AsyncFunctionDef: 80, ast.ClassDef: 300}
MOST_PARAMETERS = 7
MOST_MODULES = 13
BUILDS = ("build_", "create_", "make_")

EVER_FULLER = {"orchestrator/store/migrations/versions"}
"""Folders that may have more modules, because each new schema adds one."""


def definitions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every function and class, with its file."""
    for path in python_files(*PYTHON):
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
    many = {
        f"{path} {node.name}"
        for path, node in definitions()
        if path.parts[0] in (*PACKAGES, "tools") and parameters(node) > MOST_PARAMETERS
    }

    assert many == set()


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """How many parameters it takes to build something; 0 for values and for functions that build nothing."""
    if isinstance(node, ast.ClassDef):
        return len(given(node)) if is_dataclass(node) and holds_services(node) else 0
    if node.name == "__init__":
        return len(node.args.args) + len(node.args.kwonlyargs) - 1
    return len(node.args.args) + len(node.args.kwonlyargs) if node.name.startswith(BUILDS) else 0


def is_dataclass(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass."""
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def given(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The fields that a dataclass is given when it is built."""
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    return [each for each in fields if each.value is None or "init=False" not in ast.unparse(each.value)]


def holds_services(node: ast.ClassDef) -> bool:
    """Whether several fields are services: of a class of ours that is no value."""
    names = [
        name.id for each in given(node) for name in ast.walk(each.annotation) if isinstance(name, ast.Name)
    ]
    return sum(name in services() for name in names) > 1


@cache
def services() -> frozenset[str]:
    """The names of our classes that are neither dataclasses nor models, enumerations, tuples or errors."""
    return frozenset(
        node.name
        for path, node in definitions()
        if isinstance(node, ast.ClassDef)
        and path.parts[0] in PACKAGES
        and not is_dataclass(node)
        and (not node.bases or any(ast.unparse(base) == "Protocol" for base in node.bases))
    )


def test_no_folder_is_too_full() -> None:
    modules = Counter(str(path.parent) for path in python_files(*PYTHON) if path.name != "__init__.py")

    assert {folder for folder, count in modules.items() if count > MOST_MODULES} <= EVER_FULLER
