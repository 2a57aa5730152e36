"""An edit of an earlier text is merged into the current one, unless both changed the same value."""

import json

import pytest

from memory_blocks import summary_text
from memory_blocks.merging import merge
from memory_blocks.models import Label
from tests.unit.memory_blocks.ledger.test_ledger import LedgerWorld

METADATA = Label.MEMORY_METADATA


def turns(*said: str) -> dict[str, list[dict[str, object]]]:
    """A history with these turns."""
    return {"turns": [{"turn_id": number, "said": each} for number, each in enumerate(said, 1)]}


TURNS_2_AND_3 = {"turns": turns("a", "B", "c")["turns"][1:]}
"""The first turn has left the history, the second was edited, the third is new."""


@pytest.mark.parametrize(
    ("base", "edited", "standing", "merged"),
    [
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "c": 2}}),
        ({"a": 1}, {"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"a": 1, "b": 1}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2}),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 2}, {"a": 3}, None),
        ({"a": 1}, {}, {"a": 3}, None),
        ({"facts": [1]}, {"facts": [2]}, {"facts": [1, 3]}, {"facts": [3, 2]}),
        ({"facts": [1, 2]}, {"facts": [1]}, {"facts": [1, 2, 3]}, {"facts": [1, 3]}),
        ({"facts": [1, 2]}, {"facts": [1, 4]}, {"facts": [1, 3]}, None),
        (turns("a"), turns("A"), turns("a", "b"), turns("A", "b")),
        (turns("a", "b"), turns("a", "B"), turns("a", "c"), None),
        (turns("a", "b"), turns("A", "b"), {"turns": turns("a", "b")["turns"][1:]}, None),
        (turns("a", "b"), turns("a", "B"), {"turns": turns("a", "b", "c")["turns"][1:]}, TURNS_2_AND_3),
    ],
)
def test_changes_of_one_side_are_merged_and_changes_of_both_are_refused(
    base: object, edited: object, standing: object, merged: object
) -> None:
    text = merge(METADATA, json.dumps(base), json.dumps(edited), json.dumps(standing))

    assert (text and json.loads(text)) == merged


def test_notes_of_two_people_are_both_kept() -> None:
    base = LedgerWorld().take_turn().blocks.context_summary

    merged = merge(Label.CONTEXT_SUMMARY, base, f"{base}\nIs in a hurry.", f"{base}\nPrefers tea.")

    assert merged is not None
    assert summary_text.parse(merged).notes == ("Prefers tea.", "Is in a hurry.")


def test_nothing_is_merged_into_an_empty_summary() -> None:
    assert merge(Label.CONTEXT_SUMMARY, "", "some", "other") is None
