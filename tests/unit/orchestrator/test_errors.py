"""Any error can be converted to a row of the table, and the conversion never fails."""

from types import MappingProxyType
from typing import Any

import pytest

from memory_blocks.errors import StaleRevision
from orchestrator.errors import BUSY, INTERNAL, STALE_REVISION, AnamnesisError, as_ours


class Foreign(Exception):
    """An error of another package, with a name and facts."""

    def __init__(self, name: Any, facts: Any) -> None:
        super().__init__("CANARY")
        self.name, self.facts = name, facts


def test_our_own_error_is_returned_unchanged() -> None:
    error = AnamnesisError(BUSY)

    assert as_ours(error) is error


def test_an_error_of_the_blocks_becomes_the_row_of_its_name_with_its_facts() -> None:
    ours = as_ours(StaleRevision("medical_records", stored=3, yours=2))

    assert ours.problem is STALE_REVISION
    assert ours.facts == {"label": "medical_records", "stored": 3, "yours": 2}


NOT_OURS = {
    "no name at all": ValueError("CANARY"),
    "an attribute that is called like a row": AttributeError("CANARY", name="refused", obj=None),
    "a variable that is called like a row": NameError("CANARY", name="busy_retry"),
    "a module that is called like a row": ImportError("CANARY", name="internal"),
    "a name that no row has": Foreign("CANARY", {}),
    "a name that is no text": Foreign([], {}),
    "facts that are no map": Foreign("stale_revision", ["label"]),
    "a fact that is missing": Foreign("stale_revision", {"label": "CANARY"}),
    "a fact whose name is no text": Foreign("busy_retry", {1: "CANARY"}),
    "a fact that takes the row's own place": Foreign("busy_retry", MappingProxyType({"problem": "CANARY"})),
}


@pytest.mark.parametrize("error", NOT_OURS.values(), ids=NOT_OURS)
def test_an_error_that_fits_no_row_is_internal_and_not_quoted(error: Exception) -> None:
    ours = as_ours(error)

    assert ours.problem is INTERNAL
    assert "CANARY" not in str(ours)
    assert ours.__context__ is None
