"""Checks that the four blocks agree with each other and keep to their limits."""

from collections.abc import Iterator, Set
from typing import TypeAlias

from memory_blocks import summary_text
from memory_blocks.errors import BlockInvalid
from memory_blocks.limits import DEFAULTS, Limits, utilization, whole_percent
from memory_blocks.models import (
    MAX_TURNS,
    ActiveSession,
    Blocks,
    Conversation,
    ConversationHistory,
    Label,
    Model,
    TurnStatus,
    moment_text,
    render,
)

Departure: TypeAlias = tuple[Label, str, str]
"""A rule that a block breaks: the block, the path of the field, and the rule."""


def departures(
    blocks: Blocks, limits: Limits = DEFAULTS, agent_types: Set[str] | None = None
) -> Iterator[Departure]:
    """Every rule between the blocks that is broken. If `agent_types` is None, every agent name is allowed."""
    yield from _of_identity(blocks)
    yield from _of_counts(blocks, limits.turns_refused_above)
    yield from _of_sizes(blocks, limits)
    if agent_types is not None:
        yield from _of_agents(blocks, agent_types)


def disagreements(blocks: Blocks) -> Iterator[Departure]:
    """Every contradiction between the blocks that does not depend on the settings.

    Sizes are not compared: every write measures them again, and the limits may have changed since.
    """
    yield from _of_identity(blocks)
    yield from _of_counts(blocks, MAX_TURNS)


def wrong_owners(blocks: Blocks, conversation: Conversation) -> Iterator[Departure]:
    """Where any of the blocks says that it belongs to another conversation or person."""
    for label in Label:
        for path, rule in wrong_owner(getattr(blocks, label.value), conversation):
            yield label, path, rule


