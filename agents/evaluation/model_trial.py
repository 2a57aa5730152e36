"""Asks a model what a turn asks, on a few made-up messages, and reports whether its replies can be used."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Final

from agents.errors import ModelTrouble, UnreadableReply
from agents.models import usage
from agents.models.fallback import Model
from agents.models.requests import answer_request, understand_request
from agents.models.retries import RetryPolicy
from agents.models.understanding import parse_understanding
from agents.ports import Brief, NoTools, PromptBook, Recalled, Situation
from agents.roster import Roster
from agents.safety.replies.output import OutputGuard
from agents.sentences import sentences
from agents.tools.toolbox import Tool
from agents.values import COORDINATOR, Enrichment, FactReading, Intent, Understanding
from memory_blocks.edits import empty
from memory_blocks.facts.changes import Decider, FactChange, Op, current_facts
from memory_blocks.models import (
    AgentResponse,
    Conversation,
    ConversationHistory,
    Turn,
    TurnStatus,
    UserMessage,
)

_AT: Final = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Sample:
    """A message, what was said and known before it, and a check of the reading."""

    message: str
    asked: str
    facts: tuple[tuple[str, str, str], ...]
    """Kind, about and value of what is known about the person."""
    is_right: Callable[[Understanding], bool]


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """How a sample was read. `problem` is empty if the reply could be used."""

    message: str
    seconds: float
    problem: str = ""
    is_right: bool = False


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """An answer: the seconds to its first sentence, its sentences, and how many the guard refuses."""

    first_seconds: float = 0.0
    sentences: int = 0
    refused: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TrialReport:
    """What a model replied. A turn waits `reply_seconds` for a reading and for the first sentence."""

    readings: tuple[ReadingResult, ...]
    answer: AnswerResult
    prompt_tokens: int
    completion_tokens: int
    reply_seconds: float

    @property
    def is_usable(self) -> bool:
        """Whether a turn could use every reply: readable, in time, not all refused."""
        return not (self.problems or self.is_too_slow or self.is_refused)

    @property
    def problems(self) -> tuple[str, ...]:
        """What made replies unusable as they are."""
        return tuple(filter(None, (*(each.problem for each in self.readings), self.answer.problem)))

    @property
    def slowest(self) -> float:
        """The longest time until a reading or the first sentence."""
        return max(self.answer.first_seconds, *(each.seconds for each in self.readings))

    @property
    def is_too_slow(self) -> bool:
        """Whether a turn would have given up waiting."""
        return self.slowest > self.reply_seconds

    @property
    def is_refused(self) -> bool:
        """Whether the guard lets no sentence of the answer through."""
        return 0 < self.answer.sentences == self.answer.refused


def _changes(reading: Understanding, op: Op, subject: str = "person") -> list[FactReading]:
    return [each for each in reading.changes if each.op is op and each.subject.casefold() == subject]


SAMPLES: Final = (
    Sample(
        "I can't fall asleep any more",
        "",
        (),
        lambda reading: reading.intent.intent == "SLEEP",
    ),
    Sample(
        "by now it is rather a 6",
        "How strong is the headache on a scale of 1 to 10?",
        (("severity", "headache", "8/10"), ("age", "", "34")),
        lambda reading: [each.target for each in _changes(reading, Op.REPLACE)] == ["fact_1"],
    ),
    Sample(
        "just my wife, 38.9 this morning",
        "Does anybody at home have a fever?",
        (("concern", "", "cough"),),
        lambda reading: bool(_changes(reading, Op.ADD, "wife")) and not _changes(reading, Op.ADD),
    ),
    Sample(
        "please delete the thing about my shoulder",
        "Is there anything else?",
        (("concern", "", "shoulder pain"),),
        lambda reading: [each.target for each in _changes(reading, Op.RETRACT)] == ["fact_1"],
    ),
)


async def try_model(
    model: Model,
    roster: Roster,
    prompts: PromptBook,
    reading_prompt: str,
    guard: OutputGuard,
    tools: Sequence[Tool],
    policy: RetryPolicy,
) -> TrialReport:
    """Ask for readings and an answer with the specialist's tools, each within the budget of a turn."""
    seconds = policy.budget_seconds
    with usage.record() as used:
        readings = [await _read(model, roster, reading_prompt, sample, seconds) for sample in SAMPLES]
        answer = await _answer(model, roster, prompts, guard, tools, seconds)
    return TrialReport(
        tuple(readings), answer, used.prompt_tokens, used.completion_tokens, policy.reply_seconds
    )


