"""The services that a turn uses."""

from dataclasses import dataclass, field

from agents.ports import Brain, Embedder, PromptBook, Recall
from agents.roster import Roster
from agents.tools.toolbox import Toolbox
from memory_blocks.ledger.ledger import Ledger
from orchestrator.ops.foreground import Foreground
from orchestrator.remember.utterances import Remembering
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.turn.block_sync import BlockSync
from orchestrator.turn.outbox import Outbox


@dataclass(frozen=True, slots=True)
class TurnAgents:
    """Who understands and answers messages, and what they use for it."""

    brain: Brain
    embedder: Embedder
    roster: Roster
    prompts: PromptBook
    toolbox: Toolbox


@dataclass(frozen=True, slots=True)
class TurnMemory:
    """What a turn reads and writes: the blocks with their copies, and long-term memory."""

    ledger: Ledger
    sync: BlockSync
    recall: Recall
    remembering: Remembering | None = None
    """Remembers what the person said, after each turn; None remembers nothing."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long, how often and how much."""

    deadline_seconds: float
    """A turn that takes longer fails."""
    attempts: int
    """How often a turn is started before its message is set aside."""
    trace_content_characters: int
    """How much of a long-term memory its trace shows."""
    tokens_per_person_and_day: int = 0
    """From so many tokens on, no model is asked for a person on the same day. 0: no limit."""
    follow_up_days: float = 0
    """So long after a conversation the first answer of the next one may ask how it went on. 0: never."""


@dataclass(frozen=True, slots=True)
class TurnServices:
    """Everything that a turn needs besides its message."""

    agents: TurnAgents
    memory: TurnMemory
    monitor: SafetyMonitor
    outbox: Outbox
    limits: TurnLimits
    foreground: Foreground = field(default_factory=Foreground)
    """The turns that run now, for which work in the background waits."""
