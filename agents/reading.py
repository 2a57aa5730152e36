"""What a message states by itself, found by rules over the lexicon, in the person's own words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from agents.lexicon import Lexicon, Mention, Word, plain, word_set, words_of

NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
        ]
    )
}
_NUMBER: Final = rf"(?:\d+(?:[.,]\d+)?|half an?|an?|{'|'.join(NUMBERS)}|twenty|thirty|forty|fifty|sixty)"
_UNIT: Final = r"(?:second|minute|min|hour|hr|day|night|week|weekend|month|year|yr|decade)s?"
SPAN: Final = (
    r"(?:(?:about|around|almost|over|nearly|roughly|maybe|like|at least|more than|less than|just"
    r"|only|approximately|some"
    r"|up to|close to|the (?:last|past|whole|better part of an?)) )*"
    rf"(?:(?:{_NUMBER}(?:(?: ?- ?| to | or | and a )(?:{_NUMBER}|half))?|a few|a couple(?: of)?"
    rf"|couple(?: of)?|several|many"
    rf"|a good few|quite a few|some|few)(?: more| full| whole| solid)? {_UNIT}(?: or (?:so|two"
    rf"|more))?(?: and a half)?"
    rf"|\d+ ?(?:d|w|h|mo|wks?|hrs?|mins?|yrs?)\b|all (?:day|night|week|month|year|morning|summer"
    rf"|winter)|ages|a (?:long |short |good )?while"
    r"|(?:my |his |her )?(?:whole|entire) life|years|months|weeks|days|hours|forever|a long time|not "
    r"(?:very )?long)"
)
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH: Final = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)"
)
MOMENT: Final = (
    r"(?:(?:early |late |the day before |earlier )?(?:this (?:morning|afternoon|evening|week|month"
    r"|year|spring|summer|winter)"
    r"|last (?:night|week|weekend|month|year|spring|summer|autumn|fall|winter|christmas)"
    r"|yesterday(?: (?:morning|afternoon|evening|night))?"
    rf"|today|tonight|the other (?:day|night)|just now|right now)|(?:last |this |on )?{_DAY}(?: "
    rf"(?:morning|afternoon|evening|night))?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?: \d{{4}})?|(?:early |late |mid |mid-"
    rf"|last |the (?:beginning|end|middle|start) of )?"
    rf"{_MONTH}(?: (?:the )?\d{{1,2}}(?:st|nd|rd|th)?)?(?: \d{{4}})?\b"
    rf"|\d{{1,2}}[/.]\d{{1,2}}(?:[/.]\d{{2,4}})?|(?:in |back in )?(?:19|20)\d\d"
    rf"|{SPAN} (?:ago|back)|christmas|easter|new year'?s?|childhood|birth|long ago|(?:at |around "
    rf")?(?:noon|midnight|\d{{1,2}}(?::\d\d)? ?(?:am|pm|o'clock)))"
)
_STOP: Final = r"(?=\s*(?:[.,;!?()]|\b(?:and|but|so|because|though|although|which|while i|or)\b|$))"
_WORDS: Final = rf"[^\s.,;!?()]+(?: [^\s.,;!?()]+){{0,8}}?{_STOP}"
_CLAUSE: Final = rf"({_WORDS})"


def _re(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


HAS_SPAN: Final = _re(rf"\b{SPAN}\b")
HAS_MOMENT: Final = _re(rf"\b{MOMENT}")
_SINCE: Final = _re(
    rf"\b(?:ever since|since|starting|as of)(?: about| around| like)? (?!then\b|it\b)({MOMENT}|{_WORDS})"
)
_STARTED: Final = _re(
    r"\b(?:started|began|begun|came on|come on|first (?:noticed|felt|saw|had|got)(?: it| this| "
    r"them)?|noticed (?:it|this)(?: first)?"
    r"|got it|showed up|appeared|happened)(?: hurting| to \w+| \w+ing| up| out)?"
    rf"(?: back| on| at| in| about| around| like| sometime| it)* ({MOMENT}|(?:right |just |shortly "
    rf"|soon )?(?:after|when|before|while|during) {_WORDS})"
)
_AGO: Final = _re(rf"\b({SPAN} (?:ago|back))\b")
_LASTING: Final = _re(
    rf"\b(?:for|lasts?|lasted|lasting|been|been like this|going on|on and off|past|over|in)(?: about| "
    rf"for| going on| over| on)? ((?:the (?:last|past) )?{SPAN})\b(?! ago| back| old)"
)
_NOW: Final = _re(rf"\b({SPAN})(?: now| already| so far)\b")
_OFTEN: Final = _re(
    r"\b((?:almost |nearly |about |maybe |around )?(?:every (?:other |single |few |couple of "
    r")?(?:\w+ )?(?:day|night|morning|evening|afternoon|week|weekend|month|hour|time|minute)s?"
    rf"|(?:once|twice|{_NUMBER}(?:(?: ?- ?| to | or ){_NUMBER})? times|several times|a few times|a "
    rf"couple of times|{_NUMBER} (?:nights|days|evenings|hours|times|of)?) (?:a|an|per|each|every|in "
    rf"a|out of the) (?:day|night|week|month|year|hour)"
    r"|daily|weekly|nightly|monthly|most (?:days|nights|mornings)|once in a while|now and then|from "
    r"time to time|all the time|twice daily|on weekends))\b"
)
_WORSE: Final = _re(
    rf"\b(?:worse|worst|flares? up|acts? up|comes? on|brought on|triggered|set off|hurts?(?: more| "
    rf"most| mostly| only| a lot)?|happens(?: mostly| mainly| only| usually)?)"
    rf" ((?:when|whenever|after|at|in the|during|with|if|while|before|every time|by|from|every) {_WORDS})"
)
_FELT_WHEN: Final = _re(
    r"\b(?:pain|ache|burning|feeling|sensation|discomfort|headaches?|cough|dizziness|dizzy|nausea"
    r"|nauseous|tightness|cramps?)"
    rf" ((?:when|whenever|while|after|during|every time) {_WORDS})"
)
_MAKES_WORSE: Final = _re(
    r"\b((?:[\w'-]+ ){1,5}?)(?:seems? to )?(?:makes?|made) (?:it|them|the pain|things|that|this) (?:much "
    r"|even |a lot )?worse\b"
)
_BETTER: Final = _re(
    rf"\b(?:better|eases?(?: off| up)?|goes away|improves|calms down|less(?: bad| painful)?) ((?:when"
    rf"|whenever|after|at|in the|during|with|if|while|once|by) {_WORDS})"
)
_HELPS: Final = _re(
    r"\b((?:[\w'-]+ ){1,5}?)(?:usually |really |sometimes |only |a bit |seems? to |does |did |do "
    r")*(?:helps?|helped|(?:makes?|made) (?:it|them|the pain|things) (?:feel )?better|eases? (?:it"
    r"|the)|relieves? (?:it|the))\b"
)
RATED: Final = _re(
    rf"\b(\d{{1,2}}(?:\.\d)?|{'|'.join(NUMBERS)})(?:\s*/\s*| out of | over )(10|ten|5|five|100)\b(?!/)"
)
DOSE: Final = _re(
    r"\b(\d+(?:[.,]\d+)? ?(?:mg|mcg|milligrams?|micrograms?|ml|g|iu|units?|puffs?|tablets?|pills?"
    r"|drops?))(?!\w)"
)
_ALLERGIC: Final = _re(rf"\b(?:allergic|allergy|allergies|intolerant|intolerance) to {_CLAUSE}")
_ALLERGY: Final = _re(
    r"\b((?:peanut|nut|pollen|dust|dust mite|latex|penicillin|shellfish|egg|milk|cat|dog|bee|wasp|grass"
    r"|soy|wheat|gluten|fish|mold|drug) allerg(?:y|ies))\b"
)
_PREGNANT: Final = _re(
    rf"\b((?:not |might be |could be |may be )?(?:{_NUMBER} (?:weeks?|months?) )?(?:pregnant|expecting a "
    rf"baby))\b(?! with(?:out)? )"
)
_IF_ONLY: Final = _re(r"\b(?:if|whether|when|before|in case|unless)\b[^.,]*$")
_OLD: Final = _re(
    r"\b(\d{1,3}(?:\.\d)?(?:[ -]?(?:years?|yrs?|months?|weeks?|days?))[ -]old|\d{1,3} ?(?:yo|y/o)\b)"
)
_AGED: Final = _re(
    r"\b(?:i'm|i am|he's|she's|he is|she is|turning|aged?|turned)(?: now| about| almost| only)? (\d{1,3})\b"
    r"(?! ?(?:%|/|kg|kilos|lb|pounds|cm|mg|st\b|out|weeks|months|days|hours|minutes|times|percent"
    r"|pounds|years (?:into|since)|am\b|pm\b|o'clock|\.\d))"
)
TEMPERATURE: Final = _re(
    r"\b(\d{2,3}(?:[.,]\d+)? ?(?:°|º|degrees)? ?(?:celsius|fahrenheit|[cf]\b)|\d{2,3}(?:[.,]\d+)? ?(?:°"
    r"|degrees))|\btemp(?:erature)? (?:of|is|was) (\d{2,3}(?:[.,]\d+)?)"
)
READING: Final = _re(
    r"\b(\d{2,3} ?(?:/|over) ?\d{2,3}(?! ?10\b)|\d+(?:[.,]\d+)? ?(?:mg/dl|mmol(?:/l)?|mmhg|bpm)"
    r"|(?:a1c|hba1c)(?: (?:is|was|of|at|came back at))* \d+(?:[.,]\d+)?%?)"
)
_MEASURE: Final = _re(
    r"\b(\d{2,3}(?:[.,]\d+)? ?(?:kg|kilos?|lbs?|pounds|stone|cm|bmi)|\d ?(?:ft|foot|feet|')\s?\d{0,2}"
    r"|\d[.,]\d\d ?m)\b"
)
_FOR_WHOM: Final = _re(
    r"\b(?:it's|this is|asking|calling|question is|not me,? (?:it's|but))(?: for| about)? my ([a-z-]+)\b"
)
INJECTED: Final = _re(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|prompts?|rules"
    r"|guidelines|everything (?:above|before)|previous|prior|above)\b"
    r"|\bsystem prompt\b|\byou are now\b|\bpretend (?:to be|you are|that you)\b|\bact as (?:if|a|an"
    r"|my)\b|\bjailbreak|\bdeveloper mode\b"
    r"|\b(?:write|store|save|put|add|set|insert|update|delete|erase|overwrite|record"
    r"|append)\b.{0,60}\b(?:memory|memories|block|blocks|context_summary|active_session"
    r"|conversation_history|database|severity (?:to|as|=))\b"
    r"|\bnew instructions?\b|</?(?:system|assistant|user|instructions?)>|\[(?:system|inst)\]"
    r"|^\s*(?:system|assistant) ?:|\brespond only with\b|\brepeat after me\b"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_ASKS: Final = _re(
    r"(?:what|who|how|why|when|which|where)(?:'s|'re)?\b (?:is|are|am|do|does|did|can|could|should"
    r"|would|will|was|were|have|has|to|much"
    r"|many|often|long|about|kind|type|sort|else|medic\w+|contracep\w+|exercises?|food)\b|why\b"
    r"|(?:can|could|should|would|do|does|did|is|are|will|may|am|have you|has)\b"
)
_ASKS_INSIDE: Final = _re(
    r"(?:,|-| and| but| so)\s+(?=(?:what|how|why|when|which|where|can|could|should|is (?:it|that"
    r"|this|there)|are (?:there|they)|do (?:i|you)|does|will|any (?:idea|tips|advice|suggestion))\b)"
)
_HYPOTHETICAL: Final = word_set(
    "worried afraid scared fear could might maybe possibly wonder wondering if whether think suspect case "
    "risk prevent avoid like"
)
_NEGATORS: Final = word_set(
    "no not without never don't doesn't didn't haven't hasn't hadn't isn't aren't wasn't weren't neither "
    "nor zero denies"
)
_ENDS_NEGATION: Final = word_set(
    ". ! ? ; : but however though although except just only besides because since when then yet still apart"
)
_PAINS: Final = word_set(
    "hurt hurts hurting ache aches aching throb throbs sting stings bothering killing acting"
)
_PAIN_NOUNS: Final = word_set(
    "pain pains ache aches cramp cramps stiffness swelling numbness tingling itching pressure tightness "
    "spasm spasms soreness weakness tenderness bruise bruising rash burning injury infection discharge "
    "bleeding lump bump cut burn sprain twitching twitch redness blister sore"
)
_FEELS: Final = word_set(
    "feel feeling feels felt am i'm im i've been being was is he's she's get getting gets got become "
    "becoming seem seems so very really always constantly too quite pretty bit little and or just more "
    "extremely also mostly totally completely all kind of a super"
)


@dataclass(frozen=True, slots=True)
class Said:
    """Something a message states. A `sentence` is given where kind and value would not say it."""

    kind: str
    value: str
    sentence: str = ""


class Text:
    """A message with its words and what of the lexicon its statements mention."""

    def __init__(self, message: str, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.whole = plain(message)
        sentences = [part for part in _SENTENCE.split(self.whole) if part]
        self.injected = [part for part in sentences if INJECTED.search(part)]
        self.asked, kept = [], []
        for sentence in sentences:
            if sentence in self.injected:
                continue
            statement, question = _parted(sentence)
            if question:
                self.asked.append(question)
            if statement:
                kept.append(statement)
        self.stated = " ".join(kept)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the statements."""
        return words_of(self.stated)

    @cached_property
    def mentions(self) -> tuple[Mention, ...]:
        """What of the lexicon the statements mention."""
        return self.lexicon.mentions(self.words)

    @cached_property
    def denied(self) -> frozenset[int]:
        """The places of words that stand under a `no` or `not`."""
        return frozenset(self._denied())

    def has(self, *groups: str, denied: bool = False) -> Iterator[Mention]:
        """The mentions of these groups that are claimed, or else denied."""
        return (
            each for each in self.mentions if each.group in groups and (each.first in self.denied) is denied
        )

    def cut(self, mention: Mention) -> str:
        """A mention as the person wrote it, in small letters."""
        return self.stated[self.words[mention.first].start : self.words[mention.last - 1].end].lower()

    def written(self, mention: Mention) -> str:
        """A mention just as the person wrote it."""
        return self.stated[self.words[mention.first].start : self.words[mention.last - 1].end]

    def _denied(self) -> Iterator[int]:
        texts = [word.text for word in self.words]
        starts = {mention.first: mention.last for mention in self.mentions}
        for mention in self.mentions:
            if texts[mention.last : mention.last + 1] == ["no"] and texts[
                mention.last + 1 : mention.last + 2
            ] in ([], [","], ["."]):
                yield from range(mention.first, mention.last)
        denying = False
        for at, text in enumerate(texts):
            following = texts[at + 1] if at + 1 < len(texts) else "."
            if text in _NEGATORS:
                denying = following not in (",", ".", "!", ";", "-", "only", "sure", "just") or (
                    text != "no" and following == ","
                )
            elif (
                text in _ENDS_NEGATION
                or (text == "," and not self._list_goes_on(texts, starts, at + 1))
                or (
                    text == "and"
                    and following
                    in (
                        "i",
                        "my",
                        "it",
                        "the",
                        "i'm",
                        "i've",
                        "have",
                        "had",
                        "then",
                        "now",
                        "yes",
                        "some",
                        "a",
                        "an",
                    )
                )
            ):
                denying = False
            elif denying:
                yield at

    @staticmethod
    def _list_goes_on(texts: list[str], starts: dict[int, int], at: int) -> bool:
        """Whether `no fever, chills or rash` goes on behind a comma."""
        while at < len(texts) and texts[at] in ("or", "nor", "and", "any", "a", "no", "not"):
            at += 1
        end = starts.get(at)
        return end is not None and (
            end >= len(texts) or texts[end] in (",", ".", "or", "and", "nor", "!", ";", "either")
        )


