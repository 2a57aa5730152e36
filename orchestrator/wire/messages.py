"""Every message there is, as a type: snake_case in Python, camelCase on the wire.

A message that exists obeys the protocol, whoever made it. Fields it does not know are ignored, because a
newer client may send some. `None` and a field that is left out are the same.
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
    MOST_BYTES,
    MOST_ITEMS,
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
Several: TypeAlias = Annotated[tuple[Item, ...], Field(strict=False, max_length=MOST_ITEMS)]
Sender: TypeAlias = Literal["client", "server"]

CLIENT: Final[frozenset[Sender]] = frozenset({"client"})
SERVER: Final[frozenset[Sender]] = frozenset({"server"})
BOTH: Final = CLIENT | SERVER

MemoryUse: TypeAlias = Literal["retrieved", "stored", "updated"]
MemoryChange: TypeAlias = Literal["create", "update", "delete", "pin", "archive"]
NoteChange: TypeAlias = Literal["create", "update", "delete"]


class Wire(BaseModel):
    """The base of all that travels. Strict: the text "5" is no number, and true is not 1."""

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
    """The name on the wire of each attribute."""
    OTHER_NAMES: ClassVar[dict[str, str]]
    """Names that are understood for another one; where both are given, they must agree."""
    SENDS_OTHER_NAMES: ClassVar[bool] = False
    """Whether it is sent with its other names too, for clients that know only those."""
    ALSO_SENT_AS: ClassVar[tuple[tuple[str, str], ...]]
    """These other names, each with the name of the field it repeats."""

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
    """What an envelope holds; every kind of it repeats the conversation's id."""

    TYPE: ClassVar[int]
    """Its number on the wire."""
    SENDERS: ClassVar[frozenset[Sender]]
    """Who may send it."""

    conversation_id: Annotated[ConversationId, IdRule]


class ErrorMessage(Body):
    """Something was refused or could not be done. Before there is a conversation, its id is empty."""

    TYPE = 1
    SENDERS = BOTH

    conversation_id: Annotated[ConversationId, IdOrEmptyRule]
    id: Annotated[ErrorId, IdRule]
    code: Count
    message: Text
    severity: Annotated[int, Field(ge=0, le=3)]
    recoverable: bool
    originating_id: AnyId | None = None


class UserMessage(Body):
    """What the person says."""

    TYPE = 2
    SENDERS = CLIENT

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule] | None = None
    content: SpokenText
    timestamp: Moment | None = None


class AssistantMessage(Body):
    """The whole answer at once, for clients that do not want it sentence by sentence."""

    TYPE = 3
    SENDERS = SERVER

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule]
    content: Text
    timestamp: Moment | None = None


class ReasoningStep(Body):
    """One thought on the way to an answer."""

    TYPE = 5
    SENDERS = SERVER

    id: AnyId
    message_id: Annotated[MessageId, IdRule]
    sequence: Position
    content: Text


class ToolUseRequest(Body):
    """A tool is to be used; `execution` says on which side."""

    TYPE = 6
    SENDERS = SERVER

    id: Annotated[ToolUseId, IdRule]
    message_id: Annotated[MessageId, IdRule]
    tool_name: Text
    parameters: FreeMap
    execution: Literal["server", "client", "either"]
    timeout_ms: Position = 30_000


class ToolUseResult(Body):
    """What a tool gave. Older clients send no `requestId`: their `id` is the request's."""

    TYPE = 7
    SENDERS = BOTH

    id: AnyId
    request_id: Annotated[ToolUseId, IdRule] = Field(default_factory=lambda fields: ToolUseId(fields["id"]))
    success: bool
    result: FreeValue = None
    error_code: Code | None = None
    error_message: Text | None = None


class Acknowledgement(Body):
    """A frame has arrived and what it says is on disk."""

    TYPE = 8
    SENDERS = BOTH

    acknowledged_stanza_id: Stanza
    success: bool


class Transcription(Body):
    """What was heard so far. When final, `id` becomes the user message's."""

    TYPE = 9
    SENDERS = SERVER

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule] | None = None
    text: Text
    final: Annotated[bool, Field(validation_alias=AliasChoices("final", "isFinal"))]
    confidence: Share | None = None
    language: Text | None = None


