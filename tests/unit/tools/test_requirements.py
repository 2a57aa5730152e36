"""Requirements are counted by the tests that show them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tools import requirements
from tools.setup.toolchain import CHECKOUT


@dataclass
class Collected:
    """The part of a collected test that the count needs."""

    nodeid: str
    marks: list[pytest.MarkDecorator]

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark.mark for mark in self.marks if mark.name == name)


def a_test(*shows: str) -> pytest.Item:
    """A test that carries these requirements, on two marks."""
    marks = [pytest.mark.requirement(*shows[:1]), pytest.mark.requirement(*shows[1:]), pytest.mark.soak]
    return cast(pytest.Item, Collected("test_it.py::test_it", marks))


def test_a_test_that_shows_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(
        pytest.UsageError, match=r"test_it shows requirement '000-999', which is not in docs/"
    ):
        requirements.pytest_collection_modifyitems([a_test("000-001", "000-999")])


def test_a_test_that_shows_known_requirements_is_accepted_and_counted() -> None:
    item = a_test("000-001", "004-054")

    requirements.pytest_collection_modifyitems([item])

    assert requirements.shown_by([item]) == {"000-001", "004-054"}


def test_the_counts_are_given_per_source_document_and_together() -> None:
    first, second = list(requirements.requirements())[:2]

    lines = requirements.counts({first, second}).splitlines()

    assert lines[1].endswith("2 of  49")
    assert lines[-1].split() == ["together", "2", "of", str(len(requirements.requirements()))]


def test_if_tests_cannot_be_collected_only_the_reasons_are_printed(tmp_path: Path) -> None:
    code = "import sys; from tools import requirements; requirements.collect(sys.argv[1])"
    for name, text in {
        "conftest.py": "pytest_plugins = ['tools.requirements']\n",
        "test_well.py": "def test_of_no_interest(): ...\n",
        "test_unknown.py": "import pytest\n@pytest.mark.requirement('000-999')\ndef test_it(): ...\n",
        "test_wrong.py": "import no_such_module\n",
    }.items():
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=CHECKOUT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("The tests cannot be collected:\n")
    assert "shows requirement '000-999', which is not in" in done.stderr
    assert "No module named 'no_such_module'" in done.stderr
    assert "test_of_no_interest" not in done.stderr


def test_the_reader_of_the_list_may_close_the_pipe_early() -> None:
    code = "from tools import requirements; requirements.collect = set; requirements.main()"
    reading, writing = os.pipe()
    os.close(reading)

    try:
        done = subprocess.run(
            [sys.executable, "-c", code, "--missing"],
            cwd=CHECKOUT,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")
