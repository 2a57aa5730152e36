"""Complete objects for tests; a test sets only the fields that matter to it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.ports import Situation
from memory_blocks import edits
from memory_blocks.edits import CompletedTurn
from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts
from memory_blocks.facts.view import changes_in
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.models import (
    AgentResponse,
    Blocks,
    ContextEnrichment,
    Conversation,
    ConversationHistory,
    IntentClassification,
    Turn,
    TurnStatus,
    UserMessage,
)

START = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)


class HandClock:
    """A clock that a test moves by hand."""

    def __init__(self, moment: datetime = START) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def tick(self, seconds: float = 60) -> datetime:
        self.moment += timedelta(seconds=seconds)
        return self.moment


class CountedIds:
    """Predictable ids: `mem_1`, `mem_2` …"""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def a_conversation(conversation_id: str = "session_123") -> Conversation:
    return Conversation(id=conversation_id, person_id="user_456", started_at=START)


def an_enrichment(enriched: str = "User reports having a headache", *relevant: str) -> ContextEnrichment:
    return ContextEnrichment(
        previous_context="No previous context - first message",
        enriched_message=enriched,
        relevant_history=relevant,
    )


def an_intent(confidence: float = 0.9, intent: str = "GENERAL_HEALTH") -> IntentClassification:
    return IntentClassification(intent=intent, confidence=confidence, reasoning="Physical symptom reported")


def a_change(id: str = "fact_1", op: Op = Op.ADD, **fields: Any) -> FactChange:
    """A change to the facts: the person's severity is 8/10."""
    usual = {"kind": "severity", "subject": "person", "value": "8/10", "decided_by": Decider.LOCAL}
    return FactChange(**{"id": id, "op": op, "said_at": START, "turn": 1, **usual, **fields})


def a_fact(kind: str, value: str, turn: int = 1, **fields: Any) -> CurrentFact:
    """A fact that holds."""
    said_at = START + timedelta(minutes=turn)
    change = a_change(f"fact_{kind}_{value}", kind=kind, value=value, turn=turn, said_at=said_at, **fields)
    return current_facts([change])[0]


def a_turn(turn_id: int, message: str = "I am having a headache", answer: str = "Since when?") -> Turn:
    return Turn(
        turn_id=turn_id,
        timestamp=START + timedelta(minutes=turn_id),
        user_message=UserMessage(content=message, message_id=f"msg_{turn_id}"),
        context_enrichment=an_enrichment(),
        intent_classification=an_intent(),
        agent_response=AgentResponse(
            agent_type="GENERAL_HEALTH", content=answer, response_id=f"resp_{turn_id}"
        ),
        turn_status=TurnStatus.COMPLETED,
    )


def a_history(turns: Sequence[Turn]) -> ConversationHistory:
    return ConversationHistory(
        session_id="session_123",
        turns=tuple(turns),
        total_turns=turns[-1].turn_id if turns else 0,
        last_updated=turns[-1].timestamp if turns else None,
    )


def a_completed_turn(
    turn_id: int,
    message: str = "I am having a headache",
    answer: str = "I understand. How severe is it on a scale of 1 to 10?",
    *,
    agent: str = "GENERAL_HEALTH",
    agent_name: str = "General Health Agent",
    attempt: int = 1,
) -> CompletedTurn:
    """A completed turn, one minute after the former one; `attempt` gives the answer another id."""
    return CompletedTurn(
        turn_id=turn_id,
        timestamp=START + timedelta(minutes=turn_id),
        user_message=UserMessage(content=message, message_id=f"msg_{turn_id}"),
        enrichment=an_enrichment("User reports having a headache"),
        intent=an_intent(intent=agent),
        response=AgentResponse(agent_type=agent, content=answer, response_id=f"resp_{turn_id}_{attempt}"),
        agent_name=agent_name,
        agent_scope="health symptoms",
        topic="headache_evaluation",
        trigger="new_session",
        phase="symptom_evaluation",
        facts=(a_fact("concern", "headache"),),
        asked_now=("severity",),
        next_topics=("Onset and duration",),
        context_quality=0.9,
        context_seconds=0.5,
        response_seconds=1.0,
    )


def some_blocks(turns: int, limits: Limits = DEFAULTS) -> Blocks:
    """The blocks after some ordinary turns."""
    blocks = edits.empty(a_conversation(), limits)
    for turn_id in range(1, turns + 1):
        at = START + timedelta(minutes=turn_id, seconds=30)
        blocks = edits.complete_turn(blocks, a_completed_turn(turn_id), at, limits)
    return blocks


def a_situation(blocks: Blocks, facts: Sequence[CurrentFact] | None = None) -> Situation:
    """What a brain knows with these blocks; the facts are those of the blocks, if not given."""
    known = current_facts(changes_in(blocks.active_session)) if facts is None else tuple(facts)
    return Situation(blocks, known, START + timedelta(hours=1))
