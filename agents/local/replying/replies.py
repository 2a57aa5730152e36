"""Writes the reply to a message, act by act: what was noted, what was asked for, and at most one question."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRoster
from agents.local.dialogue import NOT_TOLD, REMOVE, TOLD, Talk, known_for, named_topic
from agents.local.reading.changes import kept_words
from agents.local.reading.clauses import PERSON, plain, relative_in, split
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED
from agents.local.replying import memory
from agents.local.replying.information import general_information
from agents.local.replying.interviewing import next_question
from agents.local.replying.medicines import Medicines
from agents.local.search import Search, asked_kinds, topic_words
from agents.ports import Recalled
from agents.roster import Specialist
from agents.values import (
    COORDINATOR,
    NONE,
    NOT_SAID,
    NOT_SURE,
    OUT_OF_SCOPE,
    UNSPECIFIED,
    Act,
    ActKind,
    Fact,
    FactReading,
    Intent,
    values_of,
)
from memory_blocks.facts.changes import CurrentFact, Op
from memory_blocks.models import EarlierSession
from memory_blocks.summary_text import NO_TOPIC, titled

_Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
_MOST_QUOTED: Final = 2
_LONG: Final = 110
_RATHER_FOREIGN: Final = 0.6
_FOREIGN: Final = 0.9  # from this confidence on, a question is outside although health was spoken of
_WHOLE_INTERVIEW: Final = 3  # questions, before an interview is closed
_PLAIN_VALUES: Final = (NONE, NOT_SURE, NOT_SAID, UNSPECIFIED)


class Texts(BaseModel):
    """The wording in `replies.toml`. `requests` has a sentence for each pattern of a request."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    without_a_model: str
    noted: _Texts
    noted_plainly: _Texts
    remembered: _Texts
    corrected: _Texts
    corrected_plainly: _Texts
    taken_out: _Texts
    removed: _Texts
    kept: _Texts
    nothing_to_remove: _Texts
    summary: _Texts
    nothing_noted: _Texts
    resumed: _Texts
    resumed_plainly: _Texts
    left: _Texts
    topic: _Texts
    no_shame: _Texts
    follow_up: _Texts
    trust: _Texts
    loss: _Texts
    loss_again: _Texts
    hard: _Texts
    afraid: _Texts
    glad: _Texts
    complaint: _Texts
    asked_again: _Texts
    no_answer: _Texts
    welcome: _Texts
    goodbye: _Texts
    hello: _Texts
    hello_again: _Texts
    fine: _Texts
    chat: _Texts
    how_are_you: _Texts
    waiting: _Texts
    unclear: _Texts
    explain: _Texts
    outside: _Texts
    about_us: _Texts
    privacy: _Texts
    why_ask: _Texts
    medicine_question: _Texts
    medicine_general: _Texts
    sensible: _Texts
    health_question: _Texts
    what_it_is: _Texts
    worried: _Texts
    noted_for_them: _Texts
    question_noted: _Texts
    requests: Mapping[str, str]


def load(path: Path) -> Texts:
    """Load the wording."""
    try:
        return Texts.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError):
        raise BadRoster(path.name, "$", "cannot be read as wording") from None


@dataclass(frozen=True)
class Turn:
    """Everything that a reply depends on. `talk` is the conversation before it, `facts` hold after it."""

    message: str
    talk: Talk
    acts: tuple[Act, ...]
    changes: tuple[FactReading, ...]
    facts: tuple[CurrentFact, ...]
    specialist: Specialist
    intent: Intent
    now: datetime
    recalled: Recalled = field(default_factory=Recalled)
    earlier: tuple[EarlierSession, ...] = ()
    follow_up: EarlierSession | None = None

    @property
    def kinds(self) -> frozenset[ActKind]:
        """The acts of the message."""
        return frozenset(act.kind for act in self.acts)

    @property
    def concern(self) -> CurrentFact | None:
        """What the conversation is about after the message."""
        named = sorted(
            (fact for fact in self.facts if fact.kind == CONCERN), key=lambda fact: fact.last_said_at
        )
        return named[-1] if named else None

    @property
    def known(self) -> dict[str, str]:
        """What is known for the concern after the message."""
        return known_for(self.facts, self.concern)

    def words(self, *kinds: ActKind) -> list[str]:
        """The words of the acts of some kinds."""
        return [act.words for act in self.acts if act.kind in kinds]