def asks_back(text: str) -> bool:
    """Whether a message is a question of its own rather than a reply."""
    return text.rstrip().endswith("?") or _ASKS.match(text.lstrip(" .,;:!?'\"()*-~")) is not None


_SWAYS: Final = (
    (
        "triggers",
        (_WORSE, _FELT_WHEN, _MAKES_WORSE),
        word_set(
            "worse worst flares flare acts act brought triggered set hurts hurt happens comes come when "
            "whenever while after during every"
        ),
    ),
    (
        "relief",
        (_BETTER, _HELPS),
        word_set("better ease eases goes improves calms less helps help helped relieve relieves"),
    ),
)
"""What makes a complaint worse or better: patterns, and the words without which none of them fits."""


def stated(text: Text) -> Iterator[Said]:
    """What the statements of a message say, whatever was asked before; complaints are found elsewhere."""
    low = text.stated
    if not low:
        return
    bare_drug = any(text.has("medicines.names", "conditions.names")) and not any(
        text.has("complaints.nouns", "complaints.verbs", "complaints.clauses")
    )
    digits = any(char.isdigit() for char in low)
    if rated := RATED.search(low):
        yield Said(
            "severity",
            f"{NUMBERS.get(rated[1].lower(), rated[1])}/{NUMBERS.get(rated[2].lower(), rated[2])}",
        )
    yield from _times(low, bare_drug)
    if often := _OFTEN.search(low):
        yield Said("frequency", often[1])
    said = {word.text for word in text.words}
    for kind, patterns, hints in _SWAYS:
        for pattern in patterns if said & hints else ():
            for found in pattern.finditer(low):
                value = _clean(found[1])
                if value and not _void(value):
                    yield Said(kind, value)
    for quality in text.has("body.qualities"):
        nouns = [each for each in text.mentions if each.group == "complaints.nouns"]
        if any(each.first <= quality.last + 1 and each.first != quality.first for each in nouns):
            yield Said("quality", text.cut(quality))
            break
    if (where := _place(text)) is not None:
        yield Said("location", where)
    yield from _about_the_person(text)
    if digits:
        yield from _measured(low)


