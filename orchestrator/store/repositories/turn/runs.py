"""How turns ran: the route of each message, its prompt, and how long each station took."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.ops.telemetry import WatchedTurn
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import StationTime, TurnRun


@dataclass(slots=True)
class Run:
    """One attempt at a turn while it runs, with what is stored about it in the end."""

    conversation_id: str
    turn: int
    message_id: str
    watched: WatchedTurn
    intent: str | None = None
    confidence: float | None = None
    specialist: str | None = None
    prompt: str | None = None
    prompt_revision: str | None = None


class Runs:
    """The tables `turn_runs` and `station_times`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(self, run: Run, answer_id: str, error: str | None) -> None:
        """Store a run that is about to end. A station that is still running is stored as far as it came."""
        watched = run.watched
        stored = self._unit.add(
            TurnRun,
            id=self._unit.ids.new("run_"),
            conversation_id=run.conversation_id,
            turn=run.turn,
            message_id=run.message_id,
            answer_id=answer_id,
            intent=run.intent,
            confidence=run.confidence,
            specialist=run.specialist,
            prompt=run.prompt,
            prompt_revision=run.prompt_revision,
            error=error,
            milliseconds=_milliseconds(watched.seconds),
        )
        self._unit.insert(
            *(
                StationTime(
                    run_id=stored.id,
                    position=position,
                    station=each.name,
                    start_ms=_milliseconds(each.start),
                    milliseconds=_milliseconds(
                        watched.seconds - each.start if each.seconds is None else each.seconds
                    ),
                    created_at=stored.created_at,
                )
                for position, each in enumerate(watched.stations, 1)
            )
        )

    def of_message(self, message_id: str) -> list[TurnRun]:
        """The attempts to answer a message, in order."""
        return self._unit.find(TurnRun, "created_at", "id", message_id=message_id)

    def stations(self, run_id: str) -> Sequence[StationTime]:
        """The stations of a run in the order in which they began."""
        return self._unit.find(StationTime, "position", run_id=run_id)


def _milliseconds(seconds: float) -> float:
    return max(round(seconds * 1000, 3), 0.0)
