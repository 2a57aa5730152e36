"""Requests to models are kept as they were sent, and their tokens are counted by person and day."""

from datetime import datetime

from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.turn.model_calls import request_text
from orchestrator.store.rows import ModelCall
from tests.support.builders import HandClock
from tests.support.stored_turns import ask

DIGEST = "0123456789abcdef" * 4
REQUEST = '{"model":"a-model","messages":[{"role":"user","content":"wörter 😀"}]}'


def a_call(store: Store, person: str, *, tokens: int = 0, digest: str = DIGEST) -> ModelCall:
    """A request for a message of a new conversation of that person; with tokens, it was answered."""

    def work(tx: Transaction) -> ModelCall:
        question, _ = ask(tx, tx.conversations.create(person).id)
        id = tx.model_calls.add(
            question.conversation_id, question.id, 1, role="SLEEP", model="m", digest=digest, request=REQUEST
        )
        if tokens:
            tx.model_calls.end(id, outcome="answered", prompt_tokens=tokens - 1, completion_tokens=1)
        return tx.model_calls.of_message(question.id)[0]

    return store.write_now(work)


def found_by(store: Store, beginning: str) -> list[ModelCall]:
    return store.read_now(lambda tx: tx.model_calls.with_digest(beginning))


def found_of(store: Store, message_id: str) -> list[ModelCall]:
    return store.read_now(lambda tx: tx.model_calls.of_message(message_id))


def counted_for(store: Store, person: str, since: datetime) -> int:
    return store.read_now(lambda tx: tx.model_calls.tokens_since(person, since))


def test_a_request_is_kept_as_it_was_sent(store: Store) -> None:
    call = a_call(store, "ann")

    assert request_text(call) == REQUEST
    assert (call.role, call.digest, call.outcome, call.prompt_tokens) == ("SLEEP", DIGEST, "pending", 0)


def test_a_request_gets_its_outcome_and_its_tokens(store: Store) -> None:
    call = a_call(store, "ann", tokens=120)

    assert (call.outcome, call.prompt_tokens, call.completion_tokens) == ("answered", 119, 1)


def test_a_request_is_found_by_the_beginning_of_its_digest(store: Store) -> None:
    one, other = a_call(store, "ann"), a_call(store, "ann", digest="f" * 64)

    found = [found_by(store, beginning) for beginning in (DIGEST[:8], "ffffffff", "01234568")]

    assert found == [[one], [other], []]


def test_tokens_are_counted_over_all_conversations_of_a_person_since_a_moment(
    store: Store, clock: HandClock
) -> None:
    a_call(store, "ann", tokens=1_000)
    clock.tick(3_600)
    since = clock.now()
    a_call(store, "ann", tokens=200)
    a_call(store, "ann", tokens=30)
    a_call(store, "bob", tokens=4)

    counted = [counted_for(store, person, since) for person in ("ann", "bob", "carl")]

    assert counted == [230, 4, 0]


def test_what_was_sent_for_a_person_can_be_erased_for_good(store: Store) -> None:
    calls = [a_call(store, "ann", tokens=120), a_call(store, "ann"), a_call(store, "bob")]

    erased = store.write_now(lambda tx: tx.model_calls.erase_texts("ann"))
    texts = [request_text(found) for call in calls for found in found_of(store, call.message_id)]

    assert (erased, texts) == (2, [None, None, REQUEST])
    assert counted_for(store, "ann", calls[0].created_at) == 120
