"""The statement and the question in one sentence, told apart clause by clause."""

import re
from typing import Final

from agents.local.patterns import ASKS_INSIDE, ASKS_UNASKED, ASKS_UNMARKED, NUMBERS
from agents.tools.requests import split_tool_request
from agents.utterance import ASKS


def _re(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_LINK: Final = (
    r"(?:[,;]| -| and| but| so| anyways?)"
    r"(?:[,;]* (?:and|but|so|anyways?|well|also|then|now|just|please|basically|my question is)"
    r"(?=[ ,;])){0,3}+[,;]* "
)
_STRONG: Final = (
    r"(?:(?:can|could|should|may|must|shall) (?:i|we|he|she)\b(?! not\b)|should (?:it|that)\b"
    r"|do (?:i|you think)\b"
    r"|is (?:it|that|this) (?:\w+ )?(?:ok|okay|safe|normal|bad|serious|dangerous|something|anything|worth"
    r"|fine|alright|possible|contagious|harmful|broken|infected|likely)\b"
    r"|(?:what|which|how)(?: [\w'-]+){0,3}? (?:can|should|could|do|would|may|must) (?:i|we|you)\b"
    r"|(?:when|where) (?:should|can|do) (?:i|we)\b|any (?:ideas?|tips|advice|suggestions?)\b"
    r"|i(?:'m| am|'ve been| was)?(?: just| now)? wonder(?:ing|ed)? (?:if|whether)"
    r" i (?:can|should|could|need|have to|must)\b)"
)
"""How a question begins that no statement begins with."""

_AFTER_A_LINK: Final = _re(rf"{_LINK}(?={_STRONG})")
_LEADS_ON: Final = "not that what how why when which if whether wonder wondering sure know or only much many"
_NOT_LED_ON: Final = "".join(rf"(?<!\b{word})" for word in _LEADS_ON.split())
_AFTER_NOTHING: Final = _re(rf"(?<!n't){_NOT_LED_ON} (?={_STRONG})")
_WONDERS: Final = _re(
    rf"{_LINK}(?=i(?:'m| am|'ve been| was)?(?: just| now)?"
    r" (?:wonder(?:ing|ed)?|(?:want|wanted|like) to (?:know|ask))\b"
    r"|(?:would|will|am|did|have|has|may) (?:i|it|that|this|you|they|there|he|she)\b)"
)
_CLAUSE_ENDS: Final = _re(_LINK)
_STATES: Final = (
    r"(?:i'm|i am|i've|i have(?! to\b)|i take|i had|i'll be"
    r"|my [\w'-]+ (?:\w+ )?(?:is|are|was|has|have|had|hurts?|aches?)"
    r"|it's been|it has been|it started|it began|(?:he|she)(?:'s| is| has| was) )"
)
_GOES_ON_STATING: Final = _re(
    rf"(?:[,;]| -) +(?:(?:and|but|because|cos|cause|as|since|given|btw|also|by the way),? +)*(?={_STATES})"
    r"| (?:because|cos|cause|as|since|given(?: that)?|and) +(?=(?:i'm|i am|i've|i have(?! to)|i take)\b)"
)
_RUNS_ON: Final = _re(
    r"(?:can|could|should|may|must) (?:i|we|he|she) (?:(?!(?:the|that|what|if|all|anything|while|whilst"
    r"|before|after|until|than)\b)[\w'-]+ ){2,5}?"
    r"(?=(?:i'm|i am|i have|i've|i take) (?!to\b)\w)"
)
"""A question that another clause follows without any mark: `can I take aspirin I have asthma`."""

_BEGINS: Final = _re(rf"(?:{ASKS.pattern}|(?:what|which|how|who|whose)\b)")
_EITHER: Final = _re(r"[\w-]+(?: [\w-]+)? or [\w-]+(?: [\w-]+)?")
_SUPPOSES: Final = _re(
    r"(?:and |but |so )?(?:what |even |only )?(?:if|suppose|in case|how about|what about)\b"
)
_MERE_LEAD: Final = _re(r"\W*(?:(?:so|and|but|then|well|um+|right|also|anyway|now|oh)\W*)+")
_OWN: Final = _re(r"(?:i|my|it|we|he|she)\b")
_GUESSED: Final = _re(rf"\b(?:\d+|{'|'.join(NUMBERS)}) ?\w*\?$")
_MANY: Final = 12
"""A sentence of more words than this is a story: a mark at its end asks with its last clause only."""


def parted(sentence: str, unasked: bool) -> tuple[str, str]:
    """The statement and the question in one sentence; either may be empty. What is said `unasked` answers
    nothing, so that it may be a question by its beginning alone.
    """
    if ASKS_UNMARKED.match(sentence) or (unasked and ASKS_UNASKED.match(sentence)):
        return _after_question(sentence)
    stated, wish = split_tool_request(sentence)
    if wish:
        more, question = _after_question(wish)
        return ", ".join(each for each in (stated, more) if each), question
    marked = sentence.endswith("?")
    if _SUPPOSES.match(sentence):
        return ("", sentence) if marked else (sentence, "")
    if marked and _BEGINS.match(sentence):
        return _after_question(sentence)
    if cut := _AFTER_A_LINK.search(sentence) or _AFTER_NOTHING.search(sentence):
        return _around(sentence, cut)
    if not marked:
        return sentence, ""
    if cut := _WONDERS.search(sentence) or ASKS_INSIDE.search(sentence):
        return _around(sentence, cut)
    short = len(sentence.split()) <= 4
    if short and _GUESSED.search(sentence):
        return sentence.rstrip("? "), ""  # `lost count, 8?`
    if short:
        return "", sentence
    if _OWN.match(sentence):
        return sentence.rstrip("?"), ""
    ends = list(_CLAUSE_ENDS.finditer(sentence)) if len(sentence.split()) > _MANY else []
    return _around(sentence, ends[-1]) if ends else ("", sentence)


def _around(sentence: str, cut: re.Match[str]) -> tuple[str, str]:
    """A statement, and behind the cut a question that may go on with another statement. What is to choose
    from is stated by nobody: `aspirin or ibuprofen, which is better?`
    """
    if _EITHER.fullmatch(sentence[: cut.start()]):
        return "", sentence
    stated = "" if _MERE_LEAD.fullmatch(sentence[: cut.start()]) else sentence[: cut.start()]
    more, question = _after_question(sentence[cut.end() :])
    return ", ".join(each for each in (stated, more) if each), question


def _after_question(question: str) -> tuple[str, str]:
    """What a question goes on to state, and the question: `can I take aspirin, I'm on warfarin?`"""
    if _DEPENDS.search(question):
        return "", question
    if cut := _GOES_ON_STATING.search(question) or _RUNS_ON.match(question):
        end = cut.start() if cut.re is _GOES_ON_STATING else cut.end()
        return question[cut.end() :].rstrip("? "), question[:end].rstrip()
    return "", question


_DEPENDS: Final = _re(r"\b(?:if|when|unless)\b")
