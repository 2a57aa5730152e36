"""Checks what a model wrote against the messages it was made of, sentence by sentence. Pure.

A sentence of a summary is kept only if one sentence of the person supports it: that sentence has every word
which says something, every number beside the same unit and the same medicine, and it is no question, not
negated, not uncertain, not about a refusal and about nobody else unless the summary says so, too. If it is
unclear how far a negation reaches, nothing is supported. A sentence that begins with `Assistant` speaks of
the answers, and may also rest on a sentence of them. Other sentences are dropped, and counted.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from agents import sentences
from orchestrator.recall.query.words import stem
from orchestrator.remember.creators.history import HistoryMessage

_FREE_TEXT: Final = """
    a about according again also am an and another any anything are as asked asking asks assistant at be
    because been being both but by can chat companion conversation could describe described describes did
    discuss discussed discusses do does doing each every explained explains for from had has have having
    he her here hers herself him himself his how however i if in into is it its itself may me mention
    mentioned mentions message mine must my myself name named names new no not of on or other our ours
    overall patient person question report reported reports said say saying says shall she so some
    something speaker state stated states summary talk talked talks tell tells that the their theirs them
    then there these they thing this those times to told too topic topics us user was we well were what
    when where whether which while who whom whose will with you your yours
"""
"""Words that say nothing about the person: grammar, and how a summary reports."""

_NUMBER_TEXT: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen
"""
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_UNIT_TEXT: Final = "mg mcg g kg ml l % unit iu mmhg puff tablet pill capsule drop cm bpm mmol"
_MONTH_TEXT: Final = """
    january february march april may june july august september october november december
"""
_OTHER_TEXT: Final = """
    aunt baby boss boyfriend brother child colleague cousin dad daughter ex father flatmate friend girlfriend
    gran grandad granddaughter grandfather grandma grandmother grandpa grandson granny husband kid mom mother
    mum mummy nan neighbor neighbour nephew niece parent partner roommate sister son spouse stepdad stepfather
    stepmother stepmum stepson toddler twin uncle wife
"""
_PET_TEXT: Final = """
    budgie cat dog goldfish hamster horse kitten kitty parrot pet pony puppy rabbit tortoise
"""
_PROFESSION_TEXT: Final = """
    cardiologist carer caregiver chemist cleaner clinician coach consultant counsellor counselor coworker
    dentist dermatologist doc doctor driver employee employer gp gardener gynaecologist gynecologist
    hairdresser landlady landlord lawyer manager midwife neurologist nurse nutritionist oncologist optician
    paramedic pediatrician pharmacist physician physio physiotherapist priest psychiatrist psychologist
    receptionist specialist surgeon teacher therapist trainer urologist vet
"""
_MAYBE_TEXT: Final = """
    could guess hope if maybe might perhaps possibly probably should suppose think thinking unsure whether
    wish will worried worry would
"""
_HEDGE_TEXT: Final = """
    allergic almost avoid barely cease consider cure decline discontinue dismiss disprove except exclude fail
    family fear forget former formerly free hardly instead intend lack minus misdiagnose miss nearly negative
    off outgrow plan previously quit rarely rather refuse reject risk scarcely seldom skip stop suspect unable
    unlike used want
"""
"""Words that turn what is said beside them into something else; a summary must have them, too."""
_HEDGE_PHRASES: Final = (("rule", "out"), ("run", "out"), ("out", "of"), ("clear", "of"), ("give", "up"))
"""The same, if a clause has both words: `ruled it out`."""
_IRREGULAR: Final = {
    form: base
    for base, forms in {
        "take": "took taken",
        "eat": "ate eaten",
        "drink": "drank drunk",
        "sleep": "slept",
        "feel": "felt",
        "go": "went gone",
        "get": "got gotten",
        "give": "gave given",
        "forget": "forgot forgotten",
        "begin": "began begun",
        "see": "saw seen",
        "make": "made",
        "come": "came",
        "lose": "lost",
        "break": "broke broken",
        "fall": "fell fallen",
        "run": "ran",
        "outgrow": "outgrew outgrown",
        "think": "thought",
        "keep": "kept",
        "leave": "left",
        "child": "children",
        "foot": "feet",
        "tooth": "teeth",
        "day": "daily",
        "week": "weekly",
        "month": "monthly",
        "night": "nightly",
        "year": "yearly annually",
        "never": "nor neither none nobody nothing without denies denied deny",
    }.items()
    for form in forms.split()
}
_UNITS: Final = {
    "milligram": "mg",
    "milligramme": "mg",
    "microgram": "mcg",
    "ug": "mcg",
    "gram": "g",
    "kilogram": "kg",
    "kilo": "kg",
    "millilitre": "ml",
    "milliliter": "ml",
    "percent": "%",
}
_FREE: Final = frozenset(_FREE_TEXT.split())
_MEASURED: Final = frozenset(_UNIT_TEXT.split())
_MONTHS: Final = frozenset(_MONTH_TEXT.split())
_OTHERS: Final = frozenset(map(stem, _OTHER_TEXT.split()))
_PETS: Final = frozenset(map(stem, _PET_TEXT.split()))
_PROFESSIONS: Final = frozenset(map(stem, _PROFESSION_TEXT.split()))
_ARTICLES: Final = frozenset(("a", "an", "the", "my", "our", "one", "this", "that"))
_PRONOUNS: Final = frozenset(("he", "she", "they", "him", "them", "his", "her", "their"))
_FIRST_PERSON: Final = frozenset(("i", "me", "my", "we", "us", "our"))
_MAYBE: Final = frozenset(map(stem, _MAYBE_TEXT.split()))
_HEDGES: Final = frozenset(map(stem, _HEDGE_TEXT.split()))
_ASKING: Final = frozenset(map(stem, ("ask", "asks", "asked", "asking", "wonder", "question", "whether")))
_TAKING: Final = frozenset(map(stem, ("take", "use", "drink", "eat", "need", "get")))
_NOT: Final = frozenset(("no", "not", "never"))
_SPEAKERS: Final = frozenset(("i", "we", "person", "patient", "user", "speaker"))
"""The subject of a clause about the person."""
_SELF: Final = frozenset(("i", "we", "me", "us"))
_OWN: Final = frozenset(("my", "our", "it", "there"))
"""A clause that begins with one of these has a subject: `my head hurts`."""
_RELATIVE: Final = frozenset(("who", "whom", "whose"))
_INSERTING: Final = _RELATIVE | frozenset(("which", "that", "if", "when", "as", "where"))
"""A clause that begins with one of these is inside another one, which goes on after it."""
_VERBS: Final = (
    "do",
    "does",
    "did",
    "is",
    "are",
    "was",
    "were",
    "have",
    "has",
    "had",
    "could",
    "should",
    "would",
)
_NEGATED: Final = {
    **{f"{verb}nt": verb for verb in _VERBS},
    "cannot": "can",
    "can't": "can",
    "won't": "will",
    "shan't": "shall",
    "cant": "can",
}
"""Negations in one word, also without an apostrophe, each with its verb."""
_SMALL: Final = {
    **{word: number for number, word in enumerate(_NUMBER_TEXT.split())},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "once": 1,
    "twice": 2,
}
_CONTRASTS: Final = frozenset(("but", "although", "though", "because", "while", "whereas"))
_BREAKS: Final = _CONTRASTS | {"and"}

