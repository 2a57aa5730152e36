"""Makes the next version of the blocks after a turn, a rotation or a repair. Pure functions only."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import Any, Final

from memory_blocks import summary_text
from memory_blocks.errors import BlockInvalid, HistoryFull
from memory_blocks.facts import view as fact_view
from memory_blocks.facts.changes import CurrentFact
from memory_blocks.limits import DEFAULTS, Limits, utilization, whole_percent
from memory_blocks.models import (
    MAX_LINE,
    SCHEMA_VERSION,
    ActiveSession,
    AgentContext,
    AgentResponse,
    ArchivalInfo,
    Blocks,
    ContextEnrichment,
    Conversation,
    ConversationHistory,
    ConversationState,
    EarlierSession,
    HistoryUsage,
    IntentClassification,
    Label,
    Level,
    MemoryMetadata,
    MemoryUsage,
    PerformanceMetrics,
    Sentiment,
    SessionInfo,
    SessionMetadata,
    SessionStatus,
    SystemFlags,
    TopicTransition,
    Turn,
    TurnStatus,
    Usage,
    UserMessage,
    built,
    changed,
)
from memory_blocks.rotation import Rotation

_MAX_LISTED: Final = 20
_NO_NEXT_TOPIC: Final = ("What the person wants to talk about",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedTurn:
    """Everything that a turn adds to the blocks. A turn with an `error` failed; it has what it got so far.

    `turn_id` is `Blocks.next_turn`, or the id of the latest turn to replace that one. `facts` are those that
    hold after the turn; None leaves the facts of the blocks as they are. `asked_now` and `asked_before` are
    the kinds that this answer and earlier ones asked for. `write_attempts` counts the attempts to write this
    turn.
    """

    turn_id: int
    timestamp: datetime
    user_message: UserMessage
    enrichment: ContextEnrichment | None = None
    intent: IntentClassification | None = None
    response: AgentResponse | None = None
    agent_name: str = ""
    agent_scope: str = "general"
    sure_enough: bool = True
    topic: str | None = None
    trigger: str | None = None
    phase: str | None = None
    facts: tuple[CurrentFact, ...] | None = None
    asked_now: tuple[str, ...] = ()
    asked_before: tuple[str, ...] = ()
    next_topics: tuple[str, ...] = ()
    context_quality: float | None = None
    sentiment: Sentiment | None = None
    corrected: bool = False
    context_seconds: float | None = None
    response_seconds: float | None = None
    write_attempts: int = 1
    error: str | None = None


def empty(conversation: Conversation, limits: Limits = DEFAULTS) -> Blocks:
    """Revision 0: the blocks before the first turn, made from the conversation alone."""
    nothing = Usage(current_size=0, limit=1, utilization_percent=0.0)
    blocks = Blocks(
        conversation_history=ConversationHistory(
            session_id=conversation.id, turns=(), total_turns=0, last_updated=None
        ),
        active_session=ActiveSession(
            session_info=SessionInfo(
                session_id=conversation.id,
                user_id=conversation.person_id,
                start_time=conversation.started_at,
                last_activity=conversation.started_at,
                status=SessionStatus.ACTIVE,
            ),
            conversation_state=ConversationState(
                current_turn=0,
                active_topic=None,
                last_agent=None,
                conversation_phase="opening",
                topic_transitions=(),
            ),
            agent_context=AgentContext(
                primary_agent=None, agent_confidence=None, routing_history=(), last_intent=None
            ),
            session_metadata=SessionMetadata(
                total_exchanges=0,
                average_response_time=None,
                context_quality_score=None,
                memory_usage_percent=0,
            ),
            earlier_sessions=conversation.earlier or None,
        ),
        context_summary="",
        memory_metadata=MemoryMetadata(
            memory_usage=MemoryUsage(
                conversation_history=HistoryUsage(
                    current_size=0, limit=1, utilization_percent=0.0, turns_stored=0, last_cleanup=None
                ),
                active_session=nothing,
                context_summary=nothing,
            ),
            archival_info=ArchivalInfo(
                total_archived_turns=0,
                last_archival=None,
                archival_trigger_threshold=limits.archival_trigger_threshold,
                next_archival_estimate=None,
            ),
            performance_metrics=PerformanceMetrics(
                avg_context_generation_time=None,
                memory_update_success_rate=None,
                context_accuracy_score=None,
                last_performance_check=None,
            ),
            system_flags=SystemFlags(
                memory_rotation_enabled=limits.rotation_enabled,
                archival_ready=True,
                context_validation_enabled=limits.validation_enabled,
                emergency_mode=False,
            ),
            level=Level.NORMAL,
        ),
    )
    return refresh(blocks, limits)


def complete_turn(blocks: Blocks, turn: CompletedTurn, now: datetime, limits: Limits = DEFAULTS) -> Blocks:
    """The blocks with `turn` appended, or with it in place of the latest turn if that has the same id."""
    history = blocks.conversation_history
    replaced = history.turns[-1] if history.turns and history.turns[-1].turn_id == turn.turn_id else None
    if replaced is None and turn.turn_id != blocks.next_turn:
        raise BlockInvalid(Label.CONVERSATION_HISTORY, "turns", "only the latest turn can be written again")
    earlier = history.turns if replaced is None else history.turns[:-1]
    if not limits.rotation_enabled and len(earlier) >= limits.turns_refused_above:
        raise HistoryFull(Label.CONVERSATION_HISTORY, len(earlier) + 1, limits.turns_refused_above)
    next_history = built(
        Label.CONVERSATION_HISTORY,
        lambda: changed(
            history,
            turns=(*earlier, _turn(turn, earlier[-1] if earlier else None)),
            total_turns=turn.turn_id,
            last_updated=max(now, turn.timestamp),
        ),
    )
    session = built(
        Label.ACTIVE_SESSION,
        lambda: _session(blocks.active_session, turn, replaced, next_history, max(now, turn.timestamp)),
    )
    metrics = _metrics(blocks.memory_metadata.performance_metrics, turn, next_history, now)
    return refresh(
        Blocks(
            conversation_history=next_history,
            active_session=session,
            context_summary=_summary(blocks, session, metrics, turn, next_history, limits),
            memory_metadata=changed(blocks.memory_metadata, performance_metrics=metrics),
        ),
        limits,
    )


def after_rotation(blocks: Blocks, rotation: Rotation, now: datetime, limits: Limits = DEFAULTS) -> Blocks:
    """The blocks after `rotation`: the shorter history, and its new counts in memory_metadata."""
    metadata = blocks.memory_metadata
    if rotation.rotated_out:
        archival = changed(
            metadata.archival_info,
            total_archived_turns=rotation.rotated_out[-1].turn_id,
            last_archival=now,
        )
        history_usage = changed(metadata.memory_usage.conversation_history, last_cleanup=now)
        usage = changed(metadata.memory_usage, conversation_history=history_usage)
        metadata = changed(metadata, archival_info=archival, memory_usage=usage)
    flags = changed(metadata.system_flags, emergency_mode=rotation.level is Level.EMERGENCY)
    metadata = changed(metadata, system_flags=flags, level=rotation.level)
    return refresh(replace(blocks, conversation_history=rotation.kept, memory_metadata=metadata), limits)


def refresh(blocks: Blocks, limits: Limits = DEFAULTS) -> Blocks:
    """The same blocks in our schema version, with sizes, counts and settings brought up to date."""
    history = blocks.conversation_history
    if history.schema_version != SCHEMA_VERSION:
        history = changed(history, schema_version=SCHEMA_VERSION)
    size = len(history.text)
    percent = min(100, whole_percent(size, limits.of(Label.CONVERSATION_HISTORY)))
    session = _trimmed(
        changed(
            blocks.active_session,
            schema_version=SCHEMA_VERSION,
            session_metadata=changed(blocks.active_session.session_metadata, memory_usage_percent=percent),
        ),
        limits,
    )
    metadata = blocks.memory_metadata
    usage = MemoryUsage(
        conversation_history=HistoryUsage(
            **_usage(size, limits.of(Label.CONVERSATION_HISTORY)).model_dump(),
            turns_stored=len(history.turns),
            last_cleanup=metadata.memory_usage.conversation_history.last_cleanup,
        ),
        active_session=_usage(len(session.text), limits.of(Label.ACTIVE_SESSION)),
        context_summary=_usage(len(blocks.context_summary), limits.of(Label.CONTEXT_SUMMARY)),
    )
    archival = changed(
        metadata.archival_info,
        archival_trigger_threshold=limits.archival_trigger_threshold,
        next_archival_estimate=_estimate(history, size, limits),
    )
    flags = changed(
        metadata.system_flags,
        memory_rotation_enabled=limits.rotation_enabled,
        context_validation_enabled=limits.validation_enabled,
    )
    return replace(
        blocks,
        conversation_history=history,
        active_session=session,
        memory_metadata=changed(
            metadata,
            schema_version=SCHEMA_VERSION,
            memory_usage=usage,
            archival_info=archival,
            system_flags=flags,
        ),
    )


def follow_history(blocks: Blocks, last_archived: int, limits: Limits = DEFAULTS) -> Blocks:
    """The blocks changed to agree with a restored history, whose turns up to `last_archived` are archived.

    Blocks that agree already are not changed.
    """
    history, session = blocks.conversation_history, blocks.active_session
    turns = tuple(turn for turn in history.turns if turn.turn_id > last_archived)
    total = max(history.total_turns, last_archived)
    if (turns, total) != (history.turns, history.total_turns):
        history = changed(history, turns=turns, total_turns=total)
    state, info, counts = session.conversation_state, session.session_info, session.session_metadata
    transitions = tuple(each for each in state.topic_transitions if each.turn <= total)
    answers = [turn.agent_response for turn in turns if turn.turn_status is TurnStatus.COMPLETED]
    completed = len(answers)
    last_agent = answers[-1].agent_type if answers and answers[-1] else state.last_agent
    session = changed(
        session,
        session_info=changed(
            info, last_activity=max(info.last_activity, history.last_updated or info.last_activity)
        ),
        conversation_state=changed(
            state,
            current_turn=total,
            last_agent=last_agent,
            topic_transitions=transitions,
            active_topic=transitions[-1].topic if transitions else state.active_topic,
        ),
        session_metadata=changed(
            counts,
            total_exchanges=min(max(counts.total_exchanges, completed), completed + total - len(turns)),
        ),
    )
    archival = changed(blocks.memory_metadata.archival_info, total_archived_turns=total - len(turns))
    return refresh(
        Blocks(
            conversation_history=history,
            active_session=session,
            context_summary=_summary_of(blocks.context_summary, session, total, limits),
            memory_metadata=changed(blocks.memory_metadata, archival_info=archival),
        ),
        limits,
    )


def with_facts(blocks: Blocks, facts: Sequence[CurrentFact], limits: Limits = DEFAULTS) -> Blocks:
    """The blocks with the view of these facts."""
    session = changed(blocks.active_session, facts=fact_view.view(facts) or None)
    return refresh(replace(blocks, active_session=session), limits)


def with_status(blocks: Blocks, status: SessionStatus, limits: Limits = DEFAULTS) -> Blocks:
    """The blocks with another status of the session."""
    session = blocks.active_session
    info = changed(session.session_info, status=status)
    return refresh(replace(blocks, active_session=changed(session, session_info=info)), limits)


def as_earlier(session: ActiveSession) -> EarlierSession:
    """A session in one line for a later one of the same person: when it ended, and what it was about."""
    about = summary_text.concern_of(fact_view.values_in(session.facts or ()))
    topic = session.conversation_state.active_topic or summary_text.NO_TOPIC
    return EarlierSession(
        session_id=session.session_info.session_id,
        ended_at=session.session_info.last_activity,
        summary=summary_text.one_line(about or summary_text.titled(topic), MAX_LINE),
    )


def with_summary_of(blocks: Blocks, limits: Limits = DEFAULTS) -> Blocks:
    """The same blocks with the header of the summary taken from active_session."""
    total = blocks.conversation_history.total_turns
    text = _summary_of(blocks.context_summary, blocks.active_session, total, limits)
    return replace(blocks, context_summary=text)


def _summary_of(text: str, session: ActiveSession, turns: int, limits: Limits) -> str:
    """The summary of a session, with the parts of its earlier text that still hold."""
    if not turns:
        return ""
    known = _known_summary(text, session)
    flow = tuple(entry for entry in known.flow if summary_text.turn_of(entry) <= turns)
    return summary_text.render(replace(known, flow=flow), limits.of(Label.CONTEXT_SUMMARY))


def _known_summary(text: str, session: ActiveSession) -> summary_text.Summary:
    """The summary in `text`, or one without turns if it is empty; its header is taken from the session."""
    info, state = session.session_info, session.conversation_state
    header: dict[str, Any] = {
        "session_id": info.session_id,
        "person_id": info.user_id,
        "started_at": info.start_time,
        "topic": state.active_topic or summary_text.NO_TOPIC,
        "phase": state.conversation_phase,
    }
    if text:
        return replace(summary_text.parse(text), **header)
    return summary_text.Summary(
        **header,
        agent="None yet",
        flow=(),
        points=summary_text.key_points(fact_view.values_in(session.facts or ())),
        next_topics=_NO_NEXT_TOPIC,
        quality=summary_text.quality_lines(
            continuity=session.session_metadata.context_quality_score,
            uncorrected=None,
            appropriate=True,
            scope="general",
            answered=None,
        ),
        notes=(),
    )


# --- the parts of a turn ----------------------------------------------------------------------------------


def _turn(turn: CompletedTurn, before: Turn | None) -> Turn:
    return Turn(
        turn_id=turn.turn_id,
        timestamp=turn.timestamp,
        user_message=turn.user_message,
        context_enrichment=turn.enrichment,
        intent_classification=turn.intent,
        agent_response=turn.response,
        turn_status=TurnStatus.COMPLETED if turn.error is None else TurnStatus.IN_PROGRESS,
        error=turn.error,
        sentiment=turn.sentiment,
        topics=None if turn.topic is None else (turn.topic,),
        context_score=turn.context_quality,
        answered=_answers(turn.enrichment, before),
        corrected=None if turn.intent is None else turn.corrected,
    )


def _answers(enrichment: ContextEnrichment | None, before: Turn | None) -> bool | None:
    """Whether the message refers to the question asked before it; None if no question was asked."""
    if before is None or before.agent_response is None or "?" not in before.agent_response.content:
        return None
    return enrichment is not None and f"turn_{before.turn_id}" in enrichment.relevant_history


def _session(
    session: ActiveSession,
    turn: CompletedTurn,
    replaced: Turn | None,
    history: ConversationHistory,
    now: datetime,
) -> ActiveSession:
    state, agents, counts = session.conversation_state, session.agent_context, session.session_metadata
    redone = replaced is not None and replaced.turn_status is TurnStatus.COMPLETED
    transitions = tuple(entry for entry in state.topic_transitions if entry.turn != turn.turn_id)
    previous_topic = transitions[-1].topic if transitions else None
    topic = turn.topic or previous_topic
    if topic is not None and topic != previous_topic:
        trigger = turn.trigger or ("new_session" if previous_topic is None else "topic_change")
        transitions = (*transitions, TopicTransition(turn=turn.turn_id, topic=topic, trigger=trigger))
    routing = agents.routing_history[:-1] if redone else agents.routing_history
    exchanges = counts.total_exchanges - redone
    if turn.error is None and turn.response is not None:
        routing = (*routing, turn.response.agent_type)
        exchanges += 1
    return changed(
        session,
        session_info=changed(
            session.session_info,
            last_activity=max(now, session.session_info.last_activity),
            status=SessionStatus.ACTIVE,
        ),
        conversation_state=ConversationState(
            current_turn=turn.turn_id,
            active_topic=topic,
            last_agent=routing[-1] if routing else None,
            conversation_phase=turn.phase or state.conversation_phase,
            topic_transitions=transitions[-_MAX_LISTED:],
        ),
        agent_context=AgentContext(
            primary_agent=Counter(routing).most_common(1)[0][0] if routing else None,
            agent_confidence=turn.intent.confidence if turn.intent else agents.agent_confidence,
            routing_history=routing[-_MAX_LISTED:],
            last_intent=turn.intent.intent if turn.intent else agents.last_intent,
        ),
        session_metadata=SessionMetadata(
            total_exchanges=exchanges,
            average_response_time=_mean(counts.average_response_time, turn.response_seconds, turn.turn_id),
            context_quality_score=_mean_of(
                (each.context_score for each in history.turns), counts.context_quality_score
            ),
            memory_usage_percent=counts.memory_usage_percent,
        ),
        facts=session.facts if turn.facts is None else fact_view.view(turn.facts) or None,
    )


def _metrics(
    metrics: PerformanceMetrics, turn: CompletedTurn, history: ConversationHistory, now: datetime
) -> PerformanceMetrics:
    not_understood = sum(each.context_enrichment is None for each in history.turns)
    return PerformanceMetrics(
        avg_context_generation_time=_mean(
            metrics.avg_context_generation_time, turn.context_seconds, max(1, turn.turn_id - not_understood)
        ),
        memory_update_success_rate=_mean(
            metrics.memory_update_success_rate, 100.0 / turn.write_attempts, turn.turn_id
        ),
        context_accuracy_score=_mean_of(
            (None if each.corrected is None else float(not each.corrected) for each in history.turns),
            metrics.context_accuracy_score,
        ),
        last_performance_check=now,
    )


def _mean(mean: float | None, value: float | None, count: int) -> float | None:
    """The mean after one more value, from the mean before it: earlier values need not be stored."""
    if value is None or mean is None:
        return mean if value is None else round(value, 4)
    return round(mean + (value - mean) / count, 4)


def _mean_of(values: Iterable[float | None], otherwise: float | None) -> float | None:
    """The mean over the stored turns that have a value; `otherwise` if none has."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else otherwise


