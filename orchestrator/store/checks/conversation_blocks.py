"""Checks the memory blocks of a conversation: their revisions, traces, limits, schemas and archived turns."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pydantic import ValidationError

from memory_blocks.facts.changes import current_facts
from memory_blocks.facts.view import view
from memory_blocks.ledger.repair import invalid_reason
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import ActiveSession, Label
from memory_blocks.trace import digest
from orchestrator.store.checks.violations import Found, Violation
from orchestrator.store.engine.packing import chain_departures
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.memory.facts import as_change
from orchestrator.store.rows import ArchivedTurn, Block, BlockRevision, FactChange, Trace


def check_blocks(unit: Unit, conversation_id: str) -> Found:
    """Digests match the texts, each write has one trace, and no turn is lost or stored twice."""
    here: dict[str, Any] = {"conversation_id": conversation_id, "even_deleted": True}
    blocks = {block.label: block for block in unit.find(Block, "label", **here)}
    traces = unit.find(Trace, "id", **here)
    revisions = unit.find(BlockRevision, "label", "revision", **here)
    yield from _check_revisions(conversation_id, blocks, revisions, traces)
    yield from _check_current(conversation_id, blocks, traces)
    yield from _check_archive(conversation_id, blocks, unit.find(ArchivedTurn, "turn_id", **here))
    changes = unit.find(FactChange, "position", **here)
    yield from _check_facts(conversation_id, blocks.get("active_session"), changes, traces)


def _check_revisions(
    conversation_id: str,
    blocks: Mapping[str, Block],
    revisions: Sequence[BlockRevision],
    traces: Sequence[Trace],
) -> Found:
    """The revisions of each block are a chain of digests, and each has one trace (I9)."""
    written = Counter(_revision(trace) for trace in traces if trace.action in ("stored", "updated"))
    for label, group in groupby(revisions, lambda each: each.label):
        chain = list(group)
        for revision, why in chain_departures(chain):
            yield Violation("blocks", why, (conversation_id, label, str(revision)))
        memory_id = blocks[label].memory_id if label in blocks else ""
        for each in chain:
            if written[memory_id, each.revision] != 1:
                at = (conversation_id, label, str(each.revision))
                yield Violation("I9", "a revision of a block does not have exactly one trace", at)


def _check_current(conversation_id: str, blocks: Mapping[str, Block], traces: Sequence[Trace]) -> Found:
    """Check invariant I13: the text of each block fits its digest, its limit and its schema."""
    limits = {_revision(trace): (trace.meta or {}).get("limit") for trace in traces}
    for label, block in blocks.items():
        at = (conversation_id, label)
        if block.value is None:
            continue
        if digest(block.value) != block.digest:
            yield Violation("blocks", "a block is not its latest revision", at)
        limit = limits.get((block.memory_id, block.revision))  # the limit at the time of the write
        if len(block.value) > (limit if isinstance(limit, int) else DEFAULTS.of(Label(label))):
            yield Violation("I13", "a block exceeds its limit", at)
        if invalid_reason(Label(label), block.value):
            yield Violation("I13", "a block does not match its schema", at)


def _check_archive(
    conversation_id: str, blocks: Mapping[str, Block], archive: Sequence[ArchivedTurn]
) -> Found:
    """I11: each turn is either in the history or archived."""
    for turn in archive:
        if digest(turn.value) != turn.digest:
            at = (conversation_id, str(turn.turn_id))
            yield Violation("blocks", "an archived turn's digest is not that of its text", at)
    history = blocks.get("conversation_history")
    active = _turn_ids(history.value) if history and history.value else []
    if active is None:
        return  # it does not match its schema, which is reported above
    left = [turn.turn_id for turn in archive if turn.has_left]
    if left + active != list(range(1, len(left) + len(active) + 1)):
        yield Violation("I11", "archived and active turns are not 1..n", (conversation_id,))
    if not {turn.turn_id for turn in archive if not turn.has_left} <= set(active):
        yield Violation("I11", "a shortened turn is not in its block", (conversation_id,))


def _check_facts(
    conversation_id: str, block: Block | None, changes: Sequence[FactChange], traces: Sequence[Trace]
) -> Found:
    """I22: the facts in the block are those that follow from the changes, as far as there is room.

    A block that was last written before there were changes has none yet.
    """
    if [change.position for change in changes] != list(range(1, len(changes) + 1)):
        yield Violation("I22", "the changes to facts are not 1..n", (conversation_id,))
    positions = {change.id: change.position for change in changes}
    if any(positions.get(change.target or "", 0) > change.position for change in changes):
        yield Violation("I22", "a change to a fact refers to a later one", (conversation_id,))
    if block is None or block.value is None or block.schema_version in ("1.0", "1.1"):
        return
    try:
        shown = ActiveSession.model_validate_json(block.value).facts or ()
    except ValidationError:
        return  # it does not match its schema, which is reported above
    meant = view(current_facts(as_change(change) for change in changes))
    limit = next((_limit(each) for each in reversed(traces) if _is_of(each, block)), None)
    next_entry = meant[len(shown)].text if len(shown) < len(meant) else ""
    is_full = len(block.value) + len(next_entry) + 1 > (limit or DEFAULTS.of(Label.ACTIVE_SESSION))
    if shown != meant[: len(shown)] or (next_entry and not is_full):
        yield Violation(
            "I22", "the facts in a block are not those that follow from the changes", (conversation_id,)
        )


def _is_of(trace: Trace, block: Block) -> bool:
    return _revision(trace) == (block.memory_id, block.revision)


def _limit(trace: Trace) -> int | None:
    limit = (trace.meta or {}).get("limit")
    return limit if isinstance(limit, int) else None


def _revision(trace: Trace) -> tuple[str, object]:
    """The memory id and the revision of the block that a trace is about."""
    return trace.memory_id, (trace.meta or {}).get("revision")


def _turn_ids(value: str) -> list[int] | None:
    try:
        return [int(turn["turn_id"]) for turn in json.loads(value)["turns"]]
    except (ValueError, KeyError, TypeError):
        return None
