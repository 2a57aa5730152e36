"""What a person stated, found by rules: each fact has its kind, its value and the turn it came from."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from agents.values import Fact

_SPAN: Final = (
    r"(?:about |around |almost |over |nearly )?"
    r"(?:a few|a couple of|several|an?|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,3})"
    r" (?:minute|hour|day|week|month|year)s?"
)
_MOMENT: Final = (
    r"(?:this morning|last night|yesterday|today|last (?:week|month|year)"
    r"|(?:last |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:january|february|march|april|may|june|july|august|september|october|november|december)"
    rf"|{_SPAN} ago)"
)
_COMPLAINT: Final = (
    r"((?:back|stomach|belly|knee|neck|shoulder|chest|joint|muscle|eye|foot|leg|arm|hip|wrist|ankle)"
    r" ?(?:pain|ache|cramps?)"
    r"|headaches?|migraines?|fever|cough|cold|flu|nausea|dizziness|sore throat|rash|diarrhea|heartburn"
    r"|cramps|insomnia|anxiety|panic attacks?|fatigue|runny nose|vomiting|swelling|earache|toothache|pain)"
)
_HAVING: Final = (
    r"(?:i am|i'm|i have|i've|having|had|got|get|getting|with|suffer from|suffering from|feel|there is)"
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_HURTS: Final = _pattern(
    r"\bmy ((?:left |right |lower |upper )?[a-z]+) (?:hurts?|aches?|is (?:hurting|aching|sore|swollen))\b"
)
_REPORTED: Final = _pattern(rf"\b{_HAVING}(?: \w+){{0,3}}? {_COMPLAINT}\b")
_NAMED: Final = _pattern(rf"(?:an? |my |some )?{_COMPLAINT}\b")
_DENIED: Final = _pattern(rf"\b(?:no|not|without|don't have|never)(?: \w+){{0,2}}? {_COMPLAINT}\b")
_RATED: Final = _pattern(r"\b(10|[0-9])(?:\s*/\s*10|\s+out of (?:10|ten))\b")
_ONLY_NUMBER: Final = _pattern(
    r"(?:(?:it'?s|it is|maybe|about|around|i'?d say|i would say|probably|like) )*(?:an? )?(10|[0-9])"
)
_TAKES: Final = _pattern(
    r"\b(?:i(?:'m| am)? (?:take|taking|took|use|using)|i've been taking)"
    r" ((?!anything|nothing|care|it\b)[a-z][\w-]{2,30})"
)
_DURATION: Final = _pattern(
    rf"\b(?:for|lasts?|lasted|it's been|it has been) (?:the (?:last|past) )?({_SPAN})\b"
)
_ONSET: Final = _pattern(rf"\b(?:since|started|began|starting|from|first) (?:on |at |in )?({_MOMENT})")
_ONLY_MOMENT: Final = _pattern(rf"(?:i think |maybe |about |on |in )?({_MOMENT})")
_ONLY_SPAN: Final = _pattern(rf"(?:for )?({_SPAN})")
_QUESTION: Final = _pattern(r"(?:what|who|how|why|when|which|can|could|should|do|does|is|are|will)\b")
_NO_ANSWER: Final = _pattern(
    r"(?:please|not sure|no idea|hm+|i'm|i'd"
    r"|i (?:want|need|would|can't|cannot|feel|am|don't know|do not know))\b"
)

_AROUND: Final = " .,;:!?'\"()*-~\u2026\u201c\u201d"
_MOST_READ: Final = 2_000  # of a long message, the beginning is searched for facts
_FREE: Final = frozenset(("location", "quality"))
_YES_OR_NO: Final = frozenset(("triggers", "associated_symptoms", "medications", "conditions", "allergies"))
_NONE: Final = frozenset(("no", "none", "nope", "nothing", "not really", "not that i know", "no, nothing"))
_SOME: Final = frozenset(("yes", "yeah", "yep", "yes i do", "yes, i do", "i do", "i have"))
_MOST_ANSWER: Final = 80
_WORDS: Final = ((1, "mild"), (4, "moderate"), (7, "severe"))
_UNCOUNTED: Final = frozenset(
    (
        "nausea",
        "dizziness",
        "flu",
        "diarrhea",
        "insomnia",
        "anxiety",
        "fatigue",
        "heartburn",
        "pain",
    )
)


def stated(message: str, asked: tuple[str, ...], turn: int, known: Mapping[str, str]) -> tuple[Fact, ...]:
    """The facts in a message, read after a question that asked for the kinds in `asked`."""
    text = " ".join(message[:_MOST_READ].replace("\u2019", "'").split())
    found = dict(_found(text, asked))
    if not found and len(asked) == 1 and (answer := _short_answer(text, asked[0])):
        found[asked[0]] = answer
    if found.get("concern") == known.get("concern") and "concern" in known:
        found.pop("concern", None)
    return tuple(Fact(kind=kind, value=value[:200], turn=turn) for kind, value in found.items())


def restated(fact: Fact, about: str | None) -> str:
    """A fact as a sentence about the person that needs no other."""
    subject = about or "the complaint"
    match fact.kind:
        case "severity":
            number = int(fact.value.partition("/")[0])
            return f"User rates {about or 'the'} severity as {number} out of 10 ({severity_word(number)})"
        case "onset":
            return f"User says {_the(subject)} started {fact.value}"
        case "duration":
            return f"User has had {_the(subject)} for {fact.value}"
        case "medications" | "conditions" | "allergies":
            return f"User says about their {fact.kind}: {fact.value}"
        case _:
            return f"User says about the {fact.kind.replace('_', ' ')} of {_the(subject)}: {fact.value}"


def severity_word(rating: int) -> str:
    """A rating out of 10 in a word; 0 is none."""
    return next((word for least, word in reversed(_WORDS) if rating >= least), "no")


def with_article(thing: str) -> str:
    """`a headache`, but `headaches` and `fever`."""
    last = thing.rsplit(" ", 1)[-1].lower()
    if thing.startswith("no ") or last.endswith("s") or last in _UNCOUNTED:
        return thing
    return f"{'an' if thing[:1].lower() in 'aeiou' else 'a'} {thing}"


def asks_back(text: str) -> bool:
    """Whether a message is a question of its own rather than a reply."""
    return text.rstrip().endswith("?") or _QUESTION.match(text.lstrip(_AROUND)) is not None


def as_word(word: str) -> re.Pattern[str]:
    """A pattern that finds `word` where it stands alone."""
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)


def _found(text: str, asked: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """A bare number, day or span is a fact only after a question that asked for one."""
    plain = text.strip(_AROUND)
    time_asked = "onset" in asked or "duration" in asked
    if (concern := _concern(text)) is not None:
        yield "concern", concern
    if rated := _RATED.search(text) or ("severity" in asked and _ONLY_NUMBER.fullmatch(plain)):
        yield "severity", f"{rated[1]}/10"
    if onset := _ONSET.search(text) or (time_asked and _ONLY_MOMENT.fullmatch(plain)):
        yield "onset", onset[1]
    elif duration := _DURATION.search(text) or (time_asked and _ONLY_SPAN.fullmatch(plain)):
        yield "duration", duration[1]
    if takes := _TAKES.search(text):
        yield "medications", takes[1]


def _concern(text: str) -> str | None:
    if (hurts := _HURTS.search(text)) is not None:
        return f"{hurts[1].lower()} pain"
    reported = _REPORTED.search(text) or _NAMED.match(text.lstrip(_AROUND))
    if reported is None or _DENIED.search(text):
        return None
    return str(reported[1]).lower()


def _short_answer(text: str, kind: str) -> str | None:
    """A short reply as the value of what was asked; not one that asks back or begins something else."""
    plain = text.strip(_AROUND)
    if not plain or len(plain) > _MOST_ANSWER or _NO_ANSWER.match(plain) or asks_back(text):
        return None
    if kind in _YES_OR_NO:
        word = plain.lower()
        return "none reported" if word in _NONE else "yes, not specified" if word in _SOME else plain
    return plain if kind in _FREE and plain.lower() not in _NONE | _SOME else None


def _the(subject: str) -> str:
    return subject if subject.startswith("the ") else f"the {subject}"
