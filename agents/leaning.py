"""Whether a message leans on what was said before, or stands on its own."""

import re
from collections.abc import Iterable
from typing import Final

from agents.lexicon import word_set
from agents.reading import asks_back

_BARELY: Final = 2
_FEW: Final = 6
_SHORT: Final = 12
_WISHES: Final = re.compile(
    r"(?:(?:and|also|actually|anyway|by the way|oh|ok(?:ay)?|please|now|could you|can you)\W+)*"
    r"(?:i(?:'d| would| also| just| really)* (?:want|need|like)\b|(?:please|help|let's)\b"
    r"|(?:tell|give|send|show|get|book|cancel|find|make|write|play|order|explain|translate)\b"
    r" (?:me|us|a|an|my|the|some)\b)",
    re.IGNORECASE,
)
_REFERS: Final = re.compile(
    r"\b(?:it|its|this|that|these|those|them|they|their|he|him|his|she|her|one|ones|same|other"
    r"|then|still|keep|more|again|instead|otherwise|too|now)\b",
    re.IGNORECASE,
)
_OF_IT: Final = re.compile(
    r"\W*(?:(?:and|but|so|well|oh)\W+)*(?:it|they|these|those)(?:'s|'ve|'re)?\b", re.IGNORECASE
)
_SEEMS_TO_REFER: Final = re.compile(
    r"\bis it (?:\w+ )?(?:to|that|if|going)\b|\btime is it\b"
    r"|\bth(?:is|at) (?:practice|clinic|surgery|hospital|app|week|month|year|morning|evening)\b",
    re.IGNORECASE,
)
_ADDS: Final = re.compile(
    r"\W*(?:(?:and|but|so|ok(?:ay)?|oh|yes|yeah|no|right|well|hm+)\W+)*"
    r"(?:what (?:if|about|for)|how about|unless|until|till|except|even|only|if|when|while|with|without|after"
    r"|before|during|for|at|in|on|from|by|like|such as|because|since|than|or|either)\b",
    re.IGNORECASE,
)
"""How a question begins that goes on with another one."""

_ADDED: Final = re.compile(
    r"\b(?:though|tho|either|as well|so|for|else|also|each|per \w+)\W*$", re.IGNORECASE
)
_INVERTED: Final = re.compile(
    r"\b(?:can|could|should|would|will|do|does|did|is|are|was|were|may|must|has|have) (?:i|we|you|he|she|it"
    r"|they|there|my|your|the|a|an|any|people|children|adults|\w+s)\b",
    re.IGNORECASE,
)
_ASKS_FOR: Final = re.compile(r"\b(?:what|how|why|which|where|who)(?:'s|'re)? \w+", re.IGNORECASE)
_CLAUSES: Final = re.compile(
    r"(?<=[.!?;,])\s+|\s+-+\s+|\s+(?=(?:but|and|so) (?:what|how|can|should|is it|do i)\b)"
)
_MISSES_ANSWER: Final = re.compile(
    r"\b(?:you|u) (?:have |still |just |really )*(?:never|didn'?t|did not|haven'?t|have not|don'?t|aren'?t)"
    r"(?: even| really| actually)? answer(?:ed|ing)?\b|\b(?:not|n'?t) what i (?:asked|was asking)\b"
    r"|\banswer (?:my|the) question\b"
    r"|\bi (?:already |just )?asked (?:you )?(?:if|whether|what|how|about|something)\b",
    re.IGNORECASE,
)
_WHAT_TO_DO: Final = re.compile(
    r"\bwhat (?:now|next)\b|\bnow what\b|\bwhat (?:should|shall|can|could|do|would) (?:i|we|you)\b"
    r"(?: need to| have to| best)? (?:do|try|suggest|recommend|advise)\b"
    r"|\bany (?:tips|advice|ideas?|suggestions?)\b|\bwhat helps\b",
    re.IGNORECASE,
)
_OWN_QUESTION: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|so|and|but|then|well|um|please)\W+)*(?:"
    r"(?:what|how|when|where|why|who|which(?! (?:is|are|was)\b))(?:'?s|'re)? "
    r"(?:is|are|am|do|does|did|can|could|should|would|will|tests?|else|now|next|helps?|the|about)\b"
    r"|how (?:long|often|much|many|soon|far|bad) (?:is|are|do|does|can|could|should|would|will)\b|now what\b"
    r"|(?:can|could|should|may|must|shall|do|will|am|would) (?:i|we|my|it|this|that|he|she|they)\b(?!'|n't)"
    r"|(?:is|are|does) (?:it|this|that|there|they|my|he|she)\b.*\?"
    r"|any (?:tips|advice|ideas?|suggestions?)\b)",
    re.IGNORECASE,
)
_WANTS_TOPIC: Final = re.compile(
    r"(?:\b(?:rather|(?:prefer|want|like|need) to|(?:can|could|shall) we|(?:can|could) i|let's|lets|please)"
    r" (?:just |please |now |also )*(?:(?:talk|speak|chat) about|(?:focus|concentrate) on"
    r"|(?:(?:go|get|come) back|return|move on|switch) to)"
    r"|\b(?:can|could|will|would) you (?:please |also |just )*help(?: me)?(?: out)? with"
    r"|^\W*(?:ok(?:ay)?,? |no,? |so )?back to)"
    r" ([\w'-]+(?: [\w'-]+){0,4}?)"
    r"(?= (?:instead|please|or not|now|then|first|though|at all)\b|[^\w\s'-]|\s*$)",
    re.IGNORECASE,
)
_SOMEBODYS: Final = re.compile(
    r"\b(?:my|our|his|her|their|mine|i have|i've|i'm|i am|i had|i get|we have|he has|she has|he's|she's"
    r"|i (?:live|cope|manage|deal|control|handle|keep|stay))\b",
    re.IGNORECASE,
)
_FIT_ANYTHING: Final = word_set(
    "a about actually after all always am an and any anything are as at away bad be before best better "
    "between bring by can cause come cost could dangerous day days did difference do doctor does doing "
    "done else enough every expect far fast few first for from get give go going good happen happens harm "
    "has have help helps high hours how hurt i if in is know last late long look low many matter may me "
    "mean means measure might minutes much must my myself need needed next no normal not of often ok okay "
    "old on or out possible quickly really reason result results safe see serious should so something "
    "soon sure take takes test than the there thing think times to together try tests use usual usually "
    "us value values wait was way we week weeks well what what's when where which who why will with without "
    "work works worried worry worse would wrong years you your"
)


