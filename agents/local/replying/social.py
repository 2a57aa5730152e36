"""Replies to what is no fact and no question: feelings, complaints, requests, small talk."""

import re
from typing import Final

from agents.local.reading.clauses import plain, split
from agents.local.reading.facts import NOTED
from agents.local.replying.texts import Wording
from agents.local.replying.turn import LOSS, Turn, short
from agents.values import (
    OUT_OF_SCOPE,
    ActKind,
)
from memory_blocks.models import EarlierSession

_RATHER_FOREIGN: Final = 0.6
_FEW: Final = 5


class SocialReplies:
    """Replies as one person does to another."""

    def __init__(self, wording: Wording) -> None:
        self._pick, self._texts = wording.pick, wording.texts

    def request(self, turn: Turn) -> str:
        low = plain(" ".join(turn.words(ActKind.OTHER_REQUEST)))
        text = next(
            (text for pattern, text in self._texts.requests.items() if pattern and re.search(pattern, low)),
            "",
        )
        if not text and turn.intent.intent == OUT_OF_SCOPE and turn.intent.confidence >= _RATHER_FOREIGN:
            return self._pick("outside", turn)
        text = text or self._texts.requests[""]
        kept = any(
            change.kind == NOTED and change.words in turn.words(ActKind.OTHER_REQUEST)
            for change in turn.changes
        )
        return f"{text} {self._pick('kept_request', turn)}" if kept else text

    def about_us(self, turn: Turn) -> str:
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

    def complaint(self, turn: Turn) -> str:
        low = plain(" ".join(turn.words(ActKind.COMPLAINT)))
        if re.search(r"\bi asked\b|\bmy question\b|\banswer", low):
            return self._pick("no_answer", turn)
        if re.search(
            r"\b(?:already|again|asked|same|repeat\w*|keep asking|told you|said that|twice|third time)\b", low
        ):
            return self._pick("asked_again", turn)
        if re.search(r"\b(?:ignor\w+|skipped|listen\w*)\b", low):
            return self._pick("no_answer", turn)
        return self._pick("complaint", turn)

    def feeling(self, turn: Turn) -> str:
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
        if LOSS.search(low):
            return self._pick("loss", turn)
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
        return self._pick("follow_up", turn, when=when, what=f'"{short(last.summary)}"')

    def small(self, turn: Turn) -> str:
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
            if re.search(r"\b(?:hold on|one moment|one sec|brb|let me think|phone rang|at the door)\b", low):
                return self._pick("waiting", turn)
            if not any(clause.asked for clause in split(turn.message)):
                unsure = bool(turn.changes) and len(low.split()) >= _FEW
                return self._pick("noted_plainly" if unsure else "fine", turn)
            outside = turn.intent.intent == OUT_OF_SCOPE and not re.search(r"\byou\b", low)
            return self._pick("outside" if outside else "chat", turn)
        if ActKind.UNCLEAR in kinds:
            if turn.talk.question and re.search(r"\bmean|understand|question|explain|rephrase|why\b", low):
                return self._pick("explain", turn)
            return self._pick("unclear", turn)
        return ""
