"""Every error is a row of one table, and nothing else is raised."""

import ast
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from orchestrator import errors
from tests.architecture.sources import PACKAGES, parsed, python_files

OUR_MODULES_OF_ERRORS = ("errors.py",)
PROTOCOLS_OF_PYTHON = {"StopIteration", "StopAsyncIteration", "SystemExit", "GeneratorExit", "AttributeError"}
OF_A_VALIDATOR = {"PydanticCustomError"}  # converted to a row where the model is used
FOR_CLICK = {"UsageError", "BadParameter", "ClickException", "Exit", "Abort"}


@cache
def ours() -> set[str]:
    """The names of the error classes that our packages define."""
    return {
        node.name
        for path in python_files(*PACKAGES)
        if path.name in OUR_MODULES_OF_ERRORS
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    }


def caught_where_raised(path: Path) -> set[str]:
    """The private errors of a module that it catches itself, so that they never leave it."""
    return {
        name.id
        for handler in ast.walk(parsed(path))
        if isinstance(handler, ast.ExceptHandler) and handler.type is not None
        for name in ast.walk(handler.type)
        if isinstance(name, ast.Name) and name.id.startswith("_")
    }


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    modules = [
        name
        for node in ast.walk(parsed(path))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    return {name.partition(".")[0] for name in modules}


@cache
def makers() -> dict[str, set[str]]:
    """Our functions with the classes of their results: some return an error that the caller raises."""
    return {
        node.name: {ast.unparse(node.returns)} - {"Exception"}
        or {called(one.value) for one in ast.walk(node) if isinstance(one, ast.Return) and called(one.value)}
        for path in python_files(*PACKAGES)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef) and node.returns is not None
    }


def called(expression: ast.expr | None) -> str:
    """The name of what an expression calls, without its module; empty if it calls nothing."""
    return ast.unparse(expression.func).rpartition(".")[2] if isinstance(expression, ast.Call) else ""


def raised(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the class of everything that a module raises, except errors that it raises again."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Raise) and (name := called(node.exc)):
            for one in makers().get(name, {name}):
                yield node.lineno, one
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id[0].isupper():
            yield node.lineno, node.exc.id


def allowed_in(path: Path) -> set[str]:
    """The classes that a module may raise."""
    libraries = imported(path)
    return (
        ours()
        | PROTOCOLS_OF_PYTHON
        | OF_A_VALIDATOR
        | caught_where_raised(path)
        | ({"ValueError"} if "pydantic" in libraries else set())
        | (FOR_CLICK if "click" in libraries else set())
    )


def test_only_our_own_errors_are_raised() -> None:
    foreign = [
        f"{path}:{line} raises {name}"
        for path in python_files(*PACKAGES)
        for allowed in [allowed_in(path)]
        for line, name in raised(path)
        if name not in allowed
    ]

    assert foreign == []


def test_an_error_that_is_not_ours_would_be_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("def fail():\n    raise RuntimeError('no')\n\ndef stop():\n    raise KeyError\n")

    assert list(raised(module)) == [(2, "RuntimeError"), (5, "KeyError")]


def without_its_facts(path: Path) -> Iterator[int]:
    """The lines of a module that create an error without a fact that the text of its row needs."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Call(func=ast.Name("AnamnesisError"), args=[ast.Name(row)], keywords=facts) if (
                row.isupper()
            ):
                problem = getattr(errors, row)
                needed = {field for _, field, _, _ in string.Formatter().parse(problem.says + problem.then)}
                given = {fact.arg for fact in facts}
                if None not in given and not needed - {None} <= given:
                    yield node.lineno


def test_every_error_gets_the_facts_that_the_text_of_its_row_names() -> None:
    found = [f"{path}:{line}" for path in python_files(*PACKAGES) for line in without_its_facts(path)]

    assert found == []


def test_no_two_rows_have_the_same_name() -> None:
    rows = [row for row in vars(errors).values() if isinstance(row, errors.Problem)]

    assert len({row.name for row in rows}) == len(rows) == len(errors.TABLE)


def test_every_row_says_what_happened_and_what_to_do_next(subtests: pytest.Subtests) -> None:
    for row in errors.TABLE.values():
        with subtests.test(row=row.name):
            assert row.says.endswith((".", "}"))
            assert row.then.endswith((".", "}")) or (row.says.startswith("{") and not row.then)
            assert 400 <= row.http < 600
            assert 101 <= row.number < 600
