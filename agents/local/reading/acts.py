"""Decides what each clause of a message does, before anything is taken from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from agents.fact_kinds import BY_NAME
from agents.local.dialogue import Talk, stems
from agents.local.reading import readers
from agents.local.reading.answers import AnswerReader, short_reply
from agents.local.reading.clauses import PERSON, Clause
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED, Found, has_words, split_contrast
from agents.local.reading.kinds import STATEMENT, Forms, form_of
from agents.local.search import Search, topic_words
from agents.questions import MENU, questions
from agents.values import ActKind

_PRIOR: Final = 3.0  # how much more common statements are than each other class
_SURE: Final = 0.6
_RATHER_SURE: Final = 0.75
_VERY_SURE: Final = 0.85
_FEW: Final = 6
_FEW_WORDS: Final = 5
_LEAD: Final = (
    r"^(?:(?:ok|okay|so|and|but|well|also|oh|then|now|hi|hello|right|again|sorry|before i go)[, ]+)*"
)
_CORRECTS: Final = re.compile(
    r"\b(?:actually|meant|i mean|correct\w*|wrong|mistake|misspoke|make (?:that|it)"
    r"|change (?:that|it|my)|instead|update|typo"
    r"|oops|second thought|after all|replace|amend|no wait|wait no|hang on|fix"
    r"|more like|scratch|i said|rather than|(?:not|isn't) mine)\b"
)
_GRIEVES: Final = re.compile(
    r"\b(?:died|passed away|passed on|lost (?:my|our|her|him|the baby|a baby) (?!job|keys|phone"
    r"|appetite|voice|temper)|funeral|miscarr\w+|stillb\w+|put (?:\w+ ){1,2}(?:down"
    r"|to sleep)"
    r"|bereave\w+|widow\w*|miss (?:him|her|my (?:mum|mom|dad|wife|husband|son|daughter|nan|gran|dog|cat)))\b"
)
_AGREES: Final = re.compile(r"(?:please do|go ahead|do it|delete it|remove it|yes|ok|sure|please)\b")
_ASKS_US: Final = re.compile(
    _LEAD + r"(?:(?:can|could|would|will|do) (?:you|i|we) |please |pls |just |i'd like (?:a"
    r"|an|you|to (?:speak|talk to|book|cancel))\b"
    r"|i (?:need|want|would like) (?:a|an|you|my|to (?:speak|talk to|see|cancel|book|move|change|order))\b"
    r"|(?:book|cancel|call|send|set|remind|find|show|give|make|write|tell|order|print|email|text|transfer"
    r"|put|turn|stop|start|get|look"
    r"|check|translate|calculate|schedule|arrange|wake|count|track|refer|speak|don't"
    r"|no advice|let's start|where's|what's the number)\b"
    r"|i don't want (?:to talk|tips|advice|questions|any)|i'll send)"
)
_ABOUT_US: Final = re.compile(r"\b(?:you|your|you're|this|it free)\b")
_COMPLAINS: Final = re.compile(
    r"\b(?:you|your|you're|this|that|question\w*|again|useless|annoying|frustrating|ugh)\b"
)
_RECALLS: Final = re.compile(
    _LEAD + r"(?:which|who|who's|whose|when|when's|where|where's|what|what's|whats|why|how \w+"
    r"|do i still (?:take|have|smoke|drink|use)|am i (?:still )?(?:on|taking|allergic))\b"
)
_OWN_FACT: Final = re.compile(
    r"^(?!.*\bwhy\b).*\b(?:am i|do i(?! (?:do|tell|say|know|get|make|stop|treat|deal|start|give|ask|go"
    r"|see|call|ring|contact|talk|speak|take it))|did (?:i|we)|have i|was i|was my"
    r"|(?:is|are) my (?:name|age|\w+ (?:called|named))|(?:does|did) (?:he|she|my \w+)|was (?:it|the last"
    r"|his|her)"
    r"|(?:is|was|what's|whats) (?:he|she|my \w+) (?:called|allergic|on|taking|born)|what's my|(?:is"
    r"|was) (?:his|her) name)\b"
    r"|^how old (?:is|are|was)\b|\bwhat happened\b|\bwhat did (?:the|my|dr)\b"
)
_SHOULD: Final = re.compile(
    r"\b(?:should|best|better|causes?|causing|means?|normal|supposed|help(?:s|ful)?|wrong with|do about"
    r"|safe|you think"
    r"|recommend|dangerous|serious|good for|side effects?|difference|symptoms of|can i do|could i|would"
    r"|before it|until|does it|will it|to work)\b"
)
_GOES_ON: Final = re.compile(
    r"(?:and|what about|how about|and what about|and how about) (?!(?:i|i'm|i've|my \w+ (?:is|has|hurts)"
    r"|it|it's|then|now|also|bye|thanks?)\b)"
    r"\w+(?: \w+){0,3}|(?:and )?(?:when|who|where|since when|which(?: one)?|how (?:much|many|long|old"
    r"|often)|what (?:dose|time|day))"
    r"(?: (?:was|is|did|were) (?:that|it|this|he|she|they)(?: start| begin)?)?(?: again)?"
)
_RESUMES: Final = re.compile(
    r"\b(?:back|again|return\w*|earlier|continue|carry on|pick up|where were we|we were|from before"
    r"|as for|about)\b"
)
_MAY_ASK_FOR_OWN: Final = frozenset(
    (ActKind.HEALTH_QUESTION, ActKind.SMALL_TALK, ActKind.ABOUT_US, ActKind.OTHER_REQUEST, ActKind.UNCLEAR)
)
_ADVICE: Final = re.compile(
    r"\b(?:should|can|could|would|will|might|best|causes?|causing|means?|helps?"
    r"|do about|wrong with|need|have to|better|do i start|you think|normal"
    r"|supposed|if|to do)\b"
)
_LEAVES: Final = re.compile(
    r"\b(?:subject|topic|else|instead|talk|discuss|leave|enough|move on|moving on"
    r"|different|drop|skip|another|about|next)\b"
)
_SELF: Final = re.compile(r"\b(?:i|i'm|i've|my|we|we're|our|he|she|\d+)\b")
_TAKES_BACK: Final = re.compile(
    r"(?:oh |no,? )*(?:sorry|no|no wait|wait no|wait|oops|hang on|hold on|actually)\W*"
)
_TELLS_AGAIN: Final = re.compile(r"\b(?:said|told|say|tell|remember|mention\w*)\b")


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
    reader: AnswerReader,
    forms: Forms,
    search: Search,
) -> tuple[Done, ...]:
    """The act of each clause. Without `shares`, only forms and the open question decide."""
    done = [
        _act(clause, shares[number] if shares else {}, talk, reader, forms, search)
        for number, clause in enumerate(clauses)
    ]
    return tuple(_in_context(done, talk, reader))


def _act(
    clause: Clause,
    shares: Mapping[str, float],
    talk: Talk,
    reader: AnswerReader,
    forms: Forms,
    search: Search,
) -> Done:
    check = partial(_checked, clause=clause, talk=talk, reader=reader, search=search)
    polarity = reader.polarity(clause.low)
    if talk.removal and (polarity.startswith(("yes", "no")) or _AGREES.match(clause.low)):
        return Done(clause, ActKind.ANSWER)
    form = form_of(clause, forms)
    if form is not None and not (polarity and _answers_rather(form, polarity, talk)):
        return Done(clause, check(form, formed=True))
    if talk.was_recalled and _GOES_ON.fullmatch(clause.low):
        return Done(clause, ActKind.MEMORY_QUESTION, 0.9)
    if polarity in ("yes", "no") and talk.question is None:
        return Done(clause, ActKind.SMALL_TALK)
    answers = _answers(clause, talk, reader)
    if answers and (
        polarity or any(each.value != clause.text or BY_NAME[each.kind].reads != "words" for each in answers)
    ):
        return Done(clause, ActKind.ANSWER, 0.95, answers)
    _, old = split_contrast(clause.low)
    if old and not clause.asked and any(has_words(f"{fact.value} {fact.words}", old) for fact in talk.facts):
        return Done(clause, ActKind.CORRECT, 0.9)
    if not answers and (earlier := _earlier_answer(clause, talk, reader)):
        return Done(clause, ActKind.ANSWER, 0.8, earlier)
    name, share = _best(shares, clause)
    is_plain = (
        name in (STATEMENT, "unclear", "small_talk") or share < _RATHER_SURE or len(clause.low.split()) <= 2
    )
    if not answers and talk.question and is_plain and _is_short_reply(clause, talk, reader):
        return Done(clause, ActKind.ANSWER, 0.7, (short_reply(clause, talk.question, talk.whom),))
    if name != STATEMENT and share >= _SURE:
        kind = check(ActKind(name), share=share)
        if kind is not ActKind.FACT:
            return Done(clause, kind, share)
    if clause.asked:
        kind = ActKind.SMALL_TALK if _asks_of_us(clause.low, reader) else ActKind.HEALTH_QUESTION
        return Done(clause, check(kind), max(share, 0.5))
    if answers:
        return Done(clause, ActKind.ANSWER, 0.8, answers)
    return Done(clause, ActKind.FEELING if _GRIEVES.search(clause.low) else ActKind.FACT, max(share, 0.5))


def _answers_rather(form: ActKind, polarity: str, talk: Talk) -> bool:
    """Whether words that are also a yes, a no or a refusal answer the open question."""
    if talk.question is None:
        return False
    if form is ActKind.GOODBYE:  # "that's all" in reply to "anything else?"
        return polarity == "no" and "associated_symptoms" in talk.question.kinds
    return form is ActKind.SMALL_TALK or (form is ActKind.TOPIC_LEFT and polarity == "refused")


def _answers(clause: Clause, talk: Talk, reader: AnswerReader) -> tuple[Found, ...]:
    """The values with which a clause answers a question of the last answer."""
    if clause.asked:
        return ()
    for question in reversed(talk.all_questions):
        if found := tuple(reader.answers(clause, question, talk.whom)):
            return found
    return ()


def _earlier_answer(clause: Clause, talk: Talk, reader: AnswerReader) -> tuple[Found, ...]:
    """The answer to an earlier question that is still open, if a bare value can be nothing else."""
    if clause.asked or len(clause.low.split()) > _FEW:
        return ()
    for turn in reversed(talk.said[-4:-1]):
        for question in questions(turn.answer):
            bare = ("severity", "temperature", "age")
            typed = tuple(kind for kind in question.kinds if kind in bare and kind not in talk.known)
            found = reader.answers(clause, replace(question, kinds=typed), talk.whom) if typed else []
            if values := tuple(each for each in found if each.value != clause.text and each.kind in typed):
                return values
    return ()


def _is_short_reply(clause: Clause, talk: Talk, reader: AnswerReader) -> bool:
    """Whether a few words can only be a reply to the open question: they state no value of another type."""
    low, question = clause.low, talk.question
    if question is None or question.asked == MENU or clause.asked or len(low.split()) > _FEW_WORDS:
        return False
    if any(BY_NAME[kind].reads != "words" for kind in question.kinds):
        return False  # a value of another type is asked for
    if readers.whole_span(low) or readers.number_in(low) is not None or clause.who not in (talk.whom, PERSON):
        return False
    if readers.whole_place(low) and "location" not in question.kinds:
        return False
    if re.search(r"\b(?:is|was|were|has|had|i|i'm|my|it's)\b", low):
        return False  # a statement of its own
    if _GRIEVES.search(low) or reader.named(low, "medicines.names"):
        return False
    kinds = {found.kind for found in reader.volunteered(clause)}
    names_asked = bool(stems(low) & stems(question.core))
    return kinds <= {CONCERN} and (not kinds or names_asked or question.form == "polar")


def _best(shares: Mapping[str, float], clause: Clause) -> tuple[str, float]:
    """The most likely class. Statements are the most common, and a question is no statement."""
    if not shares:
        return (STATEMENT, _SURE)
    less = (
        {STATEMENT: 0.3, "feeling": 0.3, "correct": 0.3, "thanks": 0.3, "remember": 0.3, "topic_left": 0.3}
        if clause.asked
        else {STATEMENT: _PRIOR, "health_question": 0.4, "memory_question": 0.4, "about_us": 0.4}
    )
    weighed = {name: share * less.get(name, 1.0) for name, share in shares.items()}
    name = max(weighed, key=lambda each: weighed[each])
    return name, weighed[name] / sum(weighed.values())


def _checked(
    kind: ActKind,
    *,
    clause: Clause,
    talk: Talk,
    reader: AnswerReader,
    search: Search,
    formed: bool = False,
    share: float = 1.0,
) -> ActKind:
    """The act, or a plainer one if what it needs is missing. `formed`: an unmistakable form says so."""
    low = clause.low
    if kind is ActKind.TOPIC_RESUMED and not formed and (clause.asked or not _RESUMES.search(low)):
        return ActKind.HEALTH_QUESTION if clause.asked else ActKind.FACT
    if kind is ActKind.FORGET and re.search(
        r"\bbefore i forget\b|\bforgot\b|\bi (?:always |often )?forget\b", low
    ):
        return ActKind.SMALL_TALK if re.search(r"\bbefore i forget$", low) else ActKind.FACT
    if kind is ActKind.GOODBYE and not formed and share < _VERY_SURE:
        return ActKind.FACT
    if kind is ActKind.FEELING and not formed and share < _RATHER_SURE and not _FEELS.search(low):
        return ActKind.FACT
    if kind is ActKind.UNCLEAR and not formed and not clause.asked and share < _VERY_SURE:
        return ActKind.FACT
    if kind is ActKind.TOPIC_RESUMED and not _was_named(clause, talk):
        return ActKind.TOPIC_LEFT if talk.said else ActKind.FACT
    if kind is ActKind.CORRECT and not (talk.facts and (formed or _corrects(clause, talk, reader))):
        return ActKind.FACT
    if (
        kind is ActKind.MEMORY_QUESTION
        and _ADVICE.search(low)
        and not formed
        and not _TELLS_AGAIN.search(low)
    ):
        return ActKind.HEALTH_QUESTION
    if kind in _MAY_ASK_FOR_OWN and not formed and _asks_for_own(clause, talk, search):
        return ActKind.MEMORY_QUESTION
    if formed:
        return kind
    is_social = kind in (ActKind.GOODBYE, ActKind.THANKS, ActKind.GREETING, ActKind.SMALL_TALK)
    if is_social and not clause.asked and _is_fact_rather(clause, reader, share):
        return ActKind.FACT
    needed = {
        ActKind.TOPIC_LEFT: _LEAVES,
        ActKind.OTHER_REQUEST: _ASKS_US,
        ActKind.ABOUT_US: _ABOUT_US,
        ActKind.COMPLAINT: _COMPLAINS,
    }.get(kind)
    if needed is not None and not needed.search(low):
        return ActKind.HEALTH_QUESTION if clause.asked else ActKind.FACT
    if kind in (ActKind.REMEMBER, ActKind.FORGET) and re.match(r"(?:it|that|this|i|he|she)\b", low):
        return ActKind.FACT
    return kind


def _asks_of_us(low: str, reader: AnswerReader) -> bool:
    """Whether a question is about the program itself, as in `do you have hobbies`."""
    about_us = re.search(r"\b(?:do|are|can|have|did|will|would) (?:you|u)\b", low) is not None
    return about_us and not reader.is_of_health(low) and not re.search(r"\b(?:i|my|me|it|think)\b", low)


_FEELS: Final = re.compile(
    r"\b(?:feel\w*|sad|cry\w*|cried|scared|afraid|lonely|alone|worried|angry|ashamed|guilty|hate|miss"
    r"|hard|cope|upset|fed up|awful"
    r"|stress\w*|overwhelm\w*|glad|happy|relieved|proud|heart\w*|numb|hopeless|exhausted|terrified"
    r"|nervous|anxious|love\w*|died|lost)\b"
)


def _is_fact_rather(clause: Clause, reader: AnswerReader, share: float) -> bool:
    """Whether words that sound like small talk tell something of the person's health or life."""
    low = clause.low
    if len(low.split()) > 12 or reader.is_of_health(low) or reader.volunteered(clause):
        return True
    if len(low.split()) <= 2 or readers.whole_span(low) or readers.number_in(low) is not None:
        return True
    return share < _VERY_SURE and _SELF.search(low) is not None


