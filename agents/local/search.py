"""Searches what a person has told for a question: by the kind asked for, by words and by meaning."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from agents.fact_kinds import BY_NAME, recalled_kinds
from agents.local.dialogue import Talk, stems
from agents.local.reading import readers
from agents.local.reading.clauses import PERSON, RELATIVES, plain, relative_in
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED, has_words
from agents.local.reading.question_signs import asks
from agents.ports import Vectors
from memory_blocks.facts.changes import CurrentFact

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]

_KIND: Final = 0.4
_SHARED: Final = 0.55
_FITS: Final = 0.2
_ENOUGH: Final = 0.62  # the score from which on a note answers a question
_CLOSE: Final = 0.82  # of the best score: how good a further note must be
_CLEARLY: Final = (
    0.45  # of a question's words that a note must have, if the question does not say "I told you"
)
_MOST: Final = 3
_RATHER_NEAR: Final = 0.1
_NEAR: Final = 0.3  # how like a question a note must be to be offered as the nearest
_NEAR_OF_KIND: Final = 0.4  # if the question asks for a kind of fact of which there is none
_OWN: Final = re.compile(r"\b(?:i|i'm|i've)\b")
_OWNS: Final = re.compile(
    r"(?:and |so )*(?:when(?:'s| is| was| are)? (?:is |was )?my|how (?:many|much) \w+ (?:do|did|have) i"
    r"|(?:am|was|do|have) i|(?:does|has|is) (?:he|she|my \w+))\b"
)
"""Questions for something of the person's own, or whether it is so: only a note that names it answers."""

_SAID: Final = re.compile(
    r"\b(?:did|have|had|that|what|which|who|as)? ?(?:i|we)(?: have|'ve)?(?: \w+)? (?:say|said|tell|told"
    r"|mention\w*|call\w*|give|gave|ask\w*)\b"
    r"|\b(?:tell|told|remind|give|show|remember) me\b"
)
_WRITER: Final = re.compile(r"\b(?:i|me|we|us)\b")
_VERY_NEAR: Final = 0.6
_LOOSE: Final = ("onset", "frequency", "location", "dose", "readings")
"""Kinds of fact that are often told in words that are not taken for a fact."""

_WH: Final = re.compile(
    r"(?:\w+ ){0,2}(?:what|what's|whats|which|who|whose|when|where|why|how|do i still|am i)\b"
)
_OWN_LIFE: Final = re.compile(
    r"(?:(?:and|so|but|ok) )*(?:do|does|am|is|have|did|has|was) (?:i|he|she|my \w+)\b"
)
_EVENT: Final = re.compile(
    r"\b(?:before|since|after|until) (?:the|my|his|her) (?:operation|surgery|procedure)\b"
)
"""An event that only says when."""

_STRICT: Final = frozenset(("age", "name", "allergies", "pregnancy", "medications"))
"""Kinds of fact for which something that is merely near is no answer."""

_TAKES: Final = re.compile(
    r"\b(?:i'm|i am|he's|she's|he is|she is|been|put (?:me|him|her)) on (?!about\b|my own\b|the (?:train"
    r"|bus|sofa|phone)\b"
    r"|holiday\b|leave\b)\w+|\b(?:take|takes|taking) (?!it\b|a\b|him\b|her\b|me\b|care\b)\w+|\d ?mg\b"
)
_IS_OVER: Final = re.compile(
    r"\b(?:was on|used to|stopped|came off|no longer|not (?:on|taking)|took me off|gave up|if|should)\b"
)


