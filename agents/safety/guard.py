"""The guard: whether a message is an emergency or a crisis, by which rules, and what stopped others. Pure."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from agents.safety import rules as book
from agents.safety.compiled import Compiled, cached
from agents.safety.measures import Band, Gauge, Measure
from agents.safety.phrases import Found, Others, PhraseBook, spelled_out
from agents.safety.rules import BARE, HAS_IT, Concepts, Kind, Language, Pick, Replies, Rule, RuleBook
from agents.safety.scope import ENDS, IMPERSONAL, Cue, Grammar, Scopes, Stop, sentences
from agents.safety.text import Reader, Word, misspellings_of

Groups: TypeAlias = tuple[tuple[str, ...], ...]
Answer: TypeAlias = Literal["yes", "no", "unsure", "after all"]
CALM: Final = 0
MEANT: Final = 2
"""The tier of what is heard in a message only by what it means."""
LONGEST_ANSWER: Final = 5
"""Of how many words the longest phrase is that answers a question."""
SHORTEST_ASIDE: Final = 3
"""Of how many letters words are that are worth telling of where they were taken back."""
LATEST_ANSWER: Final = 10
"""How many words may be said before an answer comes."""
_NONE: Final[frozenset[str]] = frozenset()
_OF_NOBODY: Final[Mapping[Kind, frozenset[str]]] = {
    "emergency": frozenset((IMPERSONAL, "topic", "educational")),
    "crisis": frozenset((IMPERSONAL,)),
}
_I: Final = {"you": "i", "your": "my", "yourself": "myself", "yours": "mine"}
_ME: Final = {**_I, "you": "me"}
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?]?")
_OFFERS: Final = re.compile(
    r"\W*(?:(?:and|so|or|also)\W+)?(?:shall i\b"
    r"|(?:should|may|can|could) i (?:tell|explain|list|show|give|send)\b"
    r"|(?:would you like|do you want)(?: me)? (?:to (?:know|hear|read|learn|see|explain|list|show|tell)"
    r"|some|more|information|advice|tips)\b)",
    re.IGNORECASE,
)
"""How a question begins that asks for nothing but whether to go on: "would you like to know"."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_YOU: Final = re.compile(r"\b(?:yourself|yours|your|you)\b", re.IGNORECASE)
ASKED: Final = frozenset(("hypothetical", "educational", IMPERSONAL))
"""In a question to the person, an 'any' or 'if' takes nothing back."""
STILL: Final = "still"
"""The last rule of a verdict that was not heard in the message, but stays from the answer before it."""
NOT_CALLED: Final = "help.not_called"
"""The rule that hears that nobody has called."""
LEANS: Final = frozenset(("not_safe", NOT_CALLED))
"""The rules that hear what means most with the danger that was spoken of before."""
_OVER: Final = "reply.over"
_OVER_BY_THEM: Final = "reply.over_by_them"
_OVER_AS_FELT: Final = "reply.over_as_felt"
_MEANS: Final = "reply.means"
_BARE_MEANS: Final = "reply.bare_means"
_PLACES: Final[Mapping[Pick, int]] = {"first": 0, "second": 1, "last": -1}
_OPTIONS: Final = re.compile(r"\s*,?\s*\bor\b\s*|\s*,\s*", re.IGNORECASE)
_BESIDE_MEANS: Final = frozenset((
    "a", "an", "the", "my", "some", "with", "by", "from", "off", "on", "in", "into", "under", "out",
    "of", "it", "its", "is", "maybe", "probably", "yes", "yeah", "just", "right", "here", "there", ",", ".",
))  # fmt: skip
"""What may stand beside a means where nothing else is said."""
OF_ONESELF: Final = ("suicide.", "self_harm")
"""How the ids of those rules begin that hear of danger from oneself."""
FELT_LATE: Final = ("overdose.", "poisoning.", "bites.", "drowning.", "head_injury.")
"""How the ids of those rules begin that hear of what may be felt only hours later."""
MOST_OF_A_CONCEPT: Final = 40
"""How often a concept is listened to in one message: nobody says a thing more often who is not pasting."""
RIGHT_AFTER: Final = 3
"""How many words after a finding what it is about may begin, even behind a comma."""
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
LONG_ENOUGH: Final = 5
"""Of how many letters a small word is, at least, that is worth correcting."""
FEW_WORDS: Final = 3
"""A sentence of no more words than this is a cry rather than talk about something."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the guard says of a message. `tier` is 0 for none, 3 for at once; it can only be raised."""

    kind: Literal["emergency", "crisis", "none"] = "none"
    tier: int = CALM
    rule_ids: tuple[str, ...] = ()

    @property
    def flagged(self) -> bool:
        """Whether the person must be told at once."""
        return self.kind != "none"

    def raised_by(self, other: "Verdict") -> "Verdict":
        """Both together: the graver one's kind, and every rule of either.

        Where both are as grave, a wish to die is spoken to first, and else the body.
        """
        graver = other if other._weight > self._weight else self
        return Verdict(graver.kind, graver.tier, tuple(dict.fromkeys((*self.rule_ids, *other.rule_ids))))

    @property
    def is_of_oneself(self) -> bool:
        """Whether somebody is a danger to themselves."""
        return self.kind == "crisis" and any(rule_id.startswith(OF_ONESELF) for rule_id in self.rule_ids)

    @property
    def _weight(self) -> tuple[int, bool, bool]:
        return self.tier, self.is_of_oneself, self.kind == "emergency"


