"""Finds what a message asks to be calculated, and words the result as a sentence. Without a model."""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_NUMBER: Final = r"(-?\d{1,6}(?:[.,]\d{1,4})?)"
_UNIT_PATTERNS: Final[Mapping[str, str]] = {
    "kg": r"kg|kgs|kilos?|kilograms?",
    "g": r"g|grams?",
    "mg": r"mg|milligrams?",
    "lb": r"lbs?|pounds?",
    "oz": r"oz|ounces?",
    "st": r"stones?",
    "m": r"m|met(?:er|re)s?",
    "cm": r"cm|centimet(?:er|re)s?",
    "mm": r"mm|millimet(?:er|re)s?",
    "km": r"km|kilomet(?:er|re)s?",
    "in": r"inch|inches",
    "ft": r"ft|feet|foot",
    "mi": r"miles?",
    "l": r"l|lit(?:er|re)s?",
    "ml": r"ml|millilit(?:er|re)s?",
    "cup": r"cups?",
    "kcal": r"kcal|calories",
    "kj": r"kj|kilojoules?",
    "c": r"°?c|(?:degrees )?celsius",
    "f": r"°?f|(?:degrees )?fahrenheit",
}
_UNIT: Final = "|".join(f"(?:{pattern})" for pattern in _UNIT_PATTERNS.values())
_CONVERSION: Final = re.compile(
    rf"{_NUMBER}\s?({_UNIT})\s(?:in|to|into|as)\s({_UNIT})\b"
    rf"|how many ({_UNIT}) (?:is|are|in) {_NUMBER}\s?({_UNIT})\b",
    re.IGNORECASE,
)
_BMI: Final = re.compile(r"\bbmi\b|\bbody mass index\b", re.IGNORECASE)
_METRES: Final = re.compile(rf"{_NUMBER}\s?(cm|m|met(?:er|re)s?|centimet(?:er|re)s?)\b", re.IGNORECASE)
_BARE_METRES: Final = re.compile(
    r"(?<![\d.,])([12][.,]\d{2})(?!\d|[.,]\d|\s?(?:kg|kilo|lb|pound|st))", re.IGNORECASE
)
_FEET: Final = re.compile(r"(\d)\s?(?:'|ft|feet|foot)\s?(\d{1,2})?", re.IGNORECASE)
_MASS: Final = re.compile(rf"{_NUMBER}\s?(kgs?|kilos?|kilograms?|lbs?|pounds?)\b", re.IGNORECASE)
_BARE_MASS: Final = re.compile(
    r"\b(?:weigh(?:ed|s|ing)?|at|with|were|was|be|got to|reach(?:ed)?)(?: about| around| only| just)? "
    r"(\d{2,3}(?:[.,]\d)?)(?![\d.,]*\s?(?:[\d'%]|cm|m\b|ft|feet|foot|inch|years?|weeks?|months?|st\b|stone))",
    re.IGNORECASE,
)
_POUND: Final = 0.45359237
_LOWEST_BMI, _HIGHEST_BMI = 12, 80  # outside of these, a number is not a weight in this unit
_WHOSE: Final = re.compile(
    r"\b(my (?P<relative>[\w-]+(?: [\w-]+)?)'s|his|her|their|my)(?: own| current)? (?:bmi|body mass)\b",
    re.IGNORECASE,
)
_ADULT_RELATIVES: Final = re.compile(
    r"\b(?:husband|wife|hubby|mum|mom|mother|dad|father|partner|spouse|fianc\w+|boss|colleague|gran\w*|nan)\b"
)
_REQUEST_START: Final = re.compile(
    r"(?:^|[,.;:-] *|\b(?:and|so|but|ok|please) )"
    r"(?=(?:what|how|can you|could you|calculate|convert|work out)\b)",
    re.IGNORECASE,
)
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH: Final = "|".join(_MONTHS)
_DAYS_SINCE: Final = re.compile(
    r"how (?:many days|long)\b[^?.]{0,30}?\bsince (?:the )?"
    rf"(?:(\d{{4}}-\d{{2}}-\d{{2}})|(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})(?:,? (\d{{4}}))?"
    rf"|({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?)",
    re.IGNORECASE,
)
_MAX_READ: Final = 500
"""How many characters of a message are searched."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool and its arguments. `whose` and `is_adult` are for wording the result."""

    tool: str
    arguments: dict[str, Any]
    whose: str = "your"
    is_adult: bool = True


def find_tool_request(
    message: str, measures: str = "", *, about: str = "", age: str = ""
) -> ToolRequest | None:
    """The calculation that a message asks for; None if it asks for none, or data is missing.

    `measures` and `age` were stated earlier, by the person about themselves or about the relative `about`.
    """
    text = " ".join(message[:_MAX_READ].replace("\u2019", "'").split())
    return _bmi(text, measures, about, age) or _conversion(text) or _days(text)


def split_tool_request(sentence: str) -> tuple[str, str]:
    """Split a sentence into its statement and the calculation that it asks for. The latter may be empty."""
    if not _is_request(sentence):
        return sentence, ""
    found = next(
        (each for each in _REQUEST_START.finditer(sentence) if _is_request(sentence[each.end() :])), None
    )
    return (sentence[: found.start()].strip(), sentence[found.end() :]) if found else (sentence, "")


