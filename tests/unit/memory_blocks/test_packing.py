"""Revisions are kept small, and none is lost by it."""

from hypothesis import given
from hypothesis import strategies as st

from memory_blocks.models import Label, render
from orchestrator.store.engine.packing import pack, unpack
from tests.support.builders import some_blocks


@given(st.text(), st.text())
def test_a_packed_text_can_be_unpacked(text: str, base: str) -> None:
    assert unpack(pack(text, base), base) == text


@given(st.text(min_size=1), st.text(), st.text(), st.integers(0, 3))
def test_a_text_with_a_changed_middle_can_be_unpacked(part: str, old: str, new: str, times: int) -> None:
    base, text = part * times + old + part, part * times + new + part

    assert unpack(pack(text, base), base) == text


@given(st.binary(), st.text())
def test_unpacking_foreign_bytes_never_raises(packed: bytes, base: str) -> None:
    text = unpack(packed, base)

    assert text is None or isinstance(text, str)


def test_a_revision_with_one_more_turn_is_much_smaller_than_the_block() -> None:
    before, after = some_blocks(turns=19), some_blocks(turns=20)

    packed = {label: len(pack(render(label, after), render(label, before))) for label in Label}

    assert packed[Label.CONVERSATION_HISTORY] < len(render(Label.CONVERSATION_HISTORY, after)) / 50
    assert sum(packed.values()) < sum(len(render(label, after)) for label in Label) / 20
