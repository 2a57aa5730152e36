"""Changes memories from outside of a turn, for the API and for commands, with the traces of it.

A memory that keeps a fact is changed together with the fact itself, in every conversation in which it holds.
So the next answer knows of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from memory_blocks import trace
from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts
from memory_blocks.facts.edits import change_facts
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.models import MAX_LINE, Conversation
from orchestrator.errors import INVALID_FIELD, AnamnesisError
from orchestrator.inspection.looks import Look, block_errors, trace_receipts
from orchestrator.remember.changing import ACT, Act, MemoryChanges
from orchestrator.remember.fact_folding import Said, entries_of
from orchestrator.remember.facts import FACT, Kept, all_changes, memory_id_of, remember_facts
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Memory
from orchestrator.turn import traces
from orchestrator.turn.outbox import in_transaction

_COPIED: Final = {"kind", "subject", "about", "value", "stable"}


class MemoryDecisions:
    """Carries out what somebody decides about a person's memories, within one transaction."""

    def __init__(self, tx: Transaction, ledger: Ledger, user_id: str, look: Look) -> None:
        self._tx, self._ledger, self._user_id, self._look = tx, ledger, user_id, look
        self._changes = MemoryChanges(tx, user_id, look.actor)

    def carry_out(self, change: Callable[[MemoryChanges], Act]) -> Act:
        """Change memories. Facts end with their memories, and come back with them."""
        act = change(self._changes)
        memories = [kept.memory for kept in act.changed if kept.memory.source_type == FACT]
        following = self._following(memories, is_undone=act.undoes is not None) if memories else {}
        self._write(following, act.changed, {})
        return act

    def correct(self, memory_id: str, value: str) -> Act:
        """Give a fact another value, in its conversations and as a memory. The old one is kept as history.

        Raises if the memory is no fact, or if no conversation has this fact any more.
        """
        memory = self._changes.get(memory_id)
        held = _Facts(self._tx, self._user_id).held(memory.id) if memory.source_type == FACT else []
        if not held:
            rule = "only a fact that holds has a value; change the content"
            raise AnamnesisError(INVALID_FIELD, field="value", rule=rule)
        if len(value) > MAX_LINE:
            rule = f"a fact has at most {MAX_LINE} characters"
            raise AnamnesisError(INVALID_FIELD, field="value", rule=rule)
        act = self._changes.new_act()
        changes = [(here, self._change(Op.REPLACE, fact, fact.id, value=value)) for here, fact in held]
        kept = self._write(_by_conversation(changes), (), {ACT: act})
        return Act(act, kept)

    def edit(self, memory_id: str, content: str) -> Act:
        """Give a memory another content. If it keeps a fact, the fact gets this value."""
        memory = self._changes.get(memory_id)
        facts = _Facts(self._tx, self._user_id) if memory.source_type == FACT else None
        if facts is None or not facts.held(memory.id):
            return self.carry_out(lambda changes: changes.edit(memory_id, content=content))
        act = self.correct(memory_id, facts.value_in(memory.id, content) or content)
        if self._changes.get(memory_id).content == content:
            return act
        return self.carry_out(lambda changes: changes.edit(memory_id, act=act.id, content=content))

    def _following(
        self, memories: Sequence[Memory], *, is_undone: bool
    ) -> Mapping[str, Sequence[FactChange]]:
        """The changes to facts that follow from a change of the memories that keep them."""
        known, made = _Facts(self._tx, self._user_id), []
        for memory in memories:
            if memory.deleted_at is not None or memory.archived:
                made += [
                    (here, self._change(Op.FORGET, fact, fact.id)) for here, fact in known.held(memory.id)
                ]
                continue
            for said in known.forgotten(memory.id):
                made.append((said.conversation_id, self._change(Op.WITHDRAW, said.change, said.change.id)))
            value = (memory.source_info or {}).get("value")
            if is_undone and isinstance(value, str) and value:
                made += [
                    (here, self._change(Op.REPLACE, fact, fact.id, value=value))
                    for here, fact in known.held(memory.id)
                    if fact.value != value
                ]
        return _by_conversation(made)

    def _change(self, op: Op, of: CurrentFact | FactChange, target: str, **fields: Any) -> FactChange:
        return FactChange.model_validate(
            {
                **of.model_dump(include=_COPIED),
                "id": self._tx.ids.new("fact_"),
                "op": op,
                "target": target,
                "said_at": self._tx.now,
                "decided_by": Decider.PERSON if self._look.is_own else Decider.OPERATOR,
                **fields,
            }
        )

    def _write(
        self,
        changes: Mapping[str, Sequence[FactChange]],
        changed: Sequence[Kept],
        note: Mapping[str, Any],
    ) -> tuple[Kept, ...]:
        """Write changes to facts, bring the memories up to date, and send the traces.

        Returns the memories that changed, with those in `changed`.
        """
        sources = {here for kept in changed if (here := self._conversation_of(kept.memory)) is not None}
        for conversation_id in sorted({*changes, *sources}):  # all writers lock in this order
            self._change_facts(conversation_id, changes.get(conversation_id, ()))
        made = [change for each in changes.values() for change in each]
        updated = remember_facts(self._tx, self._user_id, made, by=self._look.actor, note=note)
        latest = {kept.memory.id: kept for kept in (*changed, *updated)}
        for kept in latest.values():
            here = self._conversation_of(kept.memory)
            if here is not None:
                self._trace(here, kept)
        return tuple(latest.values())

    def _change_facts(self, conversation_id: str, changes: Sequence[FactChange]) -> None:
        with in_transaction(self._tx, conversation_id) as write, block_errors():
            if not changes:
                return
            row, store = write.conversation, SqlBlockStore(self._tx.blocks)
            here = Conversation(row.id, row.user_id, row.created_at)
            written = change_facts(self._ledger, store, here, changes, actor=self._look.actor)
            read = [each for each in written.receipts if each.action is trace.Action.RETRIEVED]
            trace_receipts(self._tx, row.id, self._look, read)
            for receipt in written.receipts:
                if receipt.action is not trace.Action.RETRIEVED:
                    write.say(traces.of_block(receipt, self._tx.ids.new("trace_"), row.id))

    def _conversation_of(self, memory: Memory) -> str | None:
        """The conversation that a memory comes from, for its trace.

        The ledger has the change in any case. A memory that comes from no conversation, such as an imported
        one, has no other trace.
        """
        found = (memory.source_info or {}).get("conversation")
        row = self._tx.conversations.get(found) if isinstance(found, str) else None
        return row.id if row is not None and row.user_id == memory.user_id else None

    def _trace(self, conversation_id: str, kept: Kept) -> None:
        trace_id, look = self._tx.ids.new("trace_"), self._look
        with in_transaction(self._tx, conversation_id) as write:
            write.say(
                traces.of_kept(kept, trace_id, conversation_id, None, actor=look.actor, reason=look.reason)
            )


