"""The state of a conversation, read from its turns and facts: its concern, its open question, its people."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from agents.fact_kinds import BY_NAME
from agents.local.reading.clauses import NOBODY, PERSON, last_other, split
from agents.local.reading.facts import CONCERN
from agents.questions import Question, questions
from agents.utterance import word_set
from agents.values import COORDINATOR, EMERGENCY, LISTS, OUT_OF_SCOPE, UNCLEAR, Offer
from memory_blocks.facts.changes import CurrentFact

REMOVE: Final = "Shall I remove this from my notes"
CHANGE: Final = "Shall I change this in my notes"
"""How the questions begin that are asked before something is forgotten or corrected."""

TOLD: Final = "You told me"
NOT_TOLD: Final = "You have not told me"
NEAREST: Final = "I am not sure that you told me. The nearest I find is"
"""How answers from memory begin."""

_SAFETY: Final = re.compile(r"\b(?:emergency number|crisis line|harming yourself)\b")
"""Words of an answer whose question is about danger. What somebody replies to it is no fact."""

_REFUSES: Final = re.compile(
    r"\W*(?:(?:no|nope|nah|oh|wait|actually|please|thanks)\W+)*(?:(?:please )?(?:keep|leave|don't|do not|not"
    r"|never mind|nevermind)\b(?:\W+(?:it|that|this|them|remove|delete|forget|there|in|yet|please))*)\W*"
)
_WORD: Final = re.compile(r"[a-z]{3,}|\b(?:gp|bp|tv|op|ex)\b|\d+")
_LIGHT: Final = word_set(
    "the and for but you your are was were have has had with that this they them from about "
    "again back what when which how who where did say said tell told mention mentioned "
    "remember know note noted please can could would now just really very some any been its "
    "his her she him our out not too also then than there here get got going does don doesn "
    "want like need more other one thing things bit still into over because will should being "
    "ask asked all let talk"
)


@dataclass(frozen=True, slots=True)
class Said:
    """An earlier turn: what the person wrote, and what was answered by whom."""

    turn: int
    message: str
    answer: str = ""
    at: datetime | None = None
    intent: str = UNCLEAR
    agent: str = COORDINATOR


@dataclass(frozen=True)
class Talk:
    """A conversation before its next message. `opening` was said before the first turn.

    `offer` is what the last answer offered to change in the notes.
    """

    said: tuple[Said, ...] = ()
    facts: tuple[CurrentFact, ...] = ()
    number: int = 1
    opening: str = ""
    offer: Offer | None = None

    @property
    def last_answer(self) -> str:
        """What was said to the person last."""
        return self.said[-1].answer if self.said else self.opening

    @cached_property
    def question(self) -> Question | None:
        """The question that is open: the last one of the last answer."""
        return self.all_questions[-1] if self.all_questions else None

    @cached_property
    def all_questions(self) -> tuple[Question, ...]:
        """All questions of the last answer, without those about danger and about changes of the notes."""
        last = self.last_answer
        return () if self.offer or _SAFETY.search(last) else questions(last)

    @property
    def interrupted(self) -> Question | None:
        """The question that was open when the person asked to change the notes."""
        found = questions(self.said[-2].answer) if self.offer and len(self.said) > 1 else ()
        return found[-1] if found else None

    @property
    def was_recalled(self) -> bool:
        """Whether the last answer was one from memory."""
        return any(each in self.last_answer for each in (TOLD, NOT_TOLD, NEAREST))

    def refuses_offer(self, low: str) -> bool:
        """Whether a message only says no to the offer to change the notes."""
        return self.offer is not None and _REFUSES.fullmatch(low) is not None

    @cached_property
    def concerns(self) -> tuple[CurrentFact, ...]:
        """The complaints and wishes that were named, the one spoken of last at the end."""
        named = [fact for fact in self.facts if fact.kind == CONCERN]
        return tuple(sorted(named, key=lambda fact: fact.last_said_at))

    @property
    def concern(self) -> CurrentFact | None:
        """What the conversation is about now. A question that names an earlier concern is about that one."""
        if self.question and len(self.concerns) > 1:
            asked = stems(self.question.core)
            for fact in reversed(self.concerns):
                if asked & stems(fact.value):
                    return fact
        return self.concerns[-1] if self.concerns else None

    @property
    def about(self) -> str:
        """The name under which facts of the current concern are kept."""
        return self.concern.value[:120] if self.concern else ""

    @property
    def whom(self) -> str:
        """Whom the open question is about."""
        asked = self.question.core if self.question else ""
        if re.search(r"\b(?:he|she|his|her|him)\b", asked) and self.other:
            return self.other
        return self.concern.subject if self.concern else PERSON

    @property
    def subject(self) -> str:
        """Whom a message is about that names nobody: as the open question, else the writer.

        If others were spoken of, nobody can say.
        """
        if self.question is not None:
            return self.whom
        return NOBODY if self._others else PERSON

    @cached_property
    def _others(self) -> tuple[str, ...]:
        """The people other than the writer who were spoken of, the last one at the end."""
        named = [fact.subject for fact in self.facts if fact.subject not in (PERSON, "he", "she")]
        for turn in self.said[-8:]:
            found = last_other(split(turn.message))
            if found and found not in ("he", "she"):
                named.append(found)
        return tuple(dict.fromkeys(reversed(named)))[::-1]

    @property
    def other(self) -> str:
        """The person other than the writer who was spoken of last."""
        return self._others[-1] if self._others else NOBODY

    @property
    def only_other(self) -> str:
        """The person whom `he` or `she` surely means: the only one who was spoken of."""
        return self.other if len(self._others) == 1 else NOBODY

    @cached_property
    def known(self) -> dict[str, str]:
        """What is known for the current concern: the lasting facts of its person, and its own."""
        return known_for(self.facts, self.concern)

    @cached_property
    def asked(self) -> Counter[str]:
        """How often each question was asked, by its words."""
        return Counter(each.core for turn in self.said for each in questions(turn.answer))

    @property
    def running(self) -> str | None:
        """The intent of the conversation, apart from emergencies, asides and unclear messages."""
        for turn in reversed(self.said):
            if turn.intent not in (EMERGENCY, UNCLEAR, OUT_OF_SCOPE):
                return turn.intent
        return None


def known_for(facts: tuple[CurrentFact, ...], concern: CurrentFact | None) -> dict[str, str]:
    """The values that hold for a concern: the lasting facts of its person, and the facts about it."""
    whom = concern.subject if concern else PERSON
    about = concern.value[:120] if concern else ""
    values: dict[str, str] = {}
    for fact in facts:
        row = BY_NAME.get(fact.kind)
        lasting = fact.stable or (row is not None and row.stable)
        if fact.subject != whom or not (lasting or fact.about in ("", about) or fact.kind == CONCERN):
            continue
        several = fact.kind in LISTS and fact.kind in values
        values[fact.kind] = f"{values[fact.kind]}, {fact.value}" if several else fact.value
    if concern:
        values[CONCERN] = concern.value
        if whom != PERSON:
            values["about_whom"] = whom
    return values


def stems(text: str) -> frozenset[str]:
    """The first letters of the words that carry meaning."""
    words: Mapping[str, None] = dict.fromkeys(_WORD.findall(text.lower()))
    return frozenset(word[:5].rstrip("s") for word in words if word not in _LIGHT)


def named_topic(text: str) -> str:
    """What somebody asks to talk about: `the knee` in `back to the knee`; empty if it is not named."""
    found = re.search(
        r"\b(?:back to|talk about|about|discuss|return(?:ing)? to|regarding|as for|with"
        r"|on to|instead|here for|ask about|start with|do|now|there's)\s+(?P<what>(?:my"
        r"|the|our|his|her|this|that|what|some|a)?\s?[\w' -]{3,80})",
        text,
        re.IGNORECASE,
    )
    what = re.sub(
        r"\b(?:again|instead|now|please|for a (?:moment|minute|sec\w*)|then"
        r"|if that's ok\w*|something else|that)\b.*$",
        "",
        found["what"] if found else "",
    ).strip(" ,.?!")
    return what if len(what) > 2 else ""