class Replies:
    """Writes replies with the shipped wording, the table of medicines and a search by meaning."""

    def __init__(
        self,
        texts: Texts,
        medicines: Medicines,
        specialists: Sequence[Specialist],
        search: Search,
    ) -> None:
        self._texts, self._medicines, self._specialists, self._search = texts, medicines, specialists, search

    def reply(self, turn: Turn) -> str:
        """The whole reply. The first one of a conversation also says that there is no language model."""
        said = [part for part in self._parts(turn) if part]
        if self._may_ask(turn, said):
            said += self._advice_at_once(turn)
            said.append(
                next_question(turn.specialist, turn.known, turn.talk, turn.concern, turn.message)
                or self._closing(turn)
            )
        text = " ".join(dict.fromkeys(filter(None, said))) or self._pick("noted_plainly", turn)
        return text if turn.talk.said else f"{text} {self._texts.without_a_model}"

    def _advice_at_once(self, turn: Turn) -> list[str]:
        """Whom to see with a new concern, if that should not wait for a question about it."""
        new = next((change.words for change in turn.changes if change.kind == CONCERN), "").lower()
        return [
            each.text
            for each in turn.specialist.interview.see_someone
            if each.at_once and any(word in new for word in each.about)
        ]

    def _closing(self, turn: Turn) -> str:
        """What is said once, after the last question of an interview."""
        closing = turn.specialist.interview.closing
        asked = sum("?" in said.answer for said in turn.talk.said)
        before = any(closing in said.answer for said in turn.talk.said)
        return closing if asked >= _WHOLE_INTERVIEW and not before else ""

    def _pick(self, name: str, turn: Turn, **values: str) -> str:
        """A wording that the last answers did not have, with the values put in."""
        texts: Sequence[str] = getattr(self._texts, name)
        before = " ".join(said.answer for said in turn.talk.said[-4:])
        start = len(turn.talk.said) % len(texts)
        ordered = [*texts[start:], *texts[:start]]
        unused = [text for text in ordered if text.split("{")[0].strip(" :") not in before]
        return (unused or ordered)[0].format(**values)

    def _may_ask(self, turn: Turn, said: Sequence[str]) -> bool:
        """Whether a question of the interview fits after this message: not beside what it asks or feels."""
        if turn.kinds & _QUIET or any("?" in part for part in said):
            return False
        if turn.talk.removal or _wants_quiet(turn) or turn.intent.intent == OUT_OF_SCOPE or _grieves(turn):
            return False
        if turn.concern is None or turn.specialist.agent_type == COORDINATOR:
            return False
        raised = next(
            (said.intent for said in turn.talk.said if said.turn == turn.concern.turn), turn.intent.intent
        )
        if ActKind.TOPIC_LEFT in turn.kinds and not _is_aside(turn):
            return False
        if raised != turn.intent.intent or raised in _ASKS_NOTHING:
            return False
        new = any(change.kind == CONCERN for change in turn.changes)
        about_it = any(
            change.about == turn.concern.value[:120] and change.kind != NOTED for change in turn.changes
        )
        return new or ActKind.ANSWER in turn.kinds or (about_it and turn.talk.question is not None)

    def _parts(self, turn: Turn) -> list[str]:
        """What each act is answered with, in the order of importance."""
        kinds = turn.kinds
        if turn.talk.removal and ActKind.ANSWER in kinds and all(change.op.ends for change in turn.changes):
            return [self._after_removal(turn)]
        if turn.talk.refuses_removal(plain(turn.message)):
            return [self._pick("kept", turn)]
        parts = [
            self._complaint(turn) if ActKind.COMPLAINT in kinds else "",
            self._feeling(turn) if ActKind.FEELING in kinds else "",
            self._corrected(turn) if ActKind.CORRECT in kinds else "",
            self._remembered(turn) if ActKind.REMEMBER in kinds else "",
            self._noted(turn),
            self._forget(turn) if ActKind.FORGET in kinds else "",
            self._topic(turn),
            *(self._recalled(turn, words) for words in _questions(turn)),
            self._summary(turn) if ActKind.SUMMARISE in kinds else "",
            self._about_us(turn) if ActKind.ABOUT_US in kinds else "",
            self._request(turn) if ActKind.OTHER_REQUEST in kinds else "",
            self._answer(turn) if ActKind.HEALTH_QUESTION in kinds else "",
        ]
        said = [part for part in parts if part]
        if said and ActKind.GOODBYE in kinds:
            return [*said, self._pick("goodbye", turn)]
        if (
            said
            and any(act.kind is ActKind.THANKS and act.confidence == 1 for act in turn.acts)
            and not kinds & {ActKind.HEALTH_QUESTION, ActKind.MEMORY_QUESTION}
        ):
            return [*said, self._pick("welcome", turn)]
        return said or [self._social(turn)]

    # --- what was told ------------------------------------------------------------------------------------

    def _noted(self, turn: Turn) -> str:
        """What was taken in, in the person's words. A plain answer needs no echo if a question follows."""
        answers, facts = turn.words(ActKind.ANSWER), turn.words(ActKind.FACT)
        if turn.kinds & {ActKind.GOODBYE, ActKind.THANKS}:
            facts = [each for each in facts if len(each.split()) > 5]
        if facts and _grieves(turn) and not turn.kinds & {ActKind.FEELING, ActKind.HEALTH_QUESTION}:
            return self._pick("loss_again", turn)
        if ActKind.FEELING in turn.kinds and (not facts or _grieves(turn)):
            return ""
        told = [change for change in turn.changes if not change.op.ends and change.kind != CONCERN]
        if facts:
            out = next((change for change in turn.changes if change.op.ends), None)
            if out and ActKind.CORRECT not in turn.kinds:
                return self._pick("taken_out", turn, words=_quoted(facts), old=f'"{out.value}"')
            return self._pick(
                "noted",
                turn,
                words=_quoted([*answers, *facts] if len(answers) + len(facts) <= _MOST_QUOTED else facts),
            )
        if answers and told:
            change = told[0]
            if (
                change.value in _PLAIN_VALUES
                or ": " in change.value
                or (len(plain(change.words).split()) < 2 and not any(each.isdigit() for each in change.words))
            ):
                return self._pick("noted_plainly", turn)
            value = (
                change.value.replace("/", " out of ")
                if change.kind == "severity"
                else change.words.strip(" .!") or change.value
            )
            return self._pick("noted", turn, words=f'"{_short(value)}"')
        return ""

    def _remembered(self, turn: Turn) -> str:
        words = [kept_words(each) for each in turn.words(ActKind.REMEMBER)]
        stored = [change for change in turn.changes if not change.op.ends]
        if not stored:
            last = [fact for fact in turn.facts if fact.kind != MENTIONED and fact.turn]
            if last:
                return self._pick("remembered", turn, words=_quoted([last[-1].words or last[-1].value]))
            return self._pick("noted_plainly", turn)
        return self._pick("remembered", turn, words=_quoted(words))

    def _corrected(self, turn: Turn) -> str:
        before = {fact.id: fact for fact in turn.talk.facts}
        for change in turn.changes:
            old = before.get(change.target or "")
            if change.op is Op.REPLACE and old is not None and old.value.lower() != change.value.lower():
                return self._pick(
                    "corrected", turn, value=f'"{_short(change.value)}"', old=f'"{_short(old.value)}"'
                )
            if change.op.ends and old is not None:
                return self._pick(
                    "taken_out",
                    turn,
                    words=_quoted(turn.words(ActKind.CORRECT)),
                    old=f'"{_short(old.value)}"',
                )
        return self._pick("corrected_plainly", turn, words=_quoted(turn.words(ActKind.CORRECT)))

    # --- what was asked of memory -------------------------------------------------------------------------

    def _recalled(self, turn: Turn, words: str) -> str:
        if memory.asks_for_all(words) and turn.talk.facts:
            return self._summary(turn)
        quotes = memory.answer(
            words, turn.talk.facts, turn.recalled.memories, turn.talk, self._search, turn.now
        )
        if not quotes:
            return f"{NOT_TOLD} that."
        return f"{TOLD}: {'; '.join(quotes)}."

    def _summary(self, turn: Turn) -> str:
        facts = memory.listed(turn.facts, turn.now)
        facts += tuple(
            memory.quote(each.summary, each.ended_at, turn.now, elsewhere=True)
            for each in turn.earlier
            if each.summary not in _WITHOUT_CONCERN
        )
        return (
            self._pick("summary", turn, list="; ".join(facts)) if facts else self._pick("nothing_noted", turn)
        )

    def _forget(self, turn: Turn) -> str:
        words = " ".join(turn.words(ActKind.FORGET))
        facts = memory.matching(words, turn.facts, turn.talk, self._search)
        if not facts:
            return self._pick("nothing_to_remove", turn)
        quotes = list(dict.fromkeys(f'"{_short(_name_of(fact))}"' for fact in facts))
        return f"{REMOVE}: {', '.join(quotes[:8])}?"

    def _after_removal(self, turn: Turn) -> str:
        gone = [change for change in turn.changes if change.op.ends]
        if not gone:
            return self._pick("kept", turn)
        before = {fact.id: fact for fact in turn.talk.facts}
        quotes = dict.fromkeys(
            f'"{_short(_name_of(before[change.target]))}"' for change in gone if change.target in before
        )
        return self._pick("removed", turn, list=", ".join(quotes))

    def _topic(self, turn: Turn) -> str:
        back = any(
            change.kind == CONCERN and change.op is Op.ADD and change.target for change in turn.changes
        )
        if ActKind.TOPIC_RESUMED in turn.kinds or (ActKind.TOPIC_LEFT in turn.kinds and back):
            concern = turn.concern
            if concern is None or not back:
                return self._pick("resumed_plainly", turn)
            about = [
                fact for fact in turn.talk.facts if fact.about == concern.value[:120] or fact.id == concern.id
            ]
            listed = memory.listed(about or [concern], turn.now, 4)
            if not listed:
                return self._pick("topic", turn, value=_yours(concern.value))
            named = named_topic(" ".join(turn.words(ActKind.TOPIC_RESUMED))) or concern.value
            return self._pick("resumed", turn, value=_yours(named), list="; ".join(listed))
        topic = next((change.value for change in turn.changes if change.kind == CONCERN), "")
        if ActKind.TOPIC_LEFT in turn.kinds and topic and ActKind.FACT not in turn.kinds:
            named = named_topic(" ".join(turn.words(ActKind.TOPIC_LEFT))) or topic
            return self._pick("topic", turn, value=_yours(named))
        if ActKind.TOPIC_LEFT in turn.kinds and not turn.kinds & {
            ActKind.FACT,
            ActKind.ANSWER,
            ActKind.HEALTH_QUESTION,
            ActKind.MEMORY_QUESTION,
        }:
            return self._pick("left", turn)
        return ""

    # --- what was asked or wished for ---------------------------------------------------------------------

    def _answer(self, turn: Turn) -> str:
        """A warning from the table, general information, or that this needs a doctor or pharmacist."""
        words = " ".join(turn.words(ActKind.HEALTH_QUESTION))
        low = plain(words)
        whom = (
            relative_in(low)
            or (turn.talk.other if re.search(r"\b(?:he|she|him|her)\b", low) else "")
            or PERSON
        )
        facts = values_of(
            Fact(kind=fact.kind, value=fact.value, turn=fact.turn or 1)
            for fact in turn.facts
            if fact.subject == whom
        )
        if turn.intent.intent == OUT_OF_SCOPE and (turn.intent.confidence >= _FOREIGN or not turn.facts):
            return self._pick("outside", turn)
        if (
            re.search(
                r"\b(?:see|go to|call|ring|visit) (?:a |the |my |to )*(?:doctor|gp|hospital|a&e"
                r"|someone|nurse|dentist)\b|\bserious\b|\bdangerous\b|\bworr(?:y|ied)\b",
                low,
            )
            and turn.concern
        ):
            advice = [
                each.text
                for specialist in self._specialists
                for each in specialist.interview.see_someone
                if any(word in f"{turn.concern.value} {low}" for word in each.about)
            ]
            if advice:
                return f"{self._pick('worried', turn)} {advice[0]}"
        if warning := self._medicines.warning(self._with_medicine(turn, low), facts):
            return warning
        if text := general_information(
            low, turn.concern.value if turn.concern else "", self._specialists, turn.facts
        ):
            return text
        named = self._medicines.medicine_in(words) or self._medicines.medicine_in(turn.message)
        about_medicine = bool(named) or re.search(
            r"\b(?:take|taking|dose|mg|tablets?|pills?|medic\w+|antibiotics?|painkillers?"
            r"|side effects?|mix|together with)\b",
            low,
        )
        if about_medicine and re.search(r"\b(?:difference|better|which|what's)\b", low):
            text = self._pick("medicine_general", turn)
        elif about_medicine:
            text = self._pick("medicine_question", turn, subject=named or "that")
        elif re.search(
            r"\bwhat (?:could|is|might|do you think) (?:it|this|that|is|causing|cause)\b"
            r"|\bdo i have\b|\bcould (?:it|this) be\b|\bis it\b.*\b(?:cancer|infection"
            r"|condition)\b|\bdiagnos|\bwhat's (?:wrong|causing)|\bsound like\b",
            low,
        ):
            text = self._pick("what_it_is", turn)
        elif re.search(r"\bworr|\bserious\b|\bdangerous\b|\bsee (?:a doctor|someone|somebody)\b", low):
            text = self._pick("worried", turn)
        else:
            text = self._pick("health_question", turn)
        kinds = ("medications", "allergies", "conditions", "pregnancy")
        useful = [
            fact
            for fact in turn.facts
            if fact.value not in _PLAIN_VALUES
            and (
                (fact.kind in kinds and fact.subject == PERSON)
                if about_medicine
                else turn.concern is not None
                and (fact.id == turn.concern.id or fact.about == turn.concern.value[:120])
            )
        ]
        if ActKind.FACT in turn.kinds:
            return text
        if not useful:
            return f"{text} {self._pick('question_noted', turn)}"
        listed = memory.listed(useful[-3:], turn.now)
        return f"{text} {self._pick('noted_for_them', turn, list='; '.join(listed))}"

    def _with_medicine(self, turn: Turn, low: str) -> str:
        """The message; if it only says "it", with the medicine that was named last."""
        if self._medicines.medicine_in(turn.message) or not re.search(
            r"\b(?:it|that|this|them|these|one)\b", low
        ):
            return turn.message
        named = (self._medicines.medicine_in(said.message) for said in reversed(turn.talk.said[-3:]))
        return f"{turn.message} {next(filter(None, named), '')}"

    def _request(self, turn: Turn) -> str:
        if turn.intent.intent == OUT_OF_SCOPE and turn.intent.confidence >= _RATHER_FOREIGN:
            return self._pick("outside", turn)
        low = plain(" ".join(turn.words(ActKind.OTHER_REQUEST)))
        return next(text for pattern, text in self._texts.requests.items() if re.search(pattern, low))

    def _about_us(self, turn: Turn) -> str:
        low = plain(" ".join(turn.words(ActKind.ABOUT_US)))
        if re.search(r"\bwhy\b", low):
            return self._pick("why_ask", turn)
        if re.search(
            r"\bprivate|\bconfidential|\bdata\b|\bstore|\bread\b|\bsee (?:this|it)|\bshare"
            r"|\bremember|\banonym|\bkeep\b",
            low,
        ):
            return self._pick("privacy", turn)
        return self._pick("about_us", turn)

    # --- people -------------------------------------------------------------------------------------------

    def _complaint(self, turn: Turn) -> str:
        low = plain(" ".join(turn.words(ActKind.COMPLAINT)))
        if re.search(
            r"\b(?:already|again|asked|same|repeat\w*|keep asking|told you|said that|twice|third time)\b", low
        ):
            return self._pick("asked_again", turn)
        if re.search(r"\b(?:answer|my question|ignor\w+|skipped|listen\w*)\b", low):
            return self._pick("no_answer", turn)
        return self._pick("complaint", turn)

    def _feeling(self, turn: Turn) -> str:
        low = plain(" ".join(turn.words(ActKind.FEELING)))
        if re.search(
            r"\b(?:glad|happy|relieved|relief|over the moon|good news|better|delighted"
            r"|pleased|proud|excited)\b",
            low,
        ) and not re.search(r"\bnot\b|n't\b", low):
            return self._pick("glad", turn)
        if re.search(
            r"\b(?:i'm|i am|doing|feel|feeling) (?:fine|ok|okay|alright|good|great)\b", low
        ) and not re.search(r"\bnot\b|n't\b", low):
            return self._pick("fine", turn)
        earlier = any(re.search(_LOSS, plain(said.message)) for said in turn.talk.said)
        if re.search(_LOSS, low):
            return self._pick("loss_again" if earlier else "loss", turn)
        if earlier:
            return self._pick("loss_again", turn)
        if re.search(r"\bthe first (?:one|person|to)\b|\btold (?:anyone|anybody)\b|\bnobody knows\b", low):
            return self._pick("trust", turn)
        if re.search(r"\bembarrass|\bawkward|\bsilly\b", low):
            return self._pick("no_shame", turn)
        if re.search(
            r"\b(?:scared|afraid|terrified|worried|worry|nervous|dread|frightened|anxious|panick\w+)\b", low
        ):
            return self._pick("afraid", turn)
        return self._pick("hard", turn)

    def _follow_up(self, turn: Turn, last: EarlierSession) -> str:
        """How the last conversation went on."""
        days = (turn.now.date() - last.ended_at.astimezone(turn.now.tzinfo).date()).days
        when = "Earlier today" if days == 0 else "Yesterday" if days == 1 else f"{days} days ago"
        return self._pick("follow_up", turn, when=when, what=f'"{_short(last.summary)}"')

    def _social(self, turn: Turn) -> str:
        kinds, low = turn.kinds, plain(turn.message)
        if ActKind.GOODBYE in kinds:
            return self._pick("goodbye", turn)
        if ActKind.THANKS in kinds:
            return self._pick("welcome", turn)
        if ActKind.GREETING in kinds:
            if turn.follow_up is not None and not turn.talk.said:
                return self._follow_up(turn, turn.follow_up)
            return self._pick("hello_again" if turn.talk.said else "hello", turn)
        if turn.intent.intent == OUT_OF_SCOPE and ActKind.SMALL_TALK not in kinds:
            return self._pick("outside", turn)
        if ActKind.SMALL_TALK in kinds:
            if re.search(r"\bhow (?:are you|is your|are things)\b|\bhow's (?:it|your)\b", low):
                return self._pick("how_are_you", turn)
            if re.search(r"\b(?:hold on|one moment|one sec|brb|let me think|phone rang|door)\b", low):
                return self._pick("waiting", turn)
            if re.search(r"\bi(?:'ll| will) (?:call|ring|ask|phone|book|speak|talk|see|go|pop|check)\b", low):
                return self._pick("sensible", turn)
            asked = any(clause.asked for clause in split(turn.message))
            if asked and turn.intent.intent == OUT_OF_SCOPE and not re.search(r"\byou\b", low):
                return self._pick("outside", turn)
            return self._pick("chat" if asked else "fine", turn)
        if ActKind.UNCLEAR in kinds:
            if turn.talk.question and re.search(r"\bmean|understand|question|explain|rephrase|why\b", low):
                return self._pick("explain", turn)
            return self._pick("unclear", turn)
        return ""


