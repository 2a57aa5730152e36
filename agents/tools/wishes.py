"""Which built-in tool a person asks for in plain words, and what came of it in plain words."""

import re
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
    """A tool to be used, and with what."""

    tool: str
    arguments: dict[str, Any]


def wish_in(message: str, measures: str = "") -> Wish | None:
    """What a message asks to be worked out; None where it asks for nothing, or not enough is said.

    `measures` are those that the person gave before, in their own words.
    """
    text = " ".join(message[:_MOST_READ].replace("\u2019", "'").split())
    return _bmi(text, measures) or _conversion(text) or _days(text)


def told(wish: Wish, result: Mapping[str, Any]) -> str:
    """What a tool found, as a sentence."""
    match wish.tool:
        case "body_mass_index":
            return (
                f"Your body mass index comes to {result['bmi']}, which is {result['range']} "
                "the range of 18.5 to 24.9 that is usual for adults. "
            )
        case "convert_units":
            given = f"{wish.arguments['amount']:g} {_spoken(wish.arguments['from_unit'])}"
            return f"{given} is {result['amount']:g} {_spoken(str(result['unit']))}. "
        case _:
            days = result["days"]
            return f"Since {result['date']} it has been {days} {'day' if days == 1 else 'days'}. "


def _bmi(text: str, measures: str) -> Wish | None:
    if not _BMI.search(text):
        return None
    text = f"{text}, {measures}"
    mass = _MASS.search(text)
    if mass is None:
        return None
    weight = _amount(mass[1]) * (0.45359237 if mass[2].lower().startswith(("lb", "pound")) else 1)
    if metres := _METRES.search(text):
        height = _amount(metres[1]) / (100 if metres[2].lower().startswith("c") else 1)
    elif feet := _FEET.search(text):
        height = int(feet[1]) * 0.3048 + int(feet[2] or 0) * 0.0254
    elif bare := _BARE_METRES.search(text):
        height = _amount(bare[1])
    else:
        return None
    return Wish("body_mass_index", {"height_m": round(height, 3), "weight_kg": round(weight, 2)})


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