def _times(low: str, bare_drug: bool) -> Iterator[Said]:
    if onset := _STARTED.search(low) or _SINCE.search(low):
        yield Said("onset", _clean(onset[1]))
    elif not bare_drug and (ago := _AGO.search(low)):
        yield Said("onset", _clean(ago[1]))
    elif not bare_drug and (lasting := _LASTING.search(low) or _NOW.search(low)) and not _OFTEN.search(low):
        yield Said("duration", _clean(lasting[1]))


_PLACED: Final = word_set("on in at behind around under above below between across along near down inside")
_OWNED: Final = word_set("my the his her both one each")


def _place(text: Text) -> str | None:
    """`left side` of `on the left side`: a part of the body in which something is felt."""
    texts = [word.text for word in text.words]
    for part in text.has("body.parts"):
        sided = _sided(text, part, texts)
        first = part.last - len(words_of(sided))
        if first >= 2 and texts[first - 1] in _OWNED and texts[first - 2] in _PLACED:
            before = texts[first - 2]
            if before == "on" and sided == "back":
                continue
            return (
                sided
                if before in ("on", "in", "at", "along", "inside")
                else f"{before} {texts[first - 1]} {sided}"
            )
    return None


def _about_the_person(text: Text) -> Iterator[Said]:
    low = text.stated
    small = low.lower()
    hinted = "allerg" in small or "intoleran" in small
    patterns = (_ALLERGIC, _ALLERGY) if hinted else ()
    allergens = [_clean(found[1]) for pattern in patterns for found in pattern.finditer(low)]
    for allergen in allergens:
        if allergen.split()[0] not in ("anything", "any", "nothing"):
            denied = "not allergic" in small or "no allerg" in small
            yield Said("allergies", f"no {allergen}" if denied else allergen)
    yield from _medicines(text, " ".join(allergens).lower())
    yield from _conditions(text)
    expecting = _PREGNANT.search(low) if "pregnan" in small or "expecting" in small else None
    if (pregnant := expecting) and not _IF_ONLY.search(low[: pregnant.start()]):
        negated = any(word in _NEGATORS for word in small[: pregnant.start()].split()[-1:])
        yield Said(
            "pregnancy",
            f"not {pregnant[1]}" if negated and not pregnant[1].startswith("not") else pregnant[1],
        )
    old = _OLD.search(low) or _AGED.search(low)
    if old and (years := re.match(r"[\d.]+", old[1])) and 0 < float(years[0]) <= 115:
        yield Said("age", old[1])