_WITHOUT_CONCERN: Final = (titled(NO_TOPIC), titled("initial_query"), titled("conversation"))
"""The summaries of conversations that were about nothing in particular."""

_LOSS: Final = re.compile(
    r"\b(?:died|dead|passed away|passed on|lost (?:my|our|her|him)|funeral"
    r"|miscarr\w+|stillb\w+|put (?:\w+ ){0,2}(?:down|to sleep)|bereave\w+"
    r"|widow\w*)\b"
)


_ASKS_NOTHING: Final = frozenset(("ADMINISTRATIVE", "MEDICATION"))
"""Specialists whose questions are about an errand, not about a complaint."""

_QUIET: Final = frozenset(
    (
        ActKind.FEELING,
        ActKind.COMPLAINT,
        ActKind.GOODBYE,
        ActKind.MEMORY_QUESTION,
        ActKind.SUMMARISE,
        ActKind.FORGET,
        ActKind.ABOUT_US,
        ActKind.OTHER_REQUEST,
        ActKind.HEALTH_QUESTION,
        ActKind.UNCLEAR,
        ActKind.REMEMBER,
        ActKind.THANKS,
    )
)


def _questions(turn: Turn) -> list[str]:
    """The questions about memory, without those that name nothing, such as "do you remember?"."""
    words = turn.words(ActKind.MEMORY_QUESTION)
    naming = [each for each in words if topic_words(plain(each)) or asked_kinds(plain(each))]
    return (naming or words[-1:])[:2]


