"""The one door to the blocks: whoever reads or writes them does it here and gets receipts."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from memory_blocks import agreement, edits, trace
from memory_blocks.diff import changed_paths
from memory_blocks.errors import BlockInvalid, BlockTooLarge
from memory_blocks.limits import DEFAULTS, Limits, level, utilization
from memory_blocks.models import (
    SCHEMA_VERSION,
    Blocks,
    Conversation,
    Label,
    Level,
    Turn,
    from_texts,
    render,
)
from memory_blocks.ports import ArchivedTurn, BlockStore, BlockWrite, Clock, StoredBlock
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

    def read(self, store: BlockStore, conversation: Conversation, *, actor: str) -> Reading:
        """The four blocks and their four receipts. What is not stored yet is revision 0."""
        stored = dict(store.load(conversation.id))
        if len(stored) < len(Label):
            blocks = edits.empty(conversation, self._limits)
            memory_ids = store.memory_ids(conversation.id)
            for label in set(Label) - set(stored):
                text = render(label, blocks)
                stored[label] = StoredBlock(text, 0, trace.digest(text), memory_ids[label])
        return Reading(
            blocks=from_texts({label: stored[label].text for label in Label}),
            stored=MappingProxyType({label: stored[label] for label in Label}),
            receipts=tuple(self._receipt(label, stored[label], Action.RETRIEVED, actor) for label in Label),
        )

    def write(
        self,
        store: BlockStore,
        conversation: Conversation,
        reading: Reading,
        blocks: Blocks,
        *,
        actor: str,
        turn: int | None = None,
    ) -> Written:
        """Rotate, check and commit what differs from `reading`; nothing is written if anything is refused."""
        rotation = self._rotated(store, conversation, blocks)
        blocks = edits.after_rotation(blocks, rotation, self._clock.now(), self._limits)
        self._check(conversation, blocks)
        texts = {label: render(label, blocks) for label in Label}
        writes = [
            BlockWrite(
                label=label,
                text=texts[label],
                digest=trace.digest(texts[label]),
                previous_revision=before.revision,
                revision=before.revision + 1,
                actor=actor,
                turn=turn,
                schema_version=SCHEMA_VERSION,
            )
            for label, before in reading.stored.items()
            if before.revision == 0 or before.text != texts[label]
        ]
        archived = [
            *_archived(rotation.rotated_out, left=True),
            *_archived(rotation.overflow, left=False),
        ]
        memory_ids = store.commit(conversation.id, writes, archived) if writes or archived else {}
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

    def _rotated(self, store: BlockStore, conversation: Conversation, blocks: Blocks) -> Rotation:
        """What rotation makes of the history; turns that stand shortened in it are first made whole."""
        history, limits = blocks.conversation_history, self._limits
        if not limits.rotation_enabled:
            size = len(history.text)
            return Rotation(history, (), (), level(size, limits.of(Label.CONVERSATION_HISTORY), limits))
        rotation = rotate(history, limits)
        if rotation.happened and (held := store.held(conversation.id)):
            whole = {turn_id: Turn.model_validate_json(text) for turn_id, text in held.items()}
            same = {turn.turn_id: whole[turn.turn_id] for turn in history.turns if _same(turn, whole)}
            rotation = rotate(history, limits, same)
        return rotation

    def _check(self, conversation: Conversation, blocks: Blocks) -> None:
        for label in Label:
            size, most = len(render(label, blocks)), self._limits.of(label)
            if size > most:
                raise BlockTooLarge(label, size, most)
        if blocks.conversation_history.session_id != conversation.id:
            raise BlockInvalid(Label.CONVERSATION_HISTORY, "session_id", "is that of another conversation")
        if self._limits.validation_enabled:
            for label, path, rule in agreement.departures(blocks, self._limits, self._agent_types):
                raise BlockInvalid(label, path, rule)

    def _receipt(
        self,
        label: Label,
        block: StoredBlock,
        action: Action,
        actor: str,
        *,
        changed: tuple[str, ...] = (),
        before_rotation: Level | None = None,
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
        )


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
