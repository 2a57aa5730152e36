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
AT_ONCE: Final = 3
"""The tier of an immediate danger."""
OF_ONESELF: Final = ("suicide.", "self_harm")
"""Id prefixes of the rules about people who are a danger to themselves."""
VIOLENCE: Final = ("abuse.", "assault.", "harm_to_others")
"""Id prefixes of the rules about violence."""
STRANGLED: Final = "drowning.near"
"""The rule about strangling, which somebody may have done to the person."""
OTHER_CRISES: Final = (*OF_ONESELF, "psychosis.")
"""Id prefixes of the rules about other crises."""
CRISES: Final = (*OTHER_CRISES, *VIOLENCE, "not_safe")
"""Id prefixes of all rules about crises."""
SWALLOWED: Final = ("overdose.", "poisoning.")
"""Id prefixes of the rules about overdoses and poisons."""
FELT_LATE: Final = (*SWALLOWED, "bites.", "drowning.", "head_injury.")
"""Id prefixes of the rules about dangers that may be felt only hours later."""
STILL: Final = "still"
"""Marks a danger that was carried over from the previous answer, not found in the message."""
CONFIRMED: Final = "confirmed"
"""Marks a danger to which the person said yes when asked."""
RETRACTED: Final = "retracted"
"""Marks a danger that the person had denied before."""
FIRM: Final = "firm"
"""Says that more than one message was about a danger: it was found twice, confirmed, or help was spoken of.
It stays with the danger."""
ABOUT: Final = "about."
"""Begins the mark of a danger that is not the writer's own; the relation follows: "about.daughter". It stays
with the danger."""
CALLED: Final = "help.called"
"""Marks a danger about which the person has said that help was called or is coming."""
GOING: Final = "help.going"
"""Marks a danger with which the person is on the way to help."""
NO_HELP: Final = "help.none"
"""Marks a danger in which the person says that nobody has called, or does not want to."""
PLANNED: Final = "help.planned"
"""Marks a danger in which the person means to call, or to tell somebody."""
MEANWHILE: Final = "meanwhile"
"""Marks a danger about which the person asks something."""
MISTAKE: Final = "mistake"
"""Marks a danger that the person calls a mistake. They are asked once whether anybody is in danger."""
QUIET: Final = "quiet"
"""Marks a danger that stays, but is not said again: the message was only a "haha ok" or a "bye"."""
ASIDE: Final = "aside"
"""Marks a danger that stays while the person talks about another subject."""
OVER: Final = "over"
"""Marks a danger of which the message says that it is over, or that help is there."""
DENIED: Final = "denied"
"""Marks a danger that the person denied when asked."""
UNSURE: Final = "unsure"
"""Marks a possible danger of which the person does not know whether it is there."""
OPEN: Final = ("open.1", "open.2", "open.3")
"""Mark a possible danger whose question was not answered, by the number of messages since then."""
SILENT: Final = frozenset((QUIET, ASIDE, OVER, DENIED, UNSURE, *OPEN))
"""Marks of messages that get no safety answer."""
MARKS: Final = frozenset((STILL, CONFIRMED, CALLED, GOING, NO_HELP, PLANNED, MEANWHILE, MISTAKE, *SILENT))
"""Marks that say what became of a danger. `RETRACTED` says how it was found, and stays."""
NOT_CALLED: Final = "help.not_called"
"""The rule for messages which say that nobody has called for help."""
LEANS: Final = frozenset(("not_safe", NOT_CALLED))
"""Rules whose findings usually refer to the danger of the previous answer."""


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
        rules = dict.fromkeys((*self.rule_ids, *other.rule_ids))
        if self.is_silent != other.is_silent:  # a danger that is said is said
            rules = dict.fromkeys(rule for rule in rules if rule not in SILENT)
        return replace(graver, rule_ids=tuple(rules))

    @property
    def is_silent(self) -> bool:
        """Whether the danger is known, and gets no safety answer: it is over, denied, or said before."""
        return not self.flagged or not SILENT.isdisjoint(self.rule_ids)

    @property
    def is_firm(self) -> bool:
        """Whether more than one message was about the danger."""
        return FIRM in self.rule_ids

    @property
    def relation(self) -> str | None:
        """The relation of the person in danger to the writer, such as "daughter"; None for the writer."""
        return next((rule.removeprefix(ABOUT) for rule in self.rule_ids if rule.startswith(ABOUT)), None)

    @property
    def is_of_oneself(self) -> bool:
        """Whether the crisis is a danger to oneself."""
        return self.kind == "crisis" and any(rule_id.startswith(OF_ONESELF) for rule_id in self.rule_ids)

    @property
    def family(self) -> Family:
        """What the answer is about: violence, if only rules about violence fired, or also strangling."""
        if self.kind != "crisis":
            other = [
                rule
                for rule in self.rule_ids
                if rule not in {*MARKS, MEANING, FIRM} and not rule.startswith(ABOUT)
            ]
            is_strangled = STRANGLED in other and any(rule.startswith("abuse.") for rule in other)
            only = all(rule == STRANGLED or rule.startswith(VIOLENCE) for rule in other)
            return "violence" if is_strangled and only else "emergency"
        crises = [rule for rule in self.rule_ids if rule.startswith((*VIOLENCE, *OTHER_CRISES))]
        return "violence" if crises and all(rule.startswith(VIOLENCE) for rule in crises) else "crisis"

    @property
    def kinds(self) -> set[Literal["emergency", "crisis"]]:
        """The kinds of the rules that fired. The graver one is `kind`."""
        rules = (rule for rule in self.rule_ids if not rule.startswith(ABOUT))
        return {"crisis" if rule.startswith(CRISES) else "emergency" for rule in rules}

    @property
    def can_be_felt(self) -> bool:
        """Whether the danger is over if the person feels well: no crisis, and nothing that is felt late."""
        return self.kind == "emergency" and not any(rule.startswith(FELT_LATE) for rule in self.rule_ids)

    @property
    def _weight(self) -> tuple[bool, bool, int, bool, bool]:
        return (
            not self.is_silent,
            self.is_certain,
            self.tier,
            self.is_of_oneself,
            self.kind == "emergency",
        )
