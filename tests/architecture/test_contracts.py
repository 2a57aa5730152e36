"""Import contracts, module docstrings, and what no file may contain."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import PYTHON, our_files, parsed, python_files
from tools.setup.toolchain import CHECKOUT

REGISTRIES = ("pypi", "pythonhosted", "npmjs", "golang")
FOREIGN = re.compile(
    rf"https?://[\w.-]*\b(?:{'|'.join(REGISTRIES)})\.(?:org|com)"  # a registry: each user chooses their own
    r"|(?<![\w.~-])/(?:root|work|home/\w+|Users/\w+)/"  # a folder of one developer's machine
)
NOT_RUN = {"skip", "skipif", "xfail", "importorskip"}
ONE_SENTENCE = re.compile(r"[^\n].*[.:?]", re.DOTALL)


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


def test_every_module_has_a_docstring_of_one_sentence() -> None:
    openings = {
        path: (ast.get_docstring(parsed(path)) or "").split("\n\n")[0] for path in python_files(*PYTHON)
    }

    assert {path: text for path, text in openings.items() if not ONE_SENTENCE.fullmatch(text)} == {}


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Attribute) and node.attr in NOT_RUN)
        or (isinstance(node, ast.Name) and node.id in NOT_RUN)
    ]

    assert found == []


def test_no_file_names_a_registry_or_a_local_folder() -> None:
    found = [
        f"{path}:{number}"
        for path in our_files()
        for number, line in enumerate((CHECKOUT / path).read_text(errors="replace").splitlines(), 1)
        if FOREIGN.search(line)
    ]

    assert found == []


def test_a_registry_and_a_local_folder_would_be_found() -> None:
    registry, folder = "https://" + "pypi.org/simple", "cd /" + "root/x"

    assert FOREIGN.search(registry)
    assert FOREIGN.search(folder)
