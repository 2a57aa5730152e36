"""The protocols that the agents need from others, and the values these take and return."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.roster import Specialist
from agents.values import Offer, Understanding
from memory_blocks.facts.changes import CurrentFact
from memory_blocks.models import Blocks, EarlierSession

Vectors: TypeAlias = NDArray[np.float32]
"""Embeddings as rows, or one of them. Each has length 1, so that a dot product is the cosine."""


class Embedder(Protocol):
    """Turns texts into vectors, which are near each other if the texts mean the same. Thread-safe.

    A call computes for some milliseconds per text, so call it from a thread, not from an event loop. Equal
    texts give equal vectors, whatever else is in the batch.
    """

    @property
    def name(self) -> str:
        """The model's name. Vectors of different models cannot be compared."""

    @property
    def width(self) -> int:
        """The number of dimensions."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, in the same order."""


@dataclass(frozen=True, slots=True)
class QueriesAndPassages:
    """Two embedders of one model: for what is searched for, and for what is searched."""

    queries: Embedder
    passages: Embedder


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text with its vector. A turn computes it once for all its stations.

    `bare`: the message was only a few words in reply to a question, so `text` is the enriched message.
    """

    text: str
    vector: Vectors
    bare: bool = False


KNOWN: Final = "known"
"""The role of a fact from another conversation that a turn is given although the search did not find it."""


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A long-term memory that was found for a query, with the facts for its trace.

    `said_at` is when the person said it, and `true_when` when it was true, in their words. `conversation_id`
    and `message_id` say where it was said, and `is_elsewhere` that this is another conversation than the one
    that goes on. `is_current` is false for a value that another has replaced.
    """

    memory_id: str
    content: str
    score: float
    memory_type: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    query_prompt: str | None = None
    position: int | None = None
    role: str | None = None
    said_at: datetime | None = None
    true_when: str = ""
    conversation_id: str | None = None
    message_id: str | None = None
    subject: str | None = None
    is_current: bool = True
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Period:
    """The time from `start` until before `end`, in the person's time zone, and the words that name it.

    `event_at` is the date that was taken for an event in those words: "before the surgery".
    """

    start: datetime | None
    end: datetime | None
    words: str
    event_at: datetime | None = None

    def covers(self, moment: datetime) -> bool:
        """Whether a moment is in it."""
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)

    @property
    def last(self) -> datetime | None:
        """A moment of its last day."""
        return self.end - timedelta(seconds=1) if self.end else None

    def __str__(self) -> str:
        if self.start and self.last:
            return f"{self.start:%Y-%m-%d} to {self.last:%Y-%m-%d}"
        dates = f"from {self.start:%Y-%m-%d}" if self.start else f"until {self.last:%Y-%m-%d}"
        return f"{dates}, {self.words} on {self.event_at:%Y-%m-%d}" if self.event_at else dates


@dataclass(frozen=True, slots=True)
class Recalled:
    """The memories that a search found, best first, and facts about the search itself.

    `scores` has the scores of the memories that were asked for by their ids, found or not. `period` is the
    time that the search was narrowed to.
    """

    memories: tuple[MemoryHit, ...] = ()
    observability: Mapping[str, Any] = field(default_factory=dict)
    mode: str = ""
    milliseconds: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    period: Period | None = None


class Recall(Protocol):
    """Searches the long-term memory of one person."""

    async def search(
        self,
        query: Embedded,
        person_id: str,
        conversation_id: str,
        watched: Sequence[str] = (),
        zone: tzinfo = UTC,
    ) -> Recalled:
        """Return this person's memories that are relevant to `query`, best first.

        `conversation_id` is the conversation that goes on now. Memories of it are found like those of earlier
        ones; `MemoryHit.is_elsewhere` tells them apart. `watched` are ids of memories whose scores are
        returned even if they are not found. `zone` is the person's time zone, by which "yesterday" is read.
        """


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's text, and its revision, which is kept with every answer."""

    name: str
    text: str
    revision: str


class PromptBook(Protocol):
    """Has a prompt for every specialist."""

    def prompt(self, specialist: Specialist) -> Prompt:
        """Return the current prompt of a specialist."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of using a tool: its result, or an error text."""

    success: bool
    result: Any = None
    error: str = ""


class ToolUser(Protocol):
    """Runs tools for a brain, and records each use."""

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Run a tool and return its outcome. A refusal, a failure and a timeout are outcomes too."""


class NoTools:
    """Refuses every tool."""

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Return a refusal."""
        return ToolOutcome(False, None, "there are no tools here")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a brain knows when a message comes in: the blocks and facts before this turn, and the time.

    The facts begin with the lasting ones from the person's other conversations.
    `urgent`: the person may be in danger, so the message is read at once, without a model.
    `follow_up`: the person's last conversation, if the first answer of this one may ask how it went on.
    `offer`: what the last answer offered to change in what is remembered.
    """

    blocks: Blocks
    facts: tuple[CurrentFact, ...]
    now: datetime
    urgent: bool = False
    follow_up: EarlierSession | None = None
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class Brief:
    """Everything a brain gets to write an answer. `said` is the beginning of an answer to continue.

    `situation` is as before the turn; `facts` are those that hold after the changes of this turn.
    `offer`: what the answer has to ask the person about, before it is changed.
    `undone`: what holds again after the person asked to undo a change; empty if nothing could be undone.
    """

    specialist: Specialist
    message: str
    understanding: Understanding
    situation: Situation
    facts: tuple[CurrentFact, ...]
    recalled: Recalled
    prompt: Prompt
    said: str = ""
    tools: ToolUser = field(default_factory=NoTools)
    offer: Offer | None = None
    undone: tuple[str, ...] | None = None


class Brain(Protocol):
    """Understands messages and writes answers, with rules or with a model.

    A call returns a valid value or raises `BrainFailed`. A brain keeps no conversation between calls.
    """

    @property
    def name(self) -> str:
        """The brain's name in traces and in ServerInfo."""

    async def understand(self, message: str, situation: Situation) -> Understanding:
        """Return what a message means, which facts it changes, and where it belongs."""

    def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """Yield the answer in fragments. The generator can be closed after any of them."""
