"""Which kind of fact a question asks for, whoever worded it."""

import re
from typing import Final

_ASKS: Final = {
    "severity": r"\b(scale (of|from)|how (severe|bad|strong|intense|painful)|(1|one) to (10|ten)|severity)\b",
    "onset": r"\bwhen\b.{0,40}\b(start|began|begin|first|notice)|\bsince when\b|\bonset\b",
    "duration": r"\bhow long\b",
    "location": r"\b(where (exactly|is|does|do)|which (side|part))\b",
    "quality": r"\b(what (does it|do they) feel like|(describe|kind of) (the |this )?(pain|feeling))\b",
    "triggers": r"\b(trigger|brings? it on|makes? it (better|worse)|what helps)\b",
    "associated_symptoms": r"\b(any )?other symptoms\b|\balong(side)? with (it|this)\b",
    "medications": r"\b(medications?|medicines?|taking anything|take for)\b",
    "conditions": r"\b(medical history|conditions?|had (this|it|anything like this) before)\b",
    "allergies": r"\ballerg(y|ies|ic)\b",
}
NAMES: Final = {
    "severity": "severity rating 1-10",
    "onset": "onset time",
    "duration": "duration",
    "location": "location",
    "quality": "what it feels like",
    "triggers": "triggers",
    "associated_symptoms": "other symptoms",
    "medications": "current medications",
    "conditions": "medical history",
    "allergies": "allergies",
}


def last_question(text: str) -> str | None:
    """The last question in an answer, or None when it asked nothing."""
    asked = _questions(text)
    return asked[-1] if asked else None


def kinds_asked(text: str) -> tuple[str, ...]:
    """The kinds of fact that the questions in an answer ask for."""
    questions = " ".join(_questions(text))
    return tuple(kind for kind, asks in _ASKS.items() if re.search(asks, questions, re.IGNORECASE))


def _questions(text: str) -> list[str]:
    """Split, not matched, so that a long answer costs no more than its length."""
    parts = (part.strip() for part in re.split(r"(?<=[.!?])", text))
    return [part for part in parts if part.endswith("?") and len(part) > 1]
