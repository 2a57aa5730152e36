"""The fields of the four blocks, in the order in which they are written."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from memory_blocks.errors import BlockInvalid

SCHEMA_VERSIONS: Final = ("1.0", "1.1", "1.2")
SCHEMA_VERSION: Final = "1.2"
"""The version we write. A later version only adds optional fields, so every version can be read."""

MAX_TURNS: Final = 25
MAX_LINE: Final = 240
RFC_3339: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
NOT_A_TIME: Final = "is not a time in ISO 8601 with its zone"

_RFC_3339: Final = re.compile(RFC_3339)


def moment_text(moment: datetime) -> str:
    """A time as RFC 3339 in UTC: whole seconds without a fraction, any other time with milliseconds."""
    fraction = "milliseconds" if moment.microsecond >= 1000 else "seconds"
    return moment.astimezone(UTC).isoformat(timespec=fraction).removesuffix("+00:00") + "Z"


def _parse_time(value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is UTC:  # most are
        return value
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        try:
            value = datetime.fromisoformat(value.upper())
        except ValueError:
            value = None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    raise PydanticCustomError("moment", NOT_A_TIME)


def departure(path: str, rule: str) -> PydanticCustomError:
    """The error that a check over several fields raises: the path, and the rule that is broken there."""
    return PydanticCustomError("departure", "{rule}", {"path": path, "rule": rule})


Moment: TypeAlias = Annotated[
    datetime,
    BeforeValidator(_parse_time),
    PlainSerializer(moment_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": RFC_3339}),
]
Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
AgentType: TypeAlias = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Slug: TypeAlias = Annotated[str, Field(pattern=r"^\w{1,80}$")]
TurnRef: TypeAlias = Annotated[str, Field(pattern=r"^turn_[1-9][0-9]{0,8}$")]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Percent: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _is_none(value: object) -> bool:
    return value is None


SINCE_1_1: Final = Field(exclude_if=_is_none, json_schema_extra={"since": "1.1"})
"""A field that version 1.1 added. It is left out of the text if it is None."""

SINCE_1_2: Final = Field(exclude_if=_is_none, json_schema_extra={"since": "1.2"})
"""A field that version 1.2 added. It is left out of the text if it is None."""

Version: TypeAlias = Annotated[Literal["1.1", "1.2"] | None, SINCE_1_1]


class Label(StrEnum):
    """The four blocks of a conversation."""

    CONVERSATION_HISTORY = "conversation_history"
    ACTIVE_SESSION = "active_session"
    CONTEXT_SUMMARY = "context_summary"
    MEMORY_METADATA = "memory_metadata"


class Model(BaseModel):
    """Base class. Errors never quote the input, because a person wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    @cached_property
    def text(self) -> str:
        """The model as text: compact JSON with the fields in order, non-ASCII characters unescaped."""
        return _dumps(self.model_dump(mode="json"))


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


# --- conversation_history ---------------------------------------------------------------------------------


class TurnStatus(StrEnum):
    """The state of a turn. In a block, IN_PROGRESS with an `error` is a turn that failed."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"


class UserMessage(Model):
    """The person's message, unchanged."""

    content: str
    message_id: Id


class ContextEnrichment(Model):
    """The message rewritten so that it is understood without the ones before, and the turns it refers to."""

    previous_context: str
    enriched_message: str
    relevant_history: tuple[TurnRef, ...]


class IntentClassification(Model):
    """The intent of the message, with a confidence and a reason."""

    intent: AgentType
    confidence: Share
    reasoning: Annotated[str, Field(min_length=1)]


class AgentResponse(Model):
    """The specialist's answer, unchanged."""

    agent_type: AgentType
    content: str
    response_id: Id


