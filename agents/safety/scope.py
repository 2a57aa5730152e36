"""How far a 'no', an 'if' or a 'years ago' reaches: which words of a text do not speak of here and now."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from agents.safety.phrases import Found
from agents.safety.text import Word

Reach: TypeAlias = Literal["after", "list", "clause", "sentence", "itself"]
ENDS: Final = frozenset(".")
"""How the reader gives back whatever ends a sentence."""
_SPEAKERS: Final = frozenset(("i", "im", "ive", "my", "he", "hes", "she", "shes", "we", "they"))
_BEFORE_A_NOUN: Final = frozenset(
    (
        "in",
        "of",
        "on",
        "to",
        "about",
        "for",
        "with",
        "from",
        "at",
        "by",
        "around",
        "if",
        "that",
        "when",
        "while",
    )
)
_OR: Final = frozenset(("or", "nor", "either"))


@dataclass(frozen=True, slots=True)
class Cue:
    """A kind of cue: how far it reaches, how many words at most; or which other one it `spares` us."""

    reach: Reach
    most: int
    spares: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Words `start` to `end` are stopped for a reason, because of the words from `cue_start` to `cue_end`."""

    reason: str
    start: int
    end: int
    cue_start: int
    cue_end: int

    def covers(self, found: Found) -> bool:
        """Whether it takes a finding back. One that says 'not' itself is not negated once more."""
        if self.reason == "negated" and found.negative:
            return False
        inside = self.start <= found.start and found.end <= self.end
        return inside and not (found.start <= self.cue_start and self.cue_end <= found.end)


class Scopes:
    """Knows where clauses end. `breaks` turn a sentence around ("but"), `subjects` begin a new thought."""

    def __init__(self, cues: Mapping[str, Cue], breaks: Set[str], subjects: Set[str]) -> None:
        self._cues = cues
        self._breaks = breaks
        self._subjects = subjects

    def stops(self, words: Sequence[Word], found: Iterable[Found]) -> list[Stop]:
        """Where the cues among what was found reach."""
        cues = [(each, cue) for each in found if (cue := self._cues.get(each.concept)) is not None]
        spared = [(cue.spares, each) for each, cue in cues if cue.spares]
        return [
            Stop(each.concept, *self._reach(words, each, cue), each.start, each.end)
            for each, cue in cues
            if not cue.spares
            and not any(
                reason == each.concept and other.start <= each.start and each.end <= other.end
                for reason, other in spared
            )
        ]

    def _reach(self, words: Sequence[Word], cue: Found, kind: Cue) -> tuple[int, int]:
        match kind.reach:
            case "itself":
                return cue.start, cue.end
            case "sentence":
                return self._back(words, cue.start, ENDS), self._on(words, cue.end, ENDS)
            case "clause":
                edges = ENDS | self._breaks | {",", ":", "("}
                return self._back(words, cue.start, edges), self._on(words, cue.end, edges)
            case _:
                return cue.end, self._after(words, cue.end, kind)

    @staticmethod
    def _back(words: Sequence[Word], at: int, edges: Set[str]) -> int:
        while at > 0 and words[at - 1].text not in edges:
            at -= 1
        return at

    @staticmethod
    def _on(words: Sequence[Word], at: int, edges: Set[str]) -> int:
        while at < len(words) and words[at].text not in edges:
            at += 1
        return at

    def _after(self, words: Sequence[Word], start: int, kind: Cue) -> int:
        """To the end of the thought: a 'but', a new subject, or the end of a list of things."""
        for at in range(start, min(start + kind.most, len(words))):
            text = words[at].text
            if text in ENDS or text in self._breaks:
                return at
            following = words[at + 1].text if at + 1 < len(words) else "."
            if text in (",", "and", "-", ":") and following in self._subjects:
                return at
            if text in _SPEAKERS and at > start + (text == "my") and words[at - 1].text not in _BEFORE_A_NOUN:
                return at
            if text in (",", "-", ":") and kind.reach == "list" and not self._list_goes_on(words, at + 1):
                return at
        return min(start + kind.most, len(words))

    def _list_goes_on(self, words: Sequence[Word], at: int) -> bool:
        """Whether an 'or' still comes before the thought ends: "no pain, swelling or fever"."""
        for word in words[at : at + 12]:
            if word.text in _OR:
                return True
            if word.text in ENDS or word.text in self._breaks or word.text in self._subjects:
                return False
        return False