@dataclass(frozen=True, slots=True)
class Match:
    """A fact that was found for a question. `shared` is how much of the question's words it has."""

    fact: CurrentFact
    score: float
    shared: float
    near: float
    is_kind: bool
    fits: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question about memory asks for: kinds of fact, words, a person, a type of answer."""

    low: str
    kinds: tuple[str, ...]
    topic: frozenset[str]
    fits: re.Pattern[str] | None
    whom: str
    continues: bool = False


class Search:
    """Searches facts. `synonyms` are groups of words that stand for each other, `classes` groups of names."""

    def __init__(
        self,
        embed: Embed | None,
        synonyms: Sequence[Sequence[str]] = (),
        classes: Mapping[str, Sequence[str]] | None = None,
        medicines: Sequence[str] = (),
    ) -> None:
        self._embed = embed
        self._groups = [stems(" ".join(group)) for group in synonyms]
        self._classes = [tuple(members) for members in (classes or {}).values()]
        self._medicine = re.compile(
            rf"(?<![\w-])(?:{'|'.join(map(re.escape, medicines)) or '(?!)'})(?![\w-])"
        )

    def asked(self, question: str, talk: Talk, before: str = "") -> Asked:
        """What a question asks for. `before` is the question that a short one continues."""
        low = plain(question).strip(" ?.!")
        whole = f"{plain(before)} {low}" if before else low
        kinds = recalled_kinds(low) or recalled_kinds(whole)
        topic = (
            topic_words(_EVENT.sub(" ", low))
            or topic_words(low)
            or topic_words(whole)
            or (frozenset() if kinds else stems(low) - _NUMBERS)
        )
        fits = _type_asked(low) or (_type_asked(whole) if before else None)
        whom = relative_in(low)
        if not whom and re.search(r"\b(?:he|she|his|her|him|he's|she's)\b", low):
            whom = talk.other
        return Asked(whole, kinds, topic, fits, whom, continues=bool(before))

    def find(self, asked: Asked, facts: Sequence[CurrentFact]) -> list[Match]:
        """The facts that answer a question, best first; none if nothing is near enough."""
        found = self.ranked(asked, facts)
        listed = [each for each in found if each.is_kind]
        if listed and not asked.topic - _names_of(asked.kinds):
            if set(asked.kinds) & set(_LISTED):
                return sorted(listed, key=lambda each: each.fact.turn or 0)
            first = [each for each in listed if each.fact.kind in asked.kinds[:1]]
            return (first or listed)[:_MOST]
        good = [each for each in found if each.score >= _ENOUGH]
        if not good:
            return self._of_type(asked, found)
        best = [each for each in good if each.score >= _CLOSE * good[0].score][:_MOST]
        if asked.fits and not any(each.fits for each in best):
            best = [*best[:2], *[each for each in found if each.fits and each.near >= _RATHER_NEAR][:1]]
        return best

    def _of_type(self, asked: Asked, found: Sequence[Match]) -> list[Match]:
        """The nearest note that has the type of answer asked for, such as a time, if no other is near."""
        if asked.fits is None or (asked.kinds and asked.kinds[0] not in _LOOSE):
            return []
        fitting = [
            each for each in found if each.fits and each.near >= _RATHER_NEAR and asked.topic - _MEMORY_WORDS
        ]
        return fitting[:1]

    def nearest(self, asked: Asked, facts: Sequence[CurrentFact]) -> list[Match]:
        """The two notes that are nearest to a question to which none surely is the answer."""
        least = _NEAR_OF_KIND if set(asked.kinds) & _STRICT else _NEAR
        return [
            each
            for each in self.ranked(asked, facts)
            if each.shared
            or each.near >= least
            or (each.fits and each.near >= _RATHER_NEAR and not set(asked.kinds) & _STRICT - {"medications"})
        ][: _MOST if asked.fits else 2]

    def is_about_told(self, question: str, talk: Talk) -> bool:
        """Whether a question that does not say so asks for something that was told: a note clearly has it."""
        asked = self.asked(question, talk)
        lives = {kind for kind in asked.kinds if BY_NAME[kind].reads == "stated"}
        if _OWN_LIFE.match(question) and any(fact.kind in lives for fact in talk.facts):
            return True
        return _WH.match(question) is not None and any(
            each.shared >= _CLEARLY and each.score >= _ENOUGH + 0.1
            for each in self.ranked(asked, talk.facts)[:1]
        )

    def ranked(self, asked: Asked, facts: Sequence[CurrentFact]) -> list[Match]:
        """All facts that can be meant, with their scores, best first."""
        told = [fact for fact in facts if fact.words and fact.value != "" and not _is_question(fact)]
        pool = self._of_whom(asked, told)
        if not pool:
            return []
        near = self._nearness(asked.low, [fact.words for fact in pool])
        matches = [self._match(asked, fact, near[number]) for number, fact in enumerate(pool)]
        if _OWNS.match(asked.low):  # what has another name is no answer
            matches = [each for each in matches if each.is_kind or each.shared or each.near >= _VERY_NEAR]
        best: dict[str, Match] = {}
        for each in sorted(matches, key=lambda each: (-each.score, -(each.fact.turn or 0))):
            key = f"{each.fact.kind} {each.fact.words} {each.fact.value}" if each.is_kind else each.fact.words
            best.setdefault(key, each)
        return list(best.values())

    def _match(self, asked: Asked, fact: CurrentFact, near: float) -> Match:
        words = stems(
            f"{fact.words} {fact.value} {fact.about} {'' if fact.subject == PERSON else fact.subject}"
        )
        covered = sum(self._has(word, words) for word in asked.topic)
        shared = covered / len(asked.topic) if asked.topic else 0.0
        text = plain(f"{fact.words} {fact.value}")
        is_kind = fact.kind in asked.kinds or (
            "medications" in asked.kinds
            and fact.kind == NOTED
            and (self._names_medicine(text) or _TAKES.search(text) is not None)
            and (
                not _IS_OVER.search(text)
                or re.search(r"\b(?:switched|changed|moved|put) me\b", text) is not None
            )
        )
        if fact.kind == "measures" and (unit := _unit_asked(asked.low)):
            is_kind = is_kind and re.search(unit, fact.value) is not None
        if asked.continues and asked.topic and not shared:
            is_kind = False
        score = near + _SHARED * shared + (_KIND if is_kind else 0.0)
        fits = asked.fits is not None and asked.fits.search(text) is not None
        if asked.fits is _NAMING:
            fits = fits or _NAME_IN.search(fact.words) is not None
        if asked.fits is not None:
            score += _FITS if fits else -_FITS
        return Match(fact, score, shared, near, is_kind, fits)

    def _has(self, word: str, words: frozenset[str]) -> bool:
        begins = len(word) > 3 and any(each.startswith(word) for each in words)
        return word in words or begins or any(word in group and group & words for group in self._groups)

    def _names_medicine(self, text: str) -> bool:
        return self._medicine.search(text) is not None or any(
            _names(members, text) for members in self._classes
        )

    def _nearness(self, low: str, texts: Sequence[str]) -> list[float]:
        if self._embed is None:
            return [0.3] * len(texts)
        vectors = self._embed([low, *texts])
        return [float(vectors[0] @ vector) for vector in vectors[1:]]

    def _of_whom(self, asked: Asked, facts: Sequence[CurrentFact]) -> list[CurrentFact]:
        """The facts about whom a question is about; all of them if it names nobody."""
        if asked.whom:
            return [
                fact
                for fact in facts
                if same_person(fact.subject, asked.whom)
                or has_words(fact.words, asked.whom)
                or (
                    fact.subject == PERSON
                    and fact.kind in (NOTED, MENTIONED)
                    and not _OWN.search(plain(fact.words))
                )
            ]
        if re.search(r"\b(?:my|i|i'm|me)\b", _SAID.sub(" ", asked.low)):
            return [fact for fact in facts if fact.subject == PERSON or _names_writer(fact)]
        return list(facts)


_LISTED: Final = ("medications", "allergies", "conditions", CONCERN)
_NAMING: Final = re.compile(r"\b(?:name(?:'s| is| was)|called|named|dr|mr|mrs|ms)\b")
_NAME_IN: Final = re.compile(r"^[A-Z][a-z]+ (?:was|is|has)\b|(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_COUNT: Final = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|few|half|third|second|several"
)
_TYPES: Final = (
    (
        re.compile(r"\bdose\b|\bmg\b|\bstrength\b"),
        re.compile(
            r"\d ?(?:mg|mcg|micrograms?|ml|g|units?|puffs?|tablets?|pumps?|drops?)\b|\b(?:one|two|three"
            r"|four|half|\d)"
            r" (?:puffs?|tablets?|pills?|pumps?|drops?|times|a day)\b|\b[a-z]{4,} \d{1,4}\b"
        ),
    ),
    (re.compile(r"\b(?:called|name)\b"), _NAMING),
    (
        re.compile(r"\bwho\b|\bwho's\b|\bwhose\b"),
        re.compile(rf"\b(?:dr|doctor|gp|nurse|boss|called|guy|{RELATIVES})\b"),
    ),
    (
        re.compile(r"\b(?:when|(?:what|which) (?:time|day|days|date|month|year)|how long|since)\b"),
        re.compile(
            rf"\b(?:{readers.SPAN}|{readers.MOMENT}|next \w+|tomorrow|\w+days|\d{{1,2}}(?:st|nd|rd|th"
            rf"|:\d\d)?)(?!\w)"
        ),
    ),
    (
        re.compile(
            r"\bhow (?:many|much|often|far|old|tall|heavy|high|long)\b|\bwhat (?:number|was my|size|%)\b"
            r"|\b(?:readings?|results?|levels?|values?|score|mileage|weight|count|times)\b"
        ),
        re.compile(rf"\d|\b(?:{_COUNT}|bottle|glass|pint|daily|weekly|every)\b"),
    ),
    (
        re.compile(r"\b(?:job|for a living|work as|profession|occupation)\b"),
        re.compile(
            r"\b(?:i work|i drive|i teach|retired|(?:i'm|and|as) an? \w+|\w+(?:driver|worker|man|teacher))\b"
        ),
    ),
    (re.compile(r"\bwhere\b"), re.compile(r"\b(?:in|on|at|to|under|behind|near|from|left|right)\b")),
    (re.compile(r"\bwhy\b"), re.compile(r"\b(?:because|so|since|cos|due|makes?|made|caus\w+|from|after)\b")),
    (
        re.compile(r"\bwhat colou?r\b"),
        re.compile(r"\b(?:white|black|red|green|blue|yellow|brown|pink|grey|gray|clear|purple|orange)\b"),
    ),
    (re.compile(r"\bwhich (?:side|\w+)\b"), re.compile(r"\b(?:left|right|both|upper|lower|\w+ one)\b")),
)
_SAME: Final = (
    frozenset(("mum", "mom", "mother", "mam", "mummy", "mommy", "mama")),
    frozenset(("dad", "father", "daddy", "papa")),
    frozenset(("gran", "granny", "grandma", "grandmother", "nan", "nana", "nanna")),
    frozenset(("grandad", "granddad", "grandfather", "grandpa")),
    frozenset(("son", "boy", "toddler", "baby", "child", "kid", "little boy", "little one", "newborn")),
    frozenset(
        ("daughter", "girl", "toddler", "baby", "child", "kid", "little girl", "little one", "newborn")
    ),
    frozenset(("husband", "hubby", "partner", "other half")),
    frozenset(("wife", "partner", "other half", "missus")),
)
_NUMBERS: Final = stems("two three four five six seven eight nine ten")
_MEMORY_WORDS: Final = stems(
    "forget delete remove erase cross strike scratch list notes everything mention earlier before again "
    "off down many much long often time told quick test check just file record bit part thing please "
    "remind first last number give gave recall noted keep saved wrote written write read settle "
    "kind sort exactly actually ever still total happen happened information data value values far back me "
    "want wants know put thread tell lol spell see clever"
)


def _type_asked(low: str) -> re.Pattern[str] | None:
    """What the type of answer looks like that a question asks for first."""
    found = [
        (place.start(), number) for number, (asks, _) in enumerate(_TYPES) if (place := asks.search(low))
    ]
    return _TYPES[min(found)[1]][1] if found else None


def topic_words(low: str) -> frozenset[str]:
    """The words of a question that say what it is about."""
    return stems(low) - _MEMORY_WORDS - _NUMBERS


def same_person(one: str, other: str) -> bool:
    """Whether two words can name the same person: `mum` and `mother`."""
    return one == other or any({one, other} <= group for group in _SAME)


def _names_of(kinds: Sequence[str]) -> frozenset[str]:
    """Words that only name a kind of fact and say nothing of what it is about."""
    return stems(" ".join(BY_NAME[kind].naming for kind in kinds))


def _unit_asked(low: str) -> str:
    if "weigh" in low:
        return r"kg|kilo|lb|pound|stone|st\b"
    return r"\dm|\.\d\d|cm|ft|foot|feet|'" if re.search(r"tall|height", low) else ""


def _names_writer(fact: CurrentFact) -> bool:
    """Whether a note of somebody else speaks of the person who writes, too."""
    return fact.kind in (NOTED, MENTIONED) and _WRITER.search(plain(fact.words)) is not None


def _is_question(fact: CurrentFact) -> bool:
    """Whether the words are a question of the person, which tells nothing."""
    return fact.kind == MENTIONED and asks(fact.words, plain(fact.words))


def _names(members: Sequence[str], text: str) -> set[str]:
    return {member for member in members if re.search(rf"(?<![\w-]){re.escape(member)}(?![\w-])", text)}