class AudioChunk(Body):
    """A piece of sound, or what there is to know about one that travels on an audio track."""

    TYPE = 10
    SENDERS = BOTH

    track_sid: Text | None = None
    format: Text
    duration_ms: Annotated[Count, Field(validation_alias=AliasChoices("durationMs", "duration"))]
    sequence: Count | None = None
    data: Annotated[bytes, Field(max_length=MOST_BYTES)] | None = None
    is_last: bool | None = None
    sentence_id: Annotated[SentenceId, IdRule] | None = None


class ControlStop(Body):
    """The person wants no more of an answer. It shares its number with AudioChunk and has no audio fields."""

    TYPE = 10
    SENDERS = CLIENT

    target_id: AnyId | None = None
    reason: Text | None = None
    stop_type: Literal["generation", "speech", "all"] | None = None


class ControlVariation(Body):
    """The latest turn is to be answered again, corrected, or gone on with."""

    TYPE = 11
    SENDERS = CLIENT

    target_id: Annotated[MessageId, IdRule]
    mode: Literal["regenerate", "edit", "continue"]
    new_content: SpokenText | None = None

    @model_validator(mode="after")
    def _an_edit_has_content(self) -> Self:
        if self.mode == "edit" and self.new_content is None:
            raise missing("newContent")
        return self


class Configuration(Body):
    """How a connection opens, changes its settings, and learns where both counts stand.

    Without a conversation's id, a new conversation is asked for.
    """

    TYPE = 12
    SENDERS = BOTH

    conversation_id: Annotated[ConversationId, IdOrEmptyRule] = ConversationId("")
    last_sequence_seen: Count | None = None
    client_version: Text | None = None
    preferred_language: Text | None = None
    device: Text | None = None
    features: Several[Text] | None = None
    last_client_stanza: Stanza | None = None
    last_server_stanza: Stanza | None = None


class Safety(Wire):
    """Why an answer is a safety answer, so that a frontend can show it as what it is."""

    kind: Literal["emergency", "crisis"]
    tier: Count


class StartAnswer(Body):
    """An answer begins."""

    TYPE = 13
    SENDERS = SERVER

    id: Annotated[MessageId, IdRule]
    previous_id: Annotated[MessageId, IdRule]
    answer_type: Literal["text", "voice", "text+voice"] | None = None
    planned_sentence_count: Count | None = None
    safety: Safety | None = None


class MemoryTrace(Body):
    """The receipt of one use of a memory.

    `previous_id` is the message that prompted it; a write outside any turn may have none. A frame without an
    `action` has the older form of the message, which knew retrievals only.
    """

    TYPE = 14
    SENDERS = SERVER
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


class Commentary(Body):
    """A remark on a message or on the whole conversation."""

    TYPE = 15
    SENDERS = BOTH

    id: Annotated[NoteId, IdRule]
    message_id: Annotated[MessageId, IdRule] | None = None
    content: Text
    commentary_type: Text | None = None


class AssistantSentence(Body):
    """One sentence of an answer; the last one of a stopped answer may be empty."""

    TYPE = 16
    SENDERS = SERVER

    id: Annotated[SentenceId, IdRule]
    previous_id: Annotated[MessageId, IdRule]
    sequence: Position
    text: Text
    is_final: Annotated[bool, Field(validation_alias=AliasChoices("isFinal", "final"))]


class EarlierMessage(Wire):
    """A message from before the connection, as a client kept it."""

    local_id: AnyId
    role: Literal["user", "assistant", "system"]
    contents: SpokenText
    previous_id: AnyId | None = None
    created_at: Moment


class UnreadableMessage(Wire):
    """An earlier message that cannot be kept. It alone is answered `conflict`; the others are kept."""

    local_id: AnyId
    role: Any = None
    contents: Any = None
    previous_id: Any = None
    created_at: Any = None

    @property
    def conflict(self) -> str:
        """What is wrong with it, without quoting it."""
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


class SyncRequest(Body):
    """Earlier messages to be stored. What is wrong with one of them is no reason to refuse the others."""

    TYPE = 17
    SENDERS = CLIENT

    messages: Several[Annotated[EarlierMessage | UnreadableMessage, PlainValidator(_read_earlier)]]


