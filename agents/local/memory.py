"""Answers questions about what was said, from the facts and by quoting the person with the time."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agents.local.clauses import PERSON, plain, subject_of
from agents.local.dialogue import stems
from agents.local.facts import CONCERN, NOTED
from agents.ports import MemoryHit, Vectors
from agents.values import NONE, NOT_SAID, NOT_SURE, UNSPECIFIED
from memory_blocks.facts import CurrentFact

_MOST: Final = 3
_MOST_LISTED: Final = 12
_NEAR: Final = 0.38  # how near a quotation must be to a question with which it shares no word
_NEAR_SHARED: Final = 0.22
_LONG: Final = 160

ASKED_KINDS: Final = tuple(
    (kinds, re.compile(pattern))
    for kinds, pattern in (
        (
            ("dose",),
            r"\bdos(?:e|age)\b|\bhow (?:much|many) (?:mg|\w+ )?(?:do|did) i (?:take|say i take)\b|\bstrength\b",
        ),
        (("allergies",), r"\ballerg"),
        (
            ("medications", "other_medicines"),
            r"\b(?:tablets?|medic\w+|meds|pills?|drugs?|prescri\w+)\b|\b(?:i|she|he|they) (?:say i |said i |am |'m )?(?:tak(?:e|es|ing)|on)\b|\bdo i take\b|\bam i (?:on|taking)\b",
        ),
        (("age",), r"\bhow old\b|\bage\b"),
        (
            ("severity",),
            r"\b(?:rate|rated|rating|scale|severe|severity|out of (?:10|ten)|pain (?:score|level|number)|number (?:did|i)|how bad)\b",
        ),
        (
            ("onset", "duration"),
            r"\b(?:when|since when|how long)\b.*\b(?:start\w*|beg[ai]n|had|has|have|been|going on|first)\b|\bhow long\b",
        ),
        (("temperature",), r"\btemp(?:erature)?\b|\bfever\b"),
        (
            ("readings",),
            r"\bblood (?:pressure|sugar)\b|\bsugar\b|\breadings?\b|\bhba1c\b|\bpulse\b|\bpeak flow\b|\bcholesterol\b",
        ),
        (("measures",), r"\bweigh\w*\b|\btall\b|\bheight\b|\bbmi\b"),
        (("pregnancy",), r"\bpregnan\w*\b|\bhow (?:far along|many weeks)\b"),
        (("conditions",), r"\bconditions?\b|\bdiagnos\w+|\billness\w*\b"),
        (("name",), r"\b(?:my|your) name\b|\bcalled\b|\bwho am i\b"),
        (
            ("location",),
            r"\bwhere\b.*\b(?:hurt|pain|it)\b|\bwhich (?:side|knee|leg|arm|ear|eye|foot|hand|hip|shoulder|wrist|ankle|elbow|one)\b",
        ),
        (("frequency",), r"\bhow often\b"),
        (("sleep_hours",), r"\bhours\b.*\bsleep\b|\bsleep\b.*\bhours\b"),
    )
)
_SYMPTOMS: Final = re.compile(r"\bsymptoms?\b|\bcomplaints?\b|\bwhat(?:'s| is) wrong with me\b")
_NO_VALUE: Final = (UNSPECIFIED, NOT_SURE, NOT_SAID)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question about memory. `quotes` are empty if nothing was said about it."""

    quotes: tuple[str, ...]
    polar: bool = False


Near: type = Callable[[Sequence[str]], Vectors]


