"""Reads and writes the four blocks. All other code goes through here, so that each access gets a receipt."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import cast

from memory_blocks import agreement, edits, trace, trace_text
from memory_blocks.diff import changed_paths
from memory_blocks.errors import BlockInvalid, BlockTooLarge
from memory_blocks.facts.changes import FactChange, current_facts
from memory_blocks.facts.view import changes_in
from memory_blocks.ledger import repair
from memory_blocks.ledger.revisions import next_revision, stored_after
from memory_blocks.limits import DEFAULTS, Limits, level, utilization
from memory_blocks.models import (
    MAX_TURNS,
    ActiveSession,
    Blocks,
    Conversation,
    EarlierSession,
    Label,
    Model,
    Turn,
    from_texts,
    render,
)
from memory_blocks.ports import ArchivedTurn, BlockStore, BlockWrite, Clock, QuarantinedText, StoredBlock
from memory_blocks.rotation import Rotation, rotate
from memory_blocks.trace import Action, Receipt


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The four blocks, the same as stored, and a receipt for each block that was read or written."""

    blocks: Blocks
    stored: Mapping[Label, StoredBlock]
    receipts: tuple[Receipt, ...]

    @property
    def revisions(self) -> Mapping[Label, int]:
        """The revision of each block; 0 before the first turn."""
        return {label: block.revision for label, block in self.stored.items()}


@dataclass(frozen=True, slots=True)
class WriteResult(ReadResult):
    """The four blocks as written. Rotation may have moved turns out of them: those in `rotated_out`."""

    rotated_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockView:
    """Some of the blocks, now or at an earlier revision, with a receipt for each."""

    blocks: Mapping[Label, StoredBlock]
    receipts: tuple[Receipt, ...]