class Sentiment(StrEnum):
    """The mood of a message."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"


class Turn(Model):
    """One message and its answer.

    `answered` and `corrected` are about the turn before: whether this one answers its question, and whether
    it corrects how that one was understood. They are stored here so that a later turn never changes an
    earlier one.
    """

    turn_id: Annotated[int, Field(ge=1)]
    timestamp: Moment
    user_message: UserMessage
    context_enrichment: ContextEnrichment | None = None
    intent_classification: IntentClassification | None = None
    agent_response: AgentResponse | None = None
    turn_status: TurnStatus
    error: Annotated[str | None, Field(min_length=1, max_length=200, exclude_if=_is_none)] = None
    sentiment: Annotated[Sentiment | None, SINCE_1_1] = None
    topics: Annotated[tuple[Slug, ...] | None, SINCE_1_1] = None
    context_score: Annotated[Share | None, SINCE_1_1] = None
    answered: Annotated[bool | None, SINCE_1_1] = None
    corrected: Annotated[bool | None, SINCE_1_1] = None

    @model_validator(mode="after")
    def _status_fits(self) -> Self:
        if self.turn_status is TurnStatus.COMPLETED and self.agent_response is None:
            raise departure("agent_response", "is missing in a completed turn")
        if self.turn_status is TurnStatus.COMPLETED and self.error is not None:
            raise departure("error", "a completed turn has none")
        return self


class ConversationHistory(Model):
    """The latest turns of a conversation. `total_turns` also counts the archived ones."""

    schema_version: Version = None
    session_id: Id
    turns: tuple[Turn, ...]
    total_turns: Count
    last_updated: Moment | None

    @cached_property
    def text(self) -> str:
        """As in every model, but joined from the texts of the turns, which are cached: most do not change."""
        top = _dumps(self.model_dump(mode="json", include={"schema_version", "session_id"}))
        rest = _dumps(self.model_dump(mode="json", exclude={"schema_version", "session_id", "turns"}))
        turns = ",".join(turn.text for turn in self.turns)
        return f'{top[:-1]},"turns":[{turns}],{rest[1:]}'

    @model_validator(mode="after")
    def _turns_follow_each_other(self) -> Self:
        if len(self.turns) > MAX_TURNS:
            raise departure("turns", f"has more than {MAX_TURNS} turns")
        for at, (earlier, later) in enumerate(pairwise(self.turns), start=1):
            if later.turn_id != earlier.turn_id + 1:
                raise departure(f"turns.{at}.turn_id", "is not one above the turn before it")
            if later.timestamp < earlier.timestamp:
                raise departure(f"turns.{at}.timestamp", "is before the turn before it")
        return self

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        messages: set[str] = set()
        responses: set[str] = set()
        for at, turn in enumerate(self.turns):
            if turn.user_message.message_id in messages:
                raise departure(f"turns.{at}.user_message.message_id", "is used by two messages")
            messages.add(turn.user_message.message_id)
            if turn.agent_response is not None:
                if turn.agent_response.response_id in responses:
                    raise departure(f"turns.{at}.agent_response.response_id", "is used by two responses")
                responses.add(turn.agent_response.response_id)
        return self

    @model_validator(mode="after")
    def _refers_to_earlier_turns(self) -> Self:
        for at, turn in enumerate(self.turns):
            refs = turn.context_enrichment.relevant_history if turn.context_enrichment else ()
            if any(int(ref.removeprefix("turn_")) >= turn.turn_id for ref in refs):
                raise departure(
                    f"turns.{at}.context_enrichment.relevant_history",
                    "names a turn that is not an earlier one",
                )
        return self

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        if self.turns and self.total_turns != self.turns[-1].turn_id:
            raise departure("total_turns", "is not the number of the latest turn")
        if self.turns and (self.last_updated is None or self.last_updated < self.turns[-1].timestamp):
            raise departure("last_updated", "is before the latest turn")
        return self


# --- active_session ---------------------------------------------------------------------------------------


class SessionStatus(StrEnum):
    """Whether the session is active."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    ENDED = "ENDED"


