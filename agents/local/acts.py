"""Decides what each clause of a message does, before anything is taken from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agents.local import readers
from agents.local.clauses import PERSON, Clause
from agents.local.dialogue import Talk, stems
from agents.local.facts import CONCERN, FactReader, Found, has_words, short_reply, split_contrast
from agents.local.kinds import STATEMENT, Forms, form_of
from agents.questions import MENU
from agents.values import ActKind

_PRIOR: Final = 3.0  # how much more common statements are than each other class
_SURE: Final = 0.6
_FEW: Final = 6
_MARKS_CORRECTION: Final = re.compile(
    r"\b(?:actually|not|meant|mean|correct\w*|wrong|mistake|misspoke|make that|make it|change (?:that|it|my)|instead|update|sorry|typo|oops|rather|second thought"
    r"|after all|replace|amend|wait|hang on|fix|more like|scratch|isn't|wasn't|no longer|any ?more|i said)\b"
)
_BOTHERS: Final = re.compile(
    r"\b(?:died|passed away|passed on|lost (?:my|our|her|him)|funeral|miscarr\w+|stillb\w+|put to sleep|put (?:him|her|the dog|the cat) down|bereave\w+|widow\w*|miss (?:him|her|my (?:mum|dad|wife|husband|son|daughter|nan|gran|dog|cat)))\b"
)


@dataclass(frozen=True, slots=True)
class Done:
    """What one clause does, and the values with which it answers the open question."""

    clause: Clause
    kind: ActKind
    confidence: float = 1.0
    answers: tuple[Found, ...] = ()


def decide(
    clauses: Sequence[Clause],
    shares: Sequence[Mapping[str, float]] | None,
    talk: Talk,
    reader: FactReader,
    forms: Forms,
) -> tuple[Done, ...]:
    """The act of each clause. Without `shares`, only forms and the open question decide."""
    done: list[Done] = []
    for number, clause in enumerate(clauses):
        done.append(_act(clause, shares[number] if shares else {}, talk, reader, forms))
    return tuple(_in_context(done, talk))


def _act(clause: Clause, shares: Mapping[str, float], talk: Talk, reader: FactReader, forms: Forms) -> Done:
    form = form_of(clause, forms)
    polarity = reader.polarity(clause.low)
    if talk.removal and polarity in ("yes", "no"):
        return Done(clause, ActKind.ANSWER)
    if (
        form is ActKind.GOODBYE
        and polarity == "no"
        and talk.question
        and "associated_symptoms" in talk.question.kinds
    ):
        form = None  # "that's all" in reply to "anything else?"
    if form in (ActKind.TOPIC_LEFT, ActKind.SMALL_TALK) and polarity == "refused" and talk.question:
        form = None
    if form is not None and not (form is ActKind.SMALL_TALK and polarity and talk.question):
        return Done(clause, _checked(form, clause, talk))
    answers: tuple[Found, ...] = ()
    if talk.question and not clause.asked:
        for question in talk.all_questions[::-1]:
            if answers := tuple(reader.answers(clause, question, talk.whom)):
                break
        own_words = answers and all(each.value == clause.text for each in answers)
        if answers and (polarity or not own_words):
            return Done(clause, ActKind.ANSWER, 0.95, answers)
    _, old = split_contrast(clause.low)
    if old and any(has_words(f"{fact.value} {fact.words}", old) for fact in talk.facts) and not clause.asked:
        return Done(clause, ActKind.CORRECT, 0.9)
    if not answers and talk.question and _is_short_reply(clause, talk, reader):
        return Done(clause, ActKind.ANSWER, 0.7, (short_reply(clause, talk.question, talk.whom),))
    name, share = _best(shares, clause)
    if name != STATEMENT:
        kind = _checked(ActKind(name), clause, talk)
        if share >= _SURE or kind in (ActKind.HEALTH_QUESTION, ActKind.FACT):
            if kind is not ActKind.FACT:
                return Done(clause, kind, share)
        elif clause.asked:
            return Done(clause, ActKind.HEALTH_QUESTION, share)
    if clause.asked:
        return Done(clause, ActKind.HEALTH_QUESTION, max(share, 0.5))
    if answers:
        return Done(clause, ActKind.ANSWER, 0.8, answers)
    if _BOTHERS.search(clause.low):
        return Done(clause, ActKind.FEELING, 0.9)
    return Done(clause, ActKind.FACT, max(share, 0.5))


def _is_short_reply(clause: Clause, talk: Talk, reader: FactReader) -> bool:
    """Whether a few words can only be a reply to the open question: they state no value of another type."""
    low = clause.low
    if (
        clause.asked
        or len(low.split()) > _FEW
        or readers.whole_span(low)
        or readers.number_in(low) is not None
    ):
        return False
    if (
        clause.who not in (talk.whom, PERSON)
        or _BOTHERS.search(low)
        or talk.question is None
        or talk.question.asked == MENU
    ):
        return False
    kinds = {found.kind for found in reader.volunteered(clause)}
    names_asked = bool(stems(low) & stems(talk.question.core))
    return kinds <= {CONCERN} and (not kinds or names_asked or talk.question.form == "polar")


def _best(shares: Mapping[str, float], clause: Clause) -> tuple[str, float]:
    """The most likely class. Statements are the most common, and a question is no statement."""
    if not shares:
        return (STATEMENT, 0.6)
    weighed = {
        name: share * (_PRIOR if name == STATEMENT and not clause.asked else 1.0)
        for name, share in shares.items()
    }
    if clause.asked:
        for name in (STATEMENT, "feeling", "correct", "thanks", "remember", "topic_left"):
            weighed[name] = weighed.get(name, 0.0) * 0.3
    else:
        for name in ("health_question", "memory_question", "about_us"):
            weighed[name] = weighed.get(name, 0.0) * 0.4
    total = sum(weighed.values())
    name = max(weighed, key=lambda each: weighed[each])
    return name, weighed[name] / total


def _checked(kind: ActKind, clause: Clause, talk: Talk) -> ActKind:
    """The act, or a plainer one if what it needs is missing."""
    match kind:
        case ActKind.CORRECT if not talk.facts or not _MARKS_CORRECTION.search(clause.low):
            return ActKind.FACT
        case ActKind.TOPIC_RESUMED if not _was_named(clause, talk):
            return ActKind.TOPIC_LEFT if talk.said else ActKind.FACT
        case ActKind.GOODBYE | ActKind.THANKS | ActKind.GREETING | ActKind.SMALL_TALK if (
            len(clause.low.split()) > 12
        ):
            return ActKind.FACT
        case ActKind.MEMORY_QUESTION if (
            clause.asked
            and re.search(r"\b(?:should|could|can) (?:i|he|she)\b", clause.low)
            and not re.search(r"\b(?:said|told|say|tell|remember|mention\w*)\b", clause.low)
        ):
            return ActKind.HEALTH_QUESTION
        case ActKind.FORGET if re.search(r"\bi (?:keep|always|often|sometimes)? ?forg(?:e|o)t", clause.low):
            return ActKind.FACT
        case _:
            return kind


def _was_named(clause: Clause, talk: Talk) -> bool:
    words = stems(clause.low) - stems("back go return topic first thing question")
    first = (
        re.search(r"\b(?:first|other|earlier|before|previous|your question|what i said)\b", clause.low)
        is not None
    )
    return bool(talk.said) and (first or any(words & stems(turn.message) for turn in talk.said))


def _in_context(done: list[Done], talk: Talk) -> list[Done]:
    """Acts that the other clauses decide: what follows a request belongs to it, a bare "no" may begin one."""
    if len(done) < 2:
        return done
    result: list[Done] = []
    for number, each in enumerate(done):
        before = result[-1] if result else None
        if (
            before
            and each.kind is ActKind.FACT
            and before.kind is ActKind.REMEMBER
            and len(before.clause.low.split()) <= 4
        ):
            each = Done(each.clause, ActKind.REMEMBER, each.confidence)
        if each.kind is ActKind.ANSWER and not each.answers and number + 1 < len(done):
            each = Done(each.clause, ActKind.SMALL_TALK, 0.5) if not talk.removal else each
        result.append(each)
    return result
