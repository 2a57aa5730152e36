"""Typed readers: a rating, a span, a moment, a temperature, a dose and so on, found in a clause. Pure.

A reader returns the value in the person's own words, or None if the clause has no value of its type. A bare
number fits only the types that a question may ask for with a bare number.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

_WORDS: Final = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen"
    "|fourteen|fifteen|sixteen|twenty|thirty|forty"
)
NUMBERS: Final = {word: number for number, word in enumerate(_WORDS.split("|")[:17])} | {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
}
_N: Final = rf"(?:\d+(?:[.,]\d+)?|{_WORDS})"
_UNIT: Final = (
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|wks?"
    r"|weekends?|months?|mths?|years?|yrs?|decades?)"
)
_ABOUT: Final = (
    r"(?:(?:about|around|approx(?:imately)?|going on|roughly|almost|nearly|over|just"
    r"|only|maybe|like|probably|at least|more than|less than"
    r"|up to|for|the (?:last|past)|a good|good|some|well over|getting on for|going on|easily) )*"
)
_AMOUNT: Final = (
    rf"(?:{_N}(?: ?(?:-|to|or|and a) ?(?:{_N}|half))?|an?|half an?|a few|few"
    rf"|a couple(?: of)?|couple(?: of)?|several|many|quite a few)"
)
SPAN: Final = (
    rf"{_ABOUT}(?:{_AMOUNT} ?(?:more |full |whole |solid )?{_UNIT}(?: or (?:so|two"
    rf"|more|longer))?(?: and a half)?|\d+ ?(?:d|w|h|mo|hrs?|mins?|wks?|yrs?|m)\b"
    r"|ages|(?:quite )?a (?:long |short |good |little )?while|(?:all |my |his "
    r"|her )?(?:my |his |her )?(?:whole|entire|all my) life"
    r"|(?:many )?(?:years|months|weeks|days|hours)|forever|a long time|all (?:day"
    r"|night|week|month|year|morning|summer|winter)|not (?:very |that )?long)"
)
_DAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
MONTH: Final = (
    r"(?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_PART: Final = r"(?:morning|afternoon|evening|night|lunchtime|noon|midnight)"
MOMENT: Final = (
    rf"(?:(?:early |late |earlier |late on |the )?(?:this (?:{_PART}|week|month|year"
    rf"|spring|summer|winter)|last (?:{_PART}|week|weekend|month|year|spring|summer"
    rf"|autumn|fall|winter|christmas|{_DAY})"
    rf"|(?:the day before )?yesterday(?: {_PART})?|today|tonight|the other (?:day"
    rf"|night)|just now)|(?:on |this )?{_DAY}\b(?: {_PART}| last week)?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}\b(?: \d{{4}})?|(?:in "
    rf"|early |late |mid[ -]?|the (?:beginning|end|middle"
    rf"|start) of )*{MONTH}\b(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?: \d{{4}})?"
    rf"|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?|(?:in |back in )?(?:19|20)\d\d|(?:over "
    rf"|at |around |before |after |since )?(?:the )?(?:christmas|easter|new year"
    rf"|spring|summer|autumn|winter|weekend|holidays?|breakfast|lunch|dinner)"
    rf"|{SPAN} (?:ago|back)|(?:at |around |about )?\d{{1,2}}(?::\d\d)? ?(?:am|pm"
    rf"|o'clock)|when i (?:was|woke|got|had|started|moved)\b[^.,;]{{0,40}}|(?:right "
    rf"|just |shortly )?after (?:i|the|my|we|a) [^.,;]{{2,40}})"
)
_SPAN: Final = re.compile(rf"\b{SPAN}(?!\w)(?! ago| old| pregnant| back\b| away)")
_SINCE: Final = re.compile(
    rf"\b(?:ever )?since (?:about |around |like )?(?!then\b|it\b)({MOMENT}|(?:i|we|my"
    rf"|the|a) [^.,;!?]{{3,50}})"
)
_STARTED: Final = re.compile(
    rf"\b(?:started|starting|began|begun|came on|first noticed(?: it)?|noticed it"
    rf"|got it|happened|hurt it|did it|fell|slipped"
    rf"|twisted it)\b[^.,;]{{0,25}}?\b({MOMENT})"
)
_OFTEN: Final = re.compile(
    rf"\b(?:(?:almost|nearly|about|maybe|around|roughly) )?(?:every (?:other |single "
    rf"|few )?(?:\w+ )?(?:day|night|morning|evening|week|weekend|month|hour|time)s?"
    rf"|(?:once|twice|{_N}(?: ?(?:-|to|or) ?{_N})?(?: times| nights| days"
    rf"| or \w+ times)?|(?:a )?(?:few|couple of) times|several times)(?: or (?:twice"
    rf"|so))? (?:a|an|per|each|every) (?:day|night|week|month|year|hour)"
    r"|daily|weekly|nightly|monthly|most (?:days|nights|mornings)|once in a while"
    r"|now and then|from time to time|all the time|constantly|rarely|hardly ever"
    r"|on and off)\b"
)
_RATED: Final = re.compile(rf"\b({_N})(?: ?(?:-|to|or) ?{_N})? ?(?:/ ?|out of |of |over )(10|ten)\b")
_BARE: Final = (
    r"(?:(?:it's|its|it is|i'd|i would|say|give it|probably|maybe|about|around"
    r"|roughly|like|a|an|at|more like|perhaps|i think|i guess|around a|between|just"
    r"|only|definitely|easily"
    r"|well|um+|er+m?|hmm+|so|oh|solid|now|it was|was|hm|mm|prolly|i'd put it at"
    r"|put it at|he says|she says|says|rate it|i rate it|still|pretty much|tbh"
    r"|honestly|today|right now|or|to|and|up to|close to|nearly|almost|of pain"
    r"|on the scale|pain|[.,!]) ?)*"
)
_BARE_RATING: Final = re.compile(
    rf"{_BARE}({_N})(?: ?(?:-|to|or|and|/) ?({_N}))?{_BARE}(?:out of (?:10|ten))?{_BARE}\W*"
)
_BARE_NUMBER: Final = re.compile(rf"{_BARE}({_N})(?: ?(?:-|to|or|and) ?({_N}))?{_BARE}\W*")
_TEMPERATURE: Final = re.compile(
    r"\b((?:3[4-9]|4[0-3])(?:[.,]\d)?|9\d(?:[.,]\d)?|10[0-8](?:[.,]\d)?) ?(?:°"
    r"|degrees|deg)? ?(c|f|celsius|fahrenheit)?\b(?!\s?(?:/|over|kg|mg|%|years?"
    r"|weeks?|days?|bpm|cm|yo\b))"
)
_PRESSURE: Final = re.compile(r"\b([6-9]\d|1\d\d|2[0-4]\d) ?(?:/|over) ?([3-9]\d|1[0-4]\d)\b(?! ?10\b)")
_READING: Final = re.compile(
    r"\b\d+(?:[.,]\d+)? ?(?:mg/dl|mmol(?:/l)?|mmhg|bpm|%)(?!\w)|\b(?:hba1c|a1c"
    r"|peak flow|sugars?|glucose|blood sugar|pulse|heart rate|sats|oxygen"
    r"|cholesterol|ferritin|tsh|inr|egfr|psa)\b[^.,;?!]{0,25}?\b\d+(?:[.,]\d+)?(?:%"
    r"| ?bpm)?"
)
_DOSE: Final = re.compile(
    rf"\b{_N} ?(?:x ?\d+ ?)?(?:mg|mcg|milligrams?|micrograms?|ml|g|iu|units?|puffs?"
    rf"|tablets?|pills?|drops?|caps?(?:ules?)?)(?!\w)(?: (?:once|twice"
    rf"|{_N} times) (?:a|per) (?:day|week))?(?: (?:daily|a day|at night"
    rf"|in the morning|every \w+))?"
)
_WHO: Final = (
    r"(?:mum|mom|mother|dad|father|son|daughter|wife|husband|partner|sister|brother|gran|nan|grandma"
    r"|grandad|boy|girl"
    r"|baby|toddler|friend|boyfriend|girlfriend|uncle|aunt|niece|nephew|cousin|grandson|granddaughter"
    r"|child)(?: [a-z]+)?"
)
_AGE: Final = re.compile(
    r"(?<!at )\b(?:(\d{1,3}(?:\.\d)?)(?:[ -]?(?:years?|yrs?)[ -]old|[ -]?(?:yo|y/o|y\.o\.?))(?!\w)"
    r"|(\d{1,2})[ -](months?|weeks?|wks?|days?)[ -]old)\b"
)
_AGED: Final = re.compile(
    rf"(?<!since )(?<!when )(?<!until )(?<!till )(?<!if )(?:\b(?:i'm|i am|he's|he is|she's|she is|aged"
    rf"|just turned|turned|{_WHO}(?:'s| is|,))"
    rf"(?: now| about| only)? (\d{{1,3}})(?: years| yrs)?(?=\s*(?:$|[.,;!?)]|and\b|but\b|now\b|with\b"
    rf"|by the way\b|btw\b))(?! (?:and|,) (?:\d|a half))"
    rf"|(?:^|\bi'm [a-z]+, )(\d{{2}})(?=$|[,.]|[, ]+(?:male|female|m|f|man|woman)\b)(?<!^\d\d))"
)
_INFANT: Final = re.compile(
    r"\b(?:he|she|baby)(?:'s| is)(?: only| just| now| about| almost| nearly)* (\d{1,2})"
    r" (months?|weeks?|wks?|days?)(?= *(?:$|[.,;!?)]|and\b|but\b|now\b))"
)
_WEIGHT: Final = re.compile(
    r"\b\d{1,3}(?:[.,]\d+)? ?(?:kg|kgs|kilos?|kilograms?|lbs?|pounds|stone"
    r"|st)(?: \d{1,2}(?: ?(?:lbs?|pounds))?)?(?!\w)"
)
_HEIGHT: Final = re.compile(
    r"\b(?:[12][.,]\d{1,2} ?(?:m|metres?|meters?)?(?= |$|\W)|1\d\d ?cm|\d ?(?:ft"
    r"|foot|feet|')(?: ?\d{1,2}(?:\"| ?in(?:ches)?)?)?)"
)
_PREGNANT: Final = re.compile(
    rf"\b(?:{_N} (?:weeks?|wks?|months?) )?(?:pregnant|expecting(?= a| our"
    rf"|$))(?: (?:with (?:my|our) \w+|{_N} (?:weeks?|months?)))?|\b{_N} (?:weeks?"
    rf"|wks?) along\b"
)
_HOURS: Final = re.compile(
    rf"{_ABOUT}{_AMOUNT} ?(?:hours?|hrs?|h)\b|\b(?:badly|poorly|terribly|well|fine|ok"
    rf"|okay|hardly|barely|not (?:much|well|great|at all))\b"
)
_NAME: Final = re.compile(
    r"\b(?:[Mm]y name is|[Mm]y name's|I'm called|[Cc]all me|I go by|[Tt]his is)"
    r" ([A-Z][\w'-]+(?: [A-Z][\w'-]+)?)"
    r"|\b(?:[Ii]t's|[Ii]ts|[Tt]his is) ([A-Z][\w'-]+) (?:here|again|speaking)\b"
    r"|\bI'm ([A-Z][a-z]+)(?=, (?:aged )?\d{2}\b|, an? |$)(?!ish|ese)"
)
_PROGRESS: Final = re.compile(
    r"\b(?:(?:a (?:bit|little|lot)|much|slightly|slowly|gradually|steadily|getting"
    r"|got|gotten|definitely|way|even|still|about|just|pretty much) )*(?:better"
    r"|worse|the same|same|no (?:change|better|worse)|unchanged|improv\w+|easing"
    r"|stayed the same|up and down|spreading|bigger|smaller)\b"
)
_SIDE: Final = (
    r"(?:left|right|both|upper|lower|inner|outer|front|back|top|bottom|middle|other"
    r"|one|whole|behind|under|above|below|between|around|inside|near|in|on|at"
    r"|all over)"
)
_BODY: Final = (
    r"(?:abdomen|ankles?|arms?|armpits?|back|belly|bladder|breasts?|bum|bottom|buttocks?|cal(?:f|ves)"
    r"|cheeks?|chest|chin|collarbone|ears?|elbows?|eyes?|eyelids?|face|fingers?|fingertips?|foot|feet"
    r"|forearms?|forehead|groin|gums?|hands?|head|heels?|hips?|jaw|joints?|kidneys?"
    r"|knees?|kneecaps?|knuckles?|legs?|lips?|mouth|neck|nose|palms?|pelvis|penis"
    r"|ribs?|scalp|shins?|shoulders?|shoulder blades?|sides?"
    r"|sinuses|skin|soles?|spine|stomach|tailbone|temples?|testicles?|thighs?|throat"
    r"|thumbs?|toes?|toenails?|tongue|tonsils?|tooth|teeth|tummy|vagina|waist"
    r"|wrists?|body|hamstring|achilles|back of \w+ \w+|molars?|nipples?|scrotum"
    r"|vulva|navel|belly button)"
)
_PLACE: Final = re.compile(
    rf"\b(?:{_SIDE} |my |the |his |her |of |just |mostly |mainly |down |up |one "
    rf"|both |side )*{_BODY}(?: (?:and|or|to|down|up|side|of|on|in|the|my|his|her"
    rf"|into) (?:(?:{_SIDE}|the|my|his|her|of) )*{_BODY})*(?: side)?\b"
    r"|\b(?:on |the |my |just |only |mostly |mainly )*(?:left|right"
    r"|both)(?: (?:hand )?sides?| one| ones| of them)?\b|\ball over(?: \w+ \w+)?\b"
    r"|\beverywhere\b|\bone side\b"
)

_SHORT: Final = 80
"""A longer clause is never just one value; patterns for whole clauses are not tried on it."""

Reader: TypeAlias = Callable[[str], str | None]


def _first(pattern: re.Pattern[str]) -> Reader:
    def read(low: str) -> str | None:
        found = pattern.search(low)
        return found[0].strip() if found else None

    return read


def number_in(low: str) -> float | None:
    """The number that a clause consists of, apart from words such as `about`."""
    found = _BARE_NUMBER.fullmatch(low) if len(low) <= _SHORT else None
    return _number(found[1]) if found else None


def _number(text: str) -> float:
    return float(NUMBERS[text]) if text in NUMBERS else float(text.replace(",", "."))


def rating(low: str, *, asked: bool, top: int = 10) -> str | None:
    """A rating, such as `8/10`. Without `out of`, only in reply to a question for it."""
    short = asked and len(low) <= _SHORT
    found = _RATED.search(low) or (_BARE_RATING.fullmatch(low) if short else None)
    if found is None and asked:
        found = re.search(
            rf"\b(?:a|about|maybe|say|probably|around) ({_N})(?: or ({_N}))?(?=\s*(?:$|[,.]"
            rf"|at|when|today|now|but|out))",
            low,
        )
    if found is None or not 0 <= _number(found[1]) <= top:
        return None
    second = found[2] if found.re is not _RATED and found.lastindex == 2 and found[2] else None
    text = f"{_number(found[1]):g}" + (f"-{_number(second):g}" if second and _number(second) <= top else "")
    return f"{text}/{top}"


def when(low: str) -> str | None:
    """When something began: `Monday` in `since Monday`, `two days ago`."""
    found = _SINCE.search(low) or _STARTED.search(low)
    if found:
        return found[1].strip()
    bare = re.fullmatch(
        rf"(?:(?:it|that|this) )?(?:(?:was|started|began|since|from|about|around|on|in"
        rf"|i think|maybe|probably|just|only|it's|its|been|like|sometime|first|dunno"
        rf"|er+m?|um+|oh|well|late|early)[, ]+)*({MOMENT})\W*(?:or so|i think|maybe"
        rf"|probably|ish)?\W*",
        low,
    )
    return bare[1].strip() if bare else None


_PER: Final = re.compile(
    r"\b(?:once|twice|times|nights?|days?|hours?|mg|\d+|units?|glasses|tablets?|pills?|a bottle of \w+"
    r"|cups?|pints?|steps|bottles?|meals?)"
    r"(?: \w+){0,2}? (?:an?|per|each|every) (?:day|night|week|month|year|hour)\b|\b(?:an?|per) (?:day"
    r"|night|week)\b(?= *$)"
)


def span(low: str) -> str | None:
    """How long something has lasted: `about 3 weeks`."""
    if re.search(
        r"\b(?:ago|pregnant|old|every|wait|until|course|appointment in|in (?:a|two|three|\d) \w+ time)\b", low
    ):
        return None
    found = None if _INFANT.search(low) else _SPAN.search(_PER.sub(" ", low))
    return re.sub(r"^(?:for|like|just|only|maybe|probably) ", "", found[0]).strip() if found else None


def whole_span(low: str) -> bool:
    """Whether a clause is nothing but a span or a moment."""
    return len(low) <= _SHORT and bool(
        re.fullmatch(
            rf"(?:(?:it's|its|been|it has been|it's been|for|since|now|well|oh|er+m?|um+"
            rf"|i think|i'd say|maybe|probably|dunno|on|from|ever|has been"
            rf"|i've had it)[, ]*)*(?:{SPAN}|{MOMENT})(?: (?:now|already|so far|or so|i think"
            rf"|maybe|ish|on and off))*\W*",
            low,
        )
    )


def whole_place(low: str) -> str | None:
    """A place on the body, if a clause is nothing else: `the left one`, `my right ear`."""
    bare = re.sub(r"^(?:(?:it's|its|it is|in|on|just|mostly|mainly|only|well|er+m?|um+|oh)[, ]+)+", "", low)
    bare = re.sub(r"(?: mostly| mainly| i think)*[ .,!]*$", "", bare)
    found = _PLACE.search(bare)
    return found[0].strip() if found and found[0].strip() == bare.strip() else None


def temperature(low: str, *, asked: bool) -> str | None:
    """A body temperature, if one is asked for or the clause speaks of one."""
    if not asked and not re.search(r"\btemp|\bfever|thermometer|celsius|fahrenheit|°", low):
        return None
    found = _TEMPERATURE.search(low)
    return found[0].strip() if found else None


def reading(low: str, *, asked: bool) -> str | None:
    """A measured value with its name or unit: `blood pressure 150/95`, `sugar was 180`."""
    if found := _PRESSURE.search(low):
        return f"blood pressure {found[1]}/{found[2]}"
    if found := _READING.search(low):
        return found[0].strip()
    number = number_in(low) if asked else None
    return f"{number:g}" if number is not None else None


def age(low: str, *, asked: bool) -> str | None:
    """An age, such as `34` or `6 weeks`."""
    if found := _AGE.search(low):
        return found[1] if found[1] else f"{found[2]} {found[3]}"
    if found := _INFANT.search(low):
        return f"{found[1]} {found[2]}"
    if (found := _AGED.search(low)) and 0 < int(found[1] or found[2]) < 115:
        return found[1] or found[2]
    if asked:
        if found := re.fullmatch(rf"{_BARE}(\d{{1,2}}) ?(months?|weeks?|wks?|days?|mths?|mo)\b.*", low):
            return f"{found[1]} {found[2]}"
        number = number_in(low)
        return f"{number:g}" if number is not None and 0 < number < 115 else None
    return None


def measures(low: str, *, asked: bool) -> str | None:
    """Weight or height."""
    if re.search(r"\b(?:lost|lose|losing|gain\w*|put on)\b", low):
        return None
    found = [each[0].strip() for pattern in (_HEIGHT, _WEIGHT) if (each := pattern.search(low))]
    if not asked and not re.search(r"\bweigh|\btall\b|\bheight\b|\bbmi\b|\bi'm \d", low):
        return None
    return ", ".join(found) or None


PLAIN: Final[Mapping[str, Reader]] = {
    "often": _first(_OFTEN),
    "dose": _first(_DOSE),
    "pregnancy": _first(_PREGNANT),
    "hours": _first(_HOURS),
    "progress": _first(_PROGRESS),
    "place": _first(_PLACE),
}
"""The readers that read a question's answer and a volunteered value alike."""


def name(text: str) -> str | None:
    """A person's own name, as in `my name is Sam`. The text must have its capital letters."""
    found = _NAME.search(text)
    return next(filter(None, found.groups()), None) if found else None
