"""Which built-in tool a person asks for in plain words, and what came of it in plain words."""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_NUMBER: Final = r"(-?\d{1,6}(?:[.,]\d{1,4})?)"
_NAMES: Final[Mapping[str, str]] = {
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
_UNIT: Final = "|".join(f"(?:{pattern})" for pattern in _NAMES.values())
_CONVERT: Final = re.compile(
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
_FEWEST, _MOST = 12, 80  # the indices that people have
_WHOSE: Final = re.compile(
    r"\b(my (?P<relative>[\w-]+(?: [\w-]+)?)'s|his|her|their|my)(?: own| current)? (?:bmi|body mass)\b",
    re.IGNORECASE,
)
_GROWN: Final = re.compile(
    r"\b(?:husband|wife|hubby|mum|mom|mother|dad|father|partner|spouse|fianc\w+|boss|colleague|gran\w*|nan)\b"
)
_WORK_OUT: Final = re.compile(
    r"(?:^|[,.;:-] *|\b(?:and|so|but|ok|please) )"
    r"(?=(?:what|how|can you|could you|calculate|convert|work out)\b)",
    re.IGNORECASE,
)
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH: Final = "|".join(_MONTHS)
_SINCE: Final = re.compile(
    r"how (?:many days|long)\b[^?.]{0,30}?\bsince (?:the )?"
    rf"(?:(\d{{4}}-\d{{2}}-\d{{2}})|(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})(?:,? (\d{{4}}))?"
    rf"|({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?)",
    re.IGNORECASE,
)
_MOST_READ: Final = 500


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool to be used, and with what; `whose` it is and whether they are `grown` bear on what is told."""

    tool: str
    arguments: dict[str, Any]
    whose: str = "your"
    grown: bool = True


def wish_in(message: str, measures: str = "", *, about: str = "", age: str = "") -> Wish | None:
    """What a message asks to be worked out; None where it asks for nothing, or not enough is said.

    `measures` and `age` were given before, of the person or of the relative whom the talk is `about`.
    """
    text = " ".join(message[:_MOST_READ].replace("\u2019", "'").split())
    return _bmi(text, measures, about, age) or _conversion(text) or _days(text)


def asked_for(sentence: str) -> tuple[str, str]:
    """The statement in a sentence, and what it asks to be worked out if it does."""
    if not _is_wish(sentence):
        return sentence, ""
    found = next((each for each in _WORK_OUT.finditer(sentence) if _is_wish(sentence[each.end() :])), None)
    return (sentence[: found.start()].strip(), sentence[found.end() :]) if found else (sentence, "")


def _is_wish(text: str) -> bool:
    return bool(_BMI.search(text) or _conversion(text) or _days(text))


def told(wish: Wish, result: Mapping[str, Any]) -> str:
    """What a tool found, as a sentence."""
    match wish.tool:
        case "body_mass_index":
            height, weight = wish.arguments["height_m"], wish.arguments["weight_kg"]
            at = f"At {height:.3g} m and {weight:.4g} kg, {wish.whose} body mass index"
            index = f"{at} comes to {result['bmi']}"
            if not wish.grown:
                return f"{index}. Under 18 that is read by age and sex, which a doctor or nurse can do. "
            return f"{index}, which is {result['range']} the range of 18.5 to 24.9 that is usual for adults. "
        case "convert_units":
            given = f"{wish.arguments['amount']:g} {_spoken(wish.arguments['from_unit'])}"
            return f"{given} is {result['amount']:g} {_spoken(str(result['unit']))}. "
        case _:
            days = result["days"]
            return f"Since {result['date']} it has been {days} {'day' if days == 1 else 'days'}. "


def _bmi(text: str, measures: str, about: str, age: str) -> Wish | None:
    if not _BMI.search(text):
        return None
    found = _WHOSE.search(text)
    other = found is not None and found[0].lower().split()[0] != "my"
    relative = found["relative"] if found else ""
    if found is not None and bool(other or relative) != bool(about):
        measures = age = ""  # they are somebody else's
    height = _height(text) or _height(measures)
    weight = _weight(text, measures, height) if height else None
    if height is None or weight is None:
        return None
    years = re.match(r"\d+(?= ?(?:$|y))", age)
    if years:
        grown = int(years[0]) >= 18
    else:
        theirs = relative or (about if found is None else about or text if other else "")
        grown = not theirs or _GROWN.search(theirs.lower()) is not None
    whose = found[1].lower().replace("my", "your", 1) if found else f"your {about}'s" if about else "the"
    arguments = {"height_m": round(height, 3), "weight_kg": round(weight, 2)}
    return Wish("body_mass_index", arguments, whose=whose, grown=grown and not _is_age_of_child(age))


def _is_age_of_child(age: str) -> bool:
    return re.match(r"\d+[ -]?(?:month|week|day)", age) is not None


def _height(text: str) -> float | None:
    """The height in metres, the latest that a text gives."""
    if metres := _last(_METRES, text):
        return _amount(metres[1]) / (100 if metres[2].lower().startswith("c") else 1)
    if feet := _last(_FEET, text):
        return int(feet[1]) * 0.3048 + int(feet[2] or 0) * 0.0254
    bare = _last(_BARE_METRES, text)
    return _amount(bare[1]) if bare else None


def _weight(text: str, measures: str, height: float) -> float | None:
    """The weight in kilograms: what the message says wins, and a mere number is of the unit used before."""
    known = _last(_MASS, measures)
    if mass := _last(_MASS, text):
        return _amount(mass[1]) * _unit_of(mass)
    if bare := _BARE_MASS.search(text):
        amount = _amount(bare[1])
        usual = _unit_of(known) if known else 1
        fitting = (unit for unit in (usual, 1, _POUND) if _FEWEST <= amount * unit / height**2 <= _MOST)
        return next((amount * unit for unit in fitting), None)
    return _amount(known[1]) * _unit_of(known) if known else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return deque(pattern.finditer(text), maxlen=1).pop() if pattern.search(text) else None


def _unit_of(mass: re.Match[str]) -> float:
    return _POUND if mass[2].lower().startswith(("lb", "pound")) else 1


def _conversion(text: str) -> Wish | None:
    found = _CONVERT.search(text)
    if found is None:
        return None
    amount, source, target = (
        (found[1], found[2], found[3]) if found[1] is not None else (found[5], found[6], found[4])
    )
    return Wish(
        "convert_units", {"amount": _amount(amount), "from_unit": _unit(source), "to_unit": _unit(target)}
    )


def _days(text: str) -> Wish | None:
    found = _SINCE.search(text)
    if found is None:
        return None
    if found[1]:
        return Wish("days_since", {"date": found[1]})
    day, month, year = (found[2], found[3], found[4]) if found[2] else (found[6], found[5], found[7])
    short = f"{_MONTHS.index(month.lower()) + 1:02}-{int(day):02}"
    return Wish("days_since", {"date": f"{year}-{short}" if year else short})


def _amount(text: str) -> float:
    return float(text.replace(",", "."))


def _unit(text: str) -> str:
    return next(unit for unit, pattern in _NAMES.items() if re.fullmatch(pattern, text, re.IGNORECASE))


def _spoken(unit: str) -> str:
    return {"c": "°C", "f": "°F"}.get(unit, unit)