class SyncedMessage(Wire):
    """What became of one earlier message; nothing stored means no `server_id`."""

    local_id: AnyId
    server_id: Annotated[MessageId, IdRule] | None = None
    status: Literal["synced", "conflict"]
    conflict: Text | None = None


class SyncResponse(Body):
    """What became of each message of a SyncRequest, in its order."""

    TYPE = 18
    SENDERS = SERVER

    synced_messages: Several[SyncedMessage]
    synced_at: Moment


class UserNote(Body):
    """The person's own note on a message or on the conversation."""

    TYPE = 22
    SENDERS = CLIENT

    id: Annotated[NoteId, IdRule]
    message_id: Annotated[MessageId, IdRule] | None = None
    content: Text
    category: Text | None = None
    action: NoteChange


class NoteConfirmation(Body):
    """What became of a UserNote."""

    TYPE = 23
    SENDERS = SERVER

    request_id: AnyId
    note_id: Annotated[NoteId, IdRule]
    message_id: Annotated[MessageId, IdRule] | None = None
    success: bool


class MemoryDraft(Wire):
    """What a memory is to be like from now on; what is left out stays."""

    content: SpokenText | None = None
    category: Text | None = None
    pinned: bool | None = None
    rating: Annotated[int, Field(ge=1, le=5)] | None = None


class MemoryAction(Body):
    """The person changes what is remembered."""

    TYPE = 24
    SENDERS = CLIENT

    id: AnyId
    action: MemoryChange
    memory_id: Annotated[MemoryId, IdRule] | None = None
    memory: MemoryDraft | None = None

    @model_validator(mode="after")
    def _names_what_it_needs(self) -> Self:
        if self.action == "create":
            if self.memory is None or self.memory.content is None:
                raise missing("memory.content")
        elif self.memory_id is None:
            raise missing("memoryId")
        return self


class MemoryConfirmation(Body):
    """What became of a MemoryAction."""

    TYPE = 25
    SENDERS = SERVER

    request_id: AnyId
    memory_id: Annotated[MemoryId, IdRule]
    action: MemoryChange
    success: bool


class ModelInfo(Wire):
    """Which model answers, and whose it is."""

    name: Text
    provider: Text


class ServerInfo(Body):
    """What stands behind the conversation."""

    TYPE = 26
    SENDERS = SERVER

    model: ModelInfo
    backend: Text
    agents: Several[Text]


MESSAGES: Final[tuple[type[Body], ...]] = (
    ErrorMessage,
    UserMessage,
    AssistantMessage,
    ReasoningStep,
    ToolUseRequest,
    ToolUseResult,
    Acknowledgement,
    Transcription,
    AudioChunk,
    ControlStop,
    ControlVariation,
    Configuration,
    StartAnswer,
    MemoryTrace,
    Commentary,
    AssistantSentence,
    SyncRequest,
    SyncResponse,
    UserNote,
    NoteConfirmation,
    MemoryAction,
    MemoryConfirmation,
    ServerInfo,
)
OLD_AUDIO_CHUNK: Final = 4
"""The number under which AudioChunk is still understood."""

BY_TYPE: Final[Mapping[int, type[Body]]] = {
    OLD_AUDIO_CHUNK: AudioChunk,
    **{kind.TYPE: kind for kind in MESSAGES if kind is not ControlStop},
}
"""The message behind each number; 10 may also be a ControlStop, which `kind_of` finds out."""

_AUDIO_NAMES: Final = {*AudioChunk.WIRE_NAMES.values(), *AudioChunk.OTHER_NAMES} - {"conversationId"}


def kind_of(number: int, body: Mapping[str, object], sender: Sender) -> type[Body]:
    """The message that a known number stands for, given what its body holds."""
    if number == ControlStop.TYPE and sender in ControlStop.SENDERS and _AUDIO_NAMES.isdisjoint(body):
        return ControlStop
    return BY_TYPE[number]


def name_of(number: int) -> str:
    """A message's name as the protocol has it; 10 is an AudioChunk here."""
    return BY_TYPE[number].__name__
