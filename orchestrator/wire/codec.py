"""Bytes become envelopes and envelopes bytes, within limits that no frame can talk its way around.

Reading takes two steps, so that a refusal can name what it refuses: `open_frame` gives the map that a frame
holds, whose stanza may be known by its number although `read` then refuses the rest.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

import msgpack
import ormsgpack
from pydantic import Field, InstanceOf, PlainValidator, ValidationError

from orchestrator.clock import as_text
from orchestrator.errors import (
    BAD_KEY,
    BAD_NUMBER,
    BAD_UTF8,
    CLIENT_ONLY_TYPE,
    CONFLICTING_NAMES,
    DUPLICATE_KEY,
    EXT_NOT_ALLOWED,
    FIELD_TOO_LONG,
    FRAME_TOO_LARGE,
    INVALID_FIELD,
    MALFORMED_FRAME,
    MISSING_FIELD,
    SERVER_ONLY_TYPE,
    TOO_DEEP,
    TOO_MANY_ITEMS,
    TRAILING_BYTES,
    UNKNOWN_TYPE,
    AnamnesisError,
    Problem,
)
from orchestrator.wire.envelope import Envelope, Scalar
from orchestrator.wire.fields import (
    MOST_BYTES,
    MOST_ITEMS,
    MOST_KEYS,
    MOST_NESTING,
    IdOrEmptyRule,
    Stanza,
    free_map,
    wrong,
)
from orchestrator.wire.ids import ID_PATTERN, ConversationId
from orchestrator.wire.messages import BY_TYPE, Body, Configuration, ErrorMessage, Sender, Wire, kind_of
from orchestrator.wire.rules import refusal

W = TypeVar("W", bound=Wire)

MOST_IN_PACKET: Final = 15 * 1024
"""The largest frame that fits in one LiveKit data packet."""
MOST_IN_FRAME: Final = 1024 * 1024
"""The largest frame at all: a WebSocket's, or a byte stream's."""
MOST_IN_META_KEY: Final = 256
"""How long a key of an envelope's meta may be."""
MOST_IN_META: Final = 2048
"""How long a text in it may be: PostgreSQL indexes each pair, and has room for little more than both."""


def _refuse_extension(_code: int, _data: bytes) -> None:
    raise AnamnesisError(EXT_NOT_ALLOWED)


_pack: Final = ormsgpack.packb
_unpack: Final = partial(
    msgpack.unpackb,
    ext_hook=_refuse_extension,
    max_str_len=MOST_BYTES,
    max_bin_len=MOST_BYTES,
    max_array_len=MOST_ITEMS,
    max_map_len=MOST_KEYS,
    max_ext_len=0,
)
_TIMES_ARE_OURS: Final = ormsgpack.OPT_PASSTHROUGH_DATETIME
_CLUES: Final[Mapping[str, tuple[Problem, int]]] = MappingProxyType(
    {
        "max_str_len": (FIELD_TOO_LONG, MOST_BYTES),
        "max_bin_len": (FIELD_TOO_LONG, MOST_BYTES),
        "max_array_len": (TOO_MANY_ITEMS, MOST_ITEMS),
        "max_map_len": (TOO_MANY_ITEMS, MOST_KEYS),
        "max_ext_len": (EXT_NOT_ALLOWED, 0),
        "timestamp": (EXT_NOT_ALLOWED, 0),
        "map key": (BAD_KEY, 0),
    }
)
"""What the decoder's error says when a limit of ours was passed, which it tells by its text alone."""


def _scalars(value: Any) -> dict[str, Scalar]:
    if any(type(item) in (dict, list) for item in free_map(value).values()):
        raise wrong("must hold only text, numbers, true, false and null")
    if not all(0 < len(key.encode()) <= MOST_IN_META_KEY for key in value):
        raise wrong(f"must have keys of 1 to {MOST_IN_META_KEY} bytes")
    if any(type(item) is str and len(item.encode()) > MOST_IN_META for item in value.values()):
        raise wrong(f"must not hold a text of more than {MOST_IN_META} bytes")
    return value  # type: ignore[no-any-return]


