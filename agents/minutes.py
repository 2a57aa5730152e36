"""What a turn leaves for the blocks, taken down from what the stations made of it."""

from dataclasses import dataclass
from datetime import datetime

from agents.questions import kinds_asked
from agents.roster import Specialist
from agents.specialist import next_topics
from agents.values import Enrichment, Intent
from memory_blocks.edits import CompletedTurn
from memory_blocks.models import AgentResponse, UserMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """How long a turn took, in seconds, as far as it was measured."""

    context: float | None = None
    response: float | None = None


def take_down(
    *,
    turn_id: int,
    timestamp: datetime,
    message_id: str,
    message: str,
    enrichment: Enrichment | None = None,
    intent: Intent | None = None,
    specialist: Specialist | None = None,
    response_id: str | None = None,
    said: str = "",
    sure_enough: float = 0.0,
    took: Took | None = None,
    error: str | None = None,
) -> CompletedTurn:
    """The turn as far as it came. With an `error` it failed; what was said before stays in it."""
    response = None
    if specialist is not None and response_id is not None and (said or error is None):
        response = AgentResponse(agent_type=specialist.agent_type, content=said, response_id=response_id)
    took = took or Took()
    return CompletedTurn(
        turn_id=turn_id,
        timestamp=timestamp,
        user_message=UserMessage(content=message, message_id=message_id),
        enrichment=enrichment.for_block() if enrichment else None,
        intent=intent.for_block() if intent else None,
        response=response,
        agent_name=specialist.display_name if specialist else "",
        agent_scope=specialist.scope if specialist else "not yet routed",
        sure_enough=intent is not None and intent.confidence >= sure_enough,
        topic=enrichment.topic if enrichment else None,
        trigger=enrichment.trigger if enrichment else None,
        phase=enrichment.phase if enrichment else None,
        facts=enrichment.known if enrichment else {},
        asked_now=kinds_asked(said),
        asked_before=enrichment.asked_before if enrichment else (),
        next_topics=next_topics(specialist, enrichment.known) if specialist and enrichment else (),
        context_quality=enrichment.quality if enrichment else None,
        corrected=enrichment.corrected if enrichment else False,
        context_seconds=took.context,
        response_seconds=took.response,
        error=error,
    )
