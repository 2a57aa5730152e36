"""Everything that a reply depends on, and what can be said of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from agents.local.dialogue import Talk, known_for
from agents.local.reading.clauses import plain
from agents.local.reading.facts import CONCERN
from agents.ports import Recalled
from agents.roster import Specialist
from agents.values import (
    NONE,
    NOT_SAID,
    NOT_SURE,
    UNSPECIFIED,
    Act,
    ActKind,
    FactReading,
    Intent,
    Offer,
)
from memory_blocks.facts.changes import CurrentFact
from memory_blocks.models import EarlierSession


@dataclass(frozen=True)
class Turn:
    """Everything that a reply depends on. `talk` is the conversation before it, `facts` hold after it.

    `offer`, `agreed` and `undone` are about changes of the notes, as in `Brief` and `Understanding`.
    """

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
    offer: Offer | None = None
    agreed: bool = False
    undone: tuple[str, ...] | None = None

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


LOSS: Final = re.compile(
    r"\b(?:(?<!almost )(?<!nearly )died|passed away|passed on|lost (?:my|our|the|a|her"
    r"|his) (?:\w+ )?(?:mum|mom|dad"
    r"|mother|father|wife|husband|son|daughter|baby|child|brother|sister|nan|gran|friend|partner|dog|cat"
    r"|twins?)|funeral"
    r"|miscarr\w+|stillb\w+|put (?:\w+ ){1,2}(?:down|to sleep)|bereave\w+|widow\w*)\b"
)


def grieves(turn: Turn) -> bool:
    """Whether the person has told of a loss."""
    return any(
        LOSS.search(plain(text)) for text in (*(said.message for said in turn.talk.said), turn.message)
    )


def wants_quiet(turn: Turn) -> bool:
    """Whether the person asked not to be asked or advised."""
    pattern = (
        r"\b(?:stop asking|no (?:more )?questions|just listen|only listen|don't ask"
        r"|don't want (?:any )?(?:tips|advice|questions)|stop it with the questions)\b"
    )
    return any(
        re.search(pattern, plain(text)) for text in (*(said.message for said in turn.talk.said), turn.message)
    )


MOST_QUOTED: Final = 2
_LONG: Final = 110
PLAIN_VALUES: Final = (NONE, NOT_SURE, NOT_SAID, UNSPECIFIED)


def quoted(words: Sequence[str]) -> str:
    """The first words, each as a quotation."""
    quotes = [f'"{short(each)}"' for each in dict.fromkeys(words) if each.strip()]
    text = " and ".join(quotes[:MOST_QUOTED])
    return f"{text} (and the rest of your message)" if len(quotes) > MOST_QUOTED else text


def short(text: str) -> str:
    """A text without quotation marks and lead-in, cut if it is long."""
    text = " ".join(text.replace('"', "'").split()).strip(" .,;:!?")
    text = re.sub(
        r"^(?:(?:and|but|so|also|oh|then|yo|ok|well|lol),? )+(?=\w+ \w)", "", text, flags=re.IGNORECASE
    )
    return text if len(text) <= _LONG else f"{text[: _LONG - 1].rstrip()}…"
