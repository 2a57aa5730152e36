"""The layout of context_summary, which is a text for people and agents: writes it and parses it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import zip_longest
from typing import Final

from memory_blocks.errors import BlockInvalid
from memory_blocks.models import MAX_LINE, Label, moment_text

TITLE: Final = "=== CONVERSATION SUMMARY ==="
FLOW: Final = "CONVERSATION FLOW"
POINTS: Final = "KEY CONTEXT POINTS"
NEXT: Final = "NEXT LIKELY TOPICS"
QUALITY: Final = "CONVERSATION QUALITY"
NOTES: Final = "NOTES"
_SECTIONS: Final = (FLOW, POINTS, NEXT, QUALITY)
_HEADINGS: Final = {f"--- {name} ---": name for name in (*_SECTIONS, NOTES)}
_TOPIC: Final = "CURRENT TOPIC: "
_AGENT: Final = "ACTIVE AGENT: "
_PHASE: Final = "CONVERSATION PHASE: "
_QUALITIES: Final = (
    "Context Continuity: ",
    "Intent Classification: ",
    "Agent Specialization: ",
    "User Engagement: ",
)
_IDENTITY: Final = re.compile(r"Session: (.*) [|] User: (.*) [|] Started: (\S+)")
_ENTRY: Final = re.compile(r"Turn [1-9][0-9]{0,8} \([0-9]{2}:[0-9]{2}\): ?")

NO_TOPIC: Final = "not_yet_determined"
NAMED: Final = frozenset({"concern", "severity", "onset", "duration", "conditions", "medications"})
"""The kinds of fact that every summary lists, known or not."""

_PAINS: Final = ("pain", "ache", "hurt", "sore", "cramp", "migraine", "burn")
_UNDETERMINED: Final = "Not yet determined"
_UNDISCUSSED: Final = "Not discussed yet"
UNKNOWN: Final = (_UNDETERMINED, _UNDISCUSSED)
"""The beginnings of a key point whose value is unknown."""
_MAX_FURTHER_POINTS: Final = 8
_MAX_NEXT: Final = 6
_ROOM_FOR_NOTES: Final = 1_500
_CACHED: Final = 32  # a summary is parsed when it is written, and again by the next turn


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of a summary. Flow entries, points and quality are lines made by the functions below.

    `notes` are lines that agents appended to the text.
    """

    session_id: str
    person_id: str
    started_at: datetime
    topic: str
    agent: str
    phase: str
    flow: tuple[str, ...]
    points: tuple[str, ...]
    next_topics: tuple[str, ...]
    quality: tuple[str, ...]
    notes: tuple[str, ...] = ()


def render(summary: Summary, limit: int = 8_000) -> str:
    """The summary as text of at most `limit` characters. The oldest flow entries are dropped first."""
    notes = tuple(note for note in map(_note, summary.notes) if note)
    while sum(len(note) + 1 for note in notes) > _ROOM_FOR_NOTES:
        notes = notes[1:]
    summary = replace(summary, notes=notes, next_topics=summary.next_topics[:_MAX_NEXT])
    text = _layout(summary)
    room = limit - len(_layout(replace(summary, flow=())))
    if len(text) > limit and len(summary.flow) > 1:
        kept = len(summary.flow)
        used = len(summary.flow[-1])
        for entry in reversed(summary.flow[:-1]):
            used += len(entry) + 2
            kept -= used > room
        summary = replace(summary, flow=summary.flow[-max(kept, 1) :])
        text = _layout(summary)
    for shorter in _SHORTER:
        if len(text) <= limit:
            break
        summary = shorter(summary)
        text = _layout(summary)
    return text


@lru_cache(maxsize=_CACHED)
def parse(text: str) -> Summary:
    """The contents of a summary. Lines after the last line of the layout are notes."""
    lines = text.split("\n")
    if lines[0] != TITLE:
        raise _departs("title", "is not the first line")
    found: dict[str, list[str]] = {"header": []}
    name = "header"
    for line in lines[1:]:
        if line in _HEADINGS:
            name = _HEADINGS[line]
            if name in found:
                raise _departs(name, "occurs twice")
            found[name] = []
        else:
            found[name].append(line)
    if list(found) not in (["header", *_SECTIONS], ["header", *_SECTIONS, NOTES]):
        missing = [name for name in _SECTIONS if name not in found]
        raise _departs(missing[0] if missing else name, "is missing" if missing else "is not in its place")
    lines = [line for line in found[QUALITY] if line]
    for line, start in zip_longest(lines[: len(_QUALITIES)], _QUALITIES, fillvalue=""):
        if not line.startswith(start):
            raise _departs(QUALITY, f"does not state {start.removesuffix(': ')} in its place")
    session, person, started, topic, agent, phase = _header(found["header"])
    return Summary(
        session_id=session,
        person_id=person,
        started_at=started,
        topic=topic,
        agent=agent,
        phase=phase,
        flow=_flow("\n".join(found[FLOW]).strip("\n")),
        points=tuple(f"• {line}" for line in _bullets(POINTS, found[POINTS])),
        next_topics=tuple(_bullets(NEXT, found[NEXT])),
        quality=tuple(lines[: len(_QUALITIES)]),
        notes=tuple(line for line in (*lines[len(_QUALITIES) :], *found.get(NOTES, ())) if line),
    )


