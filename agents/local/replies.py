"""What a message says in reply to the questions before it: yes, no, one of them, a number, a word or two."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from agents.local.forms import of_another_kind
from agents.local.holding_apart import excepts, held_apart
from agents.local.lexicon import Lexicon, word_set, words_of
from agents.local.patterns import FIGURE, HAS_MOMENT, HAS_SPAN, MEASURE, NUMBERS, OFTEN, READING, SPAN
from agents.local.picks import Picks, as_choice, by_place, chosen, says_more, verdicts
from agents.local.ratings import NUMBER, figures, number_now, rating, spelled_out
from agents.local.reading import Said, Text, with_change
from agents.local.slots import NAMED, fits, listed
from agents.local.sways import swayed
from agents.questions import Question
from agents.sexes import MALE, sex_said
from agents.utterance import asks_back
from agents.values import LISTS, NONE

Stance: TypeAlias = Literal["yes", "some", "no", "unsure", "refusal", ""]

_MARKS: Final = frozenset(".,;:!?'\"()*-~\u2026")
_AROUND: Final = " .,;:!?'\"()*-~\u2026"
_BEGINS_ANEW: Final = re.compile(
    r"(?:please|i (?:want|need|would like|have a question)|i'd like|can you|could you|let's|help me"
    r"|(?:get|give|find) me an? (?:human|person|agent|operator|nurse|doctor))\b",
    re.IGNORECASE,
)
_MOST_ANSWER: Final = 160
_ONE: Final = re.compile(r"(?:only |just |the |my |it's )*(\w+) (?:one|ones)")
_SIDE: Final = re.compile(
    r"\b(left|right|both|either|upper|lower|front|top|bottom|inner|outer|inside|outside|middle|centre"
    r"|center)\b"
)
_WORDS_OF_SEVERITY: Final = re.compile(
    r"\b(?:(?:very|really|pretty|quite|so|extremely|not (?:too|that|so|very)|fairly|rather|super"
    r"|moderately) )*"
    r"(?:bad|mild|moderate|severe|strong|unbearable|terrible|awful|intense|excruciating|horrible"
    r"|light|low|high|worst|manageable"
    r"|bearable|tolerable|annoying|medium|minor|weak|painful|agonizing|slight|killing me)\b",
    re.IGNORECASE,
)
_PAINLESS: Final = re.compile(
    r"\b(?:doesn't|does not|don't|didn't) (?:really |actually )?hurt(?! as| more| when| if)\b|\bno pain\b"
    r"|\bpainless\b|\bnot painful\b",
    re.IGNORECASE,
)
_COMPARES: Final = re.compile(r"\b(?:as|so) (?:bad|severe|strong|painful|intense) as\b", re.IGNORECASE)
_WORSE: Final = re.compile(
    r"\b(better|worse|the same|no change|unchanged|improv\w+|about the same|same)\b", re.IGNORECASE
)
_PASSING: Final = frozenset(("frequency",))
_PARTS: Final = re.compile(r"(?:[,;.]| and| but)+ (?:and |but )?")
_TO_ALL: Final = re.compile(
    r"(?:to |for )?(?:both|all|either|any|all of (?:them|those))(?: of (?:them|those))?", re.IGNORECASE
)
_TIMES: Final = frozenset(("onset", "duration"))
_LIMIT: Final = re.compile(r" (?:at (?:most|least|best)|max|tops|maximum|minimum|if that|on a good \w+)$")
_FIGURED: Final = frozenset(("age", "readings", "measures"))
_THAT_ONE: Final = re.compile(
    r"\b(?:the (?:\w+ )?|this |that |which |each |every |last )one\b", re.IGNORECASE
)
_ALONG: Final = re.compile(r"\b(\d{1,2} (?:weeks?|months?))\b(?! ago)", re.IGNORECASE)


TAKES_IT: Final = re.compile(
    r"\b(?:i|he|she)(?:'m| am|'s| is)?(?: only| just| also| still| do)? (?:takes?|taking|on)\b", re.IGNORECASE
)
"""What says that something is taken, whatever was asked: `i take aspirin` names no allergy."""


@dataclass(frozen=True, slots=True)
class Reply:
    """How a message answers: what it says, and the question to which it says it.

    `verdicts` are a yes or no for each of the things that the question lists, `items` what the reply lists;
    what it says `elsewhere` leaves the question open.
    """

    question: Question
    said: Said
    stance: Stance = ""
    verdicts: Mapping[str, bool] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    elsewhere: bool = False


class Replies:
    """Reads replies with the words of the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        groups = {"no": "no", "yes": "yes", "some": "some", "unsure": "unsure", "refusals": "refusal"}
        entries = [
            (tuple(word.text for word in words_of(entry)), stance)
            for group, stance in groups.items()
            for entry in lexicon.group(f"replies.{group}")
        ]
        self._stances: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for parts, stance in sorted(entries, key=lambda each: -len(each[0])):
            self._stances.setdefault(parts[0], []).append((parts, stance))
        self._fillers: dict[str, list[tuple[str, ...]]] = {}
        for entry in sorted(lexicon.group("replies.fillers"), key=len, reverse=True):
            filler = tuple(word.text for word in words_of(entry))
            self._fillers.setdefault(filler[0], []).append(filler)
        self._picks = Picks(lexicon)
        self._outright = lexicon.group("replies.outright")
        self._lexicon = lexicon
        self._body = lexicon.group("body.parts")

    def stance(self, text: str) -> tuple[Stance, str]:
        """Whether a text begins with a yes, a no or another stance, and what follows it."""
        words = words_of(text)
        texts = tuple(word.text for word in words)
        at = 0
        while at < len(texts) and texts[at] in _PARTICLES:
            at += 1
        for parts, stance in self._stances.get(texts[at], ()) if at < len(texts) else ():
            end = at + len(parts)
            if texts[at:end] != parts or not self._stands_alone(parts, texts[end : end + 1]):
                continue
            rest = text[words[end].start :] if end < len(words) else ""
            return stance, rest.lstrip(_AROUND)  # type: ignore[return-value]
        return "", text

    def _stands_alone(self, parts: tuple[str, ...], following: tuple[str, ...]) -> bool:
        """Whether the words of a stance are one here: `right.`, not `right now`; `no`, not `no fever`."""
        if not following or following[0] in _BREAKS:
            return True
        if parts[0] in ("no", "none", "nothing") and len(parts) == 1:
            return following[0] in _AFTER_NO
        if following[0] in ("it", "that", "the", "this", "my", "i", "they", "he", "she"):
            return parts[0] in ("yes", "yeah", "yep", "yup", "no", "nope", "nah")
        return " ".join(parts) in self._outright

    def bare(self, text: str) -> str:
        """A short reply without what only leads up to it: `the left one` of `um, I think the left one`."""
        text = text.strip(_AROUND)
        words = words_of(text)
        texts = tuple(word.text for word in words)
        at = 0
        while at < len(texts):
            ahead = len(texts) - at
            size = next(
                (
                    len(each)
                    for each in self._fillers.get(texts[at], ())
                    if len(each) < ahead
                    and texts[at : at + len(each)] == each
                    and not (each == ("like",) and texts[at + 1] in ("a", "an"))
                ),
                1 if texts[at] in _MARKS and ahead > 1 else 0,
            )
            if not size:
                break
            at += size
        return _TRAILING.sub("", text[words[at].start :].lstrip(_AROUND)) if at < len(words) else text

    def read(
        self, text: Text, asked: Sequence[Question], known: Mapping[str, str], found: Sequence[Said]
    ) -> tuple[Reply, ...]:
        """The replies in a message; `found` is what it says by itself, which need not be asked again."""
        message = text.whole.strip()
        if not asked or text.injected or not text.stated:
            return ()
        numbers = [question for question in asked if question.numeric and "measures" not in question.kinds]
        if len(numbers) > 1 and (together := self._in_order(text, numbers)):
            return together
        if len(asked) == 1 and (other := self._elsewhere(text, asked[0], known, found)) is not None:
            return other
        if apart := tuple(self._beside_a_no(text, asked[-1], known, found)):
            return apart
        if outright := tuple(self._outspoken(text, asked, found)):
            return outright
        stated = {each.kind for each in found}
        replies: list[Reply] = []
        open_ones = [question for question in asked if not _covered(question, stated)]
        if "age" in stated:  # `she's 7` rates nothing
            open_ones = [question for question in open_ones if "severity" not in question.kinds]
        for question in open_ones:
            replies += self._typed(text, question, known, alone=len(asked) == 1)
        if replies or (stated and len(asked) > 1):
            done = {reply.question for reply in replies}
            left = [each for each in open_ones if each not in done and each.form == "polar"]
            return (*replies, *self._later_stances(text.stated, left))
        stance, rest = self.stance(text.stated or message)
        if not stance:
            stance, rest = self.stance(self.bare(text.stated or message))
        if not stance and (behind := _STANCE_BEHIND.search(text.stated)):  # `there's a chance, yes`
            stance, rest = self.stance(behind[1])[0], text.stated[: behind.start()]
        if not stance and asked[-1].form == "polar" and len(asked[-1].options) < 2:
            denied = _REPEATED_NO.match(text.stated)
            verb = re.escape(denied[1].lower()) if denied else "$^"
            if denied and denied[1].lower() not in _EVERY_VERB and re.search(rf"\b{verb}", asked[-1].core):
                stance, rest = "no", text.stated[denied.end() :].partition(",")[2]
            elif _denies_asked(text.stated, asked[-1]):
                stance, rest = "no", ""
        if stance == "unsure" and len(rest) > 3:
            hedged = Text(rest, self._lexicon)  # `not sure, maybe twenty minutes`
            kind = next(iter(asked[-1].kinds), "")
            by_form = kind in ("", "severity", "age", "pregnancy") or kind in _TIMES
            if not by_form and (HAS_SPAN.search(rest) or NUMBER.search(rest)):
                return (Reply(asked[-1], Said(kind, self.bare(rest))),)
            for question in open_ones:
                if again := tuple(self._typed(hedged, question, known, alone=True)):
                    return again
        echoed, further = self.stance(self.bare(rest))
        if echoed in ("yes", "no") and not further:
            rest = ""  # `yes it does`
        if stance == "no" and "associated_symptoms" in asked[-1].kinds and self._denies_else(rest):
            return (Reply(asked[-1], Said("", "", _trim(message))),)
        if stance == "no" and "pregnancy" in stated and asked[-1].form == "open":
            return ()  # `no, not pregnant`, to when the last period was
        polar = [question for question in asked if question.form != "open"] or list(asked[-1:])
        if stance:
            if _BEGINS_ANEW.match(rest) and len(rest) > 40:
                rest = ""
            if _TO_ALL.fullmatch(rest):
                rest = ""
            return tuple(
                self._taken(each, stance, rest, found) for each in (polar if not rest else polar[-1:])
            )
        question = asked[-1]
        if (
            question.form == "polar"
            and not question.kinds
            and stated
            and stated <= _PASSING
            and len(message) <= 30
        ):
            return (Reply(question, Said("", "", ""), "some"),)
        if stated and (not open_ones or len(asked) > 1 or stated & (_TIMES | {"severity"})):
            return ()
        question = (open_ones or list(asked))[-1]
        return tuple(self._free(text, question, found))

    def _elsewhere(
        self, text: Text, question: Question, known: Mapping[str, str], found: Sequence[Said]
    ) -> tuple[Reply, ...] | None:
        """What the whole reply can only be of another kind: `about six weeks`, after what was tried."""
        said = of_another_kind(self.bare(text.stated), question.kinds, self._body)
        if said is None or (said.kind == "location" and "injur" in question.core):
            return None
        if any(each.kind == said.kind for each in found):
            return ()
        again = said.kind in known or (said.kind in _TIMES and known.keys() & _TIMES)
        again = again and known.get(said.kind, said.value) not in said.value  # `left ankle`, of an ankle
        of_nothing = said.kind not in ("dose", "habits") and "concern" not in known
        if of_nothing or (again and said.kind not in LISTS):
            said = Said("", "", _trim(text.stated))
        return (Reply(question, said, elsewhere=True),)

    def _beside_a_no(
        self, text: Text, question: Question, known: Mapping[str, str], found: Sequence[Said]
    ) -> Iterator[Reply]:
        """What a reply names although it begins with a no: `none of those but I'm knackered`."""
        kind = next(iter(question.kinds), "")
        stance, rest = self.stance(text.stated)
        denies = stance == "no" or _DENIES_FIRST.match(text.stated) is not None
        if kind not in _HELD_APART or not denies:
            return
        apart = held_apart(rest if stance else text.stated, whole=not stance)
        bare = self.bare(apart)
        words = Text(bare, self._lexicon)
        told = any(each.kind == kind and each.value != NONE for each in found)
        if set(bare.lower().split()) & set(known.get("concern", "").split()):
            return
        if kind in NAMED and bare and not _BEGINS_CLAUSE.match(bare):
            items = listed(bare, kind, self._lexicon.group("people.relatives"))
            if items:
                yield Reply(question, Said(kind, ""), items=items)
                return
            if not told and re.match(r"i\b", bare, re.IGNORECASE):
                yield Reply(question, Said("", "", _trim(text.stated)))
                return
        if told:  # by itself, and the no is of the rest
            if kind != "associated_symptoms" and stance and excepts(rest):
                yield Reply(question, Said("", ""))
        elif kind in ("triggers", "relief"):
            yield from (Reply(question, said) for said in swayed(words, either="relief" in question.kinds))
        elif kind == "associated_symptoms" and bare:
            feels = _FEELS.fullmatch(apart)
            adjective = feels[1] if feels else bare
            is_felt = feels or adjective.lower() in self._lexicon.group("complaints.adjectives")
            yield Reply(question, Said(kind, f"feeling {adjective.lower()}" if is_felt else apart))
        elif kind == "previous_episodes" and re.match(r"(?:just|only)\b", rest):
            return  # `no, just this week`
        elif kind not in NAMED and bare and fits(kind, bare, words):
            yield Reply(question, Said(kind, bare))

    def _denies_else(self, rest: str) -> bool:
        """Whether a no goes on to deny what nobody asked: `no we haven't been tested`, after symptoms."""
        denied = _REPEATED_NO.match(rest)
        others = {word.text for word in words_of(rest[denied.start(1) :])} - _EVERY_DENIAL if denied else ()
        return bool(others) and not self._lexicon.mentions(words_of(rest))

    def _outspoken(self, text: Text, asked: Sequence[Question], found: Sequence[Said]) -> Iterator[Reply]:
        """Replies whose form tells which part of the question each part of them answers."""
        small = self.bare(text.stated).lower()
        polar = [question for question in asked if question.form == "polar"]
        if len(polar) > 1 and (each := verdicts(small, tuple(question.core for question in polar))):
            for question in polar:
                if question.core in each:
                    kind = question.kinds[0] if question.kinds else ""
                    yield Reply(question, Said(kind, ""), "yes" if each[question.core] else "no")
            return
        question = asked[-1]
        given = verdicts(small, question.options)
        if question.form != "polar" and (len(set(given.values())) < 2 or small.startswith(("both", "all"))):
            given = {}  # one of them is picked, or none
        if given and question.kinds and not any(given.values()):  # `none` of what were only examples
            yield Reply(question, Said(question.kinds[0], ""), "no")
        elif given:
            yield Reply(question, Said("", ""), verdicts=given)
        elif {"triggers", "relief"} & set(question.kinds):
            for said in swayed(text, either="relief" in question.kinds):
                yield Reply(question, said)
        measured = next((each for each in asked if {"measures", "readings"} & set(each.kinds)), None)
        if measured and len(given_ones := _figures(figures(text.stated))) > 1:
            yield Reply(measured, Said(measured.kinds[0], ""), items=tuple(dict.fromkeys(given_ones)))
            return
        if measured and "readings" in measured.kinds and (pair := READING.search(figures(text.stated))):
            yield Reply(measured, Said("readings", pair[1]))
            return
        kind = next((each for each in question.kinds if each in NAMED), "")
        if re.match(r"(?:he|she|they|it|that|this|there|we)\b", text.stated, re.IGNORECASE):
            return  # `he is drinking more` names nothing
        if kind == "allergies" and TAKES_IT.search(text.stated):
            return
        if kind in ("medications", "other_medicines") and (unnamed := _UNNAMED.match(self.bare(text.stated))):
            yield Reply(question, Said(kind, ""), items=(unnamed[1],))
            return
        stance, rest = self.stance(text.stated)
        perhaps = rest and stance == "unsure" and _PERHAPS.match(text.stated)
        if stance and (not rest or stance not in ("yes", "some")) and not perhaps:
            return  # `nope` is the name of nothing
        names = f"possibly {rest}" if perhaps else self.bare(text.stated)
        items = listed(names, kind, self._lexicon.group("people.relatives"))
        if kind == "conditions":  # `high blood pressure, on amlodipine` has one of them
            taken = [each.value for each in found if each.kind == "medications"]
            items = tuple(each for each in items if not any(each in name for name in taken))
        if any(each.kind == "pregnancy" and each.value in items for each in found):
            return  # `I'm nursing`, to what one takes
        if items:
            yield Reply(question, Said(kind, ""), items=items)

    def _later_stances(self, stated: str, asked: Sequence[Question]) -> Iterator[Reply]:
        """The yes or no behind another answer: `in March, and yes it does`."""
        for question, part in zip(
            asked, (p for p in _PARTS.split(stated) if self.stance(p)[0] in ("yes", "no")), strict=False
        ):
            stance, _ = self.stance(part)
            yield Reply(question, Said(question.kinds[0] if question.kinds else "", ""), stance)

    # --- kinds that can be told by their form ---------------------------------------------------------------

    def _in_order(self, text: Text, asked: Sequence[Question]) -> tuple[Reply, ...]:
        numbers = [each[1] for each in NUMBER.finditer(spelled_out(text.stated))]
        if len(numbers) < len(asked):
            return ()
        return tuple(
            Reply(question, _number(question, number))
            for question, number in zip(asked, numbers, strict=False)
        )

    def _typed(
        self, text: Text, question: Question, known: Mapping[str, str], *, alone: bool
    ) -> Iterator[Reply]:
        low, kinds = text.stated, question.kinds
        small = self.bare(low).lower()
        side = _ONLY_SIDE.fullmatch(small) is not None and not question.noun and not chosen(small, question)
        side = side and not self._picks.says_both(small)
        side = side and not by_place(small, question.options)
        placed = ("location" in kinds and not by_place(small, question.options)) or side
        where = self.where(text, question, known, alone=alone) if placed else ""
        if where and fits("location", where, text):
            yield Reply(question, Said("location", where))
            return
        if picked := self._picks.picked(small, question):
            yield Reply(question, picked)
            return
        if "severity" in kinds:
            if rated := rating(low, question.top):
                value = f"{rated}/{question.top}" if re.fullmatch(r"[\d.-]+", rated) else rated
                yield Reply(question, Said("severity", value))
            elif _PAINLESS.search(low):
                yield Reply(question, Said("severity", "no pain"))
            elif "fever" in known.get("concern", "") and (warm := _DEGREES.search(low)):
                yield Reply(question, Said("temperature", warm[0]))
            elif (words := _WORDS_OF_SEVERITY.search(low)) and len(low) <= 60 and not _COMPARES.search(low):
                yield Reply(question, Said("severity", words[0].lower()))
            return
        of_fever = re.search(r"\b(?:fever|temperature)\b", question.core) and not self.stance(low)[0]
        if of_fever and (warm := _DEGREES.search(low)):
            yield Reply(question, Said("temperature", warm[0]))
            return
        if _TIMES & set(kinds):
            low = with_change(low)[0]
            if (moment := HAS_MOMENT.search(low)) and (moment[0].lower() != "may" or "in may" in low.lower()):
                whole = re.match(
                    r"(?:right |just |shortly |soon )?(?:after|when|before|while|during) ", small
                )
                yield Reply(
                    question,
                    Said("onset", self.bare(low) if whole else _trim(re.sub(r"^(?:on|in) ", "", moment[0]))),
                )
            elif between := _FROM_TO.search(low):
                yield Reply(question, Said("duration", _trim(between[1])))
            elif spans := list(HAS_SPAN.finditer(OFTEN.sub(lambda often: " " * len(often[0]), low))):
                span = next((each for each in spans if not _VAGUE.search(each[0])), spans[-1])
                if re.match(r"\s+(?:after|before|into)\b", low[span.end() :]):
                    yield Reply(question, Said("onset", self.bare(low)))
                    return
                yield Reply(question, Said("duration", _trim(span[0])))
            elif (question.noun or question.unit) and (number := NUMBER.search(low)):
                yield Reply(question, _number(question, number[1]))
            return
        if "pregnancy" in kinds and (along := _ALONG.search(low)):
            yield Reply(question, Said("pregnancy", f"{along[1]} pregnant"))
        elif "pregnancy" in kinds and sex_said(low) == MALE:
            yield Reply(question, Said("pregnancy", "not pregnant"))
        elif "progression" in kinds and _WORSE.search(low) and "make" not in small and len(low) <= 80:
            yield Reply(question, Said("progression", self.bare(low)))
        elif "temperature" in kinds:
            if _DEGREES.match(degrees := rating(figures(low), 110)):
                yield Reply(question, Said("temperature", degrees))
        elif "taken_for" in kinds and (taken := HAS_SPAN.search(low)):
            yield Reply(question, Said("taken_for", _trim(taken[0])))
        elif (
            question.numeric
            and (number := number_now(figures(low) if _FIGURED & set(kinds) else low))
            and not DOSED.search(low)
            and not (number[0].lower() == "one" and _THAT_ONE.search(low))
            and not ("dose" in kinds and question.form == "polar")
            and not ("sleep_hours" in kinds and _O_CLOCK.search(low))
        ):
            few = len(small.split()) <= 4 and re.fullmatch(r"[\w+ -]+", small) and question.noun not in small
            counted = question.noun and "how many" in question.core and few
            limit = _LIMIT.search(small) if counted else None
            given = _number(question, small[: limit.start()] if limit else small if counted else number[0])
            if limit:
                given = replace(given, value=f"{given.value}{limit[0]}", sentence=f"{given.value}{limit[0]}")
            yield Reply(question, given)
        elif "age" in kinds and (years := HAS_SPAN.search(low)):
            yield Reply(question, Said("age", _trim(years[0])))
        elif "quality" in kinds and not alone and (feels := next(text.has("body.qualities"), None)):
            yield Reply(question, Said("quality", text.cut(feels)))
        elif "about_whom" in kinds:
            if (who := next(iter(text.has("people.relatives")), None)) is not None:
                yield Reply(question, Said("about_whom", text.cut(who)))
        elif (
            question.form == "polar"
            and not kinds
            and len(question.options) > 1
            and (
                first := next(
                    (each for each in question.options if re.match(rf"{re.escape(each)}\b", small)), ""
                )
            )
        ):
            yield Reply(question, Said("", ""), verdicts={first: True})
        elif question.form == "choice" and (option := chosen(small, question)):
            yield Reply(question, as_choice(question, option, small if says_more(small, option) else ""))

    def where(self, text: Text, question: Question, known: Mapping[str, str], *, alone: bool = True) -> str:
        """A place in the body; where only a side was named, with the noun of the question or complaint."""
        low = _HERE.sub("", _NEITHER.sub("", self.bare(text.stated)), count=1)
        low = {"l": "left", "r": "right", "lhs": "left", "rhs": "right"}.get(low.lower(), low)
        if _MERELY_ONE.fullmatch(low) and (of_two := _ONE_OR_BOTH.search(question.core)):
            return f"only one {of_two[1]}"
        parts = [each for each in text.has("body.parts") if text.cut(each) not in ("side",)]
        if parts:
            if alone and len(low) <= 70:
                return _trim(low)
            first, words = parts[0].first, text.words
            while first and words[first - 1].text in _BEFORE_PART:
                first -= 1
            return _trim(text.stated[words[first].start : words[parts[0].last - 1].end])
        side = _SIDE.search(low.lower()) or _ONE.fullmatch(low.lower())
        if side is None or len(low) > 60:
            return ""
        noun = question.noun if question.noun not in ("one", "part", "area", "spot") else ""
        noun = noun or _head_of(question.options) or _UNSIDED.sub("", self._part_of(known))
        if "side" in low.lower() or not noun:
            return _trim(low)
        if side[1] == "both" and (mostly := _MOSTLY.match(low)):
            return f"both {noun if noun.endswith('s') else f'{noun}s'}, {mostly[1]}"
        if side[1] == "both":
            return f"both {noun}" if noun.endswith("s") else f"both {noun}s"
        one = side[1] in ("left", "right") and noun not in ("sinus",)
        single = _ONE_OF.get(noun, noun.removesuffix("s")) if one else noun
        return f"{side[1]} {single}"

    def _part_of(self, known: Mapping[str, str]) -> str:
        """The part of the body that the complaint is about."""
        for value in (known.get("location", ""), known.get("concern", "")):
            words = re.sub(r"\b(ear|tooth|back|stomach|belly)ache", r"\1 ache", value.lower()).split()
            for size in (2, 1):
                for at in range(len(words) - size + 1):
                    part = " ".join(words[at : at + size])
                    if {part, part.removesuffix("s")} & self._body and part not in ("side", "sides"):
                        return part
        return ""

    # --- yes, no and free words -----------------------------------------------------------------------------

    def _taken(self, question: Question, stance: Stance, rest: str, found: Sequence[Said]) -> Reply:
        kind = question.kinds[0] if question.kinds else ""
        rest = self.bare(rest)
        said = next((each for each in found if each.kind == kind), None)
        if stance in ("unsure", "refusal") or not rest:
            return Reply(question, Said(kind, "", rest), stance)
        return Reply(question, said or Said(kind, "", rest), stance)

    def _free(self, text: Text, question: Question, found: Sequence[Said]) -> Iterator[Reply]:
        """A short reply as the value of what was asked; not one that begins something else."""
        message = text.stated
        bare = self.bare(message)
        if (
            not re.search(r"\w", bare)
            or len(bare) > _MOST_ANSWER
            or _BEGINS_ANEW.match(bare)
            or message.rstrip().endswith("?")
        ):
            return
        if asks_back(message):
            if "goal" not in question.kinds:
                return
            bare = message
        if any(mark in message.lower() for mark in self._lexicon.group("corrections.turns")):
            return
        if bare.lower() in self._lexicon.group("replies.acknowledgements") | self._lexicon.group(
            "replies.thanks"
        ):
            return
        kind = next((each for each in question.kinds if each not in ("severity", "age", "pregnancy")), "")
        if question.options and self._picks.says_both(bare.lower()):
            kind = ""
        if (
            kind in _TIMES
            and not re.match(
                (
                    r"(?:when|after|before|while|during|right|just|since|at|in|on|as|the|my|around|about|over"
                    r"|from|ever)\b"
                ),
                bare.lower(),
            )
            and len(bare.split()) > 5
        ):
            kind = ""
        stated = {each.kind for each in found}
        if kind in stated or (stated & _NAMED and len(bare.split()) <= 3):
            return
        if kind in (*NAMED, "associated_symptoms") and "pregnancy" in stated and len(bare.split()) <= 4:
            return
        if NUMBER.fullmatch(bare) and not question.numeric:
            kind = ""
        if "associated_symptoms" in stated and kind not in _BESIDE_COMPLAINTS:
            kind = ""
        if kind == "location" and "triggers" in stated:  # `worse at night` is no place
            kind = ""
        if kind in _TIMES and (since := re.match(r"(?:ever )?since (.+)", bare, re.IGNORECASE)):
            kind, bare = "onset", since[1]
        if re.match(r"(?:i'm |i am )?not sure\b", message.lower()) or (
            question.form == "polar" and re.match(r"(?:he|she|they|we) ", message.lower())
        ):
            kind = ""
        if kind == "with_whom":
            bare = re.sub(r"^(?:with|at|from|to|by) ", "", bare)
        if kind in ("previous_episodes", "about_whom") or re.search(r"\b(?:too|also|as well)[.! ]*$", bare):
            kind = (
                ""
                if kind != "previous_episodes" or re.match(r"i (?!had|have|'ve|did)", bare.lower())
                else kind
            )
        if kind in ("medications", "conditions", "allergies") and (
            stated
            or len(bare.split()) > 8
            or re.match(
                (
                    r"(?:not|it|i feel|i can't|that|he|she|they|we|i (?!have|had|am|take|use|suffer|was"
                    r"|got|do))\b"
                ),
                message.lower(),
            )
        ):
            kind = ""
        if kind == "quality":
            bare = _NOT_THOSE.sub("", bare)
        if kind == "triggers":
            bare = _HARMLESS.sub("", bare)
        if kind and not fits(kind, bare, text):
            kind = ""
        yield Reply(question, Said(kind, _trim(bare)) if kind else Said("", "", _trim(message)))


