"""Stores the requests that a turn sends to models, and asks how many tokens its person has used today."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agents.models.usage import PENDING, ModelCall, ModelUsage
from orchestrator.store.engine.database import Transaction
from orchestrator.turn.outbox import ConversationWrite


@dataclass(frozen=True, slots=True)
class _Unsaved:
    """A request whose row is missing or not current. `id` is the row's, if there is one."""

    number: int
    call: ModelCall
    id: str | None


SavedCalls: TypeAlias = dict[int, tuple[str, ModelCall]]
"""The id of the row of each stored request, and the request as it was then, by its number in the turn."""


class TurnCalls:
    """The requests of one turn. Each is stored with the next transaction of the turn, and again when it ends.

    `save` runs inside a transaction, on another thread; `confirm` after it was committed.
    """

    def __init__(self, message_id: str, usage: ModelUsage) -> None:
        self._message_id, self._usage = message_id, usage
        self._saved: SavedCalls = {}

    def unsaved(self) -> Sequence[_Unsaved]:
        """The requests to store, as they are now."""
        found = []
        for number, call in enumerate(self._usage.calls):
            id, saved = self._saved.get(number, (None, None))
            if call != saved:
                found.append(_Unsaved(number, replace(call), id))
        return found

    def save(self, write: ConversationWrite, unsaved: Sequence[_Unsaved]) -> SavedCalls:
        """Store these requests; returns what to confirm."""
        calls = write.tx.model_calls
        saved: SavedCalls = {}
        for each in unsaved:
            call = each.call
            id = each.id or calls.add(
                write.conversation.id,
                self._message_id,
                each.number + 1,
                role=call.role,
                model=call.model,
                digest=call.digest,
                request=call.request,
            )
            if call.outcome != PENDING:
                calls.end(
                    id,
                    outcome=call.outcome,
                    prompt_tokens=call.prompt_tokens,
                    completion_tokens=call.completion_tokens,
                )
            saved[each.number] = (id, call)
        return saved

    def confirm(self, saved: SavedCalls) -> None:
        """Note that these requests are stored."""
        self._saved |= saved


def tokens_today(tx: Transaction, person_id: str) -> int:
    """How many tokens models have used for this person since midnight, UTC."""
    return tx.model_calls.tokens_since(person_id, tx.now.replace(hour=0, minute=0, second=0, microsecond=0))
