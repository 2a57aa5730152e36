"""Decides which stops retract a finding, and which of them retract even a crisis."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from agents.safety.rules.phrases import Found
from agents.safety.rules.scope import BEFORE_A_NOUN, IMPERSONAL, PAUSES, SPEAKERS, Binds, Stop
from agents.safety.rules.text import Word

FARTHEST_THEME: Final = 6
"""Maximum number of words between a cue such as "an essay on" and the danger that is its topic."""
_OWNERS: Final = SPEAKERS | frozenset(("id", "ill", "me", "myself", "us", "himself", "herself"))
_WHOSE: Final = {"theme": _OWNERS, "story": frozenset(("i", "im", "ive", "me", "my", "myself"))}
"""Words for a real person despite the cue. A story has other people in it, but hardly the writer."""
_FRAME_ENDS: Final = {"theme": frozenset((",", ":")), "story": frozenset((":",))}
"""Marks that end the reach of a cue: "for my novel: ..." is no story, but "in the film, ..." is."""
_NOW: Final = frozenset((
    "am", "are", "be", "been", "being", "cant", "dont", "feel", "feeling", "feels", "gets",
    "going", "got", "has", "have", "hes", "if", "ill", "im", "is", "ive", "keep", "keeps", "might", "must",
    "need", "needs", "now", "planning", "ready", "says", "shell", "shes", "should", "sitting", "standing",
    "think", "thinking", "thinks", "today", "tomorrow", "tonight", "want", "wants", "will",
    "wish", "would", "again",
))  # fmt: skip
"""Words which show that a crisis is present or may come."""
_PAST: Final = frozenset((
    "was", "were", "had", "used", "tried", "took", "lost", "did", "hit", "history", "survivor", "scars",
    "shot", "died", "hung", "broke", "beaten",
))  # fmt: skip
_HAS: Final = frozenset((
    "am", "im", "is", "are", "have", "hurts", "hurting", "aches", "aching", "goes", "going",
    "cant", "feels", "feel", "keeps",
))  # fmt: skip
"""Words which show that somebody has an ailment now."""
_NOT_ITS_END: Final = BEFORE_A_NOUN | PAUSES
_NOT_ITS_THEME: Final = _OWNERS | PAUSES
_MEANWHILE: Final = frozenset(("while", "whilst"))
_TIMES: Final = {
    "end": _MEANWHILE | frozenset(("after", "since", "during")),
    "seen": _MEANWHILE | frozenset(("after", "since", "during")),
    "past": _MEANWHILE,
    "story": _MEANWHILE,
}
"""Words that turn a cue into a time: "since they discharged me", "while watching the news"."""
FARTHEST_TIME: Final = 4
"""Maximum number of words between such a word and the cue."""
A_GLANCE: Final = 12
"""Among this number of words, a word is looked for directly. Only for longer reaches is the text indexed."""
_FRAMES: Final = frozenset(("theme", "story", "case"))
FEW: Final = 6
"""Up to this number of stops with the same reach are tried one by one."""
_NONE: Final[frozenset[str]] = frozenset()
_NOTHING: Final = (_NONE, _NONE)
_Sort: TypeAlias = Literal[
    "now", "past", "has", "pause", "not theme", "theme", "story", "theme end", "story end"
]


class Retractions:
    """The stops of a text, and what they retract.

    Findings of the same words share the answer. A text can have thousands of stops that all reach as far, so
    of those only the ones are tried that may retract the finding.
    """

    def __init__(
        self, words: Sequence[Word], stops: Iterable[Stop], binds: Mapping[str, Binds | None]
    ) -> None:
        self._words = words
        self._binds = binds
        self._places: dict[_Sort, list[int]] = {}
        self._answers: dict[tuple[int, int, bool], tuple[frozenset[str], frozenset[str]]] = {}
        alike: dict[tuple[str, int, int, bool], list[Stop]] = {}
        for stop in stops:
            alike.setdefault((stop.reason, stop.start, stop.end, stop.touching), []).append(stop)
        self._near: dict[int, list[_Alike]] = {}
        for (reason, start, end, _), same in alike.items():
            group = _Alike(reason, binds.get(reason), same)
            for at in range(start, end):
                self._near.setdefault(at, []).append(group)

    def of(self, found: Found) -> tuple[frozenset[str], frozenset[str]]:
        """The reasons that retract a finding for an emergency, and those that retract it for a crisis."""
        _, start, end, negative, _ = found
        near = self._near.get(start)
        if near is None:
            return _NOTHING
        key = start, end, negative
        if (answer := self._answers.get(key)) is None:
            answer = self._answers[key] = self._answer(found, near)
        return answer

    def _answer(self, found: Found, near: "Sequence[_Alike]") -> tuple[frozenset[str], frozenset[str]]:
        reasons, bound = set(), set()
        for group in reversed(near):  # the nearest cue comes last, and is the likeliest to decide
            reason = group.reason
            if len(group.stops) == 1:
                (stop,) = group.stops
                if reason in reasons and (reason in bound or group.is_too_far(stop, found)):
                    continue
                if stop.covers(found):
                    if group.binds is None and reason != IMPERSONAL:
                        reasons.add(reason)
                        bound.add(reason)
                        continue
                    if not self._is_statement(stop, found):
                        reasons.add(reason)
                    if self._does_bind(stop, found):
                        bound.add(reason)
                continue
            if reason not in reasons:
                for stop in self._worth_asking(group, found):
                    if stop.covers(found) and not self._is_statement(stop, found):
                        reasons.add(reason)
                        break
            if reason not in bound:
                for stop in self._worth_binding(group, found):
                    if stop.covers(found) and self._does_bind(stop, found):
                        bound.add(reason)
                        break
        return (frozenset(reasons), frozenset(bound)) if reasons or bound else _NOTHING

    def _worth_asking(self, group: "_Alike", found: Found) -> Sequence[Stop]:
        """The stops of a group that decide whether it retracts a finding. The others change nothing.

        Of the cues before the finding, the nearest has the fewest words in between that could spoil it.
        """
        binds = group.binds
        if len(group.stops) <= FEW or (binds != "theme" and binds != "story"):
            return group.stops
        stops, ends = group.in_order()
        after = bisect_right(ends, found.start)
        owner = self._first(binds, stops[0].start)
        last = bisect_right(ends, owner + group.longest) if found.end <= owner else after
        return (*stops[max(after - 1, 0) : after], *stops[after:last])

    def _worth_binding(self, group: "_Alike", found: Found) -> Sequence[Stop]:
        """The stops of a group that may be near enough to a finding to bind it."""
        binds = group.binds
        if len(group.stops) <= FEW or binds is None or binds in ("end", "seen"):
            return group.stops
        stops, ends = group.in_order()
        if binds != "past":
            first = bisect_left(ends, found.start - FARTHEST_THEME)
            return stops[first : bisect_right(ends, found.end + group.longest)]
        after = bisect_right(ends, found.start)
        first = bisect_left(ends, self._last("now", found.end))
        past = bisect_right(ends, self._last("past", found.end) + 1)
        before = (*stops[first : min(past, after)], *self._past_cues(group, max(first, past), after))
        start = stops[0].start
        told = self._first("past", start)
        first = after if told < found.end else max(after, bisect_right(ends, told))
        now = self._first("now", start)
        last = bisect_right(ends, now + group.longest) if found.end <= now else after
        return (*before, *stops[first:last])

    def _past_cues(self, group: "_Alike", first: int, last: int) -> Sequence[Stop]:
        """The stops from number `first` to `last` whose own words are in the past tense, as in "had a"."""
        if group.past is None:
            stops, _ = group.in_order()
            group.past = [
                at for at, stop in enumerate(stops) if self._has("past", stop.cue_start, stop.cue_end)
            ]
        past = group.past
        return [group.stops[at] for at in past[bisect_left(past, first) : bisect_left(past, last)]]

    def _does_bind(self, stop: Stop, found: Found) -> bool:
        """Whether a stop relates to the finding closely enough to retract even a crisis."""
        _, found_start, found_end, *_ = found
        if stop.reason == IMPERSONAL:
            return not self._has("pause", stop.cue_end, found_start)
        match self._binds.get(stop.reason):
            case "end" | "seen":
                return 0 <= stop.cue_start - found_end <= 1 and all(
                    self._words[at].text not in _NOT_ITS_END for at in range(found_end, stop.cue_start + 1)
                )
            case "past":
                return self._is_told(stop, found)
            case "theme" | "story" | "case":
                begins_after = stop.cue_start <= found_start and found_start - stop.cue_end <= FARTHEST_THEME
                near = begins_after or found_end == stop.cue_start
                return near and not self._has("not theme", *_said(stop, found))
            case _:
                return True

    def _is_told(self, stop: Stop, found: Found) -> bool:
        """Whether all between the cue and the finding is told in the past tense.

        Words that hide a past tense do not count, as in "used to be" and "got beaten".
        """
        words = self._words
        start, end = _said(stop, found)
        if start == stop.cue_end and words[start - 1].text == "to":
            start += 1
        if self._has("now", start, end) or (start < end and words[end - 1].text == "got"):
            return False
        if self._has("past", start, end):
            return True
        return stop.cue_end <= found.start and self._has("past", stop.cue_start, stop.cue_end)

    def _is_statement(self, stop: Stop, found: Found) -> bool:
        """Whether the text states that somebody has the finding, despite the stop."""
        binds = self._binds.get(stop.reason)
        if binds is None:
            return False
        if binds in _TIMES and self._is_a_time(stop, found, binds):
            return True
        if binds == "seen":
            said = _said(stop, found)
            return self._has("has", *said) and not self._has("past", *said)
        if binds != "theme" and binds != "story":
            return False
        if self._has(binds, *_said(stop, found)):
            return True
        return self._has("theme end" if binds == "theme" else "story end", stop.cue_end, found.start)

    def _is_a_time(self, stop: Stop, found: Found, binds: Binds) -> bool:
        """Whether a cue only states a time, and so retracts nothing."""
        first, times = max(found.end, stop.cue_start - FARTHEST_TIME), _TIMES[binds]
        return any(self._words[at].text in times for at in range(first, stop.cue_start))

    def _has(self, sort: _Sort, start: int, end: int) -> bool:
        """Whether a word of this sort is among the words from `start` to `end`."""
        if start >= end:
            return False
        if end - start > A_GLANCE or sort not in _KNOWN or sort in self._places:
            return self._first(sort, start) < end
        return not _KNOWN[sort].isdisjoint([word.text for word in self._words[start:end]])

    def _first(self, sort: _Sort, start: int) -> int:
        """The place of the first word of a sort from `start`; the end of the text if there is none."""
        places = self._places.get(sort) or self._look_for(sort)
        return places[bisect_left(places, start)]

    def _last(self, sort: _Sort, end: int) -> int:
        """The place of the last word of a sort before `end`; -1 if there is none."""
        places = self._places.get(sort) or self._look_for(sort)
        at = bisect_left(places, end)
        return places[at - 1] if at else -1

    def _look_for(self, sort: _Sort) -> list[int]:
        """The places of all words of a sort, and behind them the end of the text."""
        words = self._words
        match sort:
            case "past":
                places = [
                    at
                    for at, (text, _, _) in enumerate(words)
                    if text in _PAST or (text[-2:] == "ed" and _is_past(text))
                ]
            case "now":
                places = [at for at, word in enumerate(words) if word.text in _NOW and not self._hides(at)]
            case "theme end" | "story end":
                marks = _FRAME_ENDS["theme" if sort == "theme end" else "story"]
                places = [
                    at
                    for at, word in enumerate(words)
                    if word.text in marks and at + 1 < len(words) and not _is_vignette(words[at + 1 : at + 3])
                ]
            case _:
                known = _KNOWN[sort]
                places = [at for at, word in enumerate(words) if word.text in known]
        places.append(len(words))
        self._places[sort] = places
        return places

    def _hides(self, at: int) -> bool:
        """Whether a "got" is here that belongs to a past tense, as in "got beaten"."""
        words = self._words
        return words[at].text == "got" and at + 1 < len(words) and _is_past(words[at + 1].text)


class _Alike:
    """Stops with the same reason and the same reach. Only their cues differ."""

    __slots__ = ("_ends", "binds", "longest", "past", "reason", "stops")

    def __init__(self, reason: str, binds: Binds | None, stops: list[Stop]) -> None:
        self.reason = reason
        self.binds = binds
        self.stops = stops
        self.past: list[int] | None = None
        """The numbers of the stops whose own words are in the past tense, once they were looked for."""
        self.longest = 0
        """The number of words in the longest cue, once the stops are in order."""
        self._ends: list[int] | None = None

    def is_too_far(self, stop: Stop, found: Found) -> bool:
        """Whether a stop comes too early to bind the finding as its theme, its story or a case of it."""
        return self.binds in _FRAMES and found.start - stop.cue_end > FARTHEST_THEME

    def in_order(self) -> tuple[list[Stop], list[int]]:
        """The stops, and the ends of their cues, both in the order of these ends."""
        if self._ends is None:
            self.stops.sort(key=_cue_end)
            self._ends = [stop.cue_end for stop in self.stops]
            self.longest = max(stop.cue_end - stop.cue_start for stop in self.stops)
        return self.stops, self._ends


_KNOWN: Final[Mapping[_Sort, frozenset[str]]] = {
    "has": _HAS,
    "pause": PAUSES,
    "not theme": _NOT_ITS_THEME,
    "theme": _WHOSE["theme"],
    "story": _WHOSE["story"],
}


def _cue_end(stop: Stop) -> int:
    return stop.cue_end


def _said(stop: Stop, found: Found) -> tuple[int, int]:
    """Where the words of a finding and those before it are, from the cue or from the start of the reach."""
    start = stop.cue_end if stop.cue_end <= found.start else stop.start
    return start, max(found.end, stop.cue_start)


def _is_past(word: str) -> bool:
    return word in _PAST or (word.endswith("ed") and not word.endswith("eed") and len(word) > 4)


def _is_vignette(words: Sequence[Word]) -> bool:
    """Whether a textbook case begins here: "a 60 year old man with ..."."""
    first, *rest = (word.text for word in words)
    return first in ("a", "an") and any(word.isdigit() or word == "patient" for word in rest)
