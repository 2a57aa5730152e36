"""What a message after a safety answer belongs to: to the danger, or to something else. Pure.

The one place that says so, twice: by the words alone, at once, and by what was understood of them.
"""

import re
from dataclasses import replace
from typing import Final, Protocol

from agents.leaning import asks_about_it, asks_of_something, refers, says_little, wishes
from agents.reading import asks_back
from agents.safety.guard import STILL, Verdict, staying
from agents.safety.retold import CLOSING
from agents.values import NEW_CONCERN, OUT_OF_SCOPE, UNCLEAR, Enrichment, Intent

AT_ONCE: Final = 3
"""The tier of danger now."""
CALLED: Final = "help.called"
"""The rule of a verdict after which the person said that help was called."""
MEANWHILE: Final = "meanwhile"
"""The rule of a verdict that answers what may be taken or done until help is there."""
_MARKS: Final = (CALLED, MEANWHILE, STILL)

_UNTIL_THEN: Final = re.compile(
    r"\b(?:take|taking|give|giving|drink|drinking|eat|eating|swallow|chew|sit|stand|walk|move|drive|wait|shower"
    r"|(?:lie|lay) (?:down|flat|him|her)|cpr|compressions|ambulance|hospital|emergency room|aspirin|tablets?"
    r"|pills?|painkillers?|medicines?|medication|antihistamines?|paracetamol|ibuprofen|insulin|inhaler"
    r"|epi ?pen|spray|have (?:some|something|a|an|any|water|food|tea))\b",
    re.IGNORECASE,
)
_SAYS_CALLED: Final = re.compile(
    r"\b(?:called|rang|phoned|dialled|dialed|calling|phoning|ringing|on the phone|on hold)\b"
    r"|\b(?:help|ambulance|paramedics?|crew|they|someone)\b.{0,12}\b(?:on (?:the|its|their) way|coming)\b",
    re.IGNORECASE,
)
_DENIES: Final = re.compile(
    r"\b(?:no|not|nobody|none|never|cannot|yet|should|shall|if|would|could)\b|n['\u2019]?t\b", re.IGNORECASE
)
_YES: Final = re.compile(
    r"\W*(?:yes|yeah|yep|yup|yea|(?:i|we|he|she|they|it) (?:have|has|did|is))\b", re.IGNORECASE
)
_ASKED_FOR_HELP: Final = re.compile(r"\b(?:has somebody called|is help on the way)\b", re.IGNORECASE)
_FEW: Final = 8


class Judge(Protocol):
    """Knows the words that leave danger as it was, and those that end it."""

    def is_over(self, text: str) -> bool:
        """Whether it says that danger is over, in good hands or never was."""
        ...

    def still(self, text: str, earlier: Verdict) -> Verdict:
        """What a message leaves of the danger that the answer before it spoke of."""
        ...


def at_once(guard: Judge, said: str, asked: str, earlier: Verdict) -> Verdict:
    """What stays of the danger of the answer before, by the words of a message alone."""
    stays = guard.still(said, earlier)
    if not stays.flagged and _of_help(said, asked, earlier) and not guard.is_over(said):
        stays = staying(earlier)
    return _marked(stays, said, asked) if STILL in stays.rule_ids else stays


def understood(said: str, enrichment: Enrichment, intent: Intent, earlier: Verdict) -> Verdict:
    """The danger of the last answer, which is not over, unless the message names something else.

    Something else is a question or a wish of its own, a new complaint, or more than a few words that
    somebody knows what to do with. Beside danger now, a few words of a complaint belong to that, also when
    help was called, which should hear of it; and what may be taken or done meanwhile is no other question.
    """
    if not earlier.flagged:
        return Verdict()
    if enrichment.phase != CLOSING and not asks_meanwhile(said, earlier):
        now = earlier.kind == "emergency" and earlier.tier == AT_ONCE
        asks = (asks_of_something(said) or wishes(said)) and not refers(said)
        tells = enrichment.trigger == NEW_CONCERN and not (now and says_little(said))
        routed = intent.intent not in (UNCLEAR, OUT_OF_SCOPE) and not says_little(said)
        if asks or tells or (routed and not asks_about_it(said)):
            return Verdict()
    return _marked(staying(earlier), said, "")


def asks_meanwhile(said: str, earlier: Verdict) -> bool:
    """Whether a message asks what one may take or do until help is there."""
    return earlier.kind == "emergency" and asks_back(said) and _UNTIL_THEN.search(said) is not None


def ends_briefly(said: str) -> bool:
    """Whether a message that says that danger is over says little else, which ears might mistake for it."""
    return len(said.split()) <= _FEW


def says_called(said: str, asked: str) -> bool:
    """Whether help was called: said so, or a yes to that question."""
    if _YES.match(said) and _ASKED_FOR_HELP.search(asked):
        return True
    return _SAYS_CALLED.search(said) is not None and not _DENIES.search(said) and not asks_back(said)


def _of_help(said: str, asked: str, earlier: Verdict) -> bool:
    """Whether a message says nothing but that help was called, or asks what to do until it is there."""
    called = earlier.kind == "emergency" and len(said.split()) <= _FEW and says_called(said, asked)
    return called or asks_meanwhile(said, earlier)


def _marked(stays: Verdict, said: str, asked: str) -> Verdict:
    """A verdict that stays, with what is known by now: that help was called, and what is asked meanwhile."""
    called = CALLED in stays.rule_ids or (stays.kind == "emergency" and says_called(said, asked))
    marks = {CALLED: called, MEANWHILE: asks_meanwhile(said, stays), STILL: True}
    rules = (rule for rule in stays.rule_ids if rule not in _MARKS)
    return replace(stays, rule_ids=(*rules, *(mark for mark, holds in marks.items() if holds)))