def _asks_for_own(clause: Clause, talk: Talk, search: Search) -> bool:
    """Whether a question asks for something that the person has told: its form says so, or a note has it."""
    low = clause.low
    if not clause.asked or not talk.facts or not _RECALLS.match(low):
        return False
    if not _ADVICE.search(low) and _OWN_FACT.search(low):
        return True
    return not _SHOULD.search(low) and search.is_about_told(low, talk)


def _was_named(clause: Clause, talk: Talk) -> bool:
    words = stems(clause.low) - stems("back go return topic first thing question")
    pointed = re.search(r"\b(?:first|other|earlier|before|previous|your question|what i said)\b", clause.low)
    return bool(talk.said) and (pointed is not None or any(words & stems(turn.message) for turn in talk.said))


def _in_context(done: Sequence[Done], talk: Talk, reader: AnswerReader) -> list[Done]:
    """Acts that the clause before decides: what follows "remember" is kept, what follows "sorry" corrects."""
    result: list[Done] = []
    if any(each.kind is ActKind.MEMORY_QUESTION for each in done):
        done = _as_one_question(done)
    for number, each in enumerate(done):
        before = result[-1] if result else None
        follows_request = (
            before is not None and before.kind is ActKind.REMEMBER and len(before.clause.low.split()) <= 4
        )
        takes_back = before is not None and _TAKES_BACK.fullmatch(before.clause.low) is not None
        if before is not None and before.clause.low == "no":
            takes_back = (
                re.match(r"(?:i said|i meant|it's|its|it was|the|not|that's)\b", each.clause.low) is not None
            )
        short = len(each.clause.low.split()) <= _FEW
        if (
            takes_back
            and short
            and each.kind in (ActKind.FACT, ActKind.ANSWER)
            and _told_last(talk)
            and _is_value(each.clause, reader)
        ):
            each = Done(each.clause, ActKind.CORRECT, 0.8)
        elif follows_request and each.kind is ActKind.FACT:
            each = Done(each.clause, ActKind.REMEMBER, each.confidence)
        elif each.kind is ActKind.ANSWER and not each.answers and number + 1 < len(done) and not talk.removal:
            each = Done(each.clause, ActKind.SMALL_TALK, 0.5)
        result.append(each)
    return result


