"""Stores the blocks in the memory of this process, for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.facts.changes import FactChange
from memory_blocks.models import Label
from memory_blocks.ports import ArchivedTurn, BlockWrite, Clock, Ids, QuarantinedText, Revision, StoredBlock
from memory_blocks.trace import digest


@dataclass(slots=True)
class _Record:
    """One block: its present text, and all its revisions."""

    text: str = ""
    revisions: list[Revision] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)


class InMemoryBlockStore:
    """A `BlockStore` made of dictionaries. A commit checks everything before it changes anything."""

    def __init__(self, ids: Ids, clock: Clock) -> None:
        self._ids = ids
        self._clock = clock
        self._memory_ids: dict[str, dict[Label, str]] = {}
        self._blocks: dict[tuple[str, Label], _Record] = {}
        self._archive: dict[str, dict[int, ArchivedTurn]] = {}
        self._fact_changes: dict[str, tuple[FactChange, ...]] = {}
        self._quarantined_texts: dict[str, list[QuarantinedText]] = {}
        self.quarantined: list[tuple[str, Label, str, str, str]] = []

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        """The latest revision of each stored block."""
        memory_ids = self._memory_ids.get(conversation_id, {})
        return {
            label: StoredBlock(
                text=record.text,
                revision=record.revisions[-1].revision,
                digest=record.revisions[-1].digest,
                memory_id=memory_ids[label],
            )
            for label in Label
            if (record := self._blocks.get((conversation_id, label)))
        }

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        """The four memory ids, created at the first call."""
        if conversation_id not in self._memory_ids:
            self._memory_ids[conversation_id] = {label: self._ids.new("mem_") for label in Label}
        return dict(self._memory_ids[conversation_id])

    def shortened_turns(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of the turns that are shortened in the block."""
        archive = self._archive.get(conversation_id, {})
        return {turn.turn_id: turn.text for turn in archive.values() if not turn.has_left}

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Check every write and turn, then store them all."""
        for write in writes:
            stored = self.revisions(conversation_id, write.label)
            latest = stored[-1].revision if stored else 0
            record = self._record(conversation_id, write.label)
            tampered = bool(stored) and digest(record.text) != stored[-1].digest and not write.restores
            if latest != write.previous_revision or tampered:
                raise StaleRevision(write.label, stored=latest, yours=write.previous_revision)
        archive = self._archive.setdefault(conversation_id, {})
        for turn in archived:
            if turn.turn_id in archive and archive[turn.turn_id].has_left:
                raise BlockInvalid(
                    Label.CONVERSATION_HISTORY, f"turns.turn_{turn.turn_id}", "has left the block already"
                )
        for write in writes:
            record = self._blocks.setdefault((conversation_id, write.label), _Record())
            record.text = record.texts[write.revision] = write.text
            record.revisions.append(
                Revision(
                    revision=write.revision,
                    size=len(write.text),
                    digest=write.digest,
                    previous_digest=record.revisions[-1].digest if record.revisions else None,
                    actor=write.actor,
                    turn=write.turn,
                    schema_version=write.schema_version,
                    written_at=self._clock.now(),
                )
            )
        archive.update({turn.turn_id: turn for turn in archived})
        return self.memory_ids(conversation_id)

    def revisions(self, conversation_id: str, label: Label) -> Sequence[Revision]:
        """Every revision of one block, oldest first."""
        return tuple(self._record(conversation_id, label).revisions)

    def text_at(self, conversation_id: str, label: Label, revision: int) -> str | None:
        """The text of a revision, if it is what was written."""
        record = self._record(conversation_id, label)
        digests = {each.revision: each.digest for each in record.revisions}
        text = record.texts.get(revision)
        return text if text is not None and digest(text) == digests.get(revision) else None

    def revision_at_turn(self, conversation_id: str, label: Label, turn: int) -> int | None:
        """The latest revision after that turn."""
        revisions = self._record(conversation_id, label).revisions
        return max((each.revision for each in revisions if each.turn and each.turn <= turn), default=None)

    def chain_departures(self, conversation_id: str, label: Label) -> Sequence[tuple[int, str]]:
        """Revisions whose text is not what was written; here nothing else can go wrong."""
        return [
            (each.revision, "a revision's digest is not that of its text")
            for each in self.revisions(conversation_id, label)
            if self.text_at(conversation_id, label, each.revision) is None
        ]

    def delete_revisions(self, conversation_id: str, label: Label, before: int) -> None:
        """Delete the revisions before that one."""
        record = self._record(conversation_id, label)
        record.revisions = [each for each in record.revisions if each.revision >= before]
        record.texts = {at: text for at, text in record.texts.items() if at >= before}

    def fact_changes(self, conversation_id: str, after: int = 0) -> Sequence[FactChange]:
        """The changes to the facts, in order, without the first `after` ones."""
        return self._fact_changes.get(conversation_id, ())[after:]

    def add_fact_changes(self, conversation_id: str, changes: Sequence[FactChange]) -> None:
        """Append changes to the facts."""
        self._fact_changes[conversation_id] = (*self.fact_changes(conversation_id), *changes)

    def quarantine(self, conversation_id: str, label: Label, text: str, *, reason: str, actor: str) -> str:
        """Put an invalid text into quarantine."""
        self.quarantined.append((conversation_id, label, text, reason, actor))
        quarantined = QuarantinedText(self._ids.new("quar_"), label, text, reason, actor, self._clock.now())
        self._quarantined_texts.setdefault(conversation_id, []).append(quarantined)
        return quarantined.id

    def quarantined_texts(self, conversation_id: str) -> Sequence[QuarantinedText]:
        """Every text in quarantine."""
        return tuple(self._quarantined_texts.get(conversation_id, ()))

    def tamper(self, conversation_id: str, label: Label, text: str, revision: int | None = None) -> None:
        """Change a block, or one of its revisions, without the ledger."""
        record = self._record(conversation_id, label)
        if revision is None:
            record.text = text
        else:
            record.texts[revision] = text

    def forge(self, conversation_id: str, label: Label, text: str) -> None:
        """Change a block and its latest revision without the ledger, with digests that fit."""
        record = self._record(conversation_id, label)
        latest = replace(record.revisions[-1], digest=digest(text), size=len(text))
        record.revisions[-1] = latest
        record.text = record.texts[latest.revision] = text

    def forget_fact_changes(self, conversation_id: str) -> None:
        """Delete the changes to facts, as if the blocks were older than they are."""
        self._fact_changes.pop(conversation_id, None)

    def last_archived_turn(self, conversation_id: str) -> int:
        """The id of the latest turn that has left the block."""
        return max((turn.turn_id for turn in self.archived_turns(conversation_id)), default=0)

    def _record(self, conversation_id: str, label: Label) -> _Record:
        return self._blocks.get((conversation_id, label), _Record())

    def archived_turns(self, conversation_id: str) -> Sequence[ArchivedTurn]:
        """The turns that have left the block, in order."""
        turns = self._archive.get(conversation_id, {})
        return tuple(turns[turn_id] for turn_id in sorted(turns) if turns[turn_id].has_left)
