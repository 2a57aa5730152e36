"""The facts in a block: which are shown, and what somebody who edits them changes."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_blocks import edits
from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts, withdrawals
from memory_blocks.facts.view import (
    ROOM,
    as_entry,
    changes_by_hand,
    changes_in,
    known_values,
    points,
    subject_now,
    values_in,
    view,
)
from memory_blocks.models import ActiveSession, Fact, changed
from tests.support.builders import START, a_change, a_conversation, a_fact

EMPTY = edits.empty(a_conversation()).active_session


def a_session(*facts: Fact, version: str | None = "1.2") -> ActiveSession:
    return changed(EMPTY, facts=facts or None, schema_version=version)


def an_entry(kind: str, value: str, **fields: Any) -> Fact:
    return Fact(kind=kind, value=value, turn=1, **fields)


# --- what is shown ------------------------------------------------------------------------------------------


def test_the_current_concern_comes_first_and_what_belongs_to_it_next() -> None:
    facts = [
        a_fact("concern", "cough", 1),
        a_fact("severity", "3/10", 1, about="cough"),
        a_fact("sleep_hours", "five", 2),
        a_fact("allergies", "penicillin", 3, stable=True),
        a_fact("concern", "headache", 4),
        a_fact("severity", "8/10", 4, about="headache"),
    ]

    shown = [entry.value for entry in view(facts)]

    assert shown == ["headache", "8/10", "penicillin", "five", "cough", "3/10"]


def test_what_does_not_differ_from_the_usual_is_left_out() -> None:
    assert view([a_fact("age", "34")])[0].text == '{"kind":"age","value":"34","turn":1}'


def test_whose_and_how_sure_are_shown() -> None:
    change = a_change(op=Op.UNSURE, subject="husband", about="fever", true_when="last night", stable=True)

    (entry,) = view(current_facts([change]))

    assert (entry.subject, entry.about, entry.true_when) == ("husband", "fever", "last night")
    assert (entry.stable, entry.sure) == (True, False)


def test_two_medicines_are_two_facts_and_one_value() -> None:
    facts = [a_fact("medications", "ibuprofen"), a_fact("medications", "metformin")]

    assert [entry.value for entry in view(facts)] == ["ibuprofen", "metformin"]
    assert known_values(facts) == {"medications": "ibuprofen, metformin"}


def test_what_has_no_room_is_what_matters_least() -> None:
    facts = [a_fact("noted", f"{number} {'x' * 100}", number) for number in range(1, 30)]
    concern = a_fact("concern", "headache", 1)

    shown = view([*facts, concern])

    assert shown[0].value == "headache"
    assert len(shown) < len(facts)
    assert [entry.turn for entry in shown[1:]] == list(range(29, 30 - len(shown), -1))
    assert sum(len(entry.text) + 1 for entry in shown) <= ROOM


def test_a_conversation_is_about_whoever_the_latest_concern_belongs_to() -> None:
    own = [a_fact("concern", "headache", 1), a_fact("age", "34", 1)]
    daughters = [
        a_fact("concern", "fever", 2, subject="daughter"),
        a_fact("age", "4", 2, subject="daughter"),
    ]

    assert subject_now([*own, *daughters]) == "daughter"
    assert known_values([*own, *daughters]) == {"about_whom": "daughter", "concern": "fever", "age": "4"}
    assert known_values(own) == {"concern": "headache", "age": "34"}


def test_what_belongs_to_another_concern_is_not_known_of_this_one() -> None:
    facts = [
        a_fact("concern", "headache", 1),
        a_fact("severity", "8/10", 1, about="headache"),
        a_fact("concern", "knee pain", 2),
        a_fact("onset", "Monday", 2, about="knee pain"),
    ]

    assert known_values(facts) == {"concern": "knee pain", "onset": "Monday"}


def test_the_key_points_name_what_is_known_of_others() -> None:
    facts = [a_fact("concern", "headache"), a_fact("temperature", "39 °C", subject="husband")]

    assert points(facts) == {"concern": "headache", "husband_temperature": "39 °C"}


def test_the_first_entry_of_a_kind_is_its_current_value() -> None:
    assert values_in([an_entry("concern", "headache"), an_entry("concern", "cough")]) == {
        "concern": "headache"
    }


# --- facts of older blocks ----------------------------------------------------------------------------------


def test_the_facts_of_an_older_block_become_changes() -> None:
    older = a_session(
        an_entry("concern", "fever"),
        an_entry("about_whom", "daughter"),
        an_entry("medications", "ibuprofen, paracetamol"),
        version="1.1",
    )

    facts = current_facts(changes_in(older))

    assert [(fact.subject, fact.kind, fact.value) for fact in facts] == [
        ("daughter", "concern", "fever"),
        ("daughter", "about_whom", "daughter"),
        ("daughter", "medications", "ibuprofen"),
        ("daughter", "medications", "paracetamol"),
    ]
    assert changes_in(older) == changes_in(older)


# --- edits by hand ------------------------------------------------------------------------------------------


def by_hand(session: ActiveSession, facts: list[CurrentFact]) -> tuple[FactChange, ...]:
    return changes_by_hand(session, facts, START + timedelta(days=1), Decider.OPERATOR, made_before=7)


def test_an_unchanged_view_changes_nothing() -> None:
    facts = [a_fact("concern", "headache"), a_fact("medications", "ibuprofen")]

    assert by_hand(a_session(*view(facts)), facts) == ()


def test_another_value_replaces_a_missing_entry_ends_and_a_new_one_adds_a_fact() -> None:
    concern, severity, age = a_fact("concern", "headache"), a_fact("severity", "8/10"), a_fact("age", "34")

    changes = by_hand(
        a_session(as_entry(concern), an_entry("severity", "6/10"), an_entry("allergies", "nuts")),
        [concern, severity, age],
    )

    assert [(change.op, change.target, change.value) for change in changes] == [
        (Op.REPLACE, severity.id, "6/10"),
        (Op.ADD, None, "nuts"),
        (Op.RETRACT, age.id, "34"),
    ]
    assert {change.decided_by for change in changes} == {Decider.OPERATOR}
    assert len({change.id for change in changes}) == 3


def test_a_fact_that_somebody_adds_about_the_user_is_about_the_person() -> None:
    changes = by_hand(
        a_session(*(an_entry("allergies", "nuts", subject=name) for name in ("user", "Me"))), []
    )

    assert [change.subject for change in changes] == ["person", "person"]


def test_what_the_view_had_no_room_for_is_not_retracted() -> None:
    facts = [a_fact("noted", f"{number} {'x' * 100}", number) for number in range(1, 30)]

    assert by_hand(a_session(*view(facts)), facts) == ()


def test_an_edit_of_one_fact_does_not_divide_others_that_have_a_comma() -> None:
    noted = a_fact("noted", "it started on Monday, after lunch, at work")
    medicine = a_fact("medications", "co-codamol, 30/500")

    changes = by_hand(
        a_session(as_entry(noted), as_entry(medicine), an_entry("allergies", "nuts")), [noted, medicine]
    )

    assert [(change.op, change.value) for change in changes] == [(Op.ADD, "nuts")]


entries = st.builds(
    Fact,
    kind=st.sampled_from(["concern", "severity", "medications", "noted", "age"]),
    value=st.sampled_from(["headache", "8/10", "6/10", "co-codamol, 30/500", "on Monday, after lunch", "34"]),
    turn=st.integers(1, 3),
    subject=st.sampled_from([None, "daughter"]),
    about=st.sampled_from([None, "headache"]),
)


@given(st.lists(entries, max_size=6), st.lists(entries, max_size=6))
def test_an_edited_view_is_what_follows_from_the_changes_of_the_edit(
    before: list[Fact], after: list[Fact]
) -> None:
    known = changes_in(a_session(*before))

    made = by_hand(a_session(*after), list(current_facts(known)))

    shown = view(current_facts((*known, *made)))
    assert sorted(entry.text for entry in shown) == sorted(entry.text for entry in after)


# --- answers to the same message ----------------------------------------------------------------------------


def test_only_what_the_same_message_changed_is_withdrawn_and_only_once() -> None:
    first = [a_change("f1", message_id="m1"), a_change("f2", kind="age", value="34", message_id="m2")]

    def again(changes: list[FactChange], answer_id: str) -> tuple[FactChange, ...]:
        return withdrawals(changes, {"m2"}, turn=2, message_id="m2", answer_id=answer_id, said_at=START)

    once = again(first, "answer_2")
    twice = again([*first, *once], "answer_3")

    assert [change.target for change in once] == ["f2"]
    assert twice == ()
    assert [fact.value for fact in current_facts([*first, *once])] == ["8/10"]


@pytest.mark.parametrize("value", [" ", "\n\t", "x\ny"])
def test_a_value_is_one_line_in_the_block(value: str) -> None:
    assert "\n" not in view([a_fact("noted", value)])[0].value
