"""What can be the value of a kind of fact: a place names a part of the body, a reading has a number."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from agents.local.lexicon import word_set, words_of
from agents.local.patterns import DOSE, HAS_MOMENT, HAS_SPAN, NUMBERS, OFTEN
from agents.local.reading import Text

NAMED: Final = ("medications", "other_medicines", "conditions", "allergies")
"""Kinds whose values are names, of which a reply may list several."""

_ELSEWHERE: Final = re.compile(
    r"\b(?:never mind|hang on|hold on|make (?:that|it)|call it|i meant|same as|as i said|like i said"
    r"|as before"
    r"|answer (?:that|you|your)|other way (?:round|around)|the (?:opposite|reverse)|forget (?:it|that|about"
    r"|what|the)|used to)\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"(?:i|it|he|she|they|that|this|we|you|there)(?:'s|'ve|'m|'d|'ll|'re)?\b(?! (?:side|one|part|spot)\b)",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"\b(?:left|right|both|upper|lower|middle|centre|center|top|bottom|front|back|inner|outer|inside|outside"
    r"|all over|everywhere|only one|one side"
    r"|sides?|behind|between|under|above|below|around|deep|surface|spot|here"
    r"|whole)\b",
    re.IGNORECASE,
)
_BEGINS_TIME: Final = re.compile(
    r"(?:when|after|before|while|during|right|just|since|as|around|over|from|ever|shortly|soon|out of|at|in"
    r"|on|by)\b",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"\b(?:spring|summer|autumn|fall|winter|weekend|morning|afternoon|evening|night|noon|lunch|holidays?"
    r"|school"
    r"|always|years|months|weeks|birth|teens?|teenager|kid|child|baby|long|while|recently|day|time|life"
    r"|then)\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(
    rf"\d|\b(?:{'|'.join(NUMBERS)}|half|high|low|normal|fine|ok|okay|no|not|none|never|don't|haven't)\b",
    re.IGNORECASE,
)
_OF_SLEEP: Final = re.compile(
    r"\b(?:sle(?:ep|pt)\w*|hours?|nights?|well|bad\w*|poor\w*|terribl\w+|little|much|enough|hardly|barely|awful"
    r"|wak\w+|woke|broken|restless\w*|lights?|good|great)\b",
    re.IGNORECASE,
)
_OFTEN: Final = re.compile(
    rf"\d|\b(?:{'|'.join(NUMBERS)}|once|twice|every|each|most|rarely|seldom|often|always|constant\w*"
    rf"|sometimes"
    r"|daily|weekly|monthly|times?|days?|nights?|weeks?|months?|hours?|now and|on and off|never|hardly)\b",
    re.IGNORECASE,
)
_WHEN_IT_SUITS: Final = re.compile(
    r"\b(?:asap|soon|any|whenever|today|tomorrow|tonight|mornings?|afternoons?|evenings?|nights?|weeks?"
    r"|months?|days?"
    r"|weekends?|hurry|urgent\w*|possible|early|late|before|after|lunch\w*|end|year|rush)\b|\d",
    re.IGNORECASE,
)
_COURSE: Final = re.compile(
    r"\b(?:better|worse|same|change\w*|improv\w*|gone|up|down|eas\w+|spread\w*|grow\w*|bigger|smaller"
    r"|stable|steady"
    r"|less|more|slow\w*|heal\w*|settl\w*|good|bad|stayed|fluctuat\w*|comes?|goes)\b",
    re.IGNORECASE,
)
_EARLIER: Final = re.compile(
    r"\b(?:before|first|ever|again|last|ago|when|same|similar|since|had|happen(?:s|ed)|as an?|in my|got)\b",
    re.IGNORECASE,
)
_OF_CYCLES: Final = re.compile(
    r"\b(?:period\w*|late|early|overdue|due|regular\w*|irregular\w*|menopaus\w+|bleed\w*|spotting|cycles?|pill|coil"
    r"|iud|implant|pregnan\w+|stopped|missed|skipped|normal|heavy|light|on it|now)\b",
    re.IGNORECASE,
)
_DENIES: Final = word_set("no not none never nothing nope nah nil zero neither any anything don't haven't")
"""Words that no name has: a value with one of them denies rather than names."""


_NAMING: Final = frozenset((*NAMED, "associated_symptoms"))
_NAMES_NOTHING: Final = word_set(
    "a an the i it so too to of as all both some same before usual normal fine good great well ok okay "
    "otherwise lots lot loads few many several plenty list things stuff everything them those these wish "
    "healthy perfect clue me never have not none whatsoever na matter doesn't thanks later enough cool"
)


def _names(value: str) -> bool:
    """Whether words can name something: `fine otherwise`, `too many to list` and a mere mark cannot."""
    words = {word.text for word in words_of(value) if word.text[0].isalnum()}
    return bool(words - _NAMES_NOTHING)


def fits(kind: str, value: str, text: Text) -> bool:
    """Whether words can be the value of a kind; `text` is the message that they are from."""
    if not value or _ELSEWHERE.search(value) or (kind in _NAMING and not _names(value)):
        return False
    match kind:
        case "location":
            place = next(text.has("body.parts"), None) is not None or _PLACE.search(value) is not None
            return place and _CLAUSE.match(value) is None
        case "onset" | "duration" | "taken_for":
            timed = (HAS_MOMENT, HAS_SPAN, _TIME)
            clause = _CLAUSE.match(value) is not None
            return _BEGINS_TIME.match(value) is not None or any(
                each.search(value) for each in timed[: 2 if clause else 3]
            )
        case "triggers" | "relief":
            if HAS_SPAN.fullmatch(value) or re.match(
                r"(?:not|no|nothing|hardly|never|very little|for a)\b", value, re.IGNORECASE
            ):
                return False
            if not re.search(r"[a-z]{3}", re.sub(r"\bnot\b", "", value.lower())):  # `6, not 8`
                return False
            return (
                _CLAUSE.match(text.stated) is None
                or re.search(r"\b(?:when|after|if|with)\b", value) is not None
            )
        case "medications" | "other_medicines" | "conditions" | "allergies":
            others = next(text.has("people.relatives"), None)
            other = re.match(r"(?:to|once|twice|\w+ times)\b", value, re.IGNORECASE)  # a wish, or how often
            clause = (
                _CLAUSE.match(value) is not None
                or re.search(r" (?:when|it) ", value) is not None
                or other is not None
            )
            a_time = HAS_SPAN.fullmatch(value) is not None
            denies = {word.text for word in words_of(value)} & _DENIES
            return others is None and not clause and not a_time and not denies and len(value.split()) <= 8
        case "readings" | "measures" | "dose" | "temperature":
            a_moment = HAS_MOMENT.fullmatch(value) or HAS_SPAN.fullmatch(value)
            return _FIGURE.search(value) is not None and a_moment is None
        case "sleep_hours":
            return _FIGURE.search(value) is not None or _OF_SLEEP.search(value) is not None
        case "frequency":
            return _OFTEN.search(value) is not None or OFTEN.search(value) is not None
        case "deadline" | "preferred_time":
            return any(each.search(value) for each in (_WHEN_IT_SUITS, HAS_MOMENT, _TIME))
        case "previous_episodes":
            return any(each.search(value) for each in (HAS_MOMENT, HAS_SPAN, _TIME, _OFTEN, _EARLIER))
        case "cycle":
            return any(each.search(value) for each in (HAS_MOMENT, HAS_SPAN, _TIME, _OFTEN, _OF_CYCLES))
        case "substances":
            return re.match(r"(?:it|they|that|this)\b", value, re.IGNORECASE) is None
        case "progression":
            return _COURSE.search(value) is not None and len(value.split()) <= 12
        case _:
            return True


def turns_elsewhere(value: str) -> bool:
    """Whether a reply that fits nothing turns elsewhere: `hang on, the bell rang`, not `with the move`."""
    return _ELSEWHERE.search(value) is not None or _CLAUSE.match(value) is not None


_BETWEEN_ITEMS: Final = re.compile(
    r"\s*(?:[,;&()]|\.(?=\s|$)|\band\b|\bplus\b|\boh\b|\balso\b)[\s,;.()]*", re.IGNORECASE
)
_BEFORE_ITEM: Final = re.compile(
    r"^(?:(?:yes|yeah|yep|well|um|a bit of|bit of|some|only|just|sometimes|usually|i take"
    r"|i'm on|i am on|i use"
    r"|i have|i've got|i'm allergic to|allergic to|taking|on|to|mostly|occasionally|mild|slight"
    r"|(?:put|write|note|add|jot)(?: down| in)?|(?:i )?avoid"
    r"|allerg(?:y|ies):|med(?:s|ications?):|conditions?:)\s+)+",
    re.IGNORECASE,
)
_NOT_CERTAIN: Final = re.compile(
    r"^(?:i think|i suspect|i believe|possibly|perhaps|maybe)(?: maybe| also)? (?=\w)", re.I
)
_BEHIND_ITEM: Final = re.compile(
    r"\s+(?:sometimes|mainly|usually|daily|too|as well|i think|at the moment|now|occasionally|please"
    r"|only|allergy|mostly|again|(?:on|to) the list|for sure|definitely"
    r"|once in a while|now and then|lol|haha|lmao|tho|unfortunately|sadly|i guess|i suppose|i believe)$",
    re.IGNORECASE,
)
_NO_ITEM: Final = word_set(
    "i it he she they that this we you not no none nothing but because when if is are was were brings makes "
    "give "
    "gives forget forgot know think don't doesn't haven't hate can't never only what which who has had have "
    "been "
    "apart except other from used might could may yes sure never brought does do would took taking depends "
    "whatever whatevers cheapest "
    "anything family ok okay to twice once weekly know until take takes need get gets got off "
    "stopped quit works make causes cause brings bring"
)


_UNSURE: Final = re.compile(
    r"(?:but |though )?(?:i'm |i am )?(?:not (?:[\w%]+ )?(?:sure|certain)|unsure|uncertain)"
    r"(?: about (?:that|it|the last)(?: one)?)?"
    r"|(?:never|not)(?: been)? (?:tested|confirmed)|haven't been tested",
    re.IGNORECASE,
)
"""What is said of the name before it: `maybe penicillin, not sure`."""

_AND_THEN: Final = re.compile(
    r"[ ,]*\b(?:every )?(?:now and then|now and again|on and off|once in a while)\b", re.IGNORECASE
)


_BY_THE_WAY: Final = word_set(
    "sadly unfortunately luckily thankfully apparently obviously probably definitely maybe honestly anyway"
)


def listed(value: str, kind: str, relatives: Collection[str]) -> tuple[str, ...]:
    """The names that a reply lists, each as it was written; none where it is more than a list. What is said
    of relatives is left out.
    """
    items: list[str] = []
    for piece in _BETWEEN_ITEMS.split(_AND_THEN.sub("", value)):
        if items and _UNSURE.fullmatch(piece.strip(" .!?")):
            items[-1] = f"possibly {items[-1].removeprefix('possibly ')}"
        elif piece.strip():
            items.append(_item(piece))
    items = [each for each in items if each and not set(each.lower().split()) & set(relatives)]
    items = [each for each in items if each.lower() not in _BY_THE_WAY]
    if kind not in NAMED or not items or any(_is_no_name(each) for each in items):
        return ()
    return tuple(dict.fromkeys(items))


def _item(text: str) -> str:
    text = _BEFORE_ITEM.sub("", text.strip(" .,!?'\"()-"), count=1)
    text = _NOT_CERTAIN.sub("possibly ", text)
    while (shorter := _BEHIND_ITEM.sub("", text)) != text:
        text = shorter
    return text


def _is_no_name(item: str) -> bool:
    words = [word.text for word in words_of(item)]
    timed = HAS_SPAN.search(item) or HAS_MOMENT.search(item) or DOSE.fullmatch(item)
    return (
        bool(timed)
        or len(words) > 5
        or bool(set(words) & (_NO_ITEM | _DENIES))
        or not _names(item)
        or not re.search(r"[a-z]{2}", item.lower())
    )


def fragments(text: str) -> Iterator[str]:
    """The pieces of a message between its marks, each without what leads up to it."""
    for piece in re.split(r"[.,;!]\s*|\b(?:and|but|oh)\b", text):
        if piece.strip():
            yield piece.strip()
