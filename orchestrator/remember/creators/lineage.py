"""From a message, a turn, a chunk, a memory or a rolling summary to all the others that belong to it."""

import re
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import ITEM_NOT_FOUND, AnamnesisError
from orchestrator.remember.creators.background import message_of
from orchestrator.remember.ledger.lines import (
    CHUNK_ACTIONS,
    Discussion,
    Kind,
    Line,
    RollingSummary,
    held_by,
    states,
)
from orchestrator.remember.ledger.port import LedgerReader
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import ArchivedTurn, Conversation

KINDS: Final[tuple[Kind, ...]] = ("file", "vector")
_SUMMARY: Final = "summary"
_PART: Final = re.compile(
    r"(?P<conversation>.+?)(?:#(?P<kind>file|vector|summary))?:(?P<number>[1-9][0-9]{0,8})"
)
"""CONVERSATION:TURN, or CONVERSATION#KIND:NUMBER."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an id names: a conversation, and in it some messages, a chunk, a summary, or everything.

    It may have been deleted.
    """

    conversation: Conversation
    messages: frozenset[str] | None = None
    chunk: tuple[str, int] | None = None
    summary: int | None = None

    def has(self, kind: Kind, line: Line) -> bool:
        """Whether the line of a chunk belongs to it; not for a summary, which holds memories."""
        if self.chunk is not None:
            return self.chunk == (kind, line.chunk)
        return self.messages is None or not self.messages.isdisjoint(line.messages)


def lineage(store: Store, ledger: LedgerReader, id: str) -> dict[str, Any]:
    """The chunks that an id belongs to, each with its messages and memories, and the rolling summary.

    `id` is that of a message, a memory or a conversation; CONVERSATION:TURN is a turn,
    CONVERSATION#file:NUMBER or CONVERSATION#vector:NUMBER a chunk, and CONVERSATION#summary:NUMBER a version
    of the rolling summary. Raises if there is no such thing.
    """
    wanted = store.read_now(lambda tx: _wanted(tx, id))
    if wanted is None:
        raise _not_found()
    of = Discussion(wanted.conversation.user_id, wanted.conversation.id)
    files, summaries = ledger.lines(of, "file"), ledger.summaries(of)
    summary = _summary(wanted, summaries)
    held = held_by(summary, files) if summary is not None else frozenset()
    found = []
    for kind in KINDS:
        lines = files if kind == "file" else ledger.lines(of, kind)
        made = [line for line in lines if line.action in CHUNK_ACTIONS]
        if wanted.summary is None:
            numbers = [line.chunk for line in made if wanted.has(kind, line)]
        else:
            numbers = [line.chunk for line in made if kind == "file" and line.memory_id in held]
        for number in dict.fromkeys(numbers):
            found.append(_chunk(store, of, kind, [line for line in made if line.chunk == number], lines))
    if wanted.chunk is not None and not found:
        raise _not_found()
    memories = {memory["id"] for chunk in found for memory in chunk["memories"]}
    is_whole = wanted.messages is None and wanted.chunk is None
    unprocessed = []
    if not found and wanted.messages:
        unprocessed = store.read_now(lambda tx: _messages(tx, of.id, tuple(sorted(wanted.messages or ()))))
    return {
        "conversation": of.id,
        "chunks": found,
        "summary": _summary_json(of, summary, files) if summary and (is_whole or held & memories) else None,
        "notInAMemoryYet": unprocessed,
    }


def _summary(wanted: _Wanted, summaries: list[RollingSummary]) -> RollingSummary | None:
    """The version that was asked for, else the newest one. Raises if there is no such version."""
    if wanted.summary is None:
        return summaries[-1] if summaries else None
    for each in summaries:
        if each.number == wanted.summary:
            return each
    raise _not_found()


