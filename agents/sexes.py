"""The sex of the person a conversation is about, and whether she is pregnant, if stated or implied."""

import re
from collections.abc import Mapping
from typing import Final

from agents.utterance import word_set

FEMALE: Final = "female"
MALE: Final = "male"

_MEN: Final = r"(?:man|guy|bloke|male|dude|lad|boy|gentleman|fella)"
_WOMEN: Final = r"(?:woman|female|girl|lady|lass)"
_STATED_SEX: Final = re.compile(
    r"\b(?:i'm|im|i am|as|being) (?:just |still |only )?(?:an? )?(?!not\b)(?:[\w-]+ (?:old )?){0,2}?"
    rf"(?:(?P<male>{_MEN})|(?P<female>{_WOMEN}))\b(?! (?:friend|doctor|made|flu|utd|united)\b)",
    re.IGNORECASE,
)
_FEMALE_WORDS: Final = word_set(
    "wife girlfriend daughter mother mum mom mam sister aunt grandmother gran grandma niece granddaughter "
    "woman girl fiancee stepdaughter stepmother"
)
_MALE_WORDS: Final = word_set(
    "husband boyfriend son father dad brother uncle grandfather grandad grandpa nephew grandson man boy "
    "stepson stepfather"
)
_MALE_COMPLAINTS: Final = re.compile(
    r"\bpenis|\bmy balls\b|\berecti|\bprostate\b|\bejaculat|\bforeskin|\btestic|\bvasectomy\b",
    re.IGNORECASE,
)
_FEMALE_COMPLAINTS: Final = re.compile(
    r"\bmy (?:\w+ )?(?:periods?|vagina|womb|uterus|ovar\w+|cervix|breasts?|menopause|smear)\b"
    r"|\bi'm (?:on|taking) the pill\b",
    re.IGNORECASE,
)


def sex_said(text: str) -> str:
    """The sex that a person states for themselves, as in `I'm a guy`; empty if they do not."""
    found = _STATED_SEX.search(text)
    return "" if found is None else MALE if found["male"] else FEMALE


def sex_of(known: Mapping[str, str]) -> str:
    """The sex of the person a conversation is about; empty if it is not known."""
    if relative := known.get("about_whom", ""):
        words = set(relative.lower().removesuffix("s").split())
        return (
            FEMALE
            if words & _FEMALE_WORDS
            else MALE
            if words & _MALE_WORDS
            else FEMALE
            if is_pregnant(known)
            else ""
        )
    if "sex" in known:
        return known["sex"]
    said = " ".join(known.get(kind, "") for kind in ("concern", "request"))
    if _MALE_COMPLAINTS.search(said):
        return MALE
    return FEMALE if is_pregnant(known) or _FEMALE_COMPLAINTS.search(said) else ""


def is_pregnant(known: Mapping[str, str]) -> bool:
    """Whether the person a conversation is about is known to be pregnant."""
    said = known.get("pregnancy", "").lower()
    return bool(re.search(r"pregnan|expecting", said)) and not re.match(
        r"(?:not|no|maybe|might|possibly)\b", said
    )
