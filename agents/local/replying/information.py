"""General information with its source, for questions that it answers. It judges nobody's own case."""

import re
from collections.abc import Sequence
from typing import Final

from agents.roster import Specialist
from memory_blocks.facts.changes import CurrentFact

_GENERAL: Final = re.compile(
    r"\bwhat (?:helps|can i do|should i do|could i do|do i do|works|would help|is good|to do"
    r"|are the (?:signs|symptoms)|signs)\b|\bany(?:thing)? (?:tips|advice|i can do|that helps)\b|\btips\b"
    r"|\bhow (?:do|can|to|should) (?:i|you|one|we) (?!know|tell)\w+|\bhow to\b|\bget rid\b"
    r"|\bmiss(?:ed)? a dose\b"
    r"|\bforgot\b"
)
_NOT_GENERAL: Final = re.compile(r"\b(?:do i know|do i tell|many|much|often|old|high|low|long)\b")
_REFERS: Final = re.compile(r"\b(?:it|this|that|them)\b")


def general_information(
    low: str, concern: str, specialists: Sequence[Specialist], facts: Sequence[CurrentFact]
) -> str:
    """A sentence of the interviews that answers a general question; empty if none does."""
    if not _GENERAL.search(low) or _NOT_GENERAL.search(low):
        return ""
    about = f"{low} {concern.lower()}" if _REFERS.search(low) or len(low.split()) <= 6 else low
    of_person = " ".join(f"{fact.value}" for fact in facts).lower()
    children = any(
        re.search(r"\b(?:son|daughter|baby|toddler|child|kid|boy|girl)\b", fact.subject) for fact in facts
    )
    for specialist in specialists:
        for each in specialist.interview.information:
            if not any(re.search(rf"(?<!\w){re.escape(word)}", about) for word in each.about):
                continue
            if each.together_with and not any(word in f"{about} {of_person}" for word in each.together_with):
                continue
            if any(word in f"{about} {of_person}" for word in each.unless) or (
                each.children is not None and each.children != children
            ):
                continue
            return (
                f"In general: {each.text[:1].lower()}{each.text[1:]} (source: {each.source}). "
                f"Whether that fits you, a doctor or pharmacist can say."
            )
    return ""
