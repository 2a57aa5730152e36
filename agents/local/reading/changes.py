"""Turns what clauses say into changes to the facts: adds, replaces, repeats and retracts them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from agents.fact_kinds import TABLE
from agents.local.dialogue import Talk, named_topic, stems
from agents.local.reading import readers
from agents.local.reading.acts import UNSURE, Done
from agents.local.reading.answers import AnswerReader
from agents.local.reading.clauses import MIXED, PERSON, Clause, plain, relative_in
from agents.local.reading.corrections import CorrectionReader, contrast
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED, Found
from agents.utterance import only_agrees
from agents.values import LISTS, NONE, ActKind, FactReading
from memory_blocks.facts.changes import CurrentFact, Decider, Op

_STOPPED: Final = re.compile(
    r"\b(?:stopped|came off|come off|no longer (?:take|on|taking)|quit|off the"
    r"|not (?:taking|on)|don't take|took me off|taken off|stopped taking)\b"
)
_DENIED: Final = re.compile(
    r"(?:(?:no|but|and|actually|well|sorry),? )*(?:i|he|she|my \w+) (?:don't|doesn't|do not|does not|have"
    r" never|never|haven't|hasn't)"
    r" (?:actually |even |really )?(?:have |had |got )?(?:an? |any |the )?(?P<what>[\w' -]{3,40}?)(?: any"
    r" ?more| at all| though)?"
)
_CHANGED: Final = re.compile(
    r"\b(?:now|nowadays|these days|since then|no longer|any ?more|switched|changed|increased|decreased"
    r"|reduced"
    r"|raised|upped|doubled|halved|moved|put (?:me|him|her) (?:on|up)|went up|gone up|went down|gone down"
    r"|stopped|quit"
    r"|gave up|given up|turned|instead|became|become|new|just (?:started|retired|moved)|from today|started)\b"
)
_WEIGHT: Final = re.compile(r"kg|kilo|lb|pound|stone|st\b")
REMEMBERED: Final = "remembered"
_MAX_REMEMBERED: Final = 160
_ADDS: Final = re.compile(r"\b(?:also|too|as well|plus|besides|on top)\b|^and\b")
_IS_A_WISH: Final = re.compile(
    r"\b(?:remind|reminder|appointment|book|reschedule|cancel|wake me|check ?up)\b"
)
"""Requests that cannot be done here and that a person may come back to."""

_MAX: Final = 200
_MEASURED: Final = frozenset(row.kind for row in TABLE if row.varies)

_ASKS_TO_KEEP: Final = re.compile(
    r"^(?:(?:ok|and|also|please|pls|just|but|oh|so|can you|could you|would you"
    r"|will you|i want you to|i need you to|i'd like you to)[, ]+)*"
    r"(?:remember|note|log|record|save|store|write|put|jot|mark|make a note"
    r"|take a note|keep a note|keep in mind|don't forget|for the record"
    r"|for your notes|add)"
    r"(?: down| it down| this down| this| that down)?(?: in (?:your|my) notes)?(?: that|:|,| of)*\s+",
    re.IGNORECASE,
)


class ChangeReader:
    """Reads the changes of one message."""

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader
        self._corrections = CorrectionReader(reader)

    def read(self, done: Sequence[Done], talk: Talk) -> tuple[FactReading, ...]:
        """The changes that the clauses make, in their order."""
        if talk.refuses_offer(" ".join(each.clause.low for each in done)):
            return ()
        changes: list[FactReading] = []
        concern = talk.about
        for each in done:
            for change in self._of(each, talk, changes, concern):
                if (
                    changes
                    and each.kind is ActKind.CORRECT
                    and (change.op, change.target, change.kind)
                    == (changes[-1].op, changes[-1].target, changes[-1].kind)
                ):
                    changes.pop()  # the same message takes it back
                changes.append(change)
                if change.kind == CONCERN:
                    concern = change.value[:120]
        return tuple(changes)

    def _of(
        self, each: Done, talk: Talk, before: Sequence[FactReading], concern: str
    ) -> Iterable[FactReading]:
        clause = each.clause
        match each.kind:
            case ActKind.ANSWER if talk.offer and not each.answers:
                return ()
            case ActKind.ANSWER:
                return [self._added(found, talk, before, concern) for found in self._answer_values(each)]
            case ActKind.REMEMBER:
                bare = kept_words(clause.text)
                kept = replace(clause, text=bare, low=plain(bare).strip(" ."))
                return self._remembered(kept, talk, before, concern) if says_something(bare) else ()
            case ActKind.FACT | ActKind.FEELING:
                return self._stated(clause, talk, before, concern)
            case ActKind.CORRECT:
                return self._corrected(clause, talk, before, concern)
            case ActKind.OTHER_REQUEST if _IS_A_WISH.search(clause.low):
                return [_reading(Op.ADD, _note(clause), concern)]
            case ActKind.OTHER_REQUEST | ActKind.SMALL_TALK | ActKind.HEALTH_QUESTION if (
                each.confidence == UNSURE or (len(clause.low.split()) > 2 and each.confidence < 1)
            ):
                return [_reading(Op.ADD, Found(MENTIONED, clause.text[:_MAX], clause.text), "")]
            case ActKind.TOPIC_RESUMED:
                return self._resumed(clause, talk)
            case ActKind.TOPIC_LEFT:
                return self._new_topic(clause, talk, before, concern)
            case _:
                return ()

    def _answer_values(self, each: Done) -> Sequence[Found]:
        """The answer, and what else the clause states. A yes or no to a question of no kind is no fact."""
        kinds = {found.kind for found in each.answers}
        if kinds == {NOTED} and self._reader.polarity(each.clause.low) in ("yes", "no", "unsure", "refused"):
            return ()
        further = [
            found
            for found in self._reader.volunteered(each.clause)
            if found.kind not in kinds | {CONCERN, "onset", "duration"}
            and not kinds & {"tried", *(() if found.stable else ("relief", "family_history"))}
        ]
        return [*each.answers, *further]

    def _remembered(
        self, clause: Clause, talk: Talk, before: Sequence[FactReading], concern: str
    ) -> list[FactReading]:
        """What somebody asks to remember: it lasts, in their words if it is of no kind that lasts."""
        made = self._stated(clause, talk, before, concern)
        if any(change.stable for change in made) or any(change.op.ends for change in made):
            return made
        words = _note(clause)
        kept = replace(words, kind=REMEMBERED, value=words.value[:_MAX_REMEMBERED])
        return [
            *(change for change in made if change.kind != NOTED),
            self._added(kept, talk, [*before, *made], concern),
        ]

    def _stated(
        self, clause: Clause, talk: Talk, before: Sequence[FactReading], concern: str
    ) -> list[FactReading]:
        """What a clause states: values of its kinds, else its words."""
        if ended := self._stopped(clause, talk) or self._denied(clause, talk):
            return ended
        found = self._reader.volunteered(clause) or self._allergic_to_it(clause, talk)
        complaints = [one for one in found if one.kind == CONCERN]
        values = [one for one in found if one.kind != CONCERN]
        for one in complaints:
            known = stems(concern)
            if concern and re.match(r"(?:and |but )?(?:it|it's|its|that|this|they|the pain)\b", clause.low):
                continue
            if known & stems(one.value) and clause.who == (
                talk.concern.subject if talk.concern else clause.who
            ):
                continue
            same_person = clause.who == (talk.concern.subject if talk.concern else clause.who)
            if (
                concern
                and same_person
                and (
                    _is_bare(clause.low)
                    or _ADDS.search(clause.low)
                    or any(change.kind == CONCERN for change in before)
                )
            ):
                values.append(replace(one, kind="associated_symptoms", value=clause.text[:_MAX]))
            else:
                values.insert(0, one)
        place = readers.whole_place(clause.low)
        if not values and place and concern and clause.who and not re.search(r"\bback\b", clause.low):
            return [self._added(Found("location", place, clause.text, clause.who), talk, before, concern)]
        dose = readers.PLAIN["dose"](clause.low)
        taken = [
            fact.value for fact in talk.facts if fact.kind == "medications" and fact.subject == clause.who
        ]
        if not values and dose and len(taken) == 1 and len(clause.low.split()) <= len(dose.split()) + 4:
            return [
                self._added(Found("dose", dose, clause.text, clause.who, taken[-1]), talk, before, concern)
            ]
        often = readers.PLAIN["often"](clause.low)
        if not values and often and concern and len(clause.low.split()) <= len(often.split()) + 2:
            return [self._added(Found("frequency", often, clause.text, clause.who), talk, before, concern)]
        if (
            not values
            and "temperature" in talk.known
            and (value := readers.temperature(clause.low, asked=True))
        ):
            values = [Found("temperature", value, clause.text, clause.who)]
        if not values:
            if readers.whole_span(clause.low) and concern:
                when = readers.when(clause.low)
                value = when or readers.span(clause.low) or clause.text
                kind = "onset" if when else "duration"
                return [self._added(Found(kind, value, clause.text, clause.who), talk, before, concern)]
            values = [_note(clause)]
        changes: list[FactReading] = []
        for one in values:
            changes.append(
                self._added(
                    one,
                    talk,
                    [*before, *changes],
                    changes[0].value if changes and changes[0].kind == CONCERN else concern,
                )
            )
        return changes

    def _allergic_to_it(self, clause: Clause, talk: Talk) -> list[Found]:
        """An allergy to the medicine that was named just before."""
        if not re.search(r"\ballergic to (?:it|that|them|those|this)\b", clause.low) or not clause.holds:
            return []
        for said in reversed(talk.said[-2:]):
            if names := self._reader.named(plain(said.message), "medicines.names"):
                return [Found("allergies", names[0], clause.text, clause.who)]
        return []

    def _stopped(self, clause: Clause, talk: Talk) -> list[FactReading]:
        """The medicines that somebody does not take any more."""
        if clause.asked or clause.may_ask or clause.supposed or not _STOPPED.search(clause.low):
            return []
        names = self._reader.named(clause.low, "medicines.names")
        gone = [
            fact
            for fact in talk.facts
            if fact.kind in ("medications", "other_medicines")
            and fact.subject == clause.who
            and any(name in fact.value.lower() for name in names)
        ]
        if not gone:
            return []
        return [
            *(_retract(fact, clause.text) for fact in gone),
            _reading(Op.ADD, Found(NOTED, clause.text[:_MAX], clause.text, clause.who), ""),
        ]

    def _denied(self, clause: Clause, talk: Talk) -> list[FactReading]:
        """The lasting facts that somebody denies to have: `I don't have asthma`."""
        denied = _DENIED.fullmatch(clause.low)
        if clause.asked or clause.may_ask or clause.supposed or denied is None:
            return []
        gone = [
            fact
            for fact in talk.facts
            if fact.stable and fact.subject == clause.who and _words(fact.value) == _words(denied["what"])
        ]
        if not gone:
            return []
        words = Found(NOTED, clause.text[:_MAX], clause.text, clause.who)
        return [*(_retract(fact, clause.text) for fact in gone), _reading(Op.ADD, words, "")]

    def _added(self, found: Found, talk: Talk, before: Sequence[FactReading], concern: str) -> FactReading:
        """A value as a change: it repeats a fact, takes the place of one, or is new."""
        about = "" if found.stable or found.kind == CONCERN else (found.about or concern)[:120]
        same = [
            fact
            for fact in talk.facts
            if (fact.kind, fact.subject) == (found.kind, found.who)
            and (found.stable or found.kind == CONCERN or fact.about == about)
        ]
        for fact in same:
            if fact.value.lower() == found.value.lower():
                return _reading(Op.ADD, found, about, fact.id)
        if found.kind in (CONCERN, NOTED, REMEMBERED) or found.kind in _MEASURED:
            return _reading(Op.ADD, found, about)
        if found.stable:
            return self._lasting(found, same)
        if found.kind in LISTS or not same:
            return _reading(Op.ADD, found, about)
        return _reading(Op.REPLACE, found, about, same[-1].id)

    def _lasting(self, found: Found, same: Sequence[CurrentFact]) -> FactReading:
        """A lasting value as a change.

        It takes the place of a rival value only if the person says that something changed, or tells more of
        the same, or answers our question again. Otherwise both values hold: they contradict each other.
        """
        rivals = [fact for fact in same if self._is_rival(found, fact)]
        if not rivals:
            return _reading(Op.ADD, found, "")
        target = rivals[-1]
        old, new = _words(target.value), _words(found.value)
        if new < old:
            return _reading(Op.ADD, found, "", target.id)
        again = found.answers and target.conversation_id is None
        if again or old < new or found.kind == "measures" or _CHANGED.search(plain(found.words)):
            return _reading(Op.REPLACE, found, "", target.id)
        return _reading(Op.ADD, found, "")

    def _is_rival(self, found: Found, fact: CurrentFact) -> bool:
        """Whether a value and a known one cannot both hold."""
        if found.kind not in LISTS or NONE in (found.value, fact.value):
            return True
        if found.kind == "measures":
            return bool(_WEIGHT.search(found.value)) == bool(_WEIGHT.search(fact.value))
        if found.kind != "medications":
            return False
        names = self._reader.named(found.value, "medicines.names") or [found.value.split()[0]]
        return bool(
            set(names)
            & set(self._reader.named(fact.value.lower(), "medicines.names") or fact.value.split()[:1])
        )

    # --- corrections, removals, topics --------------------------------------------------------------------

    def _corrected(
        self, clause: Clause, talk: Talk, before: Sequence[FactReading], concern: str
    ) -> list[FactReading]:
        """The fact that a correction replaces, or retracts if it only denies."""
        new, old = contrast(clause.low)
        if stopped := self._stopped(clause, talk):
            return stopped
        target = self._corrections.target(clause, new, old, talk)
        if target is None and before and (changed := self._corrections.amended(before[-1], clause, new)):
            return [changed]
        if target is None:
            return (
                self._stated(replace(clause, denied=False), talk, before, concern)
                if not clause.denied or old
                else [_reading(Op.ADD, _note(clause), concern)]
            )
        value = self._corrections.new_value(clause, new, old, target)
        if value is None:
            return [
                _retract(target, clause.text),
                _reading(Op.ADD, Found(NOTED, clause.text[:_MAX], clause.text, target.subject), concern),
            ]
        found = Found(target.kind, value[:_MAX], clause.text[:_MAX], target.subject, target.about)
        return [_reading(Op.REPLACE, found, target.about, target.id)]

    def _new_topic(
        self, clause: Clause, talk: Talk, before: Sequence[FactReading], concern: str
    ) -> list[FactReading]:
        """The topic that somebody wants to talk about; an earlier one is taken up again."""
        found = [found for found in self._reader.volunteered(clause) if found.kind == CONCERN]
        if not found and (named := named_topic(clause.text)):
            if resumed := self._resumed(replace(clause, low=plain(named)), talk):
                return resumed
            if not relative_in(plain(named)):
                found = [Found(CONCERN, re.sub(r"^(?:my|the|our) ", "", plain(named)), "", PERSON)]
        return [self._added(one, talk, before, concern) for one in found[:1]]

    def _resumed(self, clause: Clause, talk: Talk) -> list[FactReading]:
        words = stems(clause.low)
        for fact in reversed(talk.concerns):
            if words & stems(f"{fact.value} {fact.words}"):
                found = Found(CONCERN, fact.value, fact.words or fact.value, fact.subject)
                return [_reading(Op.ADD, found, "", fact.id)]
        return []


def agrees(message: str, talk: Talk) -> bool:
    """Whether the person says yes to the offer to change the notes, and nothing else.

    A yes to everything is none to less than that.
    """
    if talk.offer is None or not only_agrees(message):
        return False
    return talk.offer.everything or "everything" not in message.lower()


def _words(value: str) -> frozenset[str]:
    """The words of a value, by which one is told from another."""
    return frozenset(re.findall(r"[\w./]+", value.lower())) - {"a", "an", "the", "my"}


def _note(clause: Clause) -> Found:
    """A clause in the person's own words."""
    return Found(NOTED, clause.text[:_MAX], clause.text, PERSON if clause.who == MIXED else clause.who)


