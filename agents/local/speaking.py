"""What a specialist says without a model: what it understood, something general, then the next question."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from agents.interviews import Information, Manner, Question
from agents.local.asides import is_aside
from agents.local.known import OF_CONCERN, UNSETTLED
from agents.local.leaning import asks_what_to_do, is_somebodys, misses_an_answer, own_question
from agents.local.telling import is_when, placed, severity_word, with_article
from agents.ports import Brief
from agents.questions import last_question, name_of
from agents.roster import Roster
from agents.specialist import open_questions
from agents.utterance import asks_back
from agents.values import (
    COORDINATOR,
    EMERGENCY,
    NONE,
    NOT_SAID,
    NOT_SURE,
    OUT_OF_SCOPE,
    TOPIC_WANTED,
    UNSPECIFIED,
    Fact,
)

_TELL_AFTER: Final = 3  # answers of the specialist before it tells something general
_MOST_VALUE: Final = 90
_SILENT: Final = frozenset(("request", "about_whom", "noted", "asked_about", "sex", UNSETTLED))
_SEVERAL: Final = frozenset(("substances", "cycle", "with_whom", "effect"))
_OPEN: Final = frozenset(
    ("triggers", "relief", "effect", "habits", "tried", "goal", "reason", "bedtime", "activity", "needs")
)
_CHILD: Final = re.compile(
    r"\b(?:son|daughter|child|kid|baby|toddler|boy|girl|grandson|granddaughter|infant)\b"
)
_GROWN_UP: Final = 16
_NO: Final = frozenset((NONE, "no", "not pregnant"))
_WHY: Final = re.compile(r"\bwhy (?:do|are|would) you (?:ask|need|want)", re.IGNORECASE)
_HELLO: Final = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[\s,!.]*(?:there|again)?[!. ]*", re.IGNORECASE
)
_SECOND: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in {
        r"\bi'm\b": "you're",
        r"\bi am\b": "you are",
        r"\bi was\b": "you were",
        r"\bi've\b": "you've",
        r"\bi'd\b": "you'd",
        r"\bi'll\b": "you'll",
        r"\bi\b": "you",
        r"\bmyself\b": "yourself",
        r"\bmy\b": "your",
        r"\bme\b": "you",
        r"\bmine\b": "yours",
        r"\bwe\b": "you",
        r"\bour\b": "your",
    }.items()
)


def answer_to(brief: Brief, roster: Roster, is_clause: Callable[[str], bool]) -> str:
    """The whole answer: one to five sentences. `is_clause` tells of a concern that it has no name."""
    if brief.specialist.says:
        return brief.specialist.says
    talk = _Talk(brief, roster, is_clause)
    parts = talk.coordinated() if brief.specialist.agent_type == COORDINATOR else talk.interviewed()
    return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class _Talk:
    """One answer in the making."""

    brief: Brief
    roster: Roster
    is_clause: Callable[[str], bool]

    @property
    def manner(self) -> Manner:
        """What all say alike."""
        return self.roster.manner

    @cached_property
    def known(self) -> dict[str, str]:
        """What is known by now."""
        return self.brief.understanding.enrichment.known

    @cached_property
    def subject(self) -> str:
        """What the conversation is about, in the person's words."""
        kinds = ("concern", "request", "medications", "conditions", "goal")
        return " ".join(self.known.get(kind, "") for kind in kinds)

    @cached_property
    def answers(self) -> tuple[tuple[int, str, str], ...]:
        """The earlier answers: their turn, who gave them, and what they say."""
        return tuple(
            (turn.turn_id, turn.agent_response.agent_type, turn.agent_response.content)
            for turn in self.brief.situation.blocks.conversation_history.turns
            if turn.agent_response is not None
        )

    @cached_property
    def said(self) -> str:
        """All that was answered so far."""
        return "\n".join(content for _, _, content in self.answers)

    @cached_property
    def said_of_this(self) -> str:
        """What was answered since the concern came up, where another was before: it is asked about anew."""
        facts = [fact.turn for fact in self.brief.understanding.enrichment.facts if fact.kind in OF_CONCERN]
        since = min(facts, default=1) if {"concern", "earlier_concern"} <= self.known.keys() else 1
        return "\n".join(
            content for turn, _, content in self.answers if turn >= since or turn == self.answers[-1][0]
        )

    @cached_property
    def new(self) -> tuple[Fact, ...]:
        """What this message brought."""
        now = self.brief.situation.blocks.next_turn
        return tuple(fact for fact in self.brief.understanding.enrichment.facts if fact.turn == now)

    # --- who asks whom ------------------------------------------------------------------------------------

    def coordinated(self) -> Sequence[str]:
        """The coordinator's answer: it greets, says goodbye, declines or asks one question."""
        interview, intent = self.brief.specialist.interview, self.brief.understanding.intent.intent
        likely = [
            self.roster.agents[each].scope
            for each in (intent, *self.brief.understanding.intent.between)
            if each in self.roster.agents and each not in (COORDINATOR, EMERGENCY)
        ]
        if self.brief.understanding.enrichment.phase == "closing":
            return (self.one_of(self.manner.farewell), interview.closing)
        if _HELLO.fullmatch(self.brief.message.strip()):
            return (self.one_of(self.manner.welcome),)
        if intent == OUT_OF_SCOPE:
            return (self.one_of(interview.out_of_scope),)
        if likely and self.manner.which:
            asked = self.manner.which[0].format(scope=" or ".join(likely))
            if asked not in self.said:
                return (asked,)
        return (self.one_of(interview.unclear) or self.manner.welcome[0],)

    def interviewed(self) -> Sequence[str]:
        """A specialist's answer: what it heard, what it can tell, and the next question or the end."""
        interview = self.brief.specialist.interview
        if self.brief.understanding.enrichment.phase == "closing":
            return self.farewell()
        if self.answers and _WHY.search(self.brief.message) and (again := last_question(self.answers[-1][2])):
            return (self.one_of(self.manner.why), again)
        handed, told, question = self.handed_over(), self.told(), self.which_holds() or self.next_question()
        if told and interview.in_general and self.asks_in_general():
            return (handed, told, self.one_of(interview.in_general))
        if question:
            heard = "" if handed and all(fact.kind in _SILENT for fact in self.new) else self.heard()
            return (handed, heard, told, question)
        if interview.closing and interview.closing in self.said_of_this:
            return (handed, *self.afterwards(told))
        if told:
            return (handed, told, self.summary(), interview.closing)
        general = "" if handed else self.information()
        return (handed, self.heard(), general, self.summary(), self.when_to_be_seen(), interview.closing)

    def asks_in_general(self) -> bool:
        """Whether somebody only wants to know something, and has not said that anybody has it."""
        own = not self.known.keys().isdisjoint(OF_CONCERN | {"conditions", "medications"})
        return self.asks() and not own and not is_somebodys(self.brief.message)

    def next_question(self) -> str:
        """The first question that is still open and was not asked about this concern; none when all were.

        One that was passed over is put once more, and called so; not right away while there are others.
        """
        just_now = ""
        last = self.answers[-1][2] if self.answers else ""
        for question in open_questions(self.brief.specialist, self.known):
            asked = self.asked(question.text)
            times = max(self.said_of_this.count(asked), self.said_of_this.count(question.text))
            if not times:
                return asked
            if (
                times == 1
                and self.manner.again
                and set(question.asks) & set(self.brief.understanding.enrichment.passed_over)
                and not self.answered_freely(question)
            ):
                again = f"{self.one_of(self.manner.again)} {asked}"
                if asked not in last and question.text not in last:
                    return again
                just_now = just_now or again
        return just_now

    def which_holds(self) -> str:
        """A question about something that was said before and is denied by this message."""
        kind = next((fact.value for fact in self.new if fact.kind == UNSETTLED), "")
        wording = self.manner.which_holds.get(kind, "")
        return self.asked(wording.format(value=_you(self.known.get(kind, "")))) if wording else ""

    def answered_freely(self, question: Question) -> bool:
        """Whether an open question met words of which no kind of fact was made: they are its answer."""
        asked = (self.asked(question.text), question.text)
        after = {turn + 1 for turn, _, content in self.answers if any(each in content for each in asked)}
        return not _OPEN.isdisjoint(question.asks) and any(
            fact.kind == "mentioned" and fact.turn in after
            for fact in self.brief.understanding.enrichment.facts
        )

    def handed_over(self) -> str:
        """That another specialist has taken over, and that nothing was lost."""
        before = self.answers[-1][1] if self.answers else ""
        if (
            before in ("", COORDINATOR, EMERGENCY, self.brief.specialist.agent_type)
            or before not in self.roster.agents
        ):
            return ""
        topic = self.earlier_topic()
        return self.one_of(
            tuple(
                each.format(
                    agent=self.brief.specialist.display_name,
                    before=self.roster.agents[before].display_name,
                    topic=f"about {topic}" if topic else "so far",
                )
                for each in self.manner.handoff
            )
        )

    def earlier_topic(self) -> str:
        """What the person spoke of before this message, in a few words."""
        now = self.brief.situation.blocks.next_turn
        facts = {
            fact.kind: fact.value for fact in self.brief.understanding.enrichment.facts if fact.turn < now
        }
        session = {fact.kind: fact.value for fact in self.brief.situation.blocks.active_session.facts or ()}
        concern = facts.get("concern") or session.get("concern", "")
        return self.your(concern) if self.named(concern) else ""

    def asked(self, text: str) -> str:
        """A question, about the one whom the person speaks of."""
        relative = self.known.get("about_whom")
        if not relative:
            return text
        for pattern, by in _OF_ANOTHER:
            text = pattern.sub(by.format(who=f"your {relative}"), text)
        return text

    def farewell(self) -> Sequence[str]:
        """An end that says what was understood, unless that was said already."""
        closing = self.brief.specialist.interview.closing
        if not self.known or (closing and closing in self.said_of_this):
            return (self.one_of(self.manner.farewell),)
        return (self.one_of(self.manner.farewell), self.summary(), closing)

    def afterwards(self, told: str) -> Sequence[str]:
        """What is said once all was asked."""
        if told:
            return (told,)
        added = [
            fact
            for fact in self.new
            if fact.kind not in _SILENT and fact.value not in (NONE, UNSPECIFIED, "no", "yes")
        ]
        if added and self.manner.added:
            value = ", ".join(_shown(fact) for fact in added)
            return (
                self.one_of(tuple(each.format(value=value) for each in self.manner.added)),
                self.when_to_be_seen(),
            )
        return (self.one_of(self.manner.acknowledgements), self.one_of(self.manner.still))

    # --- what was heard ------------------------------------------------------------------------------------

    def heard(self) -> str:
        """One sentence that shows what was understood of this message."""
        enrichment = self.brief.understanding.enrichment
        if enrichment.corrected and self.new and self.manner.corrected:
            value = ", ".join(_shown(fact) for fact in self.new if fact.kind not in _SILENT)
            return self.one_of(tuple(each.format(value=value) for each in self.manner.corrected))
        facts = {fact.kind: fact for fact in self.new if fact.kind not in _SILENT}
        if "concern" in facts or not self.answers:
            return self.opened()
        if self.asks() or is_aside(self.brief.message):
            return ""
        told = [facts[kind] for kind in enrichment.answers if kind in facts] or list(facts.values())
        for fact in told:
            if reflected := self.reflected(fact):
                return reflected
        return self.one_of(self.manner.acknowledgements)

    def opened(self) -> str:
        """The first words about a concern; its name is said only where it is one."""
        concern = self.known.get("concern", "")
        named = bool(concern) and self.named(concern)
        own = "about_whom" not in self.known
        wordings = tuple(
            each.format(concern=_a(concern), your_concern=self.your(concern))
            for each in self.brief.specialist.interview.opening
            if (named or "{" not in each) and (own or "{concern}" not in each)
        )
        return self.one_of(wordings, first=0) or self.one_of(self.manner.acknowledgements)

    def reflected(self, fact: Fact) -> str:
        """A fact said back; nothing where it would only be repeated."""
        kind, value = fact.kind, fact.value
        if value == NOT_SURE:
            return self.one_of(self.manner.not_sure)
        if value == NOT_SAID:
            return self.one_of(self.manner.not_said)
        if kind == "severity":
            return self.rated(value)
        if value in _NO:
            return self.one_of(self.fitting(self.manner.none.get(kind, ())))
        if value in (UNSPECIFIED, "yes"):
            return (
                self.one_of(self.fitting(self.manner.reflections.get(kind, ())))
                if kind in ("support", "previous_episodes")
                else ""
            )
        items = [each.value for each in self.new if each.kind == kind]
        shown = _you(_listed(items))
        if len(shown) > _MOST_VALUE:
            return ""
        if (
            kind != "onset"
            and _SENTENCE.match(shown)
            and any("{" in each for each in self.manner.reflections.get(kind, ()))
        ):
            return f"I have noted that {shown}."
        first = next((each for each in items if not each.startswith("no ")), value)
        wordings = self.fitting(self.manner.reflections.get(_wording(kind, first), ()))
        if "about_whom" in self.known and kind == "location":
            return ""
        return self.one_of(
            tuple(each.format(value=_fitted(kind, shown, self.known.get("concern", ""))) for each in wordings)
        )

    def fitting(self, wordings: Sequence[str]) -> tuple[str, ...]:
        """Those that can be said of the one whom the person speaks of; `you` is nobody else."""
        others = "about_whom" in self.known
        return tuple(each for each in wordings if not (others and _YOU.search(each)))

    def rated(self, value: str) -> str:
        """A rating, in a word and with the concern's name where it has one."""
        rated = re.fullmatch(r"(\d+(?:\.\d+)?)(?:-(\d+))?/(\d+)", value)
        if rated is None:
            return f"So it is {_you(value)}."
        word = severity_word(float(rated[1]) * 10 / int(rated[3]))
        concern = self.known.get("concern", "")
        named = self.named(concern) and not concern.startswith("feeling")
        number = f"{rated[1]} to {rated[2]}" if rated[2] else rated[1]
        wordings = tuple(
            each.format(number=number, concern=_a(f"{word} {concern}"))
            for each in self.manner.severity.get(word, ())
            if named or "{concern}" not in each
        )
        said = wordings[0] if wordings else ""
        return re.sub(r"\bA (?=8|11|18)", "An ", said)

    def named(self, concern: str) -> bool:
        """Whether a concern has a name that can stand in a sentence."""
        return bool(concern) and not self.is_clause(concern)

    def your(self, concern: str) -> str:
        """A concern as the person's own, or as the one's they speak of."""
        if not self.named(concern):
            return "what you described"
        if concern.startswith("feeling "):
            return concern
        relative = self.known.get("about_whom", "")
        return f"your {relative}'s {concern}" if relative else f"your {concern}"

    # --- what can be told ----------------------------------------------------------------------------------

    def asks(self) -> bool:
        """Whether the message is a question rather than an answer."""
        return bool(self.question) and not self.brief.understanding.enrichment.answers

    @cached_property
    def question(self) -> str:
        """What the person asks, if they do: all they say, or what stands beside an answer."""
        if self.brief.understanding.enrichment.trigger == TOPIC_WANTED:
            return ""
        message = self.brief.message
        if misses_an_answer(message):
            return own_question(message) or message
        asked = own_question(message)
        if self.brief.understanding.enrichment.answers:
            return asked if asked != message.strip() else ""
        return message if asks_back(message) else asked

    def told(self) -> str:
        """Something general: at once when asked, otherwise when the interview is well under way."""
        mine = [each for _, who, each in self.answers if who == self.brief.specialist.agent_type]
        if self.question:
            return self.told_to(self.question, mine=bool(mine))
        if warning := self.when_to_be_seen(self.brief.message, at_once=not mine):
            return warning
        return self.information() if len(mine) == _TELL_AFTER else ""

    def told_to(self, question: str, *, mine: bool) -> str:
        """What can be said to a person's own question; that it cannot be told here, where nothing can."""
        interview = self.brief.specialist.interview
        if mine and _TO_A_DOCTOR.search(question):
            return self.when_to_be_seen() or interview.closing
        missed = misses_an_answer(self.brief.message)
        about = f"{self.brief.message} {self.known.get('request', '')}" if missed else self.brief.message
        if own := self.information(about, again=missed):
            return own
        if asks_what_to_do(question) and (general := self.information(" ".join(self.known.values()))):
            return general
        if asks_what_to_do(question) and (warning := self.when_to_be_seen()):
            return warning
        if asks_what_to_do(question) and interview.closing in self.said_of_this:
            return interview.closing
        return self.one_of(interview.unsure) if self.answers else ""

    def information(self, about: str = "", *, again: bool = False) -> str:
        """The first piece of information about the concern that was not given yet, or else once more."""
        text = about or self.subject
        beside = f"{text} {self.subject} {self.known.get('allergies', '')}"
        for each in self.brief.specialist.interview.information:
            together = not each.together_with or _speaks_of(each.together_with, beside)
            if (
                together
                and _speaks_of(each.about, text)
                and (again or each.text not in self.said)
                and each.children in (None, self.of_a_child)
                and not self.harmful(each)
            ):
                return _sourced(each)
        return ""

    @cached_property
    def of_a_child(self) -> bool:
        """Whether a child is spoken of; where no age is known, by what it is called."""
        age = re.match(r"(\d+)(?!.*\b(?:month|week|day))", self.known.get("age", ""))
        if age:
            return int(age[1]) < _GROWN_UP
        return bool(_CHILD.search(self.known.get("about_whom", "")))

    def harmful(self, each: Information) -> bool:
        """Whether it recommends what the person cannot have, by an allergy or by the way they live."""
        allergies = self.known.get("allergies", "")
        told = f"{allergies} {self.subject} {self.known.get('habits', '')}"
        allergens = (word.rstrip("s") for word in re.findall(r"[a-z]{4,}", allergies.lower()))
        named = any(
            re.search(rf"\b{word}", each.text.lower())
            for word in allergens
            if not any(word.startswith(about.rstrip("s")) for about in each.about)
        )
        return named or bool(each.unless and _speaks_of(each.unless, told))

    def when_to_be_seen(self, about: str = "", *, at_once: bool = False) -> str:
        """When someone with this concern should be seen, if that was not said yet; maybe only `at_once`."""
        text = about or " ".join(self.known.values())
        for each in self.brief.specialist.interview.see_someone:
            if at_once and not each.at_once:
                continue
            if _speaks_of(each.about, text) and each.text not in self.said:
                return each.text
        return ""

    @cached_property
    def topics(self) -> dict[str, str]:
        """What was asked for under a kind that stands for several things, such as smoking for substances."""
        return {
            kind: question.topic[:1].lower() + question.topic[1:]
            for question in self.brief.specialist.interview.questions
            for kind in question.asks
            if kind in _SEVERAL and (question.text in self.said or self.asked(question.text) in self.said)
        }

    def summary(self) -> str:
        """What was understood, in one sentence."""
        concern, request = self.known.get("concern", ""), self.known.get("request", "")
        lead = self.your(concern) if self.named(concern) else f'"{concern}"' if concern else ""
        if not concern and request:
            lead = f'your {"question" if request.endswith("?") else "message"} "{request}"'
        facts = _summed_up(self.known, lead, self.topics)
        if not facts or not self.manner.summary:
            return ""
        return self.one_of(tuple(each.format(facts=facts) for each in self.manner.summary))

    def one_of(self, wordings: Sequence[str], first: int | None = None) -> str:
        """A wording that was not used yet, else the one used longest ago; they take turns."""
        if not wordings:
            return ""
        start = self.brief.situation.blocks.next_turn if first is None else first
        turned = [wordings[(start + at) % len(wordings)] for at in range(len(wordings))]
        return min(turned, key=self.said.rfind)