class SessionInfo(Model):
    """The person and the times of a session."""

    session_id: Id
    user_id: Id
    start_time: Moment
    last_activity: Moment
    status: SessionStatus

    @model_validator(mode="after")
    def _time_goes_on(self) -> Self:
        if self.last_activity < self.start_time:
            raise departure("last_activity", "is before start_time")
        return self


class TopicTransition(Model):
    """The turn at which the topic changed, and the reason."""

    turn: Annotated[int, Field(ge=1)]
    topic: Slug
    trigger: Slug


class ConversationState(Model):
    """The current turn, topic, agent and phase."""

    current_turn: Count
    active_topic: Slug | None
    last_agent: AgentType | None
    conversation_phase: Slug
    topic_transitions: tuple[TopicTransition, ...]


class AgentContext(Model):
    """The agents of the latest messages. `primary_agent` is the most frequent one in `routing_history`."""

    primary_agent: AgentType | None
    agent_confidence: Share | None
    routing_history: tuple[AgentType, ...]
    last_intent: AgentType | None


class SessionMetadata(Model):
    """Counts and averages over the session."""

    total_exchanges: Count
    average_response_time: Seconds | None
    context_quality_score: Share | None
    memory_usage_percent: Annotated[int, Field(ge=0, le=100)]


class Fact(Model):
    """Something the person said about themselves, and the turn in which they said it."""

    kind: Slug
    value: Annotated[str, Field(min_length=1, max_length=MAX_LINE)]
    turn: Annotated[int, Field(ge=1)]
    subject: Annotated[str | None, Field(min_length=1, max_length=60), SINCE_1_2] = None
    """Whose it is, if it is not about the person who writes."""
    about: Annotated[str | None, Field(min_length=1, max_length=120), SINCE_1_2] = None
    """What the value belongs to, such as the headache of a severity."""
    stable: Annotated[bool | None, SINCE_1_2] = None
    """True for a lasting fact, such as an allergy."""
    sure: Annotated[bool | None, SINCE_1_2] = None
    """False for a doubtful fact."""
    true_when: Annotated[str | None, Field(min_length=1, max_length=120), SINCE_1_2] = None
    """When it was true, in the person's words."""


class EarlierSession(Model):
    """An earlier conversation of the same person, in one line."""

    session_id: Id
    ended_at: Moment
    summary: Annotated[str, Field(max_length=MAX_LINE)]


class ActiveSession(Model):
    """The state of the session after its latest turn. Facts stay when their turns are archived."""

    schema_version: Version = None
    session_info: SessionInfo
    conversation_state: ConversationState
    agent_context: AgentContext
    session_metadata: SessionMetadata
    facts: Annotated[tuple[Fact, ...] | None, SINCE_1_1] = None
    earlier_sessions: Annotated[tuple[EarlierSession, ...] | None, SINCE_1_1] = None


# --- memory_metadata --------------------------------------------------------------------------------------


class Usage(Model):
    """How much of its limit a block uses."""

    current_size: Count
    limit: Annotated[int, Field(ge=1)]
    utilization_percent: Percent


class HistoryUsage(Usage):
    """Usage of the history, with the number of its turns and the time of its last rotation."""

    turns_stored: Annotated[int, Field(ge=0, le=MAX_TURNS)]
    last_cleanup: Moment | None


class MemoryUsage(Model):
    """Usage of each block. That of memory_metadata itself is optional."""

    conversation_history: HistoryUsage
    active_session: Usage
    context_summary: Usage
    memory_metadata: Annotated[Usage | None, Field(exclude_if=_is_none)] = None


class ArchivalInfo(Model):
    """How many turns left the history, when, and at which turn the next rotation is expected."""

    total_archived_turns: Count
    last_archival: Moment | None
    archival_trigger_threshold: Annotated[int, Field(ge=1)]
    next_archival_estimate: Annotated[int, Field(ge=1)] | None


