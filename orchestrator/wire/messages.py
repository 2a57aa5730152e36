"""All messages as types. Names are snake_case in Python and camelCase on the wire.

Every message is validated when it is created. Unknown fields are ignored, because a newer client may send
some. `None` means the same as a field that is left out.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from orchestrator.wire.fields import (
    MAX_FIELD_BYTES,
    MAX_ITEMS,
    AnyId,
    Code,
    Count,
    FreeMap,
    FreeValue,
    IdOrEmptyRule,
    IdRule,
    Moment,
    Position,
    Share,
    SpokenText,
    Stanza,
    Text,
    missing,
)
from orchestrator.wire.ids import (
    ConversationId,
    ErrorId,
    MemoryId,
    MessageId,
    NoteId,
    SentenceId,
    ToolUseId,
    TraceId,
)
from orchestrator.wire.rules import in_words

Item = TypeVar("Item")
Several: TypeAlias = Annotated[tuple[Item, ...], Field(strict=False, max_length=MAX_ITEMS)]
Sender: TypeAlias = Literal["client", "server"]

CLIENT: Final[frozenset[Sender]] = frozenset({"client"})
SERVER: Final[frozenset[Sender]] = frozenset({"server"})
BOTH: Final = CLIENT | SERVER

MemoryUse: TypeAlias = Literal["retrieved", "stored", "updated"]
MemoryChange: TypeAlias = Literal["create", "update", "delete", "pin", "archive"]
NoteChange: TypeAlias = Literal["create", "update", "delete"]


class Wire(BaseModel):
    """The base of all wire types. Strict: the text "5" is not a number, and true is not 1."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=False,
    )

    WIRE_NAMES: ClassVar[dict[str, str]]
    """The wire name of each attribute."""
    OTHER_NAMES: ClassVar[dict[str, str]]
    """Alternative wire names, each with the main name. If both are given, they must have the same value."""
    SENDS_OTHER_NAMES: ClassVar[bool] = False
    """Whether it is also sent with the alternative names, for clients that know only those."""
    ALSO_SENT_AS: ClassVar[tuple[tuple[str, str], ...]]
    """The alternative names that are sent, each with the main name."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        fields = cls.model_fields.items()
        cls.WIRE_NAMES = {name: to_camel(name) for name, _ in fields}
        cls.OTHER_NAMES = {
            str(other): cls.WIRE_NAMES[name]
            for name, field in fields
            if isinstance(field.validation_alias, AliasChoices)
            for other in field.validation_alias.choices[1:]
        }
        cls.ALSO_SENT_AS = tuple(cls.OTHER_NAMES.items()) if cls.SENDS_OTHER_NAMES else ()


class Body(Wire):
    """The base of all messages. Each one repeats the conversation id of its envelope."""

    TYPE: ClassVar[int]
    """Its type number on the wire."""
    SENDERS: ClassVar[frozenset[Sender]]
    """Who may send it."""

    conversation_id: Annotated[ConversationId, IdRule]

    def __init_subclass__(cls, *, type: int, senders: frozenset[Sender], **_: Any) -> None:
        super().__init_subclass__()
        cls.TYPE, cls.SENDERS = type, senders


class ErrorMessage(Body, type=1, senders=BOTH):
    """An error. Its conversation id is empty if there is no conversation yet."""

    conversation_id: Annotated[ConversationId, IdOrEmptyRule]
    id: Annotated[ErrorId, IdRule]
    code: Count
    message: Text
    severity: Annotated[int, Field(ge=0, le=3)]
    recoverable: bool
    originating_id: AnyId | None = None


class UserMessage(Body, type=2, senders=CLIENT):
    """A message of the person."""

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule] | None = None
    content: SpokenText
    timestamp: Moment | None = None


class AssistantMessage(Body, type=3, senders=SERVER):
    """The whole answer, for clients that do not want it sentence by sentence."""

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule]
    content: Text
    timestamp: Moment | None = None


class ReasoningStep(Body, type=5, senders=SERVER):
    """One step of the reasoning for an answer."""

    id: AnyId
    message_id: Annotated[MessageId, IdRule]
    sequence: Position
    content: Text


class ToolUseRequest(Body, type=6, senders=SERVER):
    """A request to run a tool; `execution` says on which side."""

    id: Annotated[ToolUseId, IdRule]
    message_id: Annotated[MessageId, IdRule]
    tool_name: Text
    parameters: FreeMap
    execution: Literal["server", "client", "either"]
    timeout_ms: Position = 30_000


class ToolUseResult(Body, type=7, senders=BOTH):
    """The result of a tool. Older clients send no `requestId`; their `id` is that of the request."""

    id: AnyId
    request_id: Annotated[ToolUseId, IdRule] = Field(default_factory=lambda fields: ToolUseId(fields["id"]))
    success: bool
    result: FreeValue = None
    error_code: Code | None = None
    error_message: Text | None = None


class Acknowledgement(Body, type=8, senders=BOTH):
    """Confirms that a frame was received and stored."""

    acknowledged_stanza_id: Stanza
    success: bool


class Transcription(Body, type=9, senders=SERVER):
    """The text recognized so far from speech. When final, `id` becomes the id of the user message."""

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule] | None = None
    text: Text
    final: Annotated[bool, Field(validation_alias=AliasChoices("final", "isFinal"))]
    confidence: Share | None = None
    language: Text | None = None


class AudioChunk(Body, type=10, senders=BOTH):
    """A piece of audio, or a description of audio that is sent on an audio track."""

    track_sid: Text | None = None
    format: Text
    duration_ms: Annotated[Count, Field(validation_alias=AliasChoices("durationMs", "duration"))]
    sequence: Count | None = None
    data: Annotated[bytes, Field(max_length=MAX_FIELD_BYTES)] | None = None
    is_last: bool | None = None
    sentence_id: Annotated[SentenceId, IdRule] | None = None


class ControlStop(Body, type=10, senders=CLIENT):
    """Stops an answer. It has the same type number as AudioChunk, but no audio fields."""

    target_id: AnyId | None = None
    reason: Text | None = None
    stop_type: Literal["generation", "speech", "all"] | None = None


class ControlVariation(Body, type=11, senders=CLIENT):
    """Asks to answer the latest turn again, to edit its message, or to continue the answer."""

    target_id: Annotated[MessageId, IdRule]
    mode: Literal["regenerate", "edit", "continue"]
    new_content: SpokenText | None = None

    @model_validator(mode="after")
    def _check_edit(self) -> Self:
        if self.mode == "edit" and self.new_content is None:
            raise missing("newContent")
        return self


class Configuration(Body, type=12, senders=BOTH):
    """Opens a connection, changes its settings, or reports the last stanza numbers of both sides.

    Without a conversation id, it starts a new conversation.
    """

    conversation_id: Annotated[ConversationId, IdOrEmptyRule] = ConversationId("")
    last_sequence_seen: Count | None = None
    client_version: Text | None = None
    preferred_language: Text | None = None
    time_zone: Text | None = None
    device: Text | None = None
    features: Several[Text] | None = None
    last_client_stanza: Stanza | None = None
    last_server_stanza: Stanza | None = None


class Safety(Wire):
    """Marks a safety answer, so that a frontend can display it as one."""

    kind: Literal["emergency", "crisis"]
    tier: Count
    certainty: Literal["certain", "possible"] | None = None


class StartAnswer(Body, type=13, senders=SERVER):
    """The start of an answer."""

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule]
    answer_type: Literal["text", "voice", "text+voice"] | None = None
    planned_sentence_count: Count | None = None
    safety: Safety | None = None


class MemoryTrace(Body, type=14, senders=SERVER):
    """The trace of one use of a memory.

    `previous_id` is the message that caused it; a write outside a turn may have none. An older form of the
    message has no `action` and is always a retrieval.
    """

    SENDS_OTHER_NAMES = True

    id: Annotated[TraceId, IdRule]
    previous_id: Annotated[
        Annotated[MessageId, IdRule] | None, Field(validation_alias=AliasChoices("previousId", "messageId"))
    ] = None
    memory_id: Annotated[MemoryId, IdRule]
    memory_type: Text | None = None
    action: MemoryUse = "retrieved"
    content: Text
    confidence: Annotated[Share | None, Field(validation_alias=AliasChoices("confidence", "relevance"))] = (
        None
    )
    metadata: FreeMap | None = None


class Commentary(Body, type=15, senders=BOTH):
    """A comment on a message or on the whole conversation."""

    id: Annotated[NoteId, IdRule]
    message_id: Annotated[MessageId, IdRule] | None = None
    content: Text
    commentary_type: Text | None = None


class AssistantSentence(Body, type=16, senders=SERVER):
    """One sentence of an answer. The last one may be empty if the answer was stopped, or after danger."""

    id: Annotated[SentenceId, IdRule]
    previous_id: Annotated[MessageId, IdRule]
    sequence: Position
    text: Text
    is_final: Annotated[bool, Field(validation_alias=AliasChoices("isFinal", "final"))]


class EarlierMessage(Wire):
    """A message that a client had stored before it connected."""

    local_id: AnyId
    role: Literal["user", "assistant", "system"]
    contents: SpokenText
    previous_id: AnyId | None = None
    created_at: Moment


class UnreadableMessage(Wire):
    """An earlier message that is not valid. Its result is `conflict`; the other messages are stored."""

    local_id: AnyId
    role: Any = None
    contents: Any = None
    previous_id: Any = None
    created_at: Any = None

    @property
    def conflict(self) -> str:
        """Why it is not valid, without quoting it."""
        given = {to_camel(name): value for name, value in self if value is not None}
        try:
            EarlierMessage.model_validate(given, by_alias=True, by_name=False)
        except ValidationError as error:
            return in_words(error)
        return ""


def _read_earlier(item: Any) -> EarlierMessage | UnreadableMessage:
    if isinstance(item, EarlierMessage | UnreadableMessage):
        return item
    try:
        return EarlierMessage.model_validate(item, by_alias=True, by_name=False)
    except ValidationError:
        return UnreadableMessage.model_validate(item, by_alias=True, by_name=False)


class SyncRequest(Body, type=17, senders=CLIENT):
    """Earlier messages to store. An invalid one does not prevent storing the others."""

    messages: Several[Annotated[EarlierMessage | UnreadableMessage, PlainValidator(_read_earlier)]]


class SyncedMessage(Wire):
    """The result for one earlier message. Without `server_id`, it was not stored."""

    local_id: AnyId
    server_id: Annotated[MessageId, IdRule] | None = None
    status: Literal["synced", "conflict"]
    conflict: Text | None = None


class SyncResponse(Body, type=18, senders=SERVER):
    """The result for each message of a SyncRequest, in the same order."""

    synced_messages: Several[SyncedMessage]
    synced_at: Moment


class UserNote(Body, type=22, senders=CLIENT):
    """A note of the person on a message or on the conversation."""

    id: Annotated[NoteId, IdRule]
    message_id: Annotated[MessageId, IdRule] | None = None
    content: Text
    category: Text | None = None
    action: NoteChange


class NoteConfirmation(Body, type=23, senders=SERVER):
    """The result of a UserNote."""

    request_id: AnyId
    note_id: Annotated[NoteId, IdRule]
    message_id: Annotated[MessageId, IdRule] | None = None
    success: bool


class MemoryDraft(Wire):
    """The new values of a memory. Fields that are left out stay as they are."""

    content: SpokenText | None = None
    category: Text | None = None
    pinned: bool | None = None
    rating: Annotated[int, Field(ge=1, le=5)] | None = None


class MemoryAction(Body, type=24, senders=CLIENT):
    """A change of a memory by the person."""

    id: AnyId
    action: MemoryChange
    memory_id: Annotated[MemoryId, IdRule] | None = None
    memory: MemoryDraft | None = None

    @model_validator(mode="after")
    def _check_required(self) -> Self:
        if self.action == "create":
            if self.memory is None or self.memory.content is None:
                raise missing("memory.content")
        elif self.memory_id is None:
            raise missing("memoryId")
        return self


class MemoryConfirmation(Body, type=25, senders=SERVER):
    """The result of a MemoryAction."""

    request_id: AnyId
    memory_id: Annotated[MemoryId, IdRule]
    action: MemoryChange
    success: bool


class ModelInfo(Wire):
    """The model that answers, and its provider."""

    name: Text
    provider: Text


class ServerInfo(Body, type=26, senders=SERVER):
    """The model, backend and agents that serve the conversation.

    `notice` is for the person: that there is no language model, and how to connect one.
    """

    model: ModelInfo
    backend: Text
    agents: Several[Text]
    notice: Text | None = None


MESSAGES: Final[tuple[type[Body], ...]] = tuple(Body.__subclasses__())
OLD_AUDIO_CHUNK: Final = 4
"""The old type number of AudioChunk, which is still accepted."""

BY_TYPE: Final[Mapping[int, type[Body]]] = {
    OLD_AUDIO_CHUNK: AudioChunk,
    **{kind.TYPE: kind for kind in MESSAGES if kind is not ControlStop},
}
"""The message of each type number. 10 may also be a ControlStop; `kind_of` decides."""

_AUDIO_NAMES: Final = {*AudioChunk.WIRE_NAMES.values(), *AudioChunk.OTHER_NAMES} - {"conversationId"}


def kind_of(number: int, body: Mapping[str, object], sender: Sender) -> type[Body]:
    """The message type for a known type number and its body."""
    if number == ControlStop.TYPE and sender in ControlStop.SENDERS and _AUDIO_NAMES.isdisjoint(body):
        return ControlStop
    return BY_TYPE[number]


def name_of(number: int) -> str:
    """The name of a message type in the protocol; 10 is AudioChunk here."""
    return BY_TYPE[number].__name__