class _Head(Wire):
    """The envelope's own fields, with a body that nobody has read yet."""

    type: Annotated[int, Field(ge=0, lt=2**16)]
    stanza_id: Stanza
    conversation_id: Annotated[ConversationId, IdOrEmptyRule] | None = None
    meta: Annotated[dict[str, Scalar], PlainValidator(_scalars)] | None = None
    body: InstanceOf[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Frame:
    """The map that a frame holds, well-formed and within limits; what it says has not been asked yet."""

    fields: Mapping[str, Any]

    @property
    def stanza_id(self) -> int | None:
        """The stanza's number, if there is one: a refusal can say which frame it speaks of."""
        number = self.fields.get("stanzaId")
        return number if type(number) is int and -(2**31) <= number < 2**31 else None

    @property
    def message_id(self) -> str | None:
        """The id of the message in it, if there is one that may be repeated in a refusal."""
        body = self.fields.get("body")
        named = body.get("id") if type(body) is dict else None
        return named if type(named) is str and re.fullmatch(ID_PATTERN, named) else None


def decode(data: bytes, *, sender: Sender, most: int) -> Envelope[Body]:
    """The envelope in a frame of at most `most` bytes that came from `sender`; anything else is refused."""
    return read(open_frame(data, most=most), sender=sender)


def open_frame(data: bytes, *, most: int) -> Frame:
    """The one map in a frame of at most `most` bytes, if nothing in it passes a limit of the protocol."""
    if len(data) > most:
        raise AnamnesisError(FRAME_TOO_LARGE, size=len(data), most=most)
    try:
        if 0xDC in data or 0xDD in data:  # an array that may claim much begins with one of them
            _check_claims(data)
        found = _if_as_we_write(data)
        if found is None:
            found = _unpack(data, object_pairs_hook=_each_key_once)
        if type(found) is dict:
            _look_through(found.values(), MOST_NESTING - 1)
            return Frame(found)
        refused = AnamnesisError(MALFORMED_FRAME)
    except (ValueError, msgpack.OutOfData) as error:
        refused = _why(error)
    raise refused  # outside the handler, so that the decoder's error, which holds the frame, is not kept


def read(frame: Frame, *, sender: Sender) -> Envelope[Body]:
    """The envelope in an opened frame. Who may send its type is asked first, whatever else it holds."""
    number = frame.fields.get("type")
    if type(number) is int and 0 <= number < 2**16:
        _check_sender(number, sender)
    head = _validated(_Head, frame.fields)
    kind = kind_of(head.type, given := _without_nulls(head.body), sender)
    conversation_id = head.conversation_id or ConversationId("")
    if not conversation_id and kind not in (Configuration, ErrorMessage):
        raise AnamnesisError(MISSING_FIELD, field="conversationId")
    _check_names(kind, given)
    body = _validated(kind, given, within="body.")
    if kind is Configuration:  # a client that resumes may name the conversation in either place
        conversation_id = conversation_id or body.conversation_id
    if body.conversation_id != conversation_id and (body.conversation_id or kind is not Configuration):
        raise AnamnesisError(INVALID_FIELD, field="body.conversationId", rule="must be the envelope's")
    return Envelope(head.stanza_id, conversation_id, body, head.meta or None)


def encode(envelope: Envelope[Body]) -> bytes:
    """The frame of an envelope: always the same bytes for the same envelope."""
    body = envelope.body
    fields = {
        "stanzaId": envelope.stanza_id,
        "conversationId": envelope.conversation_id,
        "type": body.TYPE,
        "body": _sent(body),
    }
    if envelope.meta:
        fields["meta"] = envelope.meta
    try:
        data = _pack(fields, _sent_as, _TIMES_ARE_OURS)
    except ormsgpack.MsgpackEncodeError:
        refused = AnamnesisError(
            INVALID_FIELD, field="body", rule="must hold only what MessagePack can carry"
        )
    else:
        if len(data) > MOST_BYTES:
            open_frame(data, most=MOST_IN_FRAME)  # refuses what the other side would
        return data
    raise refused


def as_json(envelope: Envelope[Body]) -> str:
    """An envelope as one line of JSON, for people and scripts; binary data is in base64."""
    fields = {
        "stanzaId": envelope.stanza_id,
        "type": envelope.body.TYPE,
        "name": type(envelope.body).__name__,
        "conversationId": envelope.conversation_id,
        "body": _sent(envelope.body),
        **({"meta": dict(envelope.meta)} if envelope.meta else {}),
    }
    return json.dumps(fields, default=_shown_as, ensure_ascii=False, separators=(",", ":"))


def _check_claims(data: bytes) -> None:
    """Refuses a frame that ends before all that it claims to hold, while nothing has been made for it.

    The decoder makes room for an array's items as soon as it has read how many there are, and does so on
    each of a thousand levels; to skip them makes nothing.
    """
    skipping = msgpack.Unpacker(read_size=len(data))
    skipping.feed(data)
    skipping.skip()


def _if_as_we_write(data: bytes) -> Any:
    """What is in a frame, if we would write that very frame for it; else None.

    Then no map has a key twice, or one that is not text, and nearly all frames are like that. To write one
    again takes a third of the time that a look at each key takes while it is read.
    """
    found = _unpack(data)
    try:
        return found if _pack(found) == data else None
    except ormsgpack.MsgpackEncodeError:
        return None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A map as it is read. A frame may hold a million, so as little as possible is called for each."""
    if not pairs:
        return {}
    found = dict(pairs)
    if len(found) != len(pairs):
        raise AnamnesisError(DUPLICATE_KEY)
    for key in found:
        if type(key) is not str:
            raise AnamnesisError(BAD_KEY)
    return found


def _why(error: Exception) -> AnamnesisError:
    if isinstance(error, msgpack.ExtraData):
        return AnamnesisError(TRAILING_BYTES, count=len(error.extra))
    if isinstance(error, msgpack.StackError):
        return AnamnesisError(TOO_DEEP, most=MOST_NESTING)
    if isinstance(error, UnicodeDecodeError):
        return AnamnesisError(BAD_UTF8)
    said = str(error)
    return next(
        (AnamnesisError(row, most=most) for clue, (row, most) in _CLUES.items() if clue in said),
        AnamnesisError(MALFORMED_FRAME),
    )


def _look_through(values: Iterable[Any], room: int) -> None:
    """Refuses what the decoder lets pass; `room` is how much deeper the values may be nested."""
    for value in values:
        kind = type(value)
        if kind is str or kind is int:
            continue
        if kind is not dict and kind is not list:
            if kind is float and not isfinite(value):
                raise AnamnesisError(BAD_NUMBER)
            continue
        if not room:
            raise AnamnesisError(TOO_DEEP, most=MOST_NESTING)
        if value:
            _look_through(value.values() if kind is dict else value, room - 1)


def _check_sender(number: int, sender: Sender) -> None:
    kind = BY_TYPE.get(number)
    if kind is None:
        raise AnamnesisError(UNKNOWN_TYPE, type=number)
    if sender not in kind.SENDERS:
        raise AnamnesisError(SERVER_ONLY_TYPE if sender == "client" else CLIENT_ONLY_TYPE, type=number)


def _validated(kind: type[W], fields: Mapping[str, Any], *, within: str = "") -> W:
    try:
        valid: W = kind.__pydantic_validator__.validate_python(fields, by_alias=True, by_name=False)
        return valid
    except ValidationError as error:
        refused = refusal(error, within=within)
    raise refused  # outside the handler, as above: pydantic's error holds what the person wrote


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    if None in fields.values():
        return {name: value for name, value in fields.items() if value is not None}
    return fields


def _check_names(kind: type[Wire], fields: Mapping[str, Any]) -> None:
    for other, name in kind.OTHER_NAMES.items():
        if other in fields and name in fields and fields[other] != fields[name]:
            raise AnamnesisError(CONFLICTING_NAMES, field=f"body.{name}", other=f"body.{other}")


def _sent(model: Wire) -> dict[str, Any]:
    """The fields of a message as they are sent: those that hold something, by their names on the wire."""
    names, sent = model.WIRE_NAMES, {}
    for name, value in model.__dict__.items():
        if value is not None:
            sent[names[name]] = value
    for other, name in model.ALSO_SENT_AS:
        if name in sent:
            sent[other] = sent[name]
    return sent


def _sent_as(value: Any) -> Any:
    """What has no form of its own in MessagePack: a part of a message, or else a time."""
    return _sent(value) if isinstance(value, Wire) else as_text(value)


def _shown_as(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else _sent_as(value)
