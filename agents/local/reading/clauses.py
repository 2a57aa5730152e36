"""Cuts a message into clauses, and says of each whose it is, when it holds, and whether it holds at all."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from agents.local.reading.question_signs import asks, may_ask, question_at

PERSON: Final = "person"
"""The subject of a clause about the person who writes."""

NOBODY: Final = ""
"""The subject of a clause that names no subject, so that the one before it, or the question, decides."""

MIXED: Final = "several"
"""The subject of a clause that speaks of the person and of somebody else. No value of it is taken."""

MOST_READ: Final = 2_000
_MOST_CLAUSES: Final = 24


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a message that says one thing.

    `text` is as it was written, `low` in lower case with plain apostrophes. `who` is the subject: `PERSON`, a
    relative such as `daughter`, `MIXED` or `NOBODY`. The flags say whether it is asked, may be asked, is
    denied, over, or only supposed.
    """

    text: str
    low: str
    who: str = NOBODY
    asked: bool = False
    may_ask: bool = False
    denied: bool = False
    past: bool = False
    supposed: bool = False

    @property
    def holds(self) -> bool:
        """Whether it states something that is so now."""
        return not (self.asked or self.may_ask or self.denied or self.past or self.supposed)


RELATIVES: Final = (
    "baby|boy|boyfriend|brother|child|children|dad|daddy|daughter|father|fiancee?|friend|girl|girlfriend|grandad|granddad"
    "|granddaughter|grandfather|grandma|grandmother|grandpa|grandson|gran|granny|husband|hubby|infant|kids?|mom|mother"
    "|mum|mam|mama|mommy|mummy|nan|nana|nanna|neighbou?r|nephew|newborn|niece|partner|roommate|flatmate|housemate|sister"
    "|son|spouse|stepdaughter|stepson|stepdad|stepmum|teenager|toddler|twins?|wife"
    "|aunt|auntie|uncle|little one"
    "|cousin|colleague|boss|eldest|youngest|oldest|other half|missus|parents?|papa"
    "|ex|bf|gf|dog|cat|puppy|kitten|client"
    "|patient|lodger|carer|little (?:boy|girl|lad|man)|lad|bairn|grandchild|grandkids?|best friend|mate|pa|ma"
)
_REL: Final = (
    rf"(?:(?:(?:my|our|his|her|the) (?:[\w-]+ ){{0,3}}?(?P<rel>(?:{RELATIVES})(?:[ -]in[ -]law)?)"
    rf"|an? (?:[\w-]+ )?(?P<some>friend|colleague|mate|neighbou?r|client|patient|relative))(?:(?P<of>'s"
    rf"|s'?)(?= \w))?"
    rf"|(?<!\w)(?P<bare>mum|mom|dad|gran|nan|grandma|grandad|granny|mummy|daddy|^(?:brother|sister|son"
    rf"|daughter"
    rf"|wife|husband|hubby|partner|uncle|auntie?|grandmother|grandfather|mother"
    rf"|father))(?P<of2>'s(?= \w))?)\b"
)
_RELATIVE: Final = re.compile(_REL)
_OTHERS: Final = re.compile(r"\b(he|she|her|his|hers|he's|she's|he'll|she'll|he'd|she'd)\b(?!')")
_ME: Final = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|im|ive|me|my|mine|myself|we|we're|we've)\b")
_FIRST_I: Final = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|im|ive)\b")
_SAYS: Final = re.compile(
    r"(?:^|\b)(?:says?|said|thinks?|thought|reckons?|told|keeps? (?:saying|telling)"
    r"|noticed|wants|asked|insists?|made|makes|measured|found|checked|looked|saw|bought|rang|called|knows"
    r"|gives?|gave|sent|drove|took|helps?)(?: to| that)?(?: me| i\b|$| )"
)
_SENTENCE: Final = re.compile(
    r"(?<=[.!?])(?<!\bdr\.)(?<!\bmr\.)(?<!\bmrs\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bapprox\.)(?<!\bno\.)[\"')\]]*\s+(?=\S)"
    r"|\n+|;\s+|\s+[\u2013\u2014]+\s+|\s+-+\s+|\u2026\s*|(?<=\w)\.\.+\s*",
    re.IGNORECASE,
)
_STARTS: Final = (
    r"(?:i|i'm|i've|i'd|i'll|im|ive|my|he|he's|she|she's|we|we're|they|they're|it|it's|its|there|there's"
    r"|this|that's"
    r"|what|what's|whats|how|why|can|could|should|do|does|did|is|are|am|would|will"
    r"|(?:which|when|where|who)\b(?=.{0,25}\b(?:can|should|do|does|did|is|are|will) (?:i|it|he|she|they"
    r"|you|we"
    r"|the|my|that|this)\b)|please|pls|don't"
    r"|also|the (?:doctor|gp|nurse|pain|other|tablets?|dose)|thanks|thank|cheers|bye"
    r"|goodbye|remember|forget|remind|back to|make a note|(?:note|write) (?:that|it|this) down"
    r"|actually|anyway|no|yes|just|maybe|mum|dad|mom|let's|lets|tell|list|sorry|by the way|btw|oh|have|has)\b"
)
_SPLIT: Final = re.compile(
    rf",\s+(?:and|but|so(?!\s+(?:i|we) can\b)|also|plus|or|because|cos|though|then|yet|only)?\s*(?={_STARTS})"
    rf"|\s+(?:and|but|so(?!\s+(?:i|we|he|she|they|it) (?:can|could)\b)|plus|because|cos|though|although"
    rf"|while|whereas|yet)\s+(?=(?!that\b|it's been\b)"
    r"(?:i|i'm|i've|i'd|im|ive|my|he|he's|she|she's|we|it's|it|there's|what|which|how|why|can|could"
    r"|should|do|does|please"
    r"|also|the (?:doctor|gp|nurse|pain|other)|thanks|bye|goodbye|remember|forget"
    r"|remind|don't|mum|dad|mom|now)\b)"
    r"|(?<=\w)\s+(?=(?:btw|by the way|anyway|also,? (?:i|my|can|what|could))\b)",
    re.IGNORECASE,
)
_LEADING: Final = re.compile(
    r"^(hi there|hello there|hi again|hello again|hi|hello|hey|hiya|good (?:morning|evening|afternoon)|ok"
    r"|okay|right|well|oh|yes|yeah|yep|yup|no wait|wait no|no sorry|no hang on|no hold on|oh sorry|no|nope"
    r"|nah|thanks a lot|thanks|thank you|cheers|thx|sorry|oops|wait|hang on|hold on|hmm+|ah|great|lol|haha)"
    r"(?: (?:love|mate|dear|doc|doctor|all|bot|pal|hun))?(?:[,.!:]+\s+|\s+[-\u2013\u2014]\s+)(?=\S)"
    r"|^(hi|hello|hey|hiya|by the way|btw|anyway|anyways|good (?:morning|evening|afternoon))[,.!:]*\s+"
    r"(?=(?:i|i'm|i've|im|ive|my|can|could|is|are|what|how|do|does|should|it|it's|the|just|quick|we|he"
    r"|she|need)\b)",
    re.IGNORECASE,
)
_STATES_SELF: Final = re.compile(
    r"(?:(?:and|but|because|as|since) )?(?:i'm|im|i am|i have|i've|i take|my \w+ (?:is|has"
    r"|takes)|(?:he|she)(?:'s| is| has| takes))\b",
    re.IGNORECASE,
)
_IF: Final = re.compile(r"^(?:(?:and|but|so|even|only|what|as)\s+)?if\b")
_DENIES: Final = re.compile(
    r"\b(?:no|not|never|none|nothing|without|neither|nor|nobody|hardly|barely|don't|doesn't|didn't"
    r"|haven't|hasn't|isn't|aren't|wasn't|won't"
    r"|can't|cannot|couldn't|free of)\b"
)
_NO_DENIAL: Final = re.compile(
    r"\b(?:not (?:only|just|sure|too bad)|no (?:idea|doubt|wonder|problem|worries)"
    r"|nothing (?:helps|works)|can't (?:sleep|stop|fall"
    r"|stand|move|turn|bend|eat|breathe|walk|lift|concentrate|focus)|cant (?:sleep"
    r"|stop|fall|stand|move|turn)|can't (?:have|take)|cant (?:have|take)"
    r"|won't (?:shift|go away|go|stop|heal|clear|budge|settle|get better))\b"
)
_OVER: Final = re.compile(
    r"\b(?:used to|years ago|as a (?:child|kid|teenager|baby|boy|girl)|when i was"
    r"|in the past|previously|back then|ex-"
    r"|was on|was taking|were on|had been|formerly|back in (?:19|20)\d\d|in (?:19"
    r"|20)\d\d|no longer|not any ?more|any ?more|gave up|given up|stopped|quit"
    r"|came off|is gone|has gone|it's gone|cleared up|was stopped|took me off"
    r"|taken off|last (?:year|summer|winter|spring|autumn|time))\b"
)
_SINCE_THEN: Final = re.compile(r"\b(?:diagnosed|found out|began|started|since)\b.*\bin (?:19|20)\d\d\b")
"""What began in a year that is named may still be so."""

