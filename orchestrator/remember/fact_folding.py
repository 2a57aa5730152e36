"""What is known for good of a person, folded from the changes to facts of all their conversations. Pure.

A repetition makes an entry surer. A correction changes its value and keeps the old one as history. Two values
of a kind that has only one, stated without a correction, are a conflict: both stay, the later one is current.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from memory_blocks.facts.changes import LISTS, PERSON, Decider, FactChange, Op

SURE_ENOUGH: Final = 0.6
"""What a brain was less sure of stays an utterance and becomes no entry."""

_PRONOUNS: Final = frozenset(("he", "she", "they", "it", "him", "her", "them"))
_NAMED: Final = frozenset(("allergies", "medications", "other_medicines", "conditions", "pregnancy"))
_HEDGED: Final = re.compile(
    r"\b(?:thinks|reckons|wanted to (?:put|start|give)|offered|suggested|recommended|prescribed|might"
    r"|if (?:i|he|she)|as a (?:child|kid|baby)|joking|kidding)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_NAMES_NOTHING: Final = frozenset(
    ("the", "and", "now", "not", "any", "all", "everything", "anything", "nothing", "something", "that")
)
_FIRST: Final = re.compile(r"\b(?:i|i'?m|i'?ve|me|my|mine|we|our|us)\b", re.IGNORECASE)
_THIRD: Final = re.compile(
    r"\b(?:he|she|his|her|him)\b|\b(?!it's|that's|there's|what's)\w+'s\b", re.IGNORECASE
)
_NOTHING_KNOWN: Final = ("not sure", "prefers not to say", "yes, not specified")
_SENTENCES: Final = {
    "allergies": "{who} is allergic to {value}.",
    "medications": "{who} takes {value}.",
    "other_medicines": "{who} takes {value}.",
    "conditions": "{who} has {value}.",
    "family_history": "{who} has a family history of {value}.",
    "name": "{who} is called {value}.",
    "age": "{who} is {value} old.",
    "birthday": "{who} has a birthday on {value}.",
    "diet": "{who} eats {value}.",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A change together with the conversation it was made in."""

    conversation_id: str
    change: FactChange


@dataclass(slots=True)
class Entry:
    """Something lasting about a person, or about somebody they speak of."""

    first: Said
    value: str
    said: list[Said]
    history: list[tuple[str, datetime]] = field(default_factory=list)
    confidence: float = 1.0
    is_sure: bool = True
    ended_at: datetime | None = None
    is_forgotten: bool = False
    """The person asked to forget it. What they state later is an entry of its own."""
    conflict: str | None = None

    @property
    def latest(self) -> Said:
        """The last change that stated it."""
        return self.said[-1]

    @property
    def key(self) -> tuple[str, str, str]:
        """Whose fact it is, of which kind, and about what."""
        change = self.first.change
        return change.subject, change.kind, change.about

    @property
    def sentence(self) -> str:
        """The entry in the third person."""
        subject, kind, about = self.key
        who = "The person" if subject == PERSON else f"The person's {subject}"
        if self.value.startswith(("no ", "none")):
            return f"{who}: {self.value} ({kind.replace('_', ' ')})."
        form = _SENTENCES.get(kind)
        if form is not None and not about:
            return form.format(who=who, value=self.value)
        of = f" of {about}" if about else ""
        return f"{who}: {kind.replace('_', ' ')}{of} {self.value}."

    def value_in(self, sentence: str) -> str | None:
        """The value that a sentence of the same form names; None if it has another form."""
        before, _, after = replace(self, value="\0").sentence.partition("\0")
        text = sentence.strip().removesuffix(".")
        value = text[len(before) :].removesuffix(after.removesuffix(".")).strip()
        return value if text.startswith(before) and value else None


def fold(changes: Iterable[Said]) -> list[Entry]:
    """The entries that follow from changes, which are in the order in which they were made."""
    entries = list({id(entry): entry for entry in entries_of(changes).values()}.values())
    return [entry for entry in entries if entry.is_sure or entry.history]


