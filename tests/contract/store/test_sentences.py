"""The stored sentences of an answer: their texts, audio and times."""

from datetime import timedelta

import pytest

from orchestrator.store.engine.database import Store, Transaction
from tests.support.builders import HandClock
from tests.support.stored_turns import PERSON


@pytest.mark.requirement("003-053")
def test_sentences_have_the_text_the_audio_and_the_times_of_an_answer(
    loose_store: Store, clock: HandClock
) -> None:
    def begin(tx: Transaction) -> str:
        conversation = tx.conversations.create(PERSON)
        question = tx.messages.append(conversation.id, "user", "How long?")
        return tx.messages.begin_answer(conversation.id, question.id).id

    def play(tx: Transaction) -> list[tuple[int, str, bytes | None]]:
        found = tx.messages.sentences(answer_id)
        return [(each.sentence_sequence_number, each.text, each.audio_data) for each in found]

    def say(text: str, *, final: bool) -> None:
        clock.tick(2)
        sentence = loose_store.write_now(lambda tx: tx.messages.say(answer_id, text, final=final))
        loose_store.write_now(
            lambda tx: tx.messages.add_audio(
                sentence.id, audio_format="opus_48000", data=b"\x01", duration_ms=9
            )
        )

    answer_id = loose_store.write_now(begin)
    say("A week. ", final=False)
    say("Then see someone.", final=True)

    sentences = loose_store.read_now(lambda tx: tx.messages.sentences(answer_id))
    answer = loose_store.read_now(lambda tx: tx.messages.get(answer_id))

    assert loose_store.read_now(play) == [(1, "A week. ", b"\x01"), (2, "Then see someone.", b"\x01")]
    assert answer is not None
    assert "".join(each.text for each in sentences) == answer.contents
    assert sentences[1].created_at - sentences[0].created_at == timedelta(seconds=2)
