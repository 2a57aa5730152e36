"""The frames of one answer: each sentence is stored and then sent, and one is always held back.

The traces of what the turn wrote come before the last sentence, so a sentence goes out when the next one is
ready, or at the end.
"""

from collections.abc import Iterable, Mapping

from orchestrator.ops import telemetry
from orchestrator.safety.assessment import SentenceDecision, TurnDecision
from orchestrator.turn.outbox import ConversationWrite
from orchestrator.turn.queue import OpenTurn
from orchestrator.wire.envelope import Scalar
from orchestrator.wire.ids import MessageId, SentenceId
from orchestrator.wire.messages import AssistantMessage, AssistantSentence, ReasoningStep, StartAnswer


class AnswerStream:
    """What one answer has said so far. The methods that take a `write` run inside its transaction."""

    def __init__(self, turn: OpenTurn) -> None:
        self._turn = turn
        self._span = telemetry.ids()  # read here: the thread of a transaction has no span
        self._steps = 0
        self.answer_id = turn.turn.answer_id or ""
        self.is_started = False
        """Whether this attempt at the turn has started the answer."""
        self.is_sent_whole = turn.is_sent_whole
        """Whether the client has the whole answer already, as one AssistantMessage."""
        self.said: list[str] = []
        self.held_back: str | None = None

    @property
    def text(self) -> str:
        """What was said so far, without the sentence that is held back."""
        return "".join(self.said)

    def hold_back(self, sentence: str) -> str | None:
        """Hold this sentence back; returns the one that can be sent now."""
        ready, self.held_back = self.held_back, sentence
        return ready

    def has(self, sentence: str) -> bool:
        """Whether the answer has this sentence already."""
        return sentence in (*self.said, self.held_back)

    def start(self, write: ConversationWrite, decision: TurnDecision) -> None:
        """Start the answer with what must be said first. A client that does not stream gets all of it.

        An answer whose StartAnswer was sent before its process died keeps its id, and gets no second one.
        """
        self.answer_id = self._turn.turn.answer_id or write.tx.ids.new("msg_")
        if self._turn.streaming:
            if not self._turn.begun:
                start = StartAnswer(
                    id=MessageId(self.answer_id),
                    conversation_id=write.conversation_id,
                    previous_id=MessageId(self._turn.answers_id),
                    answer_type="text",
                    safety=decision.assessment.wire_field,
                )
                write.say(start, self._span)
            self.said = []
            for first in decision.sentences[:1]:
                self.send(write, first, decision.assessment.meta)
                self.said = [first]
            write.tx.turns.answer(write.conversation.id, self._turn.number, self.answer_id)
        elif decision.assessment.is_danger:
            self.said, self.is_sent_whole = list(decision.sentences), True
            self.send_whole(write, self.text, decision.assessment.meta)
        else:
            self.said = list(decision.sentences)

    def send(
        self,
        write: ConversationWrite,
        text: str,
        meta: Mapping[str, Scalar] | None = None,
        *,
        is_final: bool = False,
    ) -> None:
        """Send the next sentence."""
        sentence = AssistantSentence(
            id=SentenceId(write.tx.ids.new("sent_")),
            conversation_id=write.conversation_id,
            previous_id=MessageId(self.answer_id),
            sequence=len(self.said) + 1,
            text=text,
            is_final=is_final,
        )
        write.say(sentence, meta)

    def send_whole(self, write: ConversationWrite, text: str, meta: Mapping[str, Scalar]) -> None:
        """Send the answer as one message."""
        message = AssistantMessage(
            id=MessageId(self.answer_id),
            conversation_id=write.conversation_id,
            previous_id=MessageId(self._turn.answers_id),
            content=text,
            timestamp=write.tx.now,
        )
        write.say(message, {**meta, **self._span})
        write.tx.turns.answer(write.conversation.id, self._turn.number, self.answer_id)

    def number_steps(self, reasons: Iterable[SentenceDecision]) -> list[tuple[int, SentenceDecision]]:
        """Number the reasons. A reason that may not be shown gets no number."""
        steps = []
        for reason in reasons:
            self._steps += bool(reason.text)
            steps.append((self._steps, reason))
        return steps

    def send_steps(self, write: ConversationWrite, steps: Iterable[tuple[int, SentenceDecision]]) -> None:
        """Send what may be shown of the reasons, each under its number."""
        for sequence, reason in steps:
            if not reason.text:
                continue
            step = ReasoningStep(
                id=write.tx.ids.new("step_"),
                conversation_id=write.conversation_id,
                message_id=MessageId(self.answer_id),
                sequence=sequence,
                content=reason.text,
            )
            write.say(step)
