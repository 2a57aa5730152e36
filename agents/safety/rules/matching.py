"""Decides which rules a text fires. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.safety.rules import rules as book
from agents.safety.rules.findings import Groups, Listened, together
from agents.safety.rules.rules import Kind, Rule
from agents.safety.rules.scope import IMPERSONAL
from agents.safety.verdict import PASSIVE, Certainty, Verdict

_OF_NOBODY: Final[Mapping[Kind, frozenset[str]]] = {
    "emergency": frozenset((IMPERSONAL, "topic", "educational")),
    "crisis": frozenset((IMPERSONAL,)),
}


@dataclass(frozen=True, slots=True)
class CombinedRule:
    """A rule with its combinations of concepts."""

    rule: Rule
    combinations: tuple[Groups, ...]


class Matcher:
    """Matches the rules against what was found in a text."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(CombinedRule(rule, book.combinations(rule.when)) for rule in rules)
        self._worth_asking = _by_concept(self.rules)

    @property
    def concepts(self) -> frozenset[str]:
        """The concepts that some rule asks for."""
        return frozenset(
            name for each in self.rules for groups in each.combinations for group in groups for name in group
        )

    def always(self, verdict: Verdict) -> Verdict:
        """The part of a verdict that comes from rules which nothing may dismiss."""
        found = Verdict()
        for each in self.rules:
            if each.rule.always and each.rule.id in verdict.rule_ids:
                found = found.raised_by(verdict_of(each.rule, guessed=False))
        return found

    def verdict(self, listened: Listened, also: frozenset[str] = frozenset()) -> Verdict:
        """The verdict of all rules together: certain if one of them is, since they support each other."""
        verdict, is_certain = Verdict(), False
        fired = -1
        for number, each in self.possible(listened):
            if number == fired:
                continue
            rule = self.rules[number].rule
            even_if = even_if_of(rule, each)
            heard = together(listened, each, rule, even_if | also if also else even_if)
            if heard is None:
                continue
            guessed = any(one.found.guessed for one in heard) and not together(
                listened.as_typed, each, rule, even_if | also
            )
            is_certain |= verdict_of(rule, guessed=guessed).is_certain
            verdict = verdict.raised_by(Verdict(rule.kind, rule.tier, (rule.id,)))
            if not guessed:
                fired = number
        return verdict if is_certain or not verdict.flagged else replace(verdict, certainty="possible")

    def possible(self, listened: Listened) -> Iterator[tuple[int, Groups]]:
        """The combinations that may fire, each with its rule's number, in the order of the rules."""
        asked = {place for name in listened.heard for place in self._worth_asking.get(name, ())}
        for number, which in sorted(asked):
            yield number, self.rules[number].combinations[which]


def verdict_of(rule: Rule, *, guessed: bool) -> Verdict:
    """The verdict of a rule that fired: possible for a passive wish, or if a word was only guessed.

    The verdict of a rule that must be heard at any price is certain, unless the rule itself is in doubt.
    """
    is_doubted = guessed or (rule.kind == "crisis" and rule.tier == PASSIVE)
    certainty: Certainty = "possible" if rule.in_doubt or (is_doubted and not rule.always) else "certain"
    return Verdict(rule.kind, rule.tier, (rule.id,), certainty)


def even_if_of(rule: Rule, groups: Groups) -> frozenset[str]:
    """The cues that do not stop a combination: several findings describe a person, even in a quiz."""
    return rule.even_if | _OF_NOBODY[rule.kind] if len(groups) > 1 else rule.even_if


def _by_concept(rules: Sequence[CombinedRule]) -> dict[str, list[tuple[int, int]]]:
    """The combinations to examine once a concept was found, as numbers of rule and combination.

    Each combination is listed under the concepts of its smallest group only, since it needs one of them.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for number, compiled in enumerate(rules):
        for which, groups in enumerate(compiled.combinations):
            for name in min(groups, key=len):
                places.setdefault(name, []).append((number, which))
    return places
