"""Answers questions about what was said, from the facts and by quoting the person with the time."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from agents.local.reading import readers
from agents.local.reading.clauses import PERSON, plain, relative_in
from agents.local.dialogue import Talk, stems
from agents.local.reading.facts import CONCERN, NOTED, has_words
from agents.ports import MemoryHit, Vectors
from agents.values import NONE, NOT_SAID, NOT_SURE, UNSPECIFIED
from memory_blocks.facts.changes import CurrentFact

_MOST: Final = 3
_MOST_LISTED: Final = 12
_NEAR: Final = 0.34  # how near a quotation must be to a question with which it shares no word
_NEAR_SHARED: Final = 0.22
_LONG: Final = 160

ASKED_KINDS: Final = tuple(
    (kinds, re.compile(pattern))
    for kinds, pattern in (
        (
            ("dose", "medications"),
            r"\bdos(?:e|age)\b|\bhow (?:much|many) (?:mg|\w+ )?(?:do|did) i (?:take"
            r"|say i take)\b|\bstrength\b",
        ),
        (("allergies",), r"\ballerg"),
        (
            ("medications", "other_medicines"),
            r"\btak(?:es?|ing)\b|\b(?:tablets?|medic\w+|meds|pills?|drugs?|prescri\w+|inhaler)\b"
            r"|\b(?:i|she|he|they) (?:say i |said i |am |'m )?(?:tak(?:e|es|ing)|on)\b"
            r"|\bdo i take\b|\bam i (?:on|taking)\b",
        ),
        (("age",), r"\bhow old\b|\bage\b"),
        (
            ("severity",),
            r"\b(?:rate|rated|rating|scale|severe|severity|out of (?:10|ten)|pain (?:score"
            r"|level|number)|number (?:did|i)|how bad)\b",
        ),
        (
            ("onset", "duration"),
            r"\b(?:when|since when|how long)\b.*\b(?:start\w*|beg[ai]n|had|has|have|been"
            r"|going on|first)\b|\bhow long\b",
        ),
        (("temperature",), r"\btemp(?:erature)?\b|\bfever\b"),
        (
            ("readings",),
            r"\bblood (?:pressure|sugar)\b|\bsugar\b|\breadings?\b|\bhba1c\b|\bpulse\b"
            r"|\bpeak flow\b|\bcholesterol\b",
        ),
        (("measures",), r"\bweigh\w*\b|\btall\b|\bheight\b|\bbmi\b"),
        (("pregnancy",), r"\bpregnan\w*\b|\bhow (?:far along|many weeks)\b"),
        (("conditions",), r"\bconditions?\b|\bdiagnos\w+|\billness\w*\b"),
        (("name",), r"\b(?:my|your) name\b|\bcalled\b|\bwho am i\b"),
        (
            ("location",),
            r"\bwhere\b.*\b(?:hurt|pain|it)\b|\bwhich (?:side|knee|leg|arm|ear|eye|foot|hand"
            r"|hip|shoulder|wrist|ankle|elbow|one)\b",
        ),
        (("frequency",), r"\bhow often\b"),
        (("sleep_hours",), r"\bhours\b.*\bsleep\b|\bsleep\b.*\bhours\b"),
    )
)
_SYMPTOMS: Final = re.compile(r"\bsymptoms?\b|\bcomplaints?\b|\bwhat(?:'s| is) wrong with me\b")
_NAMED_KINDS: Final = frozenset(("medications", "other_medicines", "conditions", "allergies"))
_NO_VALUE: Final = (UNSPECIFIED, NOT_SURE, NOT_SAID)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question about memory. `quotes` are empty if nothing was said about it."""

    quotes: tuple[str, ...]
    polar: bool = False


Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


