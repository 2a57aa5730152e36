"""The words of a text as the index keeps them: lower case, without stop words, reduced to stems. Pure."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

MOST_CHARACTERS: Final = 20_000
"""Only this much of a text is read for its words."""

_WORD: Final = re.compile(r"[^\W_]+")
_STOP_TEXT: Final = """
    a about am an and any are as at be been being but by can could did do does doing done for from get got
    had has have having he her hers herself him himself his how i if in into is it its itself just like ll me
    might mine my myself no not of on or our ours ourselves please re s she should so some such t than that
    the their theirs them themselves then there these they this those to too us ve very was we were what when
    where which while who whom whose why will with would yes you your yours yourself yourselves d m don doesn
    didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn needn
"""
STOP_WORDS: Final = frozenset(_STOP_TEXT.split())

_VOWEL: Final = r"(?:[aeiou]|(?<=[^aeiou])y)"
_HAS_VOWEL: Final = re.compile(_VOWEL)
_RUNS: Final = re.compile(r"[aeiou]+[^aeiou]+")
_SHORT_END: Final = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$")
_DOUBLE_END: Final = re.compile(r"([^aeioulsz])\1$")

_LONG_SUFFIXES: Final = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize")),
    *(("abli", "able"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    *(("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive")),
    *(("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
)
_MIDDLE_SUFFIXES: Final = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic")),
    *(("ical", "ic"), ("ful", ""), ("ness", "")),
)
_LAST_SUFFIXES: Final = (
    *(
        "ement",
        "ance",
        "ence",
        "able",
        "ible",
        "ment",
        "ant",
        "ent",
        "ism",
        "ate",
        "iti",
        "ous",
        "ive",
        "ize",
    ),
    *("ion", "al", "er", "ic", "ou"),
)


def terms(text: str) -> list[str]:
    """The stems of the words of a text that are no stop words, in their order."""
    plain = unicodedata.normalize("NFKC", text[:MOST_CHARACTERS]).lower()
    words = _WORD.findall(plain)
    return [stem(word) for word in words if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of an English word, by the rules of Porter's algorithm."""
    if len(word) <= 2 or not word.isascii() or not word.isalpha():
        return word
    word = _without_plural(word)
    word = _without_past(word)
    if word.endswith("y") and _HAS_VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _LONG_SUFFIXES)
    word = _replaced(word, _MIDDLE_SUFFIXES)
    word = _without_last(word)
    if word.endswith("e") and (_measure(word[:-1]) > 1 or _ends_long(word[:-1])):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _measure(stem: str) -> int:
    """How often a vowel is followed by a consonant."""
    return len(_RUNS.findall(stem))


def _ends_long(stem: str) -> bool:
    return _measure(stem) == 1 and not _SHORT_END.search(stem)


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        start = word.removesuffix(suffix)
        if start != word and _HAS_VOWEL.search(start):
            if start.endswith(("at", "bl", "iz")) or (_measure(start) == 1 and _SHORT_END.search(start)):
                return start + "e"
            return start[:-1] if _DOUBLE_END.search(start) else start
    return word


def _replaced(word: str, suffixes: tuple[tuple[str, str], ...]) -> str:
    for suffix, other in suffixes:
        if word.endswith(suffix):
            start = word.removesuffix(suffix)
            return start + other if _measure(start) else word
    return word


def _without_last(word: str) -> str:
    for suffix in _LAST_SUFFIXES:
        if word.endswith(suffix):
            start = word.removesuffix(suffix)
            if _measure(start) > 1 and (suffix != "ion" or start.endswith(("s", "t"))):
                return start
            return word
    return word
