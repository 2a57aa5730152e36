"""What a message states by itself, found by rules over the lexicon, in the person's own words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from agents.local import people
from agents.local.asides import without_asides
from agents.local.lexicon import Lexicon, Mention, Word, plain, word_set, words_of
from agents.local.parting import parted
from agents.local.patterns import (
    AGED,
    AGED_ASIDE,
    AGO,
    ALLERGIC,
    ALLERGY,
    BETTER,
    DOCTOR,
    DOSE,
    ENDS_NEGATION,
    FELT_WHEN,
    FOREIGN,
    HAS_MOMENT,
    HAS_SPAN,
    HELPS,
    HYPOTHETICAL,
    IF_ONLY,
    INJECTED,
    IS_AGED,
    LASTING,
    MAKES_WORSE,
    MEASURE,
    NEGATORS,
    NOTHING_OF,
    NOW,
    NUMBERS,
    OFTEN,
    OLD,
    PREGNANT,
    RATED,
    READING,
    SENTENCE,
    SINCE,
    STARTED,
    TEMPERATURE,
    WORSE,
)
from agents.local.people import SELF
from agents.local.taking import is_over, only_spoken_of, taken_anyway, taken_since
from agents.sexes import sex_said
from agents.values import NONE


@dataclass(frozen=True, slots=True)
class Said:
    """Something a message states, and `of` whom if it says so. A `sentence` is given where kind and value
    would not say it.
    """

    kind: str
    value: str
    sentence: str = ""
    of: str = ""


BESIDE: Final = "beside"
"""The sentence of what needs none, since something else that was said tells it."""


class Text:
    """A message with its words and what of the lexicon its statements mention. What is said `unasked` answers
    nothing, so that it may be a question by its beginning alone.
    """

    def __init__(self, message: str, lexicon: Lexicon, *, unasked: bool = False) -> None:
        self.lexicon = lexicon
        self.whole = plain(message)
        sentences = [part for part in SENTENCE.split(_spoken(self.whole)) if part]
        self.injected = [part for part in sentences if INJECTED.search(part)] if sentences else [self.whole]
        self.asked, kept = [], []
        for sentence in sentences:
            if sentence in self.injected:
                continue
            statement, question = parted(sentence, unasked)
            if question:
                self.asked.append(question)
            if statement:
                kept.append(statement)
        self.stated = " ".join(kept)
        if not unasked:
            self.stated = without_asides(self.stated)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the statements."""
        return words_of(self.stated)

    @cached_property
    def mentions(self) -> tuple[Mention, ...]:
        """What of the lexicon the statements mention."""
        return self.lexicon.mentions(self.words)

    @cached_property
    def subjects(self) -> tuple[tuple[int, str], ...]:
        """Where the statements begin to be about whom."""
        return people.subjects(self.words, self.mentions, self.stated)

    def of(self, at: int) -> str:
        """Of whom the word at a place is said; nothing where the message does not say."""
        return people.owner(self.subjects, at)

    def of_words(self, start: int) -> str:
        """Of whom the words behind a character of the statements are said."""
        at = next((i for i, word in enumerate(self.words) if word.end > start), len(self.words))
        return self.of(at)

    @cached_property
    def denied(self) -> frozenset[int]:
        """The places of words that stand under a `no` or `not`."""
        return frozenset(self._denied())

    def has(self, *groups: str, denied: bool = False) -> Iterator[Mention]:
        """The mentions of these groups that are claimed, or else denied."""
        return (
            each for each in self.mentions if each.group in groups and (each.first in self.denied) is denied
        )

    def cut(self, mention: Mention) -> str:
        """A mention as the person wrote it, in small letters."""
        return self.stated[self.words[mention.first].start : self.words[mention.last - 1].end].lower()

    def written(self, mention: Mention) -> str:
        """A mention just as the person wrote it."""
        return self.stated[self.words[mention.first].start : self.words[mention.last - 1].end]

    def around(self, mention: Mention) -> tuple[str, str]:
        """The words of its sentence before and behind a mention, as far as they are near."""
        start, end = self.words[mention.first].start, self.words[mention.last - 1].end
        before, behind = self.stated[max(0, start - _NEAR) : start], self.stated[end : end + _NEAR]
        return SENTENCE.split(before)[-1], SENTENCE.split(behind)[0]

    def _denied(self) -> Iterator[int]:
        texts = [word.text for word in self.words]
        starts = {mention.first: mention.last for mention in self.mentions}
        for mention in self.mentions:
            behind = texts[mention.last : mention.last + 3]
            said_after = (behind[:1] in _NO_BEHIND and behind[1:2] in _ENDS) or (
                behind[:2] in (["not", "really"], ["not", "anymore"]) and behind[2:3] in _ENDS
            )
            if said_after and not set(texts[max(0, mention.first - 2) : mention.first]) & _EXCEPT:
                yield from range(mention.first, mention.last)
        denying = False
        for at, text in enumerate(texts):
            following = texts[at + 1] if at + 1 < len(texts) else "."
            if text in NEGATORS:
                denying = following not in (",", ".", "!", ";", "-", "only", "sure", "just") or (
                    text != "no" and following == ","
                )
            elif (
                text in ENDS_NEGATION
                or (text == "as" and "much" in texts[max(0, at - 4) : at])  # `not so much pain as bloating`
                or (text == "," and not self._list_goes_on(texts, starts, at + 1))
                or (
                    text == "and"
                    and following
                    in (
                        "i",
                        "my",
                        "it",
                        "the",
                        "i'm",
                        "i've",
                        "have",
                        "had",
                        "then",
                        "now",
                        "yes",
                        "some",
                        "a",
                        "an",
                    )
                )
            ):
                denying = False
            elif denying:
                yield at

    @staticmethod
    def _list_goes_on(texts: list[str], starts: dict[int, int], at: int) -> bool:
        """Whether `no fever, chills or rash` goes on behind a comma."""
        while at < len(texts) and texts[at] in ("or", "nor", "and", "any", "a", "no", "not"):
            at += 1
        end = starts.get(at)
        return end is not None and (
            end >= len(texts) or texts[end] in (",", ".", "or", "and", "nor", "!", ";", "either")
        )