class _Facts:
    """The facts of a person in all conversations, by the memory that keeps each."""

    def __init__(self, tx: Transaction, user_id: str) -> None:
        self._said = all_changes(tx, user_id)
        self._entries = {
            change: (memory_id_of(user_id, entry), entry) for change, entry in entries_of(self._said).items()
        }

    def held(self, memory_id: str) -> list[tuple[str, CurrentFact]]:
        """Where this fact holds: the conversations, each with the fact as it has it."""
        of_each = _by_conversation((said.conversation_id, said.change) for said in self._said)
        return [
            (conversation_id, fact)
            for conversation_id, changes in of_each.items()
            for fact in current_facts(changes)
            if self._keeps(memory_id, fact.id)
        ]

    def forgotten(self, memory_id: str) -> list[Said]:
        """The changes that made conversations forget this fact."""
        return [
            said
            for said in self._said
            if said.change.op is Op.FORGET and self._keeps(memory_id, said.change.id)
        ]

    def value_in(self, memory_id: str, sentence: str) -> str | None:
        """The value in a sentence about this fact; None if the sentence has another form."""
        found = (entry for keeper, entry in self._entries.values() if keeper == memory_id)
        return next((entry.value_in(sentence) for entry in found), None)

    def _keeps(self, memory_id: str, change: str) -> bool:
        return change in self._entries and self._entries[change][0] == memory_id


def _by_conversation(changes: Iterable[tuple[str, FactChange]]) -> dict[str, list[FactChange]]:
    found: dict[str, list[FactChange]] = {}
    for conversation_id, change in changes:
        found.setdefault(conversation_id, []).append(change)
    return found
