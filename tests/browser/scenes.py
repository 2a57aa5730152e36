"""Turns for a scripted server to tell."""

from threading import Event
from typing import Any

from tests.browser.chromium import SECONDS
from tests.browser.scripted_server import ACKNOWLEDGEMENT, ERROR, SENTENCE, START, TRACE, Line

HEADACHE = "I am having a headache"


class Teller:
    """Speaks for the server and counts its stanzas, from after those `said` on earlier connections."""

    def __init__(self, line: Line, *, said: int = 0, traces: bool = True, greet: bool = True) -> None:
        self.line, self.said, self._traces = line, said, traces
        self.configuration = line.greet() if greet else {}
        self.question = ""

    def say(self, kind: int, **body: Any) -> None:
        """The next stanza."""
        self.said += 1
        self.line.say(-self.said, kind, **body)

    def hear(self) -> None:
        """Take a message and acknowledge it."""
        heard = self.line.hear()
        self.question = heard["body"]["id"]
        self.acknowledge(heard)

    def acknowledge(self, heard: dict[str, Any]) -> None:
        """Say that it is on disk."""
        self.say(ACKNOWLEDGEMENT, acknowledgedStanzaId=heard["stanzaId"], success=True)

    def start(self, answer: str, **extra: Any) -> None:
        """Begin an answer."""
        self.say(START, id=answer, previousId=self.question, **extra)

    def trace(self, number: int, **departures: Any) -> None:
        """A memory block that was read, or whatever else the test says."""
        if not self._traces:
            return
        about = {
            "id": f"trace_{number}",
            "previousId": self.question,
            "messageId": self.question,
            "memoryId": f"mem_{number}",
            "memoryType": "memory_block",
            "action": "retrieved",
            "content": "{}",
        }
        block = {
            "label": "active_session",
            "agent": "COORDINATOR",
            "revision": 3,
            "utilization": 71.5,
            "level": "warning",
        }
        self.say(TRACE, **{**about, "metadata": block, **departures})

    def sentence(
        self, answer: str, number: int, text: str, *, final: bool = False, meta: dict[str, Any] | None = None
    ) -> None:
        """One sentence of an answer."""
        about = {"id": f"sent_{number}", "previousId": answer, "sequence": number}
        self.say(SENTENCE, meta=meta, **about, text=text, isFinal=final)

    def fail(self, code: int, message: str) -> None:
        """End the turn with an error."""
        about = {"severity": 2, "recoverable": True, "originatingId": self.question}
        self.say(ERROR, id="err_1", code=code, message=message, **about)

    def answer_headache(self, *, until: Event | None = None) -> None:
        """A whole turn with a block read, a memory recalled, a block written; it may pause within."""
        self.hear()
        self.start("msg_a")
        self.trace(1)
        recalled = {"source": "conversation", "position": 1, "role": "primary"}
        score = {"confidence": 0.87, "relevance": 0.87}
        self.trace(2, memoryType="fact", content="Migraines since 2019", metadata=recalled, **score)
        self.sentence("msg_a", 1, "I am sorry to hear that.")
        if until is not None:
            until.wait(SECONDS)
        written = {"label": "active_session", "agent": "GENERAL_HEALTH", "revision": 4, "level": "normal"}
        self.trace(3, action="updated", content="", metadata={**written, "truncated": True})
        self.sentence("msg_a", 2, "Since when?", final=True)
