"""Which of what a question offers a reply picks: one, both, none, or a yes and a no for each."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agents.local.lexicon import Lexicon, word_set
from agents.local.reading import Said
from agents.questions import Question

_AROUND: Final = " .,;:!?'\"()*-~\u2026"
_LIGHT: Final = word_set(
    "please the a an it it's its is more of one i i'd think say on in at my mostly kind sort rather "
    "prefer just definitely ones side that's usually for to and or"
)
_WEAK: Final = word_set(
    "come comes came go goes get gets feel feels start starts keep keeps stay stays make makes with your you"
)
_ORDINAL: Final = re.compile(
    r"(?:(?:just|only|probably|definitely|maybe|i'd say|i think) )*(?:the )?"
    r"(first|1st|former|second|2nd|latter|third|3rd|middle|last)(?: (?:one|option|two))?(?=$|[,.;!]| (?:but"
    r"|please"
    r"|i|really|for|though|and))"
)
_TURNS_DOWN: Final = word_set("not no make makes made helps neither")
_NUMERALS: Final = {"1": "one", "2": "two", "3": "three"}
_TWO: Final = re.compile(r"(?:yes,? )?(?:to )?(?:just |only )?(?:the )?(first|last) two\b")
_PLACES: Final = {
    "first": 0,
    "1st": 0,
    "former": 0,
    "second": 1,
    "2nd": 1,
    "third": 2,
    "3rd": 2,
    "latter": -1,
    "last": -1,
}
_PARTS: Final = re.compile(r"\s*(?:[,;.]|\bbut\b|\band\b)\s*")
_TOLD_APART: Final = re.compile(r",\s*(yes|no|yeah|nope)(?=\s*(?:[.,;]|$|\bbut\b|\band\b))")
_YES: Final = re.compile(r"\b(?:yes|yeah|yep|definitely|sure)\b")
_NO: Final = re.compile(
    r"\b(?:no|not|none|nope|never|without|neither|didn't|doesn't|isn't|don't|haven't"
    r"|hasn't|wasn't)\b"
)
_OTHERS: Final = re.compile(r"\b(?:the )?(?:others?|other (?:two|three|one|ones)|rest|remaining)\b")
_REST_NO: Final = re.compile(
    r"\b(?:others?|rest|else|other (?:two|three|one|ones))\b[ ,]*(?:no\b|not\b)|\bnot the (?:others?|rest)\b"
    r"|\bnothing else\b"
)
_SOME_OF_IT: Final = re.compile(r"(?:just |only )?(?:a )?(?:bit|little|some|lot) (?:of )?")
_ALL_NO: Final = re.compile(
    r"(?:no|nope|not?)(?:,? (?:to|for))? (?:both|either|all|any|all of (?:them|those|these))(?: of (?:them"
    r"|those|these))?"
    r"|neither(?: of (?:them|those|these)| one| really)?|none(?: of (?:them|those|these|that|the above))?"
    r"|both no"
)
_ALL_YES: Final = re.compile(
    r"(?:yes(?:,? (?:to|for))? )?(?:both|all(?: of (?:them|those|these|the above))?|all (?:two"
    r"|three))(?: of (?:them|those|these))?"
)
_ALL_BUT: Final = re.compile(
    r"(?:all|everything|anything|any|both)(?: of (?:them|those|these))?"
    r" (?:bar|except(?: for)?|but|apart from) (.+)"
)


class Picks:
    """Finds what is picked, with the words of the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._said = {name: lexicon.group(f"replies.{name}") for name in ("both", "neither")}

    def says_both(self, small: str) -> bool:
        """Whether a reply is a mere `both`."""
        return small in self._said["both"]

    def picked(self, small: str, question: Question) -> Said | None:
        """One, both or none of what was offered, by its place or as a whole."""
        options = question.options
        if not options:
            return None
        bare = small.strip(_AROUND)
        if option := by_place(bare, options):
            return as_choice(question, option)
        if bare.startswith("both") and len(options) > 2:
            return None  # of three, nobody knows which two
        if bare in self._said["both"] or re.match(r"both\b(?! \w+s\b)(?!,? but\b)", bare):
            return as_choice(question, _joined(options, "and", "both" if len(options) == 2 else "all of"))
        if bare in self._said["neither"]:
            return as_choice(question, f"neither {_joined(options, 'nor', '')}")
        return None


def by_place(small: str, options: Sequence[str]) -> str:
    """The option that a reply names by its place: `the second`, `option b`."""
    bare = small.strip(_AROUND)
    if lettered := re.fullmatch(r"(?:option |answer |number )([abc123])", bare):
        at = "abc123".index(lettered[1]) % 3
        return options[at] if at < len(options) else ""
    place = _ORDINAL.match(bare)
    if place and place[0].endswith(" two"):
        return ""
    return _at(options, place[1]) if place and options else ""


