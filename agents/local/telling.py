"""What a person said, told in the third person so that a stranger understands it."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agents.local.lexicon import word_set
from agents.questions import Question, name_of
from agents.values import NONE

_AUXILIARY: Final = re.compile(
    r"(do|does|did|have|has|had|are|is|was|were|can|could|will|would|should|might|may)(?:n't)? (.+)"
)
_SIDED: Final = "left|right|upper|lower|blood|stomach|chest|heart|sore|other"
_SUBJECTS: Final = re.compile(
    r"(you guys|you|it|there|this|that|they|he|she|anything|anyone|someone|something"
    rf"|(?:your|the|his|her|this|that|any|these|those) (?:(?:{_SIDED}) )?[\w'-]+)\b ?(.*)"
)
_THIRD: Final = {
    r"\bi'm\b": "they are",
    r"\bi am\b": "they are",
    r"\bi was\b": "they were",
    r"\bi've\b": "they have",
    r"\bi'd\b": "they would",
    r"\bi'll\b": "they will",
    r"\bi\b": "they",
    r"\bmy\b": "their",
    r"\bme\b": "them",
    r"\bmine\b": "theirs",
    r"\bmyself\b": "themselves",
    r"\bwe\b": "they",
    r"\bour\b": "their",
}
_THIRDS: Final = tuple((re.compile(pattern, re.IGNORECASE), by) for pattern, by in _THIRD.items())
_OBJECT_BEFORE: Final = (
    r"to|with|from|at|in|more|when|up|awake|feel|less|while|for|and|or|than|out|about|sick|short"
)
_ASKED: Final = {
    r"\byourself\b": "themselves",
    r"\byou are\b": "they are",
    r"\byour\b": "their",
    rf"\byou\b(?= *(?:$|[.,;:(\"]|(?:{_OBJECT_BEFORE})\b))": "them",
    r"\byou\b": "they",
    r"\bme\b": "the agent",
}
_ASKEDS: Final = tuple((re.compile(pattern, re.IGNORECASE), by) for pattern, by in _ASKED.items())
_EXAMPLES: Final = re.compile(
    r",? *(?:\(.*?\)|\b(?:such as|for example|e\.g\.|for instance|including)\b.*)|(?<=symptoms) "
    r"like\b.*|, like\b.*"
)
_SEVERAL: Final = re.compile(r"^\w*[a-rt-z]s$|\band\b")
_OUR_ASIDE: Final = re.compile(r" (?:that )?(?:i|we) (?:should|ought to|need to) know(?: of| about)?$")
_UNIT_OF_AGE: Final = re.compile(r"\b(?:days?|weeks?|months?|years?)$")
_WORDS: Final = ((1, "mild"), (4, "moderate"), (7, "severe"))
_BEGINS_MOMENT: Final = re.compile(
    (
        r"(?:since|after|when|before|while|right|just|shortly|soon|during|in|on|at|around|about|last"
        r"|this|yesterday|today|tonight|the|early|late"
        r"|mon|tues|wednes|thurs|fri|satur|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|\d|an?\b"
        r"|one|two|three|four|five|six|seven|eight"
        r"|nine|ten|few|couple|several|over|almost|nearly|roughly|christmas|easter|new year|long ago"
        r"|earlier|more than|maybe|like)"
    ),
    re.IGNORECASE,
)
_HAPPENED: Final = re.compile(
    r"(?:the|my|our|his|her) [\w' -]+? (?:was|were|got|had|came|left|went|began|broke|fell|\w+ed)\b",
    re.IGNORECASE,
)
_PLACED: Final = re.compile(
    (
        r"(?:in|on|at|behind|around|under|above|below|between|across|along|near|down|all over|inside"
        r"|everywhere|from|over|up|next to)\b"
    ),
    re.IGNORECASE,
)
_WHEN: Final = re.compile(
    (
        r"(?:when|whenever|after|at|in|during|with|if|while|before|every|by|from|on|as soon|whilst"
        r"|only (?:when|after|if|at|with)|all (?:day|night|the time)|first "
        r"thing|mostly|usually|worse)\b"
    ),
    re.IGNORECASE,
)
_DOING: Final = re.compile(
    r"(?:can't|cannot|keeps?|wak|lying|lie|snore|threw|throw|vomited|fainted|passed|losing|gaining|lost|not"
    r"|barely|won't|nod)",
    re.IGNORECASE,
)
_WHOLE: Final = re.compile(r"(?:their|they|it|he|she|his|her)\b", re.IGNORECASE)
_UNCOUNTED: Final = word_set(
    "nausea dizziness flu diarrhea diarrhoea insomnia anxiety fatigue heartburn pain acne gas stress "
    "depression grief constipation bloating congestion numbness tingling swelling itching bleeding "
    "discharge vomiting burning tightness stiffness pressure weakness exhaustion loneliness burnout "
    "vertigo tinnitus wheezing snoring sneezing sweating mood fever dandruff reflux breath loss gain "
    "tenderness soreness redness bruising spotting sleep energy skin vision asthma diabetes eczema gout "
    "arthritis indigestion"
)


class Teller:
    """Tells of a concern: `concern` is its name, `relative` who has it if not the person; `relatives` finds
    whom a question can name. A `request` is what the person wrote, of which nothing can be said as of a
    complaint.
    """

    def __init__(
        self,
        concern: str = "",
        relative: str = "",
        *,
        clause: bool = False,
        request: bool = False,
        relatives: re.Pattern[str] | None = None,
    ) -> None:
        self.concern = concern
        self.relative = f"their {relative}" if relative else ""
        self.clause = clause
        self._relatives = relatives
        self._request = request

    @property
    def topic(self) -> str:
        """What the conversation is about."""
        return f'"{self.concern}"' if self._request and self.concern else self.about if self.concern else ""

    @property
    def about(self) -> str:
        """The concern as the subject of a sentence."""
        if not self.concern or self._request:
            return "it"
        if self.clause:
            return f'"{self.concern}"'
        if self.concern.startswith("feeling "):
            return f"{self.relative} {self.concern}".strip()
        return f"{_of(self.relative)} {self.concern}" if self.relative else f"the {self.concern}"

    @property
    def who(self) -> str:
        """Who is spoken of."""
        return self.relative.replace("their", "User's", 1) or "User"

    def reports(self, value: str, *, clause: bool = False) -> str:
        """A complaint, said for the first time."""
        if clause:
            return (
                f'User reports: "{value}"'
                if not self.relative
                else f'User reports of {self.relative}: "{value}"'
            )
        if value.startswith("feeling "):
            return f"User reports {self.relative + ' ' if self.relative else ''}{value}"
        return f"User reports {self.relative + ' ' if self.relative else ''}having {with_article(value)}"

    def tells(self, kind: str, value: str) -> str:
        """A fact as a sentence that needs no other."""
        said = third_person(value)
        if value == NONE:
            return self._tells_none(kind)
        match kind:
            case "severity":
                rated = re.fullmatch(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?/(\d+)", value)
                concern = "" if self._request else self.concern
                name = f"{_of(self.relative)} {concern}" if self.relative and concern else concern
                name = f'"{name}"' if self.clause and name else name
                if rated is None:
                    return f"User describes {name or 'the'} severity as {said}"
                number = float(rated[1]) * 10 / int(rated[3])
                span = f"{rated[1]}-{rated[2]}" if rated[2] else rated[1]
                word = severity_word(number)
                return f"User rates {name + ' ' if name else ''}severity as {span} out of {rated[3]} ({word})"
            case "onset":
                moment = _BEGINS_MOMENT.match(value) and not _HAPPENED.match(value)
                since = "started " if moment else "has been there since "
                return f"User says {self.about} {since}{said}"
            case "duration":
                return f"User says {self.about} has lasted {said}"
            case "frequency":
                return f"User says {self.about} happens {said}"
            case "location":
                if "," in said and not said.startswith("both"):
                    return f"User says where {self.about} is: {said}"
                if _PLACED.match(said):
                    return f"User says {self.about} is {said}"
                the = (
                    ""
                    if re.match(r"(?:both|all|one|the|their|my|whole|every|only|just|mostly)\b", said)
                    else "the "
                )
                at = "on" if "side" in said.split() or "sides" in said.split() else "in"
                return f"User says {self.about} is {at} {the}{said}"
            case "quality":
                return f"User describes {self.about} as {said}"
            case "triggers":
                if _WHEN.match(said):
                    return f"User says {self.about} is worse {said}"
                return f"User says {self.about} is brought on or worsened by {said}"
            case "relief":
                return (
                    f"User says {self.about} gets better {said}"
                    if _WHEN.match(said)
                    else f"User says {said} {'help' if _SEVERAL.search(said) else 'helps'}"
                )
            case "associated_symptoms" if said.endswith("(gone by now)"):
                return f"{_of(self.who)} {said.removesuffix(' (gone by now)')} is gone by now"
            case "progression" if said == "gone":
                return f"User says {self.about} is gone"
            case "associated_symptoms" if said.startswith("no feeling "):
                return f"{self.who} is not {said.removeprefix('no ')}"
            case "associated_symptoms" if said.startswith("feeling "):
                return f"{self.who} also reports {said}"
            case "associated_symptoms" if _DOING.match(said) or _WHOLE.match(said):
                return f'{self.who} also says: "{said}"'
            case "associated_symptoms":
                return (
                    f"{self.who} also has {said}" if not said.startswith("no ") else f"{self.who} has {said}"
                )
            case "denied":
                return f"{self.who} has no {said}"
            case "medications":
                return (
                    f"{self.who} takes {said}"
                    if not said.startswith(("no ", "stopped"))
                    else (f"{self.who} {said}" if said.startswith("stopped") else f"{self.who} takes {said}")
                )
            case "conditions" if said.startswith("possibly "):
                return f"{self.who} might have {said.removeprefix('possibly ')} (not certain)"
            case "conditions" if said.endswith(" in the past"):
                return f"{self.who} had {said}"
            case "conditions":
                return f"{self.who} has {said} (medical history)"
            case "allergies":
                return (
                    f"{self.who} has "
                    f"{'no allergy to ' + said[3:] if said.startswith('no ') else 'an allergy to ' + said}"
                )
            case "pregnancy" | "sex":
                return f"{self.who} is {said}"
            case "age":
                unit = "" if "old" in said else " old" if _UNIT_OF_AGE.search(said) else " years old"
                return f"{self.who} is {said}{unit}"
            case "about_whom":
                return f"User speaks about their {said}"
            case "family_history":
                return f"User reports family history: {said}"
            case _:
                return f"User says about {name_of(kind)}: {said}"

    def _tells_none(self, kind: str) -> str:
        """That there is nothing of a kind."""
        match kind:
            case "relief":
                return f"User says nothing helps with {self.about}"
            case "triggers":
                return f"User says nothing makes {self.about} worse"
            case "medications" | "other_medicines":
                return f"{self.who} takes no {'other ' if kind == 'other_medicines' else ''}medication"
            case _:
                return f"{self.who} has no {name_of(kind)}"

    def declares(self, question: Question, *, yes: bool) -> str | None:
        """A yes-or-no question as the statement that a yes or no makes of it; None where that is unsafe."""
        core = _OUR_ASIDE.sub("", _EXAMPLES.sub("", question.core)).strip(" ,")
        found = _AUXILIARY.fullmatch(core)
        if found is None:
            if re.match(r"any |ever |(?:fever|chills|\w+)$", core) and len(core.split()) <= 12:
                items = _swapped(re.sub(r"^any ", "", core), _ASKEDS)
                return f"{self.who} has {items}" if yes else f"{self.who} has no {items}"
            return None
        auxiliary, rest = found[1], found[2]
        parted = (self._relatives and self._relatives.fullmatch(rest)) or _SUBJECTS.fullmatch(rest)
        if parted is None or not parted[2]:
            return None
        subject, rest = parted[1], parted[2]
        if parted.re is self._relatives:
            subject = subject.replace("your", "User's", 1)
        if yes:
            rest = re.sub(r"\bany(?:thing|one|body)\b", _as_some, rest)
            rest = re.sub(r"\bany (?=\w)", "", rest)
            rest = re.sub(r"^ever ", "", rest)
        several = auxiliary in ("do", "have", "are", "were") and _OF_SEVERAL.match(subject)
        predicate = _predicate(
            auxiliary, "they" if several else subject, rest, yes or subject in ("anything", "anyone")
        )
        predicate = _swapped(f" {predicate}".replace(" is not any ", " is no "), _ASKEDS)
        said = f"{self._subject(subject, yes)}{predicate}"
        return said if said.startswith("User") else f"User says {said}"

    def _subject(self, subject: str, yes: bool) -> str:
        if subject in ("you", "you guys"):
            return self.who
        if subject in ("it", "this", "that"):
            return self.about
        if subject in ("he", "she"):
            return self.relative or subject
        if subject in ("anything", "anyone"):
            return (
                {"anything": "something", "anyone": "someone"}[subject]
                if yes
                else {"anything": "nothing", "anyone": "no one"}[subject]
            )
        if subject.startswith("any "):
            return subject[4:] if yes else f"no {subject[4:]}"
        return re.sub(r"^your ", f"{_of(self.who)} ", subject)


_OF_SEVERAL: Final = re.compile(r"(?:your|user's|the|his|her|these|those) ", re.IGNORECASE)


def _of(name: str) -> str:
    """A name before what is theirs: `son's`, `kids'`."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def relatives_in_questions(names: Iterable[str]) -> re.Pattern[str]:
    """Finds a relative or something of theirs where a question is about it: `your son`, `your son's ear`."""
    listed = "|".join(re.escape(each) for each in sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(your (?:(?:little|older|younger|eldest|\d+[ -](?:year|month|week|day)s?[ -]old) )?"
        rf"(?:(?:{listed})s?|\d+[ -](?:year|month|week|day)s?[ -]old)"
        rf"(?:(?:'s|(?<=s)') (?:(?:{_SIDED}) )?[\w-]+)?)(?!') (.*)"
    )


def _as_some(found: re.Match[str]) -> str:
    return {"anything": "something", "anyone": "someone", "anybody": "somebody"}[found[0]]


def _predicate(auxiliary: str, subject: str, rest: str, yes: bool) -> str:
    verb, _, tail = rest.partition(" ")
    if auxiliary in ("do", "does"):
        plural = auxiliary == "do" and subject not in _ADDRESSED
        if not yes:
            return f"{'do' if plural else 'does'} not {rest}"
        if verb in ("still", "also", "ever", "usually", "often", "now", "already") and tail and not plural:
            return f"{verb} {_predicate(auxiliary, subject, tail, yes)}"
        second = re.match(r"and (\w+)$", tail)
        tail = f"and {_third(second[1])}" if second and not plural else tail
        return f"{verb if plural else _third(verb)} {tail}".strip()
    if auxiliary == "did":
        return f"did{'' if yes else ' not'} {rest}"
    own = {"have": "has", "are": "is", "were": "was"}.get(auxiliary, auxiliary)
    if subject not in _ADDRESSED:
        own = auxiliary
    if own == "can" and not yes:
        return f"cannot {rest}"
    return f"{own}{'' if yes else ' not'} {rest}"


_ADDRESSED: Final = ("you", "you guys")


def _third(verb: str) -> str:
    if verb in ("have", "be"):
        return {"have": "has", "be": "is"}[verb]
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else f"{verb}s"


def third_person(text: str) -> str:
    """The person's own words as someone else would repeat them: `when I woke up` as `when they woke up`."""
    return _swapped(text, _THIRDS)


def _swapped(text: str, pairs: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    for pattern, by in pairs:
        text = pattern.sub(by, text)
    return text


def is_when(value: str) -> bool:
    """Whether a value says when: `at night`, `after meals`."""
    return _WHEN.match(value) is not None


def placed(value: str) -> bool:
    """Whether a place is said with its preposition: `behind my eyes`."""
    return _PLACED.match(value) is not None


def severity_word(rating: float) -> str:
    """A rating out of 10 in a word; 0 is none."""
    return next((word for least, word in reversed(_WORDS) if rating >= least), "mild" if rating else "none")


def with_article(thing: str) -> str:
    """`a headache`, but `headaches` and `fever`."""
    head = re.split(r" (?:in|on|of|behind|around|under|at|during|to) ", thing)[0]
    last = head.rsplit(" ", 1)[-1].lower()
    if thing.startswith("no ") or (last.endswith("s") and not last.endswith("ss")) or last in _UNCOUNTED:
        return thing
    return f"{'an' if thing[:1].lower() in 'aeiou' else 'a'} {thing}"


def recap(known: Mapping[str, str], told: str, teller: Teller, prior: str = "") -> str:
    """What else one must know to understand: the concern, how strong, since when, where; and what was told
    right before, if that is given.
    """
    low = told.lower()
    parts = []
    for kind in ("severity", "onset", "duration", "location", "triggers"):
        value = known.get(kind)
        if not value or third_person(value).lower() in low or value in ("not sure", "prefers not to say"):
            continue
        if kind == "location" and value.lower() in known.get("concern", ""):
            continue
        if (kind == "severity" and "severity" in low) or (kind == "triggers" and not _WHEN.match(value)):
            continue
        late = _BEGINS_LATE.match(value) or value.endswith(("ago", "back"))
        lead = {"onset": "" if late else "since ", "duration": "for "}.get(kind, "")
        parts.append(f"{lead}{third_person(value)}")
    if "asked_about" in known and (taken := known.get("medications")) and taken.lower() not in low:
        parts.append(f"takes {taken}" if taken not in (NONE, "not sure") else "takes no medication")
    name = teller.topic
    if prior and prior.removeprefix("asked ").strip('"').lower() not in f"{low} {name.lower()}":
        parts.append(f"before that {prior}")
    named = teller.concern.lower() in low if teller.concern else True
    if not parts:
        return "" if named else f" (about {name})"
    if named and parts[0].startswith("before that "):
        return f" ({parts[0]})"
    return f" (about {name}: {', '.join(parts)})" if not named else f" (known: {', '.join(parts)})"


_BEGINS_LATE: Final = re.compile(
    r"(?:since|after|when|before|while|right|just|shortly|soon|during|in|on|at|around)\b", re.IGNORECASE
)
