"""Keeps what a person said as memories, after each turn, and makes memories from elsewhere searchable."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from agents.ports import Embedder
from orchestrator.errors import AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.remember import indexing
from orchestrator.remember.indexing import MOST_CONTEXT, Item
from orchestrator.remember.reembedding import reembed_some
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.frame_records import derived_id
from orchestrator.store.repositories.memory.memories import UTTERANCE as UTTERANCE
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Message, Retrieval

log = get_logger()

NEWEST: Final = 8
"""So many messages are read at first. They are enough after an ordinary turn."""

LATEST: Final = 200
"""So many messages of a conversation are looked at for ones that are not memories yet."""

_AT_ONCE: Final = 64
_AFTER_FAILURE: Final = 30.0
_NO_CONVERSATION: Final = ""


def utterance_id(message_id: str) -> str:
    """The id of the memory of a message."""
    return derived_id("mem_", UTTERANCE, message_id)


class Remembering:
    """Writes the memories of people. It runs after the answer, never on the person's time."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store, self._embedder = store, embedder

    async def after_turn(
        self, user_id: str, conversation_id: str, record: Callable[[Transaction], Retrieval] | None = None
    ) -> None:
        """Remember the messages of a conversation that are not remembered yet, and record the search.

        A failure is logged, not raised: the turn is over, and the next one remembers what is missing.
        """
        try:
            if record is not None:
                await self._store.write(lambda tx: tx.memory_index.record([record(tx)]))
            while await self._remember_some(user_id, conversation_id):
                pass
        except AnamnesisError as error:
            log.warning("not_remembered", error=error.problem.name)

    async def index_changed(self, user_id: str) -> None:
        """Make memories of a person searchable that were changed since they were indexed. Logs a failure."""
        await self.after_turn(user_id, _NO_CONVERSATION)

    async def catch_up(self) -> None:
        """Remember whatever an earlier process left undone, in all conversations."""
        for conversation in await self._store.read(lambda tx: tx.conversations.every()):
            await self.after_turn(conversation.user_id, conversation.id)

    async def reembed(self) -> None:
        """Compute the vectors anew that another model has made. Logs a failure, and tries again later."""
        while True:
            try:
                if not await asyncio.to_thread(reembed_some, self._store, self._embedder):
                    return
            except AnamnesisError as error:
                log.warning("not_embedded", error=error.problem.name)
                await asyncio.sleep(_AFTER_FAILURE)

    async def _remember_some(self, user_id: str, conversation_id: str) -> bool:
        items = await self._store.read(lambda tx: _to_remember(tx, user_id, conversation_id))
        if not items:
            return False
        embeddings = await asyncio.to_thread(indexing.embed, items, self._embedder)
        await self._store.write(lambda tx: _write(tx, user_id, items, embeddings))
        return len(items) == _AT_ONCE


def _write(tx: Transaction, user_id: str, items: Sequence[Item], embeddings: indexing.Embeddings) -> None:
    """Write the items, unless another process has done it meanwhile."""
    for item in items:
        if item.new is not None and tx.memories.get_even_deleted(item.memory_id) is not None:
            return
    indexing.write(tx, user_id, items, embeddings)


def _to_remember(tx: Transaction, user_id: str, conversation_id: str) -> list[Item]:
    """The next messages and memories that search cannot find yet."""
    items = _new_utterances(tx, user_id, conversation_id)
    items += [
        Item(memory.id, memory.content, f"memory:{memory.id}", memory.created_at, tags=memory.tags)
        for memory in tx.memories.not_indexed(user_id, limit=_AT_ONCE)
    ]
    return items[:_AT_ONCE]


def _new_utterances(tx: Transaction, user_id: str, conversation_id: str) -> list[Item]:
    """The messages after the last one that is a memory, because messages become memories in their order."""
    for limit in (NEWEST, LATEST):
        items: list[Item] = []
        messages = tx.messages.latest(conversation_id, limit=limit)
        for place in reversed(range(len(messages))):
            message = messages[place]
            if message.message_role != "user" or not message.contents.strip():
                continue
            if is_known(tx, user_id, message.id):
                return items[::-1]
            if not any(pair.key == "superseded" for pair in tx.meta.of(message.id)):
                items.append(_utterance(user_id, message, context_of(messages[:place])))
        if len(messages) < limit:
            break
    return items[::-1]


def missing_utterances(tx: Transaction, user_id: str, conversation_id: str) -> list[Item]:
    """All messages of a conversation that should be memories and never were."""
    messages = tx.messages.in_order(conversation_id)
    return [
        _utterance(user_id, message, context_of(messages[:place]))
        for place, message in enumerate(messages)
        if message.message_role == "user"
        and message.contents.strip()
        and not is_known(tx, user_id, message.id)
        and not any(pair.key == "superseded" for pair in tx.meta.of(message.id))
    ]


def is_known(tx: Transaction, user_id: str, message_id: str) -> bool:
    """Whether a message is or was a memory. Its ledger still knows it if its row is lost."""
    id = utterance_id(message_id)
    return tx.memories.get_even_deleted(id) is not None or bool(tx.memories.ledger.of_memory(user_id, id))


def _utterance(user_id: str, message: Message, context: str) -> Item:
    memory_id = utterance_id(message.id)
    new = NewMemory(
        content=message.contents,
        user_id=user_id,
        id=memory_id,
        created_by=user_id,
        source_type=UTTERANCE,
        source_info={"conversation": message.conversation_id, "message": message.id},
        importance=0.5,
    )
    return Item(
        memory_id, message.contents, message.conversation_id, message.created_at, context=context, new=new
    )


def context_of(before: Sequence[Message]) -> str:
    """What was said before a message and helps to find it: the person's last words, and the last question.

    The words of the answers are never part of a memory itself.
    """
    said = next((each.contents for each in reversed(before) if each.message_role == "user"), "")
    answer = before[-1].contents if before and before[-1].message_role == "assistant" else ""
    questions = [each for each in answer.replace("?", "?\n").split("\n") if each.rstrip().endswith("?")]
    asked = questions[-1].rpartition(". ")[2].strip() if questions else ""
    return " ".join(filter(None, (said, asked)))[-MOST_CONTEXT:]
