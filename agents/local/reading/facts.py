"""Reads facts from clauses: a value only if its type fits, and the clause is about it and about that person.

What fits no kind is kept in the person's own words, under the kind `noted`.
"""

import re
from dataclasses import dataclass
from typing import Final

from agents.fact_kinds import BY_NAME
from agents.local.reading import readers
from agents.local.reading.clauses import MIXED, NOBODY, PERSON, Clause, plain
from agents.local.reading.lexicon import Lexicon, words_of
from agents.questions import Question
from agents.utterance import word_set

NOTED: Final = "noted"
MENTIONED: Final = "mentioned"
"""What was said by the way or asked for: it can be found, but belongs to no summary."""

CONCERN: Final = "concern"
_MAX_VALUE: Final = 200
_MAX_SHORT: Final = 6


@dataclass(frozen=True, slots=True)
class Found:
    """A value that was read from a clause. `words` are the clause; `about` is what the value belongs to."""

    kind: str
    value: str
    words: str
    who: str = PERSON
    about: str = ""
    answers: bool = False

    @property
    def stable(self) -> bool:
        """Whether it lasts beyond this episode."""
        row = BY_NAME.get(self.kind)
        return row is not None and row.stable


_TAKES: Final = re.compile(
    r"\b(?:i|he|she|they|who|and|mum|dad|\w+)? ?(?:'m|am|is|'s|are"
    r"|was put)? ?\b(?:tak(?:e|es|ing)|on|us(?:e|es|ing)|prescribed|put me on"
    r"|started(?: on)?|have been on|been on|been taking|(?:switched|moved|changed) (?:me )?(?:on )?to|need)\b"
)
_NEXT_VERB: Final = re.compile(
    r"\b(?:and|but|because|so|which|while|though) (?:someone|somebody|i|he|she|it|they|we|told|is"
    r"|was|not|that)\b"
)
_ALLERGIC: Final = re.compile(
    r"\b(?:allergic|intolerant|allergy|allergies"
    r"|intolerance) to (?P<to>[^.,;!?()]+?)(?= (?:and (?:i|my|it|have|take)|but|so"
    r"|which|since|because|as|though|too|as well|btw|we|when|found|after|from)\b|[.,;!?()]|$)"
    r"|\b(?P<of>[\w-]+(?: mite| sting)?) (?:allergy|intolerance"
    r"|intolerant)\b(?! (?:clinic|test|season|tablets?|medicine|pills?))"
)
_NOT_ALLERGEN: Final = re.compile(
    r"^(?:an?|the|my|no|any|food|drug|that|this|bad|severe|it|about|some|what|your|new|skin|seasonal|her"
    r"|his|other)$"
)
_DIAGNOSED: Final = re.compile(
    r"\b(?:i|he|she|who|and|\w+)? ?(?:have|has|had|'ve|'s|got|am|'m|is|suffer(?:s"
    r"|ing)? (?:from|with)|with|diagnosed with|living with|of)\b"
)
_STARTS_IT: Final = re.compile(
    r"(?:(?:and|but|so|well|oh|yes|no|erm?|um)[, ]+)*"
    r"(?:(?:it|it's|its|this|that|they|they've|the (?:pain|cough|rash|ache|headaches?|\w+ache))(?:'s| has"
    r"| have| was| were)?"
    r" (?:all |only |just |first )?(?:been|started|began|came on|going on|begun)"
    r"|(?:i've |i have |we've |he's |she's |has |have )?(?:had (?:it|this|them|these)|been (?:like this"
    r"|going on|there|having))"
    r"|started|began|since|for|been|ever since)\b"
)
_CONTRAST: Final = re.compile(
    r",? (?:and |but )?(?:definitely |certainly )?not (?:the |my |a |an |on |in |at "
    r"|for |since |from )?(?P<old>[\w' -]{1,40})$"
)
_REQUESTS: Final = re.compile(
    r"\b(?:want|need|would like|'d like|looking for|trying) (?:to|a|an|some|help|advice|for)\b"
)


