"""context_summary as a text that people and agents read: its layout, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from memory_blocks.models import moment_text

TITLE: Final = "=== CONVERSATION SUMMARY ==="
FLOW: Final = "CONVERSATION FLOW"
POINTS: Final = "KEY CONTEXT POINTS"
NEXT: Final = "NEXT LIKELY TOPICS"
QUALITY: Final = "CONVERSATION QUALITY"
_AGENT: Final = "ACTIVE AGENT: "
_HEADINGS: Final = {f"--- {name} ---": name for name in (FLOW, POINTS, NEXT, QUALITY)}

_PAINS: Final = ("pain", "ache", "hurt", "sore", "cramp", "migraine", "burn")
_UNDETERMINED: Final = "Not yet determined"
_UNDISCUSSED: Final = "Not discussed yet"
_MOST_LINE: Final = 240
_MOST_FURTHER_POINTS: Final = 8
_MOST_NEXT: Final = 6


@dataclass(frozen=True, slots=True)
class Summary:
    """What the summary states. Flow entries, points and quality are lines made by the functions below."""

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


def render(summary: Summary, most: int = 8_000) -> str:
    """The summary in its layout, at most `most` characters: the oldest flow entries leave first."""
    started = moment_text(summary.started_at)
    top = "\n".join(
        (
            TITLE,
            f"Session: {summary.session_id} | User: {summary.person_id} | Started: {started}",
            "",
            f"CURRENT TOPIC: {titled(summary.topic)}",
            f"{_AGENT}{one_line(summary.agent)}",
            f"CONVERSATION PHASE: {titled(summary.phase)}",
            "",
            _heading(FLOW),
            "",
        )
    )
    bottom = "\n".join(
        (
            "",
            "",
            _heading(POINTS),
            *summary.points,
            "",
            _heading(NEXT),
            *(f"• {one_line(topic)}" for topic in summary.next_topics[:_MOST_NEXT]),
            "",
            _heading(QUALITY),
            *summary.quality,
        )
    )
    flow, room = summary.flow, most - len(top) - len(bottom)
    while len(flow) > 1 and len("\n\n".join(flow)) > room:
        flow = flow[1:]
    return top + "\n\n".join(flow)[: max(room, 0)] + bottom


def flow_entry(turn_id: int, at: datetime, said: str, *did: str) -> str:
    """One turn of the flow: what the person said, and an arrow for each thing that followed."""
    clock = at.astimezone(UTC).strftime("%H:%M")
    return "\n".join(
        (f"Turn {turn_id} ({clock}): {one_line(said)}", *(f"→ {one_line(line)}" for line in did))
    )


def routing(agent: str, previous: str | None, confidence: float) -> str:
    """How the turn came to its agent: routed the first time, then continued or handed over."""
    verb = "Routed to" if previous is None else "Continued with" if previous == agent else "Handed over to"
    return f"{verb} {agent} (confidence: {confidence:g})"


def key_points(
    facts: Mapping[str, str], asked_now: Sequence[str] = (), asked_before: Sequence[str] = ()
) -> tuple[str, ...]:
    """The five points every summary has, the unknown ones marked so, then the further facts."""

    def unknown(kind: str, word: str) -> str:
        if kind in asked_now:
            return f"{word} (current inquiry)"
        return f"{word} (pending user response)" if kind in asked_before else word

    concern = facts.get("concern", _UNDETERMINED)
    if "concern" in facts and "severity" in facts:
        concern = f"{concern} with severity rating of {facts['severity']}"
    duration = "Pain Duration" if any(pain in concern.lower() for pain in _PAINS) else "Symptom Duration"
    named = {
        "Primary Concern": concern[:1].upper() + concern[1:],
        "Symptom Onset": facts.get("onset") or unknown("onset", _UNDETERMINED),
        duration: facts.get("duration") or unknown("duration", _UNDETERMINED),
        "Previous Medical History": facts.get("conditions") or unknown("conditions", _UNDISCUSSED),
        "Current Medications": facts.get("medications") or unknown("medications", _UNDISCUSSED),
    }
    further = [kind for kind in facts if kind not in _NAMED]
    named |= {titled(kind): facts[kind] for kind in further[:_MOST_FURTHER_POINTS]}
    return tuple(f"• {name}: {one_line(value)}" for name, value in named.items())


_NAMED: Final = frozenset({"concern", "severity", "onset", "duration", "conditions", "medications"})


def quality_lines(
    *,
    continuity: float | None,
    uncorrected: float | None,
    appropriate: bool,
    scope: str,
    answered: float | None,
) -> tuple[str, ...]:
    """The four lines of quality, in words and percent."""
    return (
        "Context Continuity: "
        + _graded(continuity, (0.9, "Excellent"), (0.75, "Good"), (0.5, "Fair"), (0, "Poor")),
        "Intent Classification: "
        + _graded(uncorrected, (0.9, "Accurate"), (0.6, "Mixed"), (0, "Unsure"), suffix=" correct routing"),
        f"Agent Specialization: {'Appropriate' if appropriate else 'Under review'} ({one_line(scope)})",
        f"User Engagement: {_engagement(answered)}",
    )


def sections(text: str) -> Mapping[str, str]:
    """The text by section; what stands before the first heading is `header`. Empty text has none."""
    found: dict[str, list[str]] = {}
    name = "header"
    for line in text.split("\n") if text else ():
        name = _HEADINGS.get(line, name)
        lines = found.setdefault(name, [])
        if line not in _HEADINGS:
            lines.append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in found.items()}


def active_agent(text: str) -> str | None:
    """The agent that the summary names as the active one."""
    lines = sections(text).get("header", "").split("\n")
    return next((line.removeprefix(_AGENT) for line in lines if line.startswith(_AGENT)), None)


def titled(slug: str) -> str:
    """`headache_severity_assessment` as it is shown: `Headache Severity Assessment`."""
    return " ".join(word[:1].upper() + word[1:] for word in one_line(slug).split("_"))


def one_line(text: str, most: int = _MOST_LINE) -> str:
    """`text` with a space for whatever would break the line, cut where it is longer than a line may be."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


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
