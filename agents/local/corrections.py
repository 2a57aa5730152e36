"""Corrections: a message that takes back something known and says what is right."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agents.local.complaints import concerns
from agents.local.known import Known, Told, Understood
from agents.local.lexicon import Lexicon, any_of
from agents.local.patterns import DOSE, HAS_MOMENT, HAS_SPAN, MOMENT, NUMBERS
from agents.local.ratings import NUMBER, rating, rating_anew
from agents.local.reading import BESIDE, Said, Text, stated
from agents.local.replies import Replies
from agents.local.slots import NAMED
from agents.local.telling import Teller, third_person
from agents.questions import Question
from agents.values import LISTS

_PIECES: Final = re.compile(
    r"(?<=[.!?;])\s+|,? and (?=it's|it is|it was|scratch|actually|make|my|i meant|i mean|more|sorry|call)"
    r"|\s+- "
)
_SAID_BUT: Final = re.compile(
    r"\bi (?:said|wrote|put|typed) .+?(?:,? but |,? (?:and |when )?(?=i (?:meant|mean)\b))"
    r"(?:it's |it is |it was |that's )?",
    re.IGNORECASE,
)
_SORRY: Final = re.compile(
    r"^(?:oh,? |no,? |um,? )*(?:sorry|oops|pardon)[,.:; -]+(?:i )?(?:meant |mean )?"
    r"(?:the |my |it's |its |it was |in |on |for |since |only |just |about |by )*"
    rf"(?:left|right|both|upper|lower|\d|(?:{'|'.join(NUMBERS)})\b|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|next |tomorrow|once|twice|every|mornings?|afternoons?|evenings?|dr\b|doctor\b)"
    r"|^(?:(?:no|ok|oh|sorry|um),? )*make it (?:\d|an?\b|the\b|by\b|next\b|\w+day\b|\w+noons?\b|\w+ings?\b)"
    r"|(?:left|right)(?: \w+)?,? (?:sorry|i meant)[.! ]*$|\bsorry,? meant\b",
    re.IGNORECASE,
)
"""What takes something back by an excuse: `sorry, right knee`."""

_NAME: Final = re.compile(r"[^\W\d_]{3,}")
_ITS_DOSE: Final = re.compile(
    r"\b(?:it's|it is|they're|that's) (?:actually )?\d+(?:[.,]\d+)? ?(?:mg|mcg|ml|g|units?)\b", re.I
)
_NOT_THAT: Final = re.compile(
    (
        r"\b(?:not|instead of|rather than|scratch) (?:on |in |my |the |a |an |since |for |about "
        r"|it's )*(\w+(?:\.\d+)?)(?: "
        r"\w+)?"
    ),
    re.IGNORECASE,
)


class Corrections:
    """Finds corrections with the words of the lexicon."""

    def __init__(
        self, lexicon: Lexicon, replies: Replies, teller: Callable[[Mapping[str, str]], Teller]
    ) -> None:
        self._lexicon, self._replies, self._teller = lexicon, replies, teller
        self._marks = any_of(lexicon.group("corrections.marks"))
        self._parts = lexicon.group("body.parts")

    def read(
        self, text: Text, known: Known, turn: int, asked: Sequence[Question] = ()
    ) -> tuple[Understood, Text] | None:
        """A part of a message that takes back something known and says what is right, and what is left of
        the message without it; `asked` is what the message may answer instead.
        """
        if not known.values or text.injected or _was_never_said(text.stated, known.values):
            return None
        pieces = [piece for piece in _PIECES.split(text.stated) if piece]
        for at, piece in enumerate(pieces):
            if understood := self._read(Text(piece, self._lexicon), known, turn, asked):
                left = " ".join([*(f"{each.rstrip(' .,')}." for each in pieces[:at] + pieces[at + 1 :])])
                return understood, Text(left, self._lexicon)
        return None

    def _read(self, text: Text, known: Known, turn: int, asked: Sequence[Question]) -> Understood | None:
        values = known.values
        low = _AS_SAID.sub("", text.stated)
        mark = self._marks.search(low.lower()) or _SORRY.search(low)
        denied = list(_NOT_THAT.finditer(low))
        taken_back = [(each, kind) for each in denied if (kind := _kind_with(values, each[1]))]
        anew = rating_anew(low, _top_of(values["severity"])) if "severity" in values else ""
        dosed = _ITS_DOSE.search(low) and _other_dose(low, values, asked)
        if not taken_back and mark is None and not anew and not dosed:
            return None
        rest = _SAID_BUT.sub("", low)
        for each, _ in taken_back:
            rest = rest.replace(each[0], " ")
        rest = self._marks.sub(" ", rest)
        rest = re.sub(r"\s+", " ", rest).strip(" ,.;-")
        rest = re.sub(
            r"^(?:(?:no|sorry|oops|pardon|meant|well|but|oh|and|it's|it is|it was|make it|to|so|um|is|was"
            r"|about)\b[ ,]*)+",
            "",
            rest,
            flags=re.IGNORECASE,
        ).strip(" ,.")
        bare = _BARE.fullmatch(rest)
        if bare and not taken_back and not _MEANT.search(low) and _answers_with_number(asked, values):
            return None
        told = Told(turn, known)
        pure = Text(rest, self._lexicon)
        kinds = [kind for _, kind in taken_back]
        right = list(self._right_instead(pure, rest, kinds, values, asked))
        if not right and len(kinds) == 1 and kinds[0] in _FREE and 1 <= len(rest.split()) <= _MOST_INSTEAD:
            right = [Said(kinds[0], rest)]
        if anew and not any(each.kind == "severity" for each in right):
            right = [Said("severity", f"{anew}/{_top_of(values['severity'])}")]
        for said in right:
            old = values.get(said.kind, "")
            if said.value.lower() == old.lower():
                continue
            if said.kind in LISTS:
                gone = [each[1].lower() for each, kind in taken_back if kind == said.kind]
                told.drop(said.kind, gone or _NAME.findall(said.value.lower())[:1])
            elif not old and said.kind != "concern":
                continue
            if said.kind == "concern" and not _same_part(said.value, old):
                told.shelve(said.value)
            told.keep(said)
            if said.sentence == BESIDE:
                continue
            if said.kind == "location" and "concern" in {each.kind for each in told.facts}:
                continue
            current = self._teller(told.known.values)
            sentence = (
                current.reports(said.value)
                if said.kind == "concern"
                else current.tells(said.kind, said.value)
            )
            before = old.partition("/")[0] if said.kind == "severity" else old
            taken_up = any(
                word in low.lower() for word in re.findall(r"\w+", before.lower()) if word not in said.value
            )
            instead = f", not {third_person(before)}" if taken_up and said.kind not in LISTS else ""
            told.sentences.append(f"Correction: {sentence}{instead}")
        if not told.facts:
            return None
        changed = tuple(fact.kind for fact in told.facts)
        return Understood(
            known=told.known,
            sentences=tuple(told.sentences),
            stated=tuple(told.facts),
            answers=changed,
            replied=True,
            corrected=True,
            leans_on=tuple(dict.fromkeys(fact.turn for fact in known.facts if fact.kind in changed)),
        )

    def _right_instead(
        self,
        text: Text,
        rest: str,
        kinds: Sequence[str],
        values: Mapping[str, str],
        asked: Sequence[Question],
    ) -> Iterator[Said]:
        named = next((kind for kind in kinds if kind in NAMED), "")
        found = [replace(each, kind=named) if named and each.kind in NAMED else each for each in stated(text)]
        given = {each.kind for each in found}
        if alike := _alike(rest, values, asked):
            yield alike
            return
        yield from (each for each in found if each.kind in values)
        if dosed := _other_dose(rest, values, asked):
            yield Said("medications", dosed)
            if new := DOSE.search(dosed):
                yield Said("dose", new[1], BESIDE)
            return
        parts = [part for each in text.has("body.parts") if (part := text.cut(each)) != "side"]
        number = re.fullmatch(
            (
                r"(?:an? |about |around |more like |like |closer to |i'd say |it |it's |gone |went |up "
                r"|down |to |now )*"
                r"(\d{1,2}(?:\.\d)?|[a-z]+)(?: really| now| today| by now| since .*| before| earlier)?"
            ),
            rest.lower(),
        )
        if "severity" not in given and "severity" in values and (not kinds or "severity" in kinds) and number:
            top = _top_of(values["severity"])
            if re.fullmatch(r"[\d.]+", rated := rating(number[1], top)):
                yield Said("severity", f"{rated}/{top}")
                return
        if not given & {"onset", "duration"} and ({"onset", "duration"} & values.keys()):
            if (moment := HAS_MOMENT.search(rest)) and "onset" in values:
                yield Said("onset", moment[0].strip())
            elif bare := _in_unit_of(rest, values.get("duration", "")):
                yield Said("duration", bare)
            elif (span := HAS_SPAN.search(rest)) and not re.search(r"\d{1,3} year", rest):
                yield Said(
                    "duration" if "duration" in values or "onset" not in values else "onset", span[0].strip()
                )
        if "location" in values or parts:
            pseudo = Question("", "", "open", ("location",))
            side = re.search(r"\b(left|right|both|upper|lower)\b", rest.lower())
            if parts or side:
                where = self._replies.where(text, pseudo, values)
                if parts:
                    where = next(
                        (each.value for each in concerns(text) if each.kind == "location"), ""
                    ) or self._sided(rest, parts[0])
                if where and parts and "concern" in kinds and where not in values.get("concern", ""):
                    yield Said("concern", f"{where} complaint")
                    yield Said("location", where)
                elif where:
                    yield from self._moved(where, values, has_part=bool(parts))
        meant = "age" in kinds or (number is not None and not kinds and "severity" not in values)
        if "age" in values and "age" not in given and meant and (age := re.search(r"\d{1,3}", rest)):
            yield Said("age", age[0])

    def _sided(self, rest: str, part: str) -> str:
        found = re.search(
            rf"\b((?:left|right|upper|lower|big|little|inner|outer) )?{re.escape(part)}\b", rest.lower()
        )
        return found[0] if found else part

    def _moved(self, where: str, values: Mapping[str, str], *, has_part: bool) -> Iterator[Said]:
        """Another place of the same complaint, which may carry the old one in its name."""
        concern, old = values.get("concern", ""), values.get("location", "")
        if old and old in concern:
            yield Said("concern", concern.replace(old, where))
        elif has_part and not old and concern:
            part = next(
                (
                    part
                    for part in sorted(self._parts, key=len, reverse=True)
                    if re.search(rf"\b{part}\b", concern)
                ),
                "",
            )
            yield Said("concern", concern.replace(part, where) if part else f"{where} complaint")
        yield Said("location", where)


_AS_SAID: Final = re.compile(
    r",? *\b(?:like|as) i (?:already |just )?(?:said|wrote|mentioned|told you)\b(?: before| already)?",
    re.IGNORECASE,
)
"""What a person repeats takes nothing back."""

_BARE: Final = re.compile(
    r"(?:an? |about |around |like |only |just |it's |it is |that |is |at )*(\d+(?:[.,]\d+)?|[a-z]+)"
    r"(?: really| now| today| it is| actually| each| or so|ish)*[.! ]*",
    re.IGNORECASE,
)
_MEANT: Final = re.compile(
    r"\b(?:meant?|make (?:that|it)|call it|scratch|strike|mistake|typo|wrong|misspoke|miscounted)\b",
    re.IGNORECASE,
)
_OF_AMOUNT: Final = re.compile(r"(?:how|when|since when|for how|(?:at )?what time|by when)\b|.*\bfever\b")


def _answers_with_number(asked: Sequence[Question], values: Mapping[str, str]) -> bool:
    """Whether a mere number answers what was asked and is not known yet: `sorry, 71` is then an age."""
    return any(each.numeric and not values.keys() & set(each.kinds) for each in asked)


def _was_never_said(text: str, values: Mapping[str, str]) -> bool:
    """Whether a number is taken back that nothing known has: `6, not 8` then answers what was asked."""
    denied = [each[1] for each in _NOT_THAT.finditer(text) if each[1].isdecimal()]
    return bool(denied) and not any(_kind_with(values, each) for each in denied)


_MOST_INSTEAD: Final = 4
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_FITS: Final = (
    r"(?: (?:is|are|would be|will be|works?|suits?)(?: me| us)?(?: fine| better| best| ok| okay| good)?)?"
)
_LATER: Final = r"(?:the|a|one) (?:day|week|month)s? (?:after(?: that)?|later|before|earlier)"
_ALIKE: Final = {
    "deadline": re.compile(
        rf"((?:by |on |in |until |before )*(?:(?:the )?(?:end|start|beginning) of )?(?:the |this |next )*"
        rf"(?:{_WEEKDAY}|week(?:end)?|month|year|tomorrow|today|(?:{_LATER})|{MOMENT}))" + _FITS,
        re.IGNORECASE,
    ),
    "preferred_time": re.compile(
        r"((?:in |on )?(?:the |late |early )*(?:mornings?|afternoons?|evenings?|weekends?|weekdays?))"
        + _FITS,
        re.IGNORECASE,
    ),
    "with_whom": re.compile(
        r"((?:the )?(?:dr|doctor|nurse|mr|mrs|ms)\.? [\w'-]+(?: [\w'-]+)?)", re.IGNORECASE
    ),
    "temperature": re.compile(
        r"((?:3[4-9]|4[0-3]|9[5-9]|10[0-8])(?:[.,]\d)?(?: ?(?:°|degrees)? ?[cf]?))", re.I
    ),
    "sleep_hours": re.compile(
        rf"((?:about |around |only )*(?:\d{{1,2}}(?:\.5)?|{'|'.join(NUMBERS)}) hours?(?: (?:a|per) night)?)",
        re.I,
    ),
}
"""What can be right instead of a value, by its form alone."""

_TIMED: Final = {"onset": HAS_MOMENT, "duration": HAS_SPAN, "taken_for": HAS_SPAN, "frequency": HAS_SPAN}
_FREE: Final = frozenset(("triggers", "relief", "quality", "reason", "goal", "tried", *_ALIKE))
"""Kinds whose value may be any few words."""

_AMOUNT: Final = re.compile(
    r"\b(\d+(?:[.,]\d+)?) ?(kg|kilos?|lbs?|pounds|km|miles|minutes|steps)\b", re.IGNORECASE
)


def _alike(rest: str, values: Mapping[str, str], asked: Sequence[Question]) -> Said | None:
    """What replaces a known value of the same form, unless it is the form of what was asked."""
    open_kinds = {kind for each in asked for kind in each.kinds} - values.keys()
    for kind, form in _ALIKE.items():
        found = form.fullmatch(rest) if kind in values else None
        timed = kind != "temperature" and any(
            _TIMED[each].search(rest) for each in open_kinds & _TIMED.keys()
        )
        if found is None or timed or any(_ALIKE[each].fullmatch(rest) for each in open_kinds & _ALIKE.keys()):
            continue
        relative = re.search(_LATER, found[1], re.IGNORECASE)
        return Said(kind, f"{found[1]} (instead of {values[kind]})" if relative else found[1])
    old, new = _AMOUNT.search(values.get("goal", "")), _AMOUNT.fullmatch(rest)
    if old and new and old[2].lower() == new[2].lower() and "measures" not in open_kinds:
        return Said("goal", values["goal"].replace(old[0], new[0]))
    return None


def _other_dose(rest: str, values: Mapping[str, str], asked: Sequence[Question]) -> str:
    """The medicine whose dose is put right: `it's 40 mg`, or a mere `40` where nothing else is a number and
    nothing was asked that an amount or a time answers.
    """
    medicines = [each for each in values.get("medications", "").split(", ") if DOSE.search(each)]
    if len(medicines) != 1 or (old := DOSE.search(medicines[0])) is None:
        return ""
    if dose := DOSE.search(rest):
        alike = bool(_IN_PIECES.search(dose[1])) == bool(_IN_PIECES.search(old[1]))
        return DOSE.sub(dose[1], medicines[0]) if alike else ""
    elsewhere = any(each.numeric or _OF_AMOUNT.match(each.core) for each in asked if not _of_dose(each))
    bare = None if elsewhere or values.keys() & _RATED else _BARE.fullmatch(rest)
    if bare is None or not bare[1][0].isdigit():
        return ""
    unit = old[1].lstrip("0123456789.,")
    return DOSE.sub(f"{bare[1]}{unit}", medicines[0])


def _of_dose(question: Question) -> bool:
    return "dose" in question.kinds and " times " not in question.core


_IN_PIECES: Final = re.compile(r"(?:tablets?|pills?|puffs?|drops?)$", re.IGNORECASE)
"""A dose that says how many, not how strong."""

_RATED: Final = frozenset(("severity", "age", "duration"))


def _in_unit_of(rest: str, old: str) -> str:
    """`three weeks`, of `three` said instead of `two weeks`."""
    unit = re.search(r"(?:minute|hour|day|night|week|month|year)s?\b", old)
    bare = NUMBER.fullmatch(
        re.sub(r"^(?:it's|about|like|to|more|nearly|almost|closer|an?)\b ?", "", rest.strip(" .,"))
    )
    return f"{bare[0]} {unit[0]}" if unit and bare else ""


def _same_part(one: str, other: str) -> bool:
    return bool(set(one.lower().split()) & set(other.lower().split()) - {"left", "right", "in", "the"})


def _kind_with(values: Mapping[str, str], word: str) -> str:
    """The kind whose value has a word; severity before others for a number."""
    for kind, value in sorted(values.items(), key=lambda each: each[0] != "severity"):
        if kind in ("request", "mentioned"):  # words that nothing was understood by
            continue
        inside = len(word) > 3 and kind in ("concern", "location") and word.lower() in value.lower()
        if inside or re.search(rf"(?<![\w.]){re.escape(word.lower())}(?![\w])", value.lower()):
            return kind
    return ""


def _top_of(value: str) -> int:
    return int(value.rpartition("/")[2]) if value.rpartition("/")[2].isdigit() else 10
