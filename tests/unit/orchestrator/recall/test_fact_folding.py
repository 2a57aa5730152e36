"""Lasting facts, folded from changes: new, repeated, corrected, contradicted, ended and withdrawn."""

from datetime import timedelta
from typing import Any

import pytest

from memory_blocks.facts.changes import Decider, FactChange, Op
from orchestrator.remember.fact_folding import Entry, Said, fold
from tests.support.builders import START


def said(number: int, value: str = "penicillin", conversation: str = "c1", **fields: Any) -> Said:
    given: dict[str, Any] = {
        "id": f"fact{number}",
        "op": Op.ADD,
        "kind": "allergies",
        "subject": "person",
        "value": value,
        "stable": True,
        "said_at": START + timedelta(days=number),
        "turn": number,
        "message_id": f"msg{number}",
        "decided_by": Decider.LOCAL,
        "confidence": 0.8,
    }
    return Said(conversation, FactChange(**given | fields))


def values(entries: list[Entry]) -> list[tuple[str, int]]:
    return [(each.value, len(each.said)) for each in entries]


def test_a_repetition_makes_an_entry_surer_and_no_second_one() -> None:
    (once,) = fold([said(1)])
    (twice,) = fold([said(1), said(2, "Penicillin", "c2")])

    assert values([twice]) == [("penicillin", 2)]
    assert twice.confidence > once.confidence


def test_only_lasting_and_sure_statements_become_entries() -> None:
    passing = said(1, "37.5", kind="temperature", stable=False)
    unsure = said(2, confidence=0.4)
    doubted = said(3, op=Op.UNSURE)
    unknown = said(4, "not sure")

    assert fold([passing, unsure, doubted, unknown]) == []


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("asthma", {"subject": "she"}),
        ("is", {"words": "doctor said is allergy"}),
        ("16 now", {"kind": "medications"}),
        ("everything", {"subject": "commis", "words": "he's allergic to everything"}),
        ("gliclazide", {"kind": "medications", "words": "they wanted to put me on gliclazide"}),
        ("heart condition", {"kind": "conditions", "words": "everyone thinks I have a heart condition"}),
        ("eczema", {"kind": "conditions", "words": "toddler's eczema has flared up"}),
        ("asthma", {"kind": "conditions", "words": "I had asthma as a child"}),
    ],
)
def test_what_is_not_clear_becomes_no_entry(value: str, fields: dict[str, Any]) -> None:
    assert fold([said(1, value, **fields)]) == []


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("26 weeks pregnant", {"kind": "pregnancy", "words": "I'm 26 weeks pregnant"}),
        ("asthma", {"kind": "conditions", "words": "My daughter has asthma", "subject": "daughter"}),
        ("crohn's", {"kind": "conditions", "words": "I've got Crohn's"}),
        ("latex", {"words": "latex"}),
        ("everything", {"decided_by": Decider.OPERATOR}),
    ],
)
def test_what_is_clear_becomes_an_entry(value: str, fields: dict[str, Any]) -> None:
    assert values(fold([said(1, value, **fields)])) == [(value, 1)]


def test_a_correction_keeps_the_old_value_as_history() -> None:
    (entry,) = fold([said(1, "latex"), said(2, "penicillin", op=Op.REPLACE, target="fact1")])

    assert entry.value == "penicillin"
    assert entry.history == [("latex", START + timedelta(days=1))]
    assert entry.conflict is None


def test_two_values_of_a_kind_with_one_value_are_a_conflict_and_both_stay() -> None:
    entries = fold([said(1, "A+", kind="blood_type"), said(2, "0-", "c2", kind="blood_type")])

    assert [each.value for each in entries] == ["A+", "0-"]
    assert entries[0].conflict == entries[1].conflict == "fact1"


def age(number: int, value: str, days: int, **fields: Any) -> Said:
    return said(number, value, f"c{number}", kind="age", said_at=START + timedelta(days=days), **fields)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("age", "40", "45"),
        ("medications", "ramipril 5 mg", "ramipril 10 mg"),
        ("allergies", "penicillin", "none reported"),
        ("diet", "vegetarian", "vegan"),
    ],
)
def test_a_bare_contradiction_keeps_both_values_and_the_later_one_is_current(
    kind: str, one: str, other: str
) -> None:
    old, new = fold([said(1, one, kind=kind), said(2, other, "c2", kind=kind)])

    assert (old.value, new.value) == (one, other)
    assert old.conflict == new.conflict == "fact1"
    assert (old.is_current, new.is_current) == (False, True)


def test_a_correction_decides_between_values_that_contradict_each_other() -> None:
    old, new = fold([age(1, "40", 1), age(2, "45", 2), age(3, "46", 3, op=Op.REPLACE, target="fact2")])

    assert (new.value, new.is_current, new.conflict) == ("46", True, None)
    assert (old.is_current, old.conflict) == (False, None)


def test_a_value_of_a_conflict_holds_alone_if_the_other_ends() -> None:
    old, new = fold([age(1, "40", 1), age(2, "45", 2), age(3, "45", 3, op=Op.RETRACT, target="fact2")])

    assert (old.is_current, old.conflict) == (True, None)
    assert not new.is_current


@pytest.mark.parametrize(
    ("kind", "one", "other", "days"),
    [
        ("age", "40", "41", 200),
        ("age", "40", "42", 740),
        ("pregnancy", "12 weeks pregnant", "20 weeks pregnant", 56),
    ],
)
def test_what_only_time_has_changed_is_no_contradiction(kind: str, one: str, other: str, days: int) -> None:
    later = said(2, other, "c2", kind=kind, said_at=START + timedelta(days=days))
    (entry,) = fold([said(1, one, kind=kind, said_at=START), later])

    assert (entry.value, entry.conflict) == (other, None)
    assert [value for value, _ in entry.history] == [one]


def test_the_sentence_says_when_it_was_true() -> None:
    (entry,) = fold([said(1, "asthma", kind="conditions", true_when="since childhood")])

    assert entry.sentence == "The person has asthma (since childhood)."
    assert entry.value_in("The person has eczema (since childhood).") == "eczema"


def test_two_values_of_a_kind_with_several_are_no_conflict() -> None:
    entries = fold([said(1, "penicillin"), said(2, "latex")])

    assert [each.conflict for each in entries] == [None, None]


def test_what_a_relative_has_is_never_the_persons() -> None:
    mine, hers = fold([said(1), said(2, subject="daughter")])

    assert mine.sentence == "The person is allergic to penicillin."
    assert hers.sentence == "The person's daughter is allergic to penicillin."
    assert len(mine.said) == len(hers.said) == 1


def test_what_ended_is_kept_with_its_end() -> None:
    (entry,) = fold([said(1, "metformin", kind="medications"), said(2, op=Op.RETRACT, target="fact1")])

    assert entry.ended_at == START + timedelta(days=2)
    assert entry.sentence == "The person takes metformin."


def test_a_withdrawn_change_never_happened_and_its_withdrawal_can_be_withdrawn() -> None:
    first, undone = said(1), said(2, op=Op.WITHDRAW, target="fact1")
    redone = said(3, op=Op.WITHDRAW, target="fact2")

    assert fold([first, undone]) == []
    assert values(fold([first, undone, redone])) == [("penicillin", 1)]


def test_a_doubt_ends_an_entry_that_never_had_another_value() -> None:
    assert fold([said(1), said(2, op=Op.UNSURE, target="fact1")]) == []