def answer(
    question: str,
    facts: Sequence[CurrentFact],
    hits: Iterable[MemoryHit],
    talk: Talk,
    embed: Embed | None,
    now: datetime,
) -> Answer:
    """What was said about a question: by the kind of fact that it asks for, else by its words and meaning."""
    low = plain(question)
    polar = (
        _POLAR.match(low) is not None
        and re.search(
            r"\bi (?:already |ever |also )?(?:say|said|tell|told|mention\w*)\b|\bdid you\b|\bremember\b", low
        )
        is not None
    )
    if found := _by_position(low, facts, talk, now):
        return Answer(found, polar)
    facts = [fact for fact in facts if fact.words]
    mine = _of_whom(low, facts, talk)
    topic = _topic_words(low)
    kinds = asked_kinds(low)
    if _SYMPTOMS.search(low):
        kinds = (CONCERN, "associated_symptoms", "quality", "location", "severity")
    named = [fact for fact in mine if fact.kind in kinds]
    if kinds == ("measures",) and (unit := _unit_asked(low)):
        named = [fact for fact in named if re.search(unit, fact.value)]
    closer = [fact for fact in named if topic & stems(f"{fact.value} {fact.words} {fact.about}")]
    if topic and not closer and kinds == ("onset", "duration"):
        closer = _with_marks(
            low, [fact for fact in mine if topic & stems(f"{fact.value} {fact.words} {fact.about}")], topic
        )
    named = closer or named
    if not named:
        named = _with_marks(low, mine, topic, embed)
    nearest = named[-_MOST_LISTED:] or _nearest(low, topic, mine, embed, strict=bool(kinds))
    if nearest:
        return Answer(_unique(told(fact, now) for fact in nearest), polar)
    hits = [hit for hit in hits if hit.is_current and topic & stems(hit.content) and "?" not in hit.content]
    return Answer(
        _unique(quote(hit.content, hit.said_at, now, elsewhere=hit.is_elsewhere) for hit in hits[:_MOST]),
        polar,
    )


def asked_kinds(low: str) -> tuple[str, ...]:
    """The kinds of fact that a question about memory asks for."""
    return next((kinds for kinds, pattern in ASKED_KINDS if pattern.search(low)), ())


def _unit_asked(low: str) -> str:
    return (
        r"kg|kilo|lb|pound|stone|st\b"
        if "weigh" in low
        else r"\dm|\.\d\d|cm|ft|foot|feet|'"
        if re.search(r"tall|height", low)
        else ""
    )


def _by_position(low: str, facts: Sequence[CurrentFact], talk: Talk, now: datetime) -> tuple[str, ...]:
    """What was asked, said first or said last, if the question is about that."""
    asked = [quote(said.message, said.at, now) for said in talk.said if "?" in said.message]
    if re.search(r"\bi ask(?:ed)?\b|\bdid i ask\b", low):
        return tuple(asked[-_MOST:])
    if not facts:
        return ()
    if re.search(r"\b(?:first|very first) (?:thing|message)\b", low):
        return (told(min(facts, key=lambda fact: fact.turn or 0), now),)
    if re.search(
        r"\blast (?:thing|message)\b|\bi just (?:tell|told|say|said)\b|\bdid i just (?:say|tell)\b", low
    ):
        return (told(max(facts, key=lambda fact: fact.turn or 0), now),)
    return ()


def _of_whom(low: str, facts: Sequence[CurrentFact], talk: Talk) -> list[CurrentFact]:
    """The facts about whom a question is about; all of them if it names nobody."""
    whom = relative_in(low)
    if not whom and re.search(r"\b(?:he|she|his|her|him)\b", low):
        whom = talk.other
    if whom:
        return [fact for fact in facts if _same_person(fact.subject, whom) or has_words(fact.words, whom)]
    own = [fact for fact in facts if fact.subject == PERSON]
    asks_own = re.search(r"\b(?:my|i take|i on|am i|do i|i'm)\b", low) is not None
    return own if asks_own else list(facts)