class FactReader:
    """Reads values with the words of the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def _names_complaint(self, low: str) -> bool:
        """Whether a text names a complaint."""
        return any(each.group.startswith("complaints") for each in self._lexicon.mentions(words_of(low)))

    def is_of_health(self, low: str) -> bool:
        """Whether a text names a complaint, a part of the body, a medicine or a condition."""
        return next(iter(self._lexicon.mentions(words_of(low))), None) is not None

    def _typed(self, kind: str, clause: Clause, question: Question) -> str | None:
        """The value of the kind's type in a clause that replies to a question for it."""
        low = clause.low
        match BY_NAME[kind].reads:
            case "rating":
                return readers.rating(low, asked=True, top=question.top)
            case "when":
                return readers.when(low)
            case "span":
                return readers.span(low) if _lasts(low) else None
            case "temperature":
                return readers.temperature(low, asked=True)
            case "reading":
                return readers.reading(low, asked=True)
            case "age":
                return readers.age(low, asked=True)
            case "measures":
                return readers.measures(low, asked=True)
            case "medicines":
                return self._listed(clause, "medicines.names")
            case "conditions":
                return self._listed(clause, "conditions.names")
            case "allergens":
                return self.allergen(clause) or self._short(clause)
            case "relative":
                return (
                    None
                    if clause.who in (PERSON, MIXED) and not re.search(r"\b(?:me|myself|i)\b", low)
                    else clause.text
                )
            case "hours":
                value = readers.PLAIN["hours"](low)
                number = readers.number_in(low)
                return value or (f"{number:g} hours" if number is not None and number <= 24 else None)
            case "words":
                return None
            case other:
                return readers.PLAIN[other](low)

    def value_of(self, kind: str, clause: Clause) -> str | None:
        """The value of a kind's type in a clause, as if it had been asked for; None if there is none."""
        if kind not in BY_NAME or BY_NAME[kind].reads == "words":
            return None
        return self._typed(kind, clause, _ANY_QUESTION)

    def kinds_fitting(self, clause: Clause) -> set[str]:
        """The kinds of fact of which a short clause can be the value."""
        fitting = (
            "severity",
            "onset",
            "duration",
            "frequency",
            "temperature",
            "readings",
            "dose",
            "age",
            "location",
        )
        return {kind for kind in fitting if self._typed(kind, clause, _ANY_QUESTION)}

    def _listed(self, clause: Clause, group: str) -> str | None:
        """The names of a list in a clause that states them; a short reply in its own words."""
        names = self.named(clause.low, group)
        if not names:
            return self._short(clause)
        if clause.denied or clause.supposed:
            return None
        if clause.past:
            return None
        return clause.text if len(clause.low.split()) <= 12 else ", ".join(names)

    def _short(self, clause: Clause) -> str | None:
        low = clause.low
        usable = (
            len(low.split()) <= _MAX_SHORT
            and clause.holds
            and not readers.whole_span(low)
            and readers.number_in(low) is None
            and not self.complaint(clause)
            and not re.search(r"\b(?:hurts?|feel|want|think|know|it|it's|you)\b", low)
        )
        return clause.text if usable and re.search(r"[a-z]{3}", low) else None

    # --- volunteered --------------------------------------------------------------------------------------

    def volunteered(self, clause: Clause) -> list[Found]:
        """The values that a clause states although nobody asked for them."""
        if (
            not clause.text
            or clause.asked
            or clause.may_ask
            or clause.supposed
            or clause.who in (MIXED, NOBODY)
        ):
            return []
        low = clause.low
        found: list[tuple[str, str]] = []
        allergen = self.allergen(clause)
        if allergen and not clause.denied:
            found.append(("allergies", allergen))
        complaint = ""
        if not clause.denied and not clause.past:
            found += self._measured(low)
            if not allergen:
                found += self._listed_values(low)
            if name := readers.name(clause.text):
                found.append(("name", name))
            if not allergen and (complaint := self.complaint(clause)):
                found.append((CONCERN, complaint))
        if (
            not clause.denied
            and (complaint or _STARTS_IT.match(low))
            and (complaint or not {kind for kind, _ in found} & _NOT_TIMED)
        ):
            found += self._timed(low)
        return [Found(kind, value[:_MAX_VALUE], clause.text, clause.who) for kind, value in found]

    def _listed_values(self, low: str) -> list[tuple[str, str]]:
        """Each medicine that is taken and each condition that somebody has."""
        found = []
        names = self.named(low, "medicines.names")
        listed = any(low.startswith(each) for each in names) and _DOSED.search(low) is not None
        takes = _TAKES.search(low)
        if takes and not listed:  # only what follows the verb, up to the next statement
            names = self.named(_NEXT_VERB.split(low[takes.end() :])[0], "medicines.names")
        if names and (listed or takes) and not _REQUESTS.search(low):
            found += [("medications", _with_dose(each, low, alone=len(names) == 1)) for each in names]
        names = self.named(low, "conditions.names")
        if names and _DIAGNOSED.search(low):
            found += [("conditions", each) for each in names]
        return found

    def _timed(self, low: str) -> list[tuple[str, str]]:
        """When something began or how long it has lasted."""
        if re.search(r"\b(?:years|months) ago\b", low):
            return []
        if value := readers.when(low):
            return [("onset", value)]
        value = readers.span(low)
        return (
            [("duration", value)]
            if value and re.search(r"\b(?:for|been|now|last|past|lasted|had)\b", low)
            else []
        )

    def _measured(self, low: str) -> list[tuple[str, str]]:
        """Values with a unit or a scale."""
        temperature = readers.temperature(low, asked=False)
        values = [
            ("severity", readers.rating(low, asked=False)),
            ("temperature", temperature),
            ("readings", None if temperature else readers.reading(low, asked=False)),
            ("age", readers.age(low, asked=False)),
            ("pregnancy", readers.PLAIN["pregnancy"](low)),
            *(("measures", each) for each in (readers.measures(low, asked=False) or "").split(", ")),
        ]
        return [(kind, value) for kind, value in values if value]

    # --- words of the lexicon -----------------------------------------------------------------------------

    def named(self, low: str, group: str) -> list[str]:
        """The entries of a group that a text names, each once."""
        found = [each.text for each in self._lexicon.mentions(words_of(low)) if each.group == group]
        return [each for each in dict.fromkeys(found) if each not in _TOO_GENERAL]

    def allergen(self, clause: Clause) -> str | None:
        """What somebody is allergic to."""
        found = _ALLERGIC.search(clause.low)
        if found is None:
            return None
        value = (found["to"] or found["of"] or "").strip()
        value = re.sub(r"^(?:the|any|some|my) ", "", value)
        return value if value and not _NOT_ALLERGEN.match(value) and len(value.split()) <= 8 else None

    def complaint(self, clause: Clause) -> str:
        """The complaint that a clause names, in its own words; empty if it names none."""
        words = words_of(clause.low)
        mentions = tuple(self._lexicon.mentions(words))
        parts = [each for each in mentions if each.group == "body.parts"]
        for each in mentions:
            jab = re.match(
                r"\W*(?:and \w+ )?(?:jabs?|vaccin\w+|shots?|tests?)\b"
                r"| (?:down|out|back|my hours)\b",
                clause.low[words[each.last - 1].end :],
            )
            if each.text == "cold" and not _CATCHES_COLD.search(clause.low):
                continue
            if each.group in ("complaints.nouns", "complaints.clauses") and not jab:
                first, last = each.first, each.last
                for part in parts:
                    between = {word.text for word in words[part.last : first]}
                    if part.last <= first and first - part.last <= 4 and between <= _LINKS:
                        first = min(first, part.first)
                while first > 0 and words[first - 1].text in _WITH:
                    first -= 1
                tail = re.match(
                    r" (?:in|on|under|behind|at|of|around) (?:(?:my|the|his|her|both|one|left|right"
                    r"|upper|lower) ){0,3}[a-z]+",
                    clause.low[words[last - 1].end :],
                )
                end = words[last - 1].end + (
                    tail.end() if tail and any(part.text in tail[0] for part in parts) else 0
                )
                return clause.low[words[first].start : end]
        for part in parts:
            near = [
                each
                for each in mentions
                if each.group in ("complaints.verbs", "complaints.states")
                and 0 <= each.first - part.last <= 4
            ]
            if near:
                first = part.first
                while first > 0 and words[first - 1].text in _WITH:
                    first -= 1
                return clause.low[words[first].start : words[near[0].last - 1].end]
        felt = re.search(r"\b(?:feel|feeling|felt)\b", clause.low)
        feels = [
            each
            for each in mentions
            if each.group == "complaints.adjectives" and (felt or each.text not in _NEEDS_FEEL)
        ]
        if feels and re.search(
            r"\b(?:feel|feeling|felt|i'm|i am|am|is|been|'s|get|getting|so)\b", clause.low
        ):
            return clause.low[words[feels[0].first].start : words[feels[0].last - 1].end]
        return ""


