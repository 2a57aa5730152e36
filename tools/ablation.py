"""Measures what each part of the brain without a model is worth: every part is switched off in turn.

    python -m tools.ablation SET [SET …]         what each part costs
    python -m tools.ablation --kinds SET [SET …]  how often the reading of each kind of reply is right

With `--kinds`, the shares of all sets but the last are compared with the last; `--picture FILE` draws that.

A set is a file with one JSON object per line: follow-ups (`history`, `message`, `has`, `lacks`) or talks
(`messages`, `memory_key`: the words, in lower case, that the answer to the message of that number must have;
`not told` if it was not told).
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import sqrt
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from agents.evaluation.follow_ups import Case, resolve
from agents.fact_kinds import BY_NAME
from agents.local import understanding
from agents.local.dialogue import Said, Talk
from agents.local.reading import acts, clauses, corrections
from agents.local.replying import memory
from agents.local.search import Search
from agents.local.understanding import Listener
from agents.ports import Recalled
from agents.values import ActKind
from memory_blocks.facts.changes import CurrentFact
from orchestrator.settings import load, shipped_config
from orchestrator.wiring import load_embedder

START: Final = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
PARTS: Final[Mapping[str, tuple[object, str, object]]] = {
    "forms": (acts, "form_of", lambda clause, forms: None),
    "questions within a sentence": (clauses, "question_at", lambda text: 0),
    "what may be a question": (clauses, "may_ask", lambda low: False),
    "corrections by their form": (corrections.CorrectionReader, "corrects", lambda self, clause, talk: False),
    "questions for what was told": (acts._Deciding, "_asks_what_is_told", lambda self, low: False),
    "which fact a correction means": (corrections.CorrectionReader, "target", lambda self, *given: None),
    "answers to earlier questions": (acts._Deciding, "_earlier_answer", lambda self, clause: ()),
    "short replies in own words": (acts._Deciding, "_is_short_reply", lambda self, clause: False),
    "acts that neighbours decide": (acts, "_in_context", lambda done, talk, reader: list(done)),
    "names of other people": (understanding, "names_in", lambda texts: {}),
    "search by meaning": (Search, "_nearness", lambda self, low, texts: [0.3] * len(texts)),
    "search by synonyms": (Search, "_has", lambda self, word, words: word in words),
    "nearest notes": (Search, "nearest", lambda self, asked, facts: []),
}
"""The parts, each with what takes its place: an object, an attribute of it, and a value that does nothing."""


def main() -> None:
    """Print a table for the sets that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    settings = load(environment={})
    listener = Listener(shipped_config() / "local", load_embedder(settings))
    if given.kinds:
        learned, seen = counted(listener, given.sets[:-1]), counted(listener, given.sets[-1:])
        print(reliability(learned, seen))
        if given.picture:
            given.picture.write_text(drawn(learned, seen), encoding="utf-8")
        return
    whole = {path: score(listener, path) for path in given.sets}
    print(row("everything", [f"{right} of {count}" for right, count in whole.values()]))
    for name in PARTS:
        with without(name):
            differences = [score(listener, path)[0] - whole[path][0] for path in given.sets]
        print(row(f"without {name}", [f"{each:+d}" for each in differences]), flush=True)


@contextmanager
def without(name: str) -> Iterator[None]:
    """Switch a part off."""
    owner, attribute, nothing = PARTS[name]
    with patch.object(owner, attribute, nothing):
        yield


