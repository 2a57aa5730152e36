"""Recordings of whole messages, with their transcriptions."""

from typing import Any

from sqlalchemy import bindparam

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Audio

_table = Audio.table
_alive = _table.c.deleted_at.is_(None)
_BY_ID = Statement(all_of(Audio).where(_table.c.id == bindparam("id"), _alive), Audio)
_OF_MESSAGE = Statement(
    all_of(Audio)
    .where(
        _table.c.conversation_id == bindparam("conversation_id"),
        _table.c.message_id == bindparam("message_id"),
        _alive,
    )
    .order_by(_table.c.created_at, _table.c.id),
    Audio,
)


class Recordings:
    """The table `alicia_audio`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(
        self,
        conversation_id: str,
        *,
        audio_type: str,
        audio_format: str,
        id: str | None = None,
        message_id: str | None = None,
        data: bytes | None = None,
        duration_ms: int | None = None,
        transcription: str | None = None,
        livekit_track_sid: str | None = None,
        transcription_meta: JsonObject | None = None,
    ) -> Audio:
        """Store a recording. Its message can be set later."""
        now = self._unit.now
        recording = Audio(
            id=id or self._unit.ids.new("audio_"),
            conversation_id=conversation_id,
            message_id=message_id,
            audio_type=audio_type,
            audio_format=audio_format,
            audio_data=data,
            duration_ms=duration_ms,
            transcription=transcription,
            livekit_track_sid=livekit_track_sid,
            transcription_meta=transcription_meta,
            created_at=now,
            updated_at=now,
            deleted_at=None,
        )
        self._unit.insert(recording)
        return recording

    def get(self, id: str) -> Audio | None:
        """The row with that id, unless it is deleted."""
        return self._unit.first(_BY_ID, id=id)

    def of_message(self, conversation_id: str, message_id: str) -> list[Audio]:
        """The recordings of a message."""
        return self._unit.all(_OF_MESSAGE, conversation_id=conversation_id, message_id=message_id)

    def update(self, id: str, **columns: Any) -> bool:
        """Set some columns, such as `transcription`, and `message_id` once it is known."""
        return self._unit.change(Audio, id, **columns)

    def delete(self, id: str) -> bool:
        """Mark it as deleted."""
        return self._unit.delete(Audio, id)