_NEAR: Final = 160
_NO_BEHIND: Final = (["no"], ["none"], ["nope"], ["nah"], ["never"])
_ENDS: Final[tuple[list[str], ...]] = ([], [","], ["."], ["!"], [";"])
_EXCEPT: Final = word_set("apart except besides bar than from")


def _spoken(text: str) -> str:
    """A text without what is not the person's own; one piece may hold another."""
    while (shorter := FOREIGN.sub(" ", text)) != text:
        text = shorter
    return text.strip()


_SWAYS: Final = (
    (
        "triggers",
        (WORSE, FELT_WHEN, MAKES_WORSE),
        word_set(
            "worse worst flares flare acts act brought triggered set hurts hurt happens comes come when "
            "whenever while after during every"
        ),
    ),
    (
        "relief",
        (BETTER, HELPS),
        word_set("better ease eases goes improves calms less helps help helped relieve relieves"),
    ),
)
"""What makes a complaint worse or better: patterns, and the words without which none of them fits."""


def stated(text: Text) -> Iterator[Said]:
    """What the statements of a message say, whatever was asked before; complaints are found elsewhere."""
    low = text.stated
    if not low:
        return
    bare_drug = any(text.has("medicines.names")) and not any(
        text.has("complaints.nouns", "complaints.verbs", "complaints.clauses")
    )
    digits = any(char.isdigit() for char in low)
    if rated := RATED.search(low):
        yield Said(
            "severity",
            f"{NUMBERS.get(rated[1].lower(), rated[1])}/{NUMBERS.get(rated[2].lower(), rated[2])}",
        )
    there, changed = with_change(_without_times_of_medicines(text))
    yield from _times(there, bare_drug)
    if changed:
        yield Said("progression", changed)
    if (often := OFTEN.search(low)) and not _HOURS_SLEPT.search(low[: often.end()]):
        yield Said("frequency", often[1])
    said = {word.text for word in text.words}
    for kind, patterns, hints in _SWAYS:
        for pattern in patterns if said & hints else ():
            for found in pattern.finditer(low):
                value = _clean(found[1])
                denied = set(small_words(low[: found.start()])[-3:]) & NEGATORS
                if value and not _void(value) and not (denied and kind == "triggers") and value != "at all":
                    yield Said(kind, value)
    for quality in text.has("body.qualities"):
        nouns = [each for each in text.mentions if each.group == "complaints.nouns"]
        if any(each.first <= quality.last + 1 and each.first != quality.first for each in nouns):
            yield Said("quality", text.cut(quality))
            break
    if (where := _place(text)) is not None:
        yield Said("location", where)
    if (beside := _LOOKS_TOO.search(low)) and beside[1].lower() in text.lexicon.group("complaints.states"):
        yield Said("associated_symptoms", beside[1].lower())
    yield from _about_the_person(text)
    if digits:
        yield from _measured(text)