"""Kinds of which somebody can have none; `nothing` answers no other open question."""

"""What an answer in own words sounds like. Other words are kept, but not as the answer to that question."""

_WITH: Final = word_set(
    "left right upper lower both dull sharp bad terrible severe dry itchy mild slight chronic "
    "constant splitting runny stuffy sore swollen persistent tension knee back neck shoulder "
    "chest stomach tooth ear joint"
)
_LINKS: Final = word_set(
    "is are has have been keeps keep feels feel gets get was a bit so very really always still"
)
_NEEDS_FEEL: Final = word_set("off rubbish hot down low alone numb angry empty sick awful faint cold")
_CATCHES_COLD: Final = re.compile(
    r"\b(?:a|bad|head|heavy|nasty|another|this|my|the|his|her|got|have|chest) cold\b(?! (?:water|weather"
    r"|drinks?|air|hands|feet))|^cold\b"
)
_DOSED: Final = re.compile(r"\d|\b(?:daily|nightly|a day|at night|in the (?:morning|evening)|every)\b")
_NOT_TIMED: Final = frozenset(("medications", "allergies", "conditions", "pregnancy", "age"))
_TOO_GENERAL: Final = frozenset(
    ("pill", "tablet", "supplement", "iron", "pills", "tablets", "supplements", "ms", "off")
)


