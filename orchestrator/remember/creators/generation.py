"""Makes memories of one chunk: by a workflow, else by a model, else by picking sentences."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from agents import sentences
from agents.models.replies import without_control_characters
from orchestrator.errors import MEMORY_NOT_MADE, AnamnesisError
from orchestrator.remember.creators.checking import SummaryCheck
from orchestrator.remember.creators.chunking import Chunk
from orchestrator.remember.creators.config import MemoryConfig
from orchestrator.remember.creators.extractive import LOCAL, roll, shortened, summarise
from orchestrator.remember.creators.history import transcript
from orchestrator.remember.ledger.lines import Discussion, Kind, MemoryBody

CHUNK_BREAK: Final = "--ChunkBreak--"
MOST_OBJECTS: Final = 20
"""How many memories a workflow may make of one chunk."""

PLACEHOLDER: Final = re.compile(r"\{agent(\d{1,3})(Input|Output)\}")

_LONGEST: Final = 16_000
_FIELDS: Final = ("title", "summary", "entities", "key_phrases")
_FENCED: Final = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The conversation and the last message that a request to a model belongs to; None if there is none."""

    discussion: Discussion | None = None
    message_id: str | None = None


RunWorkflow: TypeAlias = Callable[[str, Sequence[str], RequestOrigin], Awaitable[str]]
"""Runs the workflow of that name with the inputs {agent1Input} and so on; returns its output."""

Complete: TypeAlias = Callable[[str, RequestOrigin], Awaitable[str]]
"""Asks the model; returns its reply."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is remembered already, for the workflow that makes memories of kind `file`."""

    memories: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """The memories of one chunk. `dropped` counts sentences that the messages did not support."""

    bodies: tuple[MemoryBody, ...]
    rests_on: tuple[str, ...]
    maker: str
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of direct requests, with {agent1Input} and so on, as in a workflow."""

    memory_text: str
    memory_objects: str
    rolling_summary: str


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes the memories of chunks. Without `run_workflow` and `complete`, it picks sentences.

    Picking and checking take long if there is much to read. They run in a thread, so that nobody waits.
    """

    config: MemoryConfig
    prompts: Prompts
    run_workflow: RunWorkflow | None = None
    complete: Complete | None = None
    model: str = "model"
    health_terms: frozenset[str] = field(default=frozenset())

    async def generate(self, chunk: Chunk, kind: Kind, known: Context, caller: RequestOrigin) -> Made:
        """Make the memories of a chunk. Raises `MEMORY_NOT_MADE` if the output cannot be used."""
        if not any(said.is_person and said.words.strip() for said in chunk):
            return await asyncio.to_thread(self._picked, chunk)
        inputs = self._inputs(chunk, kind, known)
        if self.config.workflow and self.run_workflow is not None:
            output = await self.run_workflow(self.config.workflow, inputs, caller)
            maker = f"workflow:{self.config.workflow}"
        elif self.complete is not None:
            prompt = self.prompts.memory_text if kind == "file" else self.prompts.memory_objects
            output = await self.complete(filled(prompt, inputs), caller)
            maker = f"model:{self.model}"
        else:
            return await asyncio.to_thread(self._picked, chunk)
        return await asyncio.to_thread(self._checked, _clean(output), chunk, kind, maker)

    async def roll(
        self, memories: Sequence[str], current: str, new: Sequence[str], caller: RequestOrigin
    ) -> Made:
        """The rolling summary of all memories: the current one with the new ones, or picked from all."""
        if self.complete is None or not memories:
            return await asyncio.to_thread(self._rolled, memories)
        inputs = (current, "\n\n".join(new or memories))
        output = _clean(await self.complete(filled(self.prompts.rolling_summary, inputs), caller))
        return await asyncio.to_thread(self._checked_roll, output, memories)

    def _rolled(self, memories: Sequence[str], dropped: int = 0) -> Made:
        """A rolling summary that is picked from all memories."""
        return Made((MemoryBody(roll(memories, self.config.summary_characters)),), (), LOCAL, dropped)

    def _checked_roll(self, output: str, memories: Sequence[str]) -> Made:
        """Drop what the memories do not support; if nothing is left that fits, pick sentences instead."""
        checked = SummaryCheck.of_memories(memories, self.health_terms).check(output)
        text = _fitting(checked.text, self.config.summary_characters)
        if not text:
            return self._rolled(memories, checked.dropped)
        return Made((MemoryBody(text),), (), f"model:{self.model}", checked.dropped)

    def _inputs(self, chunk: Chunk, kind: Kind, known: Context) -> tuple[str, ...]:
        if kind == "vector":
            return (transcript(chunk),)
        recent = known.memories[-self.config.recent_memories :]
        return transcript(chunk), CHUNK_BREAK.join(recent), CHUNK_BREAK.join(known.memories), known.summary

    def _picked(self, chunk: Chunk, dropped: int = 0) -> Made:
        extract = summarise(chunk, self.config.memory_characters)
        bodies = (extract.body,) if extract.body is not None else ()
        return Made(bodies, extract.rests_on, LOCAL, dropped)

    def _checked(self, output: str, chunk: Chunk, kind: Kind, maker: str) -> Made:
        """Drop what the messages do not support; if nothing is left, pick sentences instead."""
        check = SummaryCheck(chunk, self.health_terms)
        rests_on = tuple(said.id for said in chunk if said.words.strip())
        dropped, bodies = 0, []
        for body in [MemoryBody(output)] if kind == "file" else memory_objects(output):
            checked = check.check(body.text)
            dropped += checked.dropped
            if checked.text.strip():
                bodies.append(_supported(body, checked.text, check, kind))
        if not bodies:
            return self._picked(chunk, dropped)
        return Made(tuple(bodies), rests_on, maker, dropped)


