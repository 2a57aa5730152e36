"""Whose danger a message tells of: the writer's own, or that of somebody such as their daughter. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from agents.safety.replies.wording import SOMEBODY
from agents.safety.rules.guard import Reason
from agents.safety.verdict import ABOUT, Verdict

_RELATIONS: Final = (
    "daughter", "son", "child", "kid", "baby", "toddler", "husband", "wife", "partner", "boyfriend",
    "girlfriend", "fiance", "fiancee", "mother", "mum", "mom", "father", "dad", "brother", "sister", "twin",
    "grandmother", "grandma", "granny", "gran", "nan", "nana", "grandfather", "grandad", "granddad",
    "grandpa", "grandson", "granddaughter", "uncle", "aunt", "auntie", "cousin", "nephew", "niece", "friend",
    "mate", "flatmate", "roommate", "housemate", "neighbour", "neighbor", "colleague", "coworker", "boss",
    "student", "pupil", "tenant", "lodger", "stepson", "stepdaughter", "ex",
)  # fmt: skip
_RELATED: Final = re.compile(
    rf"\b(?:my|our|his|her|their|a)(?: \w+)? ({'|'.join(_RELATIONS)})\b", re.IGNORECASE
)
_OF_THEM: Final = (
    r"(?!['\u2019]s)|['\u2019]s (?:\w+ )?(?:face|mouth|lips?|tongue|throat|arms?|hands?|legs?|chest|heart"
    r"|eyes?|skin|head|breathing|speech|pulse|temperature|sugar|gone|been|had|having|got|not|a|in|on|taken)\b"
)
"""What may follow a relation that is meant itself: "my husband's face", but not "my mum's pills"."""
_SUBJECT: Final = re.compile(
    rf"\b(?P<own>i|i['\u2019]?m|i['\u2019]?ve|i['\u2019]?ll|i['\u2019]?d|im|ive|me|myself|we)\b"
    rf"|\b(?P<other>he|she|they|hes|shes|he['\u2019]s|she['\u2019]s|they['\u2019]?re|him|herself|himself"
    rf"|themselves|themself|someone|somebody"
    rf"|(?:a|the|this|that) (?:man|woman|guy|lady|bloke|stranger|boy|girl))\b"
    rf"|\b(?:my|our)(?: \w+)? (?P<related>{'|'.join(_RELATIONS)})\b(?:{_OF_THEM})",
    re.IGNORECASE,
)
_ASIDES: Final = re.compile(
    r"\b(?:i|we)(?:['\u2019]?m| am|['\u2019]?ve| have)?(?: \w+)? (?:think|thinking|believe|know|guess|fear"
    r"|afraid|worried|scared|found|heard|saw|see|noticed|hear|told|calling|typing|asking|sure|with|beside)\b"
    r"(?: about| for| that)?"
    r"|\b(?:told|tells?|texted|wrote|messaged|called|says to|said to|asked|with|beside|next to) me\b"
    r"|\b(?:do|should|can|could|what|how) (?:i|we)\b",
    re.IGNORECASE,
)
"""What a writer says of themselves while they speak of somebody else: "I think", "she told me"."""
_BY_THE_WRITER: Final = "harm_to_others"
"""The rule about writers who mean to hurt somebody else."""
_REFLEXIVE: Final = re.compile(r"\b(?:her|him|them|it)sel(?:f|ves)\b", re.IGNORECASE)


def about_whom(verdict: Verdict, text: str, reasons: Iterable[Reason], before: Sequence[str] = ()) -> Verdict:
    """The danger, marked with the relation of the person whom a message in danger is about.

    Nothing is marked if it is about the writer. `before` are the writer's earlier messages, newest first,
    where it is said who "she" is.
    """
    rules = tuple(rule for rule in verdict.rule_ids if not rule.startswith(ABOUT))
    if any(rule.startswith(_BY_THE_WRITER) for rule in rules):
        return replace(verdict, rule_ids=rules)
    words = [
        word
        for reason in reasons
        if not reason.stopped_by and reason.rule.id in rules
        for word in reason.heard
    ]
    relation = _relation(text, words, before)
    return replace(verdict, rule_ids=(*rules, f"{ABOUT}{relation}") if relation else rules)


def _relation(text: str, words: Sequence[str], before: Sequence[str]) -> str | None:
    """The relation of the person whose danger it is; None for the writer."""
    told = _ASIDES.sub(lambda found: " " * len(found[0]), text)
    at = max((place + len(word) for word in words if (place := text.find(word)) >= 0), default=len(text))
    found = None
    for each in _SUBJECT.finditer(told, 0, at):
        if each["own"] and words and _REFLEXIVE.search(" ".join(words)):
            continue
        if (
            words or found is None
        ):  # the last subject before the words of a rule; without a rule the first one
            found = each
    if found is None or found["own"]:
        return None
    if found["related"]:
        return found["related"].lower()
    named = [related for said in (told[: found.start()], told, *before) for related in _RELATED.findall(said)]
    return named[0].lower() if named else SOMEBODY
