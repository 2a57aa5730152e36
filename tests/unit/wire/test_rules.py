"""Validation errors are reported in our own words and never with pydantic's text."""

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.errors import INVALID_FIELD, MISSING_FIELD
from orchestrator.wire.messages import Wire
from orchestrator.wire.rules import in_words, refusal

SECRET = "CANARY"


class _Unusual(Wire):
    """A field whose errors we have no text for; pydantic quotes the value in some of them."""

    the_day: date


def the_error(fields: dict[str, Any]) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        _Unusual.model_validate(fields, by_alias=True, by_name=False)
    return caught.value


def test_an_unknown_kind_of_error_is_reported_without_the_value() -> None:
    refused = refusal(the_error({"theDay": SECRET}), within="body.")

    assert refused.problem == INVALID_FIELD
    assert refused.facts == {"field": "body.theDay", "rule": "is not allowed"}
    assert SECRET not in str(refused)


def test_a_missing_field_is_named_as_on_the_wire() -> None:
    refused = refusal(the_error({"the_day": SECRET}))

    assert refused.problem == MISSING_FIELD
    assert refused.facts == {"field": "theDay"}


def test_an_error_can_be_written_as_one_text() -> None:
    assert in_words(the_error({})) == "`theDay`: is missing."
