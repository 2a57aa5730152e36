"""Facts about people, and the changes that they follow from. Pure.

Each turn yields changes. A change is stored once and never altered; `current_facts` computes the facts that
hold now from all of them. So a reading by a model, an edit by an operator and a correction by the person last
until another change replaces them, also after the turns they come from have left the history.
"""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from memory_blocks.models import MAX_LINE, Id, Model, Moment, Share, Slug, departure

PERSON: Final = "person"
"""The subject of a fact about the person who writes. Other subjects are named: "daughter", "dog"."""

_PERSON_NAMES: Final = frozenset(
    ("person", "user", "patient", "self", "myself", "me", "i", "you", "writer", "speaker", "client", "caller")
)
_WHOSE: Final = re.compile(r"^(?:(?:the|my|their|his|her|(?:(?:the )?(?:person|user|patient)'s)) )+", re.I)

LISTS: Final = frozenset(
    (
        "associated_symptoms",
        "medications",
        "other_medicines",
        "conditions",
        "allergies",
        "triggers",
        "relief",
        "measures",
        "readings",
        "family_history",
        "noted",
        "mentioned",
        "earlier_concern",
        "avoids",
        "details",
        "devices",
        "disability",
        "doctor",
        "exercise",
        "fears",
        "history",
        "household",
        "language",
        "past_conditions",
        "preferences",
        "remembered",
    )
)
"""The kinds of fact that can have several values."""


class Op(StrEnum):
    """What a change does.

    `ADD` adds a fact, or repeats the fact `target`. `REPLACE` puts a new fact in the place of `target`.
    `RETRACT` ends the fact `target`. `UNSURE` marks the fact `target` as doubtful, or adds a doubtful one.
    `FORGET` ends the fact `target` because the person asked to forget it: its memory is deleted, too.
    `WITHDRAW` undoes the change `target`, as if it had never been made.
    """

    ADD = "add"
    REPLACE = "replace"
    RETRACT = "retract"
    UNSURE = "unsure"
    FORGET = "forget"
    WITHDRAW = "withdraw"

    @property
    def ends(self) -> bool:
        """Whether the fact `target` does not hold any more, and none takes its place."""
        return self in (Op.RETRACT, Op.FORGET)


class Decider(StrEnum):
    """Who decided on a change."""

    LOCAL = "local"
    MODEL = "model"
    OPERATOR = "operator"
    PERSON = "person"


class FactChange(Model):
    """One change to the facts.

    `subject` says whose fact it is. `about` names what a value belongs to if a kind can have one for each of
    several things: the severity of the headache, the dose of metformin.
    `stable` tells a lasting fact (an allergy) from one of this episode (a temperature).
    `true_when` is when it was true, in the person's words; `said_at` is when they said so.
    `words` are the words of the message that the change rests on. `message_id` is None for a change outside
    a turn. Its `turn` is then the number that the entry of the block has, or None.
    """

    id: Id
    op: Op
    target: Id | None = None
    kind: Slug
    subject: Annotated[str, Field(min_length=1, max_length=60)]
    about: Annotated[str, Field(max_length=120)] = ""
    value: Annotated[str, Field(min_length=1, max_length=MAX_LINE)]
    stable: bool = False
    true_when: Annotated[str, Field(max_length=120)] = ""
    said_at: Moment
    turn: Annotated[int, Field(ge=1)] | None = None
    message_id: Id | None = None
    words: Annotated[str, Field(max_length=MAX_LINE)] = ""
    decided_by: Decider
    confidence: Share = 1.0

    @model_validator(mode="after")
    def _target_fits(self) -> Self:
        if self.target is None and (self.op.ends or self.op in (Op.REPLACE, Op.WITHDRAW)):
            raise departure("target", "is missing")
        return self


class CurrentFact(Model):
    """A fact that holds now. `id` is the id of the change that gave it its value."""

    id: Id
    kind: Slug
    subject: str
    about: str
    value: str
    stable: bool
    true_when: str
    said_at: Moment
    turn: int | None
    message_id: Id | None
    words: str
    decided_by: Decider
    confidence: Share
    sure: bool = True
    times_said: Annotated[int, Field(ge=1)] = 1
    last_said_at: Moment
    replaced: Id | None = None
    """The fact that this one replaced. Its values are in the changes."""
    conversation_id: Id | None = None
    """The other conversation of the person in which it was said; None if it was said in this one."""

    @property
    def is_of_person(self) -> bool:
        """Whether it is about the person who writes."""
        return self.subject == PERSON


def subject_named(name: str, known: Iterable[str] = ()) -> str:
    """The subject that somebody means who wrote `name`: "The user" is the person, "my Daughter" the daughter.

    If it is one of the `known` subjects in another spelling, the known one is returned.
    """
    plain = name.replace("\u2019", "'").strip(" .\"'")
    bare = _WHOSE.sub("", plain) or plain
    if bare.casefold() in _PERSON_NAMES:
        return PERSON
    return next((each for each in known if each.casefold() == bare.casefold()), bare)


