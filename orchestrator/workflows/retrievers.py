"""Reads memories for the nodes of workflows. No function here writes anything or asks a model.

A retriever is a function of a `Reading`. To add one, write it and register it (`WorkflowManager.register`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from orchestrator.remember.creators.generation import CHUNK_BREAK
from orchestrator.remember.creators.history import HistoryMessage, transcript
from orchestrator.remember.ledger.lines import Discussion, Line, alive
from orchestrator.remember.ledger.port import LedgerReader

NO_MEMORIES: Final = "No memories have been generated yet"
NO_DISCUSSION: Final = "There is no conversation to search"
NOTHING_FOUND: Final = "No memory has any of these keywords"
NO_SUMMARY: Final = "No summary has been made yet"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a retriever may read. Without `discussion`, there are only the messages of the request."""

    ledger: LedgerReader
    discussion: Discussion | None
    messages: Sequence[HistoryMessage]
    input: str
    limit: int


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The text that a retriever returns, and the memories it was read from."""

    text: str
    lines: tuple[Line, ...] = ()


Retriever: TypeAlias = Callable[[Reading], Retrieved]


def recent_memories(reading: Reading) -> Retrieved:
    """The last memories of the conversation; without one, the last turns of the messages."""
    if reading.discussion is None:
        return Retrieved(transcript(_last_turns(reading.messages, reading.limit)))
    return joined(alive(reading.ledger.lines(reading.discussion, "file"))[-reading.limit :])


def vector_memory_search(reading: Reading) -> Retrieved:
    """The memories that have any of the keywords in `input`, which semicolons separate; best first."""
    if reading.discussion is None:
        return Retrieved(NO_DISCUSSION)
    found = reading.ledger.search(reading.discussion, reading.input, reading.limit)
    return joined(found) if found else Retrieved(NOTHING_FOUND)


def full_chat_summary(reading: Reading) -> Retrieved:
    """The rolling summary of the conversation; without one, the messages."""
    if reading.discussion is None:
        return Retrieved(transcript(tuple(reading.messages)))
    summaries = reading.ledger.summaries(reading.discussion)
    if not summaries or not summaries[-1].text:
        return Retrieved(NO_SUMMARY)
    held = [
        line
        for line in alive(reading.ledger.lines(reading.discussion, "file"))
        if line.digest == summaries[-1].hash
    ]
    return Retrieved(summaries[-1].text, tuple(held))


def _last_turns(messages: Sequence[HistoryMessage], count: int) -> tuple[HistoryMessage, ...]:
    """The last turns. A message of the person begins one, and the answers to it belong to it."""
    begun = [place for place, said in enumerate(messages) if said.is_person]
    return tuple(messages[begun[-count] :] if len(begun) >= count else messages)


def joined(lines: Sequence[Line]) -> Retrieved:
    """The texts of memories, one after the other."""
    if not lines:
        return Retrieved(NO_MEMORIES)
    return Retrieved(CHUNK_BREAK.join(line.body.text for line in lines if line.body), tuple(lines))


RETRIEVERS: Final[dict[str, Retriever]] = {
    "RecentMemory": recent_memories,
    "RecentMemorySummarizerTool": recent_memories,
    "VectorMemorySearch": vector_memory_search,
    "FullChatSummary": full_chat_summary,
}
