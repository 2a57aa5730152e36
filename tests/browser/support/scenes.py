"""Turns that a scripted server sends."""

from threading import Event
from typing import Any

from tests.browser.support.chat import SECONDS
from tests.browser.support.scripted_server import ACKNOWLEDGEMENT, ERROR, SENTENCE, START, TRACE, Connection

HEADACHE = "I am having a headache"


class StanzaSender:
    """Sends the server's stanzas and numbers them, after the `sent` ones of earlier connections."""

    def __init__(
        self, connection: Connection, *, sent: int = 0, traces: bool = True, handshake: bool = True
    ) -> None:
        self.connection, self.sent, self._traces = connection, sent, traces
        self.configuration = connection.shake_hands() if handshake else {}
        self.question = ""

    def send(self, kind: int, **body: Any) -> None:
        """Send the next stanza."""
        self.sent += 1
        self.connection.send(-self.sent, kind, **body)

    def receive_message(self) -> None:
        """Receive a message and acknowledge it."""
        received = self.connection.receive()
        self.question = received["body"]["id"]
        self.acknowledge(received)

    def acknowledge(self, received: dict[str, Any]) -> None:
        """Acknowledge an envelope, which says that it is stored."""
        self.send(ACKNOWLEDGEMENT, acknowledgedStanzaId=received["stanzaId"], success=True)

    def start_answer(self, answer: str, **extra: Any) -> None:
        """Send the start of an answer."""
        self.send(START, id=answer, previousId=self.question, **extra)

    def trace(self, number: int, **changes: Any) -> None:
        """Send the trace of a memory block that was read, with `changes` to its fields."""
        if not self._traces:
            return
        fields = {
            "id": f"trace_{number}",
            "previousId": self.question,
            "messageId": self.question,
            "memoryId": f"mem_{number}",
            "memoryType": "memory_block",
            "action": "retrieved",
            "content": "1 turn, 71.5 % full; concern headache",
        }
        block = {
            "label": "active_session",
            "agent": "COORDINATOR",
            "revision": 3,
            "utilization": 71.5,
            "level": "warning",
        }
        self.send(TRACE, **{**fields, "metadata": block, **changes})

    def sentence(
        self, answer: str, number: int, text: str, *, final: bool = False, meta: dict[str, Any] | None = None
    ) -> None:
        """Send one sentence of an answer."""
        fields = {"id": f"sent_{number}", "previousId": answer, "sequence": number}
        self.send(SENTENCE, meta=meta, **fields, text=text, isFinal=final)

    def fail(self, code: int, message: str) -> None:
        """End the turn with an error."""
        fields = {"severity": 2, "recoverable": True, "originatingId": self.question}
        self.send(ERROR, id="err_1", code=code, message=message, **fields)

    def answer_headache(self, *, pause: Event | None = None) -> None:
        """Send a complete turn: a block read, a memory recalled, a block written.

        After its first sentence, the turn waits until `pause` is set.
        """
        self.receive_message()
        self.start_answer("msg_a")
        self.trace(1)
        recalled = {"source": "conversation", "position": 1, "role": "primary", "truncated": True}
        score = {"confidence": 0.87, "relevance": 0.87}
        self.trace(2, memoryType="fact", content="Migraines since 2019", metadata=recalled, **score)
        self.sentence("msg_a", 1, "I am sorry to hear that.")
        if pause is not None:
            pause.wait(SECONDS)
        written = {"label": "active_session", "agent": "GENERAL_HEALTH", "revision": 4, "level": "normal"}
        self.trace(3, action="updated", content="", metadata=written)
        self.sentence("msg_a", 2, "Since when?", final=True)
