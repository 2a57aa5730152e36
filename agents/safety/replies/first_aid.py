"""First aid: the fixed, sourced text for a question that somebody asks in an emergency."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRules
from agents.utterance import asks_back

PREFIX: Final = "first_aid."
"""Begins the rule of a verdict that a first-aid text answers; the topic's id follows."""

_LIGHT: Final = frozenset((
    "what", "when", "how", "who", "why", "now", "next", "then", "else", "ok", "okay", "yes", "no", "please",
    "help", "quick", "hurry", "god", "oh", "and", "so", "but", "or", "should", "shall", "can", "could",
    "must", "may", "do", "does", "did", "is", "are", "am", "be", "i", "we", "you", "he", "she", "they", "it",
    "this", "that", "there", "me", "us", "him", "her", "them", "my", "his", "the", "a", "an", "to", "for",
    "with", "about", "until", "till", "before", "while", "come", "comes", "coming", "arrive", "here", "get",
    "anything", "something", "nothing", "all", "at", "once", "first", "meanwhile", "wait", "waiting",
    "supposed", "have", "has", "need", "know", "dont", "im", "ive", "going", "go", "ambulance", "just",
))  # fmt: skip
"""Words of a question that is about nothing but the danger itself."""
_ASKS: Final = re.compile(
    r"\b(?:what|how|when|where)(?: \w+)? (?:do|should|shall|can|must) (?:i|we)\b"
    r"|\b(?:should|shall|can|must|may) (?:i|we)\b|\bwhat (?:now|next)\b|\bnow what\b",
    re.IGNORECASE,
)
_ASKS_LEAVE: Final = re.compile(
    r"\b(?:should|shall|can|could|may|must|do|how (?:do|many|much|should|can))"
    r" (?:\w+ )?(?:i|we|he|she|they)\b"
    r"(?!\W+(?:be )?(?:worr|concerned|scared))",
    re.IGNORECASE,
)


class Topic(BaseModel):
    """One text: the words that ask for it, the dangers it belongs to, and what is said."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    asks: Annotated[tuple[str, ...], Field(min_length=1)]
    """Words that name the topic, in any danger."""
    asks_within: tuple[str, ...] = ()
    """Words that ask for it only in a danger of the topic, since they fit others, too."""
    rules: tuple[str, ...]
    source: Annotated[str, Field(min_length=1)]
    first: Annotated[str, Field(min_length=1)]
    rest: Annotated[tuple[str, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class FirstAid:
    """The topics, in the order in which they are tried."""

    topics: tuple[Topic, ...]

    def topic_for(self, question: str, rule_ids: Sequence[str], *, in_emergency: bool = True) -> Topic | None:
        """The topic that a question asks about, after a danger that these rules found.

        A topic of that danger which the question names comes first, the one that it names with most words;
        then, in an emergency, any that it names.
        A question that is about nothing else ("what should I do?") gets the topic of the danger.
        """
        words = _spaced(question)
        of_danger = self._of_danger(rule_ids)
        both = [topic for topic in of_danger if _names(words, (*topic.asks, *topic.asks_within))]
        if both:
            return max(both, key=lambda topic: _names(words, (*topic.asks, *topic.asks_within)))
        named = [topic for topic in self.topics if _names(words, topic.asks)] if in_emergency else []
        rest = of_danger if _LIGHT.issuperset(words.split()) else ()
        return next(iter((*named, *rest)), None)

    def topic_at_once(self, message: str, rule_ids: Sequence[str]) -> Topic | None:
        """The topic of the danger that these rules found in a message that also asks what to do."""
        return next(iter(self._of_danger(rule_ids)), None) if asks(message) else None

    def topic_of_help(self, question: str) -> Topic | None:
        """The topic of some danger for whose help a question asks leave: "should I use my EpiPen?"."""
        if _ASKS_LEAVE.search(question) is None:
            return None
        words = _spaced(question)
        return next((topic for topic in self.topics if topic.rules and _names(words, topic.asks) > 0), None)

    def is_named(self, text: str) -> bool:
        """Whether a text names a topic."""
        return any(_names(_spaced(text), topic.asks) > 0 for topic in self.topics)

    def is_of_danger(self, text: str, rule_ids: Sequence[str]) -> bool:
        """Whether a text names a topic of the danger that these rules found."""
        words = _spaced(text)
        of_danger = self._of_danger(rule_ids)
        return any(_names(words, (*topic.asks, *topic.asks_within)) > 0 for topic in of_danger)

    def _of_danger(self, rule_ids: Sequence[str]) -> list[Topic]:
        """The topics of the dangers that these rules found, or that a text was sent about, in their order."""
        last = self.by_rule(rule_ids)
        rules = (*rule_ids, *last.rules) if last else rule_ids
        return [
            topic
            for topic in self.topics
            if topic.rules and any(rule.startswith(topic.rules) for rule in rules)
        ]

    def by_rule(self, rule_ids: Sequence[str]) -> Topic | None:
        """The topic that a verdict is marked with."""
        ids = {rule.removeprefix(PREFIX) for rule in rule_ids if rule.startswith(PREFIX)}
        return next((topic for topic in self.topics if topic.id in ids), None)


def asks(text: str) -> bool:
    """Whether a message asks something, be it only in its last words: "ok I used it, what now"."""
    return asks_back(text) or _ASKS.search(text) is not None


def _spaced(text: str) -> str:
    """The words of a text between spaces."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower().replace(chr(39), '')))} "


def _names(words: str, phrases: Sequence[str]) -> int:
    """The length of the longest of these phrases in a question, given as words between spaces."""
    return max((len(phrase) for phrase in map(_spaced, phrases) if phrase in words), default=0)


def load(folder: Path) -> FirstAid:
    """The topics of `first_aid.toml`. A mistake in it is refused by its place."""
    try:
        topics = tomllib.loads((folder / "first_aid.toml").read_text(encoding="utf-8"))["topic"]
        found = tuple(Topic.model_validate(topic) for topic in topics)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRules("first_aid.toml", ".".join(map(str, first["loc"])), first["msg"]) from None
    except (OSError, KeyError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRules("first_aid.toml", "$", "cannot be read as TOML") from None
    if len({topic.id for topic in found}) < len(found):
        raise BadRules("first_aid.toml", "id", "is there twice")
    return FirstAid(found)
