"""Measures how well the kinds of messages are decided: by the forms, by a classifier, and by both.

    python -m tools.acts SET

A set has one JSON object per line: `message`, `acts`, and `before` if the message replies to a question. The
classifier is that of the router, trained with the examples in `config/evals/acts.examples.toml`.
"""

import argparse
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from agents.local.dialogue import Said, Talk
from agents.local.reading.clauses import split
from agents.local.understanding import Listener
from agents.ports import Embedder
from agents.routing.linear import Linear, train
from agents.values import Act, ActKind
from orchestrator.settings import load, shipped_config
from orchestrator.wiring import load_embedder

START: Final = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SURE: Final = 0.2
FORM_SURE: Final = 0.6
"""The probability from which on the classifier decides a clause, and one whose form leaves no doubt."""

NAMES: Final = {"what_can_you_do": "about_us", "topic_return": "topic_resumed", "greeting": "small_talk"}
"""Other names of kinds. A greeting counts as small talk."""

EARLIER: Final = "my knee hurts, I take ramipril 5 mg and I live alone"
"""What was told before each message, so that there is something to correct, to recall and to return to."""

Acts: TypeAlias = frozenset[str]
Decide: TypeAlias = Callable[[Mapping[str, Any]], dict[str, float]]


def main() -> None:
    """Print the tables for a set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", type=Path)
    lines = [json.loads(line) for line in parser.parse_args().set.read_text(encoding="utf-8").splitlines()]
    embedder = load_embedder(load(environment={}))
    ways = Ways(Listener(shipped_config() / "local", embedder), embedder)
    decided = {name: [way(line) for line in lines] for name, way in ways.all().items()}
    expected = [frozenset(NAMES.get(act, act) for act in line["acts"]) for line in lines]
    print(f"{len(lines)} messages\n\n{table(expected, decided)}\n")
    for name, acts in decided.items():
        print(f"calibration error, {name}: {calibration_error(expected, acts):.3f}")
    print(f"\n{reliability(expected, decided['forms'])}")


@dataclass
class Ways:
    """The ways to decide about a message. Each gives its acts with their confidence."""

    listener: Listener
    embedder: Embedder

    def __post_init__(self) -> None:
        path = shipped_config() / "evals" / "acts.examples.toml"
        examples = tomllib.loads(path.read_text(encoding="utf-8"))["examples"]
        self.kinds = sorted(examples)
        texts = [text for kind in self.kinds for text in examples[kind]]
        classes = np.array([n for n, kind in enumerate(self.kinds) for _ in examples[kind]])
        self.linear: Linear = train(self.embedder.embed(texts), classes, len(self.kinds))[0]

    def all(self) -> dict[str, Decide]:
        """The ways by name."""
        return {"forms": self.forms, "classifier": self.classifier, "both": self.both}

    def rules(self, line: Mapping[str, Any]) -> Sequence[Act]:
        """What the product decides."""
        told = self.listener.understand(EARLIER, Talk(), START)
        before = line.get("before") or ""
        talk = Talk((Said(1, EARLIER, before, START),), told.facts, 2)
        return self.listener.understand(line["message"], talk, START + timedelta(minutes=1)).acts

    def forms(self, line: Mapping[str, Any]) -> dict[str, float]:
        """By forms and readers, as the product decides."""
        return _strongest((act.kind.value, act.confidence) for act in self.rules(line))

    def classifier(self, line: Mapping[str, Any]) -> dict[str, float]:
        """By the vectors of the clauses alone."""
        return _strongest(self.likely(clause.text) for clause in split(line["message"]))

    def both(self, line: Mapping[str, Any]) -> dict[str, float]:
        """By the classifier; answers to a question, and what it is not sure of, by the forms and readers."""
        found = []
        for act in self.rules(line):
            kind, probability = self.likely(act.words)
            least = FORM_SURE if act.confidence == 1 else SURE
            answers = act.kind is ActKind.ANSWER or (kind == ActKind.ANSWER and not line.get("before"))
            rather = answers or probability < least
            found.append((act.kind.value, act.confidence) if rather else (kind, probability))
        return _strongest(found)

    def likely(self, text: str) -> tuple[str, float]:
        """The most probable kind of a clause."""
        given = self.linear.probabilities(self.embedder.embed([text]))[0]
        return self.kinds[int(given.argmax())], float(given.max())


def _strongest(found: Any) -> dict[str, float]:
    acts: dict[str, float] = {}
    for kind, confidence in found:
        name = NAMES.get(kind, kind)
        acts[name] = max(confidence, acts.get(name, 0.0))
    return acts


def table(expected: Sequence[Acts], decided: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Precision and recall of each kind, in Markdown."""
    kinds = sorted({kind for acts in expected for kind in acts})
    head = " | ".join(f"{name}: precision | recall" for name in decided)
    rows = [f"| kind | messages | {head} |", "|" + "---|" * (2 + 2 * len(decided))]
    for kind in [*kinds, ""]:
        cells = [str(sum(kind in acts or not kind for acts in expected))]
        for given in decided.values():
            right, found, all_of = _counts(expected, given, kind)
            cells += [f"{right} of {found}", f"{right} of {all_of}"]
        rows.append(f"| {kind or 'all'} | {' | '.join(cells)} |")
    whole = [
        f"{name} {sum(acts == frozenset(given) for acts, given in zip(expected, found, strict=True))}"
        for name, found in decided.items()
    ]
    return "\n".join([*rows, "", f"messages with exactly the right kinds: {', '.join(whole)}"])


def _counts(
    expected: Sequence[Acts], decided: Sequence[Mapping[str, float]], kind: str
) -> tuple[int, int, int]:
    pairs = [
        (
            frozenset(each for each in acts if not kind or each == kind),
            {each for each in given if not kind or each == kind},
        )
        for acts, given in zip(expected, decided, strict=True)
    ]
    return (
        sum(len(acts & given) for acts, given in pairs),
        sum(len(given) for _, given in pairs),
        sum(len(acts) for acts, _ in pairs),
    )


def calibration_error(expected: Sequence[Acts], decided: Sequence[Mapping[str, float]]) -> float:
    """How far confidences are from the share that is right, over ten bins."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for acts, given in zip(expected, decided, strict=True):
        for kind, confidence in given.items():
            bins.setdefault(min(int(confidence * 10), 9), []).append((confidence, kind in acts))
    count = sum(map(len, bins.values()))
    gaps = (abs(sum(c for c, _ in each) - sum(right for _, right in each)) for each in bins.values())
    return sum(gaps) / count


def reliability(expected: Sequence[Acts], decided: Sequence[Mapping[str, float]]) -> str:
    """How often the product's acts of each confidence are right, in Markdown."""
    right: Counter[float] = Counter()
    count: Counter[float] = Counter()
    for acts, given in zip(expected, decided, strict=True):
        for kind, confidence in given.items():
            count[confidence] += 1
            right[confidence] += kind in acts
    rows = [
        f"| {each:g} | {right[each]} of {count[each]} | {right[each] / count[each]:.2f} |"
        for each in sorted(count)
    ]
    return "\n".join(["| confidence | right | share |", "|---|---|---|", *rows])


if __name__ == "__main__":
    main()
