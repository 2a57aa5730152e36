"""Changes one person's memories on request: shows what a deletion takes along, and can undo each change.

The commands, the API and the turn use this class inside their own transaction. It returns what it changed, so
that the caller can send the traces.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Literal

from orchestrator.errors import (
    INVALID_FIELD,
    MEMORY_CHANGED_SINCE,
    MEMORY_NOT_FOUND,
    NOTHING_TO_UNDO,
    AnamnesisError,
)
from orchestrator.ops.clock import as_text
from orchestrator.remember.facts import FACT, Kept
from orchestrator.remember.utterances import UTTERANCE
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK, NewMemory
from orchestrator.store.rows import LedgerEntry, Memory

UNDO_DAYS: Final = 30
"""So long a change can be undone."""

USER_NOTE: Final = "user"
"""The `source_type` of a memory that somebody wrote by hand."""

EDITABLE: Final = ("content", "title", "summary", "tags", "importance")

ACT: Final = "act"
"""Under this name, the ledger keeps the act that a change belongs to."""
_UNDOES: Final = "undoes"
_LATEST: Final = 1000
"""So many entries of the ledger are looked at for the last act."""


@dataclass(frozen=True, slots=True)
class Act:
    """What one request changed. `id` names it for `undo`; a final deletion cannot be undone.

    `undoes` is the act that this one has undone.
    """

    id: str
    changed: tuple[Kept, ...]
    can_be_undone: bool = True
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion would take away, to be shown before it is done.

    `derived` were made from the memories and go with them. `utterances` are the messages that they rest on:
    searches will not find them any more, but the messages themselves stay in their conversations.
    """

    memories: tuple[Memory, ...]
    derived: tuple[Memory, ...] = ()
    utterances: tuple[Memory, ...] = ()

    @property
    def everything(self) -> tuple[Memory, ...]:
        """All memories that would be deleted."""
        return (*self.memories, *self.derived, *self.utterances)


