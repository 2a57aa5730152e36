"""The guard decides by rules whether a message is an emergency or a crisis, and explains why. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from agents.safety.rules import rules as book
from agents.safety.rules.answers import Answer, Answers
from agents.safety.rules.compiled import Compiled, cached
from agents.safety.rules.findings import (
    Groups,
    Heard,
    Listened,
    compounded,
    cries,
    first_and_last,
    together,
)
from agents.safety.rules.measures import Band, Gauge, Measure
from agents.safety.rules.phrases import Others, PhraseBook
from agents.safety.rules.retractions import Retractions
from agents.safety.rules.rules import HAS_IT, Concepts, Kind, Language, Pick, Rule, RuleBook
from agents.safety.rules.scope import IMPERSONAL, Cue, Grammar, Scopes
from agents.safety.rules.text import Reader, misspellings_of
from agents.safety.verdict import PASSIVE, Certainty, Verdict

SHORTEST_ASIDE: Final = 3
"""Minimum word length reported by `set_aside` for a retracted finding."""
LONGEST_READING: Final = 8
"""Maximum number of words in a reply whose figure answers a question for a reading."""
LONGEST_SPELLED: Final = 3
"""Maximum number of words in a reply whose figure is spelled out: "the last one" is no reading of 1."""
LONGEST_MEANS: Final = 9
"""Maximum number of words in a reply that names a means; a longer one may speak of any tablets."""
_new: Final = tuple.__new__
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
"""Matches questions that only offer to continue, such as "would you like to know"."""
_YOU: Final = re.compile(r"\b(?:yourself|yours|your|you)\b", re.IGNORECASE)
ASKED: Final = frozenset(("hypothetical", "educational", IMPERSONAL))
"""Cues that retract nothing in a question to the person, such as 'any' or 'if'."""
_OVER: Final = "reply.over"
_OVER_BY_THEM: Final = "reply.over_by_them"
_OVER_AS_FELT: Final = "reply.over_as_felt"
_MISTAKEN: Final = "reply.mistaken"
_MEANS: Final = "reply.means"
_BARE_MEANS: Final = "reply.bare_means"
_PLACES: Final[Mapping[Pick, int]] = {"first": 0, "second": 1, "last": -1}
_OPTIONS: Final = re.compile(r"\s*,?\s*\bor\b\s*|\s*,\s*", re.IGNORECASE)
_BESIDE_MEANS: Final = frozenset((
    "a", "an", "the", "my", "some", "with", "by", "from", "off", "on", "in", "into", "under", "out",
    "of", "it", "its", "is", "maybe", "probably", "yes", "yeah", "just", "right", "here", "there", ",", ".",
))  # fmt: skip
"""Words that may surround a loose word for a means, in a message that says nothing else."""
_MAY_HAVE_FEVER: Final = frozenset(
    ("fever", "temp_word", "baby", "young_infant", "newborn_word", "weeks_of_age")
)
"""Concepts after which a bare figure may be a temperature."""
_COULD_BE_FEVER: Final = (37.5, 43.0)
_AFTER_A_COUNT: Final = frozenset((
    ".", ",", "of", "since", "so", "today", "in", "over", "this", "last", "altogether", "total", "tablets",
    "pills", "and", "by", "now", "tonight", "yesterday", "already",
))  # fmt: skip
"""Words that may follow a number of tablets; "18 years" is none."""
_BEFORE_AN_AGE: Final = frozenset(("i", "im", "am", "aged", "age", "turned", "hes", "shes"))
LONG_ENOUGH: Final = 5
"""Minimum length of a small word for its misspellings to be corrected."""
METHOD: Final = Verdict("crisis", 3, ("suicide.method",))
"""The verdict for naming a means of suicide in a conversation about one's own death."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule fired or was stopped: the words it matched, and the cues that retracted them."""

    rule: Rule
    heard: tuple[str, ...]
    stopped_by: tuple[tuple[str, str], ...] = ()
    guessed: bool = False
    """Whether a word was misspelt and corrected."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the rule, if it fired."""
        return _verdict_of(self.rule, guessed=self.guessed)


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: Rule
    combinations: tuple[Groups, ...]