_YOU: Final = re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?:you|he|she|they|it|there|nobody|we)\b(?!r)", re.IGNORECASE)
_ON_SKIN: Final = re.compile(r"\b(?:rash|itch\w*|spots?|hives|bites?|moles?|blisters?|bruises?)\b")
_BEGUN: Final = re.compile(
    r"(?:ago|back)$|^(?:after|when|before|while|right|in|just|shortly|soon|out|suddenly)\b", re.IGNORECASE
)
_TO_A_DOCTOR: Final = re.compile(r"\b(?:doctor|gp|hospital|clinic|emergency room|a&e|seen)\b", re.IGNORECASE)
_OF_ANOTHER: Final = tuple(
    (re.compile(pattern), by)
    for pattern, by in {
        r"\bAre you\b": "Is {who}",
        r"\bDo you\b": "Does {who}",
        r"\bHave you had\b": "Has {who} had",
        r"\bare you\b": "is {who}",
        r"\bdo you\b": "does {who}",
        r"\bhave you had\b": "has {who} had",
    }.items()
)


def _a(concern: str) -> str:
    return concern if concern.startswith("feeling ") else with_article(concern)


def _you(text: str) -> str:
    for pattern, by in _SECOND:
        text = pattern.sub(by, text)
    return text


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _wording(kind: str, value: str) -> str:
    """Which wordings fit a value of a kind."""
    if kind == "onset" and not _BEGUN.search(value):
        return "since"
    if kind == "taken_for" and value.startswith("since "):
        return "taken_since"
    if kind == "triggers" and is_when(value):
        return "when_worse"
    if kind == "relief" and is_when(value):
        return "when_better"
    if kind == "associated_symptoms" and value.startswith("no "):
        return "denied"
    if kind == "medications" and value.startswith("stopped"):
        return "stopped"
    if kind in _MEDICINES and value.startswith("no "):
        return "without"
    return kind


