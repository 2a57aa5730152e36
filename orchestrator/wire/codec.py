"""Encodes envelopes as bytes and decodes them, within limits that hold for every frame.

Decoding has two steps, so that an error can name the stanza it is about: `open_frame` unpacks the map of a
frame, which may have a stanza number even if `read` then refuses the frame.
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
from orchestrator.ops.clock import as_text
from orchestrator.wire.envelope import Envelope, Scalar
from orchestrator.wire.fields import (
    MAX_FIELD_BYTES,
    MAX_ITEMS,
    MAX_KEYS,
    MAX_NESTING,
    IdOrEmptyRule,
    Stanza,
    free_map,
    wrong,
)
from orchestrator.wire.ids import ID_PATTERN, ConversationId
from orchestrator.wire.messages import BY_TYPE, Body, Configuration, ErrorMessage, Sender, Wire, kind_of
from orchestrator.wire.rules import refusal

W = TypeVar("W", bound=Wire)

MAX_PACKET_BYTES: Final = 15 * 1024
"""The size of the largest frame that fits in one LiveKit data packet."""
MAX_FRAME_BYTES: Final = 1024 * 1024
"""The size of the largest frame in a WebSocket or a LiveKit byte stream."""
MAX_META_KEY_BYTES: Final = 256
"""The maximum length of a key in an envelope's meta."""
MAX_META_TEXT_BYTES: Final = 2048
"""The maximum length of a text in meta: key and text together must fit into a row of a PostgreSQL index."""


def _refuse_extension(_code: int, _data: bytes) -> None:
    raise AnamnesisError(EXT_NOT_ALLOWED)


_pack: Final = ormsgpack.packb
_unpack: Final = partial(
    msgpack.unpackb,
    ext_hook=_refuse_extension,
    max_str_len=MAX_FIELD_BYTES,
    max_bin_len=MAX_FIELD_BYTES,
    max_array_len=MAX_ITEMS,
    max_map_len=MAX_KEYS,
    max_ext_len=0,
)
_PASS_TIMES_THROUGH: Final = ormsgpack.OPT_PASSTHROUGH_DATETIME
_LIMIT_ERRORS: Final[Mapping[str, tuple[Problem, int]]] = MappingProxyType(
    {
        "max_str_len": (FIELD_TOO_LONG, MAX_FIELD_BYTES),
        "max_bin_len": (FIELD_TOO_LONG, MAX_FIELD_BYTES),
        "max_array_len": (TOO_MANY_ITEMS, MAX_ITEMS),
        "max_map_len": (TOO_MANY_ITEMS, MAX_KEYS),
        "max_ext_len": (EXT_NOT_ALLOWED, 0),
        "timestamp": (EXT_NOT_ALLOWED, 0),
        "map key": (BAD_KEY, 0),
    }
)
"""Our error for each limit of the decoder, whose own errors name the limit only in their text."""


def _scalars(value: Any) -> dict[str, Scalar]:
    if any(type(item) in (dict, list) for item in free_map(value).values()):
        raise wrong("must contain only text, numbers, true, false and null")
    if not all(0 < len(key.encode()) <= MAX_META_KEY_BYTES for key in value):
        raise wrong(f"must have keys of 1 to {MAX_META_KEY_BYTES} bytes")
    if any(type(item) is str and len(item.encode()) > MAX_META_TEXT_BYTES for item in value.values()):
        raise wrong(f"must not contain a text of more than {MAX_META_TEXT_BYTES} bytes")
    return value  # type: ignore[no-any-return]