_LOOKS_TOO: Final = re.compile(
    r"\w[,.;]?(?:,| and| but|\.) (?:and |but )?(?:it's|it is|it looks|it feels|they're|they are)"
    r"(?: also| a bit| a little| quite| very| all| really| slightly| so| still| now)* (\w+)"
    r"(?= too| as well| also|[.,;!]|$)",
    re.IGNORECASE,
)
"""What is said of `it` behind something else: `5, and it's a bit swollen too`."""


_HOURS_SLEPT: Final = re.compile(
    r"\bsle(?:ep|eping|pt)\b[^.,;]*\bhours? (?:a|per|each|every) night$", re.IGNORECASE
)


def _without_times_of_medicines(text: Text) -> str:
    """The statements without what they say of how long a medicine has been taken."""
    low = text.stated
    for mention in (each for each in text.mentions if each.group == "medicines.names"):
        end = text.words[mention.last - 1].end
        length = taken_since(*text.around(mention))[1]
        low = low[:end] + " " * length + low[end + length :]
    return low


_CHANGED: Final = re.compile(
    r"(?:[,;.]| but| and)+ +((?:(?:it|it's|has|have|been|got|getting|gotten|gets|became|really|much|a lot|way"
    r"|far|even|so|just|especially|only|a bit|quite|pretty) )*"
    r"(?:worse|worst|bad|awful|terrible|better|stronger|unbearable)\b[^,;.]*)",
    re.IGNORECASE,
)


def with_change(stated: str) -> tuple[str, str]:
    """A text, and apart from it since when something is worse or better, where the rest says since when it is
    there: `two weeks, worse the last 3 days`.
    """
    change = _CHANGED.search(stated)
    rest = f"{stated[: change.start()]}{stated[change.end() :]}" if change else ""
    timed = (HAS_SPAN.search(each) or HAS_MOMENT.search(each) for each in (rest, change[1] if change else ""))
    if change and not WORSE.search(change[1]) and all(timed):
        return rest, _clean(change[1])
    return stated, ""


def small_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [word.text for word in words_of(text)]


def _times(low: str, bare_drug: bool) -> Iterator[Said]:
    onset = STARTED.search(low) or SINCE.search(low)
    if onset and not re.search(r"\b(?:not|n't|nothing|none|never)\s+$", low[: onset.start()]):
        yield Said("onset", _clean(onset[1]))
    elif not bare_drug and (ago := AGO.search(low)):
        yield Said("onset", _clean(ago[1]))
    elif not bare_drug:
        low = OFTEN.sub(lambda often: " " * len(often[0]), low)
        if lasting := LASTING.search(low) or NOW.search(low):
            yield Said("duration", _clean(lasting[1]))


_PLACED: Final = word_set("on in at behind around under above below between across along near down inside")
OWNED: Final = word_set("my the his her both one each")
"""What stands before a part of the body and says whose it is."""


