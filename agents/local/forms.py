"""What the whole of a short reply can only be by its form: a time, a place, a dose, how it has developed."""

import re
from collections.abc import Collection
from typing import Final

from agents.local.lexicon import word_set, words_of
from agents.local.patterns import DOSE, MOMENT, OFTEN, RATED, SPAN
from agents.local.reading import Said

_SPAN: Final = re.compile(rf"(?:it's been |for )*({SPAN})(?: now| already| or so)*", re.IGNORECASE)
_SINCE: Final = re.compile(r"(?:it's been |ever )*(?:since|starting) (?!then\b|it\b)(.+)", re.IGNORECASE)
_MOMENT: Final = re.compile(rf"(?:in |on |from )?({MOMENT})", re.IGNORECASE)
_COURSE: Final = re.compile(
    r"(?:(?:it's|it is|they're|slowly|definitely|maybe|a bit|much|a lot|still|just|now|gradually) )*"
    r"(?:(?:getting|got|gotten|becoming) (?:(?:a bit|a lot|much|slowly|any|even) )*(?:better|worse)|improving"
    r"|about the same|no change|(?:a bit|a lot|much|slightly) better)"
    r"(?: (?:now|slowly|every day|by the day|lately|i think|over time))*",
    re.IGNORECASE,
)
_SWAYED: Final = re.compile(
    r"((?:when|whenever|if|after|every time) .{3,60}?),? "
    r"(?:it's|its|it is|it gets|that's when it's|it feels|it hurts)(?: (?:much|a lot|even|way|always|a bit))*"
    r" (worse|more|better|less)",
    re.IGNORECASE,
)
_SWAYS: Final = re.compile(
    r"(?:(?:it's|its|it is|always|much|mostly|usually|a bit) )*(worse|worst|better|best)"
    r" ((?:when|whenever|at|in the|after|during|with|if|on|before|by) .{2,60})",
    re.IGNORECASE,
)
_HELPS: Final = re.compile(
    r"(?!(?:nothing|it|that|this|what|which|who|i|you|they|he|she|no)\b)([\w' -]{2,40}?)"
    r"(?: (?:really|always|usually|sometimes|does|seems to))*"
    r" (?:helps?|eases it|makes it (better|worse))(?: a bit| a lot)?",
    re.IGNORECASE,
)
_LIVES: Final = re.compile(
    r"(?:i'm |i am |i've been )?(?:an? )?(?:strict |mostly )?"
    r"(?:vegetarian|vegan|veggie|pescatarian|teetotal|non-?smoker|ex-?smoker|smoker)\b.{0,30}",
    re.IGNORECASE,
)
_PLACES: Final = word_set(
    ", . left right both upper lower inner outer inside outside front top bottom side sides middle centre "
    "center behind under above below between around near on in at of the my his her a and or one all over "
    "just only mostly mainly whole back bit up down along across"
)
_SIDED: Final = re.compile(r"\b(?:left|right|both|upper|lower|inside|outside|in|on)\b", re.IGNORECASE)
_TIMES: Final = frozenset(("onset", "duration"))
_TAKEN: Final = frozenset(("medications", "other_medicines"))
_NAMES: Final = frozenset(("conditions", "allergies"))
_PEOPLE: Final = frozenset(("support", "with_whom"))
_IT: Final = frozenset(("quality", "associated_symptoms"))
_SWAY: Final = frozenset(("triggers", "relief"))
_NEVER: Final = {
    "dose": _TAKEN | _NAMES | _IT | _PEOPLE | _SWAY | {"tried", "goal", "effect", "reason"},
    "duration": _NAMES | _IT | _PEOPLE | _SWAY | {"tried", "goal", "effect", "location", "bedtime", "needs"},
    "onset": _NAMES | _IT | _PEOPLE | {"tried", "goal", "effect", "location", "bedtime", "needs"},
    "frequency": _NAMES | _IT | {"location"},
    "progression": _TAKEN | _NAMES | _IT | _PEOPLE | _SWAY | {"tried", "effect", "location"},
    "location": _TAKEN | _NAMES | _IT | _PEOPLE | _TIMES | _SWAY | {"tried", "progression"},
    "triggers": _TIMES | _TAKEN | _NAMES | _PEOPLE | _IT | {"location", "progression"},
    "relief": _TIMES | _TAKEN | _NAMES | _PEOPLE | _IT | {"location", "progression"},
    "habits": _NAMES | {"other_medicines"},
}
"""The kinds that a reply of each form is no value of."""


def of_another_kind(reply: str, asked: Collection[str], parts: Collection[str]) -> Said | None:
    """What a reply says that by its form cannot be of the kinds asked for; `parts` are those of a body."""
    said = _by_form(reply, parts)
    if said is None or not asked or said.kind in asked or (said.kind in _TIMES and _TIMES & {*asked}):
        return None
    if said.kind == "location" and "conditions" in asked and not _SIDED.search(reply):
        return None  # `my back` may be one
    return said if {*asked} <= _NEVER[said.kind] else None


def _by_form(reply: str, parts: Collection[str]) -> Said | None:
    if DOSE.fullmatch(reply):
        return Said("dose", reply)
    if span := _SPAN.fullmatch(reply):
        return Said("duration", span[1])
    if since := _SINCE.fullmatch(reply):
        return Said("onset", since[1])
    if (moment := _MOMENT.fullmatch(reply)) and not RATED.fullmatch(reply):
        return Said("onset", moment[1])
    if OFTEN.fullmatch(reply):
        return Said("frequency", reply)
    if _COURSE.fullmatch(reply):
        return Said("progression", reply)
    if swayed := _SWAYED.fullmatch(reply):
        return Said("triggers" if swayed[2].lower() in ("worse", "more") else "relief", swayed[1])
    if sways := _SWAYS.fullmatch(reply):
        return Said("triggers" if sways[1].lower() in ("worse", "worst") else "relief", sways[2])
    if helps := _HELPS.fullmatch(reply):
        return Said("triggers" if (helps[2] or "").lower() == "worse" else "relief", helps[1])
    if _LIVES.fullmatch(reply):
        return Said("habits", reply)
    words = [word.text for word in words_of(reply)]
    named = [word for word in words if word in parts or word.removesuffix("s") in parts]
    return Said("location", reply) if named and not {*words} - {*named} - _PLACES else None