def _summary_json(of: Discussion, summary: RollingSummary, files: list[Line]) -> dict[str, Any]:
    return {
        "id": f"{of.id}#{_SUMMARY}:{summary.number}",
        "number": summary.number,
        "text": summary.text,
        "hash": summary.hash,
        "maker": summary.maker,
        "memory": next((line.memory_id for line in files if line.digest == summary.hash), None),
    }


def _not_found() -> AnamnesisError:
    return AnamnesisError(ITEM_NOT_FOUND, what="message, memory, turn, chunk, summary or conversation")


def _wanted(tx: Transaction, id: str) -> _Wanted | None:
    if named := _PART.fullmatch(id):
        conversation = tx.conversations.get_even_deleted(named["conversation"])
        number = int(named["number"])
        if conversation is None:
            return None
        if named["kind"] == _SUMMARY:
            return _Wanted(conversation, summary=number)
        if named["kind"]:
            return _Wanted(conversation, chunk=(named["kind"], number))
        messages = _of_turn(tx, conversation.id, number)
        return _Wanted(conversation, messages) if messages else None
    if conversation := tx.conversations.get_even_deleted(id):
        return _Wanted(conversation)
    if message := tx.messages.get(id):
        conversation = tx.conversations.get_even_deleted(message.conversation_id)
        return None if conversation is None else _Wanted(conversation, frozenset((message.id,)))
    memory = tx.memories.get_even_deleted(id)
    source: dict[str, Any] = memory.source_info or {} if memory else {}
    conversation = tx.conversations.get_even_deleted(str(source.get("conversation", "")))
    if conversation is None:
        return None
    if isinstance(chunk := source.get("chunk"), int):
        return _Wanted(conversation, chunk=(str(source.get("kind")), chunk))
    return _Wanted(conversation, frozenset((str(source.get("message", "")),)))


def _of_turn(tx: Transaction, conversation_id: str, number: int) -> frozenset[str]:
    """The messages of a turn, archived or not."""
    archived = tx.unit.find_one(ArchivedTurn, conversation_id=conversation_id, turn_id=number)
    if archived is not None:
        said = message_of(archived)
        answers = tx.messages.answers_to(conversation_id, said)
        return frozenset((said, *(answer.id for answer in answers)))
    turn = tx.turns.get(conversation_id, number)
    return frozenset(id for id in (turn.user_message_id, turn.answer_id) if id) if turn else frozenset()


def _chunk(store: Store, of: Discussion, kind: Kind, lines: list[Line], ledger: list[Line]) -> dict[str, Any]:
    first, now = lines[0], states(ledger)
    texts = {line.memory_id: line.body.text for line in ledger if line.body}
    memories = [
        {"id": line.memory_id, "text": texts.get(line.memory_id), "state": now[line.memory_id]}
        for line in lines
        if line.memory_id
    ]
    return {
        "id": f"{of.id}#{kind}:{first.chunk}",
        "kind": kind,
        "line": first.digest,
        "hash": first.point.hash,
        "maker": first.maker,
        "dropped": sum(line.dropped for line in lines),
        "messages": store.read_now(lambda tx: _messages(tx, of.id, first.messages)),
        "restsOn": list(first.rests_on),
        "memories": memories,
    }


def _messages(tx: Transaction, conversation_id: str, ids: tuple[str, ...]) -> list[dict[str, Any]]:
    archived = tx.unit.find(ArchivedTurn, "turn_id", conversation_id=conversation_id)
    turns = {message_of(turn): turn.turn_id for turn in archived if turn.has_left}
    found = []
    for id in ids:
        message = tx.messages.get(id)
        if message is None:
            continue
        memory = tx.memories.get_even_deleted(utterance_id(id))
        turn = turns.get(id, turns.get(message.previous_id or ""))
        found.append(
            {
                "id": id,
                "number": message.sequence_number,
                "role": message.message_role,
                "text": message.contents,
                "archivedTurn": None if turn is None else f"{conversation_id}:{turn}",
                "utterance": memory.id if memory is not None else None,
            }
        )
    return found
