"""What a reply that says no holds apart from it: `my cat` of `no, just my cat`."""

import re
from typing import Final

from agents.local.asides import is_aside
from agents.local.lexicon import word_set, words_of
from agents.local.patterns import NEGATORS

_BUT: Final = r"(?:but|except(?: for| that)?|apart from|aside from|other than|besides|bar|unless you count)"
_FIRST: Final = re.compile(rf"(?:{_BUT}|just|only|well|maybe|perhaps|possibly)\b[ ,]*(.+)", re.IGNORECASE)
_BEHIND: Final = re.compile(rf"(?:\b{_BUT}|, (?:just|only|well))[ ,]+(.+)", re.IGNORECASE)
_PERHAPS: Final = re.compile(
    r"(.+?)[, ]+(?:maybe|i guess|i suppose|i think|perhaps|possibly|at most|if that counts)", re.IGNORECASE
)
_DOES: Final = re.compile(r"(?:i|we) (?:do|get|keep|have been)\b.+|i've been .+", re.IGNORECASE)
_OF_OTHERS: Final = re.compile(
    r"(?:it|it's|that|that's|this|they|they're|he|he's|she|she's|there|there's|you|we|what|if|because|so)\b"
    r"|i (?:think|guess|hope|know|suppose|believe|mean|want|need|wish|would|will|should|might|may|can)\b"
    r"|(?:thanks|thank|sorry|please|why|how|can|could|is|are|do|does)\b",
    re.IGNORECASE,
)
_SAYS_NOTHING: Final = word_set(
    ", . i i'm i've am feel feeling a an the all it my me so very just really otherwise fine good ok okay "
    "well great healthy normal usual stuff perfect right alright checking wondering asking curious kidding "
    "joking saying sure case maybe guess think suppose now here this that these those one none them lucky "
    "started start starting old young lol"
)
_MOST: Final = 12


def excepts(rest: str) -> bool:
    """Whether what follows a no begins an exception to it."""
    return _FIRST.match(rest.strip(" .,;:!-")) is not None


def held_apart(rest: str, *, whole: bool = False) -> str:
    """The words behind a no that it does not cover, none where it covers all; a `whole` reply begins with
    what it denies.
    """
    rest = rest.strip(" .,;:!-")
    found = _BEHIND.search(rest) if whole else _FIRST.match(rest)
    words = found[1] if found else "" if whole else _beside(rest)
    if found and (hedged := _PERHAPS.fullmatch(words)):
        words = hedged[1]
    texts = {word.text for word in words_of(words)}
    if len(texts) > _MOST or texts & NEGATORS or _OF_OTHERS.match(words) or is_aside(words):
        return ""
    return words.strip(" .,;:!-") if texts - _SAYS_NOTHING else ""


def _beside(rest: str) -> str:
    """`mum` of `mum I guess`, and `I do sneeze`."""
    hedged = _PERHAPS.fullmatch(rest)
    return hedged[1] if hedged else rest if _DOES.match(rest) else ""
