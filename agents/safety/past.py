"""Which sentences of a message tell of the past, and whether it says that the danger is over. Pure."""

import re
from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

Families: TypeAlias = Callable[[str], Collection[str]]
"""Gives the families of the rules that a text matches, also of those that something retracts."""


class Time(IntEnum):
    """When a sentence happens, as far as dates say."""

    NOW = 0
    """Now, or no date says otherwise."""
    UNCLEAR = 1
    """It is in the past tense and follows a sentence with an old date, but may be about something else."""
    PAST = 2
    """It names an old date, or goes on with the story of one that does."""


YEARS_THAT_COUNT: Final = 1
"""A date of this year, or of so many years before, does not make a danger past."""
_MONTHS: Final = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_YEAR: Final = re.compile(
    rf"(?:\b(?:in|of|from|during|around|until|till|by|before|after|year|spring|summer|autumn|fall|winter"
    rf"|christmas|easter|early|late|mid|since|back|my|the|his|her|{_MONTHS})|[(,/.:-])\s*"
    r"(?P<year>(?:19|20)\d\d)(?![\d:,.]\d|\w)"
    r"(?!\s*(?:m[gl]s?|mcg|ug|g|kg|grams?|milligrams?|micrograms?|units?|iu|k?cals?|calories|steps|met(?:re|er)s?|km|miles"
    r"|h|hrs?|hours|pm|am|tablets|pills|words|people|times|pounds|dollars|euros)\b|\s*[%\u00b5\u20ac])",
    re.IGNORECASE,
)
"""A number after words that come before years, and not before a unit: "2000 mg" is no year."""
_BORN: Final = re.compile(
    r"\b(?:born|dob|date of birth|birthday)\b[^.;!?]{0,24}?\b(?:19|20)\d\d\b", re.IGNORECASE
)
_SINCE_A_YEAR: Final = re.compile(r"\bsince (?:19|20)\d\d\b", re.IGNORECASE)
_LONG_AGO: Final = re.compile(r"\b(?:years ago|decades ago|as a (?:child|teenager|kid))\b", re.IGNORECASE)
_PRESENT: Final = re.compile(
    r"\b(?:now|today|tonight|currently|still|again|since|lately|recently"
    r"|this (?:morning|afternoon|week|evening)"
    r"|(?:past|last) (?:hour|night|few (?:hours|minutes|days))|earlier|yesterday"
    r"|(?:\d+|an?|one|two|three|four|five|ten|few|several|some|couple of|half an)"
    r" (?:sec|second|min(?:ute)?|hour|hr|day|moment)s? ago"
    r"|i['\u2019]?m|am|is|are|it['\u2019]?s|he['\u2019]?s|she['\u2019]?s|they['\u2019]?re|have|has|having|keeps?|can['\u2019]?t"
    r"|cannot|don['\u2019]?t|doesn['\u2019]?t|feels?|hurts?|started|just|wants?|wanna|needs?|going|gonna|will"
    r"|i['\u2019]ll|thinks?|thinking|plan|planning|wish|hate|hears?|sees?|takes?|taking"
    r"|gets?|getting|goes|comes|keep|won['\u2019]?t|isn['\u2019]?t|aren['\u2019]?t|we['\u2019]re|i['\u2019]?ve)\b",
    re.IGNORECASE,
)
_PAST_TENSE: Final = re.compile(
    r"\b(?:was|were|had|did|took|went|felt|came|woke|fell|lost|got|could|\w+ed"
    r"|(?:did|could|was|were|had)n['\u2019]?t)\b",
    re.IGNORECASE,
)

_GONE: Final = (
    r"(?:gone|gone away|went away|passed|settled|cleared(?: up)?|stopped|eased off|wore off|worn off)"
)
_WHEN_GONE: Final = (
    r"(?:now|today|this (?:morning|afternoon)|by (?:morning|itself|now)|on its own|again|since)"
)
_IS_OVER: Final = re.compile(
    rf"(?<!not )(?<!n't )(?<!nt )\b(?:{_GONE} {_WHEN_GONE}"
    rf"|(?:it|that|pain|tightness|feeling|they)(?:['\u2019]s| is| has| have)?"
    rf" (?:all |completely |just )?{_GONE}"
    rf"|(?:fine|ok|okay|better|normal) {_WHEN_GONE})\b"
    r"(?! (?:blue|gr[ea]y|white|pale|numb|cold|black|dark|limp|floppy|weak|dead|red"
    r"|purple|stiff|hard|worse|out))",
    re.IGNORECASE,
)
_NOT_OVER: Final = re.compile(r"\b(?:back|again|returned?|worse|but|though|then|still)\b", re.IGNORECASE)


def says_over(text: str) -> bool:
    """Whether a message says that what it tells is over: "my chest was tight, gone this morning"."""
    found = _IS_OVER.search(text)
    return found is not None and _NOT_OVER.search(text, found.end()) is None


def times_of(parts: Sequence[str], families: Families, this_year: int) -> list[Time]:
    """When each part of a message happens.

    A part in the past tense that follows a dated one goes on with its story if a rule of the same family
    matches both: "My mum had a stroke ten years ago. Her face dropped." Otherwise its time is unclear:
    "I was diagnosed with depression in 2019. I took all my tablets." Words of the present make it present.
    """
    times: list[Time] = []
    story: set[str] = set()
    for part in parts:
        said = _SINCE_A_YEAR.sub(" ", _BORN.sub(" ", part))
        is_dated = _has_old_date(said, this_year)
        if _PRESENT.search(said) is not None:
            times.append(Time.NOW)
        elif is_dated:
            times.append(Time.PAST)
            story |= set(families(part))
        elif times and times[-1] is not Time.NOW and _PAST_TENSE.search(said) is not None:
            goes_on = not story.isdisjoint(families(part))
            times.append(Time.PAST if goes_on else Time.UNCLEAR)
        else:
            times.append(Time.NOW)
    return times


def _has_old_date(said: str, this_year: int) -> bool:
    """Whether a text names a year before the last one, or says that something was years ago."""
    years = (int(found["year"]) for found in _YEAR.finditer(said))
    return _LONG_AGO.search(said) is not None or any(year < this_year - YEARS_THAT_COUNT for year in years)