def _fitting(text: str, characters: int) -> str:
    """The first sentences of a text that fit. A cut sentence would say something else."""
    kept = sentences.cut(text)
    while len("".join(kept).strip()) > characters:
        kept.pop()
    return "".join(kept).strip()


def _supported(body: MemoryBody, text: str, check: SummaryCheck, kind: Kind) -> MemoryBody:
    if kind == "file":
        return MemoryBody(text)
    title = body.title if check.has(body.title) or check.supports(body.title) else shortened(text)
    entities = tuple(each for each in body.entities if check.has(each))
    return MemoryBody(
        text, title, text, entities, tuple(each for each in body.key_phrases if check.has(each))
    )


def filled(prompt: str, inputs: Sequence[str], outputs: Sequence[str] = ()) -> str:
    """A prompt with {agent1Input}, {agent1Output} and so on replaced. What is put in is not read again."""

    def value(found: re.Match[str]) -> str:
        values = inputs if found[2] == "Input" else outputs
        number = int(found[1])
        return values[number - 1] if 1 <= number <= len(values) else ""

    return PLACEHOLDER.sub(value, prompt)


def memory_objects(output: str) -> list[MemoryBody]:
    """Read the output of a vector workflow: a JSON object or an array of them, also in a code fence.

    An object that lacks one of the four fields is skipped. Raises if the output is no such JSON, or if no
    object has all fields.
    """
    fenced = _FENCED.search(output)
    try:
        value = json.loads(fenced[1] if fenced else output)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise AnamnesisError(MEMORY_NOT_MADE, rule="the output is not a JSON object or an array of objects")
    bodies = [body for body in map(_body, value[:MOST_OBJECTS]) if body is not None]
    if not bodies:
        raise AnamnesisError(MEMORY_NOT_MADE, rule=f"no object has {', '.join(_FIELDS)}")
    return bodies


def _body(value: Any) -> MemoryBody | None:
    if not isinstance(value, dict) or any(name not in value for name in _FIELDS):
        return None
    title, summary = value["title"], value["summary"]
    if not isinstance(title, str) or not isinstance(summary, str) or not summary.strip():
        return None
    entities, phrases = _listed(value["entities"]), _listed(value["key_phrases"])
    if entities is None or phrases is None:
        return None
    return MemoryBody(summary, title, summary, entities, phrases)


def _listed(value: Any) -> tuple[str, ...] | None:
    """A list of texts, or a text as a list of one."""
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(each for each in value if each.strip())
    return None


def _clean(output: str) -> str:
    text = without_control_characters(output)
    if not text.strip():
        raise AnamnesisError(MEMORY_NOT_MADE, rule="the output is empty")
    if len(text) > _LONGEST:
        raise AnamnesisError(MEMORY_NOT_MADE, rule=f"the output has more than {_LONGEST} characters")
    return text
