"""Tells whether a clause asks something: surely, perhaps, or not. Most people leave the question mark out."""

import re
from typing import Final

from agents.local.reading import readers
from agents.utterance import word_set

_LEAD: Final = (
    r"^(?:(?:and|but|so|also|or|ok|okay|well|then|hey|yo|please|pls|anyway|btw|by the way|go on then|go on"
    r"|oh|actually|just|now|right|quick question|sorry|seriously|wait|hang on|lol)[,:]?\s+)*"
)
_SUBJECT: Final = (
    r"(?:i|you|he|she|it|we|they|this|that|these|those|there|my|your|his|her|our|the|any\w*|some\w*|a|an"
    r"|people)"
)
_NO_SUBJECT: Final = (
    r"(?:really|so|very|still|quite|pretty|just|not|now|getting|got|always|also|on|in|at|all|too|only"
    r"|sore|swollen|left|right"
    r"|fine|ok|okay|better|worse|well|going|gone|back|like|a bit|up|down|over|about|more|less|have|be"
    r"|feel|hurt\w*|from|for|since|after|before|with|because|when"
    r"|ache\w*|ask|try|see|do|call|take|get|help\w*)"
)
_BEGINS: Final = re.compile(
    _LEAD + r"(?:what(?!ever\b| a\b)|what's|whats|whens|who|whom|whose|who's"
    r"|how(?! (?:annoying|awful|rude|nice|stupid|sad|lovely|kind|funny)\b)|how's|hows|why"
    r"|when (?:is|are|am|did|do|does|was|were|should|can|will|would|have)|when's|where(?:'s|s)?"
    r"|which(?! (?:i|he|she|we|they|it|is why|means|makes|helps?|was)\b)"
    r"|in which|at what|on what|by when|since when"
    rf"|(?:can|could|should|would|shall|has|have) {_SUBJECT}|may i|(?:can|could|should|would) (?!n't"
    rf"|{_NO_SUBJECT}\b)\w+ \w+"
    rf"|(?:is|are|was|were|does|do|will) {_SUBJECT}|(?:is|are|does|do) (?!n't|so\b"
    rf"|{_NO_SUBJECT}\b)\S+ \S+|am i"
    r"|did (?:i|you|we|he|she|they|it|the|my)"
    r"|any(?:thing|one|body|where)? (?:idea|ideas|tips|chance|advice|way|ways|i|else|good|other|point"
    r"|suggestions?|thoughts)"
    r"|(?:that|this) (?:an? (?:issue|problem)|ok|okay|safe|normal|bad|dangerous|allowed|alright|enough)\b"
    r"|(?:ok|okay|safe|alright|allowed|possible|worth) to \w+"
    r"|pros and cons"
    r")\b"
)
_WONDERS: Final = re.compile(
    r"\b(?:wonder|wondering|not sure|unsure|i don't know|no idea|dunno|not certain) "
    r"(?:if|whether|about|what (?:i|to)|which|how (?:to|much|many|long|often)|when to|where to)\b"
    r"|\bdo you (?:know|think|remember)\b|\bany idea\b|\b(?:want|wants|need|like)(?:ed)? to (?:know|ask)\b"
    r"|\bmy question is\b|\b(?:or not|or what|yes or no|haven't i|didn't i|don't i)$"
    r"|\bpros and cons\b"
)
_IMPERATIVE: Final = re.compile(
    _LEAD
    + r"(?:kindly )?(?:explain|discuss|advise|clarify|suggest|recommend|list (?:my|all|the|every\w*|what)"
    r"|let me know|(?:tell|give|show|remind) (?:me|us)|read (?:it|me|that|them|this|back|everything|out)"
    r"|say (?:it|that) (?:again|back)|guide me|help me)\b"
    r"|^(?:please|kindly) (?!note|remember|write|keep|forget|don't|do not|not|store|save|record|delete"
    r"|remove|cross)\w+"
    r"|\b(?:please|kindly|pls) (?:explain|advise|help|tell|guide|discuss|answer|suggest|clarify"
    r"|let me know)\b"
)
_INVERTED: Final = re.compile(
    r"(?:(?<=^)|(?P<before>\S+) )(?:(?:can|could|should|shall|would|will|does|did|may) (?:i|it|he|she|they|we"
    r"|you|this|that|there|my)|do (?:i|you|they|we|my)|(?:am|was|have|must) i|(?:is|are) (?:it|that|this|they"
    r"|these|those|he|she|you|there (?:any\w*|a|an|some\w*)))\b"
)
_INNER: Final = re.compile(
    r"(?P<before>\S+) (?P<asked>(?:(?:how|what|which|when|where|why|who)(?: \w+){0,2} )?(?:(?:can|could"
    r"|should"
    r"|would|will|does|did) (?:i|it|he|she|they|we|you|this|that)|do (?:i|you|they|we)|am i|(?:is"
    r"|are) (?:it|that"
    r"|this|they|these|there (?:any\w*|a|an|some\w*)))\b)"
)
_NOT_BEFORE: Final = word_set(
    "i we he she they you it that this there who to so neither nor than as i'd i'll he'd she'd if what's not "
    "problem thing issue worst point worry trouble fact reason truth best can could will would must should "
    "cannot in since last early late until mid by"
)
_INTRODUCES: Final = word_set("know ask asks asking tell wonder wondering kindly please")
_WITHIN: Final = re.compile(
    r"(?P<before>\S+) (?:how (?:much|many|long|often|do|to|can|should|soon|come)|what (?:to|do|should|can"
    r"|about|%|percent\w*)|which (?:is|one|are)|where (?:do|can|to)|when (?:do|can|should|will)"
    r"|who (?:do|can|should)|why (?:is|do|does|am|are|would))\b"
)
_REPORTS: Final = word_set(
    "know knows knew sure tell told see understand on that's is was remember forgot of about idea matter "
    "you me them him her said says say asked explained knowing learn learned learning figure working exactly "
    "just no and it's shows depending depends answer"
)
_CONCLUDES: Final = re.compile(
    r"so (?:it's|its|that's|that is|it is|i|you|he|she|no|yes)\b(?: \S+){1,5}|.*\b(?:then|yeah|right"
    r"|innit|huh)"
)
_PONDERS: Final = re.compile(
    r"^(?:and |but |so |well )*(?:(?:i )?(?:suppose|guess|reckon|wonder) (?:i|it|that|this|he|she|we)\b"
    r"|thinking (?:of|about)|tempted to|i ought|maybe i should|perhaps i should)"
)
_EITHER: Final = re.compile(r"\S+(?: \S+){0,5} or (?:\S+ ){0,5}\S+")
_STATES: Final = re.compile(
    r"\b(?:i|i'm|i've|i'd|my|he|she|it|it's|its|we|they|is|was|were|have|had|has|been|got|so|more|less"
    r"|not|no)\b"
)
_STATED: Final = re.compile(
    r"\b(?:i|im|i'm|ive|i've|my|he|hes|she|shes|we|it|its|got|had|have|has|ate|took|is|was|said|says)\b.* \S+"
)
_NUMBERS: Final = re.compile(rf"(?:\d+|{'|'.join(readers.NUMBERS)}) or (?:\d+|{'|'.join(readers.NUMBERS)})\b")
TIMED: Final = re.compile(rf"\b(?:{readers.SPAN}|{readers.MOMENT})(?!\w)")


