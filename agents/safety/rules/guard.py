"""The guard decides by rules whether a message is an emergency or a crisis, and explains why. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from agents.safety.rules import rules as book
from agents.safety.rules.answers import Answers
from agents.safety.rules.compiled import Compiled, cached, without_garbage_collection
from agents.safety.rules.findings import Heard, Listened, together
from agents.safety.rules.listener import MISTAKEN, Listener, compile_rules
from agents.safety.rules.matching import Matcher, even_if_of, verdict_of
from agents.safety.rules.rules import Rule, RuleBook
from agents.safety.rules.short_replies import METHOD, ShortReplies
from agents.safety.verdict import Verdict

SHORTEST_ASIDE: Final = 3
"""Minimum word length reported by `set_aside` for a retracted finding."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule fired or was stopped: the words it matched, and the cues that retracted them."""

    rule: Rule
    heard: tuple[str, ...]
    stopped_by: tuple[tuple[str, str], ...] = ()
    guessed: bool = False
    """Whether a word was misspelt and corrected."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the rule, if it fired."""
        return verdict_of(self.rule, guessed=self.guessed)


class Guard:
    """Checks messages against compiled rules. It keeps nothing of a message."""

    def __init__(self, rules: RuleBook, compiled: Compiled | None = None) -> None:
        """Pass `compiled`, the result of `compile_rules` for these rules, to save computing it again."""
        self._answers = Answers(rules.replies)
        self._listener = Listener(rules, self._answers.vocabulary, compiled or compile_rules(rules))
        self._matcher = Matcher(rules.rules)
        self._replies = ShortReplies(
            self._listener, self._matcher, self._answers, tuple(rules.replies.reverse)
        )
        self._asked_for = self._matcher.concepts | self._listener.parts

    def check(self, text: str, context: str | None = None) -> Verdict:
        """The verdict on a message. `context` is the assistant's text that it may reply to."""
        verdict = self._matcher.verdict(self._listener.listen(text))
        return verdict.raised_by(self.check_reply(text, context)) if context else verdict

    def check_reply(self, text: str, context: str) -> Verdict:
        """The verdict on a short reply, such as "yes" to "any thoughts of harming yourself?"."""
        return self._replies.check(text, context)

    def always(self, verdict: Verdict) -> Verdict:
        """The part of a verdict that comes from rules which nothing may dismiss."""
        return self._matcher.always(verdict)

    def findings(self, text: str) -> list[str]:
        """The names of the findings of a text, those that something retracts with a "-" before them."""
        return self._listener.findings(text)

    def has_finding(self, text: str) -> bool:
        """Whether a text has a figure, or anything that a rule asks for."""
        if self._listener.first_figure(text) is not None:
            return True
        return any(found.concept in self._asked_for for found in self._listener.concepts(text))

    def completed(self, before: str, said: str) -> list[str]:
        """What a figure in a message means with what was said before it, as sentences."""
        return self._listener.completed(before, said)

    def as_read(self, text: str) -> str:
        """The text in the words that the rules read: misspellings corrected, disguised letters restored."""
        return " ".join(self._listener.words(text))

    @property
    def vocabulary(self) -> frozenset[str]:
        """The English words that occur in the rules."""
        return self._listener.vocabulary

    def takes_back(self, text: str) -> bool:
        """Whether a text names a danger but retracts it: negated, past, hypothetical, taught or figurative.

        The name of a past illness counts too, as in "my stroke in 2010".
        """
        listened = self._listener.listen(text)
        names = (each for name in self._listener.illnesses for each in listened.heard.get(name, ()))
        return any(each.stops or listened.has_a_year(each.found) for each in names) or any(
            together(listened, each, rule, None)
            and not together(listened, each, rule, even_if_of(rule, each))
            for rule, each in (
                (self._matcher.rules[number].rule, each) for number, each in self._matcher.possible(listened)
            )
        )

    def says_nothing(self, text: str) -> bool:
        """Whether a text consists of fillers only, such as a "hm" before the real answer."""
        return self._answers.says_nothing(self._listener.words(text))

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether a text says that the previous danger is over, cared for or never existed, and no more."""
        return bool(self._replies.ending(text, earlier))

    def is_mistake(self, text: str, earlier: Verdict) -> bool:
        """Whether `is_over` holds because the text calls the danger a mistake, a joke or a false alarm."""
        return MISTAKEN in self._replies.ending(text, earlier)

    def answer(self, text: str) -> Literal["yes", "no", "unsure"] | None:
        """What a reply says to a question about danger; None if it says neither plainly.

        A reply with a plain yes is a yes, whatever else it says. Anything but a yes or a no beside a no, or
        beside a softer yes such as "sometimes", makes it no plain answer.
        """
        return self._answers.plainly(self._listener.words(text))

    def is_light(self, text: str) -> bool:
        """Whether a text is only a "haha ok", a "thanks" or a "bye"."""
        return self._answers.is_light(self._listener.words(text))

    def brings_nothing(self, text: str) -> bool:
        """Whether a text has no content of its own: an answer, a thank-you, "what should I do"."""
        return self._answers.brings_nothing(self._listener.words(text))

    def means_of(self, text: str, earlier: Verdict) -> Verdict:
        """The graver danger if a text names a means after a danger to oneself."""
        is_own = earlier.family == "crisis" and earlier.is_certain
        return METHOD if is_own and self._replies.names_means(text) else Verdict()

    def explain(self, text: str) -> list[Reason]:
        """Every safety rule that matched, with the words that it matched and those that cancelled it."""
        listened = self._listener.listen(text)
        reasons = []
        fired = -1
        for number, combination in self._matcher.possible(listened):
            if number == fired:
                continue
            rule = self._matcher.rules[number].rule
            live = together(listened, combination, rule, even_if_of(rule, combination))
            found = live or together(listened, combination, rule, None)
            if found is None:
                continue
            stopped = () if live else self._stoppers(listened, found, rule)
            reasons.append(
                Reason(
                    rule,
                    tuple(self._listener.quote(text, each.found.start, each.found.end) for each in found),
                    stopped,
                    any(each.found.guessed for each in found),
                )
            )
            if live:
                fired = number
        return sorted(reasons, key=lambda reason: (bool(reason.stopped_by), -reason.rule.tier))

    def set_aside(self, text: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """The words of retracted findings, also of those that no rule uses, and what retracted them."""
        listened = self._listener.listen(text)
        aside: dict[str, tuple[tuple[str, str], ...]] = {}
        for each in (one for often in listened.heard.values() for one in often if one.stops):
            words = self._listener.quote(text, each.found.start, each.found.end)
            stops = [stop for stop in listened.stops if stop.reason in each.stops and stop.covers(each.found)]
            aside[words] = tuple(
                dict.fromkeys(
                    (stop.reason, self._listener.quote(text, stop.cue_start, stop.cue_end)) for stop in stops
                )
            )
        return {
            words: stops
            for words, stops in aside.items()
            if stops and len(words) >= SHORTEST_ASIDE and not _is_part(words, aside)
        }

    def _stoppers(
        self, listened: Listened, heard: Iterable[Heard], rule: Rule
    ) -> tuple[tuple[str, str], ...]:
        taken_back = [
            (stop.reason, self._listener.quote(listened.text, stop.cue_start, stop.cue_end))
            for each in heard
            for stop in listened.stops
            if stop.reason in each.stopped(rule.kind) - rule.even_if
        ]
        explained = [
            ("unless", self._listener.quote(listened.text, each.found.start, each.found.end))
            for name in rule.unless
            for each in listened.heard.get(name, ())
        ]
        return tuple(dict.fromkeys((*taken_back, *explained)))


def _is_part(words: str, all_words: Iterable[str]) -> bool:
    """Whether the words are part of another entry."""
    return any(words in others and words != others for others in all_words)


def load(folder: Path, cache: Path | None = None) -> Guard:
    """Load the guard from a folder of rules. Its compiled part is read from `cache`, or written to it."""
    with without_garbage_collection():
        rules = book.load(folder)
        compute = partial(compile_rules, rules)
        return Guard(rules, cached(folder, cache, compute) if cache else compute())
