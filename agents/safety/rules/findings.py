"""Which findings of a message belong together, and whether something takes them back. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from agents.safety.rules.phrases import Found
from agents.safety.rules.rules import BARE, Kind, Rule
from agents.safety.rules.scope import ENDS, Stop, sentences
from agents.safety.rules.text import Word

Groups: TypeAlias = tuple[tuple[str, ...], ...]
_NONE: Final[frozenset[str]] = frozenset()
MOST_OF_A_CONCEPT: Final = 40
"""Maximum number of findings per concept and message. Only pasted text has more."""
RIGHT_AFTER: Final = 3
"""Maximum number of words, commas included, between a finding and the words that say what it is about."""
_ARTICLES: Final = frozenset(("the", "a", "an", "my", "his", "her", "their", "our", "this", "all"))
_WHEN: Final = frozenset(
    (
        "after",
        "before",
        "since",
        "until",
        "till",
        "when",
        "during",
        "because",
        "despite",
        "besides",
        "and",
        "(",
        ":",
    )
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
FEW_WORDS: Final = 3
"""A sentence of at most this many words counts as a cry for help, not as talk about a topic."""


class Heard(NamedTuple):
    found: Found
    stops: frozenset[str]
    bound: frozenset[str]
    """The stops that retract the finding for a crisis rule, too."""
    parts: tuple[Found, ...] = ()
    """The findings that a compound consists of. The words between them do not belong to it."""

    def stopped(self, kind: Kind) -> frozenset[str]:
        """The reasons that retract the finding for a rule of this kind."""
        return self.bound if kind == "crisis" else self.stops

    def shares_words(self, other: "Heard") -> bool:
        """Whether two findings use the same words. They then count as one finding."""
        if self.found.end <= other.found.start or other.found.end <= self.found.start:
            return False
        return any(
            one.start < another.end and another.start < one.end
            for one in self.parts or (self.found,)
            for another in other.parts or (other.found,)
        )


@dataclass(frozen=True, slots=True)
class Listened:
    text: str
    words: Sequence[Word]
    ends: Sequence[int]
    """The positions of the words that end a clause with its own subject."""
    heard: Mapping[str, Sequence[Heard]]
    stops: Sequence[Stop]

    @property
    def as_typed(self) -> "Listened":
        """The same without findings whose words were misspelt and corrected."""
        typed = {
            name: [each for each in often if not each.found.guessed] for name, often in self.heard.items()
        }
        return replace(self, heard=typed)

    def explains(self, rule: Rule) -> list[Found]:
        """Findings that make the rule harmless (`unless`), if typed exactly and not negated."""
        return [
            each.found
            for name in rule.unless
            for each in self.heard.get(name, ())
            if "negated" not in each.stops and not each.found.guessed
        ]

    def is_explained(self, found: Found, by: Iterable[Found], kind: Kind) -> bool:
        """Whether one of `by` explains a finding: in the same clause; for a crisis, as its topic."""
        return any(
            self._thought(found) == self._thought(each)
            if kind == "emergency"
            else (each.start <= found.start and found.end <= each.end)
            or (self._is_about(found, each) and not self._is_a_time(each))
            for each in by
        )

    def _is_about(self, found: Found, other: Found) -> bool:
        right_after = 0 <= other.start - found.end <= RIGHT_AFTER
        between = (word.text for word in self.words[found.end : other.start])
        return self._thought(found) == self._thought(other) or (right_after and ENDS.isdisjoint(between))

    def _is_a_time(self, found: Found) -> bool:
        """Whether the finding only states a time, as in "after the exams"."""
        before = (word.text for word in reversed(self.words[max(found.start - 3, 0) : found.start]))
        return next((word for word in before if word not in _ARTICLES), "") in _WHEN

    def has_a_year(self, found: Found) -> bool:
        """Whether the clause of the finding contains a year."""
        number = self._thought(found)
        start = self.ends[number - 1] + 1 if number else 0
        end = self.ends[number] if number < len(self.ends) else len(self.words)
        return any(_YEAR.fullmatch(word.text) for word in self.words[start:end])

    def _thought(self, found: Found) -> int:
        return bisect_right(self.ends, found.start)


def together(
    listened: Listened, groups: Groups, rule: Rule, even_if: frozenset[str] | None
) -> tuple[Heard, ...] | None:
    """One finding per group, close to the first, none retracted or explained; None if a group has none.

    No two of them share words: "cold hands" is not both a cold place and a cold hand. The stops in `even_if`
    retract nothing. If `even_if` is None, retracted and explained findings count, too.
    """
    heard = listened.heard
    for group in groups:
        if heard.keys().isdisjoint(group):
            return None
    harmless = listened.explains(rule) if even_if is not None else ()
    candidates: list[list[Heard]] = []
    for group in groups:
        live = [
            each
            for name in group
            for each in heard.get(name, ())
            if (even_if is None or each.stopped(rule.kind) <= even_if)
            and not (harmless and listened.is_explained(each.found, harmless, rule.kind))
        ]
        if not live:
            return None
        candidates.append(live)
    for first in candidates[0]:
        chosen = [first]
        for others in candidates[1:]:
            near = [
                each
                for each in _near(first.found, others, rule.within)
                if not any(each.shares_words(one) for one in chosen)
            ]
            if not near:
                break
            chosen.append(min(near, key=lambda each: _gap(first.found, each.found)))
        else:
            return tuple(chosen)
    return None


def compounded(heard: Mapping[str, Sequence[Heard]], name: str, groups: Groups, within: int) -> list[Heard]:
    """Compound findings: each consists of one finding per group, close together."""
    if any(heard.keys().isdisjoint(group) for group in groups):
        return []
    firsts, *rest = ([each for option in group for each in heard.get(option, ())] for group in groups)
    made = []
    for first in firsts:
        chosen = [first]
        for others in rest:
            near = _near(first.found, others, within)
            if not near:
                break
            chosen.append(min(near, key=lambda each: (bool(each.stops), _gap(first.found, each.found))))
        else:
            start = min(each.found.start for each in chosen)
            end = max(each.found.end for each in chosen)
            stops = _NONE.union(*(each.stops for each in chosen))
            bound = _NONE.union(*(each.bound for each in chosen))
            parts = tuple(part for each in chosen for part in each.parts or (each.found,))
            guessed = any(each.found.guessed for each in chosen)
            made.append(Heard(Found(name, start, end, guessed=guessed), stops, bound, parts))
    return made


def first_and_last(often: list[Heard]) -> list[Heard]:
    """The findings of a concept. Of many with the same stops, only the first and the last ones are kept."""
    if len(often) <= MOST_OF_A_CONCEPT:
        return often
    alike: dict[tuple[frozenset[str], frozenset[str]], list[int]] = {}
    for at, (_, stops, bound, _) in enumerate(often):
        alike.setdefault((stops, bound), []).append(at)
    few = MOST_OF_A_CONCEPT // 2
    kept = {at for places in alike.values() for at in (*places[:few], *places[-few:])}
    return [often[at] for at in sorted(kept)]


def cries(words: Sequence[Word]) -> list[Found]:
    """A finding for each sentence of at most `FEW_WORDS` words."""
    found = []
    for start, end in sentences(words):
        said = 0
        for text, _, _ in words[start:end]:
            said += text[0].isalnum()
            if said > FEW_WORDS:
                break
        else:
            found.append(Found(BARE, start, end, negative=True))
    return found


def _near(first: Found, others: Sequence[Heard], within: int) -> list[Heard]:
    """The other findings at most `within` words away from the first."""
    _, start, end, *_ = first
    earliest, latest = start - within, end + within
    return [
        each
        for each in others
        if each.found.start <= latest and each.found.end >= earliest and each.found != first
    ]


def _gap(one: Found, other: Found) -> int:
    """The number of words between two findings."""
    return max(one.start, other.start) - min(one.end, other.end)
