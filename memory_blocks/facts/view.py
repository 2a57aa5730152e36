"""The facts in active_session: the view of the current facts that it has room for. Pure.

The view begins with the current concern. A fact that has no room is left out of the block; it still holds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from memory_blocks import summary_text
from memory_blocks.facts.changes import (
    LISTS,
    PERSON,
    CurrentFact,
    Decider,
    FactChange,
    Op,
    derived_id,
    subject_named,
)
from memory_blocks.models import ActiveSession, Fact

ROOM: Final = 1_400
"""How many characters of JSON the facts may have in the block."""
MAX_VALUE: Final = 120
"""Maximum length of a value in the block."""
ABOUT_WHOM: Final = "about_whom"
"""The kind by which blocks before version 1.2 say whom a conversation is about."""

CONCERNS: Final = ("concern", "request")
"""The kinds that say what a conversation is about."""

_ALWAYS_NEEDED: Final = frozenset(("allergies", "medications", "conditions", "pregnancy", "age"))


# --- the view -----------------------------------------------------------------------------------------------


def view(facts: Sequence[CurrentFact]) -> tuple[Fact, ...]:
    """The facts as the block has them, the most important first, as many as there is room for."""
    shown: list[Fact] = []
    room = ROOM
    for fact in by_importance(facts):
        entry = as_entry(fact)
        room -= len(entry.text) + 1
        if room < 0:
            break
        shown.append(entry)
    return tuple(shown)


def as_entry(fact: CurrentFact) -> Fact:
    """One fact as the block has it."""
    return Fact(
        kind=fact.kind,
        value=summary_text.one_line(fact.value, MAX_VALUE) or "…",
        turn=fact.turn or 1,
        subject=None if fact.is_of_person else fact.subject,
        about=fact.about or None,
        stable=fact.stable or None,
        sure=None if fact.sure else False,
        true_when=fact.true_when or None,
    )


def by_importance(facts: Sequence[CurrentFact]) -> list[CurrentFact]:
    """The current concern, what belongs to it, what always matters, the rest; the newest first in each."""
    concern, subject = concern_now(facts), subject_now(facts)

    def rank(fact: CurrentFact) -> int:
        if concern is not None and fact.id == concern.id:
            return 0
        if concern is not None and fact.subject == subject and _is_same(fact.about, concern.value):
            return 1
        if fact.stable or fact.kind in _ALWAYS_NEEDED:
            return 2
        return 3 if fact.subject == subject and not fact.about else 4

    newest_first = sorted(facts, key=lambda fact: fact.last_said_at, reverse=True)
    return sorted(newest_first, key=rank)


# --- what is known now --------------------------------------------------------------------------------------


def concern_now(facts: Iterable[CurrentFact]) -> CurrentFact | None:
    """The concern or request that was said last."""
    concerns = [fact for fact in facts if fact.kind in CONCERNS]
    return max(concerns, key=lambda fact: (fact.last_said_at, fact.kind == "concern"), default=None)


def subject_now(facts: Iterable[CurrentFact]) -> str:
    """The person whom the latest concern or request is about: the current subject."""
    concern = concern_now(facts)
    return concern.subject if concern else PERSON


def of_subject_now(facts: Sequence[CurrentFact]) -> tuple[CurrentFact, ...]:
    """The facts about the current subject, without facts that belong to another of their concerns."""
    subject, now = subject_now(facts), concern_now(facts)
    own = [fact for fact in facts if fact.subject == subject]
    others = [fact.value for fact in own if fact.kind == "concern" and fact != now]
    return tuple(
        fact
        for fact in own
        if not any(_is_same(fact.about, other) for other in others)
        and not (fact.kind == "concern" and now is not None and now.kind == "concern" and fact != now)
    )


def known_values(facts: Sequence[CurrentFact]) -> dict[str, str]:
    """The facts about the current subject as a mapping from kind to value; several values are joined.

    If the subject is not the person who writes, `about_whom` names them.
    """
    values: dict[str, str] = {}
    for fact in of_subject_now(facts):
        several = fact.kind in LISTS and fact.kind in values
        values[fact.kind] = f"{values[fact.kind]}, {fact.value}" if several else fact.value
    subject = subject_now(facts)
    return values if subject == PERSON else {ABOUT_WHOM: subject, **values}


def points(facts: Sequence[CurrentFact]) -> dict[str, str]:
    """`known_values`, and what is known about others under `husband_temperature`."""
    subject, values = subject_now(facts), known_values(facts)
    for fact in facts:
        if fact.subject not in (subject, PERSON):
            values[f"{fact.subject.lower().replace(' ', '_')}_{fact.kind}"] = fact.value
    return values


def values_in(entries: Sequence[Fact]) -> Mapping[str, str]:
    """The value of each kind in a view, whose first entry of a kind is the current one."""
    return {entry.kind: entry.value for entry in reversed(entries)}


def _is_same(one: str, other: str) -> bool:
    return bool(one) and one.casefold() == other.casefold()


# --- changes from a block -----------------------------------------------------------------------------------


def changes_in(session: ActiveSession) -> tuple[FactChange, ...]:
    """One addition per fact of a block, for blocks that were written before changes were stored."""
    info = session.session_info
    return tuple(
        _change(
            entry,
            derived_id(info.session_id, "block", str(number)),
            Op.ADD,
            info.last_activity,
            Decider.LOCAL,
        )
        for number, entry in enumerate(_entries(session))
    )


def changes_by_hand(
    edited: ActiveSession, facts: Sequence[CurrentFact], now: datetime, decider: Decider, made_before: int
) -> tuple[FactChange, ...]:
    """Compare a block that somebody edited with the facts that it showed; return the changes they made.

    Facts that the block had no room for did not change. `made_before` is how many changes there are already.
    """
    shown = [(as_entry(fact), fact) for fact in by_importance(facts)[: len(view(facts))]]
    added = []
    for entry in _entries(edited):
        if same := next((each for each in shown if each[0] == entry), None):
            shown.remove(same)
        else:
            added.append(entry)
    changes: list[FactChange] = []

    def add(entry: Fact, op: Op, target: CurrentFact | None) -> None:
        number = str(made_before + len(changes))
        id_ = derived_id(edited.session_info.session_id, "by hand", number)
        changes.append(_change(entry, id_, op, now, decider, target))

    for entry in added:
        old = next((each for each in shown if _place(each[0]) == _place(entry)), None)
        if old is not None:
            shown.remove(old)
        add(entry, Op.REPLACE if old else Op.ADD, old[1] if old else None)
    for entry, fact in shown:
        add(entry, Op.RETRACT, fact)
    return tuple(changes)


def _place(entry: Fact) -> tuple[str, str, str]:
    """What a new value has in common with the one that it replaces."""
    return entry.kind, (entry.subject or PERSON).casefold(), (entry.about or "").casefold()


def _entries(session: ActiveSession) -> Iterator[Fact]:
    """The facts of a block, one value each.

    Before version 1.2 the values of a list were one value, and `about_whom` named the subject of all facts.
    """
    facts = session.facts or ()
    is_older = session.schema_version != "1.2"
    subject = next((fact.value[:60] for fact in facts if fact.kind == ABOUT_WHOM and is_older), None)
    for fact in facts:
        values = fact.value.split(", ") if is_older and fact.kind in LISTS else [fact.value]
        for value in filter(None, map(str.strip, values)):
            yield fact.model_copy(update={"value": value, "subject": fact.subject or subject})


def _change(
    entry: Fact, id_: str, op: Op, now: datetime, decider: Decider, target: CurrentFact | None = None
) -> FactChange:
    return FactChange(
        id=id_,
        op=op,
        target=target.id if target else None,
        kind=entry.kind,
        subject=subject_named(entry.subject or PERSON) or PERSON,
        about=entry.about or "",
        value=entry.value,
        stable=entry.stable or False,
        true_when=entry.true_when or "",
        said_at=now,
        turn=entry.turn,
        decided_by=decider,
    )
