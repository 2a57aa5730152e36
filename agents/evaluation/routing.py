"""Measures routing: routes messages in bulk, and counts which intent was taken for which."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from agents.evaluation.lines import parse, read_cases
from agents.ports import Embedded, Embedder
from agents.routing.router import Router
from agents.safety.rules.guard import Guard
from agents.utterance import says_little
from agents.values import OUT_OF_SCOPE, Intent

_BINS: Final = 10
_CELL: Final = 44
_MARGIN: Final = 170
_MOST_TEXT: Final = 100_000
_Id = str | int | float | None


@dataclass(frozen=True, slots=True)
class MessageInContext:
    """A message, and the assistant's last question before it."""

    id: _Id
    text: str
    context: str = ""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: _Id = None
    text: Annotated[str, Field(max_length=_MOST_TEXT)]
    context: Annotated[str | None, Field(max_length=_MOST_TEXT)] = None


def read_line(line: str, number: int) -> MessageInContext:
    """Parse one line: a JSON object, or else the message itself. `number` counts from 1."""
    if not line.lstrip().startswith("{"):
        return MessageInContext(number, line.strip()[:_MOST_TEXT])
    asked = parse(line, _Line)
    return MessageInContext(number if asked.id is None else asked.id, asked.text, asked.context or "")


def route_lines(
    router: Router, embedder: Embedder, guard: Guard, lines: Sequence[MessageInContext]
) -> list[Intent]:
    """The intent of each message, in the same order.

    The topic of the question before a message is its running topic, and a short message is read together with
    the question. A finding of the guard makes an emergency more likely here; in a turn it decides alone.
    """
    questions = list(dict.fromkeys(said.context for said in lines if said.context))
    bare = [bool(said.context) and says_little(said.text) for said in lines]
    texts = [
        f"{said.context} {said.text}" if few else said.text for said, few in zip(lines, bare, strict=True)
    ]
    vectors = embedder.embed([*texts, *questions])
    asked = [Embedded(text, vector) for text, vector in zip(questions, vectors[len(lines) :], strict=True)]
    about = {
        embedded.text: intent.intent
        for embedded, intent in zip(asked, router.route_all(asked, [None] * len(asked)), strict=True)
    }
    messages = [Embedded(*each) for each in zip(texts, vectors[: len(lines)], bare, strict=True)]
    alarms = [guard.check(said.text, said.context or None).flagged for said in lines]
    return router.route_all(messages, [about.get(said.context) for said in lines], alarms)