def entries_of(changes: Iterable[Said]) -> dict[str, Entry]:
    """The entry to which each change belongs, by the id of the change."""
    given = list(changes)
    withdrawn = _withdrawn([each.change for each in given])
    entries: list[Entry] = []
    entry_of: dict[str, Entry] = {}
    for said in given:
        change = said.change
        if change.id in withdrawn or change.op is Op.WITHDRAW:
            continue
        target = entry_of.get(change.target or "")
        entry = _changed(target, said) if target is not None else _stated(entries, said)
        if entry is not None:
            entry_of[change.id] = entry
            if entry not in entries:
                entries.append(entry)
    return entry_of


def _withdrawn(changes: Sequence[FactChange]) -> set[str]:
    """The ids of changes that count no more. Going backwards: a withdrawal can itself be withdrawn."""
    withdrawn: set[str] = set()
    for change in reversed(changes):
        if change.op is Op.WITHDRAW and change.id not in withdrawn and change.target:
            withdrawn.add(change.target)
    return withdrawn


def _changed(entry: Entry, said: Said) -> Entry:
    """Apply a change that names the entry it changes."""
    change = said.change
    match change.op:
        case Op.ADD:
            _repeat(entry, said)
        case Op.REPLACE:
            if not _same(entry.value, change.value):  # several conversations may get the same correction
                entry.history.append((entry.value, entry.latest.change.said_at))
            entry.value, entry.conflict, entry.ended_at = change.value, None, None
            entry.is_sure, entry.confidence = True, change.confidence
            entry.said.append(said)
        case Op.FORGET:
            entry.is_forgotten = True
        case Op.RETRACT:
            entry.ended_at = change.said_at
        case Op.UNSURE:
            entry.is_sure = False
            entry.confidence = change.confidence
    return entry


def _stated(entries: Sequence[Entry], said: Said) -> Entry | None:
    """An entry for a statement: a known one that it repeats, or a new one; None if it is not for good."""
    change = said.change
    is_known = change.value.lower() not in _NOTHING_KNOWN
    if change.op not in (Op.ADD, Op.REPLACE) or not change.stable or not is_known:
        return None
    if change.confidence < SURE_ENOUGH or not _is_certain(change):
        return None
    key = (change.subject, change.kind, change.about)
    alike = [each for each in entries if each.key == key and each.ended_at is None and not each.is_forgotten]
    for each in alike:
        if _same(each.value, change.value):
            _repeat(each, said)
            return each
    entry = Entry(said, change.value, [said], confidence=change.confidence)
    if change.kind not in LISTS and alike:
        entry.conflict = alike[0].conflict or alike[0].first.change.id
        for each in alike:
            each.conflict = entry.conflict
    return entry


def _is_certain(change: FactChange) -> bool:
    """Whether it is clear whose fact it is, that its value names something, and that it was stated.

    What is not clear stays an utterance, which searches find.
    """
    if change.decided_by not in (Decider.LOCAL, Decider.MODEL):
        return True
    if change.subject.lower() in _PRONOUNS or _HEDGED.search(change.words):
        return False
    if change.kind not in _NAMED:
        return True
    named = [word for word in _WORD.findall(change.value.lower()) if word not in _NAMES_NOTHING]
    if change.kind == "pregnancy" and "was pregnant" in change.words.lower():
        return False
    is_number = change.kind != "pregnancy" and change.value[:1].isdigit()
    is_of_other = change.subject == PERSON and _THIRD.search(change.words) and not _FIRST.search(change.words)
    return bool(named) and not is_number and not is_of_other


def _repeat(entry: Entry, said: Said) -> None:
    entry.said.append(said)
    entry.is_sure = True
    entry.confidence = round(1 - (1 - entry.confidence) * (1 - said.change.confidence) / 2, 6)


def _same(one: str, other: str) -> bool:
    return " ".join(one.lower().split()) == " ".join(other.lower().split())
