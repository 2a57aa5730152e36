"""Cuts the new part of a history into chunks. No message is split, and none is left out. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

from agents.models.usage import estimated_tokens
from orchestrator.remember.creators.history import HistoryMessage

Chunk: TypeAlias = tuple[HistoryMessage, ...]


def chunks(
    new: Sequence[HistoryMessage], *, tokens: int, lookback: int, least: int, whole: bool
) -> list[Chunk]:
    """The chunks that can be processed now. A message with more tokens than a chunk is a chunk of its own.

    The newest `lookback` messages wait, because the talk about them may go on; a last chunk that is not full
    waits until it has `least` messages. With `whole`, nothing waits.
    """
    ready = new if whole else new[: max(len(new) - lookback, 0)]
    made: list[Chunk] = []
    current: list[HistoryMessage] = []
    size = 0
    for said in ready:
        more = estimated_tokens(said.text)
        if current and size + more > tokens:
            made.append(tuple(current))
            current, size = [], 0
        current.append(said)
        size += more
    if current and (whole or size >= tokens or len(current) >= least):
        made.append(tuple(current))
    return made