_SUPPOSES: Final = re.compile(
    r"\b(?:if|in case|unless|what if|might|could|would|suppose|imagine|perhaps it"
    r"|thinking (?:of|about)|considering|planning to|going to (?:try|take|start)"
    r"|should i|was offered|offered me|suggested|recommended|wants me to"
    r"|told me to try|for example|let's say|afraid (?:of|it)|scared (?:of|it)"
    r"|worried (?:it|about)"
    r"|terrified|fear|think it(?:'s| is| might| could)|thinks it(?:'s| is)"
    r"|maybe it(?:'s| is)|rule out|ruled out|looks like|sounds like|tested for"
    r"|checked for)\b"
)
_PLAIN: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"'})
_SHORT: Final = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        (r"\bi m\b|\bim\b", "i'm"),
        (r"\bive\b", "i've"),
        (r"\b(do|does|did|have|has|is|are|was|were|could|should|would)nt\b", r"\1n't"),
        (r"\bdont\b", "don't"),
        (r"\bcant\b", "can't"),
        (r"\bwont\b", "won't"),
        (r"\b(that|what|there|he|she|who)s\b(?= )", r"\1's"),
        (r"\bu\b", "you"),
        (r"\bur\b", "your"),
        (r"\bw[ao]t\b", "what"),
        (r"\bshud\b", "should"),
        (r"\bcud\b", "could"),
        (r"\bwoz\b", "was"),
        (r"\b(tak|do|feel|gett|go)in\b", r"\1ing"),
    )
)