class _Head(Wire):
    """The fields of an envelope, with the body not yet validated."""

    type: Annotated[int, Field(ge=0, lt=2**16)]
    stanza_id: Stanza
    conversation_id: Annotated[ConversationId, IdOrEmptyRule] | None = None
    meta: Annotated[dict[str, Scalar], PlainValidator(_scalars)] | None = None
    body: InstanceOf[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Frame:
    """The map in a frame: well-formed and within limits, but not yet validated."""

    fields: Mapping[str, Any]

    @property
    def stanza_id(self) -> int | None:
        """The stanza number, if there is a valid one, for errors about this frame."""
        number = self.fields.get("stanzaId")
        return number if type(number) is int and -(2**31) <= number < 2**31 else None

    @property
    def message_id(self) -> str | None:
        """The id of the message in it, if there is a valid one, for errors about this frame."""
        body = self.fields.get("body")
        named = body.get("id") if type(body) is dict else None
        return named if type(named) is str and re.fullmatch(ID_PATTERN, named) else None


def decode(data: bytes, *, sender: Sender, max_bytes: int) -> Envelope[Body]:
    """Decode a frame of at most `max_bytes` bytes from `sender`, or raise."""
    return read(open_frame(data, max_bytes=max_bytes), sender=sender)


def open_frame(data: bytes, *, max_bytes: int) -> Frame:
    """Unpack the map in a frame of at most `max_bytes` bytes; raise if it exceeds a limit of the protocol."""
    if len(data) > max_bytes:
        raise AnamnesisError(FRAME_TOO_LARGE, size=len(data), most=max_bytes)
    try:
        if 0xDC in data or 0xDD in data:  # the first byte of an array with a 16 or 32 bit length
            _check_lengths(data)
        found = _unpack_canonical(data)
        if found is None:
            found = _unpack(data, object_pairs_hook=_dict_without_duplicates)
        if type(found) is dict:
            _check_values(found.values(), MAX_NESTING - 1)
            return Frame(found)
        refused = AnamnesisError(MALFORMED_FRAME)
    except (ValueError, msgpack.OutOfData) as error:
        refused = _our_error(error)
    raise refused  # outside `except`, so that the decoder's error, which holds the frame, is not its context


def read(frame: Frame, *, sender: Sender) -> Envelope[Body]:
    """Validate a frame. Whether `sender` may send its type is checked first."""
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
    """Encode an envelope; the same envelope always gives the same bytes."""
    body = envelope.body
    fields = {
        "stanzaId": envelope.stanza_id,
        "conversationId": envelope.conversation_id,
        "type": body.TYPE,
        "body": _wire_fields(body),
    }
    if envelope.meta:
        fields["meta"] = envelope.meta
    try:
        data = _pack(fields, _wire_value, _PASS_TIMES_THROUGH)
    except ormsgpack.MsgpackEncodeError:
        refused = AnamnesisError(
            INVALID_FIELD, field="body", rule="must contain only values that MessagePack can encode"
        )
    else:
        if len(data) > MAX_FIELD_BYTES:
            open_frame(data, max_bytes=MAX_FRAME_BYTES)  # raises what the receiver would raise
        return data
    raise refused


def as_json(envelope: Envelope[Body]) -> str:
    """An envelope as one line of JSON, for people and scripts; binary data is in base64."""
    fields = {
        "stanzaId": envelope.stanza_id,
        "type": envelope.body.TYPE,
        "name": type(envelope.body).__name__,
        "conversationId": envelope.conversation_id,
        "body": _wire_fields(envelope.body),
        **({"meta": dict(envelope.meta)} if envelope.meta else {}),
    }
    return json.dumps(fields, default=_json_value, ensure_ascii=False, separators=(",", ":"))


def _check_lengths(data: bytes) -> None:
    """Raise if a frame is shorter than the lengths in it say, before the decoder allocates memory for them.

    The decoder allocates an array as soon as it has read its length, on each of up to a thousand levels.
    Skipping allocates nothing.
    """
    skipping = msgpack.Unpacker(read_size=len(data))
    skipping.feed(data)
    skipping.skip()


def _unpack_canonical(data: bytes) -> Any:
    """The content of a frame, if encoding it again gives the same bytes; else None.

    Such a frame has no duplicate keys and only text keys. Nearly all frames are like that, and encoding one
    again takes a third of the time that checking each key takes.
    """
    found = _unpack(data)
    try:
        return found if _pack(found) == data else None
    except ormsgpack.MsgpackEncodeError:
        return None


def _dict_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of one map; refuse repeated keys. It must be fast: a frame may have a million maps."""
    if not pairs:
        return {}
    found = dict(pairs)
    if len(found) != len(pairs):
        raise AnamnesisError(DUPLICATE_KEY)
    for key in found:
        if type(key) is not str:
            raise AnamnesisError(BAD_KEY)
    return found


def _our_error(error: Exception) -> AnamnesisError:
    if isinstance(error, msgpack.ExtraData):
        return AnamnesisError(TRAILING_BYTES, count=len(error.extra))
    if isinstance(error, msgpack.StackError):
        return AnamnesisError(TOO_DEEP, most=MAX_NESTING)
    if isinstance(error, UnicodeDecodeError):
        return AnamnesisError(BAD_UTF8)
    message = str(error)
    return next(
        (AnamnesisError(row, most=most) for limit, (row, most) in _LIMIT_ERRORS.items() if limit in message),
        AnamnesisError(MALFORMED_FRAME),
    )


def _check_values(values: Iterable[Any], room: int) -> None:
    """Raise for non-finite numbers and deep nesting; `room` is how many more levels are allowed."""
    for value in values:
        kind = type(value)
        if kind is str or kind is int:
            continue
        if kind is not dict and kind is not list:
            if kind is float and not isfinite(value):
                raise AnamnesisError(BAD_NUMBER)
            continue
        if not room:
            raise AnamnesisError(TOO_DEEP, most=MAX_NESTING)
        if value:
            _check_values(value.values() if kind is dict else value, room - 1)


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
    raise refused  # outside `except`, as above: pydantic's error holds what the person wrote


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    if None in fields.values():
        return {name: value for name, value in fields.items() if value is not None}
    return fields


def _check_names(kind: type[Wire], fields: Mapping[str, Any]) -> None:
    for other, name in kind.OTHER_NAMES.items():
        if other in fields and name in fields and fields[other] != fields[name]:
            raise AnamnesisError(CONFLICTING_NAMES, field=f"body.{name}", other=f"body.{other}")


def _wire_fields(model: Wire) -> dict[str, Any]:
    """The fields of a message that are not None, with their names on the wire."""
    names, fields = model.WIRE_NAMES, {}
    for name, value in model.__dict__.items():
        if value is not None:
            fields[names[name]] = value
    for other, name in model.ALSO_SENT_AS:
        if name in fields:
            fields[other] = fields[name]
    return fields


def _wire_value(value: Any) -> Any:
    """Convert a value that MessagePack does not know: a nested model or a time."""
    return _wire_fields(value) if isinstance(value, Wire) else as_text(value)


def _json_value(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else _wire_value(value)
