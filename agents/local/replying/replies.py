"""Writes the reply to a message, act by act: what was noted, what was asked for, and at most one question."""

import re
from collections.abc import Sequence
from typing import Final

from agents.local.dialogue import NOT_TOLD, REMOVE, TOLD, named_topic
from agents.local.reading.changes import kept_words
from agents.local.reading.clauses import plain
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED
from agents.local.replying import memory
from agents.local.replying.health import HealthAnswers
from agents.local.replying.interviewing import next_question
from agents.local.replying.medicines import Medicines
from agents.local.replying.social import SocialReplies
from agents.local.replying.texts import Texts, Wording
from agents.local.replying.turn import MOST_QUOTED, PLAIN_VALUES, Turn, grieves, quoted, short, wants_quiet
from agents.local.search import Search, asked_kinds, topic_words
from agents.roster import Specialist
from agents.values import (
    COORDINATOR,
    OUT_OF_SCOPE,
    ActKind,
)
from memory_blocks.facts.changes import CurrentFact, Op
from memory_blocks.summary_text import NO_TOPIC, titled

_WHOLE_INTERVIEW: Final = 3  # questions, before an interview is closed
_WITHOUT_CONCERN: Final = (titled(NO_TOPIC), titled("initial_query"), titled("conversation"))
"""The summaries of conversations that were about nothing in particular."""


class Replies:
    """Writes replies with the shipped wording, the table of medicines and a search by meaning."""

    def __init__(
        self,
        texts: Texts,
        medicines: Medicines,
        specialists: Sequence[Specialist],
        search: Search,
    ) -> None:
        wording = Wording(texts)
        self._texts, self._pick, self._search = texts, wording.pick, search
        self._health, self._social = HealthAnswers(wording, medicines, specialists), SocialReplies(wording)

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

    def _may_ask(self, turn: Turn, said: Sequence[str]) -> bool:
        """Whether a question of the interview fits after this message: not beside what it asks or feels."""
        if turn.kinds & _QUIET or any("?" in part for part in said):
            return False
        if turn.talk.removal or wants_quiet(turn) or turn.intent.intent == OUT_OF_SCOPE or grieves(turn):
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
            self._social.complaint(turn) if ActKind.COMPLAINT in kinds else "",
            self._social.feeling(turn) if ActKind.FEELING in kinds else "",
            self._corrected(turn) if ActKind.CORRECT in kinds else "",
            self._remembered(turn) if ActKind.REMEMBER in kinds else "",
            self._noted(turn),
            self._forget(turn) if ActKind.FORGET in kinds else "",
            self._topic(turn),
            *(self._recalled(turn, words) for words in _questions(turn)),
            self._summary(turn) if ActKind.SUMMARISE in kinds else "",
            self._social.about_us(turn) if ActKind.ABOUT_US in kinds else "",
            self._social.request(turn) if ActKind.OTHER_REQUEST in kinds else "",
            self._health.answer(turn) if ActKind.HEALTH_QUESTION in kinds else "",
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
        return said or [self._social.small(turn)]

    # --- what was told ------------------------------------------------------------------------------------

    def _noted(self, turn: Turn) -> str:
        """What was taken in, in the person's words. A plain answer needs no echo if a question follows."""
        answers, facts = turn.words(ActKind.ANSWER), turn.words(ActKind.FACT)
        if turn.kinds & {ActKind.GOODBYE, ActKind.THANKS}:
            facts = [each for each in facts if len(each.split()) > 5]
        if facts and grieves(turn) and not turn.kinds & {ActKind.FEELING, ActKind.HEALTH_QUESTION}:
            return self._pick("loss_again", turn)
        if ActKind.FEELING in turn.kinds and (not facts or grieves(turn)):
            return ""
        told = [change for change in turn.changes if not change.op.ends and change.kind != CONCERN]
        if facts:
            out = next((change for change in turn.changes if change.op.ends), None)
            if out and ActKind.CORRECT not in turn.kinds:
                return self._pick("taken_out", turn, words=quoted(facts), old=f'"{out.value}"')
            return self._pick(
                "noted",
                turn,
                words=quoted([*answers, *facts] if len(answers) + len(facts) <= MOST_QUOTED else facts),
            )
        if answers and told:
            change = told[0]
            if (
                change.value in PLAIN_VALUES
                or ": " in change.value
                or (len(plain(change.words).split()) < 2 and not any(each.isdigit() for each in change.words))
            ):
                return self._pick("noted_plainly", turn)
            value = (
                change.value.replace("/", " out of ")
                if change.kind == "severity"
                else change.words.strip(" .!") or change.value
            )
            return self._pick("noted", turn, words=f'"{short(value)}"')
        return ""

    def _remembered(self, turn: Turn) -> str:
        words = [kept_words(each) for each in turn.words(ActKind.REMEMBER)]
        stored = [change for change in turn.changes if not change.op.ends]
        if not stored:
            last = [fact for fact in turn.facts if fact.kind != MENTIONED and fact.turn]
            if last:
                return self._pick("remembered", turn, words=quoted([last[-1].words or last[-1].value]))
            return self._pick("noted_plainly", turn)
        return self._pick("remembered", turn, words=quoted(words))

    def _corrected(self, turn: Turn) -> str:
        before = {fact.id: fact for fact in turn.talk.facts}
        for change in turn.changes:
            old = before.get(change.target or "")
            if change.op is Op.REPLACE and old is not None and old.value.lower() != change.value.lower():
                return self._pick(
                    "corrected", turn, value=f'"{short(change.value)}"', old=f'"{short(old.value)}"'
                )
            if change.op.ends and old is not None:
                return self._pick(
                    "taken_out",
                    turn,
                    words=quoted(turn.words(ActKind.CORRECT)),
                    old=f'"{short(old.value)}"',
                )
        return self._pick("corrected_plainly", turn, words=quoted(turn.words(ActKind.CORRECT)))

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
        quotes = list(dict.fromkeys(f'"{short(_name_of(fact))}"' for fact in facts))
        return f"{REMOVE}: {', '.join(quotes[:8])}?"

    def _after_removal(self, turn: Turn) -> str:
        gone = [change for change in turn.changes if change.op.ends]
        if not gone:
            return self._pick("kept", turn)
        before = {fact.id: fact for fact in turn.talk.facts}
        quotes = dict.fromkeys(
            f'"{short(_name_of(before[change.target]))}"' for change in gone if change.target in before
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

    # --- people -------------------------------------------------------------------------------------------


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


def _name_of(fact: CurrentFact) -> str:
    """How a note is named before it is removed: its value if that is a name, else its words."""
    return (
        fact.value
        if fact.kind in ("medications", "other_medicines", "conditions", "allergies", "name")
        else fact.words or fact.value
    )