class MemoryChanges:
    """Changes the memories of one person, within one transaction, for `actor`."""

    def __init__(self, tx: Transaction, user_id: str, actor: str, *, undo_days: float = UNDO_DAYS) -> None:
        self._tx, self._user_id, self._actor = tx, user_id, actor
        self._undo = timedelta(days=undo_days)

    def get(self, memory_id: str, *, even_deleted: bool = False) -> Memory:
        """A memory of this person by its own id or the id of its import; raises if there is none."""
        imported = self._tx.memory_index.by_external_id(self._user_id, memory_id)
        known = imported.memory_id if imported else memory_id
        memories = self._tx.memories
        found = memories.get_even_deleted(known) if even_deleted else memories.get(known)
        if found is None or found.user_id != self._user_id or found.source_type == MEMORY_BLOCK:
            raise AnamnesisError(MEMORY_NOT_FOUND)
        return found

    # --- changes ------------------------------------------------------------------------------------------

    def create(self, content: str, *, tags: Sequence[str] = (), pinned: bool = False) -> Act:
        """Store a memory that somebody wrote by hand."""
        new = NewMemory(
            content=content,
            user_id=self._user_id,
            created_by=self._actor,
            source_type=USER_NOTE,
            tags=tuple(tags),
            pinned=pinned,
        )
        added = self._tx.memories.add(new)
        return Act(self.new_act(), (Kept(added, "stored"),), can_be_undone=False)

    def edit(self, memory_id: str, *, act: str | None = None, **columns: Any) -> Act:
        """Set some of `EDITABLE`. A fact that was edited stays so until the person states it again.

        With `act`, the change belongs to an act that has begun.
        """
        unknown = next((name for name in columns if name not in EDITABLE), None)
        if unknown is not None or not columns:
            raise AnamnesisError(INVALID_FIELD, field=unknown or "memory", rule="cannot be edited")
        memory = self.get(memory_id)
        if memory.source_type == FACT and "content" in columns:
            edited = {"edited_at": as_text(self._tx.now)}
            columns["source_info"] = {**(memory.source_info or {}), **edited}
        return self._update([memory], act, **columns)

    def rate(self, memory_id: str, rating: int | None) -> Act:
        """Rate a memory from 1 to 5, which counts in searches; None takes the rating away."""
        if rating is not None and not 1 <= rating <= 5:
            raise AnamnesisError(INVALID_FIELD, field="rating", rule="must be between 1 and 5")
        return self._update([self.get(memory_id)], user_rating=rating)

    def pin(self, memory_id: str, *, pinned: bool = True) -> Act:
        """Make searches prefer a memory, or no longer."""
        return self._update([self.get(memory_id)], pinned=pinned)

    def archive(self, memory_id: str, *, archived: bool = True) -> Act:
        """Take a memory out of searches, or put it back."""
        return self._update([self.get(memory_id)], archived=archived)

    def preview(self, *memory_ids: str, even_deleted: bool = False) -> Deletion:
        """What deleting these memories would take away. Changes nothing.

        Deleting a fact takes along what was derived from it, the utterances that it rests on, and the
        summaries of these. Deleting an utterance takes along the facts that rest on nothing else. Other facts
        of the same utterance stay.
        """
        chosen = {each.id: each for each in (self.get(id, even_deleted=even_deleted) for id in memory_ids)}
        derived: dict[str, Memory] = {}
        to_do = list(chosen)
        while to_do:
            for each in self._tx.memories.naming(self._user_id, to_do.pop(), even_deleted=even_deleted):
                gone = chosen.keys() | derived.keys()
                if each.id not in gone and _rests_only_on(each, gone):
                    derived[each.id] = each
                    to_do.append(each.id)
        sources = dict.fromkeys(
            id for each in (*chosen.values(), *derived.values()) for id in _named(each, "utterances")
        )
        read = self._tx.memories.get_even_deleted if even_deleted else self._tx.memories.get
        utterances = [read(id) for id in sources if id not in chosen]
        own = tuple(each for each in utterances if each is not None and each.user_id == self._user_id)
        for each in self._made_from((each.id for each in own), even_deleted=even_deleted):
            if each.id not in chosen:
                derived.setdefault(each.id, each)
        return Deletion(tuple(chosen.values()), tuple(derived.values()), own)

    def derived_from(self, *memory_ids: str) -> tuple[Memory, ...]:
        """The memories that were made from these, or from the utterances that these rest on."""
        chosen = [self.get(id) for id in memory_ids]
        ids = dict.fromkeys(id for each in chosen for id in (each.id, *_named(each, "utterances")))
        return tuple(each for each in self._made_from(ids) if each.id not in memory_ids)

    def _made_from(self, ids: Iterable[str], *, even_deleted: bool = False) -> list[Memory]:
        """The memories that name one of these as a part of them, such as summaries."""
        found = {
            each.id: each
            for id in ids
            for each in self._tx.memories.naming(self._user_id, id, even_deleted=even_deleted)
            if id in _named(each, "members")
        }
        return list(found.values())

    def delete(self, *memory_ids: str, final: bool = False, act: str | None = None) -> Act:
        """Delete memories with everything that `preview` shows; `undo` brings them back.

        With `final`, their content is erased, also that of memories which are deleted already. With `act`,
        the deletion belongs to an act that has begun.
        """
        act = act or self.new_act()
        gone = self.preview(*memory_ids, even_deleted=final).everything
        for each in gone:
            if final:
                self._tx.memories.erase(each.id, by=self._actor)
            else:
                self._tx.memories.delete(each.id, by=self._actor, note={ACT: act})
        if final:
            self._tx.replies.erase(self._user_id, [each.id for each in gone])
        changed = self._now(gone)
        if final:  # its trace still has to know where an erased memory came from
            where = {each.id: {"conversation": (each.source_info or {}).get("conversation")} for each in gone}
            changed = tuple(
                replace(each, memory=replace(each.memory, source_info=where[each.memory.id]))
                for each in changed
            )
        return Act(act, changed, can_be_undone=not final)

    def undo(self, act: str | None = None, *, memory_id: str | None = None) -> Act:
        """Undo an act: the one with an id, the last one that changed a memory, or the very last one.

        Raises if there is none, if it is too long ago, or if the memory was changed again since.
        """
        entries = self._entries_to_undo(act, memory_id)
        undoing, undone = self.new_act(), []
        for entry in entries:
            memory = self.get(entry.memory_id, even_deleted=True)
            self._undo_entry(entry, memory, {ACT: undoing, _UNDOES: _body(entry)[ACT]})
            undone.append(memory)
        undone_act = str(_body(entries[0])[ACT])
        changed = self._now({each.id: each for each in undone}.values())
        return Act(undoing, changed, can_be_undone=False, undoes=undone_act)

    # --- helpers ------------------------------------------------------------------------------------------

    def _update(self, memories: Sequence[Memory], begun: str | None = None, **columns: Any) -> Act:
        act = begun or self.new_act()
        changing = [
            each for each in memories if any(getattr(each, name) != columns[name] for name in columns)
        ]
        for each in changing:
            self._tx.memories.update(each.id, by=self._actor, note={ACT: act}, **columns)
        return Act(act, self._now(changing), can_be_undone=bool(changing))

    def new_act(self) -> str:
        """The id of an act that begins."""
        return self._tx.ids.new("act_")

    def _now(self, memories: Iterable[Memory]) -> tuple[Kept, ...]:
        """The memories as they are after a change, deleted or not."""
        found = (self._tx.memories.get_even_deleted(each.id) for each in memories)
        return tuple(Kept(each, "updated") for each in found if each is not None)

    def _entries_to_undo(self, act: str | None, memory_id: str | None) -> list[LedgerEntry]:
        ledger = self._tx.memories.ledger
        if memory_id is not None:
            known = self.get(memory_id, even_deleted=True).id
            entries = ledger.of_memory(self._user_id, known)[::-1]
        else:
            entries = ledger.latest(self._user_id, limit=_LATEST)
        acts = [(entry, body) for entry in entries if ACT in (body := _body(entry))]
        undone = {body[_UNDOES] for _, body in acts if _UNDOES in body}
        wanted = act or next(
            (body[ACT] for _, body in acts if _UNDOES not in body and body[ACT] not in undone), None
        )
        if wanted is None or wanted in undone:
            raise AnamnesisError(NOTHING_TO_UNDO, days=self._undo.days)
        whole = [
            entry
            for entry in ledger.latest(self._user_id, limit=_LATEST)
            if _body(entry).get(ACT) == wanted and entry.created_at >= self._tx.now - self._undo
        ]
        if not whole or any(_UNDOES in _body(entry) for entry in whole):
            raise AnamnesisError(NOTHING_TO_UNDO, days=self._undo.days)
        return whole

    def _undo_entry(self, entry: LedgerEntry, memory: Memory, note: Mapping[str, Any]) -> None:
        memories = self._tx.memories
        if entry.action == "deleted":
            if memory.deleted_at is None or not memory.content:
                raise AnamnesisError(MEMORY_CHANGED_SINCE)
            memories.restore(memory.id, by=self._actor, note=note)
            return
        entries = memories.ledger.of_memory(self._user_id, memory.id)
        names = [name for name in _body(entry) if name != ACT]
        same = (_body(entry)[ACT], note[ACT])  # an act can change a memory twice
        after = (_body(each) for each in entries if each.number > entry.number)
        later = (body for body in after if body.get(ACT) not in same)
        if memory.deleted_at is not None or any(name in body for body in later for name in names):
            raise AnamnesisError(MEMORY_CHANGED_SINCE)
        before: dict[str, Any] = {}
        for each in entries:
            if each.number < entry.number:
                before |= _body(each)
        columns = {name: _COLUMN.get(name, _same)(before.get(name)) for name in names}
        memories.update(memory.id, by=self._actor, note=note, **columns)


def _rests_only_on(memory: Memory, gone: Iterable[str]) -> bool:
    """Whether a memory was made from one of these, or is a fact that rests on nothing but these."""
    known = set(gone)
    utterances = _named(memory, "utterances")
    return bool(known.intersection(_named(memory, "members"))) or (
        memory.source_type != UTTERANCE and bool(utterances) and known.issuperset(utterances)
    )


def _named(memory: Memory, name: Literal["members", "utterances"]) -> list[str]:
    found = (memory.source_info or {}).get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _body(entry: LedgerEntry) -> dict[str, Any]:
    found = json.loads(entry.body) if entry.body else {}
    return found if isinstance(found, dict) else {}


def _same(value: Any) -> Any:
    return value


_COLUMN: Final[Mapping[str, Callable[[Any], Any]]] = dict.fromkeys(
    ("tags", "entities", "key_phrases"), lambda value: tuple(value or ())
)
"""How the value of a column is read from the ledger, where it is JSON."""
