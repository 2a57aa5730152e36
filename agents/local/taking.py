"""Whether a medicine that a sentence names is taken, is taken no more, or is only spoken of."""

import re
from typing import Final

from agents.local.patterns import MOMENT, SPAN


def _re(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_GAP: Final = r"(?: [\w'-]+){0,3} ?$"
_BEGIN: Final = r"(?:start\w*|try(?:ing)?|begin\w*|(?:go|going|get|getting|be|being) (?:back )?on)"
_TAKE: Final = rf"(?:tak(?:e|ing)|us(?:e|ing)|have|having|{_BEGIN})"
_PROPOSED: Final = _re(
    r"\b(?:"
    rf"(?:want|advis|ask|urg|push|encourag|like)\w* (?:me|him|her|us|them) (?:to {_TAKE}|on)"
    r"|(?:want\w*|going|plan\w*|try\w*|hop\w+|think\w*|might|may|could|about)\b[\w' ]{0,20}"
    r"\b(?:put|get|start)\w* (?:me|him|her) (?:back )?on"
    r"|suggested|recommended|offered|considering|mentioned|proposed"
    r"|refus(?:ed?|es|ing)(?: to take)?|declin(?:ed?|es|ing)|turned down|sa(?:id|y|ying) no to"
    rf"|(?:scared|afraid|terrified|nervous|reluctant|hesitant|wary|keen)(?: about| of| to| on)+ {_TAKE}"
    rf"|(?:about|due|meant|supposed|need|needs|have|has|got|want|wants|wanted|like|rather|decided|going"
    rf"|plan\w*|hop\w+) (?:to )?{_BEGIN}"
    r"|(?:about|want|wants|wanted|like|rather|decided|going|plan\w*|hop\w+) (?:to )?take"
    rf"|(?:should|can|could|may|might|would|will|shall|whether|before|until|unless)"
    rf" (?:i|we|he|she|they)(?: [\w'-]+)? (?:{_TAKE}|give|get|need)"
    r"|(?:heard|read|saw|seen)(?: somewhere| online| a lot)?(?: that| about| of)"
    rf"){_GAP}"
)
_SPEAKS_OF: Final = _re(r"\b(?:thinking|wondering|asking)\b(?: [\w'-]+){0,3} ?$")
_ABOUT: Final = _re(r"\babout(?: the| taking| trying| starting| using)? $")
_PRAISED: Final = _re(r"\b(?:says?|said|reckons?|thinks?|swears? by|claims?)(?: that)? $")
_DOES: Final = _re(r" (?:\w+ )?(?:is|are|works?|helps?|could|can|might|may|would|should|does|do|will|has)\b")
_STOPPING: Final = _re(
    r"\b(?:my|off|without|stop\w*|quit\w*|reduc\w+|cut\w*|taper\w*|chang\w+|switch\w*|more|less)\b[^,]*$"
)
_STARTS: Final = _re(rf"\bstart(?:ing)?{_GAP}")
_LATER: Final = _re(
    r"[^.;,]{0,30}\b(?:tomorrow|soon|next (?:week|month|\w+day)|in an? (?:\w+ )?(?:days?|weeks?))\b"
)
_IF: Final = _re(rf"\b(?:if|when) (?:i|we|he|she)(?: [\w'-]+)? (?:{_TAKE}|took){_GAP}")
_THEN: Final = _re(r"[^.;]*\b(?:will|would|can|could|should|is|does) (?:it|that|i|this|he|she|my)\b")
_NOT_TAKEN: Final = _re(
    r"[^.;]*?\b(?:(?:haven't|have not|hadn't|hasn't|has not|didn't|did not|don't|do not|doesn't|never|not"
    r"|won't|wouldn't|couldn't|can't|yet to|refus\w+ to|(?:scared|afraid|reluctant|nervous) to|rather not"
    r"|before i)"
    r"(?: [\w']+){0,3}? (?:start\w*|take|took|taken|taking|began|begun|begin|tried|try|use|used|want|fill\w*"
    r"|pick\w*|collect\w*|go on|touch\w*|dare\w*|open\w*|had|swallow\w*)\b"
    r"(?: (?:it|them|that|any|one|those|these|to|yet|up|on|a single one|the prescription))*"
    r"(?=\s*(?:[,.;!?)]|\b(?:because|cos|cause|as|since|and|so|but|though|in the end)\b|$))"
    r"|said no\b|(?:not|isn't|aren't|wasn't) (?:too |very |that )?keen\b|turned (?:it|them) down)"
)
_TAKES: Final = (
    r"\b(?:i|he|she|we|they)(?:'m| am|'s| is|'ve| have| has)?"
    r"(?: also| usually| only| still| now| currently| just| normally| sometimes| already| been| have| did)*"
    r" (?:take|takes|taking|took|on|use|uses|using|started)\b"
)
_TAKES_IT: Final = _re(rf"[^.;]*{_TAKES} (?:it|them|that|those|one|\w+ \w+ (?:day|night))\b")
_IS_TAKING: Final = _re(rf"{_TAKES}[^.;]*$")


def only_spoken_of(before: str, behind: str) -> bool:
    """Whether a medicine is asked about, proposed or refused rather than taken, by the words of its sentence
    before and behind its name: `tell me about statins`, `they want me on statins`, `…, but I never took it`.
    """
    if _NOT_TAKEN.match(behind) and not _IS_TAKING.search(before):
        return True
    if _TAKES_IT.match(behind):
        return False
    if (
        _ABOUT.search(before)
        or (_STARTS.search(before) and _LATER.match(behind))
        or (_IF.search(before) and _THEN.match(behind))
    ):
        return True
    if _PRAISED.search(before) and _DOES.match(behind):
        return True
    proposed = _PROPOSED.search(before) or _SPEAKS_OF.search(before)
    return proposed is not None and _STOPPING.search(proposed[0]) is None


_WAS_TAKEN: Final = _re(
    r"\b(?:used to (?:take|use|be on|have)|came off|come off|finished|was on|were on|was taking)\b[^.;,]*$"
    rf"|\b(?:stopped|quit|off){_GAP}"
)
_WISHES_OFF: Final = _re(
    r"\b(?:to|can|could|should|i'll|will|would|don't|do i|of|about)"
    r" (?:(?:com|gett?|go|wean)\w*(?: me| myself)? off|quit)\b[^.;,]*$"
)
_TAKEN_ONCE: Final = _re(
    r"[\w ,-]{0,20}\b(?:years|months) (?:ago|back)\b|[\w -]{0,12}\bas a (?:child|kid|teen)"
)
_BEGUN: Final = _re(r"\b(?:start|since|began|put|been|on|went)\w*\b")


def is_over(before: str, behind: str) -> bool:
    """Whether a medicine is said to be taken no more: `used to be on omeprazole`."""
    if _WAS_TAKEN.search(before) and not _WISHES_OFF.search(before):
        return True
    return _TAKEN_ONCE.match(behind) is not None and _BEGUN.search(before) is None


_OWN: Final = _re(
    r"\bmy(?: [\w-]+)? $|\b(?:i'm|i am|i've been|already|still) (?:on|taking)(?: [\w-]+)? $"
    r"|\b(?:that|since|as|because|when|and|,) i take(?: [\w-]+)? $"
    r"|\bi\b.* (?:while|whilst|as|now that) (?:i'm |i am )?(?:on|taking) $"
)


def taken_anyway(before: str) -> bool:
    """Whether a question takes a medicine for granted, by its words before the name: `can I run on my …`."""
    return _OWN.search(before) is not None


_TAKING: Final = _re(
    r"\b(?:start(?:ed)?|began|put|been|on|take|takes|taking|using|given|prescribed|got|have|had)\b"
)
_SINCE: Final = _re(
    r"(?:,? \d+(?:[.,]\d+)? ?(?:mg|mcg|micrograms?|ml|g|iu|units?|puffs?))?"
    r"(?: (?:once|twice|\w+ times)? ?(?:a|per|every|each) (?:day|night|morning|evening|week)| daily)?,?"
    r"(?: (?P<lead>for|since|from|in|on|back in|about|almost|nearly|just|only|the))*?"
    rf" (?P<time>{SPAN}|{MOMENT})\b"
    r"(?! (?:a|per|each) |s\b)"
)


def taken_since(before: str, behind: str) -> tuple[str, int]:
    """How long a medicine has been taken, by the words around its name, and where behind it that ends:
    `I started sertraline 50 mg three weeks ago`. Nothing where they do not say.
    """
    found = _SINCE.match(behind) if _TAKING.search(before) and not _TOOK.search(before) else None
    if found is None:
        return "", 0
    time = re.sub(r" (?:ago|back)$", "", found["time"])
    span = re.fullmatch(SPAN, time, re.IGNORECASE) is not None
    how_often = time == found["time"] and not found["lead"] and re.match(r"an? ", time, re.IGNORECASE)
    if how_often or re.fullmatch(r"(?!(?:19|20)\d\d$)[\d.,/]+", time):  # `one a day`, `2.5`
        return "", 0
    return (time if span else f"since {re.sub(r'^(?:on|in) ', '', time)}"), found.end()


_TOOK: Final = _re(r"\b(?:took|had|taken|forgot|missed|skipped)\b[^,]*$")