def _fitted(kind: str, value: str, concern: str) -> str:
    if kind == "progression" and value in ("same", "the same"):
        return "it has stayed the same"
    if kind == "location" and not placed(value):
        at = "on" if {"side", "sides"} & set(value.split()) or _ON_SKIN.search(concern) else "in"
        return f"{at} {value}" if re.match(r"(?:your|both|the|all)\b", value) else f"{at} your {value}"
    return value


def _shown(fact: Fact) -> str:
    value = re.sub(r"^(\d+(?:-\d+)?)/(\d+)$", r"\1 out of \2", fact.value)
    return _you(value)


def _sourced(each: Information) -> str:
    return f"{each.text} (source: {each.source})."


def _speaks_of(words: Sequence[str], text: str) -> bool:
    """Whether a text speaks of a word, which may be the beginning of a longer one; `no fever` does not."""
    low = text.lower()
    return any(
        not _DENIES.search(low[: found.start()])
        for word in words
        for found in re.finditer(rf"(?<!hay )\b{re.escape(word)}", low)
    )


_DENIES: Final = re.compile(r"(?:\bno|\bwithout|n'?t (?:have|had|got|get))(?: any| a| an| real)? $")


def _without_none(value: str) -> str:
    """Several values without the one that there are no others."""
    return value.removesuffix(f", {NONE}")