class Ledger:
    """Reads and writes the blocks of a conversation. The store of each call is bound to a transaction."""

    def __init__(self, clock: Clock, limits: Limits = DEFAULTS, agent_types: Set[str] | None = None) -> None:
        self._clock = clock
        self._limits = limits
        self._agent_types = agent_types

    @property
    def limits(self) -> Limits:
        """The limits that every write is checked against."""
        return self._limits

    def now(self) -> datetime:
        """The time of the ledger's clock."""
        return self._clock.now()

    # --- reading ------------------------------------------------------------------------------------------

    def read(self, store: BlockStore, conversation: Conversation, *, actor: str) -> ReadResult:
        """The four blocks and their four receipts. A block that is not stored yet has revision 0.

        A block that is not valid is put into quarantine and its last valid revision is restored. The receipts
        of that write come first, so the caller always continues with blocks that agree.
        """
        stored = self._load(store, conversation)
        blocks, faults = repair.load_blocks(stored, conversation)
        if blocks is not None:
            faults = repair.disagreements(store, conversation, blocks, self._limits)
        restored: tuple[Receipt, ...] = ()
        if blocks is None or faults:
            stored, restored = repair.restore(store, conversation, stored, faults, self._limits, actor)
            blocks = from_texts({label: block.text for label, block in stored.items()})
        retrieved = (
            self._read_receipt(label, block, getattr(blocks, label.value), actor)
            for label, block in stored.items()
        )
        found = ReadResult(blocks, MappingProxyType(stored), (*restored, *retrieved))
        if self._limits.rotation_enabled and len(blocks.conversation_history.turns) >= MAX_TURNS:
            # The history filled up while rotation was off. It has no room for a turn, so rotate now.
            written = self.write(store, conversation, found, blocks, actor=actor)
            return ReadResult(written.blocks, written.stored, (*found.receipts, *written.receipts))
        return found

    def view(
        self,
        store: BlockStore,
        conversation: Conversation,
        *,
        actor: str,
        labels: Collection[Label] = tuple(Label),
        revision: int | None = None,
        turn: int | None = None,
    ) -> BlockView:
        """Some blocks outside of a turn: the latest, or those of a revision, or those after a turn."""
        if revision is None and turn is None:
            found = self.read(store, conversation, actor=actor)
            receipts = (each for each in found.receipts if each.label in labels or each.quarantined)
            return BlockView({label: found.stored[label] for label in labels}, tuple(receipts))
        if turn is not None and (latest := _latest_turn(store, conversation)) < turn:
            raise BlockInvalid(Label.CONVERSATION_HISTORY, "turns", f"has none after turn {latest}")
        memory_ids = store.memory_ids(conversation.id)
        blocks = {}
        for label in labels:
            at = revision
            if turn is not None:
                at = store.revision_at_turn(conversation.id, label, turn)
            text = None if at is None else store.text_at(conversation.id, label, at)
            if at is None or text is None:
                raise BlockInvalid(label, "$", "has no such revision, or it is not what was written")
            blocks[label] = StoredBlock(text, at, trace.digest(text), memory_ids[label])
        return BlockView(blocks, self._unparsed_receipts(blocks, actor))

    def view_quarantined(
        self, store: BlockStore, conversation: Conversation, *, actor: str, ids: Collection[str] | None = None
    ) -> tuple[tuple[QuarantinedText, ...], tuple[Receipt, ...]]:
        """The texts in quarantine, all or those with these ids, with a receipt for each."""
        texts = store.quarantined_texts(conversation.id)
        found = tuple(each for each in texts if ids is None or each.id in ids)
        stored = self._load(store, conversation)
        return found, tuple(
            trace.receipt(
                each.label,
                stored[each.label],
                Action.RETRIEVED,
                actor,
                trace_text.describe_quarantined(each.text, each.reason),
                self._limits,
                quarantined=each.id,
            )
            for each in found
        )

    def earlier_session(
        self, store: BlockStore, conversation: Conversation, *, actor: str
    ) -> tuple[EarlierSession, Receipt] | None:
        """A conversation in one line, for a later one of the same person.

        None if it had no turn, or if its active_session is not valid; the latter is repaired when that
        conversation itself is read.
        """
        stored = store.load(conversation.id).get(Label.ACTIVE_SESSION)
        if stored is None:
            return None
        try:
            session = cast(ActiveSession, repair.parse_stored(Label.ACTIVE_SESSION, stored, conversation))
        except BlockInvalid:
            return None
        return edits.as_earlier(session), self._read_receipt(Label.ACTIVE_SESSION, stored, session, actor)

    def examine(
        self, store: BlockStore, conversation: Conversation, *, actor: str
    ) -> tuple[tuple[agreement.Departure, ...], tuple[Receipt, ...]]:
        """Every rule that the blocks break. Changes nothing."""
        stored = self._load(store, conversation)
        found = [
            (label, *departure)
            for label, block in stored.items()
            for departure in repair.departures(label, block, self._limits)
        ]
        if not found:
            blocks = from_texts({label: block.text for label, block in stored.items()})
            found.extend(agreement.wrong_owners(blocks, conversation))
            found.extend(agreement.departures(blocks, self._limits, self._agent_types))
        return tuple(found), self._unparsed_receipts(stored, actor)

    def fact_changes(
        self, store: BlockStore, conversation: Conversation, blocks: Blocks
    ) -> tuple[FactChange, ...]:
        """All changes to the facts. A block from before changes were stored is converted into changes."""
        return tuple(store.fact_changes(conversation.id)) or changes_in(blocks.active_session)

    # --- writing ------------------------------------------------------------------------------------------

    def write(
        self,
        store: BlockStore,
        conversation: Conversation,
        before: ReadResult,
        blocks: Blocks,
        *,
        actor: str,
        turn: int | None = None,
        changes: Sequence[FactChange] = (),
        known: Sequence[FactChange] = (),
        by_hand: bool = False,
    ) -> WriteResult:
        """Rotate, check and commit the blocks that differ from `before`. If one is refused, none is written.

        `changes` are appended to the changes of the facts, and the facts in the blocks are the view of all of
        them. `known` are the first of the stored changes, as far as the caller has read them; the others are
        read here. `by_hand` rotates even if rotation is not due.
        """
        made = (*known, *store.fact_changes(conversation.id, after=len(known)))
        new = tuple(changes) if made else (*_older_changes(before.blocks, blocks, changes), *changes)
        blocks = edits.with_facts(blocks, current_facts((*made, *new)), self._limits)
        rotation = self._rotate(store, conversation, blocks, by_hand=by_hand)
        blocks = edits.after_rotation(blocks, rotation, self._clock.now(), self._limits)
        self._check(conversation, blocks, before.blocks)
        texts = {label: render(label, blocks) for label in Label}
        writes = [
            next_revision(label, block, texts[label], actor, turn)
            for label, block in before.stored.items()
            if block.revision == 0 or block.text != texts[label]
        ]
        archived = [
            *_archived(rotation.rotated_out, has_left=True),
            *_archived(rotation.overflow, has_left=False),
        ]
        memory_ids = store.commit(conversation.id, writes, archived) if writes or archived else {}
        if new:
            store.add_fact_changes(conversation.id, new)
        self._delete_old_revisions(store, conversation, writes)
        stored = dict(before.stored)
        for write in writes:
            stored[write.label] = stored_after(write, memory_ids[write.label])
        return WriteResult(
            blocks=blocks,
            stored=MappingProxyType(stored),
            receipts=tuple(
                self._write_receipt(write, stored[write.label], before.blocks, blocks, rotation)
                for write in writes
            ),
            rotated_out=tuple(turn.turn_id for turn in rotation.rotated_out),
        )

    def rotate(self, store: BlockStore, conversation: Conversation, *, actor: str) -> WriteResult:
        """Rotate by hand, whether or not rotation is due or switched on. Only the protected turns stay."""
        found = self.read(store, conversation, actor=actor)
        if not found.revisions[Label.CONVERSATION_HISTORY]:  # only a turn writes the first revision
            return WriteResult(found.blocks, found.stored, found.receipts, ())
        written = self.write(store, conversation, found, found.blocks, actor=actor, by_hand=True)
        return replace(written, receipts=(*found.receipts, *written.receipts))

    # --- helpers ------------------------------------------------------------------------------------------

    def _load(self, store: BlockStore, conversation: Conversation) -> dict[Label, StoredBlock]:
        """All four blocks; the empty block for each that is not stored yet."""
        stored = dict(store.load(conversation.id))
        if len(stored) < len(Label):
            blocks = edits.empty(conversation, self._limits)
            memory_ids = store.memory_ids(conversation.id)
            for label in set(Label) - set(stored):
                text = render(label, blocks)
                stored[label] = StoredBlock(text, 0, trace.digest(text), memory_ids[label])
        return {label: stored[label] for label in Label}

    def _rotate(
        self, store: BlockStore, conversation: Conversation, blocks: Blocks, *, by_hand: bool
    ) -> Rotation:
        """Rotate the history if that is due. Shortened turns in it are first made whole again."""
        history, limits = blocks.conversation_history, self._limits
        if not limits.rotation_enabled and not by_hand:
            size = len(history.text)
            return Rotation(history, (), (), level(size, limits.of(Label.CONVERSATION_HISTORY), limits))
        rotation = rotate(history, limits, by_hand=by_hand)
        if rotation.happened and (texts := store.shortened_turns(conversation.id)):
            whole = {turn_id: Turn.model_validate_json(text) for turn_id, text in texts.items()}
            same = {turn.turn_id: whole[turn.turn_id] for turn in history.turns if _has_whole(turn, whole)}
            rotation = rotate(history, limits, same, by_hand=by_hand)
        return rotation

    def _check(self, conversation: Conversation, blocks: Blocks, before: Blocks) -> None:
        """Refuse blocks that break a rule. Agents that are no longer configured stay valid if in `before`."""
        for label in Label:
            size, most = len(render(label, blocks)), self._limits.of(label)
            if size > most:
                raise BlockTooLarge(label, size, most)
        for label, path, rule in agreement.wrong_owners(blocks, conversation):
            raise BlockInvalid(label, path, rule)
        if self._limits.validation_enabled:
            agents = self._agent_types and self._agent_types | agreement.agents_in(before)
            for label, path, rule in agreement.departures(blocks, self._limits, agents):
                raise BlockInvalid(label, path, rule)

    def _delete_old_revisions(
        self, store: BlockStore, conversation: Conversation, writes: Iterable[BlockWrite]
    ) -> None:
        keep = self._limits.revisions_kept
        for write in writes:
            if keep and write.revision > keep:
                store.delete_revisions(conversation.id, write.label, write.revision - keep + 1)

    def _unparsed_receipts(self, stored: Mapping[Label, StoredBlock], actor: str) -> tuple[Receipt, ...]:
        """Receipts for texts that were read without being parsed, valid or not."""
        return tuple(
            self._read_receipt(label, block, repair.parse_if_valid(label, block.text), actor)
            for label, block in stored.items()
        )

    def _read_receipt(
        self, label: Label, stored: StoredBlock, block: Model | str | None, actor: str
    ) -> Receipt:
        """`block` is None if the text is not a valid block."""
        full = utilization(len(stored.text), self._limits.of(label))
        line = (
            trace_text.describe_invalid(stored.text)
            if block is None
            else trace_text.describe_read(block, full)
        )
        return trace.receipt(label, stored, Action.RETRIEVED, actor, line, self._limits)

    def _write_receipt(
        self, write: BlockWrite, stored: StoredBlock, before: Blocks, after: Blocks, rotation: Rotation
    ) -> Receipt:
        """For the history, `level` is the one before rotation, which caused it."""
        label = write.label
        changed = changed_paths(label, before, after)
        line = trace_text.describe_write(
            getattr(before, label.value),
            getattr(after, label.value),
            changed,
            shortened=(turn.turn_id for turn in rotation.overflow),
        )
        action = Action.STORED if write.revision == 1 else Action.UPDATED
        made = trace.receipt(label, stored, action, write.actor, line, self._limits, changed=changed)
        return replace(made, level=rotation.level) if label is Label.CONVERSATION_HISTORY else made


def _older_changes(before: Blocks, after: Blocks, changes: Sequence[FactChange]) -> tuple[FactChange, ...]:
    """The changes that the facts of older blocks amount to."""
    is_older = changes or before.active_session.facts
    return changes_in((before if is_older else after).active_session)


def _latest_turn(store: BlockStore, conversation: Conversation) -> int:
    """The latest turn that was written, according to the revisions."""
    revisions = store.revisions(conversation.id, Label.CONVERSATION_HISTORY)
    return max((each.turn for each in revisions if each.turn), default=0)


def _archived(turns: Iterable[Turn], *, has_left: bool) -> list[ArchivedTurn]:
    texts = [(turn.turn_id, turn.text) for turn in turns]
    return [ArchivedTurn(turn_id, text, trace.digest(text), has_left) for turn_id, text in texts]


def _has_whole(turn: Turn, whole: Mapping[int, Turn]) -> bool:
    """Whether `whole` has this turn, and not another one that it replaced under the same id."""
    kept = whole.get(turn.turn_id)
    if kept is None or kept.user_message.message_id != turn.user_message.message_id:
        return False
    answers = (kept.agent_response, turn.agent_response)
    return (answers[0] and answers[0].response_id) == (answers[1] and answers[1].response_id)
