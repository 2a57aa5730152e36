"""Whether a message leans on what was said before, or stands on its own."""

import re
from collections.abc import Iterable
from typing import Final

from agents.utterance import FIT_ANYTHING, REFERS, asks_of_something, refers, wishes

_BARELY: Final = 2
_FEW: Final = 6
_SHORT: Final = 12
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


def names_again(message: str, earlier: Iterable[str]) -> bool:
    """Whether a message names something that was named in what was said earlier."""
    named = {word for text in earlier for word in _names(text)}
    return not named.isdisjoint(_names(message))


def _names(text: str) -> set[str]:
    """The words of a text that say what it is about, without the mark of a plural."""
    words = re.findall(r"[a-z]{3,}(?:'[a-z]+)?", REFERS.sub("", text).lower())
    return {word.rstrip("s") for word in words if word not in FIT_ANYTHING}


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