def _with_marks(
    low: str, facts: Sequence[CurrentFact], topic: frozenset[str], embed: Embed | None = None
) -> list[CurrentFact]:
    """The facts that have what a question asks for, by its form: a time, a count, a name."""
    for asks, has in _MARKS:
        if not asks.search(low):
            continue
        fitting = [fact for fact in facts if has.search(plain(f"{fact.words} {fact.value}"))]
        closer = [fact for fact in fitting if topic & stems(f"{fact.words} {fact.value} {fact.about}")]
        if closer or len(fitting) <= 1 or embed is None:
            return closer[-_MOST:] or fitting
        vectors = embed([low, *(_words(fact) for fact in fitting)])
        best = max(range(len(fitting)), key=lambda number: float(vectors[0] @ vectors[number + 1]))
        return [fitting[best]]
    return []


_MARKS: Final = (
    (
        re.compile(r"\bdose\b|\bmg\b|\bstrength\b"),
        re.compile(r"\d ?(?:mg|mcg|micrograms?|ml|units?|puffs?|tablets?)\b"),
    ),
    (
        re.compile(r"\b(?:called|name)\b|\bwho(?:'s| is)? (?:my|is)\b"),
        re.compile(r"\b(?:name|called|is (?:dr|doctor|mr|mrs|ms))\b"),
    ),
    (
        re.compile(r"\b(?:when|what (?:time|day|date)|how long|since)\b"),
        re.compile(rf"\b(?:{readers.SPAN}|{readers.MOMENT}|\d{{1,2}}(?::\d\d)?)(?!\w)"),
    ),
    (
        re.compile(r"\bhow many times\b|\bhow often\b"),
        re.compile(
            r"\b(?:\d+|once|twice|two|three|four|several|few) ?(?:times|a (?:day|week|month|night|year))?\b"
        ),
    ),
    (
        re.compile(r"\bhow (?:many|much)\b"),
        re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|bottle|glass|pint|couple)\b"),
    ),
)
_POLAR: Final = re.compile(r"(?:(?:and|so|but|ok|well)[, ]+)*(?:did|have|do|does|is|are|was|has|am|can)\b")


def _same_person(one: str, other: str) -> bool:
    return one == other or any({one, other} <= group for group in _SAME)


_SAME: Final = (
    frozenset(("mum", "mom", "mother", "mam", "mummy", "mommy")),
    frozenset(("dad", "father", "daddy", "papa")),
    frozenset(("gran", "granny", "grandma", "grandmother", "nan", "nana")),
    frozenset(("grandad", "grandfather", "grandpa")),
    frozenset(("son", "boy", "toddler", "baby", "child", "kid", "little boy", "little one")),
    frozenset(("daughter", "girl", "toddler", "baby", "child", "kid", "little girl", "little one")),
    frozenset(("husband", "hubby", "partner", "other half")),
    frozenset(("wife", "partner", "other half")),
)


def listed(facts: Iterable[CurrentFact], now: datetime, most: int = _MOST_LISTED) -> tuple[str, ...]:
    """Everything that was told, in the order in which it was said."""
    ordered = sorted((fact for fact in facts if fact.words), key=lambda fact: fact.turn or 0)
    return _unique(told(fact, now, timed=False) for fact in ordered)[:most]


def matching(request: str, facts: Sequence[CurrentFact], turn: int) -> tuple[CurrentFact, ...]:
    """The facts that a request to forget means. `turn` is the one with the request."""
    low = plain(request)
    if re.search(r"\b(?:everything|all of it|all my|my data|all that|all you)\b", low):
        return tuple(facts)
    topic = _topic_words(low)
    if not topic:
        latest = max((fact.turn or 0 for fact in facts), default=0)
        return tuple(fact for fact in facts if fact.turn == latest) if latest >= turn - 1 else ()
    for texts in ((lambda fact: fact.value), (lambda fact: f"{fact.words} {fact.subject} {fact.about}")):
        if found := tuple(fact for fact in facts if topic & stems(texts(fact))):
            return found
    kinds = asked_kinds(low)
    return tuple(fact for fact in facts if fact.kind in kinds)


