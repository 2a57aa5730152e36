"""Answers questions about what was said by quoting the person with the time."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from agents.fact_kinds import recalled_kinds
from agents.local.dialogue import NEAREST, NOT_TOLD, TOLD, Talk, stems
from agents.local.reading.clauses import PERSON, plain, split
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED
from agents.local.search import Asked, Search, topic_words
from agents.ports import MemoryHit, Period, Recalled
from agents.values import NONE, NOT_SAID, NOT_SURE, UNSPECIFIED
from memory_blocks.facts.changes import CurrentFact, Decider

_MOST: Final = 3
_MOST_LISTED: Final = 12
_LONG: Final = 160
_FEW: Final = 4
_GAP: Final = 7  # letters between two clauses that are quoted together
_NAMED_KINDS: Final = frozenset(("medications", "other_medicines", "conditions", "allergies"))
_NO_VALUE: Final = (UNSPECIFIED, NOT_SURE, NOT_SAID)
_ENDS: Final = re.compile(r"[.!?]")
"""The end of a sentence. A quotation stays within one, because an answer is sent sentence by sentence."""

_WAS_KEPT: Final = re.compile(
    r"(?:(?:and|so|ok|wait)[, ]+)*(?:did|have) you (?:really |even )?(?:note|noted|keep|kept|write|wrote"
    r"|written|save|saved|get|got|put|make|made)(?: a note)?(?: of)? (?:that|it|this)(?: down| in)?"
    r"(?: now| then)?\W*$"
)
_LEAD: Final = re.compile(r"^(?:(?:and|but|so|also|oh|that) )+", re.IGNORECASE)


def answer(
    question: str,
    facts: Sequence[CurrentFact],
    recalled: Recalled,
    talk: Talk,
    search: Search,
    now: datetime,
) -> str:
    """The answer to a question about memory, in quotations, and which dates its time words were taken for.

    What this conversation has comes first, then what the search of long-term memory found, then what is
    nearest to the question; it says so.
    """
    period = recalled.period
    if period is not None:
        if not topic_words(re.sub(rf"\b{re.escape(plain(period.words))}\b", " ", plain(question))):
            here = [fact for fact in facts if fact.conversation_id is None and fact.kind != MENTIONED]
            written = [hit for hit in recalled.memories if hit.memory_type == "utterance"]
            return f"{_all_of([*here, *_quotable(written, now)], now)} {_dates_taken(period)}"
        facts = [fact for fact in facts if _is_of(period, fact, now)]
    said = _answer(question, facts, recalled.memories, talk, search, now)
    return said if period is None else f"{said} {_dates_taken(period)}"


def _answer(
    question: str,
    facts: Sequence[CurrentFact],
    hits: Iterable[MemoryHit],
    talk: Talk,
    search: Search,
    now: datetime,
) -> str:
    low = plain(question)
    if found := _by_position(low, facts, talk, now):
        return f"{TOLD}: {'; '.join(found)}."
    if _WAS_KEPT.match(low):
        return f"{NOT_TOLD} anything that I noted."
    if re.fullmatch(
        r"(?:and |so )?(?:what|which|when|who) (?:was|is|were) (?:it|that)(?: again)?", low.strip(" ?")
    ) and (last := re.findall(r'"([^"]+)"', talk.last_answer)):
        return f"{TOLD}: {'; '.join(quote(each, talk.said[-1].at, now) for each in last[:_MOST])}."
    asked = search.asked(question, talk, talk.said[-1].message if is_continued(low, talk) else "")
    if matches := search.find(asked, facts):
        quotes = _unique(
            tell(each.fact, now, name_only=each.is_kind, talk=talk, asked=asked) for each in matches
        )
        return f"{TOLD}: {'; '.join(quotes[:_MOST_LISTED])}."
    if asked.kinds[:1] == (CONCERN,) and (quotes := listed(facts, now)):
        return f"{TOLD}: {'; '.join(quotes)}."
    if matches := search.find(asked, _quotable(hits, now)):
        return f"{TOLD}: {'; '.join(_unique(tell(each.fact, now) for each in matches))}."
    if matches := search.nearest(asked, facts):
        nearest = sorted(matches, key=lambda each: each.fact.said_at)
        quotes = _unique(tell(each.fact, now, name_only=False, talk=talk, asked=asked) for each in nearest)
        return f"{NEAREST}: {'; '.join(quotes)}."
    return f"{NOT_TOLD} that."


def _all_of(facts: Iterable[CurrentFact], now: datetime) -> str:
    """What was told, in the order in which it was said, without what a longer quotation has, too."""
    unique = {plain(fact.words): fact for fact in sorted(facts, key=lambda fact: fact.said_at) if fact.words}
    quotes = [
        quote(fact.words, fact.said_at, now, elsewhere=fact.conversation_id is not None)
        for words, fact in unique.items()
        if not any(words != other and words in other for other in unique)
    ]
    return f"{TOLD}: {'; '.join(quotes[-_MOST_LISTED:])}." if quotes else f"{NOT_TOLD} that."


def is_continued(low: str, talk: Talk) -> bool:
    """Whether a question only goes on asking: `and yesterday?` after an answer from memory."""
    goes_on = re.match(r"(?:and|what about|how about)\b", low) is not None
    return talk.was_recalled and (goes_on or not topic_words(low)) and len(low.split()) <= _FEW


def asks_for_all(question: str) -> bool:
    """Whether a question about memory names nothing in particular."""
    low = plain(question)
    if re.search(
        r"\b(?:everything|all of it|about me|so far|back to me|it (?:back|to me|out)|them (?:back|out))\b",
        low,
    ):
        return not topic_words(low) - stems("everything please lost")
    return (
        not topic_words(low)
        and not recalled_kinds(low)
        and re.search(
            r"\b(?:told|tell|said|know|noted?|wrote|written|remember|got|have|saved|recall|keep)\b", low
        )
        is not None
        and not re.search(
            r"\b(?:when|who|where|which|why|how|ask|asked|first|last|just|he|she|it|that|value|values)\b", low
        )
    )


def listed(facts: Iterable[CurrentFact], now: datetime, most: int = _MOST_LISTED) -> tuple[str, ...]:
    """Everything that was told, in the order in which it was said. What has a kind goes before notes."""
    worth = [fact for fact in facts if fact.words and fact.kind != MENTIONED]
    if len({fact.words for fact in worth}) > most:
        named = [fact for fact in worth if fact.kind != NOTED]
        worth = [*named, *[fact for fact in worth if fact.kind == NOTED][-max(most - len(named), 0) :]]
    ordered = sorted(worth, key=lambda fact: fact.turn or 0)
    return _unique(tell(fact, now, timed=False) for fact in ordered)[:most]


def tell(
    fact: CurrentFact,
    now: datetime,
    *,
    timed: bool = True,
    name_only: bool = True,
    talk: Talk | None = None,
    asked: Asked | None = None,
) -> str:
    """A fact as it was told: its value where the words alone would not say it, and a quotation."""
    words = _LEAD.sub("", fact.words.strip(" .,!")) or fact.value
    value = fact.value.strip(" .,!")
    said = plain(value) in plain(words) or stems(value) <= stems(words) or value in (*_NO_VALUE, NONE)
    if said or fact.kind == "severity":
        value = (
            value.replace("/", " out of ")
            if fact.kind == "severity" and "/" in value and "10" not in words
            else ""
        )
    elsewhere = fact.conversation_id is not None
    when = f" ({when_said(fact.said_at, now, elsewhere=elsewhere)})" if timed or elsewhere else ""
    is_named = (
        fact.kind in _NAMED_KINDS
        and (timed or fact.kind != "conditions")
        and fact.value not in (*_NO_VALUE, NONE)
    )
    wants_words = asked is not None and asked.fits is not None and "dose" not in asked.kinds
    if name_only and is_named and re.search(r",|\band\b", words) and not wants_words:
        return f'"{fact.value}"{when}'  # the words name others, too
    quoted = f'"{_cut(_with_neighbours(fact, words, talk, asked))}"'
    if not value:
        return f"{quoted}{when}"
    return f'"{value}": {quoted}{when}'


def _with_neighbours(fact: CurrentFact, words: str, talk: Talk | None, asked: Asked | None) -> str:
    """The clause with the clauses beside it that still hold: the answer may stand in one of them."""
    if talk is None or asked is None:
        return words
    if fact.conversation_id is not None:
        return words
    message = next((said.message for said in talk.said if said.turn == fact.turn), "")
    beside = {each.words for each in talk.facts if each.turn == fact.turn and each.words in message}
    start = message.find(fact.words)
    if start < 0:
        return words
    end = start + len(fact.words)
    for other in sorted(beside, key=message.find):
        at = message.find(other)
        if 0 <= at - end <= _GAP and not _ENDS.search(message[end - 1 : at]):
            end = at + len(other)
    for other in sorted(beside, key=message.find, reverse=True):
        at = message.find(other)
        if 0 <= start - (at + len(other)) <= _GAP and not _ENDS.search(message[at + len(other) - 1 : start]):
            start = at
    return _LEAD.sub("", message[start:end].strip(" .,!")) if end - start <= _LONG else words


def quote(text: str, at: datetime | None, now: datetime, *, elsewhere: bool = False) -> str:
    """A quotation with its time, and whether it was said in another conversation."""
    when = f" ({when_said(at, now, elsewhere=elsewhere)})" if at else ""
    return f'"{_cut(text.strip())}"{when}'


def when_said(at: datetime, now: datetime, *, elsewhere: bool) -> str:
    """When something was said, and whether in another conversation."""
    return f"{clock(at, now)}, in an earlier conversation" if elsewhere else clock(at, now)


def clock(at: datetime, now: datetime) -> str:
    """A time of the day in the time zone of `now`, with the date if it was another day."""
    at = at.astimezone(now.tzinfo)
    day = "" if at.date() == now.date() else f"{at.day} {at:%B}, "
    return f"{day}{at:%H:%M}{' UTC' if now.tzinfo is UTC else ''}"


def _is_of(period: Period, fact: CurrentFact, now: datetime) -> bool:
    """Whether a fact was said in a period, or today with the same time words."""
    said_at = fact.said_at.astimezone(now.tzinfo)
    return period.covers(said_at) or (
        said_at.date() == now.date() and plain(period.words) in plain(fact.words)
    )


def _dates_taken(period: Period) -> str:
    """A sentence that says which dates a question's time words were taken for."""
    if period.event_at is not None:
        return f"I took {_date(period.event_at)} as the date in \u201c{period.words}\u201d."
    first, last = (_date(each) for each in (period.start, period.last) if each)
    return f"I looked only at {first}." if first == last else f"I looked only from {first} to {last}."


