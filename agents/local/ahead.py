"""What a message tells before anybody asks for it: since when in passing, what one aims at and by when."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agents.local.patterns import HAS_MOMENT, HAS_SPAN, MOMENT, SPAN
from agents.local.reading import BESIDE, Said, Text
from agents.local.slots import fragments


def _re(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_INJURES: Final = (
    r"(?:pull|twist|sprain|strain|injur|hurt|tweak|bump|scrap|bruis|bang|stub|burn|slipp?|tripp|fell|hit|cut"
    r"|broke|tore|threw|jamm|crack|graz|scald|stung|bit|bitten|knock|roll|land|whack|smash|jarr)(?:ed|t)?"
)
_INJURED_BEFORE: Final = _re(rf"\b{_INJURES}\b[^.;]*$")
_NEAR: Final = 100
"""So far before its time an injury is looked for, in characters."""

_INJURED: Final = _re(
    rf"\b{_INJURES} (?:my|his|her|the) ((?:left |right |upper |lower |big |little )*([a-z]+))\b"
)
_COURSE: Final = _re(
    r"\b((?:not |slowly |steadily )?(?:getting|gotten|got|become|becoming) (?:a bit |much |slowly |steadily "
    r"|a lot |any )?(?:better|worse|bigger|smaller))\b"
    r"(?! (?:when|whenever|after|at|in|during|with|if|while|on|by|every|\w+ing)\b)"
)
_NTH_TIME: Final = _re(
    r"\b((?:second|third|fourth|fifth|sixth|\d+(?:nd|rd|th)) time(?: this \w+| in [\w ]+?)?)"
    r"(?=\s*(?:[.,;!]|$))"
)
_NEVER_BEFORE: Final = _re(r"\bnever had (?:this|it|one|that|them|anything like (?:it|this|that)) before\b")
_FEVERISH: Final = _re(r"\b(?:fever\w*|temperature|temp)\b")
_DEGREES: Final = _re(
    r"(?<![\d.,/:])((?:3[5-9]|4[0-2])(?:[.,]\d)?|(?:9[89]|10[0-5])(?:\.\d)?)(?![\d/]|[.,]\d| ?\w)"
)
_SLEEPS: Final = _re(
    r"\b(?:i|i'm|he|she|they)(?: \w+)? sleep(?:ing|s)?\b"
    r"(?: (?:only|just|about|maybe|around|for|like|barely|roughly|perhaps))*"
    rf" ({SPAN})(?= |[.,;!]|$)|\b(?:get|getting|got)(?: \w+)? ({SPAN})(?: of)? sleep\b"
)

_WISHES: Final = (
    r"(?:i(?:'d| would)? (?:\w+ )?(?:want|like|love|hope|plan|aim) to|want to|my (?:goal|aim|plan) is to"
    r"|(?:i'm |i am |i've been )?(?:\w+ )?(?:trying|hoping|aiming|planning|looking) to)"
)
_AIMS: Final = (
    r"(?:lose|gain|run|build|get (?:under|down to)|eat (?!better|health|well)|sleep (?:through|longer)|quit"
    r"|cut|improve|start (?:running|train|exercis|lift|swim)\w*|train|swim|cycle|walk|bulk|put on|reduce"
    r"|stop (?:smoking|snacking|drinking|eating)|climb|lift|complete|finish|be (?:able to|under)|lower|drop"
    r"|shed|do (?:a|my|more)|bench|squat|deadlift|beat)\b"
)
_CLAUSE: Final = r"[^.,;!?]{0,90}?(?=\s*(?:[.,;!?]|\b(?:but|because|and i|and my|so i|so that|and need)\b|$))"
_GOAL: Final = _re(
    rf"\b{_WISHES} ({_AIMS}{_CLAUSE})"
    r"|\b(?:training|train|preparing|prepare|prepping|getting ready|practi[sc]ing|signed up|entered"
    rf"|registered) for ((?:a|an|my|the|our) {_CLAUSE})"
)
"""A wish that says what is to be reached; one to be fitter or healthier leaves that open."""

_SEASON: Final = r"(?:spring|summer|autumn|fall|winter|christmas|easter|new year'?s?)"
_DAY: Final = (
    rf"(?:(?:the )?(?:end|start|beginning|middle) of (?:the )?\w+|(?:this |next |the )?{_SEASON}|{MOMENT}"
    rf"|(?:next |the )?(?:week|month|year)(?:end)?|next \w+day|tomorrow|tonight)"
)
_EVENT: Final = rf"(?:my|the|our) [\w' -]{{3,25}}?(?: (?:in|on|next|this) {_DAY})?"
_BY: Final = _re(
    rf"\b(?:(?:by|before) ({_DAY})|before ({_EVENT}))(?=\s*(?:[.,;!?]|\b(?:and|but|so|because)\b|$))"
)
_DUE: Final = _re(rf"\b(?:in|on|next|this|coming) ({_DAY})\s*$")
_NEEDS: Final = _re(r"\b(?:need|want|like|due|must|book|appointment|renew|send|get)\b")


def ahead(text: Text, found: Sequence[Said]) -> Iterator[Said]:
    """What the statements of a message that answers nothing say beside what was `found` in them."""
    kinds = {each.kind for each in found}
    yield from _goal(text)
    if not kinds & {"onset", "duration"}:
        yield from _since_when(text)
    if "location" not in kinds:
        yield from _injured_part(text)
    low = text.stated
    if "progression" not in kinds and (course := _COURSE.search(low)):
        yield Said("progression", course[1])
    if nth := _NTH_TIME.search(low):
        yield Said("previous_episodes", nth[1])
    elif _NEVER_BEFORE.search(low):
        yield Said("previous_episodes", "no", BESIDE)
    if "temperature" not in kinds and _FEVERISH.search(low) and (degrees := _DEGREES.search(low)):
        yield Said("temperature", degrees[1])
    if slept := _SLEEPS.search(low):
        yield Said("sleep_hours", slept[1] or slept[2])


def _since_when(text: Text) -> Iterator[Said]:
    """A bare time among other pieces, or the time of an injury: `knee pain, 3 weeks`, `I fell on Monday`."""
    pieces = list(fragments(text.stated))
    for piece in pieces if len(pieces) > 1 else ():
        if HAS_MOMENT.fullmatch(piece):
            yield Said("onset", re.sub(r"^(?:on|in) ", "", piece, flags=re.IGNORECASE))
            return
        if HAS_SPAN.fullmatch(piece):
            yield Said("duration", piece)
            return
    for moment in HAS_MOMENT.finditer(text.stated):
        if _INJURED_BEFORE.search(text.stated[max(0, moment.start() - _NEAR) : moment.start()]):
            yield Said("onset", re.sub(r"^(?:on|in) ", "", moment[0], flags=re.IGNORECASE))
            return


def _injured_part(text: Text) -> Iterator[Said]:
    """The part of the body that was injured: `ankle` of `I twisted my ankle`."""
    for found in _INJURED.finditer(text.stated):
        if {found[2].lower(), found[2].lower().removesuffix("s")} & text.lexicon.group("body.parts"):
            yield Said("location", found[0][found.start(1) - found.start() :].lower(), BESIDE)
            return


def _goal(text: Text) -> Iterator[Said]:
    goal = _GOAL.search(text.stated)
    if goal is not None:
        yield Said("goal", goal[1] or goal[2], BESIDE)
    due = _BY.search(text.stated) if goal or _NEEDS.search(text.stated) else None
    if due is None and goal is not None:
        due = _DUE.search(goal[2] or "")
    if due is not None:
        yield Said("deadline", next(filter(None, due.groups())), BESIDE)
