"""The documents are right: their Python runs, their links exist, their tree equals the real one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, our_files, parsed, python_files
from tools.setup.toolchain import CHECKOUT

DOCUMENTS = [path for path in our_files() if path.suffix == ".md" and path.parts[0] != "console"]
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
TREE = re.compile(r"^## The tree$.*?^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(path: Path) -> str:
    """The text of a document."""
    return (CHECKOUT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if PYTHON_BLOCK.search(text_of(path))], ids=str)
def test_the_python_of_a_document_runs(path: Path) -> None:
    page: dict[str, object] = {"__name__": path.stem}
    for block in PYTHON_BLOCK.finditer(text_of(path)):
        line = text_of(path).count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(path), "exec", dont_inherit=True), page)  # noqa: S102

    for name, result in page.items():
        if name.startswith("test_") and callable(result):
            result()


def test_every_link_of_a_document_leads_to_a_file() -> None:
    broken = [
        (str(path), link)
        for path in DOCUMENTS
        for link in LINK.findall(text_of(path))
        if not (CHECKOUT / path.parent / link).exists()
    ]

    assert broken == []


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = Path("docs", "decisions")

    listed = set(LINK.findall(text_of(folder / "README.md")))

    assert {path.name for path in DOCUMENTS if path.parent == folder} - listed == {"README.md"}


def test_the_tree_in_the_architecture_page_equals_the_real_tree() -> None:
    result = set(tree_of(text_of(Path("ARCHITECTURE.md"))))
    closed = {
        folder
        for folder in result
        if folder.suffix == "" and not any(folder in name.parents for name in result)
    }
    modules = {path for path in python_files(*PACKAGES, "tools") if path.name != "__init__.py"}
    real = modules | {path.parent for path in python_files(*PACKAGES, "tools", "tests")}

    missing = {path for path in real - result if not any(folder in path.parents for folder in closed)}
    invented = {path for path in result if not (CHECKOUT / path).exists()}

    assert (sorted(missing), sorted(invented)) == ([], [])


def tree_of(architecture: str) -> Iterator[Path]:
    """The paths in the page's tree. Each level is indented by two spaces; a description follows the names."""
    block = TREE.search(architecture)
    assert block is not None
    folders: list[Path] = [Path()]
    for line in block[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        folder: Path | None = None
        for word in line.split():
            if not re.fullmatch(r"[\w.-]+(?:/|\.\w+)|Makefile", word):
                break
            path = folders[depth] / word.rstrip("/")
            yield path
            folder = path if word.endswith("/") else None
        if folder is not None:
            folders[depth + 1 :] = [folder]


def test_every_test_that_a_document_names_exists() -> None:
    defined = {
        node.name
        for path in python_files("tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = {(str(path), name) for path in DOCUMENTS for name in re.findall(r"`(test_\w+)`", text_of(path))}

    assert {each for each in named if each[1] not in defined} == set()
