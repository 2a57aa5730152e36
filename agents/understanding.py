"""A conversation understood turn by turn: what is known after each, and how its message is to be read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from agents.answers import Answers
from agents.corrections import Corrections
from agents.known import (
    OF_CONCERN,
    Known,
    Told,
    Understood,
    same_concern,
)
from agents.lexicon import Lexicon, any_of, word_set, words_of
from agents.patterns import HAS_MOMENT, HAS_SPAN
from agents.questions import Question, questions
from agents.reading import Said, Text, asks_back, concerns, stated, whom
from agents.replies import Replies
from agents.telling import Teller
from memory_blocks.models import Sentiment

_MOST_REQUEST: Final = 110
_FIRST_PERSON: Final = re.compile(
    r"(?:i|i'm|i've|my|it|it's|we|he|she|there|can't|cannot|keep|keeps|wake|waking)\b", re.IGNORECASE
)
_HAVING: Final = re.compile(
    (
        r"\b(?:i have|i've got|i've had|i'm having|i am having|i've been having|i keep (?:getting"
        r"|having)|i've been getting|suffering from"
        r"|suffer from|struggling with|trouble with|problems? with|issues? with|dealing with|diagnosed "
        r"with|there is|there's) "
        r"(?:a |an |some |this |these |the |my |really |bad |terrible |awful |horrible |weird |strange "
        r"|constant |lots of |been )*"
        r"([\w'-]+(?: [\w'-]+){0,4}?)(?=\s*(?:[.,;!?()]|\b(?:and|but|since|for|when|which|that|because|after"
        r"|with|so|now|every|right now|lately|again|on|in)\b|$))"
    ),
    re.IGNORECASE,
)
_NO_COMPLAINT: Final = word_set(
    "question questions appointment idea doubt meeting kids children son daughter time no nothing it them "
    "that this something problem problems to been lot lots do done an a the some one two plan goal "
    "insurance bill letter form referral test results prescription"
)
_OF_BODY: Final = frozenset(("associated_symptoms", "effect", "triggers", "conditions", "relief", "quality"))
_NOT_OF_BODY: Final = frozenset(
    (
        "goal",
        "deadline",
        "with_whom",
        "tried",
        "time_for_it",
        "preferred_time",
        "contact",
        "papers",
        "reason",
        "needs",
        "habits",
        "bedtime",
        "activity",
        "support",
        "about_whom",
        "triggers",
    )
)
_PASSING: Final = frozenset(("frequency", "onset", "duration", "location", "triggers", "relief", "quality"))
_ALSO: Final = re.compile(r"\b(?:also|too|as well)\b", re.IGNORECASE)
_NO_ANSWER: Final = frozenset(("request", "concern", "mentioned", "about_whom", "earlier_concern"))
_OF_IT: Final = re.compile(
    r"\b(?:it|this|they|the pain) (?:started|began|'s been|has been|hurts?|gets|is|came)\b|\bit's\b",
    re.IGNORECASE,
)
_OWN_COMPLAINT: Final = re.compile(
    r"\bi(?:'ve)? (?:also |still |now |do )?(?:have|get|feel|got|had)\b|\bmy \w+ (?:hurts?|is|are|aches?)\b",
    re.IGNORECASE,
)
_LEAVES: Final = word_set("thanks thank bye goodbye cheers ty thx")
_LEAVING: Final = _LEAVES | word_set(
    "you so much a lot very ok okay great that's that is all it for now your help the perfect "
    "alright good night "
    "day have nice this helps helped was helpful see many and well then really again take care i will do"
)
_CONFIRMS: Final = re.compile(r"(?:the|your|you|it|it's|this|that|so|he|she|they|he's|she's|you're|you've)\b")


class Understanding:
    """Reads a conversation with the words of the lexicon. Keeps nothing between calls."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._replies = Replies(lexicon)
        self._answers = Answers(lexicon, self._replies, self.teller)
        self._corrections = Corrections(lexicon, self._replies, self.teller)
        self._switches = any_of(lexicon.group("corrections.turns"))
        self._further = any_of(lexicon.group("corrections.further"))
        self._clauses = lexicon.group("complaints.clauses")
        self._verbs = lexicon.group("complaints.verbs")
        self._parts = lexicon.group("body.parts")
        self._negative, self._positive = lexicon.group("feeling.negative"), lexicon.group("feeling.positive")
        self._small_talk = {
            name: lexicon.group(f"replies.{name}") for name in ("thanks", "acknowledgements", "greetings")
        }

    def teller(self, known: Mapping[str, str]) -> Teller:
        """Who tells of the concern that is known, by its name or else by the person's request."""
        concern = known.get("concern", "")
        relative = known.get("about_whom", "")
        if concern:
            return Teller(concern, relative, clause=self.is_clause(concern))
        return Teller(known.get("request", ""), relative, clause=True)

    def is_clause(self, concern: str) -> bool:
        """Whether a concern is a piece of a sentence rather than the name of something."""
        return (
            concern in self._clauses
            or (" " in concern and concern.rsplit(" ", 1)[-1] in self._verbs)
            or _FIRST_PERSON.match(concern) is not None
        )

    def understand(self, known: Known, message: str, before: str, turn: int) -> Understood:
        """The message of a turn, said after the text `before`."""
        text = Text(message, self._lexicon)
        plain = re.sub(r"[^\w' ]", "", text.whole.lower()).strip()
        asked = tuple(_as_confirmation(each) for each in questions(before))
        feels = self._sentiment(text)
        if self._says_goodbye(plain):
            return Understood(known, sentiment=feels, closes=True)
        if plain in self._small_talk["greetings"]:
            return Understood(known, sentiment=feels)
        values = known.values
        found = list(stated(text))
        kinds = {kind for question in asked for kind in question.kinds}
        found, complaints = _bearing(text, asked, kinds, found, list(concerns(text)))
        if corrected := self._corrections.read(text, known, turn):
            return replace(corrected, sentiment=feels)
        told = Told(turn, known)
        switch = self._switches.search(text.whole.lower()) is not None
        beside = [Said("associated_symptoms", each.value) for each in complaints if each.kind == "concern"]
        replies = () if switch else self._replies.read(text, asked, values, [*found, *beside])
        also = "request" in values and bool(kinds) and _ALSO.search(text.stated) is not None
        joins = bool(values) and (bool(kinds & _OF_BODY) or also) and not switch
        self._complaints(told, text, complaints, asked, switch=switch, joins=joins)
        for said in found:
            told.say(said, self.teller(told.known.values))
        for reply in replies:
            self._answers.take(told, reply, text, complaints, found)
        if kinds & {"onset", "duration"}:
            kinds |= {"onset", "duration"}
        answers = tuple(dict.fromkeys(fact.kind for fact in told.facts if fact.kind in kinds))
        if replies and not answers and not told.new_concern:
            answers = tuple(dict.fromkeys(fact.kind for fact in told.facts if fact.kind not in _NO_ANSWER))
        if not replies and not answers and not told.new_concern:
            self._request(told, text, plain, asked, first=not values)
        return Understood(
            known=told.known,
            sentences=tuple(dict.fromkeys(told.sentences)),
            stated=tuple(told.facts),
            answers=answers,
            replied=bool(replies) or bool(answers),
            new_concern=told.new_concern,
            asks=bool(text.asked) or asks_back(text.whole),
            sentiment=feels,
        )

    # --- complaints -----------------------------------------------------------------------------------------

    def _complaints(
        self,
        told: Told,
        text: Text,
        complaints: Sequence[Said],
        asked: Sequence[Question],
        *,
        switch: bool,
        joins: bool,
    ) -> None:
        """The first complaint is the concern; others join it, unless the person turns to something else."""
        positives = [each for each in complaints if each.kind == "concern"]
        relative = whom(text)
        concern = told.known.values.get("concern")
        begins = not asked and not self._further.match(text.whole.lower())
        fresh = [each for each in positives if not same_concern(each.value, concern or "")]
        if concern and fresh and (switch or begins or self._leaves(text)):
            told.shelve(fresh[0].value)
            concern = None
        for each in positives:
            if concern is None and joins:
                told.say(Said("associated_symptoms", each.value), self.teller(told.known.values))
            elif concern is None:
                if relative:
                    told.say(Said("about_whom", relative), None)
                told.say(Said("concern", each.value), None)
                teller = self.teller(told.known.values)
                told.sentences.append(teller.reports(each.value, clause=self.is_clause(each.value)))
                concern, told.new_concern = each.value, True
            elif same_concern(each.value, concern):
                if len(each.value) > len(concern) and not self.is_clause(each.value):
                    told.say(Said("concern", each.value), None)
                    told.sentences.append(self.teller(told.known.values).reports(each.value))
                    concern = each.value
                elif not told.sentences and concern and not told.new_concern:
                    told.mentioned = True
            else:
                told.say(Said("associated_symptoms", each.value), self.teller(told.known.values))
        for each in complaints:
            if each.kind == "denied":
                told.say(Said("associated_symptoms", f"no {each.value}"), self.teller(told.known.values))
            elif (each.kind == "location" and told.new_concern) or (
                each.kind == "location"
                and "location" not in told.known.values
                and any(
                    each.value in positive.value
                    for positive in positives
                    if same_concern(positive.value, concern or "")
                )
            ):
                told.say(each, None)
        if not positives and concern is None:
            self._open_concern(told, text, asked, relative)

    def _open_concern(self, told: Told, text: Text, asked: Sequence[Question], relative: str | None) -> None:
        """A complaint that no list of words foresaw, or a condition that one lives with."""
        found = _HAVING.search(text.stated)
        words = found[1].lower().split() if found else []
        conditions = [text.cut(each) for each in text.has("conditions.names")]
        name = ""
        if (
            words
            and words[0] not in _NO_COMPLAINT
            and not (set(words) & {"question", "questions", "appointment"})
        ):
            name = " ".join(words)
        if conditions and (not name or conditions[0] in name or name in conditions[0]):
            name = conditions[0]
        if not name or (asked and told.known.facts):
            return
        if relative:
            told.say(Said("about_whom", relative), None)
        told.say(Said("concern", name), None)
        told.sentences.append(self.teller(told.known.values).reports(name))
        told.new_concern = True

    def _leaves(self, text: Text) -> bool:
        """`it's not that, it's my knee`: the concern gives way."""
        return bool(re.search(r"\b(?:it's|it is|is) not that\b|\bnot that\b", text.whole, re.IGNORECASE))

    def _request(self, told: Told, text: Text, plain: str, asked: Sequence[Question], *, first: bool) -> None:
        """What the person wants when it is neither a complaint nor an answer; kept in their words."""
        if (
            (told.facts and ("concern" in told.known.values or not first))
            or (text.asked and asked and "request" in told.known.values)
            or text.injected
            or plain in self._small_talk["acknowledgements"]
            or len(plain.split()) < 3
        ):
            return
        wish = (text.asked[-1] if text.asked else text.whole)[:_MOST_REQUEST].strip()
        if (
            first
            or text.asked
            or re.match(
                r"(?:i (?:want|need|would|'d)|i'd|please|can|could|help|book|how|what)\b", wish.lower()
            )
        ):
            told.say(Said("request", wish), None)

    def _says_goodbye(self, plain: str) -> bool:
        """Whether a message only thanks and takes its leave."""
        words = plain.split()
        if not words or len(words) > 10:
            return False
        return not set(words) - _LEAVING and bool(set(words) & _LEAVES or plain in self._small_talk["thanks"])

    def _sentiment(self, text: Text) -> Sentiment:
        words = [word.text for word in (text.words if text.stated == text.whole else words_of(text.whole))]
        if not set(words) & (self._positive | self._negative):
            return Sentiment.NEUTRAL
        score = 0
        for at, word in enumerate(words):
            mood = (word in self._positive) - (word in self._negative)
            denied = bool(
                {"no", "not", "never", "don't", "isn't", "without"} & set(words[max(0, at - 2) : at])
            )
            score += -mood if denied and mood > 0 else 0 if denied else mood
        return Sentiment.POSITIVE if score > 0 else Sentiment.NEGATIVE if score < 0 else Sentiment.NEUTRAL


