"""The safety of one turn: its decision so far, and what is recorded of it."""

from collections.abc import Sequence

from agents.roster import Specialist
from orchestrator.safety.assessment import (
    MessageRef,
    SafetyNote,
    SentenceDecision,
    TurnDecision,
    UnderstoodMessage,
    write_notes,
)
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.turn.outbox import ConversationWrite
from orchestrator.turn.queue import OpenTurn


class TurnSafety:
    """Asks the safety monitor on behalf of one turn. The danger that it knows of can only rise."""

    def __init__(self, monitor: SafetyMonitor, turn: OpenTurn) -> None:
        self._monitor = monitor
        self._message = MessageRef(turn.conversation_id, turn.message.id, turn.number)
        self.decision = monitor.message_understood(UnderstoodMessage(turn.message.contents, turn.safety))

    def understand(self, known: UnderstoodMessage) -> TurnDecision:
        """Decide by what the turn knows now."""
        self.decision = self._monitor.message_understood(known, self.decision)
        return self.decision

    def check(self, text: str, specialist: Specialist | None) -> SentenceDecision:
        """Decide whether a text of the brain may go out."""
        return self._monitor.sentence_ready(text, specialist)

    def check_reason(self, text: str, specialist: Specialist | None) -> SentenceDecision:
        """Decide which part of a reason may be shown."""
        return self._monitor.sentence_ready(text, specialist, is_reason=True)

    def write_notes(self, write: ConversationWrite, notes: Sequence[SafetyNote]) -> None:
        """Store notes about the turn's message."""
        write_notes(write.tx, self._message, notes)