def _summed_up(known: dict[str, str], concern: str, topics: dict[str, str]) -> str:
    """The facts in the order in which one would tell them; `topics` names some kinds as they were asked."""
    own = []
    if concern:
        own.append(concern)
    for kind in (
        "severity",
        "onset",
        "duration",
        "frequency",
        "location",
        "quality",
        "triggers",
        "relief",
        "associated_symptoms",
        "progression",
    ):
        value = _without_none(known.get(kind, ""))
        if not value or value in (NOT_SURE, NOT_SAID, UNSPECIFIED, "yes", "no"):
            continue
        if kind == "location" and known["location"] in known.get("concern", ""):
            continue
        own.append(_summed(kind, _you(value[:_MOST_VALUE]), known.get("concern", "")))
    rest = [
        f"{topics.get(kind) or _named_in_sum(kind, value)}: {_shown_in_sum(kind, value)[:_MOST_VALUE]}"
        for kind, value in ((kind, _without_none(value)) for kind, value in known.items())
        if kind not in _TOLD and kind not in _SILENT and value not in (NOT_SURE, NOT_SAID)
    ]
    return "; ".join((", ".join(own), *rest)) if own else "; ".join(rest)


_MEDICINES: Final = {
    "medications": "medicines you told me of",
    "other_medicines": "further medicines you told me of",
}
"""A dose that the person named may be said back as theirs; the output guard knows it by these words."""