def says_little(message: str) -> bool:
    """Whether a message means little without the question before it: a few words that ask for nothing."""
    return len(message.split()) <= _FEW and not asks_back(message) and not wishes(message)


def asks_about_it(message: str) -> bool:
    """Whether a question points to what was said before, or has only words that fit whatever that was."""
    if len(message.split()) > _SHORT or not asks_back(message) or wishes(message):
        return False
    return refers(message) or not asks_of_something(message)


def half_asked(question: str) -> bool:
    """Whether a question is only part of one: `unless it hurts?`, `how long for`, `children too?`."""
    if len(question.split()) > _SHORT or wishes(question):
        return False
    inverted = _INVERTED.search(question) is not None
    if _ADDS.match(question):
        return not inverted
    if _ADDED.search(question) or refers(question) or not asks_of_something(question):
        return True
    return not inverted and _ASKS_FOR.search(question) is None and len(question.split()) <= _FEW


def is_somebodys(message: str) -> bool:
    """Whether a message speaks of what somebody has: `is my asthma dangerous`, not `is asthma dangerous`."""
    return _SOMEBODYS.search(message) is not None


def tells_of_it(message: str) -> bool:
    """Whether a short statement begins with what was said before: `it came a month after I began`."""
    return len(message.split()) <= _SHORT and _OF_IT.match(message) is not None and not asks_back(message)


def refers(message: str) -> bool:
    """Whether a message points to something that was said before."""
    return _REFERS.search(_SEEMS_TO_REFER.sub("", message)) is not None


def names_again(message: str, earlier: Iterable[str]) -> bool:
    """Whether a message names something that was named in what was said earlier."""
    named = {word for text in earlier for word in _names(text)}
    return not named.isdisjoint(_names(message))


def _names(text: str) -> set[str]:
    """The words of a text that say what it is about, without the mark of a plural."""
    words = re.findall(r"[a-z]{3,}(?:'[a-z]+)?", _REFERS.sub("", text).lower())
    return {word.rstrip("s") for word in words if word not in _FIT_ANYTHING}


def topic_wanted(message: str) -> str:
    """What a person would now rather talk about, in their words; nothing where they do not say so."""
    found = _WANTS_TOPIC.search(message)
    return found[1].strip() if found else ""


def own_question(message: str) -> str:
    """What a person asks in a message, be it behind a statement or without a question mark."""
    clauses = [each.strip() for each in _CLAUSES.split(message) if each.strip()]
    marked = (each for each in reversed(clauses) if each.endswith("?") and len(each.split()) > _BARELY)
    return next((each for each in reversed(clauses) if _OWN_QUESTION.match(each)), next(marked, ""))


def misses_an_answer(message: str) -> bool:
    """Whether somebody says that a question of theirs was passed over."""
    return _MISSES_ANSWER.search(message) is not None


def asks_what_to_do(question: str) -> bool:
    """Whether somebody asks for advice in general: `so what now`."""
    return _WHAT_TO_DO.search(question) is not None


def asks_of_something(message: str) -> bool:
    """Whether a message is a question with at least one word that does not fit just anything."""
    words = set(re.findall(r"[a-z]+(?:'[a-z]+)?", _REFERS.sub("", message).lower()))
    return asks_back(message) and not words <= _FIT_ANYTHING


def wishes(message: str) -> bool:
    """Whether a message begins by asking for something, be it politely."""
    return _WISHES.match(message.lstrip(" .,;:!?'\"()*-~")) is not None