def _summary(
    blocks: Blocks,
    session: ActiveSession,
    metrics: PerformanceMetrics,
    turn: CompletedTurn,
    history: ConversationHistory,
    limits: Limits,
) -> str:
    known = _known_summary(blocks.context_summary, session)
    flow = known.flow
    if flow and flow[-1].startswith(f"Turn {turn.turn_id} ("):
        flow = flow[:-1]
    told = fact_view.values_in(session.facts or ()) if turn.facts is None else fact_view.points(turn.facts)
    points, topics = summary_text.key_points(told, turn.asked_now, turn.asked_before), turn.next_topics
    if turn.enrichment is None and blocks.context_summary:  # not understood: keep what was known
        points, topics = known.points, known.next_topics
    return summary_text.render(
        replace(
            known,
            agent=turn.agent_name or known.agent or "None yet",
            flow=(*flow, _flow_entry(turn, history)),
            points=points,
            next_topics=topics or _NO_NEXT_TOPIC,
            quality=summary_text.quality_lines(
                continuity=session.session_metadata.context_quality_score,
                uncorrected=metrics.context_accuracy_score,
                appropriate=turn.sure_enough,
                scope=turn.agent_scope,
                answered=_answered(history),
            ),
        ),
        limits.of(Label.CONTEXT_SUMMARY),
    )


