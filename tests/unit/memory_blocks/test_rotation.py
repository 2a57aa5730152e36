"""What rotates out of the history, when, and that nothing is lost by it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_blocks.models import ConversationHistory, Level, Turn
from memory_blocks.rotation import rotate, shortened
from tests.support.builders import a_history, a_turn


def a_history_of(size: int, turns: int) -> ConversationHistory:
    """A history of exactly `size` characters, evenly spread over its turns."""
    plain = a_history([a_turn(number, message="", answer="") for number in range(1, turns + 1)])
    missing = size - len(plain.text)
    each = missing // turns
    messages = ["x" * each] * (turns - 1) + ["x" * (missing - each * (turns - 1))]
    return a_history(
        [a_turn(number, message=message, answer="") for number, message in enumerate(messages, start=1)]
    )


@pytest.mark.requirement("001-031", "001-095", "001-096", "001-097", "001-098")
@pytest.mark.parametrize(
    ("size", "turns", "kept", "level"),
    [
        (22_399, 20, 20, Level.NORMAL),
        (22_400, 20, 20, Level.WARNING),
        (27_199, 20, 20, Level.WARNING),
        (27_200, 20, 5, Level.ARCHIVE),
        (30_399, 20, 5, Level.ARCHIVE),
        (30_400, 20, 3, Level.EMERGENCY),
        (15_000, 20, 20, Level.NORMAL),
        (15_000, 21, 15, Level.NORMAL),
        (15_000, 25, 15, Level.NORMAL),
        (22_400, 25, 15, Level.WARNING),
        (30_399, 4, 3, Level.ARCHIVE),
        (30_400, 3, 3, Level.EMERGENCY),
        (27_200, 21, 5, Level.ARCHIVE),
        (27_999, 4, 4, Level.ARCHIVE),
        (28_001, 4, 3, Level.ARCHIVE),
        (28_001, 5, 4, Level.ARCHIVE),
    ],
)
def test_what_stays_depends_on_size_and_number(size: int, turns: int, kept: int, level: Level) -> None:
    history = a_history_of(size, turns)

    rotation = rotate(history)

    assert len(history.text) == size
    assert (len(rotation.kept.turns), rotation.level) == (kept, level)
    whole = {turn.turn_id: turn for turn in rotation.overflow}
    stays = [whole.get(turn.turn_id, turn) for turn in rotation.kept.turns]
    assert (*rotation.rotated_out, *stays) == history.turns


@pytest.mark.requirement("001-110")
def test_a_twenty_sixth_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 25 turns"):
        a_history([a_turn(number) for number in range(1, 27)])


def test_three_turns_that_are_too_long_are_shortened_and_kept_whole() -> None:
    history = a_history([a_turn(1), a_turn(2, message="y" * 60_000), a_turn(3, answer="z" * 40_000)])

    rotation = rotate(history)

    assert rotation.rotated_out == ()
    assert rotation.overflow == history.turns[1:]
    assert len(rotation.kept.text) <= 28_000
    assert rotation.kept.turns[0] == history.turns[0]
    assert "characters kept in the archive] … y" in rotation.kept.turns[1].user_message.content


def test_a_shortened_turn_is_shortened_again_from_its_whole_text() -> None:
    whole = a_turn(1, message="y" * 60_000)
    first = rotate(a_history([whole])).kept.turns[0]

    rotation = rotate(a_history([first, a_turn(2, message="z" * 60_000)]), whole={1: whole})

    assert rotation.kept.turns[0].user_message.content.count("kept in the archive") == 1
    assert rotation.overflow[0] == whole


def test_a_shortened_turn_leaves_the_block_whole() -> None:
    whole = a_turn(1, message="y" * 60_000)
    first = rotate(a_history([whole])).kept.turns[0]

    rotation = rotate(a_history([first, *(a_turn(number) for number in (2, 3, 4))]), whole={1: whole})

    assert rotation.rotated_out == (whole,)


@given(st.text(max_size=500), st.integers(0, 500))
def test_a_shortened_text_says_how_much_is_missing(text: str, keep: int) -> None:
    short = shortened(text, keep)

    if len(text) <= keep:
        assert short == text
    else:
        head, tail = short.split(f" … [{len(text) - keep} characters kept in the archive] … ", 1)
        assert len(head) + len(tail) == keep
        assert text.startswith(head)
        assert text.endswith(tail)


lengths = st.one_of(st.integers(0, 200), st.integers(0, 3_000), st.just(30_000))


@st.composite
def histories(draw: st.DrawFn) -> ConversationHistory:
    first = draw(st.integers(1, 50))
    letters = st.sampled_from(["a", "é", "🤢", '"', "\\", "\n", "\x01"])
    turns: list[Turn] = [
        a_turn(
            first + offset,
            message=draw(letters) * draw(lengths),
            answer=draw(letters) * draw(lengths),
        )
        for offset in range(draw(st.integers(1, 21)))
    ]
    return a_history(turns)


@pytest.mark.requirement("001-007", "001-032", "001-033", "001-034")
@settings(max_examples=100, deadline=None)
@given(histories())
def test_rotation_loses_nothing_keeps_the_last_three_and_always_fits(history: ConversationHistory) -> None:
    rotation = rotate(history)

    kept = {turn.turn_id: turn for turn in rotation.kept.turns} | {
        turn.turn_id: turn for turn in rotation.overflow
    }
    assert (*rotation.rotated_out, *(kept[number] for number in sorted(kept))) == history.turns
    assert len(rotation.kept.turns) >= min(3, len(history.turns))
    assert len(rotation.kept.turns) <= 20
    assert len(rotation.kept.text) <= 28_000
