"""Finds the questions in an assistant's text: their form, the kinds of fact they ask for, their options."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from agents.fact_kinds import ASKED_BY
from agents.fact_kinds import name_of as name_of
from agents.utterance import word_set

Form: TypeAlias = Literal["polar", "choice", "open"]

KINDS: Final = ASKED_BY
_MAX_SEARCHED: Final = 4_000  # only the end of a longer text is searched for questions
_SENTENCE: Final = re.compile(r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\be\.g\.)(?<=[.!?])\s+|\n+")
_AUX: Final = (
    r"(?:do|does|did|have|has|had|are|is|was|were|can|could|will|would|should|might|may"
    r"|don't|doesn't|didn't|haven't|hasn't|aren't|isn't|wasn't|weren't)"
)
_WH: Final = (
    r"(?:when|since when|how|where|what|which|who|whom|whose|why|for how long|at what|on what|in which"
    r"|by when)"
)
_SUBJECT: Final = r"(?:you|it|there|your|the|he|she|they|this|that|any|anything|anyone|someone)"
_NEXT: Final = re.compile(
    rf",? (?:and|also) (?=(?!what you ){_WH}\b|{_AUX} {_SUBJECT}\b)"
    rf"|[,;] (?={_WH}\b(?! (?:is|are) fine| (?:\d|zero|one)\b))"
)
_LEAD: Final = re.compile(
    r"^(?:(?:and|so|also|now|but|ok|okay|great|thanks|thank you|first|finally|next|lastly|then|just"
    r"|please|well"
    r"|alright|i (?:am|keep) [^:?]{3,40}:|in that case|to start|one more thing|last question"
    r"|if you (?:like to say|don't mind|may))[,:]? )+"
)
_SCALE_FIRST: Final = re.compile(
    r"^(on a scale (?:of|from) [\w ]{3,20}|from \w{1,4} to \w{1,4}),? (how [^?,]+|what [^?,]+)(?=\?$|, where)"
)
_REQUEST: Final = re.compile(
    r"^(?:(?:can|could|would|will) you (?:please |also |maybe |kindly )?|please |kindly |i(?:'d| "
    r"would) like you to )?"
    r"(?:tell me|let me know|say|explain|share|give me|specify|clarify|remind me)(?: a (?:bit"
    r"|little))?(?: more)?"
    r"(?: about| of| exactly| please)?,? "
)
_INVITES: Final = re.compile(
    r"^(?:please |kindly )?(?:tell me|let me know|rate|describe|share|give me|list|name|specify|point)\b"
)
_KNOWS: Final = re.compile(
    r"^(?:(?:do|would|can|could) you (?:happen to )?(?:know|remember|recall|say|tell)|may i ask|can "
    r"i ask|i wonder"
    r"|i(?:'d| would) like to know|any idea|mind if i ask|would you mind telling me),? (?:me )?(?=\w)"
)
_WHETHER: Final = re.compile(r"^(?:if|whether) ")
_WHICH: Final = re.compile(r"\b(?:which|what) ([a-z]+)\b(?: (?:is|hurts?|are|does|do|was|were)\b|,|\?|$| of)")
_COUNT: Final = re.compile(r"\bhow many (?!a\b|an\b|per\b|each\b|did\b|do\b)((?:[a-z]+ of )?[a-z]+)")
_TOP: Final = re.compile(r"(?:to|and|-|through|out of) ?(100|10|5|ten|five|3|4|6|7|20)\b")
_TOP_NAMED: Final = re.compile(
    r"\b(100|10|5|ten|five|20) (?:is|being|means|stands for|=) (?:the |as )?(?:worst|most|highest|strongest"
    r"|maximum|unbearable|severe|bad)"
)
_TOPS: Final = {"ten": 10, "five": 5}
_EXAMPLES: Final = re.compile(
    r"\b(?:such as|for example|e\.g\.|for instance|including),? (?=.)|(?:, |\b(?:symptoms|things"
    r"|problems|changes|anything) )like (?=.)"
)
_LISTED_BY: Final = word_set("have any had having noticed notice experienced with")
_DOES: Final = word_set(
    "eat go take use stay work live sleep wake drink cook come walk sit stand see talk call feel have get "
    "keep try wait lie run bring make hurt throb"
)
_SUCH_AS: Final = re.compile(
    r"[,(]? *\b(?:such as|for example|e\.g\.|for instance|including)[ ,].*$|(?<=symptoms) like .*$|, "
    r"like .*$|\(.*$"
)
_OPTION_STOP: Final = word_set(
    "is are it the a an do does did you your have had in on at feel more like was were with of any there "
    "be been that this they he she just mostly only usually mainly pain one tend prefer want would rather "
    "hurt hurts happen come came start started worse better get gets when if while than to for about "
    "experience experienced noticed notice use take drink"
)
_DETERMINERS: Final = re.compile(r"^(?:the|a|an|your|any|in|on|at|from|with|more|mostly|some|his|her)\s+")
_CLAUSE: Final = re.compile(rf"^{_AUX} (?:you|it|they|he|she|there|the \w+|your \w+)\s+")


MENU: Final = "What is it about?"
"""Stands for a question that offers topics. They are left out, because the person named none of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question: as it was asked, and its `core` in lower case without the lead-in.

    `kinds`: the kinds of fact it asks for. `options`: what it offers to choose from, or lists.
    `noun`: the noun after `which` or `how many`. `top`: the highest value of its scale.
    """

    asked: str
    core: str
    form: Form
    kinds: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    noun: str = ""
    top: int = 10

    @property
    def opens(self) -> bool:
        """Whether it asks what the person came for, so that any reply is an answer."""
        return _OPENS.match(self.core) is not None

    @property
    def bare(self) -> bool:
        """Whether it names no topic and so refers to what was said just before, as in `How often?`."""
        return _BARE.fullmatch(self.core) is not None

    @property
    def unit(self) -> str:
        """The unit of a bare number in the reply: `weeks` for `How old is she, in weeks?`."""
        found = _IN_UNIT.search(self.core)
        return found[1] if found else ""

    @property
    def numeric(self) -> bool:
        """Whether a bare number is an answer."""
        return bool(self.noun and "how many" in self.core) or not {
            "severity",
            "age",
            "temperature",
            "readings",
            "measures",
            "sleep_hours",
            "dose",
        }.isdisjoint(self.kinds)


def last_question(text: str) -> str | None:
    """The last question in a text; None if there is none."""
    asked = questions(text)
    return asked[-1].asked if asked else None


def without_options(question: Question) -> str:
    """A question without its options; empty if they cannot be cut off."""
    if not question.options:
        return question.asked
    shorter = _OFFERS.sub("", question.asked).rstrip(" ,:;-")
    if shorter == question.asked.rstrip(" ,:;-"):
        shorter = "" if _OR_CLAUSE.search(question.core) else with_only(question, "\u2026")
    says_something = re.search(r"[a-z]{4,}", shorter.lower().replace("your", "")) is not None
    return f"{shorter}?" if len(shorter.split()) > 2 and " or " not in shorter and says_something else ""


def with_only(question: Question, chosen: str) -> str:
    """A question with only the chosen one of its options; empty if that is not possible."""
    if clause := _OR_CLAUSE.search(question.core):
        is_last = bool(set(chosen.split()) & set(question.options[-1].split()))
        return clause[1] if is_last else question.core[: clause.start()]
    first, last = question.options[0].split()[0], question.options[-1]
    last = last if question.core.endswith(last) else last.split()[-1]
    found = re.search(rf"\b{re.escape(first)}\b.*?\bor\b.*?{re.escape(last)}", question.core)
    if found is None or question.core[: found.start()].endswith("all the "):
        return ""
    head, placed = question.core[: found.start()], as_placed(question, chosen)
    if chosen == question.options[-1] and _PLACING.match(placed):  # `at night`, not `after night`
        head, chosen = _PLACING_BEFORE.sub("", head), placed
    return f"{head}{chosen}{question.core[found.end() :]}".strip()


def as_placed(question: Question, chosen: str) -> str:
    """An option with its preposition in the question: `at night` in `after meals or at night`."""
    found = re.search(rf"\b{_PLACE}(?={re.escape(chosen)}(?!\w))", question.core)
    return f"{found[0]}{chosen}" if found else chosen


_PLACE: Final = (
    r"(?:in|on|at|after|before|with|without|when|while|during|by|from|behind|inside|outside|under|above|below"
    r"|between|near|around|over) (?:the |a |an |your |you(?:'re| are)? )?"
)
_PLACING: Final = re.compile(rf"{_PLACE}|(?:before|after|inside|outside|elsewhere|everywhere)$")
_PLACING_BEFORE: Final = re.compile(rf"(?:\b\w+ing )?\b{_PLACE}$")


_OR_CLAUSE: Final = re.compile(
    r",? or ((?:do|does|did|is|are|was|were|has|have|can) (?:you|it|they|he|she|there|the \w+|your \w+) .*)$"
)
_OFFERS: Final = re.compile(
    r"(?:[,;(]? (?:such as|for example|for instance|e\.g\.|like|including),?|\s*[:\u2013\u2014]| -) [^?]*\?$",
    re.IGNORECASE,
)


def kinds_asked(text: str) -> tuple[str, ...]:
    """The kinds of fact that the questions in a text ask for."""
    found = {kind for question in questions(text) for kind in question.kinds}
    return tuple(kind for kind in KINDS if kind in found)


@lru_cache(maxsize=256)
def questions(text: str) -> tuple[Question, ...]:
    """The questions in a text, in their order. One sentence may contain several.

    Results are cached, because most texts are our own and repeat.
    """
    found: list[Question] = []
    before = ""
    for sentence in _SENTENCE.split(text[-_MAX_SEARCHED:]):
        sentence = sentence.strip(" \t*_\"'\u201c\u201d-\u2022")
        low = _SCALE_FIRST.sub(r"\2 \1", _LEAD.sub("", sentence.lower().replace("\u2019", "'")))
        if sentence.endswith("?") or _INVITES.match(low):
            found += [_question(part, sentence) for part in _NEXT.split(low) if part.strip(" ?.!,")]
            offered = _options(before.strip(" .!")) if _OF_THESE.match(found[-1].core) else ()
            if offered and not found[-1].options:
                found[-1] = replace(found[-1], options=offered, form="choice")
        before = low
    return tuple(found)


@lru_cache(maxsize=512)
def _question(part: str, sentence: str) -> Question:
    """Analyse one question. Results are cached, because the same questions recur in different answers."""
    core = _LEAD.sub("", part.strip(" ,"))
    core = _KNOWS.sub("", _REQUEST.sub("", core)) if _WH_AHEAD.search(core) else core
    core = _WHETHER.sub("", core)
    core = _OR_NOT.sub(r"\1 or \2", core.strip(" ?!.,:;"))
    menu = _MENU.search(core) is not None
    other = (
        menu or any(each.match(core) for each in (_OPENS, _SUPPOSES, _WISHES)) or _ABOUT_SAFETY.search(core)
    )
    kinds = () if other else _kinds(f"{core}?")
    options = tuple(each for each in _options(core) if not _NO_OPTION.fullmatch(each))
    top = _TOP.search(core) or _TOP_NAMED.search(core)
    counted = _COUNT.search(core)
    which = _WHICH.search(f"{core}?")
    noun = counted[1] if counted else which[1] if which else ""
    return Question(
        asked=MENU if menu else sentence,
        core=core,
        form=_form(core, options),
        kinds=kinds,
        options=options,
        noun="" if noun in _NO_NOUN else noun,
        top=_TOPS.get(top[1], 0) or int(top[1]) if top and "severity" in kinds else 10,
    )


OF_TESTS: Final = re.compile(r"\b(?:checked|tested|measured|levels?|blood tests?)\b")
"""Matches questions about tests. What they name was tested; the person need not take it or have it."""

BEFORE_NOW: Final = re.compile(
    r"\b(?:taken|tried|been on|used|had)\b.*\b(?:before|in the past|previously)$|\bever (?:taken"
    r"|tried|been on|used)\b"
)
_OF_THESE: Final = re.compile(
    r"which\b|(?:does|do|is|are|would) (?:either|any|one) of (?:these|those|them)\b"
)
_WISHES: Final = re.compile(
    r"(?:do|would) you (?:want|like|prefer|rather)(?: me)? to (?:talk|hear|know|discuss|start|begin|read)\b"
)
_ABOUT_SAFETY: Final = re.compile(
    r"\bsafe\b|\bambulance\b|\b(?:help|anyone|someone|somebody) (?:is )?(?:on the way|coming)\b"
    r"|\b(?:anyone|someone|somebody|you) call(?:ed)?\b"
)
"""Matches questions after danger, such as `are you safe where you are`. They ask for no kind of fact."""

_MENU: Final = re.compile(
    r"\b(?:like|want) to talk about\b|\bbrings? you (?:here|in)\b|\bcan i help(?: you)? with\b"
    r"|\b(?:is (?:it|this|that)|are you (?:here|writing|asking)) (?:mainly |mostly |more )?about\b"
    r"(?:.*,.*,.*\bor\b|.*\bor (?:about )?something else)"
)
"""Matches questions that offer topics. They ask for no kind of fact."""

_OPENS: Final = re.compile(
    r"(?:how|what) (?:else )?(?:can|may|could) (?:i|we) (?:help|do|assist)\b"
    r"|what(?:'s| is| has| have| else is)?(?: been)? (?:seems? to be )?(?:the )?(?:worrying|bothering"
    r"|troubling|concerning|going on|happening|up|wrong|matter|problem|trouble|issue|brings? you"
    r"|brought you)\b"
    r"|what(?:'s| is) (?:most )?on your mind"
    r"|what (?:would you like|do you want|did you want|do you wish|would you want)(?: to (?:ask|know|talk"
    r"|discuss|look)\b| help\b)(?!.*\b(?:most|about (?:it|this|that|them))\b)"
    r"|what (?:is|was) (?:it|this) about"
)
_BARE: Final = re.compile(
    r"(?:for |since |from |until )?(?:how (?:long|often|much|many|many times)|when|what|which ones?|who|where"
    r"|why)"
    r"(?: ago)?(?: (?:was|were|is) (?:that|this))?(?: did you (?:stop|start|quit|give (?:it )?up))?"
    r"(?: (?:a|per|each|every) (?:day|week|night|month|year))?(?: (?:exactly|roughly|about|for))?"
)
_IN_UNIT: Final = re.compile(
    r"\bin (?:whole |full |completed )?(minutes|hours|days|weeks|months|years|kilos|kilograms|kg|pounds|stone"
    r"|centimetres|centimeters|cm|metres|meters|mg|milligrams|celsius|fahrenheit)\b"
)
_NO_OPTION: Final = re.compile(
    r"(?:neither|none)(?: of (?:them|those|these))?|(?:about )?something else.*|anything else"
)
_OR_NOT: Final = re.compile(rf"^(.*[^,]), ([^,]+?),? or (?:{_NO_OPTION.pattern})$")
_SUPPOSES: Final = re.compile(
    r"(?:could|might|may|can) (?:it|this|that|they|these) (?:be|have been|come|have to do)\b"
)
_WH_AHEAD: Final = re.compile(rf"\b(?:{_WH[3:-1]}|if|whether|about|your|the)\b")
_NO_NOUN: Final = word_set("is are do does did kind sort type else were was have time exactly about would")


def _kinds(core: str) -> tuple[str, ...]:
    """The kinds of fact that a question asks for."""
    bare = _SUCH_AS.sub("?", core)
    found = [kind for kind, asks in KINDS.items() if asks.search(bare)]
    if not found:
        found = [kind for kind, asks in KINDS.items() if asks.search(core)]
    if core.startswith("what were you doing"):
        return ("triggers",)
    for kind, others in _OVERRIDES.items():
        if kind in found:
            found = [each for each in found if each not in others]
    if "triggers" in found and _EITHER_WAY.search(core):
        found.append("relief")
    return tuple(found)


_EITHER_WAY: Final = re.compile(r"\bbetter or (?:\w+ )?worse\b|\bworse or (?:\w+ )?better\b")
_OVERRIDES: Final = {
    "taken_for": ("duration", "medications"),
    "allergies": ("medications", "conditions"),
    "progression": ("triggers", "relief"),
    "frequency": ("triggers", "habits", "substances", "onset", "duration"),
    "severity": ("effect", "quality", "duration"),
    "dose": ("medications",),
    "family_history": ("conditions", "previous_episodes"),
    "sleep_hours": ("duration",),
    "previous_episodes": ("onset", "associated_symptoms"),
    "duration": ("onset", "progression"),
    "tried": ("relief",),
    "deadline": ("goal", "onset"),
    "goal": ("relief", "preferred_time"),
    "with_whom": ("medications", "triggers"),
    "other_medicines": ("medications", "associated_symptoms"),
    "activity": ("habits",),
    "preferred_time": ("triggers",),
    "triggers": ("quality", "relief"),
    "associated_symptoms": ("medications",),
}
"""If a question matches the first kind, these other kinds are dropped."""


def _form(core: str, options: tuple[str, ...]) -> Form:
    """Whether a question is answered by yes or no (`polar`), by an option (`choice`) or freely (`open`)."""
    if _INVITES.match(core) or re.match(
        r"(?:can|could|would) you (?:please )?(?:describe|rate|point|show|list)\b", core
    ):
        return "open"
    if re.match(rf"{_WH}\b", core) and not re.match(r"(?:which|what|where)\b.*,.*\bor\b", core):
        return "open"
    if options and not re.search(
        (
            r"\b(?:any|anything|have|had|having|notic\w+|experienc\w+|take|taking|tried|allergic|smoke"
            r"|drink|ever)\b"
        ),
        core,
    ):
        return "choice"
    if re.match(rf"{_AUX}\b|any\b|ever\b", core):
        return "polar"
    if options:
        return "choice"
    return "polar" if len(core.split()) <= 4 and not _kinds(f"{core}?") else "open"


_SUITS: Final = re.compile(r"(?<=\w) (?:suits?|works?)(?: best| better)?(?: for)? you\b.*$")


def _options(core: str) -> tuple[str, ...]:
    """The options of `a, b or c`. Where the first one begins is guessed from the length of the others."""
    named = _EXAMPLES.split(core, maxsplit=1)[-1]
    before, _, last = named.rpartition(" or ")
    if not before or last.startswith("not"):
        return (named.strip(),) if named != core else ()
    last = _SUITS.sub("", _CLAUSE.sub("", last.strip(" ,")))
    parts = [each.strip() for each in before.strip(" ,").split(",") if each.strip()]
    middle = parts[1:] if len(parts) > 1 else []
    if re.match(rf"{_WH}\b", core) and middle:
        parts, middle = [middle[0]], middle[1:]
    if last.split()[0] in _DOES and (whole := _CLAUSE.sub("", parts[0])) != parts[0]:
        return tuple(_without_determiners(each) for each in (whole, *middle, last))
    width = max(len(_without_determiners(each).split()) for each in (last, *middle))
    first = _tail(parts[0], max(width, 1))
    options = [_without_determiners(each) for each in (first, *middle, last)]
    return tuple(_with_shared_words(each, options[-1]) for each in options if each)


def _without_determiners(option: str) -> str:
    while (shorter := _DETERMINERS.sub("", option.strip(" ,"))) != option:
        option = shorter
    return option


def _tail(text: str, width: int) -> str:
    """The last words of a text that can be part of an option."""
    kept: list[str] = []
    for word in reversed(text.split()):
        if word in _OPTION_STOP:
            width = max(width, len(kept)) if word in _LISTED_BY or word in ("a", "an") else width
            break
        kept.insert(0, word)
    return " ".join(kept[-width:]) or " ".join(text.split()[-1:])


_HALVES: Final = word_set(
    "left right upper lower front back inner outer top bottom one same first second morning afternoon before "
    "after with without during evening monday tuesday wednesday thursday friday saturday sunday"
)


def _with_shared_words(option: str, last: str) -> str:
    """Complete an option from the last one: `left` in `left or right knee` is `left knee`."""
    words, others = option.split(), last.split()
    if _PLACING.match(last) and not _PLACING.match(f"{option} x"):  # `morning` of `morning or after work`
        return option
    return (
        f"{option} {' '.join(others[1:])}"
        if len(words) == 1 and words[0] in _HALVES and len(others) > 1
        else option
    )
