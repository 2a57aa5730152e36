"""Finds danger in the enriched message that is not in the person's own words. Pure.

The enriched message repeats what earlier messages said, and often lacks a "no" or a "years ago". So a rule
that only the enriched message fires does not count if the person's own words retract it, or if it was known
before. A known danger counts again if the message says how it is now.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from agents.questions import last_question
from agents.safety.rules.guard import Reason
from agents.safety.verdict import Verdict
from agents.utterance import asks_back
from agents.values import Enrichment

CLOSING: Final = "closing"
"""The phase of a message that says goodbye, and so answers nothing."""
HOW_IT_IS: Final = frozenset(("severity", "progression"))
"""Kinds of answer that mean nothing without the question: "8" to "How bad is the chest pain?"."""


class Explainer(Protocol):
    """Explains which rules a text fires, and which are stopped. The guard implements it."""

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was stopped, with the words that caused it."""
        ...


@dataclass(frozen=True, slots=True)
class Before:
    """What was said before a message: the person's own words, their enriched messages, the last answer."""

    own: tuple[str, ...] = ()
    enriched: tuple[str, ...] = ()
    answer: str = ""


_WORD: Final = re.compile(r"[a-z]+")
_STEM: Final = 4
"""Number of equal first letters that make two words the same: breath and breathing."""
_LIGHT: Final = frozenset(
    ("a", "an", "feeling", "from", "had", "has", "have", "having", "is", "of", "the", "with")
)
_DENIES: Final = re.compile(
    r"\W*(?:no|none|not|nope|nah|never|nothing|zero|0)\b(?:\W+\w+){0,2}\W*", re.IGNORECASE
)
_LEANS: Final = re.compile(r"\W*(?:and |yes |but )?(?:it|this|that|they)\b", re.IGNORECASE)


def replies(said: str, enrichment: Enrichment) -> bool:
    """Whether a message answers a question about how something is, and so means nothing by itself."""
    if enrichment.phase == CLOSING or asks_back(said) or _DENIES.fullmatch(said):
        return False
    return not HOW_IT_IS.isdisjoint(enrichment.answers) or _LEANS.match(said) is not None


def added(guard: Explainer, said: str, enrichment: Enrichment, before: Before) -> Verdict:
    """The danger in the enriched message that the message itself does not have."""
    question, is_reply = last_question(before.answer) or "", replies(said, enrichment)
    own_words = {word[:_STEM] for word in _WORD.findall(said.lower())}
    heard = [
        reason
        for reason in guard.explain(enrichment.enriched_message)
        if not reason.stopped_by and _brings(reason, own_words)
    ]
    asked = guard.explain(question) if question else ()
    heard += asked if is_reply else ()
    if not heard:
        return Verdict()
    own, stopped = _rules(guard, (said,))
    earlier, stopped_earlier = _rules(guard, before.own)
    old = (stopped - own) | (stopped_earlier - earlier - own)
    if not is_reply:
        old |= earlier | _rules(guard, (enrichment.previous_context, *before.enriched))[0]
        old |= {reason.rule.id for reason in asked}
    verdict = Verdict()
    for reason in heard:
        if reason.rule.id not in old:
            verdict = verdict.raised_by(reason.verdict)
    return verdict


def _brings(reason: Reason, own_words: set[str]) -> bool:
    """Whether a rule matched more than the person's own words, which the rules have judged already."""
    words = (word for phrase in reason.heard for word in _WORD.findall(phrase.lower()) if word not in _LIGHT)
    return any(word[:_STEM] not in own_words for word in words)


def _rules(guard: Explainer, texts: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The ids of the rules that the texts fire, and of those that are stopped in them."""
    reasons = [reason for text in texts if text for reason in guard.explain(text)]
    return (
        frozenset(reason.rule.id for reason in reasons if not reason.stopped_by),
        frozenset(reason.rule.id for reason in reasons if reason.stopped_by),
    )
