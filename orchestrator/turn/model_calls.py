"""The requests that a turn sends to models: stored with its transactions, and limited for each day."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from agents.models.usage import DAILY_TOKENS, PENDING, ModelCall, ModelUsage
from orchestrator.turn.outbox import ConversationWrite

T = TypeVar("T")

_Saved: TypeAlias = dict[int, tuple[str, ModelCall]]
"""The id of the row of each stored request, and the request as it was then, by its number in the turn."""


@dataclass(frozen=True, slots=True)
class _Unsaved:
    """A request whose row is missing or not current. `id` is the row's, if there is one."""

    number: int
    call: ModelCall
    id: str | None


class TurnCalls:
    """The requests to models in one turn. Each is stored with the next transaction and when it ends."""

    def __init__(self, message_id: str, usage: ModelUsage) -> None:
        self._message_id, self._usage = message_id, usage
        self._saved: _Saved = {}

    def saved_with(
        self, work: Callable[[ConversationWrite], T]
    ) -> tuple[Callable[[ConversationWrite], tuple[T, _Saved]], Callable[[tuple[T, _Saved]], T]]:
        """Wrap `work` so that its transaction also stores the requests made so far.

        Returns two functions. Run the first inside the transaction; it may run on another thread. After the
        commit, call the second with the result of the first: it returns the result of `work` alone.
        """
        unsaved = self._unsaved()

        def work_and_save(write: ConversationWrite) -> tuple[T, _Saved]:
            return work(write), self._save(write, unsaved)

        def confirm(done: tuple[T, _Saved]) -> T:
            result, saved = done
            self._saved |= saved
            return result

        return work_and_save, confirm

    def bar_if_used_up(self, write: ConversationWrite, most: int) -> None:
        """Leave the models out of this turn if its person has used up `most` tokens since midnight, UTC."""
        midnight = write.tx.now.replace(hour=0, minute=0, second=0, microsecond=0)
        if most and write.tx.model_calls.tokens_since(write.conversation.user_id, midnight) >= most:
            self._usage.barred_by = DAILY_TOKENS

    def _unsaved(self) -> Sequence[_Unsaved]:
        """The requests to store, as they are now."""
        found = []
        for number, call in enumerate(self._usage.calls):
            id, saved = self._saved.get(number, (None, None))
            if call != saved:
                found.append(_Unsaved(number, replace(call), id))
        return found

    def _save(self, write: ConversationWrite, unsaved: Sequence[_Unsaved]) -> _Saved:
        calls = write.tx.model_calls
        saved: _Saved = {}
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
