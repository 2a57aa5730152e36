"""Writes the reply to a message, act by act: what was noted, what was asked for, and at most one question."""

import re
from collections.abc import Sequence
from typing import Final

from agents.fact_kinds import recalled_kinds
from agents.local.dialogue import CHANGE, NOT_TOLD, REMOVE, named_topic
from agents.local.reading.acts import TELLS_TOO
from agents.local.reading.changes import kept_words, says_something
from agents.local.reading.clauses import plain
from agents.local.reading.facts import CONCERN, NOTED
from agents.local.replying import memory
from agents.local.replying.health import HealthAnswers
from agents.local.replying.interviewing import next_question
from agents.local.replying.medicines import Medicines
from agents.local.replying.social import SocialReplies
from agents.local.replying.texts import Texts, Wording
from agents.local.replying.turn import MOST_QUOTED, PLAIN_VALUES, Turn, grieves, quoted, short, wants_quiet
from agents.local.search import Search, topic_words
from agents.roster import Specialist
from agents.values import (
    COORDINATOR,
    EMERGENCY,
    OUT_OF_SCOPE,
    ActKind,
    Offer,
)
from memory_blocks.facts.changes import CurrentFact, Op
from memory_blocks.summary_text import NO_TOPIC, titled

_WHOLE_INTERVIEW: Final = 3  # questions, before an interview is closed
_MOST_LISTED: Final = 8
_MOST_SHOWN: Final = 3
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
        *,
        is_alone: bool = True,
    ) -> None:
        wording = Wording(texts)
        self._pick, self._search = wording.pick, search
        self._first = f" {texts.without_a_model}" if is_alone else ""
        self._health, self._social = HealthAnswers(wording, medicines, specialists), SocialReplies(wording)

    def reply(self, turn: Turn) -> str:
        """The whole reply. The first one that is no notice about danger may say that there is no model."""
        said = [part for part in self._parts(turn) if part]
        if self._may_ask(turn, said):
            said += self._advice_at_once(turn)
            said.append(
                _interrupted_question(turn)
                or next_question(turn.specialist, turn.known, turn.talk, turn.concern, turn.message)
                or self._closing(turn)
            )
        text = " ".join(dict.fromkeys(filter(None, said))) or self._pick(
            "noted_plainly" if turn.changes else "fine", turn
        )
        first = all(said.agent == EMERGENCY for said in turn.talk.said)
        return f"{text}{self._first}" if first else text

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
        grave = any(act.kind is ActKind.FEELING and act.confidence != TELLS_TOO for act in turn.acts)
        if turn.kinds & _QUIET or grave or any("?" in part for part in said):
            return False
        if wants_quiet(turn) or turn.intent.intent == OUT_OF_SCOPE or grieves(turn):
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
        new = any(change.kind == CONCERN for change in turn.changes) and (
            turn.talk.concern is None
            or ActKind.TOPIC_LEFT in turn.kinds
            or ActKind.TOPIC_RESUMED in turn.kinds
        )
        about_it = any(
            change.about == turn.concern.value[:120] and change.kind != NOTED for change in turn.changes
        )
        settles = not turn.kinds.isdisjoint((ActKind.ANSWER, ActKind.UNDO))
        return new or settles or (about_it and turn.talk.question is not None)

    def _parts(self, turn: Turn) -> list[str]:
        """What each act is answered with, in the order of importance."""
        kinds = turn.kinds
        settled = self._settled(turn)
        if (
            settled
            and turn.offer is None
            and (kinds <= {ActKind.ANSWER} or turn.talk.refuses_offer(plain(turn.message)))
        ):
            return [settled]
        parts = [
            settled,
            self._undone(turn) if ActKind.UNDO in kinds else "",
            self._social.complaint(turn) if ActKind.COMPLAINT in kinds else "",
            self._social.feeling(turn) if ActKind.FEELING in kinds else "",
            self._corrected(turn) if ActKind.CORRECT in kinds else "",
            self._noted(turn),
            self._remembered(turn) if ActKind.REMEMBER in kinds else "",
            self._forget(turn) if ActKind.FORGET in kinds or turn.offer else "",
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
        asks = kinds & {ActKind.HEALTH_QUESTION, ActKind.MEMORY_QUESTION, ActKind.OTHER_REQUEST}
        if said and ActKind.THANKS in kinds and not asks:
            return [*said, self._pick("welcome", turn)]
        return said or [self._social.small(turn)]

    # --- what was told ------------------------------------------------------------------------------------

    def _noted(self, turn: Turn) -> str:
        """What was taken in, in the person's words. A plain answer needs no echo if a question follows."""
        if turn.offer is not None and not turn.changes:
            return ""
        answers = turn.words(ActKind.ANSWER)
        certain = [
            act.words
            for act in turn.acts
            if (act.kind is ActKind.FACT and act.confidence > _CERTAIN)
            or (act.kind is ActKind.FEELING and act.confidence == TELLS_TOO)
        ]
        facts = certain if certain or turn.kinds & _BESIDE else turn.words(ActKind.FACT)
        if ActKind.REMEMBER in turn.kinds and not any(
            says_something(kept_words(each)) for each in turn.words(ActKind.REMEMBER)
        ):
            return ""
        told = [change for change in turn.changes if not change.op.ends and change.kind != CONCERN]
        if facts:
            out = next((change for change in turn.changes if change.op.ends), None)
            if out and ActKind.CORRECT not in turn.kinds:
                return self._pick("taken_out", turn, words=quoted(facts), old=f'"{out.value}"')
            both = [*answers, *facts] if len(answers) + len(facts) <= MOST_QUOTED else facts
            return self._pick("noted_gently" if grieves(turn) else "noted", turn, words=quoted(both))
        if answers and told and ActKind.FEELING not in turn.kinds:
            change = told[0]
            if change.value in PLAIN_VALUES or (
                len(plain(change.words).split()) < 2 and not any(each.isdigit() for each in change.words)
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
        """What is remembered: the words, or what was said just before if the request only points to it."""
        words = [kept_words(each) for each in turn.words(ActKind.REMEMBER)]
        if any(says_something(each) for each in words):
            return self._pick(
                "remembered", turn, words=quoted([each for each in words if says_something(each)])
            )
        named = " ".join(words)
        if topic_words(plain(named)):
            found = self._search.find(self._search.asked(named, turn.talk), turn.facts)
            told = [each.fact.words for each in found] or words
        else:
            before = [fact for fact in turn.facts if fact.turn and fact.words]
            latest = max((fact.turn or 0 for fact in before), default=0)
            told = turn.words(ActKind.FACT, ActKind.ANSWER) or [
                fact.words for fact in before if fact.turn == latest
            ]
        return (
            self._pick("remembered", turn, words=quoted(told)) if told else self._pick("what_to_keep", turn)
        )

    def _corrected(self, turn: Turn) -> str:
        if turn.offer is not None:
            return "" if ActKind.FORGET in turn.kinds else self._offered(turn, turn.offer)
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
        low = plain(words)
        if memory.asks_for_all(words) and turn.talk.facts:
            return self._summary(turn)
        if re.search(r"\b(?:spoken|talked|chatted|been|written) (?:to you|with you|here) before\b", low):
            return self._summary(turn) if turn.earlier else self._pick("first_time", turn)
        if re.search(r"\byou (?:said|say|told|advised|suggested|recommended)\b", low):
            return self._pick("own_words", turn)
        told = memory.answer(words, turn.talk.facts, turn.recalled, turn.talk, self._search, turn.now)
        if told.startswith(NOT_TOLD) and _OF_HEALTH.match(low):
            return f"{told} {self._pick('whether_so', turn)}"
        return told

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

    # --- changes of the notes -----------------------------------------------------------------------------

    def _forget(self, turn: Turn) -> str:
        return self._offered(turn, turn.offer) if turn.offer else self._pick("nothing_to_remove", turn)

    def _offered(self, turn: Turn, offer: Offer) -> str:
        """What would change, with what was derived from it, and the question whether to do it."""
        before = {fact.id: fact for fact in turn.talk.facts}
        changes = [(before[change.target], change) for change in offer.changes if change.target in before]
        gone = dict.fromkeys(
            f"{_note(fact)}{_when(fact, turn)}" for fact, change in changes if change.op.ends
        )
        new = [
            f'{_note(fact)}{_when(fact, turn)} to "{short(change.value)}"'
            for fact, change in changes
            if not change.op.ends
        ]
        further = []
        if offer.derived:
            texts = ", ".join(f'"{short(text)}"' for text in offer.derived[:_MOST_SHOWN])
            more = len(offer.derived) - _MOST_SHOWN
            further.append(f"{texts}{f' and {more} more' if more > 0 else ''}, which I made from it")
        if offer.messages:
            word = "message" if offer.messages == 1 else "messages"
            further.append(f"{offer.messages} {word} of yours that I will not find any more")
        said = [self._pick("goes_with_it", turn, list="; ".join(further))] if further else []
        said += [self._pick("for_good", turn)] if offer.for_good else []
        notes = _several(list(gone)) if gone else "everything that you told me"
        said += [f"{REMOVE}: {notes}?"] if gone or offer.everything else []
        said += [f"{CHANGE}: {_several(new)}?"] if new else []
        return " ".join(said)

    def _settled(self, turn: Turn) -> str:
        """The reply to a yes or no after an offer to change the notes; empty if the message is neither."""
        if turn.talk.offer is None or (turn.offer is not None and not turn.agreed):
            return ""
        if not turn.agreed:
            answers = ActKind.ANSWER in turn.kinds or turn.talk.refuses_offer(plain(turn.message))
            return self._pick("kept", turn) if answers else ""
        before = {fact.id: fact for fact in turn.talk.facts}
        changes = turn.talk.offer.changes
        gone = dict.fromkeys(
            _note(before[each.target]) for each in changes if each.op.ends and each.target in before
        )
        notes = _several(list(gone)) if gone else "everything that you told me"
        said = [self._pick("removed", turn, list=notes)] if gone or turn.talk.offer.everything else []
        for each in changes:
            if not each.op.ends and each.target in before:
                old = _note(before[each.target])
                said.append(self._pick("corrected", turn, value=f'"{short(each.value)}"', old=old))
        return " ".join([*said, self._pick("erased" if turn.talk.offer.for_good else "can_undo", turn)])

    def _undone(self, turn: Turn) -> str:
        if not turn.undone:
            return self._pick("nothing_to_undo", turn)
        return self._pick("undone", turn, list=_several([f'"{short(each)}"' for each in turn.undone]))

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


_OF_HEALTH: Final = re.compile(
    r"(?:\w+ )?(?:am i|do i have|have i (?:got|had)|does (?:he|she|my \w+) have)\b"
)
_CERTAIN: Final = 0.6  # the confidence above which a fact is echoed beside something else
_BESIDE: Final = frozenset(
    (
        ActKind.GOODBYE,
        ActKind.THANKS,
        ActKind.MEMORY_QUESTION,
        ActKind.SUMMARISE,
        ActKind.FORGET,
        ActKind.REMEMBER,
        ActKind.OTHER_REQUEST,
        ActKind.COMPLAINT,
        ActKind.CORRECT,
    )
)
"""Acts that are answered themselves, so that an echo of what is said by the way would be in the way."""

_ASKS_NOTHING: Final = frozenset(("ADMINISTRATIVE", "MEDICATION"))
"""Specialists whose questions are about an errand, not about a complaint."""

_QUIET: Final = frozenset(
    (
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
    naming = [each for each in words if topic_words(plain(each)) or recalled_kinds(plain(each))]
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


def _note(fact: CurrentFact) -> str:
    """How a note is named before it is changed: its value if that is a name, else its words."""
    named = fact.kind in ("medications", "other_medicines", "conditions", "allergies", "name")
    return f'"{short(fact.value if named else fact.words or fact.value)}"'


def _when(fact: CurrentFact, turn: Turn) -> str:
    """When a note was made, if that was in another conversation."""
    if fact.conversation_id is None:
        return ""
    return f" ({memory.when_said(fact.said_at, turn.now, elsewhere=True)})"


def _several(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _interrupted_question(turn: Turn) -> str:
    """The question of the interview that was open before the person was asked about the notes."""
    open_before = turn.talk.interrupted
    if open_before is None or set(open_before.kinds) & turn.known.keys():
        return ""
    return open_before.asked
