"""Every place where the agents touch the world."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.roster import Specialist
from agents.values import Enrichment, Intent
from memory_blocks.models import Blocks

Vectors: TypeAlias = NDArray[np.float32]
"""Embeddings as rows, each of length 1, so that a product of two is their cosine; or one of them."""


class Embedder(Protocol):
    """Turns texts into vectors: near where the texts mean the same. Safe to call from several threads.

    A call computes for some milliseconds per text, so a loop hands it to a thread. Equal texts give equal
    vectors, whatever else is in the batch.
    """

    @property
    def name(self) -> str:
        """Which model this is; vectors of different names cannot be compared."""
        ...

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row per text, in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text with its vector: what a turn embeds once, for everyone in it who compares it with something.

    `bare` says that the message itself was only a few words after a question, and the text had to be made;
    `parts` are its sentences, each by itself, where it has several.
    """

    text: str
    vector: Vectors
    bare: bool = False
    parts: tuple["Embedded", ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A long-term memory that was found for a query, with what its trace will say of it."""

    memory_id: str
    content: str
    score: float
    memory_type: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    query_prompt: str | None = None
    position: int | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search found, best first, and what it tells of itself."""

    memories: tuple[MemoryHit, ...] = ()
    observability: Mapping[str, Any] = field(default_factory=dict)


class Recall(Protocol):
    """Searches long-term memory: best first, and only this person's."""

    async def search(self, query: Embedded, person_id: str) -> Recalled:
        """The memories that bear on `query`."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's text and the revision by which an answer can later be traced to it."""

    name: str
    text: str
    revision: str


class PromptBook(Protocol):
    """Holds a prompt for every specialist. What it gives always has a revision."""

    def prompt(self, specialist: Specialist) -> Prompt:
        """The prompt of this specialist, as it stands now."""
        ...


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of using a tool: its result, or why there is none."""

    success: bool
    result: Any = None
    says: str = ""


class ToolUser(Protocol):
    """Has a tool used for whoever speaks, and keeps that it was."""

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the tool gave; one that is refused, fails or takes too long is an outcome, too."""
        ...


class NoTools:
    """Nobody to use a tool: every one is refused."""

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """No result."""
        return ToolOutcome(False, None, "there are no tools here")


@dataclass(frozen=True, slots=True)
class Brief:
    """All that a specialist is told before it speaks. `said` is the beginning of an answer to go on with."""

    specialist: Specialist
    message: str
    enrichment: Enrichment
    intent: Intent
    blocks: Blocks
    recalled: Recalled
    prompt: Prompt
    said: str = ""
    tools: ToolUser = field(default_factory=NoTools)


class Brain(Protocol):
    """Understands, decides and speaks; with rules, or with a model behind it.

    A call gives a valid value or raises `BrainFailed`. It keeps nothing of a conversation between calls.
    """

    @property
    def name(self) -> str:
        """How it is called in traces and ServerInfo."""
        ...

    async def extract(self, message: str, blocks: Blocks) -> Enrichment:
        """The message as it is to be understood in the light of the blocks."""
        ...

    async def classify(self, enrichment: Enrichment, blocks: Blocks, embedded: Embedded) -> Intent:
        """Where the enriched message belongs; `embedded` is the message with its vector."""
        ...

    def speak(self, brief: Brief) -> AsyncIterator[str]:
        """The answer in fragments, as they come. It can be closed at any fragment."""
        ...
