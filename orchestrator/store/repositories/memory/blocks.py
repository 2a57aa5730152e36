"""Memory blocks, their revisions, turns archived from them, and invalid texts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, and_, bindparam, delete, false, func, select, true

from memory_blocks.trace import digest as text_digest
from orchestrator.errors import CONSTRAINT, STALE_REVISION, AnamnesisError
from orchestrator.store.engine.packing import WHOLE_EVERY, pack, unpacked
from orchestrator.store.engine.statements import Statement, all_of, columns_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.conversation.conversations import Conversations
from orchestrator.store.repositories.memory.facts import Facts
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK, Memories, NewMemory
from orchestrator.store.rows import LABELS, ArchivedTurn, Block, BlockRevision, Conversation, Quarantined

_blocks, _revisions = Block.table, BlockRevision.table
_archive, _conversations = ArchivedTurn.table, Conversation.table
_conversation_id: BindParameter[str] = bindparam("conversation_id")
_label: BindParameter[str] = bindparam("label")
# Taken from the revision, because a program that changes a block directly may change its digest, too.
_written_digest = (
    select(_revisions.c.digest)
    .where(
        _revisions.c.conversation_id == _blocks.c.conversation_id,
        _revisions.c.label == _blocks.c.label,
        _revisions.c.revision == _blocks.c.revision,
    )
    .scalar_subquery()
)
_LOAD = Statement(
    select(*(_written_digest if column.name == "digest" else column for column in columns_of(Block))).where(
        _blocks.c.conversation_id == _conversation_id, _blocks.c.revision.is_not(None)
    ),
    Block,
)
_MEMORY_IDS = Statement(
    select(_blocks.c.label, _blocks.c.memory_id).where(_blocks.c.conversation_id == _conversation_id),
    lambda label, memory_id: (label, memory_id),
)
_HEAD = Statement(
    select(_blocks.c.revision, _written_digest, _blocks.c.digest, _blocks.c.value)
    .where(_blocks.c.conversation_id == _conversation_id, _blocks.c.label == _label)
    .with_for_update(),
    lambda revision, written, digest, value: (revision or 0, written, digest, value or ""),
)
_of_label = (_revisions.c.conversation_id == _conversation_id, _revisions.c.label == _label)
_nearest_whole = (
    select(func.max(_revisions.c.revision))
    .where(*_of_label, _revisions.c.base.is_(None), _revisions.c.revision <= bindparam("revision"))
    .scalar_subquery()
)
_UP_TO = Statement(
    all_of(BlockRevision)
    .where(
        *_of_label,
        _revisions.c.revision <= bindparam("revision"),
        _revisions.c.revision >= _nearest_whole,
    )
    .order_by(_revisions.c.revision),
    BlockRevision,
)
_LATEST = Statement(
    select(_revisions.c.digest, _revisions.c.turn)
    .where(*_of_label)
    .order_by(_revisions.c.revision.desc())
    .limit(bindparam("most")),
    lambda digest, turn: (digest, turn),
)
_AT_TURN = Statement(
    select(func.max(_revisions.c.revision)).where(*_of_label, _revisions.c.turn <= bindparam("turn")),
    lambda revision: revision,
)
_FORGET = Statement(
    delete(_revisions).where(*_of_label, _revisions.c.revision < _nearest_whole),
    lambda: None,
)
_left = _archive.alias()
_last_left = select(func.max(_left.c.turn_id)).where(
    _left.c.conversation_id == _conversation_id, _left.c.has_left.is_(true())
)
_LAST_LEFT = Statement(_last_left, lambda turn_id: turn_id or 0)
_ARCHIVED = Statement(
    all_of(ArchivedTurn)
    .where(_archive.c.conversation_id == _conversation_id, _archive.c.has_left.is_(true()))
    .order_by(_archive.c.turn_id),
    ArchivedTurn,
)
_HELD = Statement(  # turns leave in order, so those still in the block come after all that have left
    all_of(ArchivedTurn)
    .where(
        _archive.c.conversation_id == _conversation_id,
        _archive.c.has_left.is_(false()),
        _archive.c.turn_id > func.coalesce(_last_left.scalar_subquery(), 0),
    )
    .order_by(_archive.c.turn_id),
    ArchivedTurn,
)
_SESSIONS_DUE = Statement(
    select(_blocks.c.conversation_id, _blocks.c.revision)
    .join(_conversations, _conversations.c.id == _blocks.c.conversation_id)
    .join(
        _revisions,
        and_(
            _revisions.c.conversation_id == _blocks.c.conversation_id,
            _revisions.c.label == _blocks.c.label,
            _revisions.c.revision == _blocks.c.revision,
        ),
    )
    .where(
        _conversations.c.status == bindparam("status"),
        _conversations.c.updated_at > bindparam("after", type_=_conversations.c.updated_at.type),
        _conversations.c.updated_at <= bindparam("until", type_=_conversations.c.updated_at.type),
        _conversations.c.deleted_at.is_(None),
        _blocks.c.label == "active_session",
        _revisions.c.actor != bindparam("actor"),
        _revisions.c.actor != bindparam("former_actor"),
    )
    .order_by(_conversations.c.updated_at),
    lambda conversation_id, revision: (conversation_id, revision),
)


class Blocks:
    """The tables `blocks`, `block_revisions`, `archived_turns` and `block_quarantine`.

    `facts` is the table of changes to facts, of which active_session shows the result.
    """

    def __init__(self, unit: Unit, conversations: Conversations, memories: Memories, facts: Facts) -> None:
        self._unit, self._conversations, self._memories, self.facts = unit, conversations, memories, facts

    def load(self, conversation_id: str) -> dict[str, Block]:
        """The blocks that have been written, by label."""
        return {block.label: block for block in self._unit.all(_LOAD, conversation_id=conversation_id)}

    def memory_ids(self, conversation_id: str) -> Mapping[str, str]:
        """The memory id of each block, which traces use; created the first time."""
        known = dict(self._unit.all(_MEMORY_IDS, conversation_id=conversation_id))
        if len(known) == len(LABELS):
            return known
        owner = self._conversations.lock(conversation_id).user_id
        known = dict(self._unit.all(_MEMORY_IDS, conversation_id=conversation_id))
        for label in LABELS:
            if label not in known:
                memory = self._memories.add(
                    NewMemory(
                        content="",
                        user_id=owner,
                        title=label,
                        source_type=MEMORY_BLOCK,
                        source_info={"conversation_id": conversation_id, "label": label},
                    )
                )
                empty = Block(conversation_id, label, memory.id, None, None, None, None, self._unit.now)
                self._unit.insert(empty)
                known[label] = memory.id
        return known

    def commit(
        self,
        conversation_id: str,
        label: str,
        value: str,
        *,
        expected: int,
        digest: str,
        actor: str,
        turn: int | None,
        schema_version: str,
        restores: bool = False,
    ) -> BlockRevision:
        """Write the revision after `expected` (0 if there is none); raises if another one came first.

        Also raises if the stored text was changed from outside, unless this write `restores` it.
        """
        head = self._unit.first(_HEAD, conversation_id=conversation_id, label=label)
        if head is None:
            self.memory_ids(conversation_id)
            head = self._unit.first(_HEAD, conversation_id=conversation_id, label=label)
        stored, written_digest, stored_digest, before = head or (0, None, None, "")
        intact = stored == 0 or text_digest(before) == written_digest
        if stored != expected or not (intact or restores):
            raise AnamnesisError(STALE_REVISION, label=label, stored=stored, yours=expected)
        whole = stored % WHOLE_EVERY == 0 or not intact
        written = BlockRevision(
            conversation_id=conversation_id,
            label=label,
            revision=stored + 1,
            base=None if whole else stored,
            packed=pack(value, "" if whole else before),
            size=len(value),
            digest=digest,
            previous_digest=written_digest or stored_digest,  # the revision may have been deleted
            actor=actor,
            turn=turn,
            schema_version=schema_version,
            created_at=self._unit.now,
        )
        self._unit.insert(written)
        new = {"revision": stored + 1, "digest": digest, "value": value, "schema_version": schema_version}
        self._unit.change(Block, {"conversation_id": conversation_id, "label": label}, **new)
        return written

    def revisions(self, conversation_id: str, label: str) -> list[BlockRevision]:
        """All revisions of a block, oldest first."""
        return self._unit.find(BlockRevision, "revision", conversation_id=conversation_id, label=label)

    def latest_revisions(self, conversation_id: str, label: str, most: int) -> list[tuple[str, int | None]]:
        """Digest and turn of a block's latest revisions, newest first. An edit has no turn."""
        return self._unit.all(_LATEST, conversation_id=conversation_id, label=label, most=most)

    def text_at(self, conversation_id: str, label: str, revision: int) -> str | None:
        """The text of a revision; None if there is none or it does not match its digest."""
        rows = self._unit.all(_UP_TO, conversation_id=conversation_id, label=label, revision=revision)
        return {each.revision: text for each, text in unpacked(rows)}.get(revision)

    def revision_at_turn(self, conversation_id: str, label: str, turn: int) -> int | None:
        """The revision that was current after that turn."""
        return self._unit.first(_AT_TURN, conversation_id=conversation_id, label=label, turn=turn)

    def forget(self, conversation_id: str, label: str, before: int) -> int:
        """Delete revisions before that one, as far as it does not need them; returns how many."""
        return self._unit.run(_FORGET, conversation_id=conversation_id, label=label, revision=before)

    def archive(
        self, conversation_id: str, turn_id: int, value: str, *, digest: str, has_left: bool = True
    ) -> None:
        """Store the whole text of a turn. It can be replaced until the turn has left its block."""
        which: dict[str, Any] = {"conversation_id": conversation_id, "turn_id": turn_id}
        turn = ArchivedTurn(conversation_id, turn_id, value, digest, has_left, self._unit.now)
        if self._unit.find_one(ArchivedTurn, **which) is None:
            self._unit.insert(turn)
        elif not self._unit.change(
            ArchivedTurn,
            {**which, "has_left": False},
            value=value,
            digest=digest,
            has_left=has_left,
            archived_at=self._unit.now,
        ):
            raise AnamnesisError(CONSTRAINT, rule="a turn leaves its block only once")

    def archived(self, conversation_id: str) -> list[ArchivedTurn]:
        """The turns that have left their block, in order."""
        return self._unit.all(_ARCHIVED, conversation_id=conversation_id)

    def last_left(self, conversation_id: str) -> int:
        """The id of the latest turn that has left its block; 0 if none has."""
        return self._unit.first(_LAST_LEFT, conversation_id=conversation_id) or 0

    def held(self, conversation_id: str) -> dict[int, str]:
        """The whole texts of turns that the block has shortened, by turn id."""
        turns = self._unit.all(_HELD, conversation_id=conversation_id)
        return {turn.turn_id: turn.value for turn in turns}

    def sessions_due(
        self, status: str, after: datetime, until: datetime, *, not_by: tuple[str, str]
    ) -> list[tuple[str, int]]:
        """Conversations with that status, changed in that period, whose session another actor wrote last.

        `not_by` is the name of the actor and its name in older versions. Each conversation comes with the
        revision of its session block.
        """
        actor, former = not_by
        return self._unit.all(
            _SESSIONS_DUE, status=status, after=after, until=until, actor=actor, former_actor=former
        )

    def quarantine(
        self, conversation_id: str, label: str, value: str, *, reason: str, actor: str
    ) -> Quarantined:
        """Store an invalid text for inspection."""
        stored = Quarantined(
            self._unit.ids.new("quar_"), conversation_id, label, value, reason, actor, self._unit.now
        )
        self._unit.insert(stored)
        return stored

    def quarantined(self, conversation_id: str) -> list[Quarantined]:
        """The invalid texts of a conversation, oldest first."""
        return self._unit.find(Quarantined, "created_at", "id", conversation_id=conversation_id)