def _place(text: Text) -> str | None:
    """`left side` of `on the left side`: a part of the body in which something is felt."""
    texts = [word.text for word in text.words]
    for part in text.has("body.parts"):
        named = sided(text, part, texts)
        first = part.last - len(words_of(named))
        if first >= 2 and texts[first - 1] in OWNED and texts[first - 2] in _PLACED:
            before = texts[first - 2]
            if named == "back" and before in ("on", "at"):
                continue
            return (
                named
                if before in ("on", "in", "at", "along", "inside")
                else f"{before} {texts[first - 1]} {named}"
            )
    return None


def _about_the_person(text: Text) -> Iterator[Said]:
    low = text.stated
    small = low.lower()
    hinted = "allerg" in small or "intoleran" in small
    patterns = (ALLERGIC, ALLERGY) if hinted else ()
    allergens = [found for pattern in patterns for found in pattern.finditer(low)]
    for found in allergens:
        denied = "not allergic" in small or "no allerg" in small
        for allergen in re.split(r", and |, | and | or ", _clean(found[1])):
            if allergen.split()[0] not in (
                "anything",
                "any",
                "nothing",
                "it",
                "that",
                "them",
                "those",
                "this",
            ):
                name = f"no {allergen}" if denied else allergen
                yield Said("allergies", name, of=text.of_words(found.start()))
    for kind, pattern in NOTHING_OF.items():
        if pattern.search(low):
            yield Said(kind, NONE)
    yield from _medicines(text, " ".join(found[1] for found in allergens).lower())
    yield from _conditions(text)
    expecting = PREGNANT.search(low) if _OF_PREGNANCY.search(small) else None
    if (pregnant := expecting) and not IF_ONLY.search(low[: pregnant.start()]):
        negated = any(word in NEGATORS for word in small[: pregnant.start()].split()[-1:])
        yield Said(
            "pregnancy",
            f"not {pregnant[1]}" if negated and not pregnant[1].startswith("not") else pregnant[1],
            of=text.of_words(pregnant.start()),
        )
    yield from _age(text)
    if sex := sex_said(low):
        yield Said("sex", sex, of=SELF)


_OF_PREGNANCY: Final = re.compile("pregnan|expecting|breast-?feeding|nursing")
_ASKS_WHILE: Final = re.compile(
    rf"\bi\b.* (?:while|whilst|now that|as) (?:i'm |i am )?(?:still )?{PREGNANT.pattern}", re.IGNORECASE
)
"""What a person says of herself while she asks: `can I take this while breastfeeding?`"""


def _age(text: Text) -> Iterator[Said]:
    low = text.stated
    old = OLD.search(low) or AGED.search(low)
    if old is None:  # `my daughter is 4`
        aged = (*IS_AGED.finditer(low), *AGED_ASIDE.finditer(low))
        others = (found for found in aged if text.of_words(found.start(1)) not in ("", SELF))
        old = next(others, None)
    if old and (years := re.match(r"[\d.]+", old[1])) and 0 < float(years[0]) <= 115:
        yield Said("age", old[1], of=text.of_words(old.start(1)))


def in_passing(text: Text) -> Iterator[Said]:
    """The doctor whom a message names in passing, and the medicine it asks about: neither is asked for."""
    if doctor := DOCTOR.search(text.whole):
        yield Said("with_whom", doctor[1], BESIDE)
    for question in text.asked:
        if expecting := _ASKS_WHILE.search(question):
            yield Said("pregnancy", expecting[1], BESIDE)
        yield from _medicines_asked_about(question, text.lexicon)


def _medicines_asked_about(question: str, lexicon: Lexicon) -> Iterator[Said]:
    """The first medicine that a question is about, and those that the person takes by its words: `with my
    warfarin`.
    """
    words, about = words_of(question), False
    for mention in (each for each in lexicon.mentions(words) if each.group == "medicines.names"):
        start = words[mention.first].start
        name = question[start : words[mention.last - 1].end]
        if taken_anyway(question[:start]):
            yield Said("medications", name, BESIDE)
        elif not about:
            about = True
            yield Said("asked_about", name.lower(), BESIDE)


