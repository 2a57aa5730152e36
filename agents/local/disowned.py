"""What was said to be the person's own and turns out to be somebody else's: `the penicillin is my sister`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agents.local.lexicon import Lexicon, any_of, word_set
from agents.local.people import SELF
from agents.local.reading import Text
from agents.values import NONE, Fact

_KINDS: Final = ("allergies", "medications", "other_medicines", "conditions")
_GROUPS: Final = {"medicines.names": "medications", "conditions.names": "conditions"}
_PARTS: Final = re.compile(
    r"(?<=[.!?;])\s+|(?<=\w), (?:and |but )?(?=i (?:have|take|do|don't|am|only|just)\b)", re.I
)
_TAKES_BACK: Final = re.compile(
    r"\b(?:sorry|oops|pardon|forget|ignore|scratch|nope|not (?:me|mine|i\b|my own)|isn't (?:me|mine)"
    r"|(?:is|was) the one|mixed up|(?:that|it|one)(?:'s| is| was) (?:actually |really |for )*(?:my|our))\b"
    r"|^(?:oh,? )?no\b",
    re.IGNORECASE,
)
_TOO: Final = re.compile(r"\b(?:too|also|as well|both|same)\b", re.IGNORECASE)
_GIVEN: Final = (
    r"(?: one| thing| allergy| bit)?,? (?:is|was|are|were|belongs? to|that's|that is|that was|it's)"
    r" (?:actually |really |for )*(?:my|our) (?:\w+ )?$"
)
"""What stands between a name and the one it is of: `the warfarin is my …`."""

_IS_OWN: Final = re.compile(
    r"\b(?:is|was|are|were|that's|it's) (?:actually |really )?(?:me|mine)\b", re.IGNORECASE
)

_NOT_BUT: Final = re.compile(
    r"\bnot (?!allergic|me\b|mine|my\b|him\b|her\b|taking|on\b|the one)(?:the |to )?[\w-]+"
    r"(?:.*?\b(?:it's|it is|it was|but) ([\w-]+(?: [\w-]+)?) (?:that |which )?(?:my|our)\b)?"
)
"""Another name instead of the one that was said: `not latex, it's nickel my sister …`."""

_NO_NAME: Final = word_set("type with severe mild past from allergy tablets tablet pills pill daily")


@dataclass(frozen=True, slots=True)
class Disowned:
    """Something that is somebody else's: its kind, its name, `of` whom, and whether it was `known`."""

    kind: str
    name: str
    of: str
    known: bool


class Disowning:
    """Finds what is disowned, with the words of the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._marks = any_of(lexicon.group("corrections.marks"))

    def read(self, text: Text, facts: Sequence[Fact]) -> tuple[tuple[Disowned, ...], Text]:
        """What a message gives to somebody else, and what is left of the message without that."""
        others = any(each.group == "people.relatives" for each in text.mentions)
        if text.injected or not (others or _IS_OWN.search(text.stated)):
            return (), text
        kept: list[str] = []
        given: list[Disowned] = []
        for piece in _PARTS.split(text.stated):
            found = tuple(self._given(Text(piece, self._lexicon), facts))
            given += found
            if not found:
                kept.append(piece)
        if not given:
            return (), text
        left = Text(" ".join(kept), self._lexicon)
        left.asked = text.asked
        return tuple(given), left

    def _given(self, text: Text, facts: Sequence[Fact]) -> Iterator[Disowned]:
        low = text.stated.lower()
        if _TOO.search(low):
            return
        known_of = {fact.kind: fact.value for fact in facts}
        running, concern = known_of.get("about_whom", ""), known_of.get("concern", "")
        relatives = [each for each in text.mentions if each.group == "people.relatives"]
        of = text.cut(relatives[-1]).removesuffix("'s") if relatives else SELF
        if of == running or (of == SELF and not (running and _IS_OWN.search(low))):
            return
        named = [each for each in text.mentions if each.group in _GROUPS]
        if _TAKES_BACK.search(low) or self._marks.search(low):
            known = [fact for fact in facts if fact.kind in _KINDS and _names(fact, low)]
            if known and known[0].value.lower() not in concern:  # then it is they who are spoken of
                theirs = [text.cut(each) for each in named if each.first not in text.denied]
                name = theirs[-1] if theirs else known[0].value
                if not theirs and (another := _NOT_BUT.search(low)):
                    name = another[1] or ""
                yield Disowned(known[0].kind, name, of, known=True)
                return
        if relatives:
            before = low[: text.words[relatives[-1].first].start]
            for each in named:
                if re.search(re.escape(text.cut(each)) + _GIVEN, before):
                    yield Disowned(_GROUPS[each.group], text.cut(each), of, known=False)


def _names(fact: Fact, said: str) -> bool:
    """Whether a text names what a fact holds."""
    if fact.value == NONE or fact.value.startswith(("no ", "stopped ")):
        return False
    words = set(re.findall(r"[^\W\d_]{4,}", fact.value.lower())) - _NO_NAME
    return any(re.search(rf"\b{re.escape(word)}\b", said) for word in words)
