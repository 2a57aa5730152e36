"""Names that said nothing to a newcomer do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PYTHON, parsed, python_files

RIDDLES = re.compile(
    r"house|ears|watch|shown|lobby|turnstile|ticket|desk|minds|minutes|patience|asking|calling|retold|nursery"
    r"|told|attend|attention|transcripts|resolution|walk"
)
"""Former names of modules, classes, functions and fields."""


def named() -> Iterator[tuple[Path, str]]:
    """Every module, class, function, and field of a class or an instance, with its file."""
    for path in python_files(*PYTHON):
        yield path, path.stem
        for node in ast.walk(parsed(path)):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield path, name
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield path, name
                case _:
                    pass
            if isinstance(node, ast.ClassDef):
                yield from (
                    (path, field.target.id)
                    for field in node.body
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                )


def test_nothing_has_one_of_the_former_names() -> None:
    riddles = [
        f"{path} {name}"
        for path, name in named()
        if RIDDLES.fullmatch(name.lower().removeprefix("test").strip("_"))
    ]

    assert riddles == []


def test_a_class_name_means_one_class() -> None:
    orchestrators = [
        str(path)
        for path in python_files(*PYTHON)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and node.name == "Orchestrator"
    ]

    assert orchestrators == [str(Path("orchestrator", "orchestrator.py"))]
