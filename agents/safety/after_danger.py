"""Whether a message after a safety answer is still about the danger, or about something else. Pure.

`at_once` decides by the words alone, before the turn; `understood` decides by what the turn understood.
"""

import re
from dataclasses import replace
from typing import Final, Protocol

from agents.safety.guard import LEANS, NOT_CALLED
from agents.safety.retelling import CLOSING
from agents.safety.verdict import STILL, Verdict, staying
from agents.utterance import asks_about_it, asks_back, asks_of_something, refers, says_little, wishes
from agents.values import NEW_CONCERN, OUT_OF_SCOPE, UNCLEAR, Enrichment, Intent

AT_ONCE: Final = 3
"""The tier of an immediate danger."""
CALLED: Final = "help.called"
"""Marks a verdict if the person has said that help was called."""
MEANWHILE: Final = "meanwhile"
"""Marks a verdict if the person asks what they may take or do until help arrives."""
_MARKS: Final = (CALLED, MEANWHILE, STILL)

_UNTIL_THEN: Final = re.compile(
    r"\b(?:take|taking|give|giving|drink|drinking|eat|eating|swallow|chew|sit|stand|walk|move|drive|wait|shower"
    r"|(?:lie|lay) (?:down|flat|him|her)|cpr|compressions|ambulance|hospital|emergency room|aspirin|tablets?"
    r"|pills?|painkillers?|medicines?|medication|antihistamines?|paracetamol|ibuprofen|insulin|inhaler"
    r"|epi ?pen|spray|paramedics?|crew|arrive|(?:help|they) (?:be|come|get)"
    r"|have (?:some|something|a|an|any|water|food|tea))\b",
    re.IGNORECASE,
)
_SERVICE: Final = (
    r"(?:the |an |your |for )*"
    r"(?:999|911|112|000|emergency|ambulances?|paramedics?|medics|police|fire brigade|help|them|operator"
    r"|(?:call )?handler|dispatcher|(?:emergency |local )?number)\b"
)
_SAYS_CALLED: Final = re.compile(
    r"\b(?:called|calling|rang|ringing|phoned|phoning|dial+ed|dial+ing)\b"
    rf"(?: (?:up|now|already|just now))*(?:\W*$|[.,;!]| and\b| (?:to )?{_SERVICE})"
    rf"|\bon (?:the (?:phone|line)|hold)(?: now)?(?:\W*$| (?:to|with) {_SERVICE})"
    rf"|\b(?:got through|spoke|speaking|talking|talked) (?:to|with) {_SERVICE}"
    r"|(?:\b(?:help|ambulance|paramedics?|medics|crew|police|they|it|its)\b.{0,12}|^\W*)"
    r"\b(?:on (?:the|its|their) way|coming)\b",
    re.IGNORECASE,
)
_DENIES: Final = re.compile(
    r"\b(?:no|not|nobody|none|never|cannot|yet|should|shall|if|would|could|tried|trying|thinking|before|instead"
    r"|without|afraid|scared|busy|engaged|hung|cut off|voicemail|unable|failed|yesterday|tomorrow|later"
    r"|last (?:night|week|month|year|time))\b"
    r"|\b(?:do|does|did|is|are|was|were|have|has|had|wo|ca|could|would|should|ai)n['\u2019]?t\b",
    re.IGNORECASE,
)
_OF_CALLING: Final = re.compile(
    r"\b(?:call\w*|phon\w+|r[aiu]ng|ringing|dial\w*|answer\w*|pick\w*|come|comes|coming|came|way|through|line"
    r"|signal|999|911|112|000|ambulance|help|hung|cut off|busy|engaged)\b",
    re.IGNORECASE,
)
_SOMEBODY: Final = r"(?:i|we|he|she|they|someone|somebody|my \w+)"
_YES: Final = re.compile(
    r"\W*(?:(?:oh|ok(?:ay)?|well|um+|er+|god)\W+)*"
    rf"(?:yes|yeah|yep|yup|yea|of course|already|{_SOMEBODY} (?:have|has|did)|i['\u2019]?ve"
    r"|(?:it|help) is|they are)"
    rf"(?:\W+(?:yes|yeah|{_SOMEBODY}|have|has|did|is|are|it|just|now|already|of course|done|called|ago"
    r"|(?:\d+|a few|a|one|two|five|ten) (?:minutes?|mins?|seconds?)|thanks|thank you|an ambulance"
    r"|999|911|112|000))*\W*",
    re.IGNORECASE,
)
_ASKED_FOR_HELP: Final = re.compile(r"\b(?:has somebody called|is help on the way)\b", re.IGNORECASE)
_FEW: Final = 8


