"""Names that said nothing to a newcomer do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, parsed, python_files

RIDDLES = re.compile(
    r"house|ears|watch|shown|lobby|turnstile|ticket|desk|minds|minutes|patience|asking|calling|retold|nursery"
)
"""Former names of modules and classes."""

VERBS = re.compile(r"_?told")
"""A function has a verb as its name that says what it does."""


def named() -> Iterator[tuple[Path, str]]:
    """Every module, class and function with its file."""
    for path in python_files(*PACKAGES, "tools"):
        yield path, path.stem
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node.name


def test_no_module_and_no_class_has_one_of_the_former_names() -> None:
    riddles = [f"{path} {name}" for path, name in named() if RIDDLES.fullmatch(name.lower().lstrip("_"))]

    assert riddles == []


def test_no_function_is_called_told() -> None:
    functions = [
        f"{path} {node.name}"
        for path in python_files("orchestrator", "memory_blocks", "tools")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and VERBS.fullmatch(node.name)
    ]

    assert functions == []
