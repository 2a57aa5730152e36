"""The memory blocks of a conversation as they are or were. Texts are read through the ledger, with a trace.

Looking never repairs, rotates or creates a block: the text of a revision is read as it was written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_blocks import edits, trace
from memory_blocks.diff import line_changes
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import level, utilization
from memory_blocks.models import Conversation, Label, render
from orchestrator.errors import REVISION_NOT_FOUND, TURN_NOT_FOUND, AnamnesisError
from orchestrator.inspection.looks import Look, block_errors, trace_receipts
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import RevisionEntry
from orchestrator.store.rows import BlockRevision
from orchestrator.store.rows import Conversation as ConversationRow
from orchestrator.turn.outbox import in_transaction
from orchestrator.turn.traces import of_block


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """How full a revision of a block is, and who wrote it. Revision 0 is the empty block, not yet stored."""

    label: str
    revision: int
    size: int
    limit: int
    utilization: float
    level: str
    digest: str
    written: RevisionEntry | None


@dataclass(frozen=True, slots=True)
class BlockText:
    """One revision of a block with its text."""

    facts: BlockFacts
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two revisions: `+`, `-` or `~`, and a line for people to read."""

    sign: str
    line: str


class BlockInspector:
    """Looks at the blocks of one conversation within one transaction."""

    def __init__(self, tx: Transaction, ledger: Ledger, conversation: ConversationRow, look: Look) -> None:
        self._tx, self._ledger, self._row, self._look = tx, ledger, conversation, look
        self._conversation = Conversation(conversation.id, conversation.user_id, conversation.created_at)

    def facts(self, *, turn: int | None = None) -> list[BlockFacts]:
        """Facts about all four blocks, now or after a turn. Shows no text and leaves no trace."""
        return [self._facts(label, self._revision(label, None, turn)) for label in Label]

    def text(self, label: Label, *, revision: int | None = None, turn: int | None = None) -> BlockText:
        """The text of a block: the current one, that of a revision, or that after a turn."""
        at = self._revision(label, revision, turn)
        facts = self._facts(label, at)
        if at == 0:
            return BlockText(facts, self._empty(label))
        with block_errors():
            view = self._ledger.view(
                SqlBlockStore(self._tx.blocks),
                self._conversation,
                actor=self._look.actor,
                labels=[label],
                revision=at,
            )
        trace_receipts(self._tx, self._row.id, self._look, view.receipts)
        return BlockText(facts, view.blocks[label].text)

    def diff(self, label: Label, first: int, second: int) -> list[Change]:
        """What differs between two revisions of a block."""
        old, new = self.text(label, revision=first), self.text(label, revision=second)
        return [Change(sign, line) for sign, line in line_changes(label, old.text, new.text)]

    def validate(self) -> Sequence[tuple[str, str, str]]:
        """Every rule that the blocks break: label, path and rule. Blocks that are not written break none."""
        if not self._tx.pages.block_heads(self._row.id):
            return ()
        with block_errors():
            found, receipts = self._ledger.examine(
                SqlBlockStore(self._tx.blocks), self._conversation, actor=self._look.actor
            )
        trace_receipts(self._tx, self._row.id, self._look, receipts)
        return [(label.value, path, rule) for label, path, rule in found]

    def rotate(self) -> tuple[int, ...]:
        """Archive all but the last turns now; returns the numbers of the turns that were archived."""
        tx, look = self._tx, self._look
        with in_transaction(tx, self._row.id) as write, block_errors():
            written = self._ledger.rotate(SqlBlockStore(tx.blocks), self._conversation, actor=look.actor)
            retrieved = [each for each in written.receipts if each.action is trace.Action.RETRIEVED]
            trace_receipts(tx, self._row.id, look, retrieved)
            for receipt in written.receipts:
                if receipt.action is not trace.Action.RETRIEVED:  # the person's client is told of writes
                    write.say(of_block(receipt, tx.ids.new("trace_"), self._row.id))
        return written.rotated_out

    def _revision(self, label: Label, revision: int | None, turn: int | None) -> int:
        """The number of the wanted revision; raises if there is none."""
        if revision is not None:
            return revision
        if turn is None:
            return self._tx.pages.block_heads(self._row.id).get(label, 0)
        here = {"conversation_id": self._row.id, "label": Label.CONVERSATION_HISTORY.value}
        latest = self._tx.unit.highest(BlockRevision, "turn", **here)
        if turn > latest:
            raise AnamnesisError(TURN_NOT_FOUND, latest=latest)
        found = self._tx.blocks.revision_at_turn(self._row.id, label, turn)
        if found is None:
            raise AnamnesisError(REVISION_NOT_FOUND, label=label.value)
        return found

    def _facts(self, label: Label, revision: int) -> BlockFacts:
        limits = self._ledger.limits
        written = None
        if revision == 0:
            text = self._empty(label)
            size, digest = len(text), trace.digest(text)
        else:
            found = self._tx.pages.revisions(self._row.id, label, revision + 1, 1)
            if not found or found[0].revision != revision:
                raise AnamnesisError(REVISION_NOT_FOUND, label=label.value)
            written = found[0]
            size, digest = written.size, written.digest
        most = limits.of(label)
        return BlockFacts(
            label.value,
            revision,
            size,
            most,
            utilization(size, most),
            level(size, most, limits).value,
            digest,
            written,
        )

    def _empty(self, label: Label) -> str:
        return render(label, edits.empty(self._conversation, self._ledger.limits))
