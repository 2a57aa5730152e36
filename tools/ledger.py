"""Which requirements of `docs/requirements.tsv` the tests show: `python -m tools.ledger [--missing]`.

A test says so itself, with `@pytest.mark.requirement("000-012", …)`. As a pytest plugin this module refuses
an id that does not exist; as a command it counts, over the tests that `make test` would run.
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

from tools.toolchain import CHECKOUT

TABLE = CHECKOUT / "docs" / "requirements.tsv"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the table: where it comes from, and what is asked."""

    id: str
    source: str
    text: str


def requirements() -> dict[str, Requirement]:
    """Every requirement there is, by its id, in the order of the table."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["id"]: Requirement(row["id"], row["seed"], row["requirement"]) for row in rows}


def shown_by(items: Iterable[pytest.Item]) -> set[str]:
    """The ids that these tests carry."""
    return {id for item in items for mark in item.iter_markers("requirement") for id in mark.args}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that claims to show what nobody asked for; first, to see what is deselected too."""
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
    """Remembers what the tests of one collection show, and why some could not be collected."""

    def __init__(self) -> None:
        self.shown: set[str] = set()
        self.failed: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Called for each file, also for one that cannot be imported."""
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called with the tests that would run, after others were deselected."""
        self.shown = shown_by(session.items)


def collect(*paths: str) -> set[str]:
    """The ids shown by the tests as they stand. If they cannot be collected, say why and exit.

    pytest lists every test before it says why it gives up, so the list is kept from whoever looks for that.
    """
    collector, listed, refused = Collector(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(listed), contextlib.redirect_stderr(refused):
        code = pytest.main(["--collect-only", "-q", "--rootdir", str(CHECKOUT), *paths], plugins=[collector])
    if code != pytest.ExitCode.OK:
        reasons = "\n".join([*collector.failed, refused.getvalue()]).strip()
        sys.exit(f"The tests cannot be collected:\n{reasons or listed.getvalue()}")
    return collector.shown


def counts(shown: set[str]) -> str:
    """How many requirements of each source document are shown, as a table."""
    known = requirements().values()
    sources = sorted({requirement.source for requirement in known})
    width = max(map(len, sources))
    lines = ["requirements shown by tests"]
    for source, wanted in [*((source, {source}) for source in sources), ("together", set(sources))]:
        asked = [requirement.id for requirement in known if requirement.source in wanted]
        lines.append(f"  {source:<{width}}  {len(shown.intersection(asked)):>3} of {len(asked):>3}")
    return "\n".join(lines)


def main() -> None:
    """Print the counts, or with `--missing` every requirement that no test shows yet."""
    parser = argparse.ArgumentParser(description="Count the requirements that tests show.")
    parser.add_argument("--missing", action="store_true", help="list the requirements no test shows yet")
    listing: bool = parser.parse_args().missing
    shown = collect()
    try:
        if listing:
            for requirement in requirements().values():
                if requirement.id not in shown:
                    print(f"{requirement.id}  {requirement.text}")
        print(counts(shown), flush=True)
    except BrokenPipeError:  # whoever reads it, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