def _is_request(text: str) -> bool:
    return bool(_BMI.search(text) or _conversion(text) or _days(text))


def result_sentence(request: ToolRequest, result: Mapping[str, Any]) -> str:
    """The result of a tool as a sentence."""
    match request.tool:
        case "body_mass_index":
            height, weight = request.arguments["height_m"], request.arguments["weight_kg"]
            start = f"At {height:.3g} m and {weight:.4g} kg, {request.whose} body mass index"
            index = f"{start} comes to {result['bmi']}"
            if not request.is_adult:
                return f"{index}. Under 18 that is read by age and sex, which a doctor or nurse can do. "
            return f"{index}, which is {result['range']} the range of 18.5 to 24.9 that is usual for adults. "
        case "convert_units":
            given = f"{request.arguments['amount']:g} {_unit_name(request.arguments['from_unit'])}"
            return f"{given} is {result['amount']:g} {_unit_name(str(result['unit']))}. "
        case _:
            days = result["days"]
            return f"Since {result['date']} it has been {days} {'day' if days == 1 else 'days'}. "


def _bmi(text: str, measures: str, about: str, age: str) -> ToolRequest | None:
    if not _BMI.search(text):
        return None
    found = _WHOSE.search(text)
    is_other = found is not None and found[0].lower().split()[0] != "my"
    relative = found["relative"] if found else ""
    if found is not None and bool(is_other or relative) != bool(about):
        measures = age = ""  # they are somebody else's
    height = _height(text) or _height(measures)
    weight = _weight(text, measures, height) if height else None
    if height is None or weight is None:
        return None
    years = re.match(r"\d+(?= ?(?:$|y))", age)
    if years:
        is_adult = int(years[0]) >= 18
    else:
        theirs = relative or (about if found is None else about or text if is_other else "")
        is_adult = not theirs or _ADULT_RELATIVES.search(theirs.lower()) is not None
    whose = found[1].lower().replace("my", "your", 1) if found else f"your {about}'s" if about else "the"
    arguments = {"height_m": round(height, 3), "weight_kg": round(weight, 2)}
    return ToolRequest(
        "body_mass_index", arguments, whose=whose, is_adult=is_adult and not _is_age_of_child(age)
    )


def _is_age_of_child(age: str) -> bool:
    return re.match(r"\d+[ -]?(?:month|week|day)", age) is not None


def _height(text: str) -> float | None:
    """The last height that a text states, in metres."""
    if metres := _last(_METRES, text):
        return _amount(metres[1]) / (100 if metres[2].lower().startswith("c") else 1)
    if feet := _last(_FEET, text):
        return int(feet[1]) * 0.3048 + int(feet[2] or 0) * 0.0254
    bare = _last(_BARE_METRES, text)
    return _amount(bare[1]) if bare else None


def _weight(text: str, measures: str, height: float) -> float | None:
    """The weight in kilograms. The message wins over `measures`; a bare number has the unit used there."""
    known = _last(_MASS, measures)
    if mass := _last(_MASS, text):
        return _amount(mass[1]) * _unit_of(mass)
    if bare := _BARE_MASS.search(text):
        amount = _amount(bare[1])
        usual = _unit_of(known) if known else 1
        fitting = (
            unit for unit in (usual, 1, _POUND) if _LOWEST_BMI <= amount * unit / height**2 <= _HIGHEST_BMI
        )
        return next((amount * unit for unit in fitting), None)
    return _amount(known[1]) * _unit_of(known) if known else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return deque(pattern.finditer(text), maxlen=1).pop() if pattern.search(text) else None


def _unit_of(mass: re.Match[str]) -> float:
    return _POUND if mass[2].lower().startswith(("lb", "pound")) else 1


def _conversion(text: str) -> ToolRequest | None:
    found = _CONVERSION.search(text)
    if found is None:
        return None
    amount, source, target = (
        (found[1], found[2], found[3]) if found[1] is not None else (found[5], found[6], found[4])
    )
    return ToolRequest(
        "convert_units", {"amount": _amount(amount), "from_unit": _unit(source), "to_unit": _unit(target)}
    )


def _days(text: str) -> ToolRequest | None:
    found = _DAYS_SINCE.search(text)
    if found is None:
        return None
    if found[1]:
        return ToolRequest("days_since", {"date": found[1]})
    day, month, year = (found[2], found[3], found[4]) if found[2] else (found[6], found[5], found[7])
    short = f"{_MONTHS.index(month.lower()) + 1:02}-{int(day):02}"
    return ToolRequest("days_since", {"date": f"{year}-{short}" if year else short})


def _amount(text: str) -> float:
    return float(text.replace(",", "."))


def _unit(text: str) -> str:
    return next(
        unit for unit, pattern in _UNIT_PATTERNS.items() if re.fullmatch(pattern, text, re.IGNORECASE)
    )


def _unit_name(unit: str) -> str:
    return {"c": "°C", "f": "°F"}.get(unit, unit)
