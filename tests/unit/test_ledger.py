"""Requirements are counted by the tests that show them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pytest

from tools import ledger


@dataclass
class Collected:
    """As much of a collected test as the ledger looks at."""

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
        ledger.pytest_collection_modifyitems([a_test("000-001", "000-999")])


def test_a_test_that_shows_known_requirements_is_taken_and_counted() -> None:
    item = a_test("000-001", "004-054")

    ledger.pytest_collection_modifyitems([item])

    assert ledger.shown_by([item]) == {"000-001", "004-054"}


def test_the_counts_are_given_per_source_document_and_together() -> None:
    first, second = list(ledger.requirements())[:2]

    lines = ledger.counts({first, second}).splitlines()

    assert lines[1].endswith("2 of  49")
    assert lines[-1].split() == ["together", "2", "of", str(len(ledger.requirements()))]
