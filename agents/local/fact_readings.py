"""The facts of a message as changes to the facts that are known."""

from collections.abc import Iterator, Sequence

from agents.local.known import OF_CONCERN
from agents.values import LISTS, Enrichment, Fact, FactReading
from memory_blocks.facts import PERSON, CurrentFact, Decider, Op

_STABLE = frozenset(("allergies", "conditions", "family_history", "sex", "date_of_birth"))


def readings_of(enrichment: Enrichment, facts: Sequence[CurrentFact], now: int) -> Iterator[FactReading]:
    """What turn `now` changes: what it states and is not known, and what it takes back of a list."""
    known = enrichment.known
    subject = known.get("about_whom") or PERSON
    concern = known.get("concern", "")[:120]
    stated: set[str] = set()
    for fact in enrichment.facts:
        if fact.turn != now:
            continue
        about = concern if fact.kind in OF_CONCERN - {"concern"} else ""
        same_kind = [each for each in facts if (each.kind, each.subject) == (fact.kind, subject)]
        if any(each.value == fact.value and each.about in ("", about) for each in same_kind):
            continue
        old = _replaced(fact, same_kind, about)
        stated |= {old.id} if old else set()
        yield FactReading(
            op=Op.REPLACE if old else Op.ADD,
            target=old.id if old else None,
            kind=fact.kind,
            subject=subject[:60],
            about=about,
            value=fact.value,
            stable=fact.kind in _STABLE,
            decided_by=Decider.LOCAL,
            confidence=enrichment.quality,
        )
    if enrichment.corrected:
        yield from _taken_back(enrichment, [each for each in facts if each.id not in stated], subject)


def _replaced(fact: Fact, same_kind: Sequence[CurrentFact], about: str) -> CurrentFact | None:
    """The known fact that a new value takes the place of."""
    if fact.kind in LISTS:
        ended = fact.value.removeprefix("stopped ").removeprefix("no ")
        return next((each for each in same_kind if ended != fact.value and each.value == ended), None)
    if fact.kind == "concern":
        return None
    return next((each for each in reversed(same_kind) if each.about in ("", about)), None)


def _taken_back(enrichment: Enrichment, facts: Sequence[CurrentFact], subject: str) -> Iterator[FactReading]:
    """Entries of lists that the same rules read before and do not read any more."""
    still = {(fact.kind, fact.value) for fact in enrichment.facts}
    for fact in facts:
        is_ours = fact.decided_by is Decider.LOCAL and fact.subject == subject and fact.kind in LISTS
        if is_ours and (fact.kind, fact.value) not in still and fact.kind in enrichment.known:
            yield FactReading(
                op=Op.RETRACT,
                target=fact.id,
                kind=fact.kind,
                subject=fact.subject,
                about=fact.about,
                value=fact.value,
                decided_by=Decider.LOCAL,
                confidence=enrichment.quality,
            )