def _medicines(text: Text, allergens: str) -> Iterator[Said]:
    low, texts = text.stated, [word.text for word in text.words]
    found = False
    doses = list(DOSE.finditer(low))
    for mention in (each for each in text.mentions if each.group == "medicines.names"):
        name = text.written(mention)
        if name.lower() in allergens or (name in ("pill", "pills", "tablet", "tablets", "iron") and found):
            continue
        found = True
        before = texts[max(0, mention.first - 4) : mention.first]
        if mention.first in text.denied:
            yield Said("medications", f"no {name}")
        elif {"stopped", "quit", "off"} & set(before):
            yield Said("medications", f"stopped {name}")
        else:
            start, end = text.words[mention.first].start, text.words[mention.last - 1].end
            near = next((dose[1] for dose in doses if _beside(low, dose, start, end)), "")
            yield Said("medications", f"{name} {near}" if near and name not in near.lower() else near or name)
    if (
        not found
        and (
            taking := re.search(
                (
                    r"\bi(?:'m| am|'ve| have)?(?: been| just| also| still| only| currently)? "
                    r"(?:taking|take|took"
                    r"|taken|on) (?:a |an |some |my |the |two |one )?(?!anything|nothing|it\b|care"
                    r"|that|this|them|no\b"
                    r"|any\b|a\b|weeks?|months?|years?|days?|nap\b|walk\b|shower|bath\b|bus\b|train\b"
                    r"|class|course|test|look\b|seat|while|couple|few|walks|naps|breaks|my time"
                    r"|medications?|medicines?|pills?|meds"
                    r"|holiday|leave|day"
                    r"|time|diet|period|way|phone|edge|feet|and\b|two\b|one\b|\d)([a-z][\w-]{3,30})\b"
                ),
                low.lower(),
            )
        )
        and text.words
    ):
        name = taking[1]
        at = next((i for i, word in enumerate(text.words) if word.start == taking.start(1)), -1)
        if at not in text.denied and not {m.group for m in text.mentions if m.first <= at < m.last}:
            yield Said("medications", name)


