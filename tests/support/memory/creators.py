"""Makes memories of conversations in tests: a creator over a store and a ledger, without a model."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agents.models.usage import estimated_tokens
from memory_blocks.ports import Clock
from orchestrator.remember.creators.config import MemoryConfig
from orchestrator.remember.creators.generation import Complete, Generator, Prompts, RequestOrigin
from orchestrator.remember.creators.quality_memory import QualityMemory
from orchestrator.remember.ledger.lines import (
    CHUNK_ACTIONS,
    Discussion,
    Kind,
    alive,
    broken_rules,
    broken_summaries,
    is_current,
    sha256,
    states,
)
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.settings import shipped_config
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.turn.outbox import Outbox
from orchestrator.workflows.manager import WorkflowManager
from orchestrator.workflows.memory_nodes import MemoryNodes
from orchestrator.workflows.traced import TracedMemories
from tests.support.builders import HandClock
from tests.support.memory.memories import EMBEDDER

HERE = Discussion("ann", "conv_1")
PROMPTS = Prompts("Summarise: {agent1Input}", "Objects: {agent1Input}", "Roll: {agent1Input} {agent2Input}")
TERMS = frozenset(("ibuprofen", "metformin", "lisinopril", "asthma"))


@cache
def _shipped() -> dict[str, Any]:
    shipped: dict[str, Any] = json.loads((shipped_config() / "memory.json").read_text())
    return shipped


def a_config(**changes: Any) -> MemoryConfig:
    """The shipped configuration with small chunks and without waiting, and with these changes."""
    small = {"chunkEstimatedTokenSize": 40, "lookbackMessages": 0, "messagesBetweenChunks": 1}
    return MemoryConfig.model_validate({**_shipped(), **small, **changes})


class ScriptedModel:
    """A model whose replies are scripted; without a script it says that the person said something."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []

    async def __call__(self, prompt: str, caller: RequestOrigin) -> str:
        self.prompts.append(prompt)
        reply = self.replies.pop(0) if self.replies else "The person said something."
        if isinstance(reply, Exception):
            raise reply
        return reply


def a_creator(
    store: Store,
    ledger: MemoryLedger,
    *,
    complete: Complete | None = None,
    folder: Path | None = None,
    clock: Clock | None = None,
    **changes: Any,
) -> tuple[QualityMemory, WorkflowManager]:
    """A creator and its workflows, which are read from `folder`."""
    config = a_config(**changes)
    workflows = WorkflowManager([folder or shipped_config() / "workflows"], complete)
    traced = TracedMemories(Outbox(store), characters=1000)
    generator = Generator(
        config,
        PROMPTS,
        workflows.run_sub_workflow if config.workflow else None,
        complete,
        "scripted",
        TERMS,
    )
    creator = QualityMemory(store, ledger, EMBEDDER, generator, traced.keep, clock or HandClock())
    workflows.nodes = MemoryNodes(creator, traced.note_reads)
    store.settle = creator.settling.after_commit
    return creator, workflows


def talk(store: Store, *texts: str, of: Discussion = HERE) -> list[str]:
    """Append messages to a conversation, by the person and the assistant in turn; returns their ids."""

    def work(tx: Transaction) -> list[str]:
        if tx.conversations.get(of.id) is None:
            tx.conversations.create(of.user_id, id=of.id)
        before = len(tx.messages.in_order(of.id))
        return [
            tx.messages.append(of.id, ("user", "assistant")[number % 2], text).id
            for number, text in enumerate(texts, before)
        ]

    return store.write_now(work)


def problems(store: Store, ledger: MemoryLedger, of: Discussion = HERE, kind: Kind = "file") -> list[str]:
    """Everything that is wrong with the ledger of a conversation in which all messages were processed."""
    lines, summaries = ledger.lines(of, kind), ledger.summaries(of)
    found = [f"line {number}: {why}" for number, why in broken_rules(lines)]
    found += [f"summary {number}: {why}" for number, why in broken_summaries(summaries, lines)]
    messages = store.read_now(lambda tx: tx.messages.in_order(of.id))
    made = {line.chunk: line for line in lines if line.action in CHUNK_ACTIONS}
    in_chunks = [id for chunk in sorted(made) for id in made[chunk].messages]
    if in_chunks != [message.id for message in messages]:
        found.append("a message is not in exactly one chunk")
    contents = {message.id: message.contents for message in messages}
    for line in made.values():
        if line.point.hash != sha256(contents[line.point.message_id]):
            found.append(f"line {line.number}: the hash is not that of its last message")
    ids = [line.memory_id for line in lines if line.action == "memory"]
    if len(set(ids)) < len(ids):
        found.append("a memory is there twice")
    stored = store.read_now(lambda tx: tx.memories.of_person_ever(of.user_id))
    here = [
        each
        for each in stored
        if each.id in ids
        or ((each.source_info or {}).get("line") and (each.source_info or {})["conversation"] == of.id)
    ]
    if sorted(each.id for each in here) != sorted(ids):
        found.append("the index does not have the memories of the ledger")
    traces = store.read_now(lambda tx: tx.traces.of_conversation(of.id))
    if sorted(trace.memory_id for trace in traces if trace.action == "stored") != sorted(ids):
        found.append("a memory has not exactly one trace of being stored")
    gone = {id for id, action in states(lines).items() if action == "erased"}
    if any(line.body for line in lines if line.memory_id in gone):
        found.append("an erased memory has its words")
    if kind == "file" and summaries and not is_current(summaries[-1], lines):
        found.append("the rolling summary does not follow a change")
    if store.read_now(lambda tx: tx.memory_work.unsettled()):
        found.append("the ledger does not follow a change")
    living = alive(lines)
    if kind == "file" and living and (not summaries or summaries[-1].hash != living[-1].digest):
        found.append("the rolling summary does not hold the last memory")
    return found


def largest_chunk(store: Store, ledger: MemoryLedger, kind: Kind) -> int:
    """The tokens of the largest chunk that has more than one message."""
    texts = {each.id: each.contents for each in store.read_now(lambda tx: tx.messages.in_order(HERE.id))}
    sizes = [
        sum(estimated_tokens(texts[id]) for id in line.messages)
        for line in ledger.lines(HERE, kind)
        if len(line.messages) > 1
    ]
    return max(sizes, default=0)


def texts_of(ledger: MemoryLedger, kind: Kind = "file", of: Discussion = HERE) -> Sequence[str]:
    """The memories that are alive."""
    return [line.body.text for line in alive(ledger.lines(of, kind)) if line.body]
