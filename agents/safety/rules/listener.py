"""Reads a message: its words, the findings in them, and what retracts each. Pure."""

from collections.abc import Set
from typing import Final

from agents.safety.rules import rules as book
from agents.safety.rules.compiled import Compiled
from agents.safety.rules.findings import Heard, Listened, compounded, cries, first_and_last
from agents.safety.rules.measures import Band, Gauge, Measure
from agents.safety.rules.phrases import Found, Others, PhraseBook
from agents.safety.rules.retractions import Retractions
from agents.safety.rules.rules import BARE, HAS_IT, Concepts, Language, RuleBook
from agents.safety.rules.scope import Cue, Grammar, Scopes
from agents.safety.rules.text import Reader, misspellings_of

_new: Final = tuple.__new__
OVER: Final = "reply.over"
OVER_BY_THEM: Final = "reply.over_by_them"
OVER_AS_FELT: Final = "reply.over_as_felt"
MISTAKEN: Final = "reply.mistaken"
MEANS: Final = "reply.means"
BARE_MEANS: Final = "reply.bare_means"
_OF_REPLIES: Final = ("reply.", "asked.")
"""Prefixes of the concepts that have a meaning only in a reply."""
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
_HAVING_TAKEN: Final = frozenset(("had", "taken", "swallowed", "popped", "necked", "downed"))
"""Words before a number of tablets that say that they were taken."""
BEFORE_AN_AGE: Final = frozenset(("i", "im", "am", "aged", "age", "turned", "hes", "shes"))
LONG_ENOUGH: Final = 5
"""Minimum length of a small word for its misspellings to be corrected."""


class Listener:
    """Finds concepts, figures and retractions in texts. It keeps nothing of a text."""

    def __init__(self, rules: RuleBook, known_words: Set[str], compiled: Compiled) -> None:
        """`known_words` are words of replies, which the reader must not correct to others."""
        language, heard = rules.language, rules.heard
        self._phrases = PhraseBook(
            language.between, language.negative, Others(language.others, language.endings), compiled.tree
        )
        grammar = _grammar(language)
        self._reader = Reader(
            self._phrases.vocabulary | known_words | _small_words(language, grammar),
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
        self.illnesses = tuple(
            name for _, groups, _ in self._compounds if HAS_IT in groups[-1] for name in groups[0]
        )
        """The names of illnesses, which are findings only if somebody has them now."""
        self.parts = frozenset(name for _, groups, _ in self._compounds for group in groups for name in group)
        """The concepts that others consist of."""

    @property
    def vocabulary(self) -> frozenset[str]:
        """The English words that occur in the rules."""
        return frozenset(self._reader.known)

    def words(self, text: str) -> list[str]:
        """The words of a text: misspellings corrected, disguised letters restored."""
        return [word.text for word in self._reader.read(text)]

    def quote(self, text: str, start: int, end: int) -> str:
        """The words from `start` to `end` as they were written in the text."""
        return self._reader.quote(text, start, end)

    def first_figure(self, text: str) -> str | None:
        """The first number of a text; None if it counts something, as in "2 hours"."""
        return self._gauge.first_figure(self._reader.read(text))

    def concepts(self, text: str) -> list[Found]:
        """The phrases of a text, without figures and whatever retracts them."""
        return self._phrases.find(self._reader.read(text))

    def readings_asked_for(self, question: str) -> list[str]:
        """The words of a question for a measured value, such as "blood sugar"."""
        words = self._reader.read(question)
        return [
            " ".join(word.text for word in words[found.start : found.end])
            for found in self._phrases.find(words)
            if self._gauge.is_reading(found.concept)
        ]

    def findings(self, text: str) -> list[str]:
        """The names of the findings of a text, those that something retracts with a "-" before them.

        What retracts them, such as "history", is named in the same way.
        """
        names: set[str] = set()
        for name, often in self.listen(text).heard.items():
            if name == BARE or name.startswith(_OF_REPLIES):
                continue
            if all(each.stops for each in often):
                names.add(f"-{name}")
                names.update(f"-{reason}" for each in often for reason in each.stops)
            else:
                names.add(f"+{name}")
        return sorted(names)

    def listen(self, text: str) -> Listened:
        """What a text says: its findings, each with what retracts it."""
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

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it, as sentences.

        "38.6" after talk of a fever is a temperature. "about 18" after "I took some" is a number of tablets,
        if a medicine was named.
        """
        words, earlier = self._reader.read(said), self._reader.read(before)
        texts = [word.text for word in words]
        named = {found.concept: earlier[found.start].text for found in self._phrases.find(earlier)}
        concepts = named.keys() | {found.concept for found in self._phrases.find(words)}
        strengths = {found.end for found in self._phrases.find(words) if found.concept == "medicine"}
        low, high = _COULD_BE_FEVER
        sentences = []
        for at, figure in self._gauge.bare_figures(words):
            following, preceding = (*texts, ".")[at + 1], texts[at - 1] if at else "."
            if not concepts.isdisjoint(_MAY_HAVE_FEVER) and low <= float(figure) <= high:
                sentences.append(f"temperature {figure}")
            is_count = following in _AFTER_A_COUNT and preceding not in BEFORE_AN_AGE and at not in strengths
            if is_count and ("took" in concepts or preceding in _HAVING_TAKEN) and "medicine" in named:
                sentences.append(f"took {figure} {named['medicine']}")
        return sentences


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
        OVER: replies.over,
        OVER_BY_THEM: replies.over_by_them,
        OVER_AS_FELT: replies.over_as_felt,
        MISTAKEN: replies.mistaken,
        MEANS: replies.means,
        BARE_MEANS: replies.bare_means,
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
