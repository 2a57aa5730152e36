"""Predicates about one message that several folders need: does it ask, refer back, or say little?"""

import re
from typing import Final


def word_set(words: str) -> frozenset[str]:
    """The words of a text, separated by white space, as a set."""
    return frozenset(words.split())


_FEW_WORDS: Final = 6
_SHORT_WORDS: Final = 12
ASKS: Final = re.compile(
    r"(?:what|who|how|why|when|which|where)(?:'s|'re)?\b (?:is|are|am|do|does|did|can|could|should"
    r"|would|will|was|were|have|has|to|much"
    r"|many|often|long|about|if|kind|type|sort|else|medic\w+|contracep\w+|exercises?|food)\b|why\b"
    r"|(?:can|could|should|would|do|does|is|are|will|may|am|have you|has)\b"
    r"|did (?!(?:a|an|the|my|some|one|two|another|not|nothing|try|have|take|feel|get|go)\b)",
    re.IGNORECASE,
)
_WISHES: Final = re.compile(
    r"(?:(?:and|also|actually|anyway|by the way|oh|ok(?:ay)?|please|now|could you|can you)\W+)*"
    r"(?:i(?:'d| would| also| just| really)* (?:want|need|like)\b|(?:please|help|let's)\b"
    r"|(?:tell|give|send|show|get|book|cancel|find|make|write|play|order|explain|translate)\b"
    r" (?:me|us|a|an|my|the|some)\b)",
    re.IGNORECASE,
)
REFERS: Final = re.compile(
    r"\b(?:it|its|this|that|these|those|them|they|their|he|him|his|she|her|one|ones|same|other"
    r"|then|still|keep|more|again|instead|otherwise|too|now)\b",
    re.IGNORECASE,
)
_STARTS_WITH_IT: Final = re.compile(
    r"\W*(?:(?:and|but|so|well|oh)\W+)*(?:it|they|these|those)(?:'s|'ve|'re)?\b", re.IGNORECASE
)
# Phrases with a word of REFERS that refer to nothing said before.
_SEEMS_TO_REFER: Final = re.compile(
    r"\bis it (?:\w+ )?(?:to|that|if|going)\b|\btime is it\b"
    r"|\bth(?:is|at) (?:practice|clinic|surgery|hospital|app|week|month|year|morning|evening)\b",
    re.IGNORECASE,
)
# Words that fit any topic.
FIT_ANYTHING: Final = word_set(
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


_AGREES: Final = (
    r"(?:yes|yeah|yep|yup|yea|aye|y|ok|okay|sure|fine|all ?right|right|correct|of course|certainly"
    r"|absolutely|definitely|go ahead|go on|go for it|do (?:it|that|so)|please do|i do|i agree|agreed"
    r"|i(?:'m| am) sure|that(?:'s| is) (?:right|correct|fine|ok|okay)|you (?:can|may)"
    r"|(?:delete|remove|forget|erase|clear|wipe|change|correct|update|cross out|get rid of)"
    r" (?:it|this|that|these|those|them|everything)(?: all)?|remove all of (?:it|them)"
    r"|delete all of (?:it|them)|forget all of (?:it|them)|\U0001f44d|\U0001f44c|\u2705)"
)
_POLITE: Final = (
    r"(?:please|pls|thanks|thank you|thx|cheers|then|now|just|oh|well|and|for me|for good|permanently"
    r"|from (?:your|my|the) notes)"
)
_ONLY_AGREES: Final = re.compile(
    rf"[^\w?]*(?:{_POLITE}[^\w?]+)*{_AGREES}(?:[^\w?]+(?:{_AGREES}|{_POLITE}))*[^\w?]*", re.IGNORECASE
)


def only_agrees(text: str) -> bool:
    """Whether a message is a yes and nothing else: no question, no condition and nothing besides."""
    return _ONLY_AGREES.fullmatch(text.replace("\u2019", "'")) is not None


def asks_back(text: str) -> bool:
    """Whether a message is a question, not a reply."""
    return text.rstrip().endswith("?") or ASKS.match(text.lstrip(" .,;:!?'\"()*-~")) is not None


def says_little(message: str) -> bool:
    """Whether a message cannot be understood without the question before it: a few words, no request."""
    return len(message.split()) <= _FEW_WORDS and not asks_back(message) and not wishes(message)


def asks_about_it(message: str) -> bool:
    """Whether a short question refers to what was said before, or has no topic of its own."""
    if len(message.split()) > _SHORT_WORDS or not asks_back(message) or wishes(message):
        return False
    return refers(message) or not asks_of_something(message)


def tells_of_it(message: str) -> bool:
    """Whether a short statement starts by referring back, as in `it came a month after I began`."""
    return (
        len(message.split()) <= _SHORT_WORDS
        and _STARTS_WITH_IT.match(message) is not None
        and not asks_back(message)
    )


def refers(message: str) -> bool:
    """Whether a message refers to something that was said before."""
    return REFERS.search(_SEEMS_TO_REFER.sub("", message)) is not None


def asks_of_something(message: str) -> bool:
    """Whether a message is a question with a topic: a word that is not in `FIT_ANYTHING`."""
    words = set(re.findall(r"[a-z]+(?:'[a-z]+)?", REFERS.sub("", message).lower()))
    return asks_back(message) and not words <= FIT_ANYTHING


def wishes(message: str) -> bool:
    """Whether a message begins with a request, polite or not."""
    return _WISHES.match(message.lstrip(" .,;:!?'\"()*-~")) is not None