def _bearing(
    text: Text, asked: Sequence[Question], kinds: set[str], found: list[Said], complaints: list[Said]
) -> tuple[list[Said], list[Said]]:
    """What a message says after its question: `a glass on weekends` tells nothing of how often it hurts."""
    renamed = {"medications": "other_medicines"} if "other_medicines" in kinds else {}
    if "allergies" in kinds and "medications" not in kinds:
        renamed = {"medications": "allergies"}
    found = [replace(each, kind=renamed.get(each.kind, each.kind)) for each in found]
    elsewhere = bool(kinds) and not kinds & OF_CONCERN and not _OF_IT.search(text.stated)
    often = any(each.core.startswith("how often") and "frequency" not in each.kinds for each in asked)
    if elsewhere or often:
        found = [each for each in found if each.kind not in (_PASSING if elsewhere else {"frequency"})]
    if "location" in kinds and len(asked) == 1:  # the whole reply says where
        found = [each for each in found if each.kind != "location"]
    own = _OWN_COMPLAINT.search(text.stated) is not None
    if "conditions" in kinds and not own:
        found += [Said("conditions", each.value) for each in complaints if each.kind == "concern"]
        complaints = [each for each in complaints if each.kind == "denied"]
    elif kinds and kinds <= _NOT_OF_BODY and not own:
        complaints = []
    return found, complaints


def _as_confirmation(question: Question) -> Question:
    """`So it started on Monday?` asks for the onset by naming one."""
    if question.form != "open" and _CONFIRMS.match(question.core) and not question.kinds:
        kind = (
            "location"
            if re.search(r"\b(?:in|on|at) (?:your|the|his|her) ", question.core)
            and not HAS_MOMENT.search(question.core)
            else "onset"
            if HAS_MOMENT.search(question.core)
            else "duration"
            if HAS_SPAN.search(question.core)
            else ""
        )
        return replace(question, form="polar", kinds=(kind,) if kind else ())
    return question