def _named_in_sum(kind: str, value: str) -> str:
    without = value in (NONE, "no") or value.startswith("no ")
    return name_of(kind) if kind not in _MEDICINES or without else _MEDICINES[kind]


def _shown_in_sum(kind: str, value: str) -> str:
    if value in (NONE, "no"):
        return "none"
    return _you(value.replace(", ", " and ") if kind in _MEDICINES else value)


_TOLD: Final = frozenset(
    (
        "concern",
        "severity",
        "onset",
        "duration",
        "frequency",
        "location",
        "quality",
        "triggers",
        "relief",
        "associated_symptoms",
    )
) | {"progression"}


def _summed(kind: str, value: str, concern: str) -> str:
    match kind:
        case "severity":
            return re.sub(r"^(\d+(?:-\d+)?)/(\d+)$", r"\1 out of \2", value)
        case "onset":
            begun = value.endswith(("ago", "back")) or re.match(
                r"(?:after|when|before|while|right|in|just)\b", value
            )
            return f"started {value}" if begun else f"since {value}"
        case "duration":
            return f"for {value}"
        case "location":
            return _fitted("location", value, concern)
        case "triggers":
            if value == NONE:
                return "nothing in particular sets it off"
            return f"worse {value}" if is_when(value) else f"worse with {value}"
        case "relief":
            if value == NONE:
                return "nothing helps yet"
            return f"better {value}" if is_when(value) else f"helped by {value}"
        case "associated_symptoms":
            return (
                "no other symptoms"
                if value == NONE
                else value
                if value.startswith("no ")
                else f"with {value}"
            )
        case _:
            return value
