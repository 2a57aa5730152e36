"""Events that a query names as points in time, as in "before the surgery"."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from orchestrator.recall.query import events, periods
from orchestrator.recall.query.events import DatedText

WEDNESDAY = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)


def statement(text: str, true_when: str = "", said_at: datetime = WEDNESDAY) -> DatedText:
    return DatedText(text, true_when, said_at)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What did I take before the surgery?", "before the surgery"),
        ("how was my knee since my operation on Monday", "since my operation"),
        ("After the knee operation, did I sleep well?", "After the knee operation"),
        ("What did I eat before the weekend?", None),
        ("I had more pain before the surgery", None),
        ("My knee hurts since the operation.", None),
        ("What did I take before the same day?", None),
        ("What did I take before?", None),
    ],
)
def test_a_question_names_an_event_but_a_statement_does_not(query: str, words: str | None) -> None:
    event = events.read(query)

    assert (event.words if event else None) == words


@pytest.mark.parametrize(
    ("memories", "relation", "dates"),
    [
        (
            [statement("I had my surgery yesterday")],
            "before",
            "until 2026-11-16, before the surgery on 2026-11-17",
        ),
        (
            [statement("I had my surgery yesterday")],
            "since",
            "from 2026-11-17, since the surgery on 2026-11-17",
        ),
        (
            [statement("I had surgery", "3 days ago")],
            "before",
            "until 2026-11-14, before the surgery on 2026-11-15",
        ),
        (
            [statement("My surgery was on 3 March 2026")],
            "until",
            "until 2026-03-03, until the surgery on 2026-03-03",
        ),
        (
            [statement("The surgery was on October 2nd")],
            "after",
            "from 2026-10-02, after the surgery on 2026-10-02",
        ),
        (
            [statement("My surgery was on 31 February")],
            "before",
            "until 2026-11-17, before the surgery on 2026-11-18",
        ),
        (
            [statement("The surgery went well"), statement("I had my surgery yesterday")],
            "before",
            "until 2026-11-16, before the surgery on 2026-11-17",
        ),
        ([statement("Did I tell you about the surgery?")], "before", None),
        ([], "before", None),
    ],
)
def test_the_date_of_an_event_is_that_of_the_best_memory_that_says_one(
    memories: list[DatedText], relation: str, dates: str | None
) -> None:
    event = events.read(f"What did I take {relation} the surgery?")
    assert event is not None

    found = events.period(event, memories)

    assert (str(found) if found else None) == dates


def test_days_are_those_of_the_time_zone() -> None:
    late = datetime(2026, 11, 18, 20, 0, tzinfo=UTC)  # already the 19th in Tokyo

    yesterday = periods.read("yesterday", late, ZoneInfo("Asia/Tokyo"))

    assert yesterday is not None
    assert str(yesterday) == "2026-11-18 to 2026-11-18"
    assert yesterday.covers(datetime(2026, 11, 17, 15, 0, tzinfo=UTC))
    assert not yesterday.covers(datetime(2026, 11, 18, 15, 0, tzinfo=UTC))