def _medicines(text: Text, allergens: str) -> Iterator[Said]:
    low, texts = text.stated, [word.text for word in text.words]
    found = False
    doses = list(DOSE.finditer(low))
    for mention in (each for each in text.mentions if each.group == "medicines.names"):
        name = text.written(mention)
        if name.lower() in allergens or (name in ("pill", "pills", "tablet", "tablets", "iron") and found):
            continue
        found = True
        before = texts[max(0, mention.first - 4) : mention.first]
        around = text.around(mention)
        of = text.of(mention.first)
        if name.lower().rstrip("s") in _ANY_MEDICINE and set(before) & _DISLIKES:
            continue
        if before and before[-1] in ("after", "following", "without"):
            continue
        if mention.first in text.denied:
            yield Said("medications", f"no {'other ' if before[-1:] == ['other'] else ''}{name}", of=of)
        elif is_over(*around):
            yield Said("medications", f"stopped {name}", of=of)
        elif only_spoken_of(*around):
            yield Said("asked_about", name.lower(), BESIDE, of)
        else:
            start, end = text.words[mention.first].start, text.words[mention.last - 1].end
            near = next((dose[1] for dose in doses if _beside(low, dose, start, end)), "")
            named = f"{name} {near}" if near and name not in near.lower() else near or name
            yield Said("medications", named, of=of)
            if near and name not in near.lower():
                yield Said("dose", near, BESIDE, of)
            if since := taken_since(*around)[0]:
                yield Said("taken_for", since, BESIDE, of)
    if (
        not found
        and (
            taking := re.search(
                (
                    r"\bi(?:'m| am|'ve| have)?(?: been| just| also| still| only| currently)? "
                    r"(?:taking|take|took"
                    r"|taken|on) (?:a |an |some |my |the |two |one )?(?!anything|nothing|it\b|care"
                    r"|that|this|them|no\b"
                    r"|any\b|a\b|weeks?|months?|years?|days?|nap\b|walk\b|shower|bath\b|bus\b|train\b"
                    r"|class|course|test|look\b|seat|while|couple|few|walks|naps|breaks|my time"
                    r"|medications?|medicines?|pills?|meds"
                    r"|holiday|leave|day"
                    r"|time|diet|period|way|phone|edge|feet|and\b|two\b|one\b|\d)([a-z][\w-]{3,30})\b"
                ),
                low.lower(),
            )
        )
        and text.words
    ):
        name = taking[1]
        at = next((i for i, word in enumerate(text.words) if word.start == taking.start(1)), -1)
        if at not in text.denied and not {m.group for m in text.mentions if m.first <= at < m.last}:
            yield Said("medications", name)


def _beside(low: str, dose: re.Match[str], start: int, end: int) -> bool:
    """Whether a dose stands right before or behind the name at `start` to `end`."""
    if dose.end() <= start:
        return low[dose.end() : start].strip() in ("", "of")
    return dose.start() < end or low[end : dose.start()].strip(" ,(") in ("", "at", "about", "like", "is")


_ANY_MEDICINE: Final = word_set("pill tablet painkiller medicine medication antibiotic supplement")
_DISLIKES: Final = word_set("hate dislike avoid against like refuse")
_PERHAPS: Final = word_set(
    "might may maybe possibly could suspect suspects suspected think thinks thought probably perhaps reckons"
)
_ONLY_FEARED: Final = HYPOTHETICAL - _PERHAPS


def _conditions(text: Text) -> Iterator[Said]:
    texts = [word.text for word in text.words]
    relatives = list(text.has("people.relatives"))
    for mention in (each for each in text.mentions if each.group == "conditions.names"):
        name = text.cut(mention)
        start = max((at + 1 for at in range(mention.first) if texts[at] in ".!?;"), default=0)
        before = texts[start : mention.first]
        of = text.of(mention.first)
        if not of and not set(before) & {"i", "i'm", "i've"}:
            of = next((text.cut(each) for each in relatives if start <= each.first < mention.first), "")
        if mention.first in text.denied:
            yield Said("conditions", f"no {name}", of=of)
        elif set(before[-6:]) & _PERHAPS:
            yield Said("conditions", f"possibly {name}", of=of)
        elif not set(before[-6:]) & _ONLY_FEARED and before[-1:] != ["about"]:
            yield Said("conditions", f"{name} in the past" if past(text, mention) else name, of=of)


