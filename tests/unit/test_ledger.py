"""Requirements are counted by the tests that show them."""

import subprocess
import sys
from pathlib import Path

from tools import ledger
from tools.toolchain import CHECKOUT


def collected(test: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What pytest says when it collects this one test, with the ledger looking on."""
    (folder / "test_it.py").write_text(f"import pytest\n\n{test}\ndef test_it(): pass\n")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "tools.ledger",
            "--rootdir",
            folder,
            folder,
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_that_shows_an_unknown_requirement_is_refused(tmp_path: Path) -> None:
    done = collected('@pytest.mark.requirement("000-001", "000-999")', tmp_path)

    assert done.returncode != 0
    assert (
        "test_it.py::test_it shows requirement '000-999', which is not in docs/requirements.tsv"
        in done.stderr
    )


def test_a_test_that_shows_known_requirements_is_taken(tmp_path: Path) -> None:
    done = collected('@pytest.mark.requirement("000-001", "004-054")', tmp_path)

    assert done.returncode == 0, done.stdout


def test_the_counts_are_given_per_source_document_and_together() -> None:
    first, second = list(ledger.requirements())[:2]

    lines = ledger.counts({first, second}).splitlines()

    assert lines[1].endswith("2 of  49")
    assert lines[-1].split() == ["together", "2", "of", str(len(ledger.requirements()))]