_HELD_APART: Final = frozenset(
    (
        *NAMED,
        "associated_symptoms",
        "triggers",
        "relief",
        "support",
        "tried",
        "goal",
        "effect",
        "needs",
        "habits",
        "previous_episodes",
    )
)
"""Kinds of which a reply may name one in spite of a no."""

_DENIES_FIRST: Final = re.compile(r"(?:no|not|none|nothing|neither|nope)\b", re.IGNORECASE)
_BEGINS_CLAUSE: Final = re.compile(
    r"(?:at|in|when|if|after|before|as|for|during|since|while)\b", re.IGNORECASE
)
_FEELS: Final = re.compile(
    r"(?:i'm|i am|i feel|i've been|i have been)"
    r"(?: (?:a bit|a little|so|just|really|quite|always|very|feeling))*"
    r" ([\w-]+)(?: (?:all the time|a lot|lately|now|too))?",
    re.IGNORECASE,
)
_ONE_OF: Final = {"feet": "foot", "teeth": "tooth", "calves": "calf"}
_O_CLOCK: Final = re.compile(rf"\b(?:at|around|from|until|till|by) (?:\d|{'|'.join(NUMBERS)})", re.IGNORECASE)
_UNNAMED: Final = re.compile(
    r"(?:yes,? |yeah,? )?(?:i take |i'm on |i am on |taking |on )?"
    r"((?:something|(?:some|an?|one|two) (?:\w+ )?(?:tablets?|pills?|drops?|medicines?|injections?|creams?)) "
    r"for (?:my|the|his|her|their) \w+(?: (?!can't|but|and|i\b)\w+)?)",
    re.IGNORECASE,
)
"""A medicine told by what it is for."""