_TOKEN: Final = re.compile(
    r"(?:(?<![\w.,%)])[-\u2212])?\d+(?:[.,:/]\d+)*|%|[^\W\d_](?:[\w]|['\u2019-](?=\w))*|[,;:()\u2013\u2014]",
    re.UNICODE,
)
_OF_ASSISTANT: Final = re.compile(r"(?:the )?(?:assistant|companion|answer)\b", re.IGNORECASE)
_SPEAKER: Final = re.compile(r"(Person|Assistant): ")
_INTRODUCED: Final = re.compile(r"\b(?:[Ii]['\u2019]m|[Ii] am|[Mm]y name is|[Cc]all me) ([A-Z]\w+)")
_NEAR: Final = 3
"""So many words on each side of an amount may be what it is an amount of."""


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text without the sentences that the messages do not support."""

    text: str
    dropped: int


class SummaryCheck:
    """What some messages support. `health_terms` are medicines and conditions, some of several words."""

    def __init__(
        self, messages: Sequence[HistoryMessage], health_terms: frozenset[str] = frozenset()
    ) -> None:
        self._terms = frozenset(map(_stems, health_terms))
        names = {stem(name.lower()) for each in messages for name in _INTRODUCED.findall(each.words)}
        self._names = frozenset(names) if len(names) == 1 else frozenset()
        self._person = self._read(each for each in messages if each.is_person)
        self._answers = self._read(each for each in messages if not each.is_person)

    @classmethod
    def of_memories(cls, texts: Iterable[str], health_terms: frozenset[str]) -> "SummaryCheck":
        """What memories support. A sentence about the assistant supports nothing about the person."""
        messages = []
        for text in texts:
            for sentence in _cut(text):
                speaker = _SPEAKER.match(sentence)
                role = "assistant" if _OF_ASSISTANT.match(sentence) else "user"
                words = sentence[speaker.end() :] if speaker else sentence
                messages.append(HistoryMessage.of(role, words))
        return cls(messages, health_terms)

    def check(self, text: str) -> CheckedText:
        """The text as it is, or without the sentences that are not supported."""
        found = sentences.cut(text)
        kept = [each for each in found if self.supports(each)]
        if len(kept) == len(found):
            return CheckedText(text, 0)
        return CheckedText("".join(kept).strip(), len(found) - len(kept))

    def supports(self, sentence: str) -> bool:
        """Whether one sentence of the messages says everything that this one says."""
        plain = _SPEAKER.sub("", sentence.strip(), count=1)
        claim = _Sentence(plain, self._terms)
        if not claim.says:
            return True
        sources = self._person
        if _OF_ASSISTANT.match(sentence.strip()):
            sources = (*sources, *self._answers)
        return any(source.supports(claim, self._names) for source in sources)

    def has(self, phrase: str) -> bool:
        """Whether the person said a phrase, word for word."""
        wanted = _stems(phrase)
        return bool(wanted) and any(_is_in(wanted, source.stems) for source in self._person)

    def _read(self, messages: Iterable[HistoryMessage]) -> "tuple[_Sentence, ...]":
        return tuple(_Sentence(cut, self._terms) for each in messages for cut in _cut(each.words))


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    stem: str
    is_capital: bool
    clause: int
    statement: int
    """A statement has all clauses up to a `but` or a similar word."""
    brackets: int
    """In how many brackets it is."""

    @property
    def is_number(self) -> bool:
        return self.text[-1].isdigit() and self.text[0] in "-0123456789"

    @property
    def is_letter(self) -> bool:
        """Whether it is a letter that names something, as in `vitamin K`."""
        return len(self.text) == 1 and self.text.isalpha() and (self.is_capital or self.text not in _FREE)

    @property
    def says(self) -> bool:
        """Whether it has to be said: it is no number, no unit and not free."""
        if self.is_capital and self.text in _MONTHS:
            return True
        free = self.text in _FREE or self.text in _MEASURED or self.text in _NOT
        return not self.is_number and not free


class _Sentence:
    """A sentence as words, with their clauses."""

    def __init__(self, text: str, terms: frozenset[tuple[str, ...]]) -> None:
        self.tokens = _tokens(text)
        self.stems = tuple(token.stem for token in self.tokens)
        self._terms = terms
        self._asks = text.rstrip(" \"')\u201d\u2019").endswith("?")

    @cached_property
    def says(self) -> frozenset[str]:
        """The words and numbers that the sentence of the person must have, too."""
        return frozenset(token.stem for token in self.tokens if token.says or token.is_number)

    @cached_property
    def phrases(self) -> frozenset[tuple[str, ...]]:
        """The terms of several words in it."""
        return frozenset(term for term in self._terms if len(term) > 1 and _is_in(term, self.stems))

    def supports(self, claim: "_Sentence", own_names: frozenset[str]) -> bool:
        """Whether this sentence says everything that a claim says, and means it in the same way."""
        return (
            claim.says <= {*self.stems, *own_names}
            and claim.phrases <= self.phrases
            and self._whole(_ASKING) <= claim._whole(_ASKING)
            and self._whole(_MAYBE) <= claim._whole(_MAYBE)
            and all(
                self._means(token, claim, own_names) for token in claim.tokens if token.stem in claim.says
            )
            and all(
                self._measures(place, claim) for place, token in enumerate(claim.tokens) if token.is_number
            )
            and claim._lettered <= self._lettered
        )

    @cached_property
    def _lettered(self) -> frozenset[tuple[str, str]]:
        """The words with a letter after them, such as `vitamin K`."""
        return frozenset(
            (before.stem, letter.stem)
            for before, letter in pairwise(self.tokens)
            if letter.is_letter and before.clause == letter.clause and letter.text != "i"
        )

    def _whole(self, kind: frozenset[str]) -> bool:
        """Whether the sentence asks, or is uncertain."""
        return (kind is _ASKING and self._asks) or not kind.isdisjoint(self.stems)

    def _means(self, token: _Token, claim: "_Sentence", own_names: frozenset[str]) -> bool:
        """Whether a word is here in a clause that is negated, past and about others as in the claim."""
        if token.stem in own_names:
            return True
        negated = claim._negation(token.clause)
        if negated is None:
            return False
        return any(
            self._negation(clause) == negated
            and self._hedges(clause) | (self._others(clause) - own_names) <= set(claim.stems)
            for clause in {each.clause for each in self.tokens if each.stem == token.stem}
        )

    def _negation(self, clause: int) -> bool | None:
        """Whether a clause is negated; None if it is unclear whether a negation before it reaches so far."""
        own = not _NOT.isdisjoint(token.text for token in self._clause(clause))
        before = any(token.text in _NOT for each in self._continued(clause) for token in self._clause(each))
        return None if before and not own else own

    def _hedges(self, clause: int) -> frozenset[str]:
        """The words of a clause, and of those that it continues, which must be in the claim, too."""
        found: set[str] = set()
        for each in (clause, *self._continued(clause)):
            here = {token.stem for token in self._clause(each)}
            found |= _HEDGES & here
            found.update(*(phrase for phrase in _HEDGE_PHRASES if here.issuperset(phrase)))
        return frozenset(found)

    def _others(self, clause: int) -> frozenset[str]:
        """The people other than the speaker whom a clause is about."""
        continued, words = self._continued(clause), self._clause(clause)
        named = self._named(clause) | self._bystanders(words, _PETS)
        if not self._is_about_self(words):
            named |= self._bystanders(words, _PROFESSIONS)
        if continued:
            before = self._clause(continued[-1])
            named |= self._named(continued[-1])
            if words[0].text in _RELATIVE or not self._is_about_self(before):
                named |= self._bystanders(before, _PETS | _PROFESSIONS)
        return named

    @staticmethod
    def _bystanders(words: list[_Token], kind: frozenset[str]) -> frozenset[str]:
        """The pets or professions among some words."""
        return kind.intersection(each.stem for each in words)

    @staticmethod
    def _is_about_self(words: list[_Token]) -> bool:
        """Whether a clause with a profession is about the speaker: `my doctor says I have asthma`."""
        found = {each.text for each in words}
        return not _SELF.isdisjoint(found) and _PRONOUNS.isdisjoint(found)

    def _named(self, clause: int) -> frozenset[str]:
        words = self._clause(clause)
        found = {each.stem for each in words if each.stem in _OTHERS}
        if _FIRST_PERSON.isdisjoint(each.text for each in words):
            found |= {each.stem for each in words if self._is_somebody(each)}
        return frozenset(found)

    def _is_somebody(self, token: _Token) -> bool:
        """Whether it is a pronoun or a name."""
        is_word = token.text in _MONTHS or (token.stem,) in self._terms
        named = token.is_capital and token.says and not is_word
        return token.text in _PRONOUNS or named

    def _continued(self, clause: int) -> list[int]:
        """The clauses that a clause without a subject continues, back to the one with the subject.

        It is empty if the clause has a subject, or if there is none before it. A clause that is inside of
        another one does not count, as in `Maria, who lives here, takes it`.
        """
        found: list[int] = []
        words = self._clause(clause)
        if not words or words[0].text in _OWN or self._has_subject(words):
            return found
        for number in range(clause - 1, -1, -1):
            before = self._clause(number)
            if not before or before[0].text in _INSERTING or before[0].brackets > words[0].brackets:
                continue
            if before[0].statement != words[0].statement:
                break
            found.append(number)
            if self._has_subject(before):
                return found
        return found if any(self._begins_with_somebody(each) for each in found) else []

    def _has_subject(self, words: list[_Token]) -> bool:
        """Whether some word is a subject, or a clause begins with a pet or a profession: `the old dog`."""
        begins = words[0].text in _ARTICLES and self._bystanders(words[:4], _PETS | _PROFESSIONS)
        return bool(begins) or any(self._is_subject(each) for each in words)

    def _is_subject(self, token: _Token) -> bool:
        if token is self.tokens[0] and token.is_capital and token.text not in _SPEAKERS | _PRONOUNS:
            return token.stem in _OTHERS
        return token.text in _SPEAKERS or token.stem in _OTHERS or self._is_somebody(token)

    def _begins_with_somebody(self, clause: int) -> bool:
        """Whether a clause is a name before an inserted clause about somebody: `Maria, who lives here,`."""
        following = self._clause(clause + 1)
        return bool(following) and following[0].text in _RELATIVE

    def _measures(self, place: int, claim: "_Sentence") -> bool:
        """Whether a number of the claim is here beside the same unit or month, and of the same medicine."""
        number, wanted = claim.tokens[place].stem, claim._beside(place)
        amount_of = claim._amount_of(place, most=1)
        for here, token in enumerate(self.tokens):
            if token.stem != number or not wanted <= self._neighbours(here):
                continue
            term = claim._nearest_term(place)
            if term is not None and self._nearest_term(here) not in (None, term):
                continue
            if not wanted & _MEASURED or amount_of <= self._amount_of(here, most=_NEAR):
                return True
        return False

    def _beside(self, place: int) -> frozenset[str]:
        """What a number counts: the unit or the month beside it, or the word after it."""
        after = self._next(place, 1)
        units = {each.stem for each in (self._next(place, -1), after) if each and each.text in _MONTHS}
        if after is not None and (after.text in _MEASURED or after.says):
            units.add(after.stem)
        return frozenset(units)

    def _neighbours(self, place: int) -> frozenset[str]:
        found = (self._next(place, -1), self._next(place, 1))
        return frozenset(each.stem for each in found if each is not None)

    def _next(self, place: int, step: int) -> _Token | None:
        """The word before or after a number; `of` does not count."""
        for other in (place + step, place + 2 * step):
            if 0 <= other < len(self.tokens) and self.tokens[other].text != "of":
                return self.tokens[other]
        return None

    def _amount_of(self, place: int, *, most: int) -> frozenset[str]:
        """The words around an amount, in its clause; if there are none, those before, else those after it."""
        clause = self.tokens[place].clause
        before = [each for each in self.tokens[:place] if each.says]
        after = [each for each in self.tokens[place:] if each.says]
        near = [each.stem for each in before if each.clause == clause][-most:]
        near += [each.stem for each in after if each.clause == clause][:most]
        return frozenset(near or [each.stem for each in before[-most:] or after[:most]]) - _TAKING

    def _nearest_term(self, place: int) -> str | None:
        """The medicine or condition of one word that is nearest to an amount, in its clause if possible."""
        clause = self.tokens[place].clause
        near = [
            (each.clause != clause, abs(other - place), each.stem)
            for other, each in enumerate(self.tokens)
            if (each.stem,) in self._terms
        ]
        return min(near)[2] if near else None

    def _clause(self, number: int) -> list[_Token]:
        return [token for token in self.tokens if token.clause == number]


def _is_in(phrase: tuple[str, ...], words: Sequence[str]) -> bool:
    width = len(phrase)
    return any(tuple(words[start : start + width]) == phrase for start in range(len(words) - width + 1))


def _stems(text: str) -> tuple[str, ...]:
    return tuple(token.stem for token in _tokens(text))


def _cut(text: str) -> list[str]:
    """The sentences of a text. A line break inside of one is a space."""
    return [each.strip() for each in sentences.cut(" ".join(text.split())) if each.strip()]


def _tokens(text: str) -> tuple[_Token, ...]:
    """The words and numbers of a text. Numbers in words are digits, and a unit has one spelling."""
    plain = unicodedata.normalize("NFKC", text)
    made: list[_Token] = []
    clause = statement = brackets = 0
    spelled: list[int] = []

    def add(word: str, *, is_capital: bool = False) -> None:
        made.append(_Token(word, stem(word), is_capital, clause, statement, brackets))

    def end_number() -> None:
        if spelled:
            add(str(sum(spelled)))
            spelled.clear()

    for found in _TOKEN.findall(plain):
        for part in _parts(found):
            if _takes(spelled, part):
                continue
            end_number()
            if _takes(spelled, part):
                continue
            if part[-1].isdigit() and not part[0].isalpha():
                add(re.sub(r",(?=\d{3}\b)", "", part.replace("\u2212", "-")))
            elif part in _BREAKS or not (part[0].isalnum() or part == "%"):
                clause += 1
                statement += part in _CONTRASTS or part == ";"
                brackets += (part == "(") - (part == ")")
            else:
                add(_word(part), is_capital=found[0].isupper())
    end_number()
    return tuple(made)


def _parts(found: str) -> list[str]:
    """A token in lower case. The parts of a number with a hyphen are apart; so is a negation."""
    low = found.lower().replace("\u2019", "'")
    if low in _NEGATED:
        return [_NEGATED[low], "not"]
    if low.endswith("n't"):
        return [low.removesuffix("n't"), "not"] if len(low) > 3 else ["not"]
    if all(part in _SMALL or part in ("hundred", "thousand") for part in low.split("-")):
        return low.split("-")
    return [low.partition("'")[0] or low]


def _takes(spelled: list[int], word: str) -> bool:
    """Whether a word goes on with a number in words; `spelled` has its thousands and the rest."""
    if word in ("hundred", "thousand"):
        factor = 100 if word == "hundred" else 1000
        rest = spelled.pop() if spelled and spelled[-1] < factor else 1
        spelled.append(max(rest, 1) * factor)
        return True
    if word not in _SMALL:
        return False
    value = _SMALL[word]
    last = spelled[-1] if spelled else 0
    if spelled and (last % 10 or (last % 100 and value >= 10) or not last):
        return False
    spelled.append(value)
    return True


def _word(low: str) -> str:
    word = _IRREGULAR.get(low, low)
    singular = word.removesuffix("s") if len(word) > 2 else word
    return _UNITS.get(singular, singular if singular in _MEASURED else word)
