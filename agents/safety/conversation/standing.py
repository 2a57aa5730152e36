"""Whether danger stands in a conversation, and what each message changes about it: a table. Pure.

The verdict of the message before decides the phase. What a message does (its move) and what was found in it
decide the effect, which makes the verdict of this message. So the state is stored with every message, as the
marks of its verdict, and nothing else has to be remembered.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from agents.safety.conversation.denials import CONFIRMED_TIERS
from agents.safety.conversation.moves import Move
from agents.safety.replies import first_aid
from agents.safety.verdict import (
    ABOUT,
    ASIDE,
    AT_ONCE,
    CALLED,
    CONFIRMED,
    DENIED,
    FIRM,
    GOING,
    LEANS,
    MARKS,
    MEANING,
    MEANWHILE,
    MISTAKE,
    NO_HELP,
    NOT_CALLED,
    OPEN,
    OVER,
    PLANNED,
    QUIET,
    STILL,
    SWALLOWED,
    UNSURE,
    Verdict,
)


class Phase(StrEnum):
    """How a conversation stands after a message."""

    CALM = "calm"
    ASKED = "asked"
    """The question about a possible danger was asked."""
    OPEN = "open"
    """That question was not answered. For some messages, less is needed to ask again."""
    DOUBTED = "doubted"
    """The person called a certain danger a mistake, and was asked once whether anybody is in danger."""
    DANGER = "danger"
    """Certain danger. Nobody has said that help is coming."""
    COMING = "coming"
    """Certain danger, and help is coming."""


class Effect(StrEnum):
    """What a message makes of the danger before it."""

    CONFIRM = "confirm"
    """It is certain: the full safety answer."""
    CONFIRM_CALLED = "confirm_called"
    """It is certain, and help is coming: what to do until then."""
    ASK_AGAIN = "ask_again"
    """The question is asked once more, in other words."""
    LEAVE_OPEN = "leave_open"
    """An ordinary answer. The question stays open for some messages."""
    RESUME = "resume"
    """The danger is denied: the message that raised it is answered."""
    RESUME_UNSURE = "resume_unsure"
    """Nobody knows: the message that raised it is answered, beneath the number."""
    LAPSE = "lapse"
    """An ordinary answer; the danger is no longer known."""
    REPEAT = "repeat"
    """The danger again, in other words."""
    ADVISE = "advise"
    """The first-aid text for a question, else who can tell."""
    HELP_COMES = "help_comes"
    """What to do until help is there."""
    HELP_IS_SOUGHT = "help_is_sought"
    """What to take along and to say there."""
    HELP_IS_PLANNED = "help_is_planned"
    """To do it now, and what to say."""
    NO_HELP = "no_help"
    """Why it is right to call, and how else to get help."""
    QUIET = "quiet"
    """One short line with the number."""
    DOUBT = "doubt"
    """The question whether anybody is in danger."""
    END = "end"
    """A note that this is good, and whom to call if it comes back."""
    ASIDE = "aside"
    """The answer of a specialist, beneath one line with the number."""


TABLE: Final[Mapping[Phase, Mapping[Move, Effect]]] = {
    Phase.ASKED: {
        Move.YES: Effect.CONFIRM,
        Move.NO: Effect.RESUME,
        Move.UNSURE: Effect.RESUME_UNSURE,
        Move.MISTAKE: Effect.RESUME,
        Move.OVER: Effect.RESUME,
        Move.ARRIVED: Effect.CONFIRM_CALLED,
        Move.BETTER: Effect.RESUME,
        Move.CALLED: Effect.CONFIRM_CALLED,
        Move.GOING: Effect.CONFIRM_CALLED,
        Move.NOT_CALLED: Effect.LEAVE_OPEN,
        Move.WILL: Effect.LEAVE_OPEN,
        Move.HARMLESS: Effect.RESUME,
        Move.ASKS: Effect.ASK_AGAIN,
        Move.LIGHT: Effect.LEAVE_OPEN,
        Move.SAME: Effect.LEAVE_OPEN,
        Move.OTHER: Effect.LEAVE_OPEN,
    },
    Phase.OPEN: dict.fromkeys(Move, Effect.LEAVE_OPEN) | {Move.MISTAKE: Effect.LAPSE},
    Phase.DOUBTED: {
        Move.YES: Effect.CONFIRM,
        Move.NO: Effect.RESUME,
        Move.UNSURE: Effect.CONFIRM,
        Move.MISTAKE: Effect.RESUME,
        Move.OVER: Effect.END,
        Move.ARRIVED: Effect.END,
        Move.BETTER: Effect.END,
        Move.CALLED: Effect.CONFIRM_CALLED,
        Move.GOING: Effect.CONFIRM_CALLED,
        Move.NOT_CALLED: Effect.CONFIRM,
        Move.WILL: Effect.CONFIRM,
        Move.HARMLESS: Effect.RESUME,
        Move.ASKS: Effect.LAPSE,
        Move.LIGHT: Effect.RESUME,
        Move.SAME: Effect.LEAVE_OPEN,
        Move.OTHER: Effect.LAPSE,
    },
    Phase.DANGER: {
        Move.YES: Effect.REPEAT,
        Move.NO: Effect.REPEAT,
        Move.UNSURE: Effect.REPEAT,
        Move.MISTAKE: Effect.DOUBT,
        Move.OVER: Effect.END,
        Move.ARRIVED: Effect.END,
        Move.BETTER: Effect.END,
        Move.CALLED: Effect.HELP_COMES,
        Move.GOING: Effect.HELP_IS_SOUGHT,
        Move.NOT_CALLED: Effect.NO_HELP,
        Move.WILL: Effect.HELP_IS_PLANNED,
        Move.HARMLESS: Effect.DOUBT,
        Move.ASKS: Effect.ADVISE,
        Move.LIGHT: Effect.QUIET,
        Move.SAME: Effect.REPEAT,
        Move.OTHER: Effect.ASIDE,
    },
    Phase.COMING: {
        Move.YES: Effect.REPEAT,
        Move.NO: Effect.REPEAT,
        Move.UNSURE: Effect.REPEAT,
        Move.MISTAKE: Effect.DOUBT,
        Move.OVER: Effect.END,
        Move.ARRIVED: Effect.END,
        Move.BETTER: Effect.END,
        Move.CALLED: Effect.HELP_COMES,
        Move.GOING: Effect.HELP_IS_SOUGHT,
        Move.NOT_CALLED: Effect.NO_HELP,
        Move.WILL: Effect.HELP_IS_PLANNED,
        Move.HARMLESS: Effect.DOUBT,
        Move.ASKS: Effect.ADVISE,
        Move.LIGHT: Effect.QUIET,
        Move.SAME: Effect.REPEAT,
        Move.OTHER: Effect.ASIDE,
    },
}
"""What a message in which no danger was found makes of the danger before it, by phase and move."""


_MAKE_FIRM: Final = frozenset(
    (
        Effect.CONFIRM,
        Effect.CONFIRM_CALLED,
        Effect.HELP_COMES,
        Effect.HELP_IS_SOUGHT,
        Effect.HELP_IS_PLANNED,
        Effect.NO_HELP,
    )
)
"""Effects of messages that speak of the danger, or of help."""
_GO_WITH_DANGER: Final = frozenset((Move.ASKS, Move.CALLED, Move.GOING, Move.NOT_CALLED, Move.WILL))
"""Moves that a message can make which also tells of danger."""


def phase_of(earlier: Verdict) -> Phase:
    """The phase after a message with this verdict."""
    marks = set(earlier.rule_ids)
    if not earlier.flagged or marks & {DENIED, OVER}:
        return Phase.CALM
    if earlier.is_possible:
        if MISTAKE in marks:
            return Phase.DOUBTED
        return Phase.OPEN if marks & {UNSURE, *OPEN} else Phase.ASKED
    return Phase.COMING if marks & {CALLED, GOING} else Phase.DANGER


def after(earlier: Verdict, move: Move, heard: Verdict) -> Verdict:
    """The verdict of a message, by the verdict of the message before, its move and what was found in it."""
    phase = phase_of(earlier)
    if phase is Phase.CALM:
        return heard
    leans = bool(heard.rule_ids) and LEANS.issuperset(heard.rule_ids)
    if heard.flagged and not leans:
        found = _with_danger(earlier, phase, move, heard)
        if found is not None:
            return found
        if phase in (Phase.DANGER, Phase.COMING):
            move = move if move in _GO_WITH_DANGER else Move.SAME
            earlier = _firm(earlier)
    elif leans and move in (Move.OTHER, Move.LIGHT, Move.SAME):
        move = Move.NOT_CALLED if NOT_CALLED in heard.rule_ids else Move.SAME
    effect = TABLE[phase][move]
    if effect is Effect.RESUME_UNSURE and earlier.kind == "crisis":
        effect = Effect.CONFIRM  # who is unsure about that needs help
    if effect is Effect.QUIET and not earlier.is_firm and ASIDE in earlier.rule_ids:
        effect = Effect.ASIDE  # the number was said, and the talk went on
    return applied(effect, earlier)


def _with_danger(earlier: Verdict, phase: Phase, move: Move, heard: Verdict) -> Verdict | None:
    """The verdict of a message in which danger was found. None if the danger before it remains as it is."""
    by_meaning, kind = heard.rule_ids == (MEANING,), heard.kind
    if by_meaning:
        heard = replace(heard, kind=earlier.kind)  # the classifier hardly tells the kinds of danger apart
    if phase in (Phase.DANGER, Phase.COMING):
        return _more_danger(earlier, phase, move, heard)
    if move is Move.YES:
        return applied(Effect.CONFIRM, earlier).raised_by(heard)
    if heard.is_certain:
        return heard
    if move in (Move.NO, Move.MISTAKE, Move.HARMLESS, Move.OVER, Move.BETTER) and by_meaning:
        return None
    if phase is Phase.OPEN or kind != earlier.kind:
        return replace(heard, kind=kind)
    return applied(Effect.CONFIRM, earlier).raised_by(heard)


def _more_danger(earlier: Verdict, phase: Phase, move: Move, heard: Verdict) -> Verdict | None:
    """The verdict of a message in which danger was found, after a certain danger.

    A new danger counts as such, and a call for help may have been about the other one. More of the same
    leaves the danger as it is.
    """
    if not heard.is_certain:
        return None
    is_new = heard.tier > earlier.tier or not set(heard.rule_ids) <= {*earlier.rule_ids, MEANING}
    if not is_new:
        return None
    if is_same(heard, earlier):
        effect = TABLE[phase][Move.SAME if move in (Move.OTHER, Move.LIGHT) else move]
        kept = applied(effect if effect is not Effect.DOUBT else Effect.REPEAT, _firm(earlier))
        return _without(kept, QUIET, OVER, ASIDE).raised_by(heard)
    if heard.tier < earlier.tier:
        heard = replace(earlier, rule_ids=unmarked(earlier)).raised_by(heard)
    return replace(heard, rule_ids=(*heard.rule_ids, *((CALLED,) if move is Move.CALLED else ())))


def applied(effect: Effect, earlier: Verdict) -> Verdict:
    """The verdict that an effect makes of the danger before."""
    rules = unmarked(_firm(earlier) if effect in _MAKE_FIRM else earlier)
    called = tuple(mark for mark in (CALLED, GOING) if mark in earlier.rule_ids)
    match effect:
        case Effect.CONFIRM | Effect.CONFIRM_CALLED:
            tier = max(earlier.tier, CONFIRMED_TIERS[earlier.kind])
            marks = (CONFIRMED, CALLED) if effect is Effect.CONFIRM_CALLED else (CONFIRMED,)
            return replace(earlier, tier=tier, rule_ids=(*rules, *marks), certainty="certain")
        case Effect.ASK_AGAIN if STILL not in earlier.rule_ids:
            return replace(earlier, rule_ids=(*rules, STILL))
        case Effect.LEAVE_OPEN:
            return _left_open(earlier)
        case Effect.RESUME:
            return replace(earlier, rule_ids=(*rules, DENIED))
        case Effect.RESUME_UNSURE | Effect.ASK_AGAIN:
            return replace(earlier, rule_ids=(*rules, UNSURE))
        case Effect.LAPSE:
            return Verdict()
        case Effect.DOUBT:
            return replace(earlier, rule_ids=(*rules, MISTAKE), certainty="possible")
    marks_of = {
        Effect.REPEAT: (*called, STILL),
        Effect.ADVISE: (*called, MEANWHILE, STILL),
        Effect.HELP_COMES: (CALLED, STILL),
        Effect.HELP_IS_SOUGHT: (GOING, STILL),
        Effect.HELP_IS_PLANNED: (*called, PLANNED, STILL),
        Effect.NO_HELP: (NO_HELP, STILL),
        Effect.QUIET: (*called, STILL, QUIET),
        Effect.END: (STILL, OVER),
        Effect.ASIDE: (*called, STILL, ASIDE),
    }
    return replace(earlier, rule_ids=(*rules, *marks_of[effect]))


def with_first_aid(
    texts: first_aid.FirstAid, said: str, danger: Verdict, earlier: Verdict, before: str = ""
) -> Verdict:
    """The danger, marked with the first-aid text that answers a question in the message.

    Somebody who asks leave for the help that is given in one danger ("should I use my EpiPen?") says yes to
    the question about possible danger. `before` is the message before: if it asked the same, the text is not
    sent again.
    """
    phase = phase_of(earlier)
    if phase is Phase.CALM:
        return _marked(danger, texts.topic_at_once(said, danger.rule_ids) if _is_at_once(danger) else None)
    if phase in (Phase.ASKED, Phase.OPEN) and earlier.kind == "emergency" and danger.is_possible:
        topic = None if DENIED in danger.rule_ids else texts.topic_of_help(said)
        return _marked(applied(Effect.CONFIRM, earlier), topic) if topic else danger
    if MEANWHILE not in danger.rule_ids:
        return danger
    last = texts.by_rule(earlier.rule_ids)
    rules = (*danger.rule_ids, f"{first_aid.PREFIX}{last.id}") if last else danger.rule_ids
    topic = texts.topic_for(said, rules, in_emergency=danger.family == "emergency")
    is_new = topic != last or (said != before and texts.is_of_danger(said, rules))
    return _marked(danger, topic) if is_new else danger


def _is_at_once(danger: Verdict) -> bool:
    """Whether it is a certain emergency of the gravest tier."""
    return danger.is_certain and danger.kind == "emergency" and danger.tier == AT_ONCE


def _marked(danger: Verdict, topic: first_aid.Topic | None) -> Verdict:
    """The danger, marked with the first-aid text of a topic."""
    return replace(danger, rule_ids=(*danger.rule_ids, f"{first_aid.PREFIX}{topic.id}")) if topic else danger


def firm_if_grave(danger: Verdict, always: Verdict) -> Verdict:
    """The danger, firm from its first message on if it is grave.

    It is grave if a rule found it that nothing may dismiss (`always`), or if it is an overdose or a poison.
    """
    is_grave = always.is_certain or (
        danger.tier == AT_ONCE and any(rule.startswith(SWALLOWED) for rule in danger.rule_ids)
    )
    return _firm(danger) if danger.is_certain and is_grave else danger


def is_same(danger: Verdict, earlier: Verdict) -> bool:
    """Whether a danger was carried over from an earlier one, or is of the same family of rules."""
    families = [
        {rule.split(".")[0] for rule in unmarked(each)} - {FIRM, ABOUT.rstrip(".")}
        for each in (danger, earlier)
    ]
    return STILL in danger.rule_ids or not families[0].isdisjoint(families[1])


def unmarked(danger: Verdict) -> tuple[str, ...]:
    """The rules of a danger, without marks."""
    return tuple(
        rule for rule in danger.rule_ids if rule not in MARKS and not rule.startswith(first_aid.PREFIX)
    )


def _left_open(earlier: Verdict) -> Verdict:
    """The possible danger, still open; none after some messages."""
    passed = next((at + 1 for at, mark in enumerate(OPEN) if mark in earlier.rule_ids), 0)
    if passed == len(OPEN):
        return Verdict()
    return replace(earlier, rule_ids=(*unmarked(earlier), OPEN[passed]))


def _firm(danger: Verdict) -> Verdict:
    """The danger, marked as one that more than one message was about."""
    return replace(danger, rule_ids=tuple(dict.fromkeys((*danger.rule_ids, FIRM))))


def _without(danger: Verdict, *marks: str) -> Verdict:
    return replace(danger, rule_ids=tuple(rule for rule in danger.rule_ids if rule not in marks))