_STANCE_BEHIND: Final = re.compile(
    r"(?:[,.;]\s*|\bso (?:that's an? )?)(yes|yeah|yep|no|nope)[.! ]*$", re.IGNORECASE
)
_REPEATED_NO: Final = re.compile(
    r"(?:i |it |we |he |she |they |there )?(?:really |actually )?(?:didn't|did not|doesn't|does not|don't"
    r"|do not|haven't|have not|hasn't|isn't|is not|aren't|wasn't|weren't|can't|cannot|couldn't|never)"
    r" (?:really |actually |even |ever )?(\w+)",
    re.IGNORECASE,
)
"""What takes up the verb of a question to deny it: `didn't hit my head`."""


def _denies_asked(stated: str, question: Question) -> bool:
    """Whether a reply says no to what the question names, in its words: `no gloves, no`."""
    found = _NO_SUCH.fullmatch(stated.strip(_AROUND).lower().removesuffix(" no").rstrip(" ,"))
    asked = {word.rstrip("s") for word in question.core.split()}
    return found is not None and all(word.rstrip("s") in asked for word in found[1].split())


_NO_SUCH: Final = re.compile(r"no ((?:[\w-]+ ?){1,3})")
_FROM_TO: Final = re.compile(rf"\b(?:from |between )({SPAN} (?:to|and|up to) {SPAN})\b", re.IGNORECASE)
_VAGUE: Final = re.compile(r"\blong\b|\bwhile\b|^(?:years|months|weeks|days|hours)$", re.IGNORECASE)
_NOT_THOSE: Final = re.compile(r"(?:neither|none)\b[^,;.]*[,;.]\s*(?:it's |it is |more )*", re.IGNORECASE)
_NEITHER: Final = re.compile(rf"{_NOT_THOSE.pattern}(?:in |on )?(?:the )?", re.IGNORECASE)
_UNSIDED: Final = re.compile(r"^(?:left|right|upper|lower|inner|outer|top|bottom) (?=\w)")
_HARMLESS: Final = re.compile(
    r"[,;.]? (?:but )?[\w' -]+ (?:is|are|isn't too bad|aren't too bad) ?(?:fine|ok|okay|alright"
    r"|no problem)\b.*",
    re.IGNORECASE,
)
_HERE: Final = re.compile(
    r"\b(?:right |just |over )?(?:here|there)[, ]+(?:just |right )?|\b(?:right|just) (?=behind|under|below"
    r"|above|between|around|next|in |on )",
    re.IGNORECASE,
)
_MOSTLY: Final = re.compile(
    r"both\b(?: of them)?[ ,]*(?:but |though )?((?:mostly|mainly|more|worse|especially)\b.*\b(?:left"
    r"|right)\b.*)",
    re.IGNORECASE,
)
_MERELY_ONE: Final = re.compile(r"(?:just |only )?(?:the )?(?:1|one)", re.IGNORECASE)
_ONE_OR_BOTH: Final = re.compile(r"\bone (\w+) or (?:in |on )?both\b")
_NAMED: Final = frozenset(("medications", "other_medicines", "allergies", "age"))
_ONLY_SIDE: Final = re.compile(
    r"(?:only |just |on |the |my )*(?:left|right|both|upper|lower)(?: ones?| sides?)?"
)
_PERHAPS: Final = re.compile(r"(?:maybe|possibly|perhaps) (?!not\b)\w", re.IGNORECASE)
_BESIDE_COMPLAINTS: Final = frozenset(
    ("associated_symptoms", "conditions", "effect", "reason", "goal", "quality", "triggers")
)
_DEGREES: Final = re.compile(r"\b(?:3[4-9]|4[0-2]|9[3-9]|10[0-8])(?:[.,]\d)?\b")
_TRAILING: Final = re.compile(
    r"(?<!\ba)(?<!\bmy)(?<!\band)(?:[\s,]+(?:please|then|i guess|i think|i suppose|really|actually|though|tho"
    r"|maybe|i'd say|or so|tbh|lol|haha|ngl|to be honest|if i'm honest|honestly|i reckon|mate|thanks"
    r"|thank you|cheers)"
    r"|\s*,\s*(?:like|as) i (?:said|told you|mentioned|wrote)(?: before| already| earlier)?)$",
    re.IGNORECASE,
)
_BEFORE_PART: Final = word_set(
    "left right upper lower inner outer behind under above below between around both my the top bottom "
    "front big in on"
)
DOSED: Final = re.compile(r"\b\d+(?:[.,]\d+)? ?(?:mg|mcg|ml|puffs?|units?|iu)\b", re.IGNORECASE)
_EVERY_DENIAL: Final = word_set(
    ", . any anything have had has been got get gets noticed notice seen felt feel feeling think know thing "
    "else other others symptoms so of it them that those these really at all the a much more like far as i "
    "can tell remember recall say see find spotted spot unusual new different suffer from with"
)
_EVERY_VERB: Final = word_set("a an the any so too very that really know think want")
_BREAKS: Final = word_set(", . ! ; : - ( ) but and though anymore thanks actually when if then yes yeah yep")
_AFTER_NO: Final = word_set(
    "i i'm i've it it's not just thanks thank he she they we my there never nothing none only sorry "
    "really to that"
)
_PARTICLES: Final = word_set("um uh well oh hm hmm so ah , . ... erm honestly ok okay then")


