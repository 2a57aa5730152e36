"""Rewrites a message so that it can be understood alone: in the person's words, with the context it needs.

Context that a message does not need is left out. What an answer is about comes from the question before it,
without the options that were not chosen.
"""

import re
from collections.abc import Sequence
from typing import Final

from agents.fact_kinds import name_of
from agents.local.dialogue import Talk, named_topic, stems
from agents.local.reading.acts import UNSURE, Done
from agents.local.reading.answers import chosen
from agents.local.reading.clauses import PERSON
from agents.local.reading.facts import CONCERN
from agents.questions import MENU, Question, with_only, without_options
from agents.utterance import asks_about_it, refers, says_little
from agents.values import (
    KIND,
    NEW_CONCERN,
    NONE,
    NOT_SAID,
    NOT_SURE,
    TOPIC_WANTED,
    WANTS,
    ActKind,
    Enrichment,
    Fact,
    FactReading,
)
from memory_blocks.facts.changes import CurrentFact
from memory_blocks.models import Sentiment

_FIRST: Final = "No previous context - first message"
_HAVING: Final = re.compile(
    r"^(?:hi|hello|hey)?[, ]*(?:i am|i'm) having (?P<what>.+)$|^(?:i have|i've got"
    r"|i have got) (?P<of>(?:an?|the|some|my) .+)$",
    re.IGNORECASE,
)
_CONTEXT_WORDS: Final = 16
_POLAR: Final = (NONE, NOT_SURE, NOT_SAID)
_GOING_ON: Final = frozenset(
    (
        ActKind.FACT,
        ActKind.CORRECT,
        ActKind.HEALTH_QUESTION,
        ActKind.FEELING,
        ActKind.REMEMBER,
        ActKind.UNCLEAR,
    )
)
_TOPICS: Final = (ActKind.TOPIC_LEFT, ActKind.TOPIC_RESUMED)
_NEGATIVE: Final = re.compile(
    r"\b(?:afraid|alone|angry|anxious|awful|bad|cry\w*|depressed|died|hate|hopeless|hurts?|lonely|pain\w*"
    r"|sad|scared|sick|terrible|tired|upset|useless|worried|worse)\b"
)
_POSITIVE: Final = re.compile(
    r"\b(?:better|glad|good|grateful|great|happy|helpful|helps|improv\w+|love|nice|relieved|thank\w*"
    r"|thanks|wonderful)\b"
)


def enrich(
    message: str,
    done: Sequence[Done],
    talk: Talk,
    changes: Sequence[FactReading],
    facts: Sequence[CurrentFact],
    *,
    topic: str | None = None,
    phase: str = "opening",
) -> Enrichment:
    """The enriched message. `facts` hold after it; `topic` and `phase` are those before it."""
    kinds = {each.kind for each in done}
    answers = tuple(dict.fromkeys(found.kind for each in done for found in each.answers))
    first = not talk.said and not talk.opening
    new_concern = next(
        (change for change in changes if change.kind == CONCERN and change.target is None), None
    )
    text, uses = _text(message, done, talk, new_concern)
    trigger = "new_session" if first else "new_message"
    if first:
        pass
    elif kinds & set(_TOPICS) and text.startswith(WANTS):
        trigger = TOPIC_WANTED
    elif ActKind.CORRECT in kinds:
        trigger = "correction"
    elif answers:
        trigger = "follow_up" if answers[0] == "noted" else f"{answers[0]}_inquiry"
    elif new_concern:
        trigger = NEW_CONCERN
    elif kinds & {ActKind.HEALTH_QUESTION, ActKind.MEMORY_QUESTION, ActKind.ABOUT_US}:
        trigger = "question"
    about = new_concern.value if new_concern else talk.about
    asked = dict.fromkeys(kind for question in talk.all_questions for kind in question.kinds)
    return Enrichment(
        previous_context=_before(talk),
        enriched_message=text or message,
        relevant_history=_turns(talk, uses, bool(answers)),
        topic=("initial_health_complaint" if about else "initial_query")
        if first
        else _topic(about, answers, new_concern is not None, topic),
        trigger=trigger,
        phase=_phase(phase, kinds, answers, new_concern is not None),
        facts=tuple(_facts(facts, talk)),
        answers=answers,
        asked_before=tuple(kind for kind in asked if kind not in answers),
        passed_over=() if answers else tuple(asked),
        quality=1.0 if first or uses or kinds - {ActKind.UNCLEAR} else 0.6,
        corrected=ActKind.CORRECT in kinds,
        sentiment=_sentiment(message),
    )