METHOD: Final = Verdict("crisis", 3, ("suicide.method",))
"""What it is to name a means where one's own death is spoken of."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule fired, or would have: the words it heard, and what took them back."""

    rule: Rule
    heard: tuple[str, ...]
    stopped_by: tuple[tuple[str, str], ...] = ()


class _Heard(NamedTuple):
    found: Found
    stops: frozenset[str]
    bound: frozenset[str]
    """Those of the stops that take even a crisis back."""
    parts: tuple[Found, ...] = ()
    """What it is made of, if of several: the words between those are not its own."""

    def stopped(self, kind: Kind) -> frozenset[str]:
        """What takes it back for a rule of this kind."""
        return self.bound if kind == "crisis" else self.stops

    def shares_words(self, other: "_Heard") -> bool:
        """Whether both were heard in the same words, so that they are one finding and not two."""
        if self.found.end <= other.found.start or other.found.end <= self.found.start:
            return False
        return any(
            one.start < another.end and another.start < one.end
            for one in self.parts or (self.found,)
            for another in other.parts or (other.found,)
        )


@dataclass(frozen=True, slots=True)
class _Listened:
    text: str
    words: Sequence[Word]
    ends: Sequence[int]
    """Where thoughts end."""
    heard: Mapping[str, Sequence[_Heard]]
    stops: Sequence[Stop]

    def explains(self, rule: Rule) -> list[Found]:
        """What was said that makes a finding of the rule harmless; it must be typed, and not denied."""
        return [
            each.found
            for name in rule.unless
            for each in self.heard.get(name, ())
            if "negated" not in each.stops and not each.found.guessed
        ]

    def is_explained(self, found: Found, by: Iterable[Found], kind: Kind) -> bool:
        """Whether one of these is said of it: in the same thought; of a crisis, as what that is about."""
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
        """Whether it only says when: "after the exams"."""
        before = (word.text for word in reversed(self.words[max(found.start - 3, 0) : found.start]))
        return next((word for word in before if word not in _ARTICLES), "") in _WHEN

    def has_a_year(self, found: Found) -> bool:
        """Whether its thought says in which year it was."""
        number = self._thought(found)
        start = self.ends[number - 1] + 1 if number else 0
        end = self.ends[number] if number < len(self.ends) else len(self.words)
        return any(_YEAR.fullmatch(word.text) for word in self.words[start:end])

    def _thought(self, found: Found) -> int:
        return bisect_right(self.ends, found.start)


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: Rule
    combinations: tuple[Groups, ...]