def _covered(question: Question, stated: set[str]) -> bool:
    kinds = set(question.kinds)
    return bool(kinds & stated) or bool(kinds & _TIMES and stated & _TIMES)


def _number(question: Question, number: str) -> Said:
    value = "-".join(str(NUMBERS.get(each.lower(), each)) for each in re.split(r" ?(?:-|to|or) ?", number))
    if "severity" in question.kinds:
        return Said("severity", f"{value}/{question.top}")
    if "age" in question.kinds:
        return Said("age", f"{value} {question.unit}".strip())
    if "temperature" in question.kinds:
        return Said("temperature", value)
    if question.noun and "how many" in question.core:
        kind = question.kinds[0] if question.kinds else ""
        unit = "times" if question.noun.startswith("times") else question.noun
        value = number
        per = re.search(r"\b(?:a|per|each|every) (?:day|night|week|month|year|hour)\b", question.core)
        return Said(
            kind,
            f"{value} {unit}{f' {per[0]}' if per else ''}",
            f"{value} {unit}{f' {per[0]}' if per else ''}",
        )
    return Said(question.kinds[0], f"{value} {question.unit}".strip())


def _figures(stated: str) -> list[str]:
    """The figures in a text; `5'6` is one."""
    whole = [found[1].strip() for found in MEASURE.finditer(stated)]
    return [*whole, *FIGURE.findall(MEASURE.sub(" ", stated))]


def _head_of(options: Sequence[str]) -> str:
    heads = {option.split()[-1] for option in options if len(option.split()) > 1} - {"one"}
    return heads.pop() if len(heads) == 1 else ""


def _trim(value: str) -> str:
    return " ".join(value.split()).strip(_AROUND)[:200]