def flow_entry(turn_id: int, at: datetime, said: str, *steps: str) -> str:
    """One turn of the flow: what the person said, and a line with an arrow for each thing that followed."""
    clock = at.astimezone(UTC).strftime("%H:%M")
    return "\n".join(
        (f"Turn {turn_id} ({clock}): {one_line(said)}", *(f"→ {one_line(line)}" for line in steps))
    )


def turn_of(entry: str) -> int:
    """The id of the turn that a flow entry describes."""
    return int(entry.split(" ", 2)[1])


def routing(agent: str, previous: str | None, confidence: float) -> str:
    """How the turn reached its agent: routed the first time, later continued or handed over."""
    verb = "Routed to" if previous is None else "Continued with" if previous == agent else "Handed over to"
    return f"{verb} {agent} (confidence: {confidence:g})"


def key_points(
    facts: Mapping[str, str], asked_now: Sequence[str] = (), asked_before: Sequence[str] = ()
) -> tuple[str, ...]:
    """The five points that every summary has, unknown ones marked as such, then the other facts."""

    def unknown(kind: str, word: str) -> str:
        if kind in asked_now:
            return f"{word} (current inquiry)"
        return f"{word} (pending user response)" if kind in asked_before else word

    concern = concern_of(facts) or _UNDETERMINED
    duration = "Pain Duration" if any(pain in concern.lower() for pain in _PAINS) else "Symptom Duration"
    named = {
        "Primary Concern": concern,
        "Symptom Onset": facts.get("onset") or unknown("onset", _UNDETERMINED),
        duration: facts.get("duration") or unknown("duration", _UNDETERMINED),
        "Previous Medical History": facts.get("conditions") or unknown("conditions", _UNDISCUSSED),
        "Current Medications": facts.get("medications") or unknown("medications", _UNDISCUSSED),
    }
    further = [kind for kind in facts if kind not in NAMED]
    named |= {titled(kind): facts[kind] for kind in further[:_MAX_FURTHER_POINTS]}
    return tuple(f"• {name}: {one_line(value)}" for name, value in named.items())


def concern_of(facts: Mapping[str, str]) -> str | None:
    """The person's concern, such as `Headache with severity rating of 8/10`; None if it is unknown."""
    if not (concern := facts.get("concern")):
        return None
    rated = f" with severity rating of {facts['severity']}" if "severity" in facts else ""
    return f"{concern[:1].upper()}{concern[1:]}{rated}"


def quality_lines(
    *,
    continuity: float | None,
    uncorrected: float | None,
    appropriate: bool,
    scope: str,
    answered: float | None,
) -> tuple[str, ...]:
    """The four lines on quality, in words and percent."""
    return (
        _QUALITIES[0] + _graded(continuity, (0.9, "Excellent"), (0.75, "Good"), (0.5, "Fair"), (0, "Poor")),
        _QUALITIES[1]
        + _graded(uncorrected, (0.9, "Accurate"), (0.6, "Mixed"), (0, "Unsure"), suffix=" correct routing"),
        f"{_QUALITIES[2]}{'Appropriate' if appropriate else 'Under review'} ({one_line(scope)})",
        f"{_QUALITIES[3]}{_engagement(answered)}",
    )


@lru_cache(maxsize=_CACHED)
def sections(text: str) -> Mapping[str, str]:
    """The text by section; the part before the first heading is `header`. An empty text has no sections."""
    found: dict[str, list[str]] = {}
    name = "header"
    for line in text.split("\n") if text else ():
        name = _HEADINGS.get(line, name)
        lines = found.setdefault(name, [])
        if line not in _HEADINGS:
            lines.append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in found.items()}


