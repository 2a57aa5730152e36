"""Reads facts from clauses: a value only if its type fits, and the clause is about it and about that person.

What fits no kind is kept in the person's own words, under the kind `noted`.
"""

import re
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from agents.fact_kinds import BY_NAME, TABLE
from agents.local.reading import readers
from agents.local.reading.clauses import MIXED, NOBODY, PERSON, Clause, plain
from agents.local.reading.lexicon import Lexicon, words_of
from agents.local.reading.statements import Stated, stated
from agents.questions import Question
from agents.utterance import word_set
from agents.values import NONE

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
    when: str = ""

    @property
    def stable(self) -> bool:
        """Whether it lasts beyond this episode."""
        row = BY_NAME.get(self.kind)
        return row is not None and row.stable and not _PASSES.fullmatch(self.value.lower())


_PASSES: Final = re.compile(
    r"(?:\w+ )?(?:tonsillitis|bronchitis|sinusitis|conjunctivitis|cystitis|laryngitis|gastroenteritis"
    r"|gastritis"
    r"|pneumonia|appendicitis|concussion|flu|food poisoning|pinkeye|blood clot|menopause symptoms)"
)
"""Illnesses that pass: they belong to an episode."""

_ALLERGIC: Final = re.compile(
    r"\b(?:allergic|intolerant|allergy|allergies"
    r"|intolerance) to (?P<to>[^.,;!?()]+?)(?= (?:and (?:i|my|it|have|take)|but|so"
    r"|which|since|because|as|though|too|as well|btw|we|when|found|after|from)\b|[.,;!?()]|$)"
    r"|\b(?P<of>[\w-]+(?: mite| sting)?) (?:allergy|intolerance"
    r"|intolerant)\b(?! (?:clinic|test|season|tablets?|medicine|pills?))"
)
_NOT_ALLERGEN: Final = re.compile(
    r"^(?:an?|the|my|no|any|food|drug|that|this|bad|severe|it|about|some|what|your|new|skin|seasonal|her"
    r"|his|other)$|^(?:mondays?|mornings?|work|everything|anything|something|nothing|them|those|these"
    r"|certain|most|many|one|allergic"
    r"|med\w*|whatever)\b"
)
_HOW: Final = (
    r"(?:(?:an?|the|some|mild|moderate|severe|bad|really|very|well|poorly|controlled|badly|chronic|slight"
    r"|slightly"
    r"|early|late|stage|onset|brittle|long|term|long-term|seasonal|bit|touch|lot|of|type|exercise|induced"
    r"|induced|recurrent|stable|advanced|undiagnosed|diagnosed|with|to|having|as|being|both|existing|known"
    r"|\d(?:nd|rd|th|st)?|hereditary|genetic|lifelong|treatment|resistant|persistent|occasional|terrible"
    r"|awful"
    r"|problems|issues|condition|called|breast|bowel|lung|prostate|skin|ovarian|cervical|colon|thyroid"
    r"|kidney|liver"
    r"|stomach|\d[ab]?|rheumatoid|juvenile|rare|form|kind)[ -])*"
)
_KIND_OF_IT: Final = re.compile(
    r"(?:type (?:\d|one|two)|breast|bowel|lung|prostate|skin|ovarian|cervical|colon|thyroid|kidney|liver"
    r"|stomach) $"
)
_ILLNESS: Final = re.compile(
    r"(?:[a-z'-]+ ){0,3}?(?:[a-z]{3,}itis|[a-z]{3,}osis|[a-z]{2,}a?emia|[a-z]{3,}opathy|(?:[a-z'-]+"
    r" )(?:syndrome"
    r"|disease|disorder|deficiency|dystrophy|insufficiency|palsy)|chronic [a-z]+(?: pain| fatigue)?)\b"
)
_LASTING_COMPLAINT: Final = re.compile(
    r"(?:clinical |generali[sz]ed |social |chronic |major |postnatal |post-natal |manic )?(?:depression"
    r"|anxiety"
    r"(?: disorder)?|migraines?|tinnitus|insomnia|vertigo|panic disorder|panic attacks|back pain|ibs|acne)\b"
)
_NO_CONDITION: Final = re.compile(
    r"^(?:(?:my|his|her|a|an|the) )?(?:\w+ )?(?:friend|colleague|neighbou?r|question|family|fear|risk"
    r"|history|test|check|"
    r"appointment|scan|chance|stroke of)\b|[ -]free\b| (?:test|clinic|check|check-up|checkup|appointment"
    r"|nurse"
    r"|review|scare"
    r"|risk|screening"
    r"|leaflet|medicine|medication|tablets?|meds|inhaler|pills?|charity|run|walk|ward|specialist|in the"
    r" family"
    r"|in my family|diet)\b"
)
_IS_ILL: Final = re.compile(
    r"(?:diabetic|asthmatic|epileptic|coeliac|celiac|bipolar|schizophrenic|an(?:a)?emic|hypertensive"
    r"|arthritic|perimenopausal|post-?menopausal|menopausal|immunocompromised|prediabetic|hiv[ -]positive"
    r"|obese)\b"
)
_UNITS: Final = (
    r"(?:mg|mcg|milligrams?|micrograms?|ml|g|iu|units?|puffs?|tablets?|pills?|drops?|caps?(?:ules?)?)"
)
_OFTEN: Final = (
    r"(?:once|twice|three times) daily|(?:once|twice|one|two|three times|\d times|\w+ times) (?:a|per"
    r"|each|every) (?:day|week|month)|daily"
    r"|nightly|weekly"
    r"|every (?:day|morning|night|evening|week|other day|\d+ hours|\w+ weeks|\w+day|\w+ hours)|at night"
    r"|at bedtime"
    r"|before bed|in the (?:morning|evening)s?|as needed|when needed|with (?:meals|food|breakfast)|a day"
    r"|a week"
)
_MEDICINE_LEAD: Final = (
    r"(?:(?:an?|the|my|his|her|some|daily|regular|low|dose|baby|both|just|only|also|about|one|two|three"
    r"|half|of|blue|brown"
    rf"|\d+(?:[.,]\d+)? ?{_UNITS}?|{_UNITS}|long[- ]term|prescription|prescribed|called|something|for"
    rf"|blood|pressure) )*"
)
_AFTER_MEDICINE: Final = re.compile(
    rf"(?:s\b)?(?:,? ?\(?(?:\d+(?:[.,]\d+)?(?: ?(?:/|x) ?\d+)? ?{_UNITS}(?!\w)|\d+(?:[.,]\d+)?(?="
    rf" (?:{_OFTEN})|$)|\w+ {_UNITS}(?!\w)))?\)?(?:,? (?:{_OFTEN}))*"
)
_LISTED: Final = re.compile(r",\s*(?:and )?|\s+(?:and|plus|&|-)\s+(?:also )?")
_UNKNOWN_MEDICINE: Final = re.compile(
    r"([a-z][a-z-]{4,}) (?:\d+(?:[.,]\d+)? ?(?:mg|mcg|micrograms?|milligrams?|g|ml|units?|iu)\b)"
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
_NO_VALUE: Final = re.compile(
    r"(?:(?:no|but|and|actually|well|sorry|wait|oh)[, ]+)*"
    r"(?:i'm|i am|i do|i have|i've|i was|he's|he is|she's|she is|he does|she does|my \w+ (?:is|does))(?:"
    r" actually| really)?"
)
"""What is left of a clause that only denies something."""

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
                return self._values(kind, clause) or self._listed(clause, "medicines.names")
            case "conditions":
                return self._values(kind, clause) or self._listed(clause, "conditions.names")
            case "stated":
                return self._values(kind, clause)
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

    def _values(self, kind: str, clause: Clause) -> str | None:
        """The values that a clause states by the forms of the table, in one text."""
        return ", ".join(each.value for each in self._stated(kind, clause)) or None

    def value_of(self, kind: str, clause: Clause) -> str | None:
        """The value of a kind's type in a clause, as if it had been asked for; None if there is none."""
        if kind not in BY_NAME or BY_NAME[kind].reads == "words":
            return None
        return self._typed(kind, clause, _ANY_QUESTION)

    def kinds_fitting(self, clause: Clause) -> set[str]:
        """The kinds of fact of which a short clause can be the value."""
        return {row.kind for row in TABLE if row.bare and self._typed(row.kind, clause, _ANY_QUESTION)}

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
        if not clause.text or clause.asked or clause.may_ask:
            return []
        found = [
            Found(row.kind, each.value[:_MAX_VALUE], clause.text, each.who, when=each.when)
            for row in TABLE
            if row.volunteered and row.states
            for each in self._stated(row.kind, clause)
        ]
        kinds = {each.kind for each in found}
        found = [each for each in found if _SAME_AS.get(each.kind) not in kinds]
        if clause.supposed or clause.who in (MIXED, NOBODY):
            return found
        low, kinds = clause.low, {each.kind for each in found}
        values: list[tuple[str, str]] = []
        complaint = ""
        if not clause.denied and not clause.past:
            values += [each for each in self._measured(low) if each[0] not in kinds]
            if name := readers.name(clause.text):
                values.append(("name", name))
            if (
                "allergies" not in kinds
                and not self.allergen(clause)
                and (complaint := self.complaint(clause))
            ):
                values.append((CONCERN, complaint))
        kinds |= {kind for kind, _ in values}
        if (
            not clause.denied
            and (complaint or _STARTS_IT.match(low))
            and (complaint or not kinds & _NOT_TIMED)
        ):
            values += self._timed(low)
        return [*found, *(Found(kind, value[:_MAX_VALUE], clause.text, clause.who) for kind, value in values)]

    def _stated(self, kind: str, clause: Clause) -> list[Stated]:
        """The values of a kind that a clause states by a form of the table; names are found in the lists."""
        reads = BY_NAME[kind].reads
        names = _NAMES.get(reads)
        values = stated(kind, clause, every=names is not None)
        if names is None:
            return values
        read = {"medicines": self._medicines, "conditions": self._conditions, "allergens": _allergens}[reads]
        found: dict[str, Stated] = {}
        for each in values:
            for value in [NONE] if each.value == NONE else read(each.value):
                when = each.when if each.when not in value else ""
                found.setdefault(value.lower(), replace(each, value=value, when=when))
        if len(found) > 1:
            found.pop(NONE, None)
        return list(found.values())

    def _conditions(self, value: str) -> list[str]:
        """The conditions that a text lists from its beginning."""
        found = [self._condition(each.strip()) for each in _LISTED.split(value.lower())]
        return list(takewhile(bool, found))

    def _condition(self, low: str) -> str:
        """The condition that a text begins with; empty if it begins with none."""
        if _NO_CONDITION.search(low):
            return ""
        lead = re.match(_HOW, low)
        rest = low[lead.end() :] if lead else low
        for each in self._lexicon.mentions(words_of(low)):
            if each.group == "conditions.names" and each.text not in _TOO_GENERAL:
                start = low.find(each.text.split()[0])
                if start >= 0 and re.fullmatch(_HOW, low[:start]):
                    kind = _KIND_OF_IT.search(low[:start])
                    return f"{kind[0] if kind else ''}{each.text}"
        found = _IS_ILL.match(rest) or _ILLNESS.match(rest) or _LASTING_COMPLAINT.match(rest)
        return found[0].strip() if found else ""

    def _medicines(self, value: str) -> list[str]:
        """The medicines that a text lists from its beginning, with doses and how often they are taken."""
        found = [self._medicine(each.strip()) for each in _LISTED.split(value.lower())]
        return list(takewhile(bool, found))

    def _medicine(self, low: str) -> str:
        """The medicine that a text begins with; empty if it begins with none."""
        for each in self._lexicon.mentions(words_of(low)):
            if each.group != "medicines.names" or each.text in _TOO_GENERAL:
                continue
            start = low.find(each.text)
            if start >= 0 and (lead := re.fullmatch(_MEDICINE_LEAD, low[:start])):
                after = _AFTER_MEDICINE.match(low[start + len(each.text) :])
                dose = re.search(rf"\d+(?:[.,]\d+)? ?{_UNITS}(?= )", lead[0])
                tail = f"{' ' + dose[0] if dose else ''}{after[0] if after else ''}"
                return f"{each.text}{tail}".strip(" ,(")
        if found := _UNKNOWN_MEDICINE.match(low):
            after = _AFTER_MEDICINE.match(low[found.end(1) :])
            return f"{found[1]}{after[0] if after else ''}".strip(" ,(")
        return ""

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
_NOT_TIMED: Final = frozenset(("medications", "allergies", "conditions", "pregnancy", "age"))
_TOO_GENERAL: Final = frozenset(
    ("pill", "tablet", "supplement", "iron", "pills", "tablets", "supplements", "ms", "off")
)


def _allergens(value: str) -> list[str]:
    """The names in what somebody is allergic to."""
    parts = re.split(r",? (?:and|or) |, |/", value)
    bare = [
        re.sub(r"^(?:the|any|some|my|all|both|most|eating|certain) ", "", each.strip().lower())
        for each in parts
    ]
    return [
        each
        for each in bare
        if each and not each.startswith("not ") and not _NOT_ALLERGEN.match(each) and len(each.split()) <= 5
    ]


_SAME_AS: Final = {"past_conditions": "history"}
"""Kinds whose values are left out beside those of another kind."""

_NAMES: Final = {"medicines": "medicines.names", "conditions": "conditions.names", "allergens": ""}
"""The types of values that are found in lists of names."""

_ANY_QUESTION: Final = Question(asked="", core="", form="open")


def _lasts(low: str) -> bool:
    """Whether a span in a clause is how long something has lasted, not when it happens."""
    return (
        readers.whole_span(low)
        or re.search(r"\b(?:for|since|been|ago|started|now|last|past|had)\b", low) is not None
    )


def split_contrast(low: str) -> tuple[str, str]:
    """The new and the old value of `Tuesday, not Monday`. The old one is empty if there is none.

    The new one is empty in `I'm not allergic to latex`, which only denies.
    """
    found = re.search(
        r"\b(?:not|isn't|wasn't)(?: the| my| a| an| on| in| at| for)? (?P<old>[\w'./ -]{1,40}?)"
        r"(?:[,;] (?:but |it's |it was |its |i meant |i mean |rather )?"
        r"| but )(?P<new>(?:the |my )?[\w'./ -]{1,60})$",
        low,
    )
    if found and not _CONTRAST.search(low):
        return found["new"].strip(), found["old"].strip()
    if found := _CONTRAST.search(low):
        new = low[: found.start()].strip(" ,")
        return "" if _NO_VALUE.fullmatch(new) else new, found["old"].strip()
    if found := re.search(r" (?:instead of|rather than) (?P<old>[\w' -]{1,40})$", low):
        return low[: found.start()].strip(" ,"), found["old"].strip()
    return low, ""


def has_words(text: str, part: str) -> bool:
    """Whether a text has these words, in this order."""
    return re.search(rf"(?<!\w){re.escape(plain(part))}(?!\w)", plain(text)) is not None
