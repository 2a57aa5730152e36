"""How far a 'no', an 'if' or a 'years ago' reaches: which words of a text do not speak of here and now."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from agents.safety.phrases import Found
from agents.safety.text import Word

Reach: TypeAlias = Literal["after", "list", "clause", "before", "sentence", "itself"]
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
_JOINS: Final = frozenset((",", "and", "so", "-"))
_ENDS_OF_A_LIST: Final = frozenset((",", "and", "-", ":"))
_PAUSES: Final = frozenset((",", ":", "("))
_OR: Final = frozenset(("or", "nor", "either"))
IMPERSONAL: Final = "impersonal"
"""Why a question that speaks of nobody ("does a stroke hurt?") is stopped."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words that show how a sentence is built.

    `breaks` turn it around ("but"), `subjects` begin a new thought, `asks` open a question after `openings`
    ("hi, ..."), and `persons` show that somebody is spoken of.
    """

    breaks: Set[str]
    subjects: Set[str]
    asks: Set[str]
    openings: Set[str]
    persons: Set[str]


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
    """Knows where clauses end."""

    def __init__(self, cues: Mapping[str, Cue], grammar: Grammar) -> None:
        self._cues = cues
        self._breaks = grammar.breaks
        self._subjects = grammar.subjects
        self._grammar = grammar

    def stops(self, words: Sequence[Word], found: Iterable[Found]) -> list[Stop]:
        """Where the cues among what was found reach."""
        cues = [(each, cue) for each in found if (cue := self._cues.get(each.concept)) is not None]
        spared = [(cue.spares, each) for each, cue in cues if cue.spares]
        stops = [
            Stop(each.concept, *self._reach(words, each, cue), each.start, each.end)
            for each, cue in cues
            if not cue.spares
            and not any(
                reason == each.concept and other.start <= each.start and each.end <= other.end
                for reason, other in spared
            )
        ]
        return stops + [
            Stop(IMPERSONAL, start, end, asked, asked + 1)
            for start, end in sentences(words)
            if (asked := self._asks_of_nobody(words, start, end)) is not None
        ]

    def _asks_of_nobody(self, words: Sequence[Word], start: int, end: int) -> int | None:
        """Where the question begins, if a sentence is one and speaks of nobody."""
        grammar = self._grammar
        asked = next((at for at in range(start, end) if words[at].text not in grammar.openings), None)
        if asked is None or words[asked].text not in grammar.asks:
            return None
        speaks_of_somebody = any(word.text in grammar.persons for word in words[asked + 1 : end])
        return None if speaks_of_somebody else asked

    def _reach(self, words: Sequence[Word], cue: Found, kind: Cue) -> tuple[int, int]:
        match kind.reach:
            case "itself":
                return cue.start, cue.end
            case "sentence":
                return self._thought(words, cue, ENDS | self._breaks)
            case "clause":
                return self._thought(words, cue, ENDS | self._breaks | _PAUSES)
            case "before":
                start = cue.start
                while start > 0 and words[start - 1].text not in ENDS | self._breaks:
                    start -= 1
                return start, cue.end
            case _:
                return cue.end, self._after(words, cue.end, kind)

    def _thought(self, words: Sequence[Word], cue: Found, edges: Set[str]) -> tuple[int, int]:
        """From where the thought of a cue begins to where it ends; people write on without a full stop."""
        start, end = cue.start, cue.end
        while start > 0 and words[start - 1].text not in edges and not self._new_thought(words, start - 1):
            start -= 1
        while end < len(words) and words[end].text not in edges and not self._new_thought(words, end):
            end += 1
        return start, end

    def _new_thought(self, words: Sequence[Word], at: int, joins: Set[str] = _JOINS) -> bool:
        """Whether a comma or an "and" here is followed by who or what comes next."""
        return words[at].text in joins and at + 1 < len(words) and words[at + 1].text in self._subjects

    def _after(self, words: Sequence[Word], start: int, kind: Cue) -> int:
        """To the end of the thought: a 'but', a new subject, or the end of a list of things."""
        for at in range(start, min(start + kind.most, len(words))):
            text = words[at].text
            if text in ENDS or text in self._breaks:
                return at
            if self._new_thought(words, at, _ENDS_OF_A_LIST):
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


def sentences(words: Sequence[Word]) -> list[tuple[int, int]]:
    """From where to where each sentence goes, without what ends it."""
    edges = [-1, *(at for at, word in enumerate(words) if word.text in ENDS), len(words)]
    return [(before + 1, end) for before, end in pairwise(edges) if before + 1 < end]
