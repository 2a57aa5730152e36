"""Recordings of whole messages, with their transcriptions."""

from orchestrator.store.engine.types import JsonObject
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import Audio


class Recordings(ById[Audio]):
    """The table `alicia_audio`. A recording's message can be set later."""

    row_type = Audio

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
        """Store a recording."""
        return self._unit.add(
            Audio,
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
        )

    def of_message(self, conversation_id: str, message_id: str) -> list[Audio]:
        """The recordings of a message."""
        return self._unit.find(
            Audio, "created_at", "id", conversation_id=conversation_id, message_id=message_id
        )