def _text(
    message: str, done: Sequence[Done], talk: Talk, new_concern: FactReading | None
) -> tuple[str, bool]:
    """The enriched text, and whether it uses what was said before."""
    whole = " ".join(message.split())
    if not talk.said and not talk.opening:
        found = _HAVING.match(whole.rstrip(" .!"))
        what = (found["what"] or found["of"]) if found else ""
        if what:
            return f"User reports having {what} - initial health query", False
        return f"User says: {whole}", False
    for each in done:
        if each.kind in _TOPICS and (named := named_topic(each.clause.text)):
            rest = [one.clause.text for one in done if one is not each and one.kind in _GOING_ON]
            return f"{WANTS}{'; '.join([named, *rest])}", False
    answered = [each for each in done if each.answers]
    if answered and talk.question:
        return _answered(done, answered, talk, whole), True
    short = (
        len(done) == 1
        and len(whole.split()) <= 6
        and (done[0].kind is ActKind.FACT or done[0].confidence == UNSURE)
        and new_concern is None
    )
    context = context_of(talk)
    if short and talk.question and talk.question.asked != MENU:
        return f"User{f', about {context},' if context else ''} answers {_asked(talk.question, whole)}", True
    needs = (
        context
        and new_concern is None
        and (says_little(whole) or asks_about_it(whole) or refers(whole) or _same_topic(whole, talk))
    )
    if any(each.kind in (ActKind.GOODBYE, ActKind.THANKS) for each in done) and len(done) <= 2:
        return f"User says: {whole}", False
    verb = "asks" if done and all(each.clause.asked for each in done) else "says"
    if needs:
        return f"User, about {context}, {verb}: {whole}", True
    return f"User {verb}: {whole}", False


def _same_topic(whole: str, talk: Talk) -> bool:
    return talk.concern is not None and bool(
        stems(whole) & stems(f"{talk.concern.value} {talk.concern.words}")
    )


def _answered(done: Sequence[Done], answered: Sequence[Done], talk: Talk, whole: str) -> str:
    """The answer with its question, and the whole message if it says more."""
    context = context_of(talk)
    found = answered[0].answers[0]
    question = next((one for one in talk.all_questions if found.kind in one.kinds), talk.question)
    if found.kind == "severity" and "/" in found.value:
        number, _, top = found.value.partition("/")
        subject = talk.concern.value if talk.concern and talk.concern.subject == PERSON else context
        rated = f"User rates {subject or 'the'} severity as {number} out of {top} ({_degree(number)})"
        return rated if len(done) == 1 and len(whole.split()) <= 4 else f"{rated}; says: {whole}"
    about = f", about {context}," if context else ""
    no = (
        " no"
        if found.value == NONE or re.match(r"\W*(?:no|nope|nah|none|never|neither|not)\b", whole.lower())
        else ""
    )
    value = (
        ""
        if found.value in whole or found.value in _POLAR or whole.lower() in found.value.lower()
        else f" ({found.value})"
    )
    return f"User{about} answers{no} {_asked(question, whole)}{value}"