def _with_dose(name: str, low: str, *, alone: bool) -> str:
    """A medicine with its dose, if that stands beside it or no other medicine is named."""
    after = low.partition(name)[2]
    dose = readers.PLAIN["dose"](low if alone else after[:16])
    return f"{name} {dose}" if dose and (alone or after.lstrip().startswith(dose)) else name


_ANY_QUESTION: Final = Question(asked="", core="", form="open")


def _lasts(low: str) -> bool:
    """Whether a span in a clause is how long something has lasted, not when it happens."""
    return (
        readers.whole_span(low)
        or re.search(r"\b(?:for|since|been|ago|started|now|last|past|had)\b", low) is not None
    )


def split_contrast(low: str) -> tuple[str, str]:
    """The new and the old value of `Tuesday, not Monday`. The old one is empty if there is none."""
    found = re.search(
        r"\b(?:not|isn't|wasn't)(?: the| my| a| an| on| in| at| for)? (?P<old>[\w'./ -]{1,40}?)"
        r"(?:[,;] (?:but |it's |it was |its |i meant |i mean |rather )?"
        r"| but )(?P<new>(?:the |my )?[\w'./ -]{1,60})$",
        low,
    )
    if found and not _CONTRAST.search(low):
        return found["new"].strip(), found["old"].strip()
    if found := _CONTRAST.search(low):
        return low[: found.start()].strip(" ,"), found["old"].strip()
    if found := re.search(r" (?:instead of|rather than) (?P<old>[\w' -]{1,40})$", low):
        return low[: found.start()].strip(" ,"), found["old"].strip()
    return low, ""


def has_words(text: str, part: str) -> bool:
    """Whether a text has these words, in this order."""
    return re.search(rf"(?<!\w){re.escape(plain(part))}(?!\w)", plain(text)) is not None