class Guard:
    """Rules, made ready once. Listening keeps nothing."""

    def __init__(self, rules: RuleBook, compiled: Compiled | None = None) -> None:
        """`compiled` is what `compile_rules` gives for these rules, if it was computed before."""
        language, heard = rules.language, rules.heard
        compiled = compiled or compile_rules(rules)
        self._phrases = PhraseBook(
            language.between, language.negative, Others(language.others, language.endings), compiled.tree
        )
        grammar = _grammar(language)
        self._answers = _Answers(rules.replies)
        self._reader = Reader(
            self._phrases.vocabulary | self._answers.vocabulary | _small_words(language, grammar),
            _worth_correcting(compiled.finding_words, language),
            _expanded(language),
            language.written,
            self._phrases.pairs,
            compiled.misspellings,
        )
        cues = {
            reason: Cue(section.reach, section.most, section.spares, section.binds)
            for reason, section in language.cues.items()
        }
        self._cues = frozenset(cues)
        self._scopes = Scopes(cues, grammar)
        self._gauge = _gauge(heard)
        self._compounds = [
            (name, groups, compound.within)
            for name, compound in heard.compounds.items()
            for groups in book.combinations(compound.when)
        ]
        self._names = tuple(
            name for _, groups, _ in self._compounds if HAS_IT in groups[-1] for name in groups[0]
        )
        self._rules = tuple(_Compiled(rule, book.combinations(rule.when)) for rule in rules.rules)
        self._worth_asking = _by_concept(self._rules)
        self._reverse = tuple(rules.replies.reverse)

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message. `context` is what the assistant asked last."""
        verdict = self._verdict(self._listen(text))
        if context:
            verdict = verdict.raised_by(self._as_reply(text, context))
        return verdict

    @property
    def vocabulary(self) -> frozenset[str]:
        """The words of English that it knows."""
        return frozenset(self._reader.known)

    def takes_back(self, text: str) -> bool:
        """Whether danger is spoken of and taken back: denied, long ago, supposed, taught or figurative.

        So is the name of an illness that somebody had: "my stroke in 2010".
        """
        listened = self._listen(text)
        names = (each for name in self._names for each in listened.heard.get(name, ()))
        return any(each.stops or listened.has_a_year(each.found) for each in names) or any(
            _together(listened, each, rule, None)
            and not _together(listened, each, rule, _even_if(rule, each))
            for rule, each in ((self._rules[number].rule, each) for number, each in self._possible(listened))
        )

    def says_nothing(self, text: str) -> bool:
        """Whether it answers no question and brings nothing: a "hm" before the answer comes."""
        return self._answers.says_nothing([word.text for word in self._reader.read(text)])

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether it says that the danger of an answer is over, in good hands or never was, and no more.

        Who asks is not sure of it, and whatever else is said may be that it is not over.
        """
        if "?" in text:
            return False
        listened = self._listen(text)
        over = {
            at
            for name in _ends(earlier)
            for each in listened.heard.get(name, ())
            if "negated" not in each.stops and not each.found.guessed
            for at in range(each.found.start, each.found.end)
        }
        rest = ["." if at in over else word.text for at, word in enumerate(listened.words)]
        return bool(over) and self._answers.is_beside_over(rest)

    def still(self, text: str, earlier: Verdict) -> Verdict:
        """What a message leaves of the danger that the answer before it spoke of.

        All of it stays where the message brings nothing of its own: an answer, a thank-you, "what should I
        do". A means that is named makes a danger to oneself graver.
        """
        if not earlier.flagged or self.is_over(text, earlier):
            return Verdict()
        if earlier.is_of_oneself and self._names_means(text):
            return METHOD
        own = self.check(text).rule_ids
        leans = bool(own) and LEANS.issuperset(own)
        said = [word.text for word in self._reader.read(text)]
        return staying(earlier) if leans or self._answers.brings_nothing(said) else Verdict()

    def _says(self, text: str, name: str) -> bool:
        """Whether one of the phrases of a reply is said and not denied."""
        heard = self._listen(text).heard.get(name, ())
        return any("negated" not in each.stops and not each.found.guessed for each in heard)

    def _names_means(self, text: str) -> bool:
        """Whether somebody names what they may do it with; with a loose word, if nothing else is said."""
        if self._says(text, _MEANS):
            return True
        words = self._reader.read(text)
        places = [
            range(each.start, each.end) for each in self._phrases.find(words) if each.concept == _BARE_MEANS
        ]
        named = {at for place in places for at in place}
        return bool(named) and all(at in named or word.text in _BESIDE_MEANS for at, word in enumerate(words))

    def explain(self, text: str) -> list[Reason]:
        """Every rule that fired or was stopped, with the words that did it."""
        listened = self._listen(text)
        reasons = []
        for compiled in self._rules:
            rule = compiled.rule
            for combination in compiled.combinations:
                live = _together(listened, combination, rule, _even_if(rule, combination))
                found = live or _together(listened, combination, rule, None)
                if found is None:
                    continue
                stopped = () if live else self._stoppers(listened, found, rule)
                reasons.append(
                    Reason(
                        rule,
                        tuple(self._reader.quote(text, each.found.start, each.found.end) for each in found),
                        stopped,
                    )
                )
                if live:
                    break
        return sorted(reasons, key=lambda reason: (bool(reason.stopped_by), -reason.rule.tier))

    def set_aside(self, text: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """The words that were heard but taken back, whatever rule they might have come to, and by what."""
        listened = self._listen(text)
        aside: dict[str, tuple[tuple[str, str], ...]] = {}
        for each in (one for often in listened.heard.values() for one in often if one.stops):
            words = self._reader.quote(text, each.found.start, each.found.end)
            stops = [stop for stop in listened.stops if stop.reason in each.stops and stop.covers(each.found)]
            aside[words] = tuple(
                dict.fromkeys(
                    (stop.reason, self._reader.quote(text, stop.cue_start, stop.cue_end)) for stop in stops
                )
            )
        return {
            words: stops
            for words, stops in aside.items()
            if stops and len(words) >= SHORTEST_ASIDE and not _is_part(words, aside)
        }

    def _verdict(self, listened: _Listened, also: frozenset[str] = frozenset()) -> Verdict:
        verdict = Verdict()
        fired = -1
        for number, each in self._possible(listened):
            if number == fired:
                continue
            rule = self._rules[number].rule
            even_if = _even_if(rule, each)
            if _together(listened, each, rule, even_if | also if also else even_if):
                verdict = verdict.raised_by(Verdict(rule.kind, rule.tier, (rule.id,)))
                fired = number
        return verdict

    def _possible(self, listened: _Listened) -> Iterator[tuple[int, Groups]]:
        """The combinations of which something was heard, with their rules' numbers, in the rules' order."""
        asked = {place for name in listened.heard for place in self._worth_asking.get(name, ())}
        for number, which in sorted(asked):
            yield number, self._rules[number].combinations[which]

    def _listen(self, text: str) -> _Listened:
        words = self._reader.read(text)
        found = self._phrases.find(words)
        found += self._gauge.find(words, found)
        found += _cries(words)
        stops = self._scopes.stops(words, found)
        stopped: dict[int, list[Stop]] = defaultdict(list)
        for stop in stops:
            for at in range(stop.start, stop.end):
                stopped[at].append(stop)
        heard: dict[str, list[_Heard]] = {}
        for each in found:
            if each.concept not in self._cues:
                near = stopped.get(each.start)
                one = self._taken_back(words, each, near) if near else _Heard(each, _NONE, _NONE)
                heard.setdefault(each.concept, []).append(one)
        for name, often in heard.items():
            heard[name] = _first_and_last(often)
        names = heard.keys()
        for name, groups, within in self._compounds:
            if names.isdisjoint(groups[0]) or names.isdisjoint(groups[-1]):
                continue
            if made := _compounded(heard, name, groups, within):
                heard.setdefault(name, []).extend(made)
        ends = self._scopes.thoughts(words)
        return _Listened(text, words, ends, heard, stops)

    def _taken_back(self, words: Sequence[Word], found: Found, near: Sequence[Stop]) -> _Heard:
        """A finding, and which of the stops that reach to its beginning take it back."""
        stops = [stop for stop in near if stop.covers(found)]
        if not stops:
            return _Heard(found, _NONE, _NONE)
        scopes = self._scopes
        reasons = [stop.reason for stop in stops if not scopes.is_statement(words, stop, found)]
        bound = [stop.reason for stop in stops if scopes.binds(words, stop, found)]
        return _Heard(found, frozenset(reasons), frozenset(bound))

    def _stoppers(
        self, listened: _Listened, heard: Iterable[_Heard], rule: Rule
    ) -> tuple[tuple[str, str], ...]:
        taken_back = [
            (stop.reason, self._reader.quote(listened.text, stop.cue_start, stop.cue_end))
            for each in heard
            for stop in listened.stops
            if stop.reason in each.stopped(rule.kind) - rule.even_if
        ]
        explained = [
            ("unless", self._reader.quote(listened.text, each.found.start, each.found.end))
            for name in rule.unless
            for each in listened.heard.get(name, ())
        ]
        return tuple(dict.fromkeys((*taken_back, *explained)))

    def _as_reply(self, text: str, context: str) -> Verdict:
        """What a short reply says of what was asked: "yes" to "any thoughts of harming yourself?"."""
        answers = self._answers.of([word.text for word in self._reader.read(text)])
        verdict = Verdict()
        names_means = self._names_means(text)
        pick = self._answers.picks([word.text for word in self._reader.read(text)])
        figure = self._gauge.first_figure(self._reader.read(text))
        for question in _questions(context) if answers or names_means or pick or figure else ():
            if pick:
                verdict = verdict.raised_by(self._picked(question, pick))
            if figure:
                verdict = verdict.raised_by(self._measured(question, figure))
            put = self._listen(question)
            asked = self._listen(f"{_as_own_words(question, _I)}. {_as_own_words(question, _ME)}")
            for answer in answers:
                verdict = verdict.raised_by(self._answered(put, asked, answer))
            if names_means and self._verdict(asked, ASKED).is_of_oneself:
                verdict = verdict.raised_by(METHOD)
        return verdict

    def _picked(self, question: str, pick: Pick) -> Verdict:
        """What it says to choose one of what a question offers: "the second one"."""
        options = _OPTIONS.split(question)
        place = _PLACES[pick]
        if not -len(options) <= place < len(options) or len(options) < 2:
            return Verdict()
        own = f"{_as_own_words(options[place], _I)}. {_as_own_words(options[place], _ME)}"
        return self._answered(self._listen(options[place]), self._listen(own), "yes")

    def _measured(self, question: str, figure: str) -> Verdict:
        """What a bare number says to a question for a reading: "1.6" to "what is his blood sugar?"."""
        words = self._reader.read(question)
        readings = [
            " ".join(word.text for word in words[found.start : found.end])
            for found in self._phrases.find(words)
            if self._gauge.is_reading(found.concept)
        ]
        if not readings:
            return Verdict()
        said = ". ".join(f"{reading} {figure}" for reading in readings)
        own = _as_own_words(question, _I)
        if not self._verdict(self._listen(own), ASKED).flagged:
            said = f"{said}. {own}"
        return self._verdict(self._listen(said), ASKED)

    def _answered(self, put: _Listened, asked: _Listened, answer: Answer) -> Verdict:
        """What an answer says to a question, as it was `put` and as it is `asked` in the person's words."""
        reverse = {name: put.heard[key] for name in self._reverse if (key := f"asked.{name}") in put.heard}
        if answer == ("yes" if reverse else "no"):
            return Verdict()
        if reverse and answer == "after all":
            return Verdict()
        takes_nothing_back = ASKED | {"negated"} if answer == "after all" else ASKED
        verdict = self._verdict(replace(put, heard=reverse) if reverse else asked, takes_nothing_back)
        if answer == "unsure":
            return Verdict("crisis", 1, verdict.rule_ids) if verdict.kind == "crisis" else Verdict()
        return verdict


def staying(earlier: Verdict) -> Verdict:
    """The verdict of an answer for the message after it, known for one that stays."""
    return replace(earlier, rule_ids=(*(each for each in earlier.rule_ids if each != STILL), STILL))


def _ends(earlier: Verdict) -> tuple[str, ...]:
    """What may say that a danger is over."""
    if earlier.kind == "crisis":
        return (_OVER,)
    felt = not any(rule_id.startswith(FELT_LATE) for rule_id in earlier.rule_ids)
    return (_OVER, _OVER_BY_THEM, _OVER_AS_FELT) if felt else (_OVER, _OVER_BY_THEM)


class _Answers:
    """Knows a yes from a no, whatever is said before it, and one that is taken back at once."""

    def __init__(self, replies: Replies) -> None:
        self._fillers = _spelled(replies.fillers)
        self._plain: dict[Answer, frozenset[str]] = {
            "yes": _spelled(replies.plain),
            "no": _spelled(replies.no),
        }
        self._all: dict[Answer, frozenset[str]] = {
            "no": self._plain["no"],
            "unsure": _spelled(replies.unsure),
            "yes": _spelled((*replies.yes, *replies.plain)),
        }
        self._no_more = _spelled(replies.no_more)
        self._someone = _spelled(replies.someone)
        self._after_all = _spelled(replies.after_all)
        self._picks: dict[str, Pick] = {
            phrase: pick for pick, phrases in replies.picks.items() for phrase in _spelled(phrases)
        }
        self._light = self._fillers.union(self._someone, _spelled(replies.at_a_loss), *self._all.values())
        self._beside_over = _spelled(replies.beside_over)
        known = self._light.union(self._beside_over, self._no_more, self._after_all, self._picks)
        self.vocabulary = frozenset(word for phrase in known for word in phrase.split())

    def of(self, said: Sequence[str]) -> tuple[Answer, ...]:
        """What a reply answers first, and what else it says plainly: "no... actually yes" is both."""
        thoughts = [list(thought) for is_said, thought in groupby(said, _is_word) if is_said]
        while thoughts and not (rest := self._without_fillers(thoughts[0])):
            thoughts.pop(0)
        if not thoughts:
            return ()
        if len(thoughts) == 1 and " ".join(rest) in self._someone:
            return ("yes",)
        first, length = self._begins(rest, self._all)
        if first is None:
            return self._at_last(thoughts)
        if first == "yes" and rest[0] not in self._plain["yes"]:
            if any(self._begins(thought, {"no": self._no_more})[0] for thought in thoughts[1:]):
                return ()
            denied, _ = self._begins(rest[length:], {"no": self._plain["no"]})
            first = denied or first
        answers = [first]
        for thought in (rest[length:], *thoughts[1:]):
            rest = self._without_fillers(thought)
            answer, length = self._begins(rest, self._plain)
            if answer == "yes" or (answer == "no" and length == len(rest)):
                answers.append(answer)
            elif first == "no" and " ".join(rest) in self._after_all:
                answers.append("after all")
        return tuple(dict.fromkeys(answers))

    def _at_last(self, thoughts: Sequence[Sequence[str]]) -> tuple[Answer, ...]:
        """The answer of a short reply that comes to it late: "the tongue yes", "since an hour ago, yes"."""
        told = 0
        for number, thought in enumerate(thoughts):
            answer, length = (
                self._begins(self._without_fillers(thought), self._plain) if number else (None, 0)
            )
            if answer == "yes" or (answer == "no" and length == len(thought)):
                return (answer,)
            told += len(thought)
            if told > LATEST_ANSWER:
                break
            if thought[-1] in self._plain["yes"]:
                return ("yes",)
        return ()

    def picks(self, said: Sequence[str]) -> Pick | None:
        """Which of what was asked a reply chooses, if it says no more than that."""
        return self._picks.get(" ".join(self._without_fillers([word for word in said if _is_word(word)])))

    def says_nothing(self, said: Sequence[str]) -> bool:
        """Whether there are only words that say nothing themselves, or none."""
        thoughts = [list(thought) for is_said, thought in groupby(said, _is_word) if is_said]
        return not any(self._without_fillers(thought) for thought in thoughts)

    def brings_nothing(self, said: Sequence[str]) -> bool:
        """Whether there is nothing but answers and what is said by who knows not what to do."""
        return _is_made_of([word for word in said if _is_word(word)], self._light)

    def is_beside_over(self, said: Sequence[str]) -> bool:
        """Whether there is nothing but what may be said beside that danger is over."""
        thoughts = (list(thought) for is_said, thought in groupby(said, _is_word) if is_said)
        return all(_is_made_of(thought, self._beside_over) for thought in thoughts)

    def _without_fillers(self, thought: Sequence[str]) -> Sequence[str]:
        for length in range(min(len(thought), LONGEST_ANSWER), 0, -1):
            if " ".join(thought[:length]) in self._fillers:
                return self._without_fillers(thought[length:])
        return thought

    def _begins(
        self, thought: Sequence[str], phrases: Mapping[Answer, frozenset[str]]
    ) -> tuple[Answer | None, int]:
        for length in range(min(len(thought), LONGEST_ANSWER), 0, -1):
            beginning = " ".join(thought[:length])
            for answer, known in phrases.items():
                if beginning in known:
                    return answer, length
        return None, 0


def _is_part(words: str, all_words: Iterable[str]) -> bool:
    """Whether these are among the words of another of them."""
    return any(words in others and words != others for others in all_words)


def _spelled(phrases: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(words) for phrase in phrases for words in spelled_out(phrase))


def _is_made_of(words: Sequence[str], phrases: frozenset[str]) -> bool:
    """Whether words are such phrases in a row, and nothing else."""
    while words:
        lengths = range(min(len(words), LONGEST_ANSWER), 0, -1)
        length = next((most for most in lengths if " ".join(words[:most]) in phrases), 0)
        if not length:
            return False
        words = words[length:]
    return True


def _is_word(text: str) -> bool:
    return text[0].isalnum()


def _by_concept(rules: Sequence[_Compiled]) -> dict[str, list[tuple[int, int]]]:
    """Which combinations, by rule and place, are worth a look once a concept was heard.

    Of each combination only the group with the fewest concepts says so: without it nothing comes of the rest.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for number, compiled in enumerate(rules):
        for which, groups in enumerate(compiled.combinations):
            for name in min(groups, key=len):
                places.setdefault(name, []).append((number, which))
    return places


def load(folder: Path, cache: Path | None = None) -> Guard:
    """The guard of a folder of rules. Its slow part is read from the folder `cache`, or computed and kept."""
    rules = book.load(folder)
    compute = partial(compile_rules, rules)
    return Guard(rules, cached(folder, cache, compute) if cache else compute())


def compile_rules(rules: RuleBook) -> Compiled:
    """Spell out every phrase of the rules into one tree, and list the misspellings of its words."""
    language, replies = rules.language, rules.replies
    phrases = PhraseBook(language.between, language.negative, Others(language.others, language.endings))
    for concept, texts in rules.heard.concepts.items():
        for text in texts:
            phrases.add(concept, text, of_others=True)
    for concept, texts in replies.reverse.items():
        for text in texts:
            phrases.add(f"asked.{concept}", text)
    finding_words = set(phrases.vocabulary)
    named = {
        _OVER: replies.over,
        _OVER_BY_THEM: replies.over_by_them,
        _OVER_AS_FELT: replies.over_as_felt,
        _MEANS: replies.means,
        _BARE_MEANS: replies.bare_means,
    } | {reason: section.phrases for reason, section in language.cues.items()}
    for name, texts in named.items():
        for text in texts:
            phrases.add(name, text)
    words = (*_worth_correcting(finding_words, language), *language.expand)
    return Compiled(phrases.tree, finding_words, misspellings_of(words))


def _worth_correcting(finding_words: Set[str], language: Language) -> frozenset[str]:
    """The words for which a misspelling is read as the word: those of findings, and long small ones."""
    long = {word for word in language.between if len(word) >= LONG_ENOUGH}
    return frozenset(finding_words - language.between | long)


def _expanded(language: Language) -> dict[str, tuple[str, ...]]:
    return {short: tuple(words.split()) for short, words in language.expand.items()}


def _small_words(language: Language, grammar: Grammar) -> frozenset[str]:
    """The words outside of phrases that the reader knows."""
    known = language.look_alikes | language.between | language.subjects
    known |= grammar.asks | grammar.openings | grammar.persons | grammar.talk
    return frozenset(known | grammar.general | grammar.complements | grammar.grave | grammar.living)


def _grammar(language: Language) -> Grammar:
    return Grammar(
        language.breaks,
        language.subjects,
        language.asks,
        language.openings,
        language.persons,
        language.talk,
        language.negative,
        language.general,
        language.complements,
        language.grave,
        language.living,
    )


def _gauge(heard: Concepts) -> Gauge:
    """The readings that are findings: bands of single figures, and pairs of blood pressure."""
    measures = {
        concept: Measure(
            tuple(Band(band.concept, band.low, band.high) for band in section.bands),
            section.before,
            section.after,
        )
        for concept, section in heard.measures.items()
    }
    pressures = [
        (Band(each.concept, *each.upper), Band(each.concept, *each.lower)) for each in heard.pressures
    ]
    return Gauge(measures, pressures)


def _even_if(rule: Rule, groups: Groups) -> frozenset[str]:
    """The cues that do not stop a combination: findings that come together are somebody's, even in a quiz."""
    return rule.even_if | _OF_NOBODY[rule.kind] if len(groups) > 1 else rule.even_if


def _together(
    listened: _Listened, groups: Groups, rule: Rule, even_if: frozenset[str] | None
) -> tuple[_Heard, ...] | None:
    """One finding of each group, close to the first one's, that is neither taken back nor explained away.

    No two of them are the same words: "cold hands" are no cold place with a cold hand in it. Those taken back
    count where `even_if` allows it; without `even_if` all do.
    """
    heard = listened.heard
    for group in groups:
        if heard.keys().isdisjoint(group):
            return None
    harmless = listened.explains(rule) if even_if is not None else ()
    candidates: list[list[_Heard]] = []
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


def _compounded(
    heard: Mapping[str, Sequence[_Heard]], name: str, groups: Groups, within: int
) -> list[_Heard]:
    """The findings that are made of one of each group, standing close together."""
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
            made.append(_Heard(Found(name, start, end), stops, bound, parts))
    return made


def _first_and_last(often: list[_Heard]) -> list[_Heard]:
    """The times a concept was heard; of more than a few that are taken back alike, the first and the last."""
    if len(often) <= MOST_OF_A_CONCEPT:
        return often
    times = Counter((one.stops, one.bound) for one in often)
    so_far: Counter[tuple[frozenset[str], frozenset[str]]] = Counter()
    kept = []
    for one in often:
        which = one.stops, one.bound
        so_far[which] += 1
        if min(so_far[which] - 1, times[which] - so_far[which]) < MOST_OF_A_CONCEPT // 2:
            kept.append(one)
    return kept


def _cries(words: Sequence[Word]) -> list[Found]:
    """The sentences of a few words."""
    cries = []
    for start, end in sentences(words):
        said = (word for word in words[start:end] if word.text[0].isalnum())
        if len(list(islice(said, FEW_WORDS + 1))) <= FEW_WORDS:
            cries.append(Found(BARE, start, end, negative=True))
    return cries


def _near(first: Found, others: Sequence[_Heard], within: int) -> list[_Heard]:
    """Those other findings that begin or end no more than so many words from the first."""
    _, start, end, *_ = first
    earliest, latest = start - within, end + within
    return [
        each
        for each in others
        if each.found.start <= latest and each.found.end >= earliest and each.found != first
    ]


def _gap(one: Found, other: Found) -> int:
    """How many words stand between two findings."""
    return max(one.start, other.start) - min(one.end, other.end)


def _as_own_words(question: str, own: Mapping[str, str]) -> str:
    """A question to the person in their own words: "harming yourself" as "harming myself"."""
    return _YOU.sub(lambda found: own[found[0].lower()], question)


def _questions(context: str) -> list[str]:
    """What an answer asks of the person; one without a question mark asks with its last sentence."""
    sentences = [sentence for sentence in _SENTENCE.findall(context) if sentence.strip(" .!?\n")]
    asked = [sentence for sentence in sentences if sentence.endswith("?")] or sentences[-1:]
    return [sentence for sentence in asked if not _OFFERS.match(sentence)]
