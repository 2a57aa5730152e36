"""What a message after a safety answer means for the danger. Pure.

After certain danger, a message may say that it is over, that help is coming, or bring up something else.
After possible danger, it may answer the question that was asked.
`means` reads the message. `at_once` decides by the words alone, before the turn; `understood` decides by what
the turn understood.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol, TypeAlias

from agents.safety import first_aid
from agents.safety.guard import LEANS, NOT_CALLED, Reason
from agents.safety.retelling import CLOSING
from agents.safety.verdict import MEANING, QUIET, STILL, Verdict, staying
from agents.utterance import asks_about_it, asks_back, asks_of_something, refers, says_little, wishes
from agents.values import NEW_CONCERN, OUT_OF_SCOPE, UNCLEAR, Enrichment, Intent

Meaning: TypeAlias = Literal["yes", "no", "unsure", "mistake", "over", "light", "other"]
"""What a message says about the danger before it.

After the question about a possible danger: `yes`, `no` or `unsure`. After a certain danger: `mistake` if
there never was one, `over` if it is over or cared for, `light` for a mere "haha ok" or "bye". Otherwise
`other`.
"""
Exchange: TypeAlias = tuple[str, str]
"""What the assistant said, and what the person replied."""

AT_ONCE: Final = 3
"""The tier of an immediate danger."""
CONFIRMED_TIERS: Final = {"emergency": AT_ONCE, "crisis": 2}
"""The lowest tier of a danger to which the person said yes."""
CONFIRMED: Final = "confirmed"
"""Marks a danger to which the person said yes when asked."""
RETRACTED: Final = "retracted"
"""Marks a danger that the person had denied before."""
MISTAKE: Final = "mistake"
"""Marks a danger that the person calls a mistake. They are asked once whether anybody is in danger."""
CALLED: Final = "help.called"
"""Marks a verdict if the person has said that help was called."""
MEANWHILE: Final = "meanwhile"
"""Marks a verdict if the person asks what they may take or do until help arrives."""
_MARKS: Final = (CALLED, MEANWHILE, MISTAKE, QUIET, STILL)

_UNTIL_THEN: Final = re.compile(
    r"\b(?:take|taking|give|giving|drink|drinking|eat|eating|swallow|chew|sit|stand|walk|move"
    r"|drive|wait|watch|look out|shower"
    r"|(?:lie|lay) (?:down|flat|him|her)|cpr|compressions|ambulance|hospital|emergency room|aspirin|tablets?"
    r"|pills?|painkillers?|medicines?|medication|antihistamines?|paracetamol|ibuprofen|insulin|inhaler"
    r"|epi ?pen|pen|jext|tourniquet|loosen|vomit|throw up|be sick|sleep|lie down|use it|press|spray"
    r"|paramedics?|crew|arrive|(?:help|they) (?:be|come|get)"
    r"|have (?:some|something|a|an|any|water|food|tea))\b",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\b(?:should|shall|can|could|may|do|must) (?:i|we|he|she|they)\b", re.IGNORECASE)
_SERVICE: Final = (
    r"(?:the |an |your |for )*"
    r"(?:999|911|112|000|988|emergency|ambulances?|paramedics?|medics|police|fire brigade|help|them|operator"
    r"|(?:call )?handler|dispatcher|(?:emergency |local )?number|samaritans"
    r"|(?:crisis |help ?|hot ?|life ?)(?:line|team))\b"
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
_HELPERS_COME: Final = re.compile(
    rf"\b(?:called|calling|rang|ringing|phoned|phoning|dial+ed|dial+ing|texted|texting|talking to|speaking to"
    rf"|spoke to|on the (?:phone|line) (?:to|with)) {_SERVICE}"
    r"|\b(?:help|ambulance|paramedics?|crew|police|crisis team)\b.{0,12}"
    r"\b(?:on (?:the|its|their) way|coming)\b",
    re.IGNORECASE,
)
_FRIEND_COMES: Final = re.compile(
    r"\b(?:someone|somebody|a friend|my \w+)(?:['\u2019]?s| is| are| has)(?: \w+)?"
    r" (?:coming|on (?:the|her|his|their) way|with me|here|staying|driving over)\b",
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
_SHORT: Final = 15
"""Maximum number of words in a message that only denies a danger."""
_TURNS_AROUND: Final = re.compile(r"\b(?:but|yet|though|although|except|however|anymore)\b", re.IGNORECASE)
_SOFTENS: Final = re.compile(
    r"\b(?:but|only|just|mild|mildly|slight|slightly|a (?:bit|little)|better|usual|not (?:\w+ )?bad)\b",
    re.IGNORECASE,
)
_NOT_YET: Final = re.compile(r"\bnot (?:yet|now|right now|at the moment|today|tonight)\b", re.IGNORECASE)
_ADMITS: Final = re.compile(
    r"\bi(?:['\u2019]?ve| have)?"
    r"(?: (?:do|did|still|really|often|sometimes|always|keep|just|been|can['\u2019]?t stop))*"
    r" (?:think|thinking|thought) (?:about|of) (?:it|that|this|them|doing (?:it|that)|dying|death|ending)\b"
    r"|\b(?:it|the thought|the thoughts)(?:['\u2019]?s| is| are)(?: \w+)? (?:on my mind|in my head)\b"
    r"|\bi do have (?:them|those|it|thoughts)\b",
    re.IGNORECASE,
)
_LIED: Final = re.compile(
    r"\b(?:that|it|this|what i (?:said|told you))(?: before| earlier)? (?:was|is)(?:n['\u2019]?t| not)"
    r"(?: \w+)? (?:true|the (?:whole )?truth|honest)\b"
    r"|\bi (?:lied|was lying|(?:was|have|had)(?:n['\u2019]?t| not)(?: been)?(?: \w+)?"
    r" (?:honest|truthful))\b(?! about my (?:age|weight|height|name))"
    r"|\b(?:that|it) was a lie\b",
    re.IGNORECASE,
)
_AFTER_ALL: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|well|um+|sorry|fine)\W+)*(?:actually|honestly|to be honest|tbh|in fact|truth is)\W+"
    r"(?:yes|yeah|i (?:do|am|have)|it (?:is|does|has))\b",
    re.IGNORECASE,
)
_NO: Final = re.compile(r"\W*(?:\w+\W+)?(?:no|nope|nah|not really|not at all|never)\b", re.IGNORECASE)


class TakesBack(Protocol):
    """Recognises texts that name a danger and retract it."""

    def takes_back(self, text: str) -> bool:
        """Whether a text names a danger but retracts it."""


class Judge(Protocol):
    """Judges whether a danger continues. The guard implements it."""

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message; `context` is what the assistant asked last."""
        ...

    def explain(self, text: str) -> Sequence[Reason]:
        """Every rule that fired or was stopped, with the words that caused it."""
        ...

    def answer(self, text: str) -> Literal["yes", "no", "unsure"] | None:
        """What a reply plainly says to a question about danger."""
        ...

    def takes_back(self, text: str) -> bool:
        """Whether a text names a danger but retracts it."""
        ...

    def is_light(self, text: str) -> bool:
        """Whether a text is only a "haha ok", a "thanks" or a "bye"."""
        ...

    def is_mistake(self, text: str, earlier: Verdict) -> bool:
        """Whether a text only says that the previous danger was a mistake, a joke or a false alarm."""
        ...

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether a text says that the previous danger is over, cared for or never existed, and no more."""
        ...

    def still(self, text: str, earlier: Verdict) -> Verdict:
        """The danger of the previous answer that still holds after this message."""
        ...


def means(guard: Judge, said: str, earlier: Verdict) -> Meaning:
    """What a message says about the danger before it."""
    if earlier.is_possible:
        return _reply(guard, said, earlier)
    if not earlier.flagged:
        return "other"
    if guard.is_mistake(said, earlier):
        return "mistake"
    if guard.is_over(said, earlier):
        return "over"
    return "light" if guard.is_light(said) else "other"


def denies(guard: TakesBack, said: str) -> bool:
    """Whether a message only denies a danger, as in "no, I'm not thinking of hurting myself"."""
    return (
        len(said.split()) <= _SHORT
        and _TURNS_AROUND.search(said) is None
        and not asks_back(said)
        and guard.takes_back(said)
    )


def retracted(guard: Judge, said: str, before: Sequence[Exchange]) -> Verdict:
    """The danger that the person denied in one of the exchanges before, newest first, and admits now."""
    lied = _LIED.search(said) is not None
    if not lied and not (_ADMITS.search(said) or _AFTER_ALL.match(said)):
        return Verdict()
    for asked, reply in before if lied else before[:1]:
        if (denied := _denied(guard, asked, reply)).flagged:
            return _certain(denied, RETRACTED)
    return Verdict()


def at_once(guard: Judge, said: str, asked: str, earlier: Verdict, heard: Verdict) -> Verdict:
    """The verdict on a message by its words alone, with the previous danger if that still holds."""
    meaning = means(guard, said, earlier)
    if earlier.is_certain and heard.rule_ids == (MEANING,):
        heard = replace(heard, kind=earlier.kind)  # the classifier hardly tells the kinds of danger apart
    if earlier.is_possible:
        return _after_question(meaning, earlier, heard)
    leans = LEANS.issuperset(heard.rule_ids)
    if leans and meaning == "over":
        return Verdict()
    if leans and meaning == "mistake":
        return replace(earlier, rule_ids=(*_unmarked(earlier), MISTAKE), certainty="possible")
    if meaning == "light" and not heard.flagged:
        quiet = stays(said, earlier)
        return replace(quiet, rule_ids=(*quiet.rule_ids, QUIET))
    kept = guard.still(said, earlier)
    if not kept.flagged and (
        (leans and heard.flagged) or is_part_of(heard, earlier) or _of_help(said, asked, earlier)
    ):
        kept = staying(earlier)
    both = heard.raised_by(kept)
    return _marked(both, said, asked, earlier, heard) if STILL in kept.rule_ids else both


def understood(said: str, enrichment: Enrichment, intent: Intent, earlier: Verdict) -> Verdict:
    """The danger of the last answer, which still holds unless the message is about something else.

    Something else is a question or a request with its own topic, a new complaint, or more than a few words
    with a known intent. During an immediate danger, a complaint in a few words belongs to the danger, also
    after help was called. So does the question what to take or do until help arrives.
    """
    if not earlier.is_certain:
        return Verdict()
    if enrichment.phase != CLOSING and not asks_meanwhile(said, earlier):
        now = earlier.kind == "emergency" and earlier.tier == AT_ONCE
        asks = (asks_of_something(said) or wishes(said)) and not refers(said)
        tells = enrichment.trigger == NEW_CONCERN and not (now and says_little(said))
        routed = intent.intent not in (UNCLEAR, OUT_OF_SCOPE) and not says_little(said)
        if asks or tells or (routed and not asks_about_it(said)):
            return Verdict()
    return stays(said, earlier)


def stays(said: str, earlier: Verdict) -> Verdict:
    """The danger of the last answer, carried over to this message."""
    return _marked(staying(earlier), said, "", earlier, Verdict())


def is_part_of(found: Verdict, earlier: Verdict) -> bool:
    """Whether a possible danger belongs to the certain danger before it: it is of the same kind."""
    return found.is_possible and earlier.is_certain and found.kind == earlier.kind


def with_call(found: Verdict, earlier: Verdict) -> Verdict:
    """A finding after help was called: more of the same danger does not undo the call."""
    if CALLED not in earlier.rule_ids or not found.is_certain or not is_same(found, earlier):
        return found
    return replace(found, rule_ids=tuple(dict.fromkeys((*found.rule_ids, CALLED))))


def is_asked(found: Verdict, earlier: Verdict) -> bool:
    """Whether the question about this possible danger was asked just before. It is not asked twice."""
    return found.is_possible and earlier.is_possible and found.kind == earlier.kind


def asks_meanwhile(said: str, earlier: Verdict) -> bool:
    """Whether a message asks what to take or do until help arrives."""
    asks = "?" in said or asks_back(said) or _ASKS.search(said) is not None
    return earlier.kind == "emergency" and asks and _UNTIL_THEN.search(said) is not None


def with_first_aid(texts: first_aid.FirstAid, said: str, danger: Verdict, earlier: Verdict) -> Verdict:
    """The danger, marked with the first-aid text that answers a question about it, if that is a new text."""
    asks = MEANWHILE in danger.rule_ids or (STILL in danger.rule_ids and asks_back(said))
    if not asks or not danger.is_certain or danger.kind != "emergency":
        return danger
    topic = texts.topic_for(said, danger.rule_ids)
    if topic is None or topic == texts.by_rule(earlier.rule_ids):
        return danger
    return replace(danger, rule_ids=(*danger.rule_ids, f"{first_aid.PREFIX}{topic.id}"))


def is_same(danger: Verdict, earlier: Verdict) -> bool:
    """Whether a danger was carried over from an earlier one, or is of the same family of rules."""
    families = [{rule.split(".")[0] for rule in each.rule_ids} for each in (danger, earlier)]
    return STILL in danger.rule_ids or not families[0].isdisjoint(families[1])


def says_called(said: str, asked: str, danger: Verdict) -> bool:
    """Whether a message says that help was called or is coming, or only says yes to that question.

    In a crisis the helpers must be named, because "they are coming" may be said of attackers.
    """
    if _DENIES.search(said) or asks_back(said):
        return False
    if _YES.fullmatch(said) and _ASKED_FOR_HELP.search(asked):
        return True
    if danger.kind == "emergency":
        return _SAYS_CALLED.search(said) is not None
    friend = danger.family == "crisis" and _FRIEND_COMES.search(said)
    return bool(friend or _HELPERS_COME.search(said))


def _reply(guard: Judge, said: str, earlier: Verdict) -> Meaning:
    """What a message answers to the question about a possible danger.

    Unsure counts as yes in a crisis, and after a danger that was certain before.
    """
    answer: Meaning = guard.answer(said) or "other"
    is_emergency = earlier.kind == "emergency"
    if (is_emergency and answer == "yes" and _SOFTENS.search(said)) or (
        not is_emergency and answer == "no" and _NOT_YET.search(said)
    ):
        answer = "unsure"
    elif answer == "other" and (guard.is_over(said, earlier) or denies(guard, said)):
        answer = "no"
    elif answer == "other" and not is_emergency and _ADMITS.search(said):
        answer = "yes"
    is_grave = not is_emergency or MISTAKE in earlier.rule_ids
    return "yes" if answer == "unsure" and is_grave else answer


def _after_question(meaning: Meaning, earlier: Verdict, heard: Verdict) -> Verdict:
    """The verdict on the message after the question. What a rule finds twice in a row is certain."""
    if meaning == "yes":
        return _certain(earlier, CONFIRMED).raised_by(heard)
    if heard.is_certain:
        return heard
    if meaning in ("no", "unsure"):
        return Verdict()
    if not is_asked(heard, earlier):
        return heard
    return Verdict() if heard.rule_ids == (MEANING,) else replace(heard, certainty="certain")


def _certain(danger: Verdict, mark: str) -> Verdict:
    """A danger that the person has confirmed."""
    tier = max(danger.tier, CONFIRMED_TIERS[danger.kind])
    return replace(danger, tier=tier, rule_ids=(*_unmarked(danger), mark), certainty="certain")


def _denied(guard: Judge, asked: str, reply: str) -> Verdict:
    """The danger that a reply denies: with a no to a question about it, or by naming it."""
    denied = guard.check("yes", asked) if asked and _NO.match(reply) else Verdict()
    for reason in guard.explain(reply) if denies(guard, reply) else ():
        if reason.stopped_by:
            denied = denied.raised_by(reason.verdict)
    return denied


def _unmarked(danger: Verdict) -> tuple[str, ...]:
    return tuple(
        rule for rule in danger.rule_ids if rule not in _MARKS and not rule.startswith(first_aid.PREFIX)
    )


def _of_help(said: str, asked: str, earlier: Verdict) -> bool:
    """Whether a message says only that help was called, or asks what to do until it arrives."""
    called = len(said.split()) <= _FEW and says_called(said, asked, earlier)
    return called or asks_meanwhile(said, earlier)


def _marked(both: Verdict, said: str, asked: str, earlier: Verdict, heard: Verdict) -> Verdict:
    """The verdict with its marks: help was called, the person asks what to do, the danger was carried over.

    After a new danger, an earlier call for help no longer counts, since it may have been about the other one.
    """
    known_rules = LEANS.union(earlier.rule_ids, (MEANING,))
    is_new = heard.tier > earlier.tier or not known_rules.issuperset(heard.rule_ids)
    is_denied = _DENIES.search(said) is not None and _OF_CALLING.search(said) is not None
    known = CALLED in earlier.rule_ids and not (is_new or is_denied or NOT_CALLED in heard.rule_ids)
    called = known or says_called(said, asked, both)
    marks = {CALLED: called, MEANWHILE: asks_meanwhile(said, earlier), STILL: not is_new}
    return replace(both, rule_ids=(*_unmarked(both), *(mark for mark, holds in marks.items() if holds)))
