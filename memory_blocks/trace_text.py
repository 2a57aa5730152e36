"""The one line in a trace that says what was read from a block, or what changed in it. Pure functions only.

A line quotes what a person wrote. It goes to the person's client and into the store, never into a log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from memory_blocks import summary_text
from memory_blocks.models import (
    ActiveSession,
    ConversationHistory,
    Fact,
    MemoryMetadata,
    Model,
    Turn,
    TurnStatus,
)
from memory_blocks.summary_text import titled

MAX_CHARACTERS: Final = 300
_MAX_PATHS: Final = 6
_CONCERN: Final = ("concern", "severity", "onset", "duration")


def as_line(text: str) -> str:
    """Any text as one printable line of at most 300 characters."""
    return summary_text.one_line(text, MAX_CHARACTERS)


# --- reading ----------------------------------------------------------------------------------------------


def describe_read(block: Model | str, full: float) -> str:
    """What the block holds. `full` is its utilization in percent."""
    match block:
        case ConversationHistory():
            parts = _history(block, full)
        case ActiveSession():
            parts = _session(block, full)
        case MemoryMetadata():
            parts = _metadata(block)
        case _:
            parts = _summary(str(block), full)
    return _line(parts)


def describe_invalid(text: str) -> str:
    """A text that was read although it is not a valid block."""
    return f"not a valid block, {_count(len(text), 'character')}"


def describe_quarantined(text: str, reason: str) -> str:
    """A text that was read from quarantine. `reason` quotes nothing of it."""
    return _line((f"text in quarantine, {_count(len(text), 'character')}", reason))


def _history(history: ConversationHistory, full: float) -> Iterator[str]:
    archived = history.total_turns - len(history.turns)
    if not history.turns:
        yield _count(archived, "turn") + " in the archive, none in the block" if archived else "no turns yet"
        return
    yield _count(len(history.turns), "turn") + f", {full:g} % full"
    if archived:
        yield f"{archived} more in the archive"
    yield f"latest: {_said(history.turns[-1])}"


def _session(session: ActiveSession, full: float) -> Iterator[str]:
    state, facts = session.conversation_state, session.facts or ()
    yield (
        _count(state.current_turn, "turn") if state.current_turn else "no turns yet"
    ) + f", {full:g} % full"
    yield from _facts(facts)
    if not facts and state.active_topic:
        yield f"topic {titled(state.active_topic)}"
    if session.earlier_sessions:
        yield _count(len(session.earlier_sessions), "earlier session")


def _summary(text: str, full: float) -> Iterator[str]:
    if not text:
        yield "no turns yet"
        return
    summary = summary_text.parse(text)
    yield _count(len(summary.flow), "turn") + f", {full:g} % full"
    yield f"topic {titled(summary.topic)}"
    yield from _known(summary.points)
    yield from (f"note: {note}" for note in summary.notes)


def _metadata(metadata: MemoryMetadata) -> Iterator[str]:
    usage, archival = metadata.memory_usage, metadata.archival_info
    turns = _count(usage.conversation_history.turns_stored, "turn")
    yield f"history {usage.conversation_history.utilization_percent:g} % full with {turns}"
    yield f"session {usage.active_session.utilization_percent:g} %"
    yield f"summary {usage.context_summary.utilization_percent:g} %"
    if archival.total_archived_turns:
        yield _count(archival.total_archived_turns, "turn") + " in the archive"


# --- writing ----------------------------------------------------------------------------------------------


def describe_write(
    before: Model | str, after: Model | str, changed: Sequence[str], shortened: Iterable[int] = ()
) -> str:
    """What changed from one version of a block to the next.

    `changed` has the paths that differ; they are named where nothing better can be said. `shortened` are the
    turns of which rotation left a part in the block.
    """
    match before, after:
        case ConversationHistory(), ConversationHistory():
            parts = list(_history_changes(before, after, frozenset(shortened)))
        case ActiveSession(), ActiveSession():
            parts = list(_session_changes(before, after))
        case MemoryMetadata(), MemoryMetadata():
            parts = list(_metadata_changes(before, after))
        case _:
            parts = list(_summary_changes(str(before), str(after)))
    return _line(parts or [f"changed: {_listed(changed)}"])


def describe_restored(line: str) -> str:
    """A block whose invalid text went into quarantine; `line` describes the text that replaced it."""
    return _line((f"invalid text put into quarantine, last valid text restored: {line}",))


def describe_realigned(line: str) -> str:
    """A block that was rewritten because another one was restored; `line` describes it."""
    return _line((f"changed to agree with a restored block: {line}",))


def describe_adopted(line: str) -> str:
    """An edit that somebody made in the copy of the blocks; `line` describes the change."""
    return _line((f"edit adopted: {line}",))


def describe_refused(reason: str) -> str:
    """An edit that somebody made in the copy of the blocks and that was refused. `reason` quotes nothing."""
    return _line((f"edit refused and put into quarantine, block unchanged: {reason}",))


def _history_changes(
    before: ConversationHistory, after: ConversationHistory, shortened: frozenset[int]
) -> Iterator[str]:
    old = {turn.turn_id: turn for turn in before.turns}
    new = {turn.turn_id for turn in after.turns}
    differing = [turn for turn in after.turns if turn != old.get(turn.turn_id)]
    added = [turn for turn in differing if turn.turn_id not in old]
    edited = [turn for turn in differing if turn.turn_id in old.keys() - shortened]
    left = [turn_id for turn_id in old if turn_id not in new]
    done = [f"turn {turn.turn_id} {_outcome(turn)}" for turn in added]
    done += [f"turn {turn.turn_id} changed" for turn in edited]
    done += [f"turn {turn.turn_id} shortened" for turn in differing if turn.turn_id in shortened]
    if left:
        which = f"{left[0]}" if len(left) == 1 else f"{left[0]} to {left[-1]}"
        done.append(f"{_count(len(left), 'turn')} ({which}) moved to the archive")
    latest = (added or edited)[-1:]
    if done:
        yield ", ".join(done) + "".join(f": {_said(turn)}" for turn in latest)


def _session_changes(before: ActiveSession, after: ActiveSession) -> Iterator[str]:
    old, new = before.conversation_state, after.conversation_state
    known, now = before.facts or (), after.facts or ()
    learned = [fact for fact in now if _key(fact) not in map(_key, known)]
    replaced = {_key(fact)[:-1] for fact in learned}
    lost = [fact for fact in known if _key(fact) not in map(_key, now) and _key(fact)[:-1] not in replaced]
    parts = [*_facts(learned), *(f"no longer {each}" for fact in lost for each in _facts([fact]))]
    if new.active_topic and new.active_topic != old.active_topic:
        parts.append(f"topic {titled(new.active_topic)}")
    if new.last_agent and new.last_agent != old.last_agent:
        parts.append(f"answered by {new.last_agent}")
    if after.session_info.status is not before.session_info.status:
        parts.append(f"session {after.session_info.status.lower()}")
    if new.current_turn > old.current_turn:
        first, *rest = parts or ["nothing new about the person"]
        parts = [f"turn {new.current_turn} added: {first}", *rest]
    yield from parts


def _summary_changes(before: str, after: str) -> Iterator[str]:
    old = summary_text.parse(before) if before else None
    new = summary_text.parse(after) if after else None
    if new is None:
        yield "emptied"
        return
    known, now = list(_known(old.points)) if old else [], list(_known(new.points))
    points = [point for point in now if point not in known]
    replaced = {point.partition(": ")[0] for point in points}
    points += [
        f"no longer {point}"
        for point in known
        if point not in now and point.partition(": ")[0] not in replaced
    ]
    notes = [f"note added: {note}" for note in new.notes if not old or note not in old.notes]
    parts = [*notes, *points]
    if old and new.topic != old.topic:
        parts.append(f"topic {titled(new.topic)}")
    if new.flow and (not old or new.flow[-1:] != old.flow[-1:]):
        latest = summary_text.turn_of(new.flow[-1])
        is_known = bool(old and old.flow and summary_text.turn_of(old.flow[-1]) == latest)
        first, *rest = parts or [new.flow[-1].split("\n")[0].partition("): ")[2]]
        parts = [f"turn {latest} {'changed' if is_known else 'added'}: {first}", *rest]
    yield from parts


def _metadata_changes(before: MemoryMetadata, after: MemoryMetadata) -> Iterator[str]:
    if after.memory_usage != before.memory_usage:
        yield from _metadata(after)
    moved = after.archival_info.total_archived_turns - before.archival_info.total_archived_turns
    if moved > 0:
        yield _count(moved, "turn") + " moved to the archive"
    if after.level and after.level is not before.level:
        yield f"level {after.level}"


# --- pieces -----------------------------------------------------------------------------------------------


def _said(turn: Turn) -> str:
    """What the person said in a turn: the enriched message, or the message itself before it was enriched."""
    enrichment = turn.context_enrichment
    return enrichment.enriched_message if enrichment else turn.user_message.content


def _outcome(turn: Turn) -> str:
    return "added" if turn.turn_status is TurnStatus.COMPLETED else "added, not finished"


def _key(fact: Fact) -> tuple[str, str | None, str | None, str]:
    return fact.kind, fact.subject, fact.about, fact.value


def _facts(facts: Iterable[Fact]) -> Iterator[str]:
    """`concern headache 8/10 since Tuesday`, then each further fact; those of others begin with whose."""
    by_subject: dict[str | None, list[Fact]] = {}
    for fact in facts:
        by_subject.setdefault(fact.subject, []).append(fact)
    for subject, theirs in by_subject.items():
        yield from (f"{subject}: {line}" if subject else line for line in _facts_of_one(theirs))


def _facts_of_one(facts: Sequence[Fact]) -> Iterator[str]:
    concern = next((fact.value for fact in facts if fact.kind == "concern"), None)
    of_it = [fact for fact in facts if fact.about in (None, concern)]
    yield from _of_concern({fact.kind: fact.value for fact in reversed(of_it)}, [*of_it])
    for fact in facts:
        if fact.about not in (None, concern):
            yield f"{_words(fact.kind)} {fact.value} ({fact.about})"


def _of_concern(known: Mapping[str, str], facts: Sequence[Fact]) -> Iterator[str]:
    if "concern" in known:
        concern = ["concern", known["concern"]]
        if "severity" in known:
            concern.append(known["severity"])
        if onset := known.get("onset"):
            concern.append(onset if onset.startswith("since") or onset.endswith("ago") else f"since {onset}")
        if duration := known.get("duration"):
            concern.append(duration if duration.startswith("for") else f"for {duration}")
        yield " ".join(concern)
        said = {(kind, known[kind]) for kind in _CONCERN if kind in known}
        facts = [fact for fact in facts if (fact.kind, fact.value) not in said]
    yield from (f"{_words(fact.kind)} {fact.value}" for fact in facts)


def _known(points: Iterable[str]) -> Iterator[str]:
    """The key points of a summary, without those that say that nothing is known yet."""
    for point in points:
        name, _, value = point.removeprefix("• ").partition(": ")
        if not value.startswith(summary_text.UNKNOWN):
            yield f"{name}: {value}"


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - _MAX_PATHS
    return ", ".join(paths[:_MAX_PATHS]) + (f" and {more} more" if more > 0 else "")


def _words(slug: str) -> str:
    return slug.replace("_", " ")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _line(parts: Iterable[str]) -> str:
    return as_line("; ".join(parts))