def _is_aside(turn: Turn) -> bool:
    """Whether the topic is changed by a mere "by the way"."""
    return all(
        re.fullmatch(
            r"(?:by the way|btw|one more thing|another thing|anyway|on another note)\W*", plain(words)
        )
        for words in turn.words(ActKind.TOPIC_LEFT)
    )


def _yours(topic: str) -> str:
    """A topic as it is named to the person: `my knee` is `your knee`."""
    return re.sub(r"\bmy\b", "your", topic, flags=re.IGNORECASE)


def _grieves(turn: Turn) -> bool:
    """Whether the person has told of a loss."""
    return any(
        _LOSS.search(plain(text)) for text in (*(said.message for said in turn.talk.said), turn.message)
    )


def _name_of(fact: CurrentFact) -> str:
    """How a note is named before it is removed: its value if that is a name, else its words."""
    return (
        fact.value
        if fact.kind in ("medications", "other_medicines", "conditions", "allergies", "name")
        else fact.words or fact.value
    )


def _wants_quiet(turn: Turn) -> bool:
    """Whether the person asked not to be asked or advised."""
    pattern = (
        r"\b(?:stop asking|no (?:more )?questions|just listen|only listen|don't ask"
        r"|don't want (?:any )?(?:tips|advice|questions)|stop it with the questions)\b"
    )
    return any(
        re.search(pattern, plain(text)) for text in (*(said.message for said in turn.talk.said), turn.message)
    )


def _quoted(words: Sequence[str]) -> str:
    """The first words, each as a quotation."""
    quotes = [f'"{_short(each)}"' for each in dict.fromkeys(words) if each.strip()]
    text = " and ".join(quotes[:_MOST_QUOTED])
    return f"{text} (and the rest of your message)" if len(quotes) > _MOST_QUOTED else text


def _short(text: str) -> str:
    text = " ".join(text.replace('"', "'").split()).strip(" .,;:!")
    text = re.sub(r"^(?:and|but|so|also|oh|then) (?=\w+ \w)", "", text, flags=re.IGNORECASE)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1].rstrip()}…"