def _at(options: Sequence[str], ordinal: str) -> str:
    if ordinal == "middle":
        return options[1] if len(options) == 3 else ""
    place = _PLACES[ordinal]
    return options[place] if place < len(options) else ""


def verdicts(small: str, options: Sequence[str]) -> Mapping[str, bool]:
    """A yes or no for each of several things asked after: `nausea yes, the other two no`."""
    bare = _TOLD_APART.sub(r" \1", small.strip(_AROUND))
    if len(options) < 2:
        return {}
    if len(options) > 2 and re.fullmatch(r"(?:yes,? (?:to |for )?)?both(?: of (?:them|those|these))?", bare):
        return {}
    if (two := _TWO.match(bare)) and len(options) > 2:
        return dict.fromkeys(options[:2] if two[1] == "first" else options[-2:], True)
    if one := by_place(bare, options):
        only = re.match(r"just|only", bare) is not None
        return {option: option == one for option in options if only or option == one}
    if _ALL_NO.fullmatch(bare) or _ALL_YES.fullmatch(bare):
        return dict.fromkeys(options, _ALL_YES.fullmatch(bare) is not None)
    if (but := _ALL_BUT.fullmatch(bare)) and (left_out := _named(but[1], options)):
        return {option: option not in left_out for option in options}
    given: dict[str, bool] = {}
    placed = False
    for part in _PARTS.split(bare):
        no = _NO.search(part) is not None
        named = _named(part, options)
        if no == (_YES.search(part) is not None):
            if named and not no and (_REST_NO.search(bare) or _SOME_OF_IT.match(part)):
                given |= dict.fromkeys(named, True)  # `a bit of discharge, the rest no`
            continue
        if not named and (place := re.search(r"\b(first|second|third|last|former|latter)\b", part)):
            named = [each for each in (_at(options, place[1]),) if each]
            placed = bool(named)
        if not named and (_OTHERS.search(part) or part == "nothing else") and given:
            named = [each for each in options if each not in given]
        given |= dict.fromkeys(named, not no)
    if given and not any(given.values()):  # `not my head, just my back`
        for part in _PARTS.split(bare):
            claimed = [] if _NO.search(part) else _named(part, options)
            given |= {
                option: True for option in claimed if option not in given and not says_more(part, option)
            }
    return given if len(given) > 1 or placed else {}


def _named(part: str, options: Sequence[str]) -> list[str]:
    words = set(re.findall(r"[\w']+", part))
    return [
        option
        for option in options
        if any(_same(word, own) for word in words for own in _own(option, options) - _WEAK)
    ]


def chosen(small: str, question: Question) -> str:
    """The one option whose own words a reply has; not one of which it has only `comes`."""
    words = set(re.findall(r"[\w']+", small)) - {"for", "in", "on", "at", "the", "to", "a"}
    if _TURNS_DOWN & words or any(word.endswith("n't") for word in words) or _ALL_BUT.match(small):
        return ""
    words = {_NUMERALS.get(word, word) for word in words}
    scores = {}
    for option in question.options:
        own = _own(option, question.options)
        met = {mine for mine in own for each in words if _same(each, mine)}
        scores[option] = len(met) if met - _WEAK or met == own else 0
    best = max(scores, key=lambda option: scores[option], default="")
    if not best or not scores[best] or sum(1 for score in scores.values() if score == scores[best]) > 1:
        return ""
    return best


def says_more(small: str, option: str) -> bool:
    """Whether a reply says more than the option that it picks."""
    words = set(re.findall(r"[\w']+", small))
    return bool(words - _LIGHT - set(re.findall(r"[\w']+", option)))


def as_choice(question: Question, value: str, words: str = "") -> Said:
    """An option as the value of what was asked, in the person's `words` where those say more."""
    kind = next((each for each in question.kinds), "")
    return Said(kind, " ".join((words or value).split()).strip(_AROUND)[:200], value)


def _own(option: str, options: Sequence[str]) -> set[str]:
    others = {word for other in options if other != option for word in re.findall(r"[\w']+", other)}
    return set(re.findall(r"[\w']+", option)) - others - {"and", "or", "in", "the", "of", "a"}


def _same(one: str, other: str) -> bool:
    return one == other or (
        min(len(one), len(other)) >= 4 and (one.startswith(other[:-1]) or other.startswith(one[:-1]))
    )


def _joined(options: Sequence[str], word: str, lead: str) -> str:
    listed = f"{', '.join(options[:-1])} {word} {options[-1]}" if len(options) > 1 else options[0]
    return f"{lead} {listed}".strip()