def answer(
    question: str,
    facts: Sequence[CurrentFact],
    hits: Iterable[MemoryHit],
    embed: "Callable[[Sequence[str]], Vectors] | None",
    now: datetime,
    asked: Sequence[tuple[str, datetime | None]] = (),
) -> Answer:
    """What was said about a question: by the kind of fact that it asks for, else by its words and meaning."""
    low = plain(question)
    polar = (
        re.match(r"(?:(?:and|so|but|ok|well)[, ]+)*(?:did|have|do|does|is|are|was|has|am|can)\b", low)
        is not None
    )
    who = subject_of(low)
    if who not in (PERSON, "") and not re.match(r"(?:he|she)$", who):
        mine = [fact for fact in facts if _same_person(fact.subject, who) or who in plain(fact.words)]
    else:
        mine = [fact for fact in facts if fact.subject == PERSON] if who == PERSON else list(facts)
    if re.search(r"\bi ask\w*\b|\bdid i ask\b", low) and asked:
        return Answer(tuple(quote(text, at, now) for text, at in asked[-_MOST:]), polar)
    if re.search(r"\b(?:first|very first) (?:thing|message)\b", low) and facts:
        first = min(facts, key=lambda fact: fact.turn or 0)
        return Answer((told(first, now),), polar)
    if re.search(r"\blast (?:thing|message)\b|\bjust (?:tell|told|say|said)\b", low) and facts:
        return Answer((told(max(facts, key=lambda fact: fact.turn or 0), now),), polar)
    kinds = next((kinds for kinds, pattern in ASKED_KINDS if pattern.search(low)), ())
    named = [fact for fact in mine if fact.kind in kinds]
    topic = _topic_words(low)
    if _SYMPTOMS.search(low):
        named = [
            fact
            for fact in mine
            if fact.kind in (CONCERN, "associated_symptoms", "quality", "location", "severity")
        ]
    if len(named) > 1 and topic:
        closer = [fact for fact in named if topic & stems(f"{fact.value} {fact.words} {fact.about}")]
        named = closer or named
    if named:
        return Answer(_unique(told(fact, now) for fact in named[-_MOST_LISTED:]), polar)
    found = _nearest(low, topic, mine, embed, strict=bool(kinds))
    if found:
        return Answer(_unique(told(fact, now) for fact in found), polar)
    hits = [hit for hit in hits if hit.is_current and topic & stems(hit.content)]
    return Answer(_unique(quote(hit.content, hit.said_at, now) for hit in hits[:_MOST]), polar)


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
    ordered = sorted(facts, key=lambda fact: fact.turn or 0)
    return _unique(told(fact, now, timed=False) for fact in ordered)[:most]


def matching(
    question: str,
    facts: Sequence[CurrentFact],
    embed: "Callable[[Sequence[str]], Vectors] | None",
    last_turn: int,
) -> tuple[CurrentFact, ...]:
    """The facts that a request to forget means."""
    low = plain(question)
    if re.search(r"\b(?:everything|all of it|all my|my data|all that|all you)\b", low):
        return tuple(facts)
    if re.fullmatch(
        r"(?:(?:please|pls|can you|could you|actually|just|ok|no|sorry|oh)[, ]+)*(?:forget|delete|scratch|strike|remove|erase|cross out|don't keep|don't save|don't remember|cross) (?:that|it|this)(?: out)?(?: please| again| one)?(?: from .*)?",
        low,
    ):
        return tuple(fact for fact in facts if fact.turn == last_turn)
    topic = _topic_words(low)
    by_words = tuple(fact for fact in facts if topic & stems(f"{fact.value} {fact.words} {fact.subject}"))
    if by_words:
        return by_words
    kinds = next((kinds for kinds, pattern in ASKED_KINDS if pattern.search(low)), ())
    return tuple(fact for fact in facts if fact.kind in kinds)


def _topic_words(low: str) -> frozenset[str]:
    return stems(low) - stems(
        "forget delete remove erase cross strike scratch list notes everything mention earlier before again off down take taking"
        " many much long often time week told quick test check just file record bit part thing please remind first last number give gave"
    )


def _nearest(
    low: str,
    topic: frozenset[str],
    facts: Sequence[CurrentFact],
    embed: "Callable[[Sequence[str]], Vectors] | None",
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
    words = fact.words.strip(" .") or fact.value
    value = (
        ""
        if plain(fact.value) in plain(words) or fact.value in _NO_VALUE or fact.value == NONE
        else fact.value
    )
    if fact.kind == NOTED and ": " in fact.value and fact.value.endswith(fact.words):
        value = fact.value.removesuffix(fact.words).rstrip(": ")
        value = f"to “{value}?”"
    elif value.endswith("/10"):
        value = ""
    if fact.kind == "severity" and "/" in fact.value and len(words) < 12:
        value = fact.value.replace("/", " out of ")
    quoted = f'"{_cut(words)}"'
    when = f" ({clock(fact.said_at, now)})" if timed else ""
    return f"{value}: {quoted}{when}" if value else f"{quoted}{when}"


def quote(text: str, at: datetime | None, now: datetime) -> str:
    """A quotation with its time."""
    when = f" ({clock(at, now)})" if at else ""
    return f'"{_cut(text.strip())}"{when}'


def clock(at: datetime, now: datetime) -> str:
    """A time of the day, with the date if it was another day."""
    day = "" if at.date() == now.date() else f"{at.day} {at:%B}, "
    return f"{day}{at:%H:%M} UTC"


def _cut(text: str) -> str:
    text = " ".join(text.replace('"', "'").split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 1].rstrip()}…"


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