async def _read(model: Model, roster: Roster, prompt: str, sample: Sample, seconds: float) -> ReadingResult:
    """Ask for one reading, with one repair as in a turn."""
    situation, began = _situation(sample.asked, sample.facts), perf_counter()
    request = understand_request(prompt, sample.message, situation, roster)
    problem, is_right = "", False
    try:
        async with asyncio.timeout(seconds):
            try:
                reading = parse_understanding(await model.decide(request), situation, roster.intents)
            except UnreadableReply as unreadable:
                repaired = await model.decide(request.with_repair(unreadable.rule))
                reading = parse_understanding(repaired, situation, roster.intents)
        is_right = sample.is_right(reading)
    except ModelTrouble as trouble:
        problem = trouble.kind
    except UnreadableReply as unreadable:
        problem = unreadable.rule
    except TimeoutError:
        problem = f"no reply within {seconds:g} s"
    return ReadingResult(sample.message, perf_counter() - began, problem, is_right)


async def _answer(
    model: Model,
    roster: Roster,
    prompts: PromptBook,
    guard: OutputGuard,
    tools: Sequence[Tool],
    seconds: float,
) -> AnswerResult:
    """Ask for one answer, and check its sentences as in a turn."""
    specialist = next(iter(roster.specialists))
    message = "what could I do about the headache?"
    situation = _situation(
        "How are you today?", (("concern", "", "headache"), ("onset", "headache", "Monday"))
    )
    enrichment = Enrichment(
        previous_context="User reported a headache", enriched_message="User asks what helps with a headache"
    )
    intent = Intent(intent=specialist.agent_type, confidence=1.0, reasoning="A trial")
    brief = Brief(
        specialist,
        message,
        Understanding(enrichment=enrichment, intent=intent),
        situation,
        situation.facts,
        Recalled(),
        prompts.prompt(specialist),
    )
    offered = [tool for tool in tools if tool.name in specialist.tools]
    began, first, said = perf_counter(), 0.0, list[str]()
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(sentences(model.speak(answer_request(brief, offered), NoTools()))) as spoken,
        ):
            async for sentence in spoken:
                first = first or perf_counter() - began
                said.append(sentence)
    except (ModelTrouble, TimeoutError) as trouble:
        problem = trouble.kind if isinstance(trouble, ModelTrouble) else f"no end within {seconds:g} s"
        return AnswerResult(first, len(said), problem=problem)
    refused = sum(1 for each in said if guard.refusals(each, specialist.lines))
    return AnswerResult(first, len(said), refused, "" if said else "it said nothing")


def _situation(asked: str, facts: Sequence[tuple[str, str, str]]) -> Situation:
    """The situation after one turn in which the person told these facts and was asked this."""
    blocks = empty(Conversation("a_trial", "nobody", _AT))
    if asked:
        turn = Turn(
            turn_id=1,
            timestamp=_AT,
            user_message=UserMessage(content="Hello, I told you how I am.", message_id="message-1"),
            agent_response=AgentResponse(agent_type=COORDINATOR, content=asked, response_id="answer-1"),
            turn_status=TurnStatus.COMPLETED,
        )
        history = ConversationHistory(session_id="a_trial", turns=(turn,), total_turns=1, last_updated=_AT)
        blocks = replace(blocks, conversation_history=history)
    changes = (
        FactChange(
            id=f"fact_{number}",
            op=Op.ADD,
            kind=kind,
            subject="person",
            about=about,
            value=value,
            said_at=_AT,
            turn=1,
            decided_by=Decider.PERSON,
        )
        for number, (kind, about, value) in enumerate(facts, 1)
    )
    return Situation(blocks, current_facts(changes), _AT)