def _asked(question: Question | None, words: str) -> str:
    """What was asked and answered, without the options that were not chosen."""
    if question is None or question.asked == MENU:
        return f"with: {words}"
    if question.options:
        if named := chosen(question, words.lower()):
            if len(named) == 1 and (only := with_only(question, named[0])):
                return f'to "{only}?": {words}'
            return f"with: {words} ({', '.join(named)})"
        bare = without_options(question)
        return f'to "{bare}": {words}' if bare else f"with: {words}"
    return f'to "{question.core}?": {words}'


def context_of(talk: Talk) -> str:
    """What the conversation is about, in a few words; empty if nothing was said yet."""
    concern = talk.concern
    if concern is not None:
        return concern.value if concern.subject == PERSON else f"{concern.subject}'s {concern.value}"
    for turn in reversed(talk.said):
        words = turn.message.split()
        if 2 <= len(words) <= _CONTEXT_WORDS:
            return f'"{" ".join(words)}"'
        if len(words) > _CONTEXT_WORDS:
            return f'"{" ".join(words[:_CONTEXT_WORDS])} …"'
    return ""


def _degree(number: str) -> str:
    highest = float(number.split("-")[-1])
    return "none" if highest == 0 else "mild" if highest < 4 else "moderate" if highest < 7 else "severe"


def _before(talk: Talk) -> str:
    if not talk.said:
        return _FIRST if not talk.opening else "Nothing was said before the assistant's opening"
    context = context_of(talk)
    reported = f"User reported {context}" if context else "The conversation has begun"
    kinds = [name_of(kind) for question in talk.all_questions for kind in question.kinds]
    if kinds:
        return f"{reported}, agent asked for {' and '.join(dict.fromkeys(kinds))}"
    return f"{reported}, agent asked: {talk.question.asked}" if talk.question else reported


def _turns(talk: Talk, uses: bool, answers: bool) -> tuple[str, ...]:
    turns = []
    if answers and talk.said:
        turns.append(talk.said[-1].turn)
    if uses and talk.concern and talk.concern.turn:
        turns.append(talk.concern.turn)
    if uses and not turns and talk.said:
        turns.append(talk.said[-1].turn)
    return tuple(f"turn_{number}" for number in sorted(set(turns)))


def _topic(about: str, answers: Sequence[str], is_new: bool, running: str | None) -> str:
    if not about:
        return running or "conversation"
    if not is_new and not answers and running:
        return running
    topic = f"{about} {answers[0]} assessment" if answers and not is_new else f"{about} evaluation"
    return "_".join(topic.split())


def _phase(running: str, kinds: set[ActKind], answers: Sequence[str], is_new: bool) -> str:
    if ActKind.GOODBYE in kinds or (
        kinds and kinds <= {ActKind.THANKS, ActKind.GOODBYE, ActKind.SMALL_TALK} and ActKind.THANKS in kinds
    ):
        return "closing"
    if {"medications", "conditions", "allergies"} & set(answers):
        return "history_taking"
    return "symptom_evaluation" if answers or is_new or running == "closing" else running


def _facts(facts: Sequence[CurrentFact], talk: Talk) -> list[Fact]:
    """The facts for the blocks. Those of somebody else carry the name."""
    result = []
    for fact in sorted(facts, key=lambda each: (each.kind != CONCERN, each.last_said_at)):
        if not KIND.fullmatch(fact.kind):
            continue
        value = (
            fact.value if fact.subject == PERSON or fact.kind == CONCERN else f"{fact.subject}: {fact.value}"
        )
        result.append(Fact(kind=fact.kind, value=value[:200], turn=max(fact.turn or 1, 1)))
    return result


def _sentiment(message: str) -> Sentiment | None:
    low = message.lower()
    negative, positive = _NEGATIVE.search(low) is not None, _POSITIVE.search(low) is not None
    return (
        Sentiment.NEGATIVE
        if negative and not positive
        else Sentiment.POSITIVE
        if positive and not negative
        else Sentiment.NEUTRAL
    )
