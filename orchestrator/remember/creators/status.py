"""How far the memories of each conversation are behind its messages, and whether its ledgers are sound."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.errors import AnamnesisError
from orchestrator.remember.creators.history import history_after
from orchestrator.remember.ledger.lines import (
    CHUNK_ACTIONS,
    Discussion,
    Kind,
    alive,
    broken_rules,
    broken_summaries,
)
from orchestrator.remember.ledger.port import LedgerReader
from orchestrator.store.checks.violations import Violation
from orchestrator.store.engine.database import Store


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The memories of one conversation. `behind` messages are in no memory yet.

    `dropped` counts sentences of a model that the messages did not support, in memories and in rolling
    summaries. `broken` says what is wrong with a ledger. `unsettled`: it does not follow all changes of
    memories yet. `error` ended the last run.
    """

    user: str
    conversation: str
    kind: Kind
    messages: int
    behind: int
    chunks: int
    memories: int
    dropped: int
    summary: bool
    broken: tuple[str, ...]
    unsettled: bool = False
    error: str | None = None


def statuses(
    store: Store, ledger: LedgerReader, kind: Kind, user_id: str | None = None
) -> Iterator[MemoryStatus]:
    """The status of each conversation, of one person or of all."""
    for conversation in store.read_now(lambda tx: tx.conversations.every()):
        if user_id is None or conversation.user_id == user_id:
            yield _status(store, ledger, kind, Discussion(conversation.user_id, conversation.id))


def broken_ledgers(store: Store, ledger: LedgerReader) -> Iterator[Violation]:
    """The ledgers that are broken (I25), for `anamnesis check`."""
    for each in statuses(store, ledger, "vector"):
        for why in each.broken:
            yield Violation("I25", f"memories made of a conversation: {why}", (each.conversation,))


def _status(store: Store, ledger: LedgerReader, kind: Kind, of: Discussion) -> MemoryStatus:
    try:
        lines, files, summaries = ledger.lines(of, kind), ledger.lines(of, "file"), ledger.summaries(of)
        point = ledger.point(of, kind)
    except AnamnesisError as error:
        return MemoryStatus(of.user_id, of.id, kind, 0, 0, 0, 0, 0, False, (error.problem.name,))
    broken = [f"line {number}: {why}" for number, why in broken_rules(lines)]
    broken += [f"summary {number}: {why}" for number, why in broken_summaries(summaries, files)]
    if kind != "file":
        broken += [f"line {number} of kind file: {why}" for number, why in broken_rules(files)]
    work = store.read_now(lambda tx: tx.memory_work.get(of.id))
    made = [line for line in lines if line.action in CHUNK_ACTIONS]
    return MemoryStatus(
        user=of.user_id,
        conversation=of.id,
        kind=kind,
        messages=len(store.read_now(lambda tx: tx.messages.in_order(of.id))),
        behind=len(store.read_now(lambda tx: history_after(tx, of.id, point))),
        chunks=len({line.chunk for line in made}),
        memories=len(alive(lines)),
        dropped=sum(line.dropped for line in made) + (work.dropped if work else 0),
        summary=bool(summaries and summaries[-1].text),
        broken=tuple(broken),
        unsettled=work is not None and work.changed > work.settled,
        error=work.error if work else None,
    )