def _topic_words(low: str) -> frozenset[str]:
    return stems(low) - stems(
        "forget delete remove erase cross strike scratch list notes everything mention "
        "earlier before again off down take taking"
        " many much long often time week told quick test check just file record bit "
        "part thing please remind first last number give gave start started begin began"
    )


def _nearest(
    low: str,
    topic: frozenset[str],
    facts: Sequence[CurrentFact],
    embed: Embed | None,
    *,
    strict: bool,
) -> list[CurrentFact]:
    """The facts whose words are nearest to a question, by shared words and by meaning."""
    texts = list(dict.fromkeys(_words(fact) for fact in facts))
    if not texts:
        return []
    shared = {text: len(topic & stems(text)) for text in texts}
    near = dict.fromkeys(texts, 0.0)
    if embed is not None:
        vectors = embed([low, *texts])
        near = {text: float(vectors[0] @ vector) for text, vector in zip(texts, vectors[1:], strict=True)}
    limit = _NEAR + (0.1 if strict else 0.0)
    good = [
        text
        for text in texts
        if (shared[text] and near[text] >= _NEAR_SHARED)
        or (shared[text] and embed is None)
        or near[text] >= limit
    ]
    good.sort(key=lambda text: -(near[text] + 0.25 * shared[text]))
    best = good[:_MOST]
    if best and len(best) > 1:
        top = near[best[0]] + 0.25 * shared[best[0]]
        best = [text for text in best if near[text] + 0.25 * shared[text] >= 0.7 * top]
    return [next(fact for fact in reversed(facts) if _words(fact) == text) for text in best]


def _words(fact: CurrentFact) -> str:
    return fact.words or fact.value


def told(fact: CurrentFact, now: datetime, *, timed: bool = True) -> str:
    """A fact as it was told: its value where the words alone would not say it, and a quotation."""
    words = re.sub(r"^(?:and|but|so|also|oh) ", "", fact.words.strip(" .,!")) or fact.value
    value = fact.value.strip(" .,!")
    said = plain(value) in plain(words) or stems(value) <= stems(words) or value in (*_NO_VALUE, NONE)
    if fact.kind == NOTED and ": " in value and value.endswith(words):
        value = f"to the question “{value.removesuffix(words).rstrip(': ')}?”"
    elif said or fact.kind == "severity":
        value = (
            value.replace("/", " out of ")
            if fact.kind == "severity" and "/" in value and "10" not in words
            else ""
        )
    elsewhere = fact.conversation_id is not None
    when = f" ({when_said(fact.said_at, now, elsewhere=elsewhere)})" if timed or elsewhere else ""
    if fact.kind in _NAMED_KINDS and fact.value not in (*_NO_VALUE, NONE) and re.search(r",|\band\b", words):
        return f'"{fact.value}"{when}'  # the words name others, too
    quoted = f'"{_cut(words)}"'
    return f"{_value(value)}: {quoted}{when}" if value else f"{quoted}{when}"


def _value(value: str) -> str:
    return value if value.startswith("to the question") else f'"{value}"'


def quote(text: str, at: datetime | None, now: datetime, *, elsewhere: bool = False) -> str:
    """A quotation with its time, and whether it was said in another conversation."""
    when = f" ({when_said(at, now, elsewhere=elsewhere)})" if at else ""
    return f'"{_cut(text.strip())}"{when}'


def when_said(at: datetime, now: datetime, *, elsewhere: bool) -> str:
    """When something was said, and whether in another conversation."""
    return f"{clock(at, now)}, in an earlier conversation" if elsewhere else clock(at, now)


def clock(at: datetime, now: datetime) -> str:
    """A time of the day, with the date if it was another day."""
    day = "" if at.date() == now.date() else f"{at.day} {at:%B}, "
    return f"{day}{at:%H:%M} UTC"


def _cut(text: str) -> str:
    text = " ".join(text.replace('"', "'").split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 1].rstrip()}…"


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