def _date(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _by_position(low: str, facts: Sequence[CurrentFact], talk: Talk, now: datetime) -> tuple[str, ...]:
    """What was asked, said first or said last, if the question is about that."""
    if re.search(
        r"\bi (?:\w+ )?ask(?:ed|ing)\b|\bdid i ask\b|\bmy (?:first |last |original )?question\b", low
    ):
        asked = [
            quote(clause.text, said.at, now)
            for said in talk.said
            for clause in split(said.message)
            if clause.asked
        ]
        first = re.search(r"\bfirst\b|\boriginal", low)
        return tuple(asked[:1] if first else asked[-1:] if "last" in low else asked[-_MOST:])
    if not facts:
        return ()
    if _WAS_KEPT.match(low):
        here = [fact for fact in facts if fact.conversation_id is None and fact.turn]
        latest = max((fact.turn or 0 for fact in here), default=0)
        last = [fact for fact in here if fact.turn == latest >= talk.number - 2]
        return _unique(tell(fact, now, name_only=False) for fact in last)
    if re.search(r"\b(?:first|very first) (?:thing|message)\b", low):
        return (tell(min(facts, key=lambda fact: fact.turn or 0), now),)
    if re.search(
        r"\blast (?:thing|message)\b|\bi just (?:tell|told|say|said)\b|\bdid i just (?:say|tell)\b", low
    ):
        return (tell(max(facts, key=lambda fact: fact.turn or 0), now),)
    return ()


def _quotable(hits: Iterable[MemoryHit], now: datetime) -> list[CurrentFact]:
    """The memories that may be quoted as what the person told."""
    return [_as_fact(hit, now) for hit in hits if _can_be_quoted(hit)]


def _can_be_quoted(hit: MemoryHit) -> bool:
    """Whether a memory has the person's own words, and tells something. A summary may hold answers, too."""
    tells = any(not clause.asked and len(clause.low.split()) > 1 for clause in split(hit.content))
    return hit.is_current and hit.memory_type != "summary" and tells


def _as_fact(hit: MemoryHit, now: datetime) -> CurrentFact:
    """A long-term memory as something that can be searched like a fact."""
    said_at = hit.said_at or now
    return CurrentFact(
        id=hit.memory_id,
        kind=NOTED,
        subject=hit.subject or PERSON,
        about="",
        value=hit.content,
        stable=False,
        true_when=hit.true_when,
        said_at=said_at,
        turn=None,
        message_id=None,
        conversation_id=hit.conversation_id if hit.is_elsewhere else None,
        words=hit.content,
        decided_by=Decider.LOCAL,
        confidence=1.0,
        last_said_at=said_at,
    )


def _cut(text: str) -> str:
    text = " ".join(text.replace('"', "'").split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 1].rstrip()}…"


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