class Judge(Protocol):
    """Judges whether a danger continues. The guard implements it."""

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether a text says that the previous danger is over, cared for or never existed, and no more."""
        ...

    def still(self, text: str, earlier: Verdict) -> Verdict:
        """The danger of the previous answer that still holds after this message."""
        ...


def at_once(guard: Judge, said: str, asked: str, earlier: Verdict, heard: Verdict) -> Verdict:
    """The verdict on a message by its words alone, with the previous danger if that still holds."""
    leans = LEANS.issuperset(heard.rule_ids)
    if leans and guard.is_over(said, earlier):
        return Verdict()
    stays = guard.still(said, earlier)
    if not stays.flagged and ((leans and heard.flagged) or _of_help(said, asked, earlier)):
        stays = staying(earlier)
    both = heard.raised_by(stays)
    return _marked(both, said, asked, earlier, heard) if STILL in stays.rule_ids else both


def understood(said: str, enrichment: Enrichment, intent: Intent, earlier: Verdict) -> Verdict:
    """The danger of the last answer, which still holds unless the message is about something else.

    Something else is a question or a request with its own topic, a new complaint, or more than a few words
    with a known intent. During an immediate danger, a complaint in a few words belongs to the danger, also
    after help was called. So does the question what to take or do until help arrives.
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
    return _marked(staying(earlier), said, "", earlier, Verdict())


def asks_meanwhile(said: str, earlier: Verdict) -> bool:
    """Whether a message asks what to take or do until help arrives."""
    return earlier.kind == "emergency" and asks_back(said) and _UNTIL_THEN.search(said) is not None


def is_same(danger: Verdict, earlier: Verdict) -> bool:
    """Whether a danger was carried over from an earlier one, or is of the same family of rules."""
    families = [{rule.split(".")[0] for rule in each.rule_ids} for each in (danger, earlier)]
    return STILL in danger.rule_ids or not families[0].isdisjoint(families[1])


def says_called(said: str, asked: str) -> bool:
    """Whether a message says that help was called, or only says yes to that question."""
    if _DENIES.search(said) or asks_back(said):
        return False
    if _YES.fullmatch(said) and _ASKED_FOR_HELP.search(asked):
        return True
    return _SAYS_CALLED.search(said) is not None


def _of_help(said: str, asked: str, earlier: Verdict) -> bool:
    """Whether a message says only that help was called, or asks what to do until it arrives."""
    called = earlier.kind == "emergency" and len(said.split()) <= _FEW and says_called(said, asked)
    return called or asks_meanwhile(said, earlier)


def _marked(both: Verdict, said: str, asked: str, earlier: Verdict, heard: Verdict) -> Verdict:
    """The verdict with its marks: help was called, the person asks what to do, the danger was carried over.

    After a new danger, an earlier call for help no longer counts, since it may have been about the other one.
    """
    is_new = heard.tier > earlier.tier or not LEANS.union(earlier.rule_ids).issuperset(heard.rule_ids)
    is_denied = _DENIES.search(said) is not None and _OF_CALLING.search(said) is not None
    known = CALLED in earlier.rule_ids and not (is_new or is_denied or NOT_CALLED in heard.rule_ids)
    called = both.kind == "emergency" and (known or says_called(said, asked))
    marks = {CALLED: called, MEANWHILE: asks_meanwhile(said, earlier), STILL: not is_new}
    rules = (rule for rule in both.rule_ids if rule not in _MARKS)
    return replace(both, rule_ids=(*rules, *(mark for mark, holds in marks.items() if holds)))
