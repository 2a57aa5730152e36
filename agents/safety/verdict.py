"""The verdict on a message: which danger was found, how grave it is, and how certain."""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Certainty: TypeAlias = Literal["certain", "possible"]
Family: TypeAlias = Literal["emergency", "crisis", "violence"]
CALM: Final = 0
MEANING: Final = "meaning"
"""The rule of a danger that only the classifier found."""
PASSIVE: Final = 1
"""The tier of a crisis that is a passive wish, such as not to be there."""
MEANT: Final = 2
"""The tier of a danger that only the classifier found, from the meaning of the message."""
OF_ONESELF: Final = ("suicide.", "self_harm")
"""Id prefixes of the rules about people who are a danger to themselves."""
VIOLENCE: Final = ("abuse.", "assault.", "harm_to_others")
"""Id prefixes of the rules about violence."""
OTHER_CRISES: Final = (*OF_ONESELF, "psychosis.")
"""Id prefixes of the rules about other crises."""
STILL: Final = "still"
"""Marks a verdict that was carried over from the previous answer, not found in the message. It comes last."""
QUIET: Final = "quiet"
"""Marks a danger that stays, but is not said again: the message was only a "haha ok" or a "bye"."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a message.

    `tier` goes from 0 (no danger) to 3 (immediate). A danger is `certain` if a rule found it; it is
    `possible` if only the classifier found it, or a rule with doubt. Certain danger gets the full safety
    answer, possible danger one question that tells danger from no danger.
    """

    kind: Literal["emergency", "crisis", "none"] = "none"
    tier: int = CALM
    rule_ids: tuple[str, ...] = ()
    certainty: Certainty = "certain"

    @property
    def flagged(self) -> bool:
        """Whether there is danger, certain or possible."""
        return self.kind != "none"

    @property
    def is_certain(self) -> bool:
        """Whether there is danger without doubt."""
        return self.flagged and self.certainty == "certain"

    @property
    def is_possible(self) -> bool:
        """Whether there may be danger."""
        return self.flagged and self.certainty == "possible"

    def raised_by(self, other: "Verdict") -> "Verdict":
        """The combination of two verdicts: kind, tier and certainty of the graver one, the rules of both.

        A certain danger is graver than a possible one. If both have the same tier, a danger to oneself comes
        first, then an emergency.
        """
        graver = other if other._weight > self._weight else self
        return replace(graver, rule_ids=tuple(dict.fromkeys((*self.rule_ids, *other.rule_ids))))

    @property
    def is_of_oneself(self) -> bool:
        """Whether the crisis is a danger to oneself."""
        return self.kind == "crisis" and any(rule_id.startswith(OF_ONESELF) for rule_id in self.rule_ids)

    @property
    def family(self) -> Family:
        """What the answer is about: violence, if it is a crisis and only rules about violence fired."""
        if self.kind != "crisis":
            return "emergency"
        crises = [rule for rule in self.rule_ids if rule.startswith((*VIOLENCE, *OTHER_CRISES))]
        return "violence" if crises and all(rule.startswith(VIOLENCE) for rule in crises) else "crisis"

    @property
    def _weight(self) -> tuple[bool, int, bool, bool]:
        return self.is_certain, self.tier, self.is_of_oneself, self.kind == "emergency"


def staying(earlier: Verdict) -> Verdict:
    """The verdict of the previous answer, marked as carried over to the next message."""
    return replace(earlier, rule_ids=(*(each for each in earlier.rule_ids if each != STILL), STILL))