def plain(text: str) -> str:
    """A text in lower case, with plain apostrophes and the usual contractions."""
    low = " ".join(text.translate(_PLAIN).lower().split())
    for pattern, by in _SHORT:
        low = pattern.sub(by, low)
    return low


def split(
    message: str, *, about: str = PERSON, other: str = NOBODY, names: Mapping[str, str] | None = None
) -> tuple[Clause, ...]:
    """The clauses of a message, in their order.

    `about` is the subject of a clause that names none. `other` is the person whom `he` and `she` mean; nobody
    if that is not certain. `names` are those of other people, with what each is to the writer.
    """
    clauses: list[Clause] = []
    before, other_now = about, other
    for text in _texts(message[:MOST_READ]):
        clause = _read(text)
        who = clause.who
        named = _NAMED.match(clause.text) if names and who in (NOBODY, PERSON) else None
        if names and named and named["name"] in names and not _ME.search(clause.low[:12]):
            who = other_now = names[named["name"]]
        elif who in _PRONOUNS:
            who = other_now or MIXED
        elif who == MIXED:
            other_now = relative_in(clause.low) or other_now
        elif who not in (PERSON, NOBODY):
            other_now = who
        if who == NOBODY:
            who = before
        if who != MIXED:
            before = who
        clauses.append(replace(clause, who=who))
    return tuple(clauses[:_MOST_CLAUSES])


_INTRODUCED: Final = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur) (?:\w+ )?(?P<rel>{RELATIVES}),? (?P<name>[A-Z][a-z]+)\b"
    r"|(?<=[a-z,] )(?P<other>[A-Z][a-z]{2,})\b(?!-)"
)
_NO_NAMES: Final = frozenset(
    [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Christmas",
        "Easter",
        "Thanks",
        "Thank",
        "English",
        "German",
        "French",
    ]
)


def names_in(texts: Iterable[str]) -> dict[str, str]:
    """The names of other people in what somebody wrote, with what each is to the writer, if it was said."""
    names: dict[str, str] = {}
    for text in texts:
        for found in _INTRODUCED.finditer(text):
            if found["rel"]:
                names[found["name"]] = found["rel"]
            elif found["other"] not in _NO_NAMES and not re.search(r"\bDr\.? $", text[: found.start()]):
                names.setdefault(found["other"], found["other"])
    return names


