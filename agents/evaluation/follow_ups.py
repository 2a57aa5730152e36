"""Measures how well follow-ups are understood, on cases that say what an enriched message must contain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from agents.evaluation.lines import parse, read_cases
from agents.values import Enrichment, Exchange

_MOST_TEXT: Final = 100_000


class Utterance(BaseModel):
    """One utterance of either side. Unknown fields of a record are ignored."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    role: Literal["user", "assistant", "agent"]
    text: Annotated[str, Field(max_length=_MOST_TEXT)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: str | int | float | None = None
    history: tuple[Utterance, ...] = ()
    message: Annotated[str, Field(max_length=_MOST_TEXT)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A message to understand, with the turns before it. `opening` is what was said before the first turn."""

    id: str | int | float | None
    message: str
    exchanges: tuple[Exchange, ...]
    opening: str


def read_line(line: bytes | str) -> Asked:
    """Parse one JSON line, or raise `UnreadableLine`."""
    asked = parse(line, _Line)
    opening, exchanges = turns_of(asked.history)
    return Asked(asked.id, asked.message, exchanges, opening)


def turns_of(history: Iterable[Utterance]) -> tuple[str, tuple[Exchange, ...]]:
    """Split utterances into the opening and the turns. Each turn begins with an utterance of the person."""
    opening: list[str] = []
    turns: list[tuple[str, list[str]]] = []
    for each in history:
        if each.role == "user":
            turns.append((each.text, []))
        else:
            (turns[-1][1] if turns else opening).append(each.text)
    return "\n".join(opening), tuple(
        Exchange(number, said, "\n".join(answers)) for number, (said, answers) in enumerate(turns, start=1)
    )


class Enrich(Protocol):
    """Enriches a message so that it can be understood alone. `opening` came before the first exchange."""

    def __call__(self, message: str, history: Sequence[Exchange], *, opening: str = "") -> Enrichment: ...


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    value: str


class Case(BaseModel):
    """A message with its history, and what must hold after it is enriched.

    The enrichment must contain some words and lack others. Some facts must be new, and others must not be
    known, even if somebody mentioned them. A fact without a value stands for any value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    history: tuple[Utterance, ...]
    message: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    facts: tuple[_Fact, ...] = ()
    not_facts: tuple[_Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case, and what is wrong with it."""

    case: Case
    enrichment: Enrichment
    wrong: tuple[str, ...]


def load_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a file, one JSON object per line."""
    return read_cases(path, Case)


def resolve(case: Case, enrich: Enrich) -> Outcome:
    """Run the extractor on a case."""
    opening, exchanges = turns_of(case.history)
    found = enrich(case.message, exchanges, opening=opening)
    low = found.enriched_message.lower()
    now = len(exchanges) + 1
    wrong = [f"lacks {word!r}" for word in case.has if word.lower() not in low]
    wrong += [f"has {word!r}" for word in case.lacks if word.lower() in low]
    for fact in case.facts:
        if not any(
            each.kind == fact.kind and fact.value.lower() in each.value.lower() and each.turn == now
            for each in found.facts
        ):
            wrong.append(f"no fact {fact.kind} = {fact.value!r} of turn {now}")
    for fact in case.not_facts:
        if any(each.kind == fact.kind and fact.value.lower() in each.value.lower() for each in found.facts):
            wrong.append(f"fact {fact.kind} = {fact.value!r}")
    return Outcome(case, found, tuple(wrong))