class Guard:
    """Checks messages against compiled rules. It keeps nothing of a message."""

    def __init__(self, rules: RuleBook, compiled: Compiled | None = None) -> None:
        """Pass `compiled`, the result of `compile_rules` for these rules, to save computing it again."""
        language, heard = rules.language, rules.heard
        compiled = compiled or compile_rules(rules)
        self._phrases = PhraseBook(
            language.between, language.negative, Others(language.others, language.endings), compiled.tree
        )
        grammar = _grammar(language)
        self._answers = Answers(rules.replies)
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
        self._binds = {reason: cue.binds for reason, cue in cues.items()}
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
        self._asked_for = frozenset(
            name for each in self._rules for groups in each.combinations for group in groups for name in group
        ).union(name for _, groups, _ in self._compounds for group in groups for name in group)

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message. `context` is the assistant's text that it may reply to."""
        verdict = self._verdict(self._listen(text))
        return verdict.raised_by(self.check_reply(text, context)) if context else verdict

    def always(self, verdict: Verdict) -> Verdict:
        """The part of a verdict that comes from rules which nothing may dismiss."""
        found = Verdict()
        for compiled in self._rules:
            if compiled.rule.always and compiled.rule.id in verdict.rule_ids:
                found = found.raised_by(Verdict(compiled.rule.kind, compiled.rule.tier, (compiled.rule.id,)))
        return found

    def has_finding(self, text: str) -> bool:
        """Whether a text has a figure, or anything that a rule asks for."""
        words = self._reader.read(text)
        if self._gauge.first_figure(words) is not None:
            return True
        return any(found.concept in self._asked_for for found in self._phrases.find(words))

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it, as sentences.

        "38.6" after talk of a fever is a temperature. "about 18" after "I took some" is a number of tablets,
        if a medicine was named.
        """
        words, earlier = self._reader.read(said), self._reader.read(before)
        figure = self._gauge.first_figure(words)
        if figure is None or not figure[0].isdigit():
            return []
        texts = [word.text for word in words]
        at = texts.index(figure)
        following, preceding = (*texts, ".")[at + 1], texts[at - 1] if at else "."
        named = {found.concept: earlier[found.start].text for found in self._phrases.find(earlier)}
        concepts = named.keys() | {found.concept for found in self._phrases.find(words)}
        sentences = []
        low, high = _COULD_BE_FEVER
        if not concepts.isdisjoint(_MAY_HAVE_FEVER) and low <= float(figure) <= high:
            sentences.append(f"temperature {figure}")
        is_count = following in _AFTER_A_COUNT and preceding not in _BEFORE_AN_AGE
        if is_count and "took" in concepts and "medicine" in named:
            sentences.append(f"took {figure} {named['medicine']}")
        return sentences

    def as_read(self, text: str) -> str:
        """The text in the words that the rules read: misspellings corrected, disguised letters restored."""
        return " ".join(word.text for word in self._reader.read(text))

    @property
    def vocabulary(self) -> frozenset[str]:
        """The English words that occur in the rules."""
        return frozenset(self._reader.known)

    def takes_back(self, text: str) -> bool:
        """Whether a text names a danger but retracts it: negated, past, hypothetical, taught or figurative.

        The name of a past illness counts too, as in "my stroke in 2010".
        """
        listened = self._listen(text)
        names = (each for name in self._names for each in listened.heard.get(name, ()))
        return any(each.stops or listened.has_a_year(each.found) for each in names) or any(
            together(listened, each, rule, None) and not together(listened, each, rule, _even_if(rule, each))
            for rule, each in ((self._rules[number].rule, each) for number, each in self._possible(listened))
        )

    def says_nothing(self, text: str) -> bool:
        """Whether a text consists of fillers only, such as a "hm" before the real answer."""
        return self._answers.says_nothing([word.text for word in self._reader.read(text)])

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether a text says that the previous danger is over, cared for or never existed, and no more.

        False for a question, because the person is not sure. False if the text says anything else, because
        that may mean that the danger is not over.
        """
        return bool(self._ending(text, earlier))

    def is_mistake(self, text: str, earlier: Verdict) -> bool:
        """Whether `is_over` holds because the text calls the danger a mistake, a joke or a false alarm."""
        return _MISTAKEN in self._ending(text, earlier)

    def _ending(self, text: str, earlier: Verdict) -> set[str]:
        """The names of the phrases by which a text says that the danger is over, if it says no more."""
        if "?" in text:
            return set()
        listened = self._listen(text)
        ends = [
            each.found
            for name in _ends(earlier)
            for each in listened.heard.get(name, ())
            if "negated" not in each.stops and not each.found.guessed
        ]
        over = {at for found in ends for at in range(found.start, found.end)}
        rest = ["." if at in over else word.text for at, word in enumerate(listened.words)]
        return {found.concept for found in ends} if over and self._answers.is_beside_over(rest) else set()

    def answer(self, text: str) -> Literal["yes", "no", "unsure"] | None:
        """What a reply says to a question about danger; None if it says neither plainly.

        A reply with a plain yes is a yes, whatever else it says. Anything but a yes or a no beside a no, or
        beside a softer yes such as "sometimes", makes it no plain answer.
        """
        return self._answers.plainly([word.text for word in self._reader.read(text)])

    def is_light(self, text: str) -> bool:
        """Whether a text is only a "haha ok", a "thanks" or a "bye"."""
        return self._answers.is_light([word.text for word in self._reader.read(text)])

    def brings_nothing(self, text: str) -> bool:
        """Whether a text has no content of its own: an answer, a thank-you, "what should I do"."""
        return self._answers.brings_nothing([word.text for word in self._reader.read(text)])

    def means_of(self, text: str, earlier: Verdict) -> Verdict:
        """The graver danger if a text names a means after a danger to oneself."""
        is_own = earlier.family == "crisis" and earlier.is_certain
        return METHOD if is_own and self._names_means(text) else Verdict()

    def _says(self, text: str, name: str) -> bool:
        """Whether a text contains a phrase of this name that is typed exactly and not negated."""
        heard = self._listen(text).heard.get(name, ())
        return any("negated" not in each.stops and not each.found.guessed for each in heard)

    def _names_means(self, text: str) -> bool:
        """Whether a text names a means of suicide. A loose word counts only if the text says nothing else."""
        words = self._reader.read(text)
        if sum(word.text[0].isalnum() for word in words) > LONGEST_MEANS:
            return False
        if self._says(text, _MEANS):
            return True
        places = [
            range(each.start, each.end) for each in self._phrases.find(words) if each.concept == _BARE_MEANS
        ]
        named = {at for place in places for at in place}
        return bool(named) and all(at in named or word.text in _BESIDE_MEANS for at, word in enumerate(words))

    def explain(self, text: str) -> list[Reason]:
        """Every safety rule that matched, with the words that it matched and those that cancelled it."""
        listened = self._listen(text)
        reasons = []
        for compiled in self._rules:
            rule = compiled.rule
            for combination in compiled.combinations:
                live = together(listened, combination, rule, _even_if(rule, combination))
                found = live or together(listened, combination, rule, None)
                if found is None:
                    continue
                stopped = () if live else self._stoppers(listened, found, rule)
                reasons.append(
                    Reason(
                        rule,
                        tuple(self._reader.quote(text, each.found.start, each.found.end) for each in found),
                        stopped,
                        any(each.found.guessed for each in found),
                    )
                )
                if live:
                    break
        return sorted(reasons, key=lambda reason: (bool(reason.stopped_by), -reason.rule.tier))

    def set_aside(self, text: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """The words of retracted findings, also of those that no rule uses, and what retracted them."""
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

    def _verdict(self, listened: Listened, also: frozenset[str] = frozenset()) -> Verdict:
        """The verdict of all rules together: certain if one of them is, since they support each other."""
        verdict, is_certain = Verdict(), False
        fired = -1
        for number, each in self._possible(listened):
            if number == fired:
                continue
            rule = self._rules[number].rule
            even_if = _even_if(rule, each)
            heard = together(listened, each, rule, even_if | also if also else even_if)
            if heard is None:
                continue
            guessed = any(one.found.guessed for one in heard) and not together(
                listened.as_typed, each, rule, even_if | also
            )
            is_certain |= _verdict_of(rule, guessed=guessed).is_certain
            verdict = verdict.raised_by(Verdict(rule.kind, rule.tier, (rule.id,)))
            if not guessed:
                fired = number
        return verdict if is_certain or not verdict.flagged else replace(verdict, certainty="possible")

    def _possible(self, listened: Listened) -> Iterator[tuple[int, Groups]]:
        """The combinations that may fire, each with its rule's number, in the order of the rules."""
        asked = {place for name in listened.heard for place in self._worth_asking.get(name, ())}
        for number, which in sorted(asked):
            yield number, self._rules[number].combinations[which]

    def _listen(self, text: str) -> Listened:
        words = self._reader.read(text)
        found = self._phrases.find(words)
        found += self._gauge.find(words, found)
        found += cries(words)
        stops = self._scopes.stops(words, found)
        retracting = Retractions(words, stops, self._binds).of
        heard: dict[str, list[Heard]] = {}
        for each in found:
            if (concept := each[0]) not in self._cues:
                one = _new(Heard, (each, *retracting(each), ()))
                if (often := heard.get(concept)) is None:
                    heard[concept] = [one]
                else:
                    often.append(one)
        for name, often in heard.items():
            heard[name] = first_and_last(often)
        names = heard.keys()
        for name, groups, within in self._compounds:
            if names.isdisjoint(groups[-1]) or names.isdisjoint(groups[0]):
                continue
            if made := compounded(heard, name, groups, within):
                heard.setdefault(name, []).extend(made)
        ends = self._scopes.thoughts(words)
        return Listened(text, words, ends, heard, stops)

    def _stoppers(
        self, listened: Listened, heard: Iterable[Heard], rule: Rule
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

    def check_reply(self, text: str, context: str) -> Verdict:
        """The verdict on a short reply, such as "yes" to "any thoughts of harming yourself?"."""
        answers = self._answers.of([word.text for word in self._reader.read(text)])
        verdict = Verdict()
        names_means = self._names_means(text)
        pick = self._answers.picks([word.text for word in self._reader.read(text)])
        words = self._reader.read(text)
        figure = self._gauge.first_figure(words) if len(words) <= LONGEST_READING else None
        said = ["", *(word.text for word in words)]
        is_spelled = figure is not None and not figure[0].isdigit() and len(words) > LONGEST_SPELLED
        if figure and (is_spelled or said[said.index(figure) - 1] in _BEFORE_AN_AGE):
            figure = None
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
        """The verdict on choosing one option of a question, as in "the second one"."""
        options = _OPTIONS.split(question)
        place = _PLACES[pick]
        if not -len(options) <= place < len(options) or len(options) < 2:
            return Verdict()
        own = f"{_as_own_words(options[place], _I)}. {_as_own_words(options[place], _ME)}"
        return self._answered(self._listen(options[place]), self._listen(own), "yes")

    def _measured(self, question: str, figure: str) -> Verdict:
        """The verdict on a bare number in reply to a question: "1.6" to "what is his blood sugar?"."""
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

    def _answered(self, put: Listened, asked: Listened, answer: Answer) -> Verdict:
        """The verdict on an answer to a question, given as it was `put` and in the first person (`asked`)."""
        reverse = {name: put.heard[key] for name in self._reverse if (key := f"asked.{name}") in put.heard}
        if answer == ("yes" if reverse else "no"):
            return Verdict()
        if reverse and answer == "after all":
            return Verdict()
        takes_nothing_back = ASKED | {"negated"} if answer == "after all" else ASKED
        verdict = self._verdict(replace(put, heard=reverse) if reverse else asked, takes_nothing_back)
        if answer == "unsure":
            is_crisis = verdict.kind == "crisis"
            return Verdict("crisis", PASSIVE, verdict.rule_ids, "possible") if is_crisis else Verdict()
        return verdict


def _verdict_of(rule: Rule, *, guessed: bool) -> Verdict:
    """The verdict of a rule that fired: possible for a passive wish, or if a word was only guessed.

    The verdict of a rule that must be heard at any price is certain.
    """
    in_doubt = guessed or (rule.kind == "crisis" and rule.tier == PASSIVE)
    certainty: Certainty = "possible" if in_doubt and not rule.always else "certain"
    return Verdict(rule.kind, rule.tier, (rule.id,), certainty)


def _ends(earlier: Verdict) -> tuple[str, ...]:
    """The names of the phrases that end this danger."""
    if earlier.kind == "crisis":
        return _OVER, _MISTAKEN
    names = (_OVER, _MISTAKEN, _OVER_BY_THEM)
    return (*names, _OVER_AS_FELT) if earlier.can_be_felt else names


def _is_part(words: str, all_words: Iterable[str]) -> bool:
    """Whether the words are part of another entry."""
    return any(words in others and words != others for others in all_words)


def _by_concept(rules: Sequence[_Compiled]) -> dict[str, list[tuple[int, int]]]:
    """The combinations to examine once a concept was found, as numbers of rule and combination.

    Each combination is listed under the concepts of its smallest group only, since it needs one of them.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for number, compiled in enumerate(rules):
        for which, groups in enumerate(compiled.combinations):
            for name in min(groups, key=len):
                places.setdefault(name, []).append((number, which))
    return places


def load(folder: Path, cache: Path | None = None) -> Guard:
    """Load the guard from a folder of rules. Its compiled part is read from `cache`, or written to it."""
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
        _MISTAKEN: replies.mistaken,
        _MEANS: replies.means,
        _BARE_MEANS: replies.bare_means,
    } | {reason: section.phrases for reason, section in language.cues.items()}
    for name, texts in named.items():
        for text in texts:
            phrases.add(name, text)
    words = (*_worth_correcting(finding_words, language), *language.expand)
    return Compiled(phrases.tree, finding_words, misspellings_of(words))


def _worth_correcting(finding_words: Set[str], language: Language) -> frozenset[str]:
    """The words whose misspellings are corrected: those of findings, and the longer small words."""
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
    """The gauge for measured values: ranges of single numbers, and blood pressures."""
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
    """The cues that do not stop a combination: several findings describe a person, even in a quiz."""
    return rule.even_if | _OF_NOBODY[rule.kind] if len(groups) > 1 else rule.even_if


def _as_own_words(question: str, own: Mapping[str, str]) -> str:
    """A question to the person, in the first person: "harming yourself" becomes "harming myself"."""
    return _YOU.sub(lambda found: own[found[0].lower()], question)


def _questions(context: str) -> list[str]:
    """The questions in an assistant's text; its last sentence, if it has no question mark."""
    sentences = [sentence for sentence in _SENTENCE.findall(context) if sentence.strip(" .!?\n")]
    asked = [sentence for sentence in sentences if sentence.endswith("?")] or sentences[-1:]
    return [sentence for sentence in asked if not _OFFERS.match(sentence)]