def _beside(low: str, dose: re.Match[str], start: int, end: int) -> bool:
    """Whether a dose stands right before or behind the name at `start` to `end`."""
    if dose.end() <= start:
        return low[dose.end() : start].strip() in ("", "of")
    return dose.start() < end or low[end : dose.start()].strip(" ,(") in ("", "at", "about", "like", "is")


def _conditions(text: Text) -> Iterator[Said]:
    texts = [word.text for word in text.words]
    relatives = list(text.has("people.relatives"))
    for mention in (each for each in text.mentions if each.group == "conditions.names"):
        name = text.cut(mention)
        start = max((at + 1 for at in range(mention.first) if texts[at] in ".!?;"), default=0)
        before = texts[start : mention.first]
        if mention.first in text.denied:
            yield Said("conditions", f"no {name}")
            continue
        if set(before[-6:]) & _HYPOTHETICAL:
            continue
        family = next((each for each in relatives if start <= each.first < mention.first), None)
        if family is not None and "i" not in before and not set(before) & {"i'm", "i've"}:
            yield Said("family_history", f"{text.cut(family)}: {name}")
        else:
            yield Said("conditions", name)


def _measured(low: str) -> Iterator[Said]:
    if (warm := TEMPERATURE.search(low)) and 34 <= float(
        (re.search(r"[\d.]+", (warm[1] or warm[2]).replace(",", ".")) or [0])[0]
    ) <= 110:
        yield Said("temperature", _clean(warm[1] or warm[2]))
    if (reading := READING.search(low)) and not re.fullmatch(r"\d+ ?/ ?10", reading[1]):
        yield Said("readings", _clean(reading[1]))
    if measure := _MEASURE.search(low):
        yield Said("measures", _clean(measure[1]))


