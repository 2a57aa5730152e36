"""Whose complaint it is: the person's own, or that of somebody they speak of."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agents.local.lexicon import Mention, Word, word_set

SELF: Final = "self"
"""Said of the person who writes."""

ANOTHER: Final = "another"
"""Said of `he` or `she`, where the message does not say who that is."""

_OF_SELF: Final = word_set("i i'm i've i'd i'll im ive me myself we we're we've")
_OF_ANOTHER: Final = word_set("he she he's she's his her him hers he'd she'd he'll she'll himself herself")
_OWNERS: Final = word_set("my our the a an")
_BEFORE_SUBJECT: Final = word_set(
    ". , ; : - ! ? ( and but so because cos cause that hi hello hey it's is for about actually now today "
    "yesterday lately then help please meant mean as think plus also though although while whilst well ok "
    "okay"
)
_NOT_THE_ONE: Final = word_set(
    "says said say thinks think thought told tells reckons noticed wants wanted works worked died passed "
    "suggested or recommended insists worries"
)
_DONE_TO_SELF: Final = word_set(
    "made makes gave gives took takes drove drives left bought asked asks brought"
)
_TOGETHER: Final = word_set("i me myself i've i'm")
_NOT_OWN: Final = word_set(
    "doctor gp nurse dentist pharmacist therapist boss manager surgeon consultant physio midwife question"
)
_SAID_FOR: Final = re.compile(
    r"\b(?:it's|it is|this is|that's|asking|calling|writing|question is|worried|concerned|i mean"
    r"|i meant|not me,? (?:it's|but)?|not mine,? (?:it's|but)?|talking"
    r"|(?:appointment|booking|visit|letter|form|note|referral|prescription|claim|test)(?: is|'s| was)"
    r"(?= (?:actually |really )?for ))"
    r"(?: actually| really)?(?: for| about| on behalf of)? (?:my|our|the) "
    r"((?:[\w'-]+ ){0,4}?)$",
    re.IGNORECASE,
)
_BORROWED: Final = word_set("of with from took take taken used use have had")
_YEARS_OLD: Final = re.compile(
    r"\b(?:my|our|the) (\d{1,2}(?:[ -](?:years?|months?|weeks?|days?|yr)[ -]old|[ -]?y(?:o|/o|\.o\.?)))(?!\w)"
)


def subjects(words: Sequence[Word], mentions: Sequence[Mention], stated: str) -> tuple[tuple[int, str], ...]:
    """Where in a text it begins to be about whom, by the places of its words."""
    return tuple(sorted(_subjects(words, mentions, stated)))


def _subjects(words: Sequence[Word], mentions: Sequence[Mention], stated: str) -> Iterator[tuple[int, str]]:
    texts = [word.text for word in words]
    relatives = [each for each in mentions if each.group == "people.relatives"]
    for each in relatives:
        if (who := _as_subject(each, texts, words, stated)) is not None:
            yield each.first, who
    named = {at for each in relatives for at in range(each.first, each.last)}
    for found in _YEARS_OLD.finditer(stated.lower()):
        at = next((i for i, word in enumerate(words) if word.start == found.start(1)), 0)
        end = next((i for i, word in enumerate(words) if word.start >= found.end()), len(words))
        if end not in named:
            yield at, re.sub(r"[ -]+", " ", re.sub(r"[ -]?y[/.]?o\.?$", " year old", found[1]))
    latest = ANOTHER
    for at, text in enumerate(texts):
        if at in named:
            latest = next(_name(each, words, stated) for each in relatives if each.first <= at < each.last)
        elif text in _OF_ANOTHER and not (at and texts[at - 1] in _BORROWED):
            yield at, latest
        elif text in _OF_SELF or (text in ("my", "our") and _is_own(texts, at, named)):
            yield at, SELF


def _is_own(texts: list[str], at: int, named: set[int]) -> bool:
    """Whether `my` says that something is the person's own: `my knee`, not `my little son` or `my doctor`."""
    ahead = texts[at + 1 : at + 4]
    relative = named & set(range(at + 1, at + 4)) and not set(ahead) & {",", "and", "my"}
    return not relative and not (ahead and (ahead[0] in _NOT_OWN or ahead[0][0].isdigit()))


def _name(mention: Mention, words: Sequence[Word], stated: str) -> str:
    name = stated[words[mention.first].start : words[mention.last - 1].end].lower().removesuffix("'s")
    ahead = words[mention.last].text if mention.last < len(words) else "."
    one = name.removesuffix("s")
    if one == name or name in _NAMED_WITH_S or (one not in _ONLY_ONE and ahead in _OF_SEVERAL):
        return name
    return one  # `my daughters arm` is that of one


_NAMED_WITH_S: Final = word_set("kids twins gramps pops missus")
_ONLY_ONE: Final = word_set(
    "mum mom mam mother dad father husband wife girlfriend boyfriend gf bf partner spouse hubby baby"
)
_OF_SEVERAL: Final = word_set(
    ". , ; : - ! ? ( are aren't were weren't have haven't do don't did didn't both all and or who that keep "
    "feel get want need seem can can't could will won't would say said think had just also each always never "
    "still of in with at as too"
)
"""What stands behind more than one: `my daughters have`."""


def _as_subject(mention: Mention, texts: list[str], words: Sequence[Word], stated: str) -> str | None:
    """The relative where a clause begins with them; None where they only say, give or are named."""
    name = _name(mention, words, stated)
    first = mention.first
    while first > 0 and mention.first - first < 5 and texts[first] not in _OWNERS:
        first -= 1
    owned = texts[first] in _OWNERS
    if not owned:
        first = mention.first
    after = texts[mention.last : mention.last + 4]
    if after[:2] and after[0] == "and" and after[1] in _TOGETHER:
        return SELF
    if after[:1] and after[0] in _NOT_THE_ONE:
        return None
    if after[:1] and after[0] in _DONE_TO_SELF and {"me", "us", "my"} & set(after):
        return None
    if after[:2] == ["of", "mine"]:
        return name
    if owned and texts[first] in ("a", "an"):
        return None
    begins = first == 0 or texts[first - 1] in _BEFORE_SUBJECT
    return name if begins or _SAID_FOR.search(_before(stated, words[mention.first].start)) else None


def _before(stated: str, start: int) -> str:
    return stated[max(0, start - 80) : start]


def owner(found: Sequence[tuple[int, str]], at: int) -> str:
    """Of whom the words at a place are said; nothing where no one was named before."""
    return next((who for place, who in reversed(found) if place <= at), "")


def named_outright(found: Sequence[tuple[int, str]], words: Sequence[Word], stated: str) -> str:
    """Who a message names as the one it is for: `brother` of `sorry, I meant my brother`."""
    for at, who in found:
        if who not in (SELF, ANOTHER) and _SAID_FOR.search(_before(stated, words[at].start)):
            return who
    return ""
