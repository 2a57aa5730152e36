"""Widens a query that found nothing, or whose words are unknown: misspelt words become known ones. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from orchestrator.recall.query.question import ReadQuery

LIKE: Final = 0.8
_SHORTEST: Final = 4


def needs_repair(unknown: int, terms: int, found: int) -> bool:
    """Whether a second search may help: nothing was found, or half of the query's words are unknown."""
    return terms > 0 and unknown > 0 and (found == 0 or 2 * unknown >= terms)


def widened(question: ReadQuery, unknown: Iterable[str], vocabulary: Iterable[str]) -> ReadQuery | None:
    """The query with unknown words replaced by similar known ones; None if there are none."""
    by_letter: dict[str, list[str]] = {}
    wanted = {term[0] for term in unknown if len(term) >= _SHORTEST}
    for word in vocabulary:
        if word[0] in wanted:
            by_letter.setdefault(word[0], []).append(word)
    replaced: dict[str, str] = {}
    for term in unknown:
        near = [
            word
            for word in by_letter.get(term[0], ())
            if len(term) >= _SHORTEST and abs(len(word) - len(term)) <= 2
        ]
        if match := get_close_matches(term, near, n=1, cutoff=LIKE):
            replaced[term] = match[0]
    if not replaced:
        return None
    terms = tuple(dict.fromkeys(replaced.get(term, term) for term in question.terms))
    return replace(question, terms=terms)
