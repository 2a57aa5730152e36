"""Counts the requirements of `docs/requirements.tsv` that tests show: `python -m tools.requirements`.

A test that shows requirements carries `@pytest.mark.requirement("000-012", …)`. As a pytest plugin, this
module refuses ids that do not exist. As a command, it counts the ids of the tests that `make test` runs.
"""

import argparse
import contextlib
import csv
import io
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from tools.setup.toolchain import CHECKOUT

TABLE = CHECKOUT / "docs" / "requirements.tsv"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the table: its id, the document it comes from, and its text."""

    id: str
    source: str
    text: str


def requirements() -> dict[str, Requirement]:
    """All requirements by id, in the order of the table."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["id"]: Requirement(row["id"], row["seed"], row["requirement"]) for row in rows}


def shown_by(items: Iterable[pytest.Item]) -> set[str]:
    """The ids that these tests carry."""
    return {id for item in items for mark in item.iter_markers("requirement") for id in mark.args}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests with unknown ids. Runs first, so that it also sees tests that are deselected later."""
    known = requirements()
    unknown = sorted(
        f"{item.nodeid} shows requirement {id!r}, which is not in {TABLE.relative_to(CHECKOUT)}"
        for item in items
        for id in shown_by([item])
        if id not in known
    )
    if unknown:
        raise pytest.UsageError(*unknown)


class Collector:
    """A pytest plugin that records the ids of collected tests, and the errors of collecting them."""

    def __init__(self) -> None:
        self.covered: set[str] = set()
        self.failed: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Called by pytest for each file, also for one that cannot be imported."""
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called by pytest with the tests that would run, after others were deselected."""
        self.covered = shown_by(session.items)


def collect(*paths: str) -> set[str]:
    """The ids that the tests show. If the tests cannot be collected, exit with the reasons.

    pytest prints a list of all tests before the reasons, so its output is shown only if there are no others.
    """
    collector, output, errors = Collector(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = pytest.main(["--collect-only", "-q", "--rootdir", str(CHECKOUT), *paths], plugins=[collector])
    if code != pytest.ExitCode.OK:
        reasons = "\n".join([*collector.failed, errors.getvalue()]).strip()
        sys.exit(f"The tests cannot be collected:\n{reasons or output.getvalue()}")
    return collector.covered


def counts(covered: set[str]) -> str:
    """A table: how many requirements of each source document are shown."""
    known = requirements().values()
    sources = sorted({requirement.source for requirement in known})
    width = max(map(len, sources))
    lines = ["requirements shown by tests"]
    for name, included in [*((source, {source}) for source in sources), ("together", set(sources))]:
        ids = [requirement.id for requirement in known if requirement.source in included]
        lines.append(f"  {name:<{width}}  {len(covered.intersection(ids)):>3} of {len(ids):>3}")
    return "\n".join(lines)


def main() -> None:
    """Print the counts; with `--missing`, first every requirement that no test shows yet."""
    parser = argparse.ArgumentParser(description="Count the requirements that tests show.")
    parser.add_argument("--missing", action="store_true", help="list the requirements no test shows yet")
    missing: bool = parser.parse_args().missing
    covered = collect()
    try:
        if missing:
            for requirement in requirements().values():
                if requirement.id not in covered:
                    print(f"{requirement.id}  {requirement.text}")
        print(counts(covered), flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