def whom(text: Text) -> str | None:
    """Whose complaint it is when it is not the person's own: `son` of `my son has a fever`."""
    low = text.stated.lower()
    if (named := _FOR_WHOM.search(low)) and named[1] in text.lexicon.group("people.relatives"):
        return str(named[1])
    texts = [word.text for word in text.words]
    for mention in text.has("people.relatives"):
        before = texts[max(0, mention.first - 6) : mention.first]
        after = texts[mention.last : mention.last + 12]
        mine = "my" in before or "our" in before or texts[mention.first].endswith("'s")
        if not mine or set(after[:3]) & {
            "says",
            "said",
            "thinks",
            "told",
            "tells",
            "and",
            "noticed",
            "died",
            "passed",
        }:
            continue
        if {"i", "i'm", "i've", "me", "my"} & set(after[:8]) or "i" in texts[: mention.first]:
            continue
        return text.cut(mention).removesuffix("'s")
    return None


def concerns(text: Text) -> Iterator[Said]:
    """The complaints in the statements of a message, the clearest first; denied ones as `no …`."""
    texts = [word.text for word in text.words]
    used: set[int] = set()
    for mention in (each for each in text.mentions if each.group == "complaints.clauses"):
        used.update(range(mention.first, mention.last))
        yield Said("concern", text.cut(mention), "clause")
    for mention in (
        each for each in text.mentions if each.group == "complaints.nouns" and each.first not in used
    ):
        if set(texts[max(0, mention.first - 4) : mention.first]) & _HYPOTHETICAL - {"like"}:
            continue
        name, part = _with_part(text, mention, texts)
        if mention.first in text.denied:
            yield Said("denied", name)
            continue
        used.update(range(mention.first, mention.last))
        yield Said("concern", name)
        if part:
            yield Said("location", part)
    yield from _of_a_part(text, texts, used)
    for mention in (
        each for each in text.mentions if each.group == "complaints.adjectives" and each.first not in used
    ):
        before = texts[max(0, mention.first - 3) : mention.first]
        if mention.first in text.denied:
            if {"feel", "feeling", "am", "not", "i'm"} & set(before):
                yield Said("denied", f"feeling {text.cut(mention)}")
        elif (
            before
            and before[-1] in _FEELS
            and set(before) & (_FEELS - {"and", "or", "so", "a", "of", "all", "is", "was"})
        ):
            yield Said("concern", f"feeling {text.cut(mention)}", "feeling")


