"""Recognises what a short reply answers: yes, no, unsure, that a danger is over, or nothing at all. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias

from agents.safety.rules.phrases import spelled_out
from agents.safety.rules.rules import Pick, Replies

Answer: TypeAlias = Literal["yes", "no", "unsure", "after all"]
LONGEST_ANSWER: Final = 5
"""Number of words in the longest phrase that answers a question."""
LATEST_ANSWER: Final = 10
"""Maximum number of words before the answer in a reply."""
_HOW_OFTEN: Final = frozenset(
    ("times", "often", "sometimes", "always", "constantly", "occasionally", "days", "day", "daily", "night")
)
"""Last words of answers that say how often, and so are answers whatever follows: "a few times this week"."""


class Answers:
    """Recognises yes, no and unsure in replies, behind fillers and after a correction."""

    def __init__(self, replies: Replies) -> None:
        self._fillers = _spelled(replies.fillers)
        self._plain: dict[Answer, frozenset[str]] = {
            "yes": _spelled(replies.plain),
            "no": _spelled(replies.no),
        }
        self._all: dict[Answer, frozenset[str]] = {
            "no": self._plain["no"],
            "unsure": _spelled(replies.unsure),
            "yes": _spelled((*replies.yes, *replies.plain)),
        }
        self._no_more = _spelled(replies.no_more)
        self._someone = _spelled(replies.someone)
        self._after_all = _spelled(replies.after_all)
        self._picks: dict[str, Pick] = {
            phrase: pick for pick, phrases in replies.picks.items() for phrase in _spelled(phrases)
        }
        self._light = self._fillers.union(self._someone, _spelled(replies.at_a_loss), *self._all.values())
        self._beside_over = _spelled(replies.beside_over)
        self._denials = _spelled((*replies.no, *replies.no_danger))
        self._beside_denials = self._denials | self._fillers | self._beside_over
        self._empty = _spelled(replies.light)
        known = self._light.union(
            self._beside_denials, self._empty, self._no_more, self._after_all, self._picks
        )
        self.vocabulary = frozenset(word for phrase in known for word in phrase.split())

    def of(self, said: Sequence[str]) -> tuple[Answer, ...]:
        """The first answer in a reply, then any other plain answer: "no... actually yes" has both."""
        thoughts = [list(thought) for is_said, thought in groupby(said, _is_word) if is_said]
        while thoughts and not (rest := self._without_fillers(thoughts[0])):
            thoughts.pop(0)
        if not thoughts:
            return ()
        if len(thoughts) == 1 and " ".join(rest) in self._someone:
            return ("yes",)
        first, length = self._begins(rest, self._all)
        if first is None:
            return self._at_last(thoughts)
        if first == "yes" and rest[0] not in self._plain["yes"]:
            if rest[length - 1] not in _HOW_OFTEN and not _is_made_of(rest[length:], self._light):
                return ()  # "I have got glaucoma" is no "I have"
            if any(self._begins(thought, {"no": self._no_more})[0] for thought in thoughts[1:]):
                return ()
            denied, _ = self._begins(rest[length:], {"no": self._plain["no"]})
            first = denied or first
        answers = [first]
        for thought in (rest[length:], *thoughts[1:]):
            rest = self._without_fillers(thought)
            answer, length = self._begins(rest, self._plain)
            if answer == "yes" or (answer == "no" and length == len(rest)):
                answers.append(answer)
            elif first == "no" and " ".join(rest) in self._after_all:
                answers.append("after all")
        return tuple(dict.fromkeys(answers))

    def _at_last(self, thoughts: Sequence[Sequence[str]]) -> tuple[Answer, ...]:
        """The answer at the end of a short reply, as in "the tongue yes" or "since an hour ago, yes"."""
        counted = 0
        for number, thought in enumerate(thoughts):
            answer, length = (
                self._begins(self._without_fillers(thought), self._plain) if number else (None, 0)
            )
            if answer == "yes" or (answer == "no" and length == len(thought)):
                return (answer,)
            counted += len(thought)
            if counted > LATEST_ANSWER:
                break
            if thought[-1] in self._plain["yes"]:
                return ("yes",)
        return ()

    def picks(self, said: Sequence[str]) -> Pick | None:
        """The option that a reply chooses, if it says nothing else."""
        return self._picks.get(" ".join(self._without_fillers([word for word in said if _is_word(word)])))

    def says_nothing(self, said: Sequence[str]) -> bool:
        """Whether there are only fillers, or no words at all."""
        thoughts = [list(thought) for is_said, thought in groupby(said, _is_word) if is_said]
        return not any(self._without_fillers(thought) for thought in thoughts)

    def brings_nothing(self, said: Sequence[str]) -> bool:
        """Whether there are only answers, fillers and phrases of somebody who does not know what to do."""
        return _is_made_of([word for word in said if _is_word(word)], self._light)

    def plainly(self, said: Sequence[str]) -> Literal["yes", "no", "unsure"] | None:
        """The answer of a reply that says yes, or nothing but a softer yes, no or unsure; None otherwise."""
        answers, words = self.of(said), [word for word in said if _is_word(word)]
        if "after all" in answers or ("yes" in answers and not self._plain["yes"].isdisjoint(words)):
            return "yes"
        if answers[:1] in (("yes",), ("unsure",)):
            return ("yes" if answers[0] == "yes" else "unsure") if self.brings_nothing(said) else None
        denies = bool(answers) or any(phrase in self._denials for phrase in _phrases_in(words))
        return "no" if denies and _is_made_of(words, self._beside_denials) else None

    def is_light(self, said: Sequence[str]) -> bool:
        """Whether there are only phrases that say nothing about a danger, and at least one."""
        words = [word for word in said if _is_word(word)]
        return bool(words) and _is_made_of(words, self._empty)

    def is_beside_over(self, said: Sequence[str]) -> bool:
        """Whether there are only phrases that may accompany the statement that a danger is over."""
        thoughts = (list(thought) for is_said, thought in groupby(said, _is_word) if is_said)
        return all(_is_made_of(thought, self._beside_over) for thought in thoughts)

    def _without_fillers(self, thought: Sequence[str]) -> Sequence[str]:
        for length in range(min(len(thought), LONGEST_ANSWER), 0, -1):
            if " ".join(thought[:length]) in self._fillers:
                return self._without_fillers(thought[length:])
        return thought

    def _begins(
        self, thought: Sequence[str], phrases: Mapping[Answer, frozenset[str]]
    ) -> tuple[Answer | None, int]:
        for length in range(min(len(thought), LONGEST_ANSWER), 0, -1):
            beginning = " ".join(thought[:length])
            for answer, known in phrases.items():
                if beginning in known:
                    return answer, length
        return None, 0


def _spelled(phrases: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(words) for phrase in phrases for words in spelled_out(phrase))


def _is_made_of(words: Sequence[str], phrases: frozenset[str]) -> bool:
    """Whether the words are a sequence of these phrases and nothing else."""
    while words:
        lengths = range(min(len(words), LONGEST_ANSWER), 0, -1)
        length = next((most for most in lengths if " ".join(words[:most]) in phrases), 0)
        if not length:
            return False
        words = words[length:]
    return True


def _phrases_in(words: Sequence[str]) -> Iterator[str]:
    """Every phrase of up to `LONGEST_ANSWER` words in a text."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + LONGEST_ANSWER, len(words)) + 1):
            yield " ".join(words[start:end])


def _is_word(text: str) -> bool:
    return text[0].isalnum()