def _as_one_question(done: Sequence[Done]) -> list[Done]:
    """The acts with "is it dry or wet, what did I say?" as one question about memory."""
    bare = [
        each for each in done if each.kind is ActKind.MEMORY_QUESTION and not topic_words(each.clause.low)
    ]
    asked = [each for each in done if each.kind is ActKind.HEALTH_QUESTION]
    if not bare or not asked:
        return list(done)
    return [
        replace(each, kind=ActKind.MEMORY_QUESTION) if each in asked else each
        for each in done
        if each not in bare
    ]


def _corrects(clause: Clause, talk: Talk, reader: AnswerReader) -> bool:
    """Whether a clause says that something told is otherwise: it has a value, or names what was told."""
    if not _CORRECTS.search(clause.low):
        return False
    words = stems(clause.low)
    return _is_value(clause, reader) or any(
        words & stems(fact.value) for fact in talk.facts if fact.kind not in (NOTED, MENTIONED)
    )


def _is_value(clause: Clause, reader: AnswerReader) -> bool:
    """Whether a clause has a value that can take another's place."""
    low = re.sub(
        r"^(?:(?:sorry|no|wait|actually|i meant|it's|its|more like|make that)[, ]+)+", "", clause.low
    )
    return bool(
        reader.kinds_fitting(replace(clause, low=low))
        or reader.named(low, "medicines.names")
        or reader.named(low, "conditions.names")
        or re.search(r"\b(?:left|right)\b|\d", low)
        or re.search(r"\b(?:i said|i meant|not)\b", clause.low)
    )


def _told_last(talk: Talk) -> bool:
    return any(fact.turn == talk.number - 1 for fact in talk.facts)