def asks(text: str, low: str) -> bool:
    """Whether a clause asks something. A mere mark after a time, as in `like 2 years??`, asks nothing."""
    if _BEGINS.match(low) or _WONDERS.search(low) or _IMPERATIVE.search(low):
        return True
    if any(map(_is_inverted, _INVERTED.finditer(low))):
        return True
    if any(found["before"] not in _REPORTS for found in _WITHIN.finditer(low)):
        return True
    return text.rstrip(" \"')").endswith("?") and not TIMED.search(low)


def _is_inverted(found: re.Match[str]) -> bool:
    before = found["before"] or ""
    return before not in _NOT_BEFORE and not before.endswith("n't")


def question_at(text: str) -> int:
    """Where a question begins after a statement, as in `I took four is that too much`; 0 if none does."""
    if _BEGINS.match(text.lower()):
        return 0
    for found in _INNER.finditer(text.lower()):
        before = text[: found.start("asked")].lower()
        if _is_inverted(found) and found["before"] not in _INTRODUCES and _STATED.search(before):
            return found.start("asked")
    return 0


def may_ask(low: str) -> bool:
    """Whether a clause that does not surely ask can be meant as a question."""
    if low.startswith("dear "):
        return False
    if _PONDERS.match(low):
        return True
    words = len(low.split())
    if words <= 6 and _CONCLUDES.fullmatch(low) and re.match(r"so\b", low):
        return True
    either = words <= 12 and _EITHER.fullmatch(low) is not None
    return either and not _STATES.search(low) and not readers.whole_span(low) and not _NUMBERS.search(low)