class RoutingCase(BaseModel):
    """A message, the question before it if there was one, and the right intent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str
    context: str = ""
    intent: str

    @property
    def said(self) -> MessageInContext:
        """The message and its question, as `route_lines` takes them."""
        return MessageInContext(self.id, self.text, self.context)


def load_cases(path: Path) -> tuple[RoutingCase, ...]:
    """The cases of a file, one JSON object per line."""
    return read_cases(path, RoutingCase)


@dataclass(frozen=True)
class RoutingFigures:
    """The results of some cases, as figures."""

    cases: tuple[RoutingCase, ...]
    routed: tuple[Intent, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All intents that occur, as the right one or as the result."""
        return tuple(sorted({case.intent for case in self.cases} | {each.intent for each in self.routed}))

    @cached_property
    def confusion(self) -> tuple[tuple[int, ...], ...]:
        """How often each right intent (row) was classified as each intent (column)."""
        pairs = [(case.intent, given.intent) for case, given in self._pairs]
        return tuple(tuple(pairs.count((right, given)) for given in self.labels) for right in self.labels)

    @property
    def accuracy(self) -> float:
        """The share of cases with the right intent."""
        return sum(case.intent == given.intent for case, given in self._pairs) / len(self.cases)

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 scores of all intents."""
        scores = []
        for number, row in enumerate(self.confusion):
            if not sum(row):
                continue
            given = sum(each[number] for each in self.confusion)
            scores.append(2 * row[number] / (sum(row) + given))
        return sum(scores) / len(scores)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the difference between confidence and accuracy, in ten bins."""
        bins: list[list[tuple[float, bool]]] = [[] for _ in range(_BINS)]
        for case, given in self._pairs:
            right = case.intent == given.intent
            bins[min(int(given.confidence * _BINS), _BINS - 1)].append((given.confidence, right))
        return sum(
            abs(sum(sure for sure, _ in each) - sum(right for _, right in each)) for each in bins
        ) / len(self.cases)

    @property
    def out_of_scope_seen(self) -> float | None:
        """The share of out-of-scope messages that were recognised; None if there are none."""
        return _share([given.intent for case, given in self._pairs if case.intent == OUT_OF_SCOPE])

    @property
    def wrongly_out_of_scope(self) -> float | None:
        """The share of other messages that were classified as out of scope."""
        return _share([given.intent for case, given in self._pairs if case.intent != OUT_OF_SCOPE])

    def summary(self) -> dict[str, float | int | None]:
        """The figures, rounded."""
        return {
            "cases": len(self.cases),
            "accuracy": round(self.accuracy, 4),
            "macro_f1": round(self.macro_f1, 4),
            "calibration_error": round(self.calibration_error, 4),
            "out_of_scope_seen": _rounded(self.out_of_scope_seen),
            "wrongly_out_of_scope": _rounded(self.wrongly_out_of_scope),
        }

    def table(self) -> str:
        """The confusion matrix as text: right intents in rows, results in columns; a dot means zero."""
        wide = max(map(len, self.labels))
        head = " " * (wide + 2) + "".join(f"{number + 1:>4}" for number in range(len(self.labels)))
        lines = [head]
        for number, (label, row) in enumerate(zip(self.labels, self.confusion, strict=True), start=1):
            cells = "".join(f"{count or '.':>4}" for count in row)
            lines.append(f"{label:<{wide}}{number:>2}{cells}")
        return "\n".join(lines)

    def picture(self) -> str:
        """The confusion matrix as an SVG image."""
        side = len(self.labels) * _CELL
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
            f'width="{side + _MARGIN + 10}" height="{side + _MARGIN + 10}">',
            '<rect width="100%" height="100%" fill="white"/>',
        ]
        for row, label in enumerate(self.labels):
            middle = _MARGIN + row * _CELL + _CELL // 2
            name = html.escape(label)
            parts.append(f'<text x="{_MARGIN - 8}" y="{middle + 4}" text-anchor="end">{name}</text>')
            turned = f"rotate(-45 {middle} {_MARGIN - 8})"
            parts.append(f'<text x="{middle}" y="{_MARGIN - 8}" transform="{turned}">{name}</text>')
            most = max(sum(self.confusion[row]), 1)
            for column, count in enumerate(self.confusion[row]):
                parts.append(_cell(row, column, count, count / most))
        return "\n".join([*parts, "</svg>"])

    @property
    def _pairs(self) -> Sequence[tuple[RoutingCase, Intent]]:
        return list(zip(self.cases, self.routed, strict=True))


def _cell(row: int, column: int, count: int, share: float) -> str:
    x, y = _MARGIN + column * _CELL, _MARGIN + row * _CELL
    color = "#2a7f62" if row == column else "#b3432b"
    box = (
        f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" stroke="#ddd" '
        f'fill="{color}" fill-opacity="{share:.2f}"/>'
    )
    if not count:
        return box
    ink = "white" if share > 0.5 else "black"
    middle = f'x="{x + _CELL // 2}" y="{y + _CELL // 2 + 4}" text-anchor="middle"'
    return f'{box}<text {middle} fill="{ink}">{count}</text>'


def _share(given: Sequence[str]) -> float | None:
    return given.count(OUT_OF_SCOPE) / len(given) if given else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
