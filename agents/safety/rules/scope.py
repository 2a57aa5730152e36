"""Finds which words of a text a 'no', an 'if' or a 'years ago' applies to."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from agents.safety.rules.phrases import Found, forms
from agents.safety.rules.text import Word

Reach: TypeAlias = Literal["after", "list", "clause", "before", "earlier", "sentence", "itself", "touching"]
Binds: TypeAlias = Literal["theme", "story", "case", "past", "end", "seen"]
ENDS: Final = frozenset(".")
"""The reader returns every mark that ends a sentence as this one."""
SPEAKERS: Final = frozenset(("i", "im", "ive", "my", "he", "hes", "she", "shes", "we", "they"))
BEFORE_A_NOUN: Final = frozenset(
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
PAUSES: Final = frozenset((",", ":", "("))
_OR: Final = frozenset(("or", "nor", "either"))
_BESIDE_A_NOT: Final = frozenset((
    "really", "fully", "completely", "quite", "entirely", "all", "yet", "been", "be", "being", "feel",
    "feeling", "actually", "even", "properly", "totally", "near",
))  # fmt: skip
"""Words that may come between a "not" and the word that it negates."""
HAPPEN: Final = frozenset(("collapsed", "fainted", "drowned"))
"""Concepts that are findings only if they happen to a person."""
_HAPPENS: Final = frozenset(
    form for verb in ("collapse~", "drown~", "faint~", "slump~") for form in forms(verb)
)
_HELPERS: Final = frozenset((
    "has", "had", "have", "is", "was", "were", "just", "suddenly", "completely", "finally", "nearly",
    "almost", "then", "totally", "simply", "also", "all", "been", "being", "got",
))  # fmt: skip
_DETERMINERS: Final = frozenset(
    ("the", "my", "our", "his", "her", "their", "your", "a", "an", "this", "that", "whole")
)
_THIS: Final = frozenset(("this", "that", "these", "those"))
_IS: Final = frozenset(("is", "are"))
OF_A_THING: Final = "of_a_thing"
"""The reason that stops findings about things: "lost all hope of finding my keys", "the roof collapsed"."""
DESPAIR: Final = "passive"
"""The concept of phrases of despair. A phrase that continues may be about a thing."""
_MAY_BE_OF_THINGS: Final = HAPPEN | {DESPAIR}
FARTHEST_COMPLEMENT: Final = 4
"""Number of words after "of" or "with" that are searched for what the despair is about."""
IMPERSONAL: Final = "impersonal"
"""The reason that stops findings in a question about nobody, as in "does a stroke hurt?"."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words that show the structure of a sentence.

    `breaks` introduce a contrast ("but"), `subjects` begin a new clause, `asks` begin a question, also after
    `openings` ("hi, ..."). `persons` show that the text is about a person, `talk` that it is about the chat
    itself, and `nots` negate what follows. A question with "is" and one of the `general` words may be about
    a thing. Despair followed by one of the `complements` is about what comes next, unless that is `grave`.
    What happens to anything that is not `living` ("the roof collapsed") happened to a thing.
    """

    breaks: Set[str]
    subjects: Set[str]
    asks: Set[str]
    openings: Set[str]
    persons: Set[str]
    talk: Set[str]
    nots: Set[str]
    general: Set[str] = frozenset()
    complements: Set[str] = frozenset()
    grave: Set[str] = frozenset()
    living: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Cue:
    """A kind of cue: which words it reaches, how many at most, and which other cues it disables (`spares`).

    `binds` says how a cue must relate to a crisis to retract it: as its `theme`, as a `story` or a
    hypothetical `case` about it, as its `past`, as its `end`, or as a sign that it was `seen` to. A cue does
    not apply to a statement that somebody has the crisis. A `theme`, a `story` and a `seen` do not apply to
    the statement that somebody has an emergency now, either.
    """

    reach: Reach
    most: int
    spares: frozenset[str] = frozenset()
    binds: Binds | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """A cue, at `cue_start` to `cue_end`, retracts the findings between `start` and `end` for a reason."""

    reason: str
    start: int
    end: int
    cue_start: int
    cue_end: int
    touching: bool = False
    """Whether it stops only findings that end within the cue: "can't breathe in these jeans"."""

    def covers(self, found: Found) -> bool:
        """Whether it retracts a finding. A finding that contains a 'not' itself is not negated again."""
        if self.reason == "negated" and found.negative:
            return False
        if self.touching and found.end <= self.cue_start:
            return False
        inside = self.start <= found.start and found.end <= self.end
        return inside and not (found.start <= self.cue_start and self.cue_end <= found.end)


class Scopes:
    """Finds how far cues reach."""

    def __init__(self, cues: Mapping[str, Cue], grammar: Grammar) -> None:
        self._cues = cues
        self._turns = ENDS | grammar.breaks
        self._rests = self._turns | PAUSES
        self._thought_ends = self._turns | _JOINS
        self._may_end_a_reach = self._turns | _ENDS_OF_A_LIST | grammar.talk | SPEAKERS
        self._talk = grammar.talk
        self._subjects = grammar.subjects
        self._grammar = grammar

    def stops(self, words: Sequence[Word], found: Sequence[Found]) -> list[Stop]:
        """The stops of all cues among the findings. A cue must be typed exactly to retract a danger."""
        cues = [
            (each, cue)
            for each in found
            if (cue := self._cues.get(each[0])) is not None and (cue.spares or not each.guessed)
        ]
        bounds = _Bounds(self, words)
        spared: dict[int, list[tuple[frozenset[str], int]]] = {}
        for each, cue in cues:
            if cue.spares and not (cue.reach == "earlier" and self._is_denied(words, each)):
                start, end = self._reach(words, each, cue, bounds)
                for at in range(start, end):
                    spared.setdefault(at, []).append((cue.spares, end))
        stops = [
            Stop(
                each.concept,
                *self._reach(words, each, cue, bounds),
                each.start,
                each.end,
                cue.reach == "touching",
            )
            for each, cue in cues
            if not cue.spares
            and not (cue.binds in ("end", "seen") and self._is_denied(words, each))
            and not any(
                each.concept in reasons and each.end <= end for reasons, end in spared.get(each.start, ())
            )
        ]
        stops += [
            Stop(OF_A_THING, each.start, each.end, thing, thing + 1)
            for each in found
            if each[0] in _MAY_BE_OF_THINGS and (thing := self._thing(words, each)) is not None
        ]
        return stops + [
            Stop(IMPERSONAL, start, end, asked, asked + 1)
            for start, end in sentences(words)
            if (asked := self._asks_of_nobody(words, start, end)) is not None
        ]

    def _asks_of_nobody(self, words: Sequence[Word], start: int, end: int) -> int | None:
        """Where the question begins, if the sentence is a question about nobody."""
        grammar = self._grammar
        asked = start
        while asked < end and words[asked].text in grammar.openings:
            asked += 1
        if asked == end or not self._asks(words, asked, end):
            return None
        speaks_of_somebody = any(word.text in grammar.persons for word in words[asked + 1 : end])
        return None if speaks_of_somebody else asked

    def _asks(self, words: Sequence[Word], asked: int, end: int) -> bool:
        """Whether a question begins here that may be about a thing."""
        if words[asked].text in _IS:
            return any(word.text in self._grammar.general for word in words[asked + 1 : end])
        return words[asked].text in self._grammar.asks

    def _thing(self, words: Sequence[Word], found: Found) -> int | None:
        """The position of the word which shows that a finding is about a thing; None if it is not."""
        if found.concept == DESPAIR:
            return found.end if self._goes_on(words, found.end) else None
        if found.concept in HAPPEN and words[found.start].text in _HAPPENS:
            return self._to_a_thing(words, found.start - 1)
        return None

    def _goes_on(self, words: Sequence[Word], at: int) -> bool:
        """Whether the despair continues here with what it is about: "given up on the garden"."""
        if at + 1 >= len(words) or words[at].text not in self._grammar.complements:
            return False
        of_what = [word.text for word in words[at + 1 : at + 1 + FARTHEST_COMPLEMENT]]
        is_named = of_what[0][0].isalnum() and of_what[0] not in _THIS
        return is_named and self._grammar.grave.isdisjoint(of_what)

    def _to_a_thing(self, words: Sequence[Word], at: int) -> int | None:
        """The position of the thing that it happened to, if the text names one after an article."""
        while at > 0 and words[at].text in _HELPERS:
            at -= 1
        named = at > 0 and words[at].text.isalpha() and words[at - 1].text in _DETERMINERS
        return at if named and words[at].text not in self._grammar.living else None

    def _is_denied(self, words: Sequence[Word], cue: Found) -> bool:
        """Whether a "not" comes right before a cue: a pain that has "not gone away" is present."""
        before = (word.text for word in reversed(words[max(cue.start - 3, 0) : cue.start]))
        return next((word for word in before if word not in _BESIDE_A_NOT), "") in self._grammar.nots

    def _reach(self, words: Sequence[Word], cue: Found, kind: Cue, bounds: "_Bounds") -> tuple[int, int]:
        match kind.reach:
            case "itself":
                return cue.start, cue.end
            case "sentence":
                return bounds.around(cue, self._turns)
            case "clause":
                return bounds.around(cue, self._rests)
            case "before" | "earlier" | "touching":
                edges = self._turns if kind.reach == "before" else ENDS
                start = cue.start
                while start > max(cue.start - kind.most, 0) and words[start - 1].text not in edges:
                    start -= 1
                return start, cue.end
            case _:
                return cue.end, self._after(words, cue.end, kind)

    def thoughts(self, words: Sequence[Word]) -> list[int]:
        """Where clauses end: at the end of a sentence, or before a new subject."""
        last, subjects, ends = len(words) - 1, self._subjects, self._thought_ends
        return [
            at
            for at, (text, _, _) in enumerate(words)
            if text in ends and (text in ENDS or (at < last and words[at + 1].text in subjects))
        ]

    def new_thought(self, words: Sequence[Word], at: int, joins: Set[str] = _JOINS) -> bool:
        """Whether a comma or an "and" is followed by a new subject."""
        return words[at].text in joins and at + 1 < len(words) and words[at + 1].text in self._subjects

    def _after(self, words: Sequence[Word], start: int, kind: Cue) -> int:
        """Where the reach of a cue ends: at a 'but', a new subject, or the end of a list."""
        for at in range(start, min(start + kind.most, len(words))):
            text = words[at].text
            if text not in self._may_end_a_reach:
                continue
            if text in self._turns:
                return at
            if self.new_thought(words, at, _ENDS_OF_A_LIST):
                return at
            if text in self._talk:
                return at + 1
            if text in SPEAKERS and at > start + (text == "my") and words[at - 1].text not in BEFORE_A_NOUN:
                return at
            if text in (",", "-", ":") and kind.reach == "list" and not self._list_goes_on(words, at + 1):
                return at
        return min(start + kind.most, len(words))

    def _list_goes_on(self, words: Sequence[Word], at: int) -> bool:
        """Whether an 'or' follows before the clause ends: "no pain, swelling or fever"."""
        for word in words[at : at + 12]:
            if word.text in _OR:
                return True
            if word.text in self._turns or word.text in self._subjects:
                return False
        return False


class _Bounds:
    """Where the clauses of a text end. Each kind is looked for once, however many cues there are."""

    def __init__(self, scopes: Scopes, words: Sequence[Word]) -> None:
        self._scopes = scopes
        self._words = words
        self._places: dict[int, list[int]] = {}

    def around(self, cue: Found, edges: Set[str]) -> tuple[int, int]:
        """Start and end of the clause around a cue. It may end without a full stop."""
        words, new_thought = self._words, self._scopes.new_thought
        if (places := self._places.get(id(edges))) is None:
            places = self._places[id(edges)] = [
                at for at, word in enumerate(words) if word.text in edges or new_thought(words, at)
            ]
        before, after = bisect_left(places, cue.start), bisect_left(places, cue.end)
        return (
            places[before - 1] + 1 if before else 0,
            places[after] if after < len(places) else len(words),
        )


def sentences(words: Sequence[Word]) -> list[tuple[int, int]]:
    """Start and end of each sentence, without the mark that ends it."""
    edges = [-1, *[at for at, (text, _, _) in enumerate(words) if text in ENDS], len(words)]
    return [(before + 1, end) for before, end in pairwise(edges) if before + 1 < end]