class PerformanceMetrics(Model):
    """Measurements; null until something was measured."""

    avg_context_generation_time: Seconds | None
    memory_update_success_rate: Percent | None
    context_accuracy_score: Share | None
    last_performance_check: Moment | None


class SystemFlags(Model):
    """Settings that are in force, and signals of the orchestrator."""

    memory_rotation_enabled: bool
    archival_ready: bool
    context_validation_enabled: bool
    emergency_mode: bool


class Level(StrEnum):
    """How full a block is."""

    NORMAL = "normal"
    WARNING = "warning"
    ARCHIVE = "archive"
    EMERGENCY = "emergency"


class MemoryMetadata(Model):
    """Sizes, counts and measurements of the other three blocks.

    `level` is the level of the history at its latest write, before rotation.
    """

    schema_version: Version = None
    memory_usage: MemoryUsage
    archival_info: ArchivalInfo
    performance_metrics: PerformanceMetrics
    system_flags: SystemFlags
    level: Annotated[Level | None, SINCE_1_1] = None


# --- all four ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the blocks of a new conversation are made from."""

    id: str
    person_id: str
    started_at: datetime
    earlier: tuple[EarlierSession, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocks:
    """All four blocks at one time."""

    conversation_history: ConversationHistory
    active_session: ActiveSession
    context_summary: str
    memory_metadata: MemoryMetadata

    @property
    def next_turn(self) -> int:
        """The id of the next turn."""
        return self.conversation_history.total_turns + 1


MODELS: Final[dict[Label, type[Model]]] = {
    Label.CONVERSATION_HISTORY: ConversationHistory,
    Label.ACTIVE_SESSION: ActiveSession,
    Label.MEMORY_METADATA: MemoryMetadata,
}

AnyModel = TypeVar("AnyModel", bound=Model)
Built = TypeVar("Built")


def changed(model: AnyModel, **values: Any) -> AnyModel:
    """A copy of `model` with other values, validated as a new one is (`model_copy` does not validate).

    If the values are the same, this returns the model itself, whose text may be cached already.
    """
    if all(getattr(model, name) == value for name, value in values.items()):
        return model
    kept = {name: getattr(model, name) for name in type(model).model_fields}
    return type(model)(**kept | values)


def render(label: Label, blocks: Blocks) -> str:
    """The text of one block. Its length is the size of the block."""
    block: Model | str = getattr(blocks, label.value)
    return block if isinstance(block, str) else block.text


def built(label: Label, build: Callable[[], Built]) -> Built:
    """The result of `build`. An error of pydantic becomes `BlockInvalid`, which does not quote the input."""
    try:
        return build()
    except ValidationError as error:
        problem = _first_departure(label, error)
    except UnicodeEncodeError:
        problem = BlockInvalid(label, "$", "has a lone surrogate")
    raise problem  # outside of `except`: the context of the exception would hold the input


def parse(label: Label, text: str) -> Model | str:
    """The block in `text`, or `BlockInvalid`."""

    def read() -> Model | str:
        text.encode()
        return text if label is Label.CONTEXT_SUMMARY else MODELS[label].model_validate_json(text)

    return built(label, read)


def from_texts(texts: Mapping[Label, str]) -> Blocks:
    """The four blocks in these texts."""
    return Blocks(**{label.value: parse(label, texts[label]) for label in Label})  # type: ignore[arg-type]


def _first_departure(label: Label, error: ValidationError) -> BlockInvalid:
    first = error.errors(include_url=False, include_input=False)[0]
    where = [str(step) for step in first["loc"]]
    if first["type"] == "extra_forbidden":
        return BlockInvalid(label, ".".join(where[:-1]) or "$", "has an unknown field")
    if first["type"] == "json_invalid":
        return BlockInvalid(label, "$", "is not JSON")
    if first["type"] == "departure":
        where.append(str(first["ctx"]["path"]))
    return BlockInvalid(label, ".".join(where) or "$", first["msg"][:1].lower() + first["msg"][1:])
