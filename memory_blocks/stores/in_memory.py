"""Blocks kept in this process, for tests and rehearsals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.models import Label
from memory_blocks.ports import ArchivedTurn, BlockWrite, Clock, Ids, Revision, SetAside, StoredBlock
from memory_blocks.trace import digest


@dataclass(slots=True)
class _Kept:
    """One block: what it is now, and all it was."""

    now: str = ""
    revisions: list[Revision] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)


class InMemoryBlockStore:
    """Every revision and every archived turn, in dictionaries. A commit is whole because it checks first."""

    def __init__(self, ids: Ids, clock: Clock) -> None:
        self._ids = ids
        self._clock = clock
        self._memory_ids: dict[str, dict[Label, str]] = {}
        self._blocks: dict[tuple[str, Label], _Kept] = {}
        self._archive: dict[str, dict[int, ArchivedTurn]] = {}
        self._set_aside: dict[str, list[SetAside]] = {}
        self.quarantined: list[tuple[str, Label, str, str, str]] = []

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        """The latest revision of each stored block."""
        memory_ids = self._memory_ids.get(conversation_id, {})
        return {
            label: StoredBlock(
                text=kept.now,
                revision=kept.revisions[-1].revision,
                digest=kept.revisions[-1].digest,
                memory_id=memory_ids[label],
            )
            for label in Label
            if (kept := self._blocks.get((conversation_id, label)))
        }

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        """The four memory ids, made at the first call."""
        if conversation_id not in self._memory_ids:
            self._memory_ids[conversation_id] = {label: self._ids.new("mem_") for label in Label}
        return dict(self._memory_ids[conversation_id])

    def held(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of turns that stand shortened in the block."""
        archive = self._archive.get(conversation_id, {})
        return {turn.turn_id: turn.text for turn in archive.values() if not turn.left}

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Check every write and turn, then keep them all."""
        for write in writes:
            stored = self.revisions(conversation_id, write.label)
            latest = stored[-1].revision if stored else 0
            kept = self._kept(conversation_id, write.label)
            tampered = bool(stored) and digest(kept.now) != stored[-1].digest and not write.restores
            if latest != write.previous_revision or tampered:
                raise StaleRevision(write.label, stored=latest, yours=write.previous_revision)
        archive = self._archive.setdefault(conversation_id, {})
        for turn in archived:
            if turn.turn_id in archive and archive[turn.turn_id].left:
                raise BlockInvalid(
                    Label.CONVERSATION_HISTORY, f"turns.turn_{turn.turn_id}", "has left the block already"
                )
        for write in writes:
            kept = self._blocks.setdefault((conversation_id, write.label), _Kept())
            kept.now = kept.texts[write.revision] = write.text
            kept.revisions.append(
                Revision(
                    revision=write.revision,
                    size=len(write.text),
                    digest=write.digest,
                    previous_digest=kept.revisions[-1].digest if kept.revisions else None,
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
        return tuple(self._kept(conversation_id, label).revisions)

    def text_at(self, conversation_id: str, label: Label, revision: int) -> str | None:
        """The text of a revision, if it is still what was written."""
        kept = self._kept(conversation_id, label)
        digests = {each.revision: each.digest for each in kept.revisions}
        text = kept.texts.get(revision)
        return text if text is not None and digest(text) == digests.get(revision) else None

    def revision_at_turn(self, conversation_id: str, label: Label, turn: int) -> int | None:
        """The revision that stood after that turn."""
        kept = self._kept(conversation_id, label).revisions
        return max((each.revision for each in kept if each.turn and each.turn <= turn), default=None)

    def chain_departures(self, conversation_id: str, label: Label) -> Sequence[tuple[int, str]]:
        """Revisions whose text is not what was written: nothing else can break here."""
        return [
            (each.revision, "a revision's digest is not that of its text")
            for each in self.revisions(conversation_id, label)
            if self.text_at(conversation_id, label, each.revision) is None
        ]

    def forget(self, conversation_id: str, label: Label, before: int) -> None:
        """Drop what is older."""
        kept = self._kept(conversation_id, label)
        kept.revisions = [each for each in kept.revisions if each.revision >= before]
        kept.texts = {at: text for at, text in kept.texts.items() if at >= before}

    def quarantine(self, conversation_id: str, label: Label, text: str, *, reason: str, actor: str) -> str:
        """Keep a text that could not stand."""
        self.quarantined.append((conversation_id, label, text, reason, actor))
        kept = SetAside(self._ids.new("quar_"), label, text, reason, actor, self._clock.now())
        self._set_aside.setdefault(conversation_id, []).append(kept)
        return kept.id

    def set_aside(self, conversation_id: str) -> Sequence[SetAside]:
        """Every text that could not stand."""
        return tuple(self._set_aside.get(conversation_id, ()))

    def tamper(self, conversation_id: str, label: Label, text: str, revision: int | None = None) -> None:
        """Change a block, or one of its revisions, as somebody could who goes around the ledger."""
        kept = self._kept(conversation_id, label)
        if revision is None:
            kept.now = text
        else:
            kept.texts[revision] = text

    def forge(self, conversation_id: str, label: Label, text: str) -> None:
        """Change a block and its latest revision, with digests that fit, as one could who knows how."""
        kept = self._kept(conversation_id, label)
        latest = replace(kept.revisions[-1], digest=digest(text), size=len(text))
        kept.revisions[-1] = latest
        kept.now = kept.texts[latest.revision] = text

    def last_left(self, conversation_id: str) -> int:
        """The id of the latest turn that has left."""
        return max((turn.turn_id for turn in self.archive(conversation_id)), default=0)

    def _kept(self, conversation_id: str, label: Label) -> _Kept:
        return self._blocks.get((conversation_id, label), _Kept())

    def archive(self, conversation_id: str) -> Sequence[ArchivedTurn]:
        """The turns that have left the block, in their order."""
        kept = self._archive.get(conversation_id, {})
        return tuple(kept[turn_id] for turn_id in sorted(kept) if kept[turn_id].left)
