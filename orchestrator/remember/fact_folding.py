"""What is known for good of a person, folded from the changes to facts of all their conversations. Pure.

A repetition makes an entry surer. A correction changes its value and keeps the old one as history. Two values
of a kind that has only one, stated without a correction, are a conflict: both stay, the later one is current.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from agents.fact_kinds import BY_NAME, TABLE, name_of, sentence_of
from memory_blocks.facts.changes import LISTS, PERSON, Decider, FactChange, Op

SURE_ENOUGH: Final = 0.6
"""What a brain was less sure of stays an utterance and becomes no entry."""

_PRONOUNS: Final = frozenset(("he", "she", "they", "it", "him", "her", "them"))
_NAMED: Final = frozenset(("allergies", "medications", "other_medicines", "conditions", "pregnancy"))
_OF_THE_PAST: Final = frozenset(row.kind for row in TABLE if row.of_the_past)
_HEDGED: Final = re.compile(
    r"\b(?:thinks|reckons|wanted to (?:put|start|give)|offered|suggested|recommended|prescribed|might"
    r"|if (?:i|he|she)|joking|kidding)\b",
    re.IGNORECASE,
)
_LONG_AGO: Final = re.compile(r"(?<!since )\bas a (?:child|kid|baby)\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")
_FIRST_WORD: Final = re.compile(r"[^\W\d_][\w-]*")
_MY: Final = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
_NONE: Final = ("no ", "none")
_WEEK: Final = timedelta(days=7)
_YEAR: Final = timedelta(days=365)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_NAMES_NOTHING: Final = frozenset(
    ("the", "and", "now", "not", "any", "all", "everything", "anything", "nothing", "something", "that")
)
_FIRST: Final = re.compile(r"\b(?:i|i'?m|i'?ve|me|my|mine|we|our|us)\b", re.IGNORECASE)
_THIRD: Final = re.compile(
    r"\b(?:he|she|his|her|him)\b|\b(?!it's|that's|there's|what's)\w+'s\b", re.IGNORECASE
)
_NOTHING_KNOWN: Final = ("not sure", "prefers not to say", "yes, not specified")


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
    is_outdone: bool = False
    """Another value of the same conflict was stated later, and is the current one."""

    @property
    def is_current(self) -> bool:
        """Whether it holds, as far as is known."""
        return self.ended_at is None and self.is_sure and not self.is_outdone

    @property
    def true_when(self) -> str:
        """When it was true, as it was told last."""
        return next((each.change.true_when for each in reversed(self.said) if each.change.true_when), "")

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
        value = self.value if kind == "remembered" else _MY.sub("their", self.value)
        when = f" ({self.true_when})" if self.true_when and self.true_when not in value else ""
        if value.startswith(_NONE) and (row := BY_NAME.get(kind)) and row.nothing:
            return f"{who} reported no {row.nothing}."
        form = None if value.startswith(_NONE) or about else sentence_of(kind, value, who)
        if form is not None:
            return f"{form.removesuffix('.')}{when}."
        of = f" of {about}" if about else ""
        return f"{who} said of {name_of(kind)}{of}: {value}{when}."

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


def _settle(entries: Iterable[Entry]) -> None:
    """Mark the value of each conflict that was stated last as the current one. One value alone is none."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.conflict:
            groups.setdefault(entry.conflict, []).append(entry)
    for group in groups.values():
        standing = [
            each for each in group if each.ended_at is None and not each.is_forgotten and each.is_sure
        ]
        for each in group:
            if each not in standing or len(standing) == 1:
                each.conflict = None
        for each in sorted(standing, key=lambda each: each.latest.change.said_at)[:-1]:
            each.is_outdone = True


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
            if not any(each is entry for each in entries):
                entries.append(entry)
            if change.op is Op.REPLACE:
                _end_rivals(entries, entry, change)
    _settle(entries)
    return entry_of


def _end_rivals(entries: Iterable[Entry], entry: Entry, change: FactChange) -> None:
    """A correction decides between values that contradict each other: the others do not hold any more."""
    for each in entries:
        if each is not entry and each.key == entry.key and each.ended_at is None and _exclude(each, change):
            each.ended_at = change.said_at


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
    rivals = [each for each in alike if _exclude(each, change)]
    if rivals and _has_grown(rivals[-1], change):
        return _changed(rivals[-1], Said(said.conversation_id, change.model_copy(update={"op": Op.REPLACE})))
    entry = Entry(said, change.value, [said], confidence=change.confidence)
    if rivals:
        entry.conflict = next((each.conflict for each in rivals if each.conflict), rivals[0].first.change.id)
        for each in rivals:
            each.conflict = entry.conflict
    return entry


def _exclude(entry: Entry, change: FactChange) -> bool:
    """Whether an entry and a value of the same kind cannot both hold."""
    one, other = entry.value.lower(), change.value.lower()
    if change.kind not in LISTS or one.startswith(_NONE) != other.startswith(_NONE):
        return True
    if change.kind not in ("medications", "other_medicines"):
        return False
    doses = [tuple(_NUMBER.findall(each)) for each in (one, other)]
    names = [_FIRST_WORD.match(each) for each in (one, other)]
    return bool(
        doses[0]
        and doses[1]
        and doses[0] != doses[1]
        and names[0]
        and names[1]
        and names[0][0] == names[1][0]
    )


def _has_grown(entry: Entry, change: FactChange) -> bool:
    """Whether only time has passed: an age or a pregnancy is as much further as the statements are apart."""
    numbers = [_NUMBER.findall(each) for each in (entry.value, change.value)]
    if change.kind not in ("age", "pregnancy") or not all(len(each) == 1 for each in numbers):
        return False
    if _NUMBER.sub("", entry.value) != _NUMBER.sub("", change.value):
        return False
    passed = change.said_at - entry.latest.change.said_at
    unit = _WEEK if "week" in change.value else _YEAR
    more = float(numbers[1][0].replace(",", ".")) - float(numbers[0][0].replace(",", "."))
    return 0 <= more - passed / unit < 1.5 or abs(more - passed / unit) <= 1


def _is_certain(change: FactChange) -> bool:
    """Whether it is clear whose fact it is, that its value names something, and that it was stated.

    What is not clear stays an utterance, which searches find.
    """
    if change.decided_by not in (Decider.LOCAL, Decider.MODEL):
        return True
    if change.subject.lower() in _PRONOUNS or _HEDGED.search(change.words):
        return False
    if change.kind not in _OF_THE_PAST and change.kind != "remembered" and _LONG_AGO.search(change.words):
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
