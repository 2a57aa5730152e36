"""How a query is read: its words, its names, its time words, and its spelling."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.recall.query import periods
from orchestrator.recall.query.question import named, read, without_names
from orchestrator.recall.query.repair import needs_repair, widened
from orchestrator.recall.query.words import stem, terms

WEDNESDAY = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("headache", "headaches"), "headach"),
        (("painting", "painted", "paints"), "paint"),
        (("allergies", "allergy"), "allergi"),
        (("hopping", "hopped"), "hop"),
        (("agreed", "agree"), "agre"),
        (("relational", "relate"), "relat"),
        (("sky",), "sky"),
    ],
)
def test_forms_of_a_word_have_the_same_stem(words: tuple[str, ...], same: str) -> None:
    assert {stem(word) for word in words} == {same}


def test_the_words_of_a_text_are_stems_without_stop_words() -> None:
    assert terms("What did the Doctor's notes say about 8/10?") == ["doctor", "note", "sai", "8", "10"]


@given(st.text())
def test_any_text_has_words_that_can_be_stored_and_split(text: str) -> None:
    found = terms(text)

    assert " ".join(found).split() == found


@pytest.mark.parametrize(
    ("query", "several"),
    [
        ("What medicines have I taken?", True),
        ("How many children does Ann have?", True),
        ("Which books did Ben read?", True),
        ("When did my headache start?", False),
        ("What is my blood pressure?", False),
        ("What pet does Ann have?", False),
    ],
)
def test_a_query_says_whether_it_asks_for_several_things(query: str, several: bool) -> None:
    assert read(query).asks_for_several is several


def test_months_and_years_are_found_but_not_the_verbs_may_and_march() -> None:
    question = read("What did I say in May 2023 or march, and may I see August?")

    assert (sorted(question.months), sorted(question.years)) == ([5, 8], [2023])


def test_names_are_found_as_whole_words_and_can_be_taken_out() -> None:
    names = ["Ann Smith", "Anna", "Joe (dad)"]

    assert named("What did Ann's dog eat?", names) == ["Ann Smith"]
    assert without_names("What did Ann's dog eat?", ["Ann Smith"]) == "What did they dog eat?"
    assert named("", names) == []


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("What did I say yesterday?", "2026-11-17 to 2026-11-17"),
        ("what did I tell you last week", "2026-11-09 to 2026-11-15"),
        ("How was I this week?", "2026-11-16 to 2026-11-18"),
        ("last month", "2026-10-01 to 2026-10-31"),
        ("3 days ago", "2026-11-15 to 2026-11-15"),
        ("two weeks ago", "2026-11-01 to 2026-11-07"),
        ("in the last 10 days", "2026-11-08 to 2026-11-18"),
        ("what I said on Tuesday", "2026-11-17 to 2026-11-17"),
        ("last wednesday", "2026-11-11 to 2026-11-11"),
    ],
)
def test_time_words_are_read_as_dates(query: str, dates: str) -> None:
    assert str(periods.read(query, WEDNESDAY)) == dates


@pytest.mark.parametrize("query", ["my headache", "What did I do in August?", "Is it over at last?"])
def test_other_words_are_no_dates(query: str) -> None:
    assert periods.read(query, WEDNESDAY) is None


def test_unknown_words_are_replaced_by_similar_known_ones() -> None:
    question = read("penicilin rash")

    wider = widened(question, ["penicilin"], ["penicillin", "pencil", "rash"])

    assert wider is not None
    assert wider.terms == ("penicillin", "rash")
    assert widened(question, ["penicilin"], ["rash"]) is None


@pytest.mark.parametrize(
    ("unknown", "found", "needed"), [(1, 0, True), (1, 9, False), (2, 9, True), (0, 0, False)]
)
def test_a_query_is_repaired_if_nothing_is_found_or_half_of_it_is_unknown(
    unknown: int, found: int, needed: bool
) -> None:
    assert needs_repair(unknown, terms=4, found=found) is needed
