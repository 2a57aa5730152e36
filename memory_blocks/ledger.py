"""The one door to the blocks: whoever reads or writes them does it here and gets receipts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from memory_blocks import agreement, edits, schema, summary_text, trace
from memory_blocks.diff import changed_paths
from memory_blocks.errors import BlockError, BlockInvalid, BlockTooLarge
from memory_blocks.limits import DEFAULTS, Limits, level, utilization
from memory_blocks.merging import merge
from memory_blocks.models import (
    MOST_TURNS,
    SCHEMA_VERSION,
    ActiveSession,
    Blocks,
    Conversation,
    EarlierSession,
    Label,
    Level,
    MemoryMetadata,
    Model,
    Turn,
    from_texts,
    parse,
    render,
)
from memory_blocks.ports import (
    ArchivedTurn,
    BlockStore,
    BlockWrite,
    Clock,
    ForeignChange,
    Revision,
    SetAside,
    StoredBlock,
)
from memory_blocks.rotation import Rotation, rotate
from memory_blocks.trace import Action, Receipt


@dataclass(frozen=True, slots=True)
class Reading:
    """The blocks as they stand, the revisions they have, and a receipt for each that was touched."""

    blocks: Blocks
    stored: Mapping[Label, StoredBlock]
    receipts: tuple[Receipt, ...]

    @property
    def revisions(self) -> Mapping[Label, int]:
        """The revision of each block; 0 before the first turn."""
        return {label: block.revision for label, block in self.stored.items()}


@dataclass(frozen=True, slots=True)
class Written(Reading):
    """The blocks as they were written, which rotation may have made shorter than what was asked for."""

    rotated_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """Some blocks as they stand or stood, for somebody who looks, with a receipt for each."""

    blocks: Mapping[Label, StoredBlock]
    receipts: tuple[Receipt, ...]


class Ledger:
    """Reads and writes a conversation's four blocks through a store that is bound to a transaction."""

    def __init__(
        self,
        clock: Clock,
        limits: Limits = DEFAULTS,
        agent_types: Set[str] | None = None,
        snippet: int = trace.SNIPPET,
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._agent_types = agent_types
        self._snippet = snippet

    @property
    def limits(self) -> Limits:
        """The limits it keeps, for whoever prepares the next version."""
        return self._limits

    @property
    def snippet(self) -> int:
        """How many characters of a memory its trace shows."""
        return self._snippet

    def read(self, store: BlockStore, conversation: Conversation, *, actor: str) -> Reading:
        """The four blocks and their four receipts. What is not stored yet is revision 0.

        A block that cannot stand is put into quarantine, the last one that can takes its place, and both
        are in the receipts: whoever reads goes on with blocks that agree.
        """
        stored = self._stored(store, conversation)
        standing, faults = _standing(stored, conversation)
        if standing is not None:
            faults = self._disagreements(store, conversation, standing)
        restored: tuple[Receipt, ...] = ()
        if standing is None or faults:
            stored, restored = self._restore(store, conversation, stored, faults, actor)
            standing = from_texts({label: block.text for label, block in stored.items()})
        reading = Reading(
            blocks=standing,
            stored=MappingProxyType(stored),
            receipts=(*restored, *self._retrieved(stored, actor)),
        )
        if self._limits.rotation_enabled and len(standing.conversation_history.turns) >= MOST_TURNS:
            # It filled up while rotation was switched off: without room for a turn, none would ever rotate.
            written = self.write(store, conversation, reading, standing, actor=actor)
            return Reading(written.blocks, written.stored, (*reading.receipts, *written.receipts))
        return reading

    def earlier(
        self, store: BlockStore, conversation: Conversation, *, actor: str
    ) -> tuple[EarlierSession, Receipt] | None:
        """A conversation in one line, for a later one of the same person; None when it has had no turn.

        One whose session cannot stand is passed over, too: it is put right when it is read for itself.
        """
        block = store.load(conversation.id).get(Label.ACTIVE_SESSION)
        if block is None:
            return None
        try:
            _stands(Label.ACTIVE_SESSION, block, conversation)
        except BlockInvalid:
            return None
        session = ActiveSession.model_validate_json(block.text)
        return edits.as_earlier(session), self._receipt(Label.ACTIVE_SESSION, block, Action.RETRIEVED, actor)

    def look(
        self,
        store: BlockStore,
        conversation: Conversation,
        *,
        actor: str,
        labels: Collection[Label] = tuple(Label),
        revision: int | None = None,
        turn: int | None = None,
    ) -> Looked:
        """Blocks as they stand, or stood at a revision or after a turn, for somebody outside of a turn."""
        if revision is None and turn is None:
            reading = self.read(store, conversation, actor=actor)
            receipts = (each for each in reading.receipts if each.label in labels or each.quarantined)
            return Looked({label: reading.stored[label] for label in labels}, tuple(receipts))
        if turn is not None and (latest := self._latest_turn(store, conversation)) < turn:
            raise BlockInvalid(Label.CONVERSATION_HISTORY, "turns", f"has none after turn {latest}")
        memory_ids = store.memory_ids(conversation.id)
        found = {}
        for label in labels:
            at = revision
            if turn is not None:
                at = store.revision_at_turn(conversation.id, label, turn)
            text = None if at is None else store.text_at(conversation.id, label, at)
            if at is None or text is None:
                raise BlockInvalid(label, "$", "has no such revision, or it is not what was written")
            found[label] = StoredBlock(text, at, trace.digest(text), memory_ids[label])
        return Looked(found, self._retrieved(found, actor))

    def look_aside(
        self, store: BlockStore, conversation: Conversation, *, actor: str, ids: Collection[str] | None = None
    ) -> tuple[tuple[SetAside, ...], tuple[Receipt, ...]]:
        """What could not stand, all of it or what has these ids, with a receipt for each."""
        found = tuple(each for each in store.set_aside(conversation.id) if ids is None or each.id in ids)
        stored = self._stored(store, conversation)
        return found, tuple(
            self._receipt(each.label, stored[each.label], Action.RETRIEVED, actor, quarantined=each.id)
            for each in found
        )

    def examine(
        self, store: BlockStore, conversation: Conversation, *, actor: str
    ) -> tuple[tuple[agreement.Departure, ...], tuple[Receipt, ...]]:
        """Everything in which the blocks depart from what they must be. Nothing is changed by looking."""
        stored = self._stored(store, conversation)
        found = [
            (label, *departure)
            for label, block in stored.items()
            for departure in self._departures(label, block)
        ]
        if not found:
            blocks = from_texts({label: block.text for label, block in stored.items()})
            found.extend(_of_another(blocks, conversation))
            found.extend(agreement.departures(blocks, self._limits, self._agent_types))
        return tuple(found), self._retrieved(stored, actor)

    def adopt(
        self, store: BlockStore, conversation: Conversation, changes: Iterable[ForeignChange]
    ) -> Reading:
        """Take over what was changed in a mirror, each as a revision of whoever did it, where it can stand.

        What cannot is put into quarantine; showing the mirror the returned blocks then undoes it there.
        One edit lets us write other blocks anew, too, so each is held to what stood before the first; one
        that is seen only later is brought upon what stands since.
        """
        reading = self.read(store, conversation, actor="mirror")
        upon = {label: block.digest for label, block in reading.stored.items()}
        receipts = [each for each in reading.receipts if each.action is not Action.RETRIEVED]
        for change in sorted(changes, key=lambda each: _WRITTEN_ANEW_LAST.index(each.label)):
            if change.text == reading.stored[change.label].text:
                continue
            try:
                current = change
                if change.digest != upon[change.label]:
                    current = self._brought_forward(store, conversation, reading, change)
                blocks = self._with(reading, current)
                adopted = self.write(store, conversation, reading, blocks, actor=change.actor)
            except BlockError as refused:
                why = f"{refused.facts.get('path', '$')}: {refused.facts.get('rule', refused.name)}"
                kept = store.quarantine(
                    conversation.id, change.label, _storable(change.text), reason=why, actor=change.actor
                )
                block = reading.stored[change.label]
                receipts.append(
                    self._receipt(change.label, block, Action.RETRIEVED, change.actor, quarantined=kept)
                )
            else:
                receipts.extend(adopted.receipts)
                reading = adopted
                upon[change.label] = adopted.stored[change.label].digest
        return Reading(reading.blocks, reading.stored, tuple(receipts))

    def _brought_forward(
        self, store: BlockStore, conversation: Conversation, reading: Reading, change: ForeignChange
    ) -> ForeignChange:
        """A valid edit of an earlier text, upon the one that stands; `BlockInvalid` if a turn wrote since."""
        label = change.label
        for path, rule in schema.departures(label, change.text, self._limits):
            raise BlockInvalid(label, path, rule)
        later: list[Revision] = []
        for revision in reversed(store.revisions(conversation.id, label)):
            if revision.digest == change.digest:
                break
            later.append(revision)
        else:
            raise BlockInvalid(label, "$", _UPON_ANOTHER)
        base = store.text_at(conversation.id, label, revision.revision)
        if base is None or any(each.turn is not None for each in later):
            raise BlockInvalid(label, "$", _UPON_ANOTHER)
        text = merge(label, base, change.text, reading.stored[label].text)
        if text is None:
            raise BlockInvalid(label, "$", _UPON_ANOTHER)
        return replace(change, text=text)

    def _with(self, reading: Reading, change: ForeignChange) -> Blocks:
        """The blocks with a change from outside in them, or `BlockInvalid`."""
        label, text, blocks = change.label, change.text, reading.blocks
        for path, rule in schema.departures(label, text, self._limits):
            raise BlockInvalid(label, path, rule)
        block = parse(label, text)
        if isinstance(block, MemoryMetadata) and block.system_flags != blocks.memory_metadata.system_flags:
            raise BlockInvalid(label, "system_flags", "is not for others to change")
        texts = {each: stored.text for each, stored in reading.stored.items()} | {label: text}
        if isinstance(block, str) and block:
            texts[label] = summary_text.render(summary_text.parse(block), self._limits.of(label))
        changed = from_texts(texts)
        if isinstance(block, ActiveSession):
            changed = edits.with_summary_of(changed, self._limits)
        return edits.refresh(changed, self._limits)

    def rotate(self, store: BlockStore, conversation: Conversation, *, actor: str) -> Written:
        """Rotate by hand, whether or not it is due, switched on or off; only the protected turns stay."""
        reading = self.read(store, conversation, actor=actor)
        if not reading.revisions[Label.CONVERSATION_HISTORY]:  # only a turn writes the first revision
            return Written(reading.blocks, reading.stored, reading.receipts, ())
        written = self.write(store, conversation, reading, reading.blocks, actor=actor, by_hand=True)
        return replace(written, receipts=(*reading.receipts, *written.receipts))

    def write(
        self,
        store: BlockStore,
        conversation: Conversation,
        reading: Reading,
        blocks: Blocks,
        *,
        actor: str,
        turn: int | None = None,
        by_hand: bool = False,
    ) -> Written:
        """Rotate, check and commit what differs from `reading`; nothing is written if anything is refused.

        What is rotated by hand is so whether or not that is due.
        """
        rotation = self._rotated(store, conversation, blocks, by_hand=by_hand)
        blocks = edits.after_rotation(blocks, rotation, self._clock.now(), self._limits)
        self._check(conversation, blocks, reading.blocks)
        texts = {label: render(label, blocks) for label in Label}
        writes = [
            self._next(label, before, texts[label], actor, turn)
            for label, before in reading.stored.items()
            if before.revision == 0 or before.text != texts[label]
        ]
        archived = [
            *_archived(rotation.rotated_out, left=True),
            *_archived(rotation.overflow, left=False),
        ]
        memory_ids = store.commit(conversation.id, writes, archived) if writes or archived else {}
        self._forget(store, conversation, writes)
        stored = dict(reading.stored)
        receipts = []
        for write in writes:
            stored[write.label] = StoredBlock(
                write.text, write.revision, write.digest, memory_ids[write.label]
            )
            receipts.append(
                self._receipt(
                    write.label,
                    stored[write.label],
                    Action.STORED if write.revision == 1 else Action.UPDATED,
                    actor,
                    changed=changed_paths(write.label, reading.blocks, blocks),
                    before_rotation=rotation.level,
                )
            )
        return Written(
            blocks=blocks,
            stored=MappingProxyType(stored),
            receipts=tuple(receipts),
            rotated_out=tuple(turn.turn_id for turn in rotation.rotated_out),
        )

    def _stored(self, store: BlockStore, conversation: Conversation) -> dict[Label, StoredBlock]:
        """All four, the empty one in place of what is not stored yet."""
        stored = dict(store.load(conversation.id))
        if len(stored) < len(Label):
            blocks = edits.empty(conversation, self._limits)
            memory_ids = store.memory_ids(conversation.id)
            for label in set(Label) - set(stored):
                text = render(label, blocks)
                stored[label] = StoredBlock(text, 0, trace.digest(text), memory_ids[label])
        return {label: stored[label] for label in Label}

    def _latest_turn(self, store: BlockStore, conversation: Conversation) -> int:
        """The latest turn that was written, whatever the block now says."""
        revisions = store.revisions(conversation.id, Label.CONVERSATION_HISTORY)
        return max((each.turn for each in revisions if each.turn), default=0)

    def _restore(
        self,
        store: BlockStore,
        conversation: Conversation,
        stored: Mapping[Label, StoredBlock],
        faults: Mapping[Label, str],
        actor: str,
    ) -> tuple[dict[Label, StoredBlock], tuple[Receipt, ...]]:
        """Keep what cannot stand, and write the last that can as a new revision that agrees with the rest."""
        empty = edits.empty(conversation, self._limits)
        kept = {
            label: store.quarantine(conversation.id, label, stored[label].text, reason=why, actor=actor)
            for label, why in faults.items()
        }
        valid = {
            label: self._last_valid(store, conversation, label, stored[label].text) or render(label, empty)
            if label in faults
            else stored[label].text
            for label in Label
        }
        blocks = edits.follow_history(from_texts(valid), store.last_left(conversation.id), self._limits)
        writes = [
            self._next(label, stored[label], text, actor, restores=label in faults)
            for label in Label
            if (text := render(label, blocks)) != stored[label].text or label in faults
        ]
        store.commit(conversation.id, writes, ())
        now = dict(stored)
        for write in writes:
            now[write.label] = StoredBlock(
                write.text, write.revision, write.digest, stored[write.label].memory_id
            )
        return now, tuple(
            self._receipt(
                write.label,
                now[write.label],
                Action.UPDATED,
                actor,
                changed=("$",),
                quarantined=kept.get(write.label),
            )
            for write in writes
        )

    def _disagreements(
        self, store: BlockStore, conversation: Conversation, blocks: Blocks
    ) -> dict[Label, str]:
        """Which blocks, each sound in itself, cannot stand beside the others, and why."""
        if not self._limits.validation_enabled:
            return {}
        found: dict[Label, str] = {}
        for label, path, rule in agreement.disagreements(blocks):
            found.setdefault(label, f"{path}: {rule}")
        history = blocks.conversation_history
        if found and history.total_turns - len(history.turns) != store.last_left(conversation.id):
            rule = "does not begin after the turns that are archived"
            return {Label.CONVERSATION_HISTORY: f"turns: {rule}"}
        return found

    def _last_valid(
        self, store: BlockStore, conversation: Conversation, label: Label, fault: str
    ) -> str | None:
        """The latest text that a block had before the one at fault, and that is one of this conversation."""
        for each in reversed(store.revisions(conversation.id, label)):
            text = store.text_at(conversation.id, label, each.revision)
            if text is not None and text != fault:
                try:
                    _understood(label, text, conversation)
                except BlockInvalid:
                    continue
                return text
        return None

    def _next(
        self,
        label: Label,
        before: StoredBlock,
        text: str,
        actor: str,
        turn: int | None = None,
        *,
        restores: bool = False,
    ) -> BlockWrite:
        return BlockWrite(
            label=label,
            text=text,
            digest=trace.digest(text),
            previous_revision=before.revision,
            revision=before.revision + 1,
            actor=actor,
            turn=turn,
            schema_version=SCHEMA_VERSION,
            restores=restores,
        )

    def _forget(self, store: BlockStore, conversation: Conversation, writes: Iterable[BlockWrite]) -> None:
        keep = self._limits.revisions_kept
        for write in writes:
            if keep and write.revision > keep:
                store.forget(conversation.id, write.label, write.revision - keep + 1)

    def _departures(self, label: Label, block: StoredBlock) -> Iterator[schema.Departure]:
        if trace.digest(block.text) != block.digest:
            yield "$", _NOT_AS_WRITTEN
        yield from schema.departures(label, block.text, self._limits)

    def _rotated(
        self, store: BlockStore, conversation: Conversation, blocks: Blocks, *, by_hand: bool
    ) -> Rotation:
        """What rotation makes of the history; turns that stand shortened in it are first made whole."""
        history, limits = blocks.conversation_history, self._limits
        if not limits.rotation_enabled and not by_hand:
            size = len(history.text)
            return Rotation(history, (), (), level(size, limits.of(Label.CONVERSATION_HISTORY), limits))
        rotation = rotate(history, limits, by_hand=by_hand)
        if rotation.happened and (held := store.held(conversation.id)):
            whole = {turn_id: Turn.model_validate_json(text) for turn_id, text in held.items()}
            same = {turn.turn_id: whole[turn.turn_id] for turn in history.turns if _same(turn, whole)}
            rotation = rotate(history, limits, same, by_hand=by_hand)
        return rotation

    def _check(self, conversation: Conversation, blocks: Blocks, before: Blocks) -> None:
        """Agents that have left the house since stay valid where they stood already."""
        for label in Label:
            size, most = len(render(label, blocks)), self._limits.of(label)
            if size > most:
                raise BlockTooLarge(label, size, most)
        for label, path, rule in _of_another(blocks, conversation):
            raise BlockInvalid(label, path, rule)
        if self._limits.validation_enabled:
            agents = self._agent_types and self._agent_types | agreement.agents_in(before)
            for label, path, rule in agreement.departures(blocks, self._limits, agents):
                raise BlockInvalid(label, path, rule)

    def _retrieved(self, stored: Mapping[Label, StoredBlock], actor: str) -> tuple[Receipt, ...]:
        return tuple(self._receipt(label, block, Action.RETRIEVED, actor) for label, block in stored.items())

    def _receipt(
        self,
        label: Label,
        block: StoredBlock,
        action: Action,
        actor: str,
        *,
        changed: tuple[str, ...] = (),
        before_rotation: Level | None = None,
        quarantined: str | None = None,
    ) -> Receipt:
        """A write of the history speaks of the level that made it rotate, not of the one it left."""
        size, limit = len(block.text), self._limits.of(label)
        now = level(size, limit, self._limits)
        return Receipt(
            label=label,
            memory_id=block.memory_id,
            action=action,
            actor=actor,
            revision=block.revision,
            size=size,
            limit=limit,
            utilization=utilization(size, limit),
            level=before_rotation if before_rotation and label is Label.CONVERSATION_HISTORY else now,
            digest=block.digest,
            changed=changed[: trace.MOST_PATHS],
            content=block.text[: self._snippet],
            truncated=len(block.text) > self._snippet,
            quarantined=quarantined,
        )


_NOT_AS_WRITTEN = "is not what was written"
_UPON_ANOTHER = "was changed upon a text that stands no more"
_WRITTEN_ANEW_LAST = (
    Label.CONTEXT_SUMMARY,
    Label.MEMORY_METADATA,
    Label.CONVERSATION_HISTORY,
    Label.ACTIVE_SESSION,  # writes the summary's header, and every one of them figures in the metadata
)


def _standing(
    stored: Mapping[Label, StoredBlock], conversation: Conversation
) -> tuple[Blocks | None, dict[Label, str]]:
    """The blocks, if each can stand by itself; and why some cannot, by path and rule."""
    values: dict[str, Any] = {}
    faults = {}
    for label, block in stored.items():
        try:
            values[label.value] = _stands(label, block, conversation)
        except BlockInvalid as refused:
            faults[label] = _why(refused)
    return None if faults else Blocks(**values), faults


def _stands(label: Label, block: StoredBlock, conversation: Conversation) -> Model | str:
    """What a stored block says; `BlockInvalid` where that is not what was written, or cannot be right."""
    if block.revision and trace.digest(block.text) != block.digest:
        raise BlockInvalid(label, "$", _NOT_AS_WRITTEN)
    return _understood(label, block.text, conversation)


def _understood(label: Label, text: str, conversation: Conversation) -> Model | str:
    """What a text says as a block of this conversation, or `BlockInvalid`."""
    block = _parsed(label, text)
    for path, rule in agreement.of_another(block, conversation):
        raise BlockInvalid(label, path, rule)
    return block


def _of_another(blocks: Blocks, conversation: Conversation) -> Iterator[agreement.Departure]:
    for label in Label:
        for path, rule in agreement.of_another(getattr(blocks, label.value), conversation):
            yield label, path, rule


def unreadable(label: Label, text: str) -> str | None:
    """Why a text is no block of its kind: the path and the rule; None when it is one."""
    try:
        _parsed(label, text)
    except BlockInvalid as refused:
        return _why(refused)
    return None


def _parsed(label: Label, text: str) -> Model | str:
    block = parse(label, text)
    if label is Label.CONTEXT_SUMMARY and text:
        summary_text.parse(text)
    return block


def _why(refused: BlockInvalid) -> str:
    return f"{refused.facts['path']}: {refused.facts['rule']}"


def _storable(text: str) -> str:
    """A text from elsewhere, with a sign for each character that no store of ours keeps."""
    return text.replace("\0", "\u2400").encode(errors="replace").decode()


def _archived(turns: Iterable[Turn], *, left: bool) -> list[ArchivedTurn]:
    texts = [(turn.turn_id, turn.text) for turn in turns]
    return [ArchivedTurn(turn_id, text, trace.digest(text), left) for turn_id, text in texts]


def _same(turn: Turn, whole: Mapping[int, Turn]) -> bool:
    """Whether the whole text kept beside the block is of this turn, not of one it replaced under its id."""
    kept = whole.get(turn.turn_id)
    if kept is None or kept.user_message.message_id != turn.user_message.message_id:
        return False
    answers = (kept.agent_response, turn.agent_response)
    return (answers[0] and answers[0].response_id) == (answers[1] and answers[1].response_id)
