"""JSON objects in replies of models, and thoughts that a server sends as a part of the answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.servers.http import encoded
from agents.models.servers.json_text import find_object
from agents.models.servers.thinking import ThoughtFilter, without_thoughts

OBJECT = {"intent": "SLEEP", "words": 'a "quoted" } brace {', "list": [1, {"a": None}]}
TEXT = json.dumps(OBJECT)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Sure! Here is the object:\n```\n{TEXT}\n```\nLet me know.",
        f"The JSON object is {TEXT}. I hope that helps {{or not}}.",
        f'<think>Maybe {{"intent": "FITNESS"}}? No.</think>\n\n{TEXT}',
        f"It is about nights.</think>{TEXT}",
        f"{{not JSON}} but {TEXT}",
    ],
    ids=["bare", "fenced", "in prose and a fence", "in a sentence", "after thoughts", "unopened", "second"],
)
def test_the_object_of_a_reply_is_found(reply: str) -> None:
    assert json.loads(find_object(reply)) == OBJECT


def test_a_comma_too_many_is_left_out() -> None:
    assert json.loads(find_object('{"a": [1, 2,], "b": {"c": 3,},}')) == {"a": [1, 2], "b": {"c": 3}}


@pytest.mark.parametrize("reply", ["", "no object", "[1, 2]", '{"a": ', "{'a': 1}", "{" * 100_000])
def test_a_reply_without_an_object_stays_as_it_is(reply: str) -> None:
    assert find_object(reply) == reply


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.integers(), st.lists)), st.text())
def test_an_object_is_found_after_any_text_without_braces(found: dict[str, object], before: str) -> None:
    before = before.replace("{", "").replace("<", "")

    assert json.loads(find_object(f"{before} {json.dumps(found)}")) == found


def passed(*fragments: str) -> tuple[str, str]:
    """The answer and the thoughts in these fragments of a reply."""
    thoughts = ThoughtFilter()
    answer = "".join(map(thoughts.add, fragments)) + thoughts.rest()
    return answer, thoughts.thoughts


@pytest.mark.parametrize(
    ("reply", "answer", "thoughts"),
    [
        ("Rest a little.", "Rest a little.", ""),
        ("<think>It is a cold.</think>\n\nRest a little.", "Rest a little.", "It is a cold."),
        ("\n<thinking>Hm.</thinking>Rest <think> now.", "Rest <think> now.", "Hm."),
        ("<b>Rest</b>", "<b>Rest</b>", ""),
        ("<think>It never ends", "", "It never ends"),
        ("<thin", "<thin", ""),
    ],
)
def test_thoughts_are_separated_however_the_reply_is_cut(reply: str, answer: str, thoughts: str) -> None:
    for size in (1, 2, 3, 7, len(reply)):
        fragments = [reply[at : at + size] for at in range(0, len(reply), size)]
        assert passed(*fragments) == (answer, thoughts)
    assert without_thoughts(reply).strip() == answer


def test_a_request_with_half_a_surrogate_pair_can_be_sent() -> None:
    assert encoded({"content": "wörter 😀 \ud83d"}) == '{"content":"wörter 😀 ?"}'