def titled(slug: str) -> str:
    """A slug as a title: `headache_severity_assessment` gives `Headache Severity Assessment`."""
    return " ".join(word[:1].upper() + word[1:] for word in one_line(slug).split("_") if word)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """`text` on one line of at most `limit` characters; line breaks and control characters become spaces."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _layout(summary: Summary) -> str:
    started = moment_text(summary.started_at)
    notes = ("", _heading(NOTES), *summary.notes) if summary.notes else ()
    return "\n".join(
        (
            TITLE,
            f"Session: {summary.session_id} | User: {summary.person_id} | Started: {started}",
            "",
            f"{_TOPIC}{titled(summary.topic)}",
            f"{_AGENT}{one_line(summary.agent)}",
            f"{_PHASE}{titled(summary.phase)}",
            "",
            _heading(FLOW),
            "\n\n".join(summary.flow),
            "",
            _heading(POINTS),
            *summary.points,
            "",
            _heading(NEXT),
            *(f"• {one_line(topic)}" for topic in summary.next_topics),
            "",
            _heading(QUALITY),
            *summary.quality,
            *notes,
        )
    )


def _cut(summary: Summary, limit: int) -> Summary:
    """The summary with every line cut that may be long."""
    return replace(
        summary,
        agent=one_line(summary.agent, limit),
        flow=tuple("\n".join(one_line(line, limit) for line in entry.split("\n")) for entry in summary.flow),
        points=tuple(one_line(line, limit) for line in summary.points),
        next_topics=tuple(one_line(line, limit) for line in summary.next_topics),
        quality=tuple(one_line(line, limit) for line in summary.quality),
    )


_SHORTER: Final[tuple[Callable[[Summary], Summary], ...]] = (
    lambda summary: replace(summary, notes=()),
    lambda summary: replace(summary, points=summary.points[:5]),
    lambda summary: replace(summary, next_topics=summary.next_topics[:1]),
    lambda summary: _cut(summary, 120),
    lambda summary: _cut(summary, 60),
)
"""What is dropped or cut next, in this order, if even one flow entry does not fit. Sections always stay."""


def _note(text: str) -> str:
    line = one_line(text)
    return f"· {line}" if line in _HEADINGS else line


def _departs(path: str, rule: str) -> BlockInvalid:
    return BlockInvalid(Label.CONTEXT_SUMMARY, path, rule)


def _header(lines: Sequence[str]) -> tuple[str, str, datetime, str, str, str]:
    identity = _IDENTITY.fullmatch(lines[0]) if lines else None
    try:
        started = datetime.fromisoformat(identity[3]) if identity else None
    except ValueError:
        started = None
    if identity is None or started is None or started.tzinfo is None:
        raise _departs("header", "does not state session, user and start")
    rest = [line for line in lines[1:] if line]
    starts = (_TOPIC, _AGENT, _PHASE)
    if len(rest) != len(starts) or not all(map(str.startswith, rest, starts)):
        raise _departs("header", "does not state topic, agent and phase")
    topic, agent, phase = (line.removeprefix(start) for line, start in zip(rest, starts, strict=True))
    return identity[1], identity[2], started, topic, agent, phase


def _flow(text: str) -> tuple[str, ...]:
    entries = text.split("\n\n") if text else []
    for at, entry in enumerate(entries):
        first, *rest = entry.split("\n")
        if not _ENTRY.match(first) or not all(line.startswith("→") for line in rest):
            raise _departs(f"{FLOW}.{at}", "is not a turn and what followed")
    return tuple(entries)


def _bullets(name: str, lines: Sequence[str]) -> Iterator[str]:
    for at, line in enumerate(filter(None, lines)):
        if not line.startswith("•"):
            raise _departs(f"{name}.{at}", "is not a bullet")
        yield line.removeprefix("•").removeprefix(" ")


def _heading(name: str) -> str:
    return f"--- {name} ---"


def _graded(share: float | None, *grades: tuple[float, str], suffix: str = "") -> str:
    if share is None:
        return _UNDETERMINED
    word = next(word for least, word in grades if share >= least)
    return f"{word} ({int(share * 100 + 0.5)}%{suffix})"


def _engagement(answered: float | None) -> str:
    if answered is None:
        return "Active (no question to answer yet)"
    if answered >= 0.75:
        return f"Active (responding to {'all' if answered == 1 else 'most'} questions)"
    return (
        "Partial (responding to some questions)" if answered >= 0.4 else "Low (responding to few questions)"
    )
