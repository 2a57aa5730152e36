"""Understands one message after a conversation: its acts, the facts it changes, and the enriched message."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agents.local.dialogue import Said, Talk
from agents.local.enriching import enrich
from agents.local.reading import lexicon
from agents.local.reading.acts import Done, decide
from agents.local.reading.answers import AnswerReader
from agents.local.reading.changes import ChangeReader, agrees, applied, forgets
from agents.local.reading.clauses import names_in, split
from agents.local.reading.forgetting import facts_meant, is_for_everything
from agents.local.reading.kinds import load_forms
from agents.local.replying import medicines
from agents.local.search import Search
from agents.ports import Embedder
from agents.values import Act, ActKind, Enrichment, Exchange, FactReading
from memory_blocks.facts.changes import CurrentFact

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MAX_WORDS: Final = 400


@dataclass(frozen=True, slots=True)
class Understood:
    """What was read from one message. `facts` hold after it.

    `proposed` are changes that the person is asked about first; with `forgets_all`, they ask to forget
    everything. `agreed`: they say yes to such an offer.
    """

    done: tuple[Done, ...]
    changes: tuple[FactReading, ...]
    facts: tuple[CurrentFact, ...]
    enrichment: Enrichment
    proposed: tuple[FactReading, ...] = ()
    forgets_all: bool = False
    agreed: bool = False

    @property
    def acts(self) -> tuple[Act, ...]:
        """What each clause does, in the person's words."""
        return tuple(
            Act(
                kind=each.kind,
                words=each.clause.text[:_MAX_WORDS],
                confidence=round(min(each.confidence, 1.0), 4),
            )
            for each in self.done
        )


class Listener:
    """Reads messages with a word list and forms. The embedder searches what was told by meaning."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        words = lexicon.load(folder / "lexicon.toml")
        self.reader = AnswerReader(words)
        self.search = Search(
            embedder.embed if embedder else None,
            [group.split() for group in sorted(words.group("synonyms.groups"))],
            medicines.load(folder / "medicines.toml").classes,
            sorted(words.group("medicines.names")),
        )
        self._changes = ChangeReader(self.reader)
        self._forms = load_forms(folder / "kinds.toml")

    def understand(
        self, message: str, talk: Talk, now: datetime, *, topic: str | None = None, phase: str = "opening"
    ) -> Understood:
        """What a message means after a conversation."""
        names = {
            name: who
            for name, who in names_in([*(said.message for said in talk.said), message]).items()
            if not self.reader.is_of_health(name.lower())
        }
        clauses = split(message, about=talk.subject, other=talk.only_other, names=names)
        done = decide(clauses, talk, self.reader, self._forms, self.search)
        changes = self._changes.read(done, talk)
        facts = applied(talk.facts, changes, talk.number, now)
        enrichment = enrich(message, done, talk, changes, facts, topic=topic, phase=phase)
        request = " ".join(each.clause.text for each in done if each.kind is ActKind.FORGET)
        meant = facts_meant(request, talk.facts, talk, self.search) if request else ()
        return Understood(
            done,
            changes,
            facts,
            enrichment,
            tuple(map(forgets, meant)),
            is_for_everything(request),
            agrees(message, talk),
        )

    def enrich(self, message: str, history: Sequence[Exchange], *, opening: str = "") -> Enrichment:
        """The enriched message after a history of which nothing is stored: it is understood turn by turn."""
        facts: tuple[CurrentFact, ...] = ()
        said: tuple[Said, ...] = ()
        for number, exchange in enumerate(history):
            talk = Talk(said, facts, exchange.turn, opening)
            at = _EPOCH + timedelta(minutes=number)
            facts = self.understand(exchange.message, talk, at).facts
            said = (*said, Said(exchange.turn, exchange.message, exchange.answer, at))
        number = said[-1].turn + 1 if said else 1
        talk = Talk(said, facts, number, opening)
        return self.understand(message, talk, _EPOCH + timedelta(minutes=len(said) + 1)).enrichment
