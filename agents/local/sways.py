"""What makes a complaint better and what makes it worse, told apart in one reply."""

import re
from collections.abc import Iterator
from typing import Final

from agents.local.reading import Said, Text
from agents.values import NONE

_PARTS: Final = re.compile(
    r"\s*(?:[,;.!]|\bbut\b|\bwhile\b|\bwhereas\b|\band\b(?=.*\b(?:worse|helps?|better)\b))\s*", re.I
)
_EASES: Final = (
    r"(?:helps?|helped|eases?|eased|relieves?|soothes?|soothing|sorts?|works|worked|calms?|loosens?"
    r"|settles?|lifts?"
    r"|takes? the edge off|does the trick|makes? (?:it|them|things) (?:a (?:bit|little|lot) |much )?better"
    r"|(?:is|are|feels?) (?:good|great|nice|lovely|best|better|a relief))"
)
_HURTS: Final = (
    r"(?:makes? (?:it|them|things|the pain) (?:a (?:bit|little|lot) |much |even )?worse|sets? (?:it|them) off"
    r"|brings? (?:it|them) on|triggers? (?:it|them)|aggravates?|kills?(?: me)?|hurts?|flares? it up"
    r"|(?:is|are) (?:a nightmare|murder|agony|hell|the worst|worst|bad|terrible|awful|worse|torture"
    r"|a killer|a trigger))"
)
_NOTHING: Final = re.compile(
    rf"(?:nothing|none of it|not much)(?: really| at all| ever| seems to| i(?:'ve)? (?:tried|do|take))*"
    rf" (?:{_EASES}|touches|touched|helping|makes a difference|makes any difference|does)(?: it| them)?",
    re.I,
)
_BETTER: Final = re.compile(
    rf"(.+?),? (?:usually |really |always |sometimes |also |only |seems? to |does |do )*{_EASES}\b", re.I
)
_WORSE: Final = re.compile(
    rf"(.+?),? (?:usually |really |always |sometimes |also |seems? to |does |do )*{_HURTS}\b", re.I
)
_NOT: Final = re.compile(r"\b(?:not|n't|never|used to|doesn't|don't|didn't)\b|n't\b", re.I)
_BARE: Final = re.compile(r"(?:it|that|this|which|what|they|i|he|she|nothing)\b", re.I)
_RESTS: Final = re.compile(
    r"(?:rest\w*|resting|sleep\w*|(?:a )?naps?|lying (?:down|still|flat)|ice(?: packs?)?|(?:a )?(?:hot|warm"
    r"|cool|cold) "
    r"(?:bath|shower|water bottle|compress|drink)s?|heat(?: pads?)?|massages?|stretching|fresh air"
    r"|(?:a )?dark room"
    r"|painkillers?|sitting down|standing still|walking it off|music|breathing exercises)(?: mostly"
    r"| usually| a bit)?",
    re.I,
)


def swayed(text: Text, *, either: bool) -> Iterator[Said]:
    """What a reply says makes it better, as `relief`, and what makes it worse, as `triggers`.

    After a question for `either`, what usually helps is taken for relief without more words.
    """
    for part in _PARTS.split(text.stated):
        part = part.strip(" .,!?")
        if _NOTHING.fullmatch(part):
            yield Said("relief", NONE)
        elif not _NOT.search(part):
            yield from _one(part, text, either=either)


def _one(part: str, text: Text, *, either: bool) -> Iterator[Said]:
    for kind, pattern in (("relief", _BETTER), ("triggers", _WORSE)):
        found = pattern.match(part)
        if found and not _BARE.match(found[1]) and len(found[1].split()) <= 7:
            yield Said(kind, re.sub(r"^(?:yes|yeah|well|um|i find|i think)[ ,]+", "", found[1], flags=re.I))
            return
    if not either:
        return
    if _RESTS.fullmatch(part) or (
        len(part.split()) <= 3
        and text.stated.strip(" .!") == part
        and next(text.has("medicines.names"), None)
    ):
        yield Said("relief", part)