def _with_part(text: Text, mention: Mention, texts: list[str]) -> tuple[str, str]:
    """A complaint with the part of the body that it is said of: `left knee pain`, `left knee`."""
    name = text.cut(mention)
    if mention.first and texts[mention.first - 1] in text.lexicon.group("body.adjectives"):
        return f"{texts[mention.first - 1]} {name}", ""
    parts = [each for each in text.mentions if each.group == "body.parts"]
    before = next((each for each in parts if each.last == mention.first), None)
    if before is not None:
        part = _sided(text, before, texts)
        return f"{part} {name}", part
    inside = texts[mention.last : mention.last + 6]
    if inside and inside[0] in (
        "in",
        "on",
        "around",
        "behind",
        "under",
        "at",
        "of",
        "across",
        "near",
        "to",
        "between",
        "down",
        "above",
        "below",
    ):
        after = next((each for each in parts if mention.last < each.first <= mention.last + 5), None)
        if after is not None and not set(texts[mention.last : after.first]) & {",", ".", "and", "but"}:
            part = _sided(text, after, texts)
            where = (
                inside[0] if inside[0] in ("behind", "under", "between", "around", "above", "below") else ""
            )
            if name.split()[-1] in _PAIN_NOUNS and not where:
                return f"{part} {name}", part
            return f"{name} {inside[0]} {part}", f"{where} {part}".strip()
    return name, ""


