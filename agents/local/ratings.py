"""Ratings on a scale as people write them: `six and a half`, `was a 9, down to a 4 now`, `more of a 5`."""

import re
from typing import Final

from agents.local.patterns import NUMBERS

_WORD: Final = rf"\d{{1,3}}(?:[.,]\d+)?|{'|'.join(NUMBERS)}"
_NO_UNIT: Final = (
    r"(?![\w/])(?! ?(?:minutes?|hours?|days?|nights?|weeks?|months?|years?|mg|ml|times|am\b|pm\b|o'clock"
    r"|%|mcg|degrees|tablets?|pills?|puffs?|of (?:them|those)))"
)
NUMBER: Final = re.compile(rf"(?<![\w.,/])({_WORD})(?:\s*(?:-|to|or)\s*({_WORD}))?{_NO_UNIT}", re.IGNORECASE)
"""A number that counts nothing, or a range of two."""

_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS_AND_ONES: Final = re.compile(
    rf"\b({'|'.join(_TENS)})[ -](one|two|three|four|five|six|seven|eight|nine)\b", re.IGNORECASE
)
_TENS_ALONE: Final = re.compile(rf"\b(?:{'|'.join(_TENS)})\b", re.IGNORECASE)
_TEEN: Final = ("seventeen", "eighteen", "nineteen")
_TEENS: Final = re.compile(rf"\b(?:{'|'.join(_TEEN)})\b", re.IGNORECASE)
_HUNDREDS: Final = re.compile(
    rf"\b(a|one|two) hundred(?:(?: and)? (\d{{1,2}}|{'|'.join(NUMBERS)})\b)?", re.IGNORECASE
)
_ONE_SIXTY: Final = re.compile(r"\b(one|two) (\d\d)\b", re.IGNORECASE)
_POINT: Final = re.compile(rf"\b({_WORD}) point ({_WORD})\b", re.IGNORECASE)
_HALF: Final = re.compile(rf"\b({_WORD}) and a half\b", re.IGNORECASE)
_ISH: Final = re.compile(r"\b(\d{1,2})[ -]?ish\b", re.IGNORECASE)
_PERHAPS: Final = re.compile(
    rf"\b({_WORD}),? (?:or )?(?:maybe|perhaps|possibly)(?: even)?(?: an?)? ({_WORD})\b", re.IGNORECASE
)
_BETWEEN: Final = re.compile(rf"\bbetween (?:an? )?({_WORD}) and (?:an? )?({_WORD})\b", re.IGNORECASE)
_OVER: Final = re.compile(
    r"\b(?:was|were|normally|usually|yesterday|last (?:night|week)|used to be|started (?:at|as|off)"
    r"|down from|up from|from|not|instead of)(?: about"
    r"| like)?(?: an?)? $",
    re.IGNORECASE,
)
_PRESENT: Final = re.compile(r"[ ,]*(?:right |just )?(?:now|today|currently|at the moment)\b", re.IGNORECASE)
_ANEW: Final = re.compile(
    r"\b(?:more (?:of|like)(?: an?)?|closer to(?: an?)?|make (?:it|that)(?: an?)?|call it(?: an?)?"
    r"|(?:up|down|dropped|fallen|fell|risen|rose|settled|eased|gone) to(?: about)?(?: an?)?|it's(?: now"
    r"| about| more)? an?|now an?|(?:i'd"
    r"|i would) say(?: an?)?|rather an?"
    rf"|i meant(?: an?)?|meant to say(?: an?)?|typo,?(?: an?)?) ({_WORD})(?:\b|(?=ish)){_NO_UNIT}",
    re.IGNORECASE,
)


def plain_number(text: str) -> str:
    """A number in digits: `6` of `six`."""
    return str(NUMBERS.get(text.lower(), text.replace(",", ".")))


def spelled_out(text: str) -> str:
    """A text whose ratings are plain numbers: `6.5` for `six and a half`, `4-5` for `4, maybe 5`."""
    text = _TENS_AND_ONES.sub(
        lambda found: str((_TENS.index(found[1].lower()) + 2) * 10 + int(plain_number(found[2]))), text
    )
    text = _POINT.sub(lambda found: f"{plain_number(found[1])}.{plain_number(found[2])}", text)
    text = _HALF.sub(lambda found: f"{plain_number(found[1])}.5", text)
    return _PERHAPS.sub(r"\1-\2", _BETWEEN.sub(r"\1-\2", _ISH.sub(r"\1", text)))


def figures(text: str) -> str:
    """A text whose figures are in digits: `160 over 95` for `one sixty over ninety five`."""
    text = _TENS_ALONE.sub(lambda found: str((_TENS.index(found[0].lower()) + 2) * 10), spelled_out(text))
    text = _TEENS.sub(lambda found: str(_TEEN.index(found[0].lower()) + 17), text)
    text = _HUNDREDS.sub(
        lambda found: str((2 if found[1].lower() == "two" else 1) * 100 + int(plain_number(found[2] or "0"))),
        text,
    )
    return _ONE_SIXTY.sub(lambda found: f"{plain_number(found[1])}{found[2]}", text)


def number_now(text: str) -> re.Match[str] | None:
    """The first number that is not said to be over: the 3 of `used to be 5, now 3`."""
    found = list(NUMBER.finditer(text))
    now = (each for each in found if not _OVER.search(text[max(0, each.start() - 40) : each.start()]))
    return next(now, found[0] if found else None)


def rating(text: str, top: int) -> str:
    """How strong something is said to be now: a number or a range, several in their words, else nothing."""
    low = re.sub(r"^(?:it )?(?:really )?depends[.,; ]+", "", spelled_out(text), flags=re.IGNORECASE)
    numbers = [each for each in NUMBER.finditer(low) if within(each[1], top)]
    several = len(numbers) > 1 and not any(
        _OVER.search(low[max(0, each.start() - 40) : each.start()]) for each in numbers
    )
    present = [each for each in numbers if _PRESENT.match(low[each.end() :])]
    if several and not present and len(low) <= 80 and not re.search(r"[.;!?] ", low):
        return low.strip(" .,")  # `7 on the stairs, otherwise 2`
    if present:
        return _told(present[-1])
    now = [
        each for each in numbers if not _OVER.search(low[max(0, each.start() - 40) : each.start()])
    ] or numbers
    if not now:
        return ""
    latest = now[-1] if len(now) < len(numbers) else now[0]
    return _told(latest)


def rating_anew(text: str, top: int) -> str:
    """A rating that a message gives by itself: `it's more of a 5 by now`."""
    found = _ANEW.search(spelled_out(text))
    return plain_number(found[1]) if found and within(found[1], top) else ""


def within(number: str, top: int) -> bool:
    """Whether a number can be meant on a scale; people exceed its top by one to say that it is bad."""
    return float(plain_number(number)) <= max(top, 11)


def _told(found: re.Match[str]) -> str:
    return "-".join(plain_number(each) for each in (found[1], found[2]) if each)
