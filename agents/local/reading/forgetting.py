"""Which facts the person means when they ask to forget something."""

import re
from collections.abc import Sequence
from typing import Final

from agents.fact_kinds import recalled_kinds
from agents.local.dialogue import Talk, stems
from agents.local.reading.clauses import plain
from agents.local.search import Search, topic_words
from memory_blocks.facts.changes import CurrentFact

_ALL: Final = re.compile(
    r"\b(?:everything|all of it|all my|my data|all that|all you)\b(?!.*\babout (?!me\b|myself\b))"
)
"""A request to forget everything, and not everything about something."""

_EVERYTHING_ABOUT: Final = re.compile(r"\b(?:everything|all|anything|whatever)\b.*\b(?:about|of|on|with)\b")


def is_for_everything(request: str) -> bool:
    """Whether a request is to forget everything."""
    return _ALL.search(plain(request)) is not None


def facts_meant(
    request: str, facts: Sequence[CurrentFact], talk: Talk, search: Search
) -> tuple[CurrentFact, ...]:
    """The facts that a request to forget means: all, those it names, those just quoted, or the last."""
    low = plain(request)
    topic = topic_words(low)
    if is_for_everything(request):
        return tuple(facts)
    if not topic and talk.was_recalled:
        quoted = plain(" ".join(re.findall(r'"([^"]+)"', talk.last_answer)))
        return tuple(fact for fact in facts if fact.words and plain(fact.words).strip(" .,!?") in quoted)
    if not topic:
        latest = max((fact.turn or 0 for fact in facts), default=0)
        return tuple(fact for fact in facts if fact.turn == latest) if latest >= talk.number - 1 else ()
    begins = {word[:4] for word in topic}
    named = [fact for fact in facts if begins & {word[:4] for word in stems(fact.value)}]
    told = [
        fact
        for fact in facts
        if begins & {word[:4] for word in stems(f"{fact.words} {fact.subject} {fact.about}")}
    ]
    abouts = {fact.value.casefold() for fact in named}
    if found := (
        [*named, *told]
        if _EVERYTHING_ABOUT.search(low)
        else [*named, *(fact for fact in told if fact.about.casefold() in abouts)] or told
    ):
        return tuple(fact for fact in facts if fact in found)
    if kinds := recalled_kinds(low):
        return tuple(fact for fact in facts if fact.kind in kinds)
    return tuple(each.fact for each in search.find(search.asked(request, talk), facts)[:1])
