"""A model's right reading of follow-ups that somebody wrote who had seen nothing arrives unchanged."""

from pathlib import Path

import pytest

from memory_blocks.facts.changes import Op
from orchestrator.settings import shipped_config
from tests.support.brains.right_readings import Case, differences, load_cases, right_reading

CASES = load_cases(shipped_config() / "evals" / "follow_ups.right_readings.jsonl")
FIRST_OF_EACH_KIND: dict[str, Case] = {
    case.kind: case for case in reversed(CASES) if not case.message.isdigit()
}
"""Without bare numbers, which may be read without a model."""


@pytest.mark.parametrize("kind", sorted(FIRST_OF_EACH_KIND))
async def test_a_right_reading_arrives_unchanged_and_lasts(tmp_path: Path, kind: str) -> None:
    assert await differences(FIRST_OF_EACH_KIND[kind], tmp_path) == []


def test_right_readings_make_every_kind_of_change() -> None:
    made = {fact.op for case in CASES for fact in right_reading(case).facts}

    assert made == {Op.ADD, Op.REPLACE, Op.RETRACT, Op.UNSURE}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_reading_has_what_a_right_one_has_and_nothing_that_it_lacks(case: Case) -> None:
    enriched = right_reading(case).enriched.lower()

    assert [word for word in case.has if word.lower() not in enriched] == []
    assert [word for word in case.lacks if word.lower() in enriched] == []