def row(name: str, cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {name} | {' | '.join(cells)} |"


def score(listener: Listener, path: Path) -> tuple[int, int]:
    """How many cases of a set are right, and how many there are."""
    lines = read(path)
    if "messages" in lines[0]:
        results = [right for line in lines for right in recalled(listener, line)]
    else:
        results = [not resolve(case_of(line), listener.enrich).wrong for line in lines]
    return sum(results), len(results)


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a set."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def case_of(line: Mapping[str, Any]) -> Case:
    """A line as a follow-up. Fields that a follow-up does not have are left out."""
    return Case.model_validate({name: line[name] for name in Case.model_fields if name in line})


def recalled(listener: Listener, talk: Mapping[str, Any]) -> list[bool]:
    """Whether each question about memory in a talk is answered with what it asks for."""
    said: tuple[Said, ...] = ()
    facts: tuple[CurrentFact, ...] = ()
    results = []
    for number, message in enumerate(talk["messages"], 1):
        now = START + timedelta(minutes=number)
        before = Talk(said, facts, number)
        found = listener.understand(message, before, now)
        answer = ""
        if key := talk.get("memory_key", {}).get(str(number)):
            answer = _answer(found.acts, facts, before, listener, now)
            results.append(
                "not told" in answer or "not sure" in answer
                if key == "not told"
                else re.search(rf"(?<!\w){re.escape(key)}(?!\w)", answer.lower()) is not None
            )
        facts, said = found.facts, (*said, Said(number, message, answer, now))
    return results


def _answer(
    done: Sequence[Any], facts: tuple[CurrentFact, ...], talk: Talk, listener: Listener, now: datetime
) -> str:
    if any(act.kind is ActKind.SUMMARISE for act in done):
        return "; ".join(memory.listed(facts, now))
    asked = [act.words for act in done if act.kind is ActKind.MEMORY_QUESTION]
    parts = (
        "; ".join(memory.listed(facts, now))
        if memory.asks_for_all(words)
        else memory.answer(words, facts, Recalled(), talk, listener.search, now)
        for words in asked
    )
    return " ".join(parts)


Counts: TypeAlias = Mapping[str, tuple[int, int]]
"""How many readings of each kind are right, and how many there are."""


def counted(listener: Listener, paths: Sequence[Path]) -> Counts:
    """How often the reading of each kind of reply is right in these sets."""
    right: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for case in (case_of(line) for path in paths for line in read(path)):
        outcome = resolve(case, listener.enrich)
        kind = reply_kind(case, outcome.enrichment.answers)
        count[kind] += 1
        right[kind] += not outcome.wrong
    return {kind: (right[kind], all_of) for kind, all_of in count.most_common()}


def reliability(learned: Counts, seen: Counts) -> str:
    """The counts with the lower end of the 95 % interval, and the calibration error, in Markdown."""
    rows = []
    for kind in dict.fromkeys((*learned, *seen)):
        first, second = learned.get(kind, (0, 0)), seen.get(kind, (0, 0))
        right, count = first[0] + second[0], first[1] + second[1]
        cells = [f"{one} of {of}" for one, of in (first, second)]
        rows.append(row(kind, [*cells, f"{lower_end(right, count):.2f}"]))
    return "\n".join([*rows, f"\ncalibration error: {calibration_error(learned, seen):.3f}"])


def calibration_error(learned: Counts, seen: Counts) -> float:
    """How far the share of each kind is from that in the first sets, weighted by its cases."""
    both = [kind for kind in seen if kind in learned]
    gaps = (abs(seen[kind][0] - seen[kind][1] * learned[kind][0] / learned[kind][1]) for kind in both)
    return sum(gaps) / max(sum(seen[kind][1] for kind in both), 1)


def drawn(learned: Counts, seen: Counts) -> str:
    """A picture of the shares of each kind in both, as SVG. The area of a dot is the number of its cases."""
    dots = []
    for kind, (right, count) in seen.items():
        if kind in learned:
            x, y = 40 + 300 * learned[kind][0] / learned[kind][1], 340 - 300 * right / count
            dots.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{2 + sqrt(count):.1f}" fill="#2563eb" '
                f'fill-opacity="0.5"><title>{kind}: {right} of {count}</title></circle>'
            )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 380 380" font-family="sans-serif" '
        'font-size="12">'
        '<rect width="380" height="380" fill="white"/><path d="M40 340L340 40" stroke="#999"/>'
        '<path d="M40 40V340H340" fill="none" stroke="#333"/>'
        f"{''.join(dots)}"
        '<text x="110" y="365">share that was right in the first sets</text>'
        '<text transform="rotate(-90)" x="-280" y="20">share right in the last set</text></svg>\n'
    )


def reply_kind(case: Case, answers: Sequence[str]) -> str:
    """What a reply was read as: a bare number, a yes or no, or an answer of a type."""
    low = case.message.lower().strip(" .!")
    if re.fullmatch(r"\d+(?:[.,]\d+)?", low):
        return "bare number"
    if low in ("yes", "no", "yeah", "yep", "nope", "nah"):
        return "yes or no"
    if not answers:
        return "no answer"
    return f"answer: {BY_NAME[answers[0]].reads}"


def lower_end(right: int, count: int) -> float:
    """The lower end of the Wilson interval."""
    z, share = 1.96, right / count
    middle = share + z * z / (2 * count)
    width = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - width) / (1 + z * z / count)


if __name__ == "__main__":
    main()
