"""Adopts edits that others made in the copy of the blocks: merges, checks and writes or refuses them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from memory_blocks import edits, schema, summary_text, trace, trace_text
from memory_blocks.errors import BlockError, BlockInvalid
from memory_blocks.facts.changes import Decider, FactChange, current_facts
from memory_blocks.facts.view import changes_by_hand
from memory_blocks.ledger.ledger import Ledger, ReadResult
from memory_blocks.limits import Limits
from memory_blocks.merging import merge
from memory_blocks.models import ActiveSession, Blocks, Conversation, Label, MemoryMetadata, from_texts, parse
from memory_blocks.ports import BlockStore, ForeignChange
from memory_blocks.trace import Action

ACTOR: Final = "mirror"
EXTRACTOR_ACTOR: Final = "letta:context_extractor"
"""The actor of an edit that the model of the conversation's extractor made with its memory tools."""
_OUTDATED: Final = "edits a text that was replaced since"
_ORDER: Final = (
    Label.CONTEXT_SUMMARY,
    Label.MEMORY_METADATA,
    Label.CONVERSATION_HISTORY,
    Label.ACTIVE_SESSION,  # last: it also rewrites the header of the summary, and the metadata counts all
)


def adopt(
    ledger: Ledger, store: BlockStore, conversation: Conversation, changes: Iterable[ForeignChange]
) -> ReadResult:
    """Write each valid edit as a revision of its author; put each invalid one into quarantine.

    An edit of a text that has been replaced is merged with the present text. Adopting one edit may rewrite
    other blocks too; an edit of those still counts as an edit of the text before the first one. Copying the
    returned blocks to the mirror undoes there what was refused.
    """
    current = ledger.read(store, conversation, actor=ACTOR)
    digests = {label: block.digest for label, block in current.stored.items()}
    receipts = [each for each in current.receipts if each.action is not Action.RETRIEVED]
    for change in sorted(changes, key=lambda each: _ORDER.index(each.label)):
        label = change.label
        if change.text == current.stored[label].text:
            continue
        try:
            edit = change
            if change.digest != digests[label]:
                edit = _merged(store, conversation, current, change, ledger.limits)
            blocks = _with_edit(current, edit, ledger.limits)
            made = _fact_changes(ledger, store, conversation, current, blocks, change.actor)
            written = ledger.write(store, conversation, current, blocks, actor=change.actor, changes=made)
        except BlockError as refused:
            reason = f"{refused.facts.get('path', '$')}: {refused.facts.get('rule', refused.name)}"
            kept = store.quarantine(
                conversation.id, label, _storable(change.text), reason=reason, actor=change.actor
            )
            receipts.append(
                trace.receipt(
                    label,
                    current.stored[label],
                    Action.RETRIEVED,
                    change.actor,
                    trace_text.describe_refused(reason),
                    ledger.limits,
                    quarantined=kept,
                )
            )
        else:
            receipts.extend(
                replace(each, content=trace_text.describe_adopted(each.content))
                if each.label is label
                else each
                for each in written.receipts
            )
            current = written
            digests[label] = written.stored[label].digest
    return ReadResult(current.blocks, current.stored, tuple(receipts))


def _merged(
    store: BlockStore,
    conversation: Conversation,
    current: ReadResult,
    change: ForeignChange,
    limits: Limits,
) -> ForeignChange:
    """An edit of an earlier revision, merged into the present one.

    Raises `BlockInvalid` if both changed the same value, or if the earlier revision is not known.
    """
    label = change.label
    _check_schema(change, limits)
    revisions = reversed(store.revisions(conversation.id, label))
    revision = next((each.revision for each in revisions if each.digest == change.digest), None)
    base = store.text_at(conversation.id, label, revision) if revision is not None else None
    if base is None:
        raise BlockInvalid(label, "$", _OUTDATED)
    text = merge(label, base, change.text, current.stored[label].text)
    if text is None:
        raise BlockInvalid(label, "$", _OUTDATED)
    return replace(change, text=text)


def _with_edit(current: ReadResult, change: ForeignChange, limits: Limits) -> Blocks:
    """The blocks with the edit in them, or `BlockInvalid`."""
    label, text = change.label, change.text
    _check_schema(change, limits)
    block = parse(label, text)
    flags = current.blocks.memory_metadata.system_flags
    if isinstance(block, MemoryMetadata) and block.system_flags != flags:
        raise BlockInvalid(label, "system_flags", "may only be changed by the orchestrator")
    texts = {each: stored.text for each, stored in current.stored.items()} | {label: text}
    if isinstance(block, str) and block:
        texts[label] = summary_text.render(summary_text.parse(block), limits.of(label))
    blocks = from_texts(texts)
    if isinstance(block, ActiveSession):
        blocks = edits.with_summary_of(blocks, limits)
    return edits.refresh(blocks, limits)


def _fact_changes(
    ledger: Ledger,
    store: BlockStore,
    conversation: Conversation,
    current: ReadResult,
    edited: Blocks,
    actor: str,
) -> tuple[FactChange, ...]:
    """The changes to the facts that an edit makes."""
    if edited.active_session.facts == current.blocks.active_session.facts:
        return ()
    known = ledger.fact_changes(store, conversation, current.blocks)
    decider = Decider.MODEL if actor == EXTRACTOR_ACTOR else Decider.OPERATOR
    version = current.blocks.active_session.schema_version  # that in which the facts were written
    session = edited.active_session.model_copy(update={"schema_version": version})
    return changes_by_hand(session, current_facts(known), ledger.now(), decider, made_before=len(known))


def _check_schema(change: ForeignChange, limits: Limits) -> None:
    for path, rule in schema.departures(change.label, change.text, limits):
        raise BlockInvalid(change.label, path, rule)


def _storable(text: str) -> str:
    """The text with a visible sign in place of each character that our databases cannot store."""
    return text.replace("\0", "\u2400").encode(errors="replace").decode()
