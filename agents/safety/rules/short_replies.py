"""What a short reply means: as the answer to a question, or after a danger. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from agents.safety.rules.answers import Answer, Answers
from agents.safety.rules.findings import Listened
from agents.safety.rules.listener import (
    BARE_MEANS,
    BEFORE_AN_AGE,
    MEANS,
    MISTAKEN,
    OVER,
    OVER_AS_FELT,
    OVER_BY_THEM,
    Listener,
)
from agents.safety.rules.matching import Matcher
from agents.safety.rules.rules import Pick
from agents.safety.rules.scope import IMPERSONAL
from agents.safety.verdict import PASSIVE, Verdict

LONGEST_READING: Final = 8
"""Maximum number of words in a reply whose figure answers a question for a reading."""
LONGEST_SPELLED: Final = 3
"""Maximum number of words in a reply whose figure is spelled out: "the last one" is no reading of 1."""
LONGEST_MEANS: Final = 9
"""Maximum number of words in a reply that names a means; a longer one may speak of any tablets."""
_I: Final = {"you": "i", "your": "my", "yourself": "myself", "yours": "mine"}
_ME: Final = {**_I, "you": "me"}
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?]?")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d")
"""What an answer repeats of the person's own words: it asks nothing."""
_TELL_ME: Final = re.compile(
    r"\W*(?:(?:please|and|so|but)\W+)*"
    r"(?:tell|say|describe|explain|let me know|i (?:wonder|want to know|have to ask))\b",
    re.IGNORECASE,
)
"""Begins a sentence that asks without a question mark."""
_OFFERS: Final = re.compile(
    r"\W*(?:(?:and|so|or|also)\W+)?(?:shall i\b"
    r"|(?:should|may|can|could) i (?:tell|explain|list|show|give|send)\b"
    r"|(?:would you like|do you want)(?: me)? (?:to (?:know|hear|read|learn|see|explain|list|show|tell)"
    r"|some|more|information|advice|tips)\b)",
    re.IGNORECASE,
)
"""Matches questions that only offer to continue, such as "would you like to know"."""
_YOU: Final = re.compile(r"\b(?:yourself|yours|your|you)\b", re.IGNORECASE)
ASKED: Final = frozenset(("hypothetical", "educational", IMPERSONAL))
"""Cues that retract nothing in a question to the person, such as 'any' or 'if'."""
_PLACES: Final[Mapping[Pick, int]] = {"first": 0, "second": 1, "last": -1}
_OPTIONS: Final = re.compile(r"\s*,?\s*\bor\b\s*|\s*,\s*", re.IGNORECASE)
_BESIDE_MEANS: Final = frozenset((
    "a", "an", "the", "my", "some", "with", "by", "from", "off", "on", "in", "into", "under", "out",
    "of", "it", "its", "is", "maybe", "probably", "yes", "yeah", "just", "right", "here", "there", ",", ".",
))  # fmt: skip
"""Words that may surround a loose word for a means, in a message that says nothing else."""
METHOD: Final = Verdict("crisis", 3, ("suicide.method",))
"""The verdict for naming a means of suicide in a conversation about one's own death."""

_NO_BEFORE: Final = re.compile(
    r"^\W*(?:no|nope|nah)\b\W*(?=(?:it|that|i|he|she|we|they|everything|all|the)\b)", re.IGNORECASE
)
"""A "no" before a statement denies what the assistant said, not the statement: "no it's gone"."""