def last_other(clauses: Iterable[Clause], before: str = NOBODY) -> str:
    """The person other than the writer whom these clauses speak of last."""
    found = [
        relative_in(each.low) if each.who == MIXED else each.who
        for each in clauses
        if each.who not in (PERSON, NOBODY) and (each.who != MIXED or relative_in(each.low))
    ]
    return found[-1] if found else before


_PRONOUNS: Final = frozenset(("he", "she"))
_HE: Final = frozenset(("he", "him", "his", "he's", "he'll", "he'd"))


def _texts(message: str) -> Iterable[str]:
    for sentence in _SENTENCE.split(message):
        rest = (sentence or "").strip()
        while found := _LEADING.match(rest):
            yield found[1] or found[2]
            rest = rest[found.end() :]
        if _IF.match(plain(rest)):  # what follows an "if" belongs to it
            yield rest
            continue
        pieces = []
        for part in _SPLIT.split(rest):
            start = question_at(part or "")
            for piece in (part[:start], part[start:]) if start else (part,):
                if piece and piece.strip(" ,.!?-\"'()*"):
                    pieces.append(piece.strip(" ,"))
        if len(pieces) > 1 and _STATES_SELF.match(pieces[-1]) and any(map(_is_asked, pieces[:-1])):
            pieces[-1] = pieces[-1].rstrip("? ")  # the mark belongs to the question before it
        yield from pieces


def _is_asked(text: str) -> bool:
    return asks(text, plain(text).strip(" .,!\"'()*"))


def _read(text: str) -> Clause:
    low = plain(text).strip(" .,!\"'()*")
    asked = asks(text, low)
    return Clause(
        text=text.strip(" ,"),
        low=low,
        who=subject_of(low),
        asked=asked,
        may_ask=not asked and may_ask(low),
        denied=bool(_DENIES.search(_NO_DENIAL.sub(" ", low))),
        past=bool(_OVER.search(_SINCE_THEN.sub(" ", low))),
        supposed=bool(_SUPPOSES.search(low)),
    )


def holds(low: str, *, of_the_past: bool = False) -> bool:
    """Whether a text neither denies nor supposes something, nor says that it is over."""
    if _DENIES.search(_NO_DENIAL.sub(" ", low)) or _SUPPOSES.search(low):
        return False
    return of_the_past or not _OVER.search(low)


def _relative(found: re.Match[str]) -> str:
    return found["rel"] or found["some"] or found["bare"] or ""


_AS_A_CHILD: Final = re.compile(
    r"\b(?:as|since|when|from|being|like)(?: i was| i were)?(?: being)? an? (?:kid|child|boy|girl|teen\w*"
    r"|baby|toddler)\b"
)
_BESIDE: Final = re.compile(
    r"(?:(?:just|also|been|really|i think|hi|hello|and|but)[, ]+)*(?:need|needing|want|trying|got|had"
    r"|having|going|went|live"
    r"|living|staying|moved|working?|argued|row|looking|caring|walking|fell|picked)\b.* (?:for|with|to"
    r"|from|by|of|at|after|over"
    r"|behind|on) $"
)
_NAMED: Final = re.compile(
    r"(?:and |but )?(?P<name>[A-Z][a-z]+)(?:'s| is| was| has| had| keeps| takes| gets| says| said| can"
    r"| won| does)\b"
)


def relative_in(low: str) -> str:
    """The relative that a text names; empty if it names none."""
    found = _RELATIVE.search(low)
    return _relative(found) if found else ""


def subject_of(low: str) -> str:
    """Whom a clause is about."""
    low = _AS_A_CHILD.sub(" ", low)
    relative = _RELATIVE.search(low)
    i = _FIRST_I.search(low)
    if relative is not None:
        name = _relative(relative)
        if i is None and _BESIDE.match(low[: relative.start()]):
            return MIXED if relative["of"] else PERSON  # "need a sick note for my boss"
        after = low[relative.end() :].lstrip()
        if i is None:
            if _SAYS.search(" ".join(after.split()[:2]) + " "):
                return MIXED
            return name
        if i.start() > relative.start() and _SAYS.match(after):
            return PERSON  # "my wife says I snore"
        return MIXED
    if found := _OTHERS.search(low):
        if i is not None and i.start() < found.start():
            return MIXED
        if i is None and re.search(r"\b(?:me|my)\b", low):
            return MIXED
        return "he" if found[1] in _HE else "she"
    return PERSON if _ME.search(low) else NOBODY
