"""The facts that follow from changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory_blocks.facts.changes import Decider, FactChange, Op, after_others, current_facts

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def change(number: int, op: Op, value: str = "8/10", **fields: Any) -> FactChange:
    default: dict[str, Any] = {
        "id": f"c{number}",
        "op": op,
        "kind": "severity",
        "subject": "person",
        "value": value,
        "said_at": BEGIN + timedelta(minutes=number),
        "turn": number,
        "decided_by": Decider.MODEL,
    }
    return FactChange(**default | fields)


def values(*changes: FactChange) -> list[str]:
    return [fact.value for fact in current_facts(changes)]


def test_two_complaints_have_a_severity_each() -> None:
    first, second = change(1, Op.ADD, about="headache"), change(2, Op.ADD, "3/10", about="knee")

    assert [(fact.about, fact.value) for fact in current_facts([first, second])] == [
        ("headache", "8/10"),
        ("knee", "3/10"),
    ]


def test_a_replacement_keeps_the_position_and_names_what_it_replaced() -> None:
    facts = current_facts(
        [change(1, Op.ADD), change(2, Op.ADD, "knee"), change(3, Op.REPLACE, "6/10", target="c1")]
    )

    assert [(fact.id, fact.value, fact.replaced) for fact in facts] == [
        ("c3", "6/10", "c1"),
        ("c2", "knee", None),
    ]


def test_a_repetition_is_no_second_fact() -> None:
    (fact,) = current_facts([change(1, Op.ADD), change(2, Op.ADD, target="c1")])

    assert (fact.id, fact.times_said, fact.last_said_at) == ("c1", 2, BEGIN + timedelta(minutes=2))


def test_a_retracted_fact_does_not_hold() -> None:
    assert values(change(1, Op.ADD), change(2, Op.RETRACT, target="c1")) == []


def test_a_doubt_marks_the_fact_and_a_repetition_clears_it() -> None:
    doubted = [change(1, Op.ADD), change(2, Op.UNSURE, target="c1", confidence=0.4)]

    assert [fact.sure for fact in current_facts(doubted)] == [False]
    assert [fact.sure for fact in current_facts([*doubted, change(3, Op.ADD, target="c1")])] == [True]


def test_a_withdrawn_change_was_never_made_and_can_come_back() -> None:
    changes = [
        change(1, Op.ADD),
        change(2, Op.REPLACE, "6/10", target="c1"),
        change(3, Op.WITHDRAW, target="c2"),
    ]

    assert values(*changes) == ["8/10"]
    assert values(*changes, change(4, Op.WITHDRAW, target="c3")) == ["6/10"]


def test_a_replacement_of_what_no_longer_holds_is_still_a_fact() -> None:
    changes = [
        change(1, Op.ADD),
        change(2, Op.RETRACT, target="c1"),
        change(3, Op.REPLACE, "5/10", target="c1"),
    ]

    assert values(*changes) == ["5/10"]


def test_of_two_replacements_of_one_fact_the_later_one_holds() -> None:
    by_both = [
        change(1, Op.ADD),
        change(2, Op.REPLACE, "6/10", target="c1", decided_by=Decider.OPERATOR),
        change(3, Op.REPLACE, "7/10", target="c1"),
    ]

    assert values(*by_both) == ["7/10"]
    assert values(*by_both, change(4, Op.RETRACT, target="c2")) == []
    assert values(*by_both, change(4, Op.WITHDRAW, target="c3")) == ["6/10"]


def test_a_doubt_about_a_fact_that_somebody_replaced_meanwhile_is_about_the_new_value() -> None:
    changes = [
        change(1, Op.ADD),
        change(2, Op.REPLACE, "6/10", target="c1", decided_by=Decider.OPERATOR),
        change(3, Op.UNSURE, target="c1"),
    ]

    assert [(fact.value, fact.sure) for fact in current_facts(changes)] == [("6/10", False)]


def test_an_addition_replaces_what_somebody_added_while_the_message_was_read() -> None:
    knee = change(1, Op.ADD, about="knee")
    theirs = change(2, Op.ADD, "6/10", about="Headache", decided_by=Decider.OPERATOR)
    allergy = change(3, Op.ADD, "nuts", kind="allergies", decided_by=Decider.OPERATOR)
    stored = [knee, theirs, allergy]
    made = [
        change(4, Op.ADD, "7/10", about="headache"),
        change(5, Op.ADD, "eggs", kind="allergies"),
        change(6, Op.ADD, "5/10", about="knee"),
    ]

    changes = after_others(made, {"c1"}, current_facts(stored))

    assert [(each.op, each.target) for each in changes] == [
        (Op.REPLACE, "c2"),
        (Op.ADD, None),  # there can be several allergies
        (Op.ADD, None),  # the reading knew this fact and chose to add another one
    ]
    assert values(*stored, *changes) == ["8/10", "7/10", "nuts", "eggs", "5/10"]


@pytest.mark.parametrize("op", [Op.REPLACE, Op.RETRACT, Op.WITHDRAW])
def test_a_change_of_something_needs_its_target(op: Op) -> None:
    with pytest.raises(ValidationError):
        change(1, op)


@st.composite
def histories(draw: st.DrawFn) -> list[FactChange]:
    changes: list[FactChange] = []
    for number in range(1, draw(st.integers(1, 12))):
        op = draw(st.sampled_from(Op))
        target = draw(st.sampled_from([each.id for each in changes])) if changes else None
        if target is None:
            op = Op.ADD
        elif op in (Op.ADD, Op.UNSURE) and draw(st.booleans()):
            target = None
        changes.append(change(number, op, f"v{number}, and so on", target=target))
    return changes


@given(histories())
def test_facts_come_only_from_changes_that_state_a_value(changes: list[FactChange]) -> None:
    by_id = {each.id: each for each in changes}

    facts = current_facts(changes)

    assert len({fact.id for fact in facts}) == len(facts)
    replaced = [fact.replaced for fact in facts if by_id[fact.id].op is Op.REPLACE]
    assert len(set(replaced)) == len(replaced)  # of two replacements of one fact, only the later one holds
    for fact in facts:
        origin = by_id[fact.id]
        assert origin.op in (Op.ADD, Op.REPLACE, Op.UNSURE)
        assert (fact.value, fact.subject, fact.words) == (origin.value, origin.subject, origin.words)


@given(histories(), histories())
def test_what_is_withdrawn_leaves_no_mark(kept: list[FactChange], undone: list[FactChange]) -> None:
    moved = [
        each.model_copy(update={"id": f"u{each.id}", "target": each.target and f"u{each.target}"})
        for each in undone
    ]
    withdrawals = [change(100 + at, Op.WITHDRAW, target=each.id) for at, each in enumerate(reversed(moved))]

    assert current_facts([*kept, *moved, *withdrawals]) == current_facts(kept)
