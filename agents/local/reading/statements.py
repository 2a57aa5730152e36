"""Reads what people state of their lives by the forms in the table of the kinds of facts. Pure.

A value is taken only if the clause states it of one certain person: not if it is asked, supposed, denied,
over, quoted or doubted.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from agents.fact_kinds import BY_NAME
from agents.local.reading import readers
from agents.local.reading.clauses import MIXED, NOBODY, PERSON, RELATIVES, Clause, holds
from agents.utterance import word_set

_ADVERBS: Final = (
    r"(?:(?:also|now|currently|actually|still|already|just|only|really|both|unfortunately|basically|always"
    r"|a|an|been|quite|strictly|strict|fully|severely|badly|mildly|lifelong|proud|usually|normally|generally"
    r"|typically|regularly|mostly|by the way|btw|have always|as you know),? )*"
)
_KIN: Final = (
    rf"\b(?:my|our) (?:[\w-]+ ){{0,2}}?(?:{RELATIVES})(?:[ -]in[ -]law)?(?:,? [a-z]+,?)??(?:,?"
    rf" \(?\d{{1,2}}\)?,?)?|\bhe|\bshe"
    r"|\b(?:mum|mom|dad|gran|nan|grandma|grandad)"
)
_THEY: Final = rf"(?:{_KIN}|^[a-z]+)"
_SUBJECTS: Final = {
    "<am>": rf"(?:(?P<i>\bi(?:'m| am|'ve been| have been))|(?P<they>{_THEY}(?:'s| is| are| has been))) "
    rf"{_ADVERBS}",
    "<be>": rf"(?:(?P<i>\bi(?:'m| am))|(?P<they>{_THEY}(?:'s| is| are))) {_ADVERBS}",
    "<have>": rf"(?:(?P<i>\bi(?:'ve (?:also )?got|'ve (?:also |always )?had| have(?: also)?(?: got| had)?"
    rf"| got))|(?P<they>{_THEY}(?:'s got|'s had| has(?: also)?(?: got| had)?| have))) {_ADVERBS}",
    "<do>": rf"(?:(?P<i>\bi(?='ve|'d|'m| )) ?|(?P<they>{_THEY}) ){_ADVERBS}",
    "<my>": rf"(?:(?P<i>\b(?:my|our)) |(?P<they>{_THEY}'s|\b(?:his|her)) )",
}
_BARE: Final = {
    "<am>": rf"^(?:(?:am|is|being) )?{_ADVERBS}",
    "<have>": rf"^(?:(?:have|has|got|having|with) )?{_ADVERBS}",
    "<do>": rf"^{_ADVERBS}",
}
"""The same without a subject: it is the one of the clause before, or the writer."""

_DOUBTS: Final = re.compile(
    r"\b(?:(?:scared|afraid|worried|terrified|convinced|paranoid|anxious) (?:that )?(?:i|he|she)"
    r"|maybe|perhaps|probably|possibly|i think|i thought|i guess|not sure|might|may have|could|would be"
    r"|wish|hope|hoping|almost|nearly|jok(?:e|ing)|kidding|pretend|imagine|trying to|want to be|used to think"
    r"|thinks|reckons|suspects?|suspected|feels? like|as if|seems?|supposed to|should|about to|going to"
    r"|planning|thinking of|considering|becoming|want to become|not that|if|unless|whether|ever since we"
    r"|the (?:leaflet|article|website|book|film)|apparently|allegedly)\b"
)
_SINCE: Final = (
    r"(?:ever )?since (?:childhood|birth|infancy|(?:about |around )?(?:\w+ )?(?:19|20)\d\d"
    r"|(?:i|he|she) (?:was|were) (?:an? |about |in )?[\w' ]{2,25}|my \w+(?: \w+)?|last \w+|the \w+|early"
    r" \w+|school)"
    rf"|for (?:about |over |around |more than |nearly |almost |the (?:last|past) )*{readers.SPAN}"
    r"|all (?:my|his|her) life|my whole life|from birth|these (?:\d+|\w+) years"
)
_AT: Final = (
    rf"(?:back )?in (?:early |late |mid[- ]?|the )?(?:{readers.MONTH} )?(?:of )?(?:19|20)\d\d"
    rf"|{readers.SPAN} (?:ago|back)|last (?:year|month|week|spring|summer|autumn|winter|christmas"
    rf"|{readers.MONTH})"
    r"|(?:this|earlier this) (?:year|month|week)|in my (?:teens|twenties|thirties|forties|fifties|sixties)"
    rf"|in {readers.MONTH}|at (?:the )?age (?:of )?\d{{1,2}}|when (?:i|he|she) was (?:an? )?[\w ]{{1,20}}"
    r"|as an? (?:child|kid|baby|teenager|boy|girl|toddler)|at \d{1,2}\b|(?:just )?(?:yesterday|today)"
)
_WHEN: Final = re.compile(rf"\b(?:{_SINCE}|{_AT})(?!\w)")
_LASTS: Final = re.compile(rf"\b(?:{_SINCE})(?!\w)")
_DIAGNOSED: Final = re.compile(r"\b(?:diagnosed|found out|told i have|started|began|fitted|put on)\b")
_NEXT: Final = re.compile(r",\s*(?:and |but |plus |also )*|\s+(?:and|but|plus)\s+(?:also )?")
_VERB: Final = (
    r"(?:'m| am|'ve got|'ve had| have got| have had| have|'s got| has got| has|'s| is| take| takes)"
)
_HEAD: Final = re.compile(
    rf"(?:(?:and|but|so|also|oh|well|yes|because|as|plus),? )*(?:(?P<who>i|{_KIN})(?P<verb>{_VERB})?"
    rf"|(?P<name>[a-z]+)(?P<does>{_VERB}))(?= )"
)
_IS: Final = ("'m", " am", "'s", " is")
_SUBJECT: Final = re.compile(
    r"(?:(?:and|but|so|because|that) )*(?:i|i'm|i've|i'd|we|we're|they|he|she|it|it's|he's|she's|my|our"
    r"|his|her|you|your|there"
    r"|there's|the|this|that|these|those|what|people|someone|some|if|when)(?!\w)"
)
_OWN_VERB: Final = re.compile(
    r"(?:been on|been taking"
    r"|take|takes|have|has|am|is|work|works|live|lives|smoke|smokes|drink|drinks|don't|doesn't|do not|never"
    r"|used|use|uses|was|had|can't|eat|eats|speak|speaks|need|needs|wear|wears|avoid|avoids|prefer|prefers"
    r"|stopped|quit|suffer|suffers|go|goes|run|runs|walk|walks)\b"
)
_WHEN_THEN: Final = re.compile(r"\b(?:since|when|until|till|if|while|whether|before|after)\W*$")
_GOES_ON: Final = re.compile(r"\b(?:so|because|but|and|who|as|in case)\b|,")
_NO_NAME: Final = re.compile(r"(?:there|it|that|this|what|who|which|here|everything|nothing|all|some|one)\b")
_WOMEN: Final = word_set(
    "mum mom mother mam mummy mommy sister daughter wife girlfriend gran nan grandma grandmother aunt niece"
    " girl gf"
)
_MEN: Final = word_set(
    "dad father daddy papa brother son husband boyfriend grandad grandfather uncle nephew boy bf"
)
_QUOTES: Final = re.compile(r"[\"\u201c\u201d\u00ab]")
_THIRD_PERSON: Final = {"have": "has", "go": "goes", "do": "does"}
_DENYING: Final = re.compile(r"n't|\b(?:never|no|not|afraid|fear|phobia|quit|stopped|non|avoids)\b")
_DROPPED: Final = " ,.-"


@dataclass(frozen=True, slots=True)
class Stated:
    """A value that a clause states, whose it is, and since when or when, as it was told."""

    value: str
    who: str
    when: str = ""


def when_true(low: str) -> str:
    """The words that say when or since when something is so; empty if there are none."""
    found = _WHEN.search(low)
    return found[0].strip()[:120] if found else ""


def stated(kind: str, clause: Clause, *, every: bool = False) -> list[Stated]:
    """The values of a kind that a clause states, each once; those of all its forms and parts with `every`."""
    row = BY_NAME[kind]
    if clause.asked or clause.may_ask or _QUOTES.search(clause.text):
        return []
    found: dict[str, Stated] = {}
    for low in variants(clause.low):
        for pattern, template, denies in _forms(kind):
            match = pattern.search(low)
            if match is None:
                continue
            who = "" if _WHEN_THEN.search(low[: match.start()]) else owner(match, clause)
            start, end = match.span("v") if "v" in match.groupdict() and not denies else match.span()
            if not who or not is_stated(low[:start], low[end:], of_the_past=row.of_the_past):
                continue
            when = when_true(_around(match, low))
            value = _value(match, template, clause.text, when)
            when = "" if value in when else when
            if value and (every or not any(value.lower() in each.lower() for each in found)):
                found.setdefault(value, Stated(value, who, when))
            if not every:
                break
        if found and not every and low == clause.low:
            break
    return list(found.values())


def variants(low: str) -> Iterator[str]:
    """A clause, and each of its parts as a clause of its own: `I'm 40 and vegetarian`, `I'm vegetarian`."""
    yield low
    head = _HEAD.match(low)
    subject = (head["who"] or head["name"]) if head else ""
    verb = (head["verb"] or head["does"] or "") if head else ""
    start = head.end() if head else 0
    for number, part in enumerate(_NEXT.split(low[start:])):
        part = part.strip(_DROPPED)
        if not part or part == low:
            continue
        if not subject:
            yield part
        elif number and _OWN_VERB.match(part):
            yield f"{subject} {part}"
        elif verb:
            yield f"{subject}{verb} {part}"
        beside, with_, had = part.partition(" with ")
        if with_ and beside and verb in _IS:
            yield f"{subject} {'have' if subject == 'i' else 'has'} {had}"


def owner(match: re.Match[str], clause: Clause) -> str:
    """Whose the statement is; empty if that is not certain."""
    named = match.groupdict()
    if named.get("i"):
        return PERSON if clause.who in (PERSON, MIXED, NOBODY) else ""
    if named.get("they"):
        if _NO_NAME.match(named["they"]):
            return ""
        is_other = clause.who not in (PERSON, MIXED, NOBODY, "he", "she")
        return clause.who if is_other and _can_be(named["they"], clause.who) else ""
    if _SUBJECT.match(match.string):
        return ""
    return clause.who if clause.who not in (MIXED, NOBODY, "he", "she") else ""


def _around(match: re.Match[str], low: str) -> str:
    """What belongs to a value: from the comma before it to the comma after it."""
    start, end = match.span("v") if "v" in match.groupdict() else match.span()
    after = low.find(",", start)
    return low[low.rfind(",", 0, start) + 1 : after if after >= 0 else max(end, len(low))]


def _can_be(they: str, who: str) -> bool:
    """Whether `he` or `she` can mean somebody."""
    pronoun = they.partition("'")[0].split()[0]
    wrong = {"he": _WOMEN, "his": _WOMEN, "she": _MEN, "her": _MEN}.get(pronoun)
    return wrong is None or who not in wrong


def is_stated(before: str, after: str, *, of_the_past: bool = False) -> bool:
    """Whether what stands around a value leaves no doubt that it is so."""
    if _DOUBTS.search(f"{before} {after}"):
        return False
    rest = f"{before} {_GOES_ON.split(after)[0]}"
    keeps = _WHEN if of_the_past or _DIAGNOSED.search(rest) else _LASTS
    return holds(keeps.sub(" ", rest), of_the_past=of_the_past)


def _value(match: re.Match[str], template: str, text: str, when: str) -> str:
    groups = {name: _as_written(found, text) for name, found in match.groupdict().items() if found}
    if template.startswith("^") and not re.search(r"[A-Z0-9@]", groups["v"]):
        return ""
    value = template.lstrip("^").format_map({"v": "", "r": "", **groups})
    if when and when in value.lower():
        value = re.sub(re.escape(when), "", value, flags=re.IGNORECASE)
    if template.startswith("~"):
        value = _third_person(value[1:])
    value = re.sub(r"^((?:is|works as) a) (?=[aeiou])", r"\1n ", value)
    return " ".join(value.split()).strip(_DROPPED)[:160]


def _as_written(found: str, text: str) -> str:
    """What was matched in lower case, with the letters of the text."""
    written = re.search(re.escape(found), text, re.IGNORECASE)
    return written[0] if written else found


def _third_person(value: str) -> str:
    """A value with its first verb in the third person: `smokes 10 a day`."""
    verb, _, rest = value.partition(" ")
    if verb == "still":
        return f"still {_third_person(rest)}"
    if not verb.endswith("s"):
        verb = _THIRD_PERSON.get(verb, f"{verb}s")
    return f"{verb} {rest}".strip()


@cache
def _forms(kind: str) -> tuple[tuple[re.Pattern[str], str, bool], ...]:
    """The forms of a kind: the pattern, the value, and whether the form itself denies or fears something."""
    found = []
    for pattern, template in BY_NAME[kind].states:
        denies = _DENYING.search(pattern.partition("(?P<v>")[0]) is not None
        found.append((_compiled(pattern, _SUBJECTS), template, denies))
        if pattern.startswith(tuple(_BARE)):
            found.append((_compiled(pattern, {**_SUBJECTS, **_BARE}), template, denies))
    return tuple(found)


def _compiled(pattern: str, subjects: Mapping[str, str]) -> re.Pattern[str]:
    for name, form in subjects.items():
        pattern = pattern.replace(name, form)
    return re.compile(pattern)
