"""From a message, a turn, a chunk, a memory or a rolling summary to all the others that belong to it."""

import re
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import ITEM_NOT_FOUND, AnamnesisError
from orchestrator.remember.creators.background import message_of
from orchestrator.remember.ledger.lines import CHUNK_ACTIONS, Discussion, Kind, Line, states
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
    """What an id names: a conversation, and in it some messages, a chunk, or everything."""

    conversation: Conversation
    messages: frozenset[str] | None = None
    chunk: tuple[str, int] | None = None

    def has(self, kind: Kind, line: Line) -> bool:
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
    found = []
    for kind in KINDS:
        lines = ledger.lines(of, kind)
        made = [line for line in lines if line.action in CHUNK_ACTIONS and wanted.has(kind, line)]
        for number in dict.fromkeys(line.chunk for line in made):
            of_chunk = [line for line in made if line.chunk == number]
            found.append(_chunk(store, of, kind, of_chunk, lines))
    summaries = ledger.summaries(of)
    if wanted.chunk is not None:
        named, number = wanted.chunk
        if not found and not (named == _SUMMARY and number <= len(summaries)):
            raise _not_found()
        summaries = summaries[:number] if named == _SUMMARY else summaries
    shown = None
    if summaries:
        last = summaries[-1]
        shown = {
            "id": f"{of.id}#{_SUMMARY}:{last.number}",
            "number": last.number,
            "text": last.text,
            "hash": last.hash,
            "maker": last.maker,
        }
        shown["memory"] = next(
            (line.memory_id for line in ledger.lines(of, "file") if line.digest == last.hash), None
        )
    unprocessed = []
    if not found and wanted.messages:
        unprocessed = store.read_now(lambda tx: _messages(tx, of.id, tuple(sorted(wanted.messages or ()))))
    return {"conversation": of.id, "chunks": found, "summary": shown, "notInAMemoryYet": unprocessed}


def _not_found() -> AnamnesisError:
    return AnamnesisError(ITEM_NOT_FOUND, what="message, memory, turn, chunk, summary or conversation")


def _wanted(tx: Transaction, id: str) -> _Wanted | None:
    if named := _PART.fullmatch(id):
        conversation = tx.conversations.get(named["conversation"])
        if conversation is None:
            return None
        if named["kind"]:
            return _Wanted(conversation, chunk=(named["kind"], int(named["number"])))
        messages = _of_turn(tx, conversation.id, int(named["number"]))
        return _Wanted(conversation, messages) if messages else None
    if conversation := tx.conversations.get(id):
        return _Wanted(conversation)
    if message := tx.messages.get(id):
        return _of_messages(tx, message.conversation_id, message.id)
    memory = tx.memories.get_even_deleted(id)
    source: dict[str, Any] = memory.source_info or {} if memory else {}
    conversation = tx.conversations.get(str(source.get("conversation", "")))
    if conversation is None:
        return None
    if isinstance(chunk := source.get("chunk"), int):
        return _Wanted(conversation, chunk=(str(source.get("kind")), chunk))
    return _Wanted(conversation, frozenset((str(source.get("message", "")),)))


def _of_messages(tx: Transaction, conversation_id: str, *ids: str) -> _Wanted | None:
    conversation = tx.conversations.get(conversation_id)
    return None if conversation is None else _Wanted(conversation, frozenset(ids))


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