_BEFORE_PAST: Final = re.compile(
    r"\b(?:used to (?:have|get|suffer from|be)|grew out of|outgrew|(?:was )?cured of)\b"
)
_AFTER_PAST: Final = re.compile(
    r"(?:years ago|as a (?:child|kid|teenager|baby)|when (?:i|he|she) was (?:a |little|young|small)\w*"
    r"|in (?:the past|my (?:teens|twenties|thirties)|childhood)|is in remission)"
)


def certain(text: Text, mention: Mention) -> bool:
    """Whether something is said to be there, now and surely."""
    before = {word.text for word in text.words[max(0, mention.first - 6) : mention.first]}
    return not before & (_PERHAPS | HYPOTHETICAL) and not past(text, mention)


def past(text: Text, mention: Mention) -> bool:
    """Whether something is said to be over: `I used to have asthma`."""
    small = text.stated.lower()
    start, end = text.words[mention.first].start, text.words[mention.last - 1].end
    before = re.split(r"[.;!?]|\bbut\b", small[:start])[-1]
    had = re.search(r"\b(?:had|got|was)\b", before) is not None
    behind = re.split(r"[.;!?]|\bbut\b", small[end:])[0]
    return _BEFORE_PAST.search(before) is not None or (had and _AFTER_PAST.search(behind) is not None)


_BY_HOW_MUCH: Final = re.compile(
    r"\b(?:lost|gained|put on|lose|gain|dropped|losing|gaining)(?: \w+)? $", re.IGNORECASE
)
_LENGTH: Final = re.compile(r"(?:cm|m|ft|foot|feet|'|bmi)(?:\s?\d+)?$", re.IGNORECASE)
_BARE_METRES: Final = re.compile(r"(?<![\d.,/])([12][.,]\d\d)(?![\d.,/]| ?[a-z]{1,2}\b)", re.IGNORECASE)


def _measured(text: Text) -> Iterator[Said]:
    low = text.stated
    if (warm := TEMPERATURE.search(low)) and 34 <= float(
        (re.search(r"[\d.]+", (warm[1] or warm[2]).replace(",", ".")) or [0])[0]
    ) <= 110:
        yield Said("temperature", _clean(warm[1] or warm[2]))
    if (reading := READING.search(low)) and not re.fullmatch(r"\d+ ?/ ?10", reading[1]):
        yield Said("readings", _clean(reading[1]))
    found = [each for each in MEASURE.finditer(low) if not _BY_HOW_MUCH.search(low[: each.start()])]
    if found and not any(_LENGTH.search(_clean(each[1])) for each in found):
        found = [*_BARE_METRES.finditer(low), *found]  # `1.65 and 82 kilos`
    for each in found:
        yield Said("measures", _clean(each[1]), of=text.of_words(each.start()))


def sided(text: Text, part: Mention, texts: list[str]) -> str:
    """`left knee` of `my left knee`."""
    first = part.first
    while first > 0 and texts[first - 1] in text.lexicon.group("body.sides"):
        first -= 1
    return " ".join(texts[first : part.last])


def _clean(value: str) -> str:
    return value.strip(" .,;:!?'\"()-").strip()


def _void(value: str) -> bool:
    """Whether `nothing helps` or `it doesn't help` was said."""
    words = value.lower().split()
    return bool(
        words[0]
        in (
            "nothing",
            "it",
            "that",
            "this",
            "not",
            "what",
            "which",
            "they",
            "no",
            "doesn't",
            "i",
            "would",
            "will",
            "does",
            "if",
        )
        or {"not", "doesn't", "don't", "didn't", "nothing", "never"} & set(words)
    )