def wrong_owner(block: Model | str, conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Where one block says that it belongs to another conversation or person: the path and the rule."""
    if isinstance(block, ConversationHistory):
        if block.session_id != conversation.id:
            yield "session_id", "is that of another conversation"
    elif isinstance(block, ActiveSession):
        info = block.session_info
        if info.session_id != conversation.id:
            yield "session_info.session_id", "is that of another conversation"
        if info.user_id != conversation.person_id:
            yield "session_info.user_id", "is that of another person"
        if moment_text(info.start_time) != moment_text(conversation.started_at):
            yield "session_info.start_time", "is not when the conversation began"
    elif isinstance(block, str) and block:
        summary = summary_text.parse(block)
        if (summary.session_id, summary.person_id) != (conversation.id, conversation.person_id):
            yield "header", "is that of another conversation"


def agents_in(blocks: Blocks) -> Set[str]:
    """The agents that the blocks name."""
    agents, state = blocks.active_session.agent_context, blocks.active_session.conversation_state
    answers = (turn.agent_response for turn in blocks.conversation_history.turns)
    named = (agents.primary_agent, state.last_agent, *agents.routing_history)
    return {answer.agent_type for answer in answers if answer} | {name for name in named if name}


def _of_identity(blocks: Blocks) -> Iterator[Departure]:
    history, session = blocks.conversation_history, blocks.active_session
    if session.session_info.session_id != history.session_id:
        yield Label.ACTIVE_SESSION, "session_info.session_id", "is not that of conversation_history"
    if session.conversation_state.current_turn != history.total_turns:
        yield Label.ACTIVE_SESSION, "conversation_state.current_turn", "is not the latest turn"
    if history.last_updated is not None and session.session_info.last_activity < history.last_updated:
        yield Label.ACTIVE_SESSION, "session_info.last_activity", "is before the history was updated"
    latest = history.turns[-1] if history.turns else None
    answer = latest.agent_response if latest and latest.turn_status is TurnStatus.COMPLETED else None
    if answer and session.conversation_state.last_agent != answer.agent_type:
        yield Label.ACTIVE_SESSION, "conversation_state.last_agent", "is not that of the latest turn"
    transitions = session.conversation_state.topic_transitions
    if any(entry.turn > history.total_turns for entry in transitions):
        yield Label.ACTIVE_SESSION, "conversation_state.topic_transitions", "names a turn that does not exist"
    if transitions and session.conversation_state.active_topic != transitions[-1].topic:
        yield Label.ACTIVE_SESSION, "conversation_state.active_topic", "is not the latest transition's"
    if blocks.context_summary:
        yield from _of_summary(blocks)
    elif history.total_turns:
        yield Label.CONTEXT_SUMMARY, "$", "is empty although there are turns"


def _of_summary(blocks: Blocks) -> Iterator[Departure]:
    info, state = blocks.active_session.session_info, blocks.active_session.conversation_state
    try:
        summary = summary_text.parse(blocks.context_summary)
    except BlockInvalid as refused:
        yield Label.CONTEXT_SUMMARY, str(refused.facts["path"]), str(refused.facts["rule"])
        return
    if (summary.session_id, summary.person_id, summary.started_at) != (
        info.session_id,
        info.user_id,
        info.start_time.replace(microsecond=info.start_time.microsecond // 1000 * 1000),
    ):
        yield Label.CONTEXT_SUMMARY, "header", "is not that of active_session"
    if summary.topic != summary_text.titled(state.active_topic or summary_text.NO_TOPIC):
        yield Label.CONTEXT_SUMMARY, "header", "has another topic than active_session"
    if summary.phase != summary_text.titled(state.conversation_phase):
        yield Label.CONTEXT_SUMMARY, "header", "has another phase than active_session"


def _of_counts(blocks: Blocks, max_turns: int) -> Iterator[Departure]:
    history, session, metadata = (blocks.conversation_history, blocks.active_session, blocks.memory_metadata)
    if len(history.turns) > max_turns:
        yield Label.CONVERSATION_HISTORY, "turns", f"has more than {max_turns} turns"
    archived = history.total_turns - len(history.turns)
    if metadata.archival_info.total_archived_turns != archived:
        path = "archival_info.total_archived_turns"
        yield Label.MEMORY_METADATA, path, "is not the number of turns that left the history"
    completed = sum(turn.turn_status is TurnStatus.COMPLETED for turn in history.turns)
    exchanges = session.session_metadata.total_exchanges
    if not completed <= exchanges <= completed + archived:
        path = "session_metadata.total_exchanges"
        yield Label.ACTIVE_SESSION, path, "is not the number of completed turns"


def _of_sizes(blocks: Blocks, limits: Limits) -> Iterator[Departure]:
    usage = blocks.memory_metadata.memory_usage
    for label in (Label.CONVERSATION_HISTORY, Label.ACTIVE_SESSION, Label.CONTEXT_SUMMARY):
        size, limit, stated = len(render(label, blocks)), limits.of(label), getattr(usage, label.value)
        if (stated.current_size, stated.limit, stated.utilization_percent) != (
            size,
            limit,
            min(100.0, utilization(size, limit)),
        ):
            yield Label.MEMORY_METADATA, f"memory_usage.{label}", "is not what the block's text takes"
    if usage.conversation_history.turns_stored != len(blocks.conversation_history.turns):
        path = "memory_usage.conversation_history.turns_stored"
        yield Label.MEMORY_METADATA, path, "is not the number of turns in the history"
    size = len(render(Label.CONVERSATION_HISTORY, blocks))
    percent = min(100, whole_percent(size, limits.of(Label.CONVERSATION_HISTORY)))
    if blocks.active_session.session_metadata.memory_usage_percent != percent:
        path = "session_metadata.memory_usage_percent"
        yield Label.ACTIVE_SESSION, path, "is not what conversation_history takes"


def _of_agents(blocks: Blocks, agent_types: Set[str]) -> Iterator[Departure]:
    rule = "is not a configured agent"
    for at, turn in enumerate(blocks.conversation_history.turns):
        if turn.agent_response is not None and turn.agent_response.agent_type not in agent_types:
            yield Label.CONVERSATION_HISTORY, f"turns.{at}.agent_response.agent_type", rule
    agents = blocks.active_session.agent_context
    for at, agent in enumerate(agents.routing_history):
        if agent not in agent_types:
            yield Label.ACTIVE_SESSION, f"agent_context.routing_history.{at}", rule
    for path, named in (
        ("agent_context.primary_agent", agents.primary_agent),
        ("conversation_state.last_agent", blocks.active_session.conversation_state.last_agent),
    ):
        if named is not None and named not in agent_types:
            yield Label.ACTIVE_SESSION, path, rule
