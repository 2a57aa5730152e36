"""What is known after some turns of a conversation, and what one message adds to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from agents.local.reading import Said
from agents.local.telling import Teller
from agents.questions import name_of
from agents.values import LISTS, NO_VALUE, NONE, NOT_SURE, UNSPECIFIED, Fact, values_of
from memory_blocks.models import Sentiment

OF_CONCERN: Final = frozenset(
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
        "progression",
        "previous_episodes",
        "effect",
        "tried",
        "noted",
        "mentioned",
    )
)
"""Kinds that belong to one concern and leave with it."""

UNSETTLED: Final = "unsettled"
"""The kind of a fact that names another kind: what was said of that one is denied since, and asked about."""

_MOST_VALUE: Final = 200
_MOST_INQUIRY: Final = 110


@dataclass(frozen=True, slots=True)
class Known:
    """What is known after some turns; `shelved` are the facts of concerns that gave way to others, `asked`
    the kinds that were asked for and are still open, `passed` those of them whose question met no answer,
    `inquiries` the person's last question and those that only went on with it, `pending` the text whose
    question met one of them instead of an answer, `prior` how the message before is told where no fact tells
    it, and `first_asked` the question that was answered first where nobody has said what it is about.
    """

    facts: tuple[Fact, ...] = ()
    shelved: tuple[tuple[Fact, ...], ...] = ()
    asked: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    inquiries: tuple[str, ...] = ()
    pending: str = ""
    prior: str = ""
    first_asked: str = ""

    @property
    def values(self) -> dict[str, str]:
        """Each kind with its value, several joined by commas."""
        return values_of(self.facts)

    def asked_for(self, kinds: Iterable[str], *, passed: bool) -> "Known":
        """The same after a question for these kinds, which was `passed` over or met some answer."""
        still_open = {*self.asked, *kinds} - self.values.keys()
        passed_over = {*self.passed, *(kinds if passed else ())} & still_open
        return replace(self, asked=tuple(sorted(still_open)), passed=tuple(sorted(passed_over)))

    def inquired(self, question: str, *, half: bool) -> "Known":
        """The same after a question of the person; one that is only `half` asked goes on with the last."""
        kept = self.inquiries[:1] if half else ()
        return replace(self, inquiries=(*kept, question[:_MOST_INQUIRY].strip()))


@dataclass(frozen=True, slots=True)
class Understood:
    """One message in the light of what came before."""

    known: Known
    sentences: tuple[str, ...] = ()
    stated: tuple[Fact, ...] = ()
    answers: tuple[str, ...] = ()
    replied: bool = False
    corrected: bool = False
    new_concern: bool = False
    topic_wanted: bool = False
    asks: bool = False
    closes: bool = False
    sentiment: Sentiment = Sentiment.NEUTRAL
    leans_on: tuple[int, ...] = field(default=())
    before: str = ""
    """The text whose question it answers, where that is an earlier one than the last."""


class Told:
    """What one message adds, while it is being read."""

    def __init__(self, turn: int, known: Known) -> None:
        self.turn, self.known = turn, known
        self.facts: list[Fact] = []
        self.sentences: list[str] = []
        self.new_concern = False

    def has(self, kind: str) -> bool:
        """Whether the kind is known."""
        return any(fact.kind == kind for fact in self.known.facts)

    def say(self, said: Said, teller: Teller | None) -> None:
        """Keep what was said, and tell it where somebody tells."""
        if self.keep(said) and teller is not None:
            self.sentences.append(teller.tells(said.kind, said.value))

    def keep(self, said: Said) -> bool:
        """Add a fact; one of a kind that can have only one replaces it, `fever` takes away `no fever`."""
        value = " ".join(said.value.split())[:_MOST_VALUE].strip()
        if not value or not said.kind:
            return False
        fact = Fact(kind=said.kind, value=value, turn=self.turn)
        others = [each for each in self.known.facts if not _gives_way(each, fact)]
        if said.kind in LISTS and any(
            each.kind == fact.kind and each.value.lower() == value.lower() for each in others
        ):
            return False
        same = next(
            (each for each in self.known.facts if each.kind == fact.kind and each.value == value), None
        )
        if same is not None and said.kind not in LISTS:
            return False
        self.known = replace(self.known, facts=(*others, fact))
        self.facts = [each for each in self.facts if not _gives_way(each, fact)] + [fact]
        return True

    def drop(self, kind: str, words: Sequence[str]) -> None:
        """Take back what one said of a kind."""
        kept = tuple(
            fact
            for fact in self.known.facts
            if fact.kind != kind or not any(word in fact.value.lower() for word in words)
        )
        self.known = replace(self.known, facts=kept)

    def take_back(self, kind: str) -> None:
        """Take back all that was said of a kind in earlier turns."""
        kept = tuple(fact for fact in self.known.facts if fact.kind != kind or fact.turn == self.turn)
        self.known = replace(self.known, facts=kept)

    def doubts(self, kind: str) -> bool:
        """Whether there is nothing of a kind all at once, against what was said before. That is not dropped
        for it; said a second time, it is.
        """
        earlier = [
            fact.value
            for fact in self.known.facts
            if fact.kind == kind and fact.turn < self.turn and not NO_VALUE.match(fact.value)
        ]
        doubted = [fact.turn for fact in self.known.facts if (fact.kind, fact.value) == (UNSETTLED, kind)]
        if self.turn in doubted:
            return True
        if not earlier or doubted:
            self.take_back(kind)
            self.drop(UNSETTLED, [kind])
            return False
        self.keep(Said(UNSETTLED, kind))
        self.sentences.append(f"User said before: {name_of(kind)} {', '.join(earlier)}")
        return True

    def shelve(self, another: str) -> None:
        """Put the concern's facts aside, and take up those of another if it was spoken of before."""
        mine = tuple(fact for fact in self.known.facts if fact.kind in OF_CONCERN)
        rest = tuple(fact for fact in self.known.facts if fact.kind not in OF_CONCERN)
        back: tuple[Fact, ...] = ()
        shelved = []
        for each in self.known.shelved:
            name = next((fact.value for fact in each if fact.kind == "concern"), "")
            if same_concern(another, name):
                back = each
            else:
                shelved.append(each)
        kept = [
            fact for fact in rest if fact.kind != "earlier_concern" or not same_concern(another, fact.value)
        ]
        values = values_of(mine)
        if "concern" in values:
            told = [values[kind] for kind in ("severity", "onset", "duration", "location") if kind in values]
            value = f"{values['concern']} ({', '.join(told)})" if told else values["concern"]
            first = min(fact.turn for fact in mine)
            kept.append(Fact(kind="earlier_concern", value=value[:_MOST_VALUE], turn=first))
        self.known = replace(
            self.known, facts=(*kept, *back), shelved=(*shelved, mine) if mine else tuple(shelved)
        )


def _gives_way(old: Fact, new: Fact) -> bool:
    if old.kind != new.kind:
        return {old.kind, new.kind} == {"request"} and False
    if new.kind not in LISTS:
        return True
    if old.value in (NONE, UNSPECIFIED, NOT_SURE):
        return True
    one, other = old.value.lower(), new.value.lower()
    return (
        one == f"no {other}"
        or other == f"no {one}"
        or (one != other and one in other and not other.startswith("no "))
    )


def same_concern(one: str, other: str) -> bool:
    """Whether two names are of one complaint: `headaches` and `a bad headache`."""
    if not one or not other:
        return False
    short, long = sorted((one.lower().rstrip("s"), other.lower().rstrip("s")), key=len)
    return short in long or (short.split()[-1] == long.split()[-1] == "pain" and short == "pain")