class ShortReplies:
    """Judges replies that mean nothing by themselves."""

    def __init__(
        self, listener: Listener, matcher: Matcher, answers: Answers, reverse: Sequence[str]
    ) -> None:
        """`reverse` names the questions to which a "no" is the dangerous answer."""
        self._listener, self._matcher, self._answers = listener, matcher, answers
        self._reverse = tuple(reverse)

    def ending(self, text: str, earlier: Verdict) -> set[str]:
        """The names of the phrases by which a text says that the danger is over, if it says no more.

        None for a question, because the person is not sure. None if the text says anything else, because
        that may mean that the danger is not over.
        """
        if "?" in text:
            return set()
        text = _NO_BEFORE.sub("", text)
        listened = self._listener.listen(text)
        ends = [
            each.found
            for name in _ends(earlier)
            for each in listened.heard.get(name, ())
            if "negated" not in each.stops and not each.found.guessed
        ]
        over = {at for found in ends for at in range(found.start, found.end)}
        rest = ["." if at in over else word.text for at, word in enumerate(listened.words)]
        return {found.concept for found in ends} if over and self._answers.is_beside_over(rest) else set()

    def check(self, text: str, context: str) -> Verdict:
        """The verdict on a short reply, such as "yes" to "any thoughts of harming yourself?"."""
        said = self._listener.words(text)
        answers, pick = self._answers.of(said), self._answers.picks(said)
        names_means, figure = self.names_means(text), self._figure(text, said)
        verdict = Verdict()
        for question in _questions(context) if answers or names_means or pick or figure else ():
            if pick:
                verdict = verdict.raised_by(self._picked(question, pick))
            if figure:
                verdict = verdict.raised_by(self._measured(question, figure))
            put = self._listener.listen(question)
            asked = self._listener.listen(f"{_as_own_words(question, _I)}. {_as_own_words(question, _ME)}")
            for answer in answers:
                verdict = verdict.raised_by(self._answered(put, asked, answer))
            if names_means and self._matcher.verdict(asked, ASKED).is_of_oneself:
                verdict = verdict.raised_by(METHOD)
        return verdict

    def _figure(self, text: str, said: Sequence[str]) -> str | None:
        """The number in a reply that may be a measured value; None for an age or in a longer text."""
        figure = self._listener.first_figure(text) if len(said) <= LONGEST_READING else None
        if figure is None or (not figure[0].isdigit() and len(said) > LONGEST_SPELLED):
            return None
        return figure if ("", *said)[said.index(figure)] not in BEFORE_AN_AGE else None

    def _picked(self, question: str, pick: Pick) -> Verdict:
        """The verdict on choosing one option of a question, as in "the second one"."""
        options = _OPTIONS.split(question)
        place = _PLACES[pick]
        if not -len(options) <= place < len(options) or len(options) < 2:
            return Verdict()
        own = f"{_as_own_words(options[place], _I)}. {_as_own_words(options[place], _ME)}"
        return self._answered(self._listener.listen(options[place]), self._listener.listen(own), "yes")

    def _measured(self, question: str, figure: str) -> Verdict:
        """The verdict on a bare number in reply to a question: "1.6" to "what is his blood sugar?"."""
        readings = self._listener.readings_asked_for(question)
        if not readings:
            return Verdict()
        said = ". ".join(f"{reading} {figure}" for reading in readings)
        own = _as_own_words(question, _I)
        if not self._matcher.verdict(self._listener.listen(own), ASKED).flagged:
            said = f"{said}. {own}"
        return self._matcher.verdict(self._listener.listen(said), ASKED)

    def _answered(self, put: Listened, asked: Listened, answer: Answer) -> Verdict:
        """The verdict on an answer to a question, given as it was `put` and in the first person (`asked`)."""
        reverse = {name: put.heard[key] for name in self._reverse if (key := f"asked.{name}") in put.heard}
        if answer == ("yes" if reverse else "no"):
            return Verdict()
        if reverse and answer == "after all":
            return Verdict()
        takes_nothing_back = ASKED | {"negated"} if answer == "after all" else ASKED
        verdict = self._matcher.verdict(replace(put, heard=reverse) if reverse else asked, takes_nothing_back)
        if answer == "unsure":
            is_crisis = verdict.kind == "crisis"
            return Verdict("crisis", PASSIVE, verdict.rule_ids, "possible") if is_crisis else Verdict()
        return verdict

    def _says(self, text: str, name: str) -> bool:
        """Whether a text contains a phrase of this name that is typed exactly and not negated."""
        heard = self._listener.listen(text).heard.get(name, ())
        return any("negated" not in each.stops and not each.found.guessed for each in heard)

    def names_means(self, text: str) -> bool:
        """Whether a text names a means of suicide. A loose word counts only if the text says nothing else."""
        words = self._listener.words(text)
        if sum(word[0].isalnum() for word in words) > LONGEST_MEANS:
            return False
        if self._says(text, MEANS):
            return True
        places = [
            range(each.start, each.end)
            for each in self._listener.concepts(text)
            if each.concept == BARE_MEANS
        ]
        named = {at for place in places for at in place}
        return bool(named) and all(at in named or word in _BESIDE_MEANS for at, word in enumerate(words))


def _ends(earlier: Verdict) -> tuple[str, ...]:
    """The names of the phrases that end this danger."""
    if earlier.kind == "crisis":
        return OVER, MISTAKEN
    names = (OVER, MISTAKEN, OVER_BY_THEM)
    return (*names, OVER_AS_FELT) if earlier.can_be_felt else names


def _as_own_words(question: str, own: Mapping[str, str]) -> str:
    """A question to the person, in the first person: "harming yourself" becomes "harming myself"."""
    return _YOU.sub(lambda found: own[found[0].lower()], question)


def _questions(context: str) -> list[str]:
    """The questions in an assistant's text; its last sentence, if that asks without a question mark."""
    said = _SENTENCE.findall(_QUOTED.sub(" ", context))
    sentences = [sentence for sentence in said if sentence.strip(" .!?\n")]
    asked = [sentence for sentence in sentences if sentence.endswith("?")]
    asked = asked or [sentence for sentence in sentences[-1:] if _TELL_ME.match(sentence)]
    return [sentence for sentence in asked if not _OFFERS.match(sentence)]