def current_facts(changes: Iterable[FactChange]) -> tuple[CurrentFact, ...]:
    """The facts that hold after these changes, which are in the order in which they were made.

    If the target of a change was replaced meanwhile, the change applies to the fact that replaced it. If it
    was retracted, the change does nothing, except that a replacement adds its fact: the person has stated it
    either way.
    """
    drafts: dict[str, _Draft] = {}
    replaced_by: dict[str, str] = {}
    for change in _not_withdrawn(list(changes)):
        target_id = change.target or ""
        while target_id in replaced_by:
            target_id = replaced_by[target_id]
        target = drafts.get(target_id)
        match change.op:
            case Op.ADD if target is not None:
                target.repeat(change.said_at)
            case Op.ADD:
                drafts[change.id] = _draft(change)
            case Op.REPLACE:
                replaced_by[target_id] = change.id
                drafts = _put_in_place(drafts, target, _draft(change))
            case Op.RETRACT | Op.FORGET if target is not None:
                del drafts[target.change.id]
            case Op.UNSURE if target is not None:
                target.sure, target.confidence = False, change.confidence
            case Op.UNSURE if change.target is None:
                drafts[change.id] = _draft(change)
                drafts[change.id].sure = False
    return tuple(draft.fact() for draft in drafts.values())


def withdrawals(
    changes: Iterable[FactChange],
    message_ids: Container[str | None],
    *,
    turn: int,
    message_id: str,
    answer_id: str,
    said_at: datetime,
) -> tuple[FactChange, ...]:
    """Changes that withdraw what these messages changed, because they are answered again by `answer_id`."""
    common = {"turn": turn, "message_id": message_id, "said_at": said_at, "decided_by": Decider.PERSON}
    return tuple(
        change.model_copy(
            update={
                "id": derived_id(answer_id, "withdraws", change.id),
                "op": Op.WITHDRAW,
                "target": change.id,
                **common,
            }
        )
        for change in _not_withdrawn(list(changes))
        if change.message_id is not None and change.message_id in message_ids
    )


def after_others(
    changes: Sequence[FactChange], known: Container[str], facts: Iterable[CurrentFact]
) -> tuple[FactChange, ...]:
    """The changes of a message whose reading knew only the facts with the ids `known`.

    Somebody may have added other `facts` since. Where a kind has one value, an addition of the message
    replaces theirs, so that there are not two. Both changes stay stored.
    """
    others = {_place(fact): fact.id for fact in facts if fact.id not in known and fact.kind not in LISTS}
    return tuple(
        change.model_copy(update={"op": Op.REPLACE, "target": others[_place(change)]})
        if change.op is Op.ADD and change.target is None and _place(change) in others
        else change
        for change in changes
    )


def _place(fact: FactChange | CurrentFact) -> tuple[str, str, str]:
    """The slot that a fact fills. If its kind has one value, a slot holds one fact at a time."""
    return fact.kind, fact.subject.casefold(), fact.about.casefold()


def derived_id(*parts: str) -> str:
    """The id of a change to a fact, computed from these strings: equal strings give an equal id."""
    return f"fact_{blake2b(chr(0).join(parts).encode(), digest_size=12).hexdigest()}"


def _not_withdrawn(changes: list[FactChange]) -> list[FactChange]:
    """The changes that count. Going backwards, because a withdrawal can itself be withdrawn."""
    withdrawn: set[str] = set()
    counted: list[FactChange] = []
    for change in reversed(changes):
        if change.id in withdrawn:
            continue
        if change.op is Op.WITHDRAW:
            withdrawn.add(change.target or "")
        else:
            counted.append(change)
    return counted[::-1]


@dataclass(slots=True)
class _Draft:
    """A fact while the changes are applied one by one. `change` gave it its value."""

    change: FactChange
    last_said_at: datetime
    confidence: float
    sure: bool = True
    times_said: int = 1

    def repeat(self, said_at: datetime) -> None:
        """Count that it was said again."""
        self.times_said += 1
        self.last_said_at, self.sure = said_at, True

    def fact(self) -> CurrentFact:
        """The fact."""
        change = self.change
        return CurrentFact(
            id=change.id,
            kind=change.kind,
            subject=change.subject,
            about=change.about,
            value=change.value,
            stable=change.stable,
            true_when=change.true_when,
            said_at=change.said_at,
            turn=change.turn,
            message_id=change.message_id,
            words=change.words,
            decided_by=change.decided_by,
            confidence=self.confidence,
            sure=self.sure,
            times_said=self.times_said,
            last_said_at=self.last_said_at,
            replaced=change.target,
        )


def _draft(change: FactChange) -> _Draft:
    return _Draft(change, change.said_at, change.confidence)


def _put_in_place(drafts: dict[str, _Draft], old: _Draft | None, new: _Draft) -> dict[str, _Draft]:
    """The drafts with `new` in the position of `old`, or at the end if `old` does not hold any more."""
    if old is None:
        return {**drafts, new.change.id: new}
    ordered = (new if draft is old else draft for draft in drafts.values())
    return {draft.change.id: draft for draft in ordered}