def _sided(text: Text, part: Mention, texts: list[str]) -> str:
    """`left knee` of `my left knee`."""
    first = part.first
    while first > 0 and texts[first - 1] in text.lexicon.group("body.sides"):
        first -= 1
    return " ".join(texts[first : part.last])


def _of_a_part(text: Text, texts: list[str], used: set[int]) -> Iterator[Said]:
    """`my left knee hurts`, `my ankle is swollen`."""
    for part in (each for each in text.mentions if each.group == "body.parts" and each.first not in used):
        where = _sided(text, part, texts)
        first = part.first - (len(where.split()) - (part.last - part.first))
        owned = first > 0 and texts[first - 1] in ("my", "his", "her", "their", "the", "our", "both")
        for does in (each for each in text.mentions if part.last <= each.first <= part.last + 4):
            between = texts[part.last : does.first]
            if set(between) & {",", ".", "and", "but", "if", "when"} or does.first in used:
                continue
            if does.group == "complaints.verbs" and (owned or between == []):
                if does.first in text.denied or {"doesn't", "don't", "not"} & set(between):
                    yield Said(
                        "denied",
                        f"{where} pain" if texts[does.first] in _PAINS else f"{where} {text.cut(does)}",
                    )
                    break
                pain = texts[does.first] in _PAINS
                used.update(range(first, does.last))
                yield Said(
                    "concern",
                    f"{where} pain" if pain else f"{where} {text.cut(does)}",
                    "" if pain else "clause",
                )
                yield Said("location", where)
                break
            if does.group == "complaints.states" and set(between) & {
                "is",
                "are",
                "feels",
                "feel",
                "was",
                "gets",
                "got",
                "looks",
                "been",
                "'s",
                "has",
                "became",
            }:
                kind = "denied" if does.first in text.denied or "not" in between else "concern"
                used.update(range(first, does.last))
                yield Said(kind, f"{text.cut(does)} {where}")
                if kind == "concern" and where not in ("period", "mouth"):
                    yield Said("location", where)
                break


def _parted(sentence: str) -> tuple[str, str]:
    """The statement and the question in one sentence; either may be empty."""
    if not sentence.endswith("?"):
        return sentence, ""
    if inside := _ASKS_INSIDE.search(sentence):
        return sentence[: inside.start()], sentence[inside.end() :]
    if _ASKS.match(sentence) or len(sentence.split()) <= 4:
        return "", sentence
    return (
        (sentence.rstrip("?"), "")
        if re.match(r"(?:i|my|it|we|he|she)\b", sentence, re.IGNORECASE)
        else ("", sentence)
    )


def _clean(value: str) -> str:
    return value.strip(" .,;:!?'\"()-").strip()


def _void(value: str) -> bool:
    """Whether `nothing helps` or `it doesn't help` was said."""
    words = value.lower().split()
    return bool(
        words[0]
        in (
            "nothing",
            "it",
            "that",
            "this",
            "not",
            "what",
            "which",
            "they",
            "no",
            "doesn't",
            "i",
            "would",
            "will",
            "does",
            "if",
        )
        or {"not", "doesn't", "don't", "didn't", "nothing", "never"} & set(words)
    )