def says_something(words: str) -> bool:
    """Whether a request to remember says what to remember. `that please` means the words before it."""
    low = plain(words).strip(" .!")
    if re.fullmatch(r"(?:(?:it|that|this|them|please|pls|too|for me|down|then|now|ok|thanks)\b ?)*", low):
        return False
    return len(low.split()) > 3 or re.search(r"\d|\b(?:i|i'm|am|is|are|has|have|no|not)\b", low) is not None


def _is_bare(low: str) -> bool:
    """Whether a complaint is just named, as in `some nausea`."""
    return len(low.split()) <= 3 and not re.search(r"\b(?:i|i'm|i've|my|he|she)\b", low)


def kept_words(text: str) -> str:
    """What somebody asks to remember, without the request."""
    return _ASKS_TO_KEEP.sub("", text, count=1).strip()


def applied(
    facts: Iterable[CurrentFact], readings: Iterable[FactReading], turn: int, now: datetime
) -> tuple[CurrentFact, ...]:
    """The facts after the changes of one message, before these are stored."""
    after = {fact.id: fact for fact in facts}
    for number, reading in enumerate(readings):
        target = after.get(reading.target or "")
        if reading.op.ends:
            after.pop(reading.target or "", None)
        elif reading.op is Op.ADD and target is not None:
            update = {"times_said": target.times_said + 1, "last_said_at": now, "sure": True}
            after[target.id] = target.model_copy(update=update)
        else:
            values = reading.model_dump(exclude={"op", "target"})
            new = CurrentFact(
                **values,
                id=f"now_{turn}_{number}",
                turn=turn,
                message_id=None,
                said_at=now,
                last_said_at=now,
                replaced=reading.target,
            )
            if target is not None:
                after = {
                    (new.id if key == target.id else key): (new if key == target.id else fact)
                    for key, fact in after.items()
                }
            else:
                after[new.id] = new
    return tuple(after.values())


def forgets(fact: CurrentFact) -> FactReading:
    """The change that forgets a fact."""
    return _retract(fact, "").model_copy(update={"op": Op.FORGET})


def _retract(fact: CurrentFact, words: str) -> FactReading:
    return FactReading(
        op=Op.RETRACT,
        target=fact.id,
        kind=fact.kind,
        subject=fact.subject,
        about=fact.about,
        value=fact.value,
        words=words[:_MAX],
        decided_by=Decider.PERSON,
    )


def _reading(op: Op, found: Found, about: str, target: str | None = None) -> FactReading:
    return FactReading(
        op=op,
        target=target,
        kind=found.kind,
        subject=found.who[:60] or PERSON,
        about=about[:120],
        value=found.value,
        stable=found.stable,
        true_when=found.when[:120],
        words=found.words[:_MAX],
        decided_by=Decider.LOCAL,
    )
