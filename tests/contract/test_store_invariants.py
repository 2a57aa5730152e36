"""What must never be is found, wherever somebody makes it so."""

from orchestrator.store.database import Store
from orchestrator.store.invariants import check
from tests.world import PERSON, take_turn


def test_a_store_in_which_turns_were_taken_is_sound(store: Store) -> None:
    conversation = store.write_now(lambda tx: tx.conversations.create(PERSON))

    for _ in range(2):
        store.write_now(lambda tx: take_turn(tx, conversation.id))

    assert check(store, quiesced=True) == []