def _flow_entry(turn: CompletedTurn, history: ConversationHistory) -> str:
    said = turn.enrichment.enriched_message if turn.enrichment else "Message not yet understood"
    steps = []
    if turn.response is not None and turn.intent is not None:
        earlier = [each.agent_response for each in history.turns[:-1] if each.agent_response is not None]
        before = earlier[-1].agent_type if earlier else None
        same = before == turn.response.agent_type
        steps.append(
            summary_text.routing(
                turn.agent_name,
                turn.agent_name if same else before,
                turn.intent.confidence,
            )
        )
        steps.append(_agent_line(turn.response.content))
    if turn.error is not None:
        steps.append(f"Not finished ({turn.error})")
    return summary_text.flow_entry(turn.turn_id, turn.timestamp, said, *steps)


def _agent_line(answer: str) -> str:
    line = summary_text.one_line(answer, len(answer) or 1)
    if "?" not in line:
        return f"Agent said: {summary_text.one_line(line, 140)}"
    question = line[: line.rindex("?") + 1]
    start = max(question.rfind(mark, 0, -1) for mark in (". ", "! ", "? "))
    return f"Agent asked: {summary_text.one_line(question[start + 1 :].strip(), 140)}"


def _answered(history: ConversationHistory) -> float | None:
    """The share of questions in the stored turns that the next turn answered; None without questions."""
    found = [
        later.answered if later.answered is not None else _answers(later.context_enrichment, turn)
        for turn, later in pairwise(history.turns)
    ]
    answered = [each for each in found if each is not None]
    return sum(answered) / len(answered) if answered else None


# --- sizes ------------------------------------------------------------------------------------------------


def _usage(size: int, limit: int) -> Usage:
    return Usage(current_size=size, limit=limit, utilization_percent=min(100.0, utilization(size, limit)))


def _estimate(history: ConversationHistory, size: int, limits: Limits) -> int | None:
    """The turn at which the history reaches the archival threshold, at the average size of its turns."""
    count = len(history.turns)
    if count < 3:
        return None
    return history.total_turns - count + ceil(limits.archival_trigger_threshold * count / size)


def _trimmed(session: ActiveSession, limits: Limits) -> ActiveSession:
    """Shorten the session to its limit: first its lists, oldest entries first, then its last facts."""
    while len(session.text) > limits.of(Label.ACTIVE_SESSION):
        state, agents = session.conversation_state, session.agent_context
        if len(state.topic_transitions) >= max(len(agents.routing_history), 2):
            state = changed(state, topic_transitions=state.topic_transitions[1:])
        elif len(agents.routing_history) > 1:
            agents = changed(agents, routing_history=agents.routing_history[1:])
        elif session.earlier_sessions:
            session = changed(session, earlier_sessions=session.earlier_sessions[1:] or None)
            continue
        elif session.facts:
            session = changed(session, facts=session.facts[:-1] or None)
            continue
        else:
            break
        session = changed(session, conversation_state=state, agent_context=agents)
    return session
