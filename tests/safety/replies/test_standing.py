"""What each message makes of a danger before it: the table of phases and moves, and danger in the message."""

from dataclasses import replace

import pytest

from agents.safety.conversation.moves import Move
from agents.safety.conversation.standing import (
    TABLE,
    Effect,
    Phase,
    after,
    applied,
    firm_if_grave,
    phase_of,
    with_first_aid,
)
from agents.safety.replies import first_aid
from agents.safety.verdict import (
    ASIDE,
    CALLED,
    CONFIRMED,
    DENIED,
    FIRM,
    GOING,
    MEANWHILE,
    MISTAKE,
    NO_HELP,
    NOT_CALLED,
    OPEN,
    OVER,
    QUIET,
    SILENT,
    STILL,
    UNSURE,
    Verdict,
)
from orchestrator.settings import shipped_config

AID = first_aid.load(shipped_config() / "safety")
STROKE = Verdict("emergency", 3, ("stroke.face",))
SUICIDE = Verdict("crisis", 3, ("suicide.plan",))
ACHE = Verdict("emergency", 2, ("meaning",), "possible")
GLOOM = Verdict("crisis", 1, ("suicide.passive",), "possible")
NOTHING = Verdict()


def marked(danger: Verdict, *marks: str, certainty: str | None = None) -> Verdict:
    found = replace(danger, rule_ids=(*danger.rule_ids, *marks))
    return found if certainty is None else replace(found, certainty="possible")


def test_every_phase_knows_what_to_do_with_every_move() -> None:
    assert {phase: set(moves) for phase, moves in TABLE.items()} == {
        phase: set(Move) for phase in Phase if phase is not Phase.CALM
    }


@pytest.mark.parametrize(
    ("danger", "phase"),
    [
        (NOTHING, Phase.CALM),
        (ACHE, Phase.ASKED),
        (marked(ACHE, STILL), Phase.ASKED),
        (marked(ACHE, OPEN[0]), Phase.OPEN),
        (marked(ACHE, UNSURE), Phase.OPEN),
        (marked(ACHE, DENIED), Phase.CALM),
        (STROKE, Phase.DANGER),
        (marked(STROKE, STILL, ASIDE), Phase.DANGER),
        (marked(STROKE, STILL, QUIET), Phase.DANGER),
        (marked(STROKE, CALLED, STILL), Phase.COMING),
        (marked(STROKE, GOING, STILL), Phase.COMING),
        (marked(STROKE, STILL, OVER), Phase.CALM),
        (marked(STROKE, MISTAKE, certainty="possible"), Phase.DOUBTED),
    ],
)
def test_the_verdict_of_a_message_says_how_the_conversation_stands(danger: Verdict, phase: Phase) -> None:
    assert phase_of(danger) is phase


@pytest.mark.parametrize(
    ("move", "marks"),
    [
        (Move.SAME, {STILL}),
        (Move.LIGHT, {STILL, QUIET}),
        (Move.OTHER, {STILL, ASIDE}),
        (Move.CALLED, {STILL, CALLED, FIRM}),
        (Move.GOING, {STILL, GOING, FIRM}),
        (Move.NOT_CALLED, {STILL, NO_HELP, FIRM}),
        (Move.ASKS, {STILL, MEANWHILE}),
        (Move.OVER, {STILL, OVER}),
    ],
)
def test_certain_danger_stays_whatever_is_said_but_that_it_is_over(move: Move, marks: set[str]) -> None:
    verdict = after(STROKE, move, NOTHING)

    assert set(verdict.rule_ids) == {"stroke.face", *marks}
    assert verdict.is_certain
    assert (phase_of(verdict) is Phase.CALM) == (move is Move.OVER)
    assert verdict.is_silent == (not SILENT.isdisjoint(marks))


def test_another_subject_does_not_clear_a_danger_however_often() -> None:
    danger = STROKE
    for _ in range(20):
        danger = after(danger, Move.OTHER, NOTHING)

    again = after(danger, Move.SAME, NOTHING)
    assert again == marked(STROKE, STILL)


def test_help_that_is_coming_is_remembered_until_it_is_denied() -> None:
    called = after(STROKE, Move.CALLED, NOTHING)
    for move in (Move.SAME, Move.LIGHT, Move.OTHER, Move.ASKS):
        called = after(called, move, NOTHING)
        assert phase_of(called) is Phase.COMING

    assert phase_of(after(called, Move.NOT_CALLED, NOTHING)) is Phase.DANGER


def test_a_mistake_is_asked_about_once_and_then_believed() -> None:
    asked = after(SUICIDE, Move.MISTAKE, NOTHING)
    assert asked == marked(SUICIDE, MISTAKE, certainty="possible")

    for move in (Move.NO, Move.MISTAKE, Move.LIGHT, Move.OTHER):
        assert phase_of(after(asked, move, NOTHING)) is Phase.CALM
    assert phase_of(after(asked, Move.SAME, NOTHING)) is Phase.OPEN
    for move in (Move.YES, Move.UNSURE):
        assert after(asked, move, NOTHING) == marked(SUICIDE, FIRM, CONFIRMED)


@pytest.mark.parametrize(("danger", "tier"), [(ACHE, 3), (GLOOM, 2)])
def test_a_yes_is_certain_danger(danger: Verdict, tier: int) -> None:
    verdict = after(danger, Move.YES, NOTHING)

    assert verdict == Verdict(danger.kind, tier, (*danger.rule_ids, FIRM, CONFIRMED))


def test_an_unsure_answer_is_certain_in_a_crisis_only() -> None:
    assert after(GLOOM, Move.UNSURE, NOTHING).is_certain
    assert after(ACHE, Move.UNSURE, NOTHING) == marked(ACHE, UNSURE)


def test_a_yes_never_lowers_what_the_rules_find() -> None:
    plan = Verdict("crisis", 3, ("suicide.plan",))

    assert after(GLOOM, Move.YES, plan).tier == 3


@pytest.mark.parametrize("move", [Move.LIGHT, Move.SAME, Move.OTHER])
def test_an_unanswered_question_stays_open_for_some_messages_without_an_alarm(move: Move) -> None:
    danger, phases = ACHE, []
    for _ in range(5):
        danger = after(danger, move, NOTHING)
        assert danger.is_silent
        phases.append(phase_of(danger))

    assert phases == [Phase.OPEN] * 3 + [Phase.CALM] * 2


def test_a_question_about_a_possible_danger_is_asked_back_once() -> None:
    again = after(ACHE, Move.ASKS, NOTHING)
    assert (again, phase_of(again)) == (marked(ACHE, STILL), Phase.ASKED)

    assert after(again, Move.ASKS, NOTHING).is_silent


def test_danger_found_again_after_its_question_is_certain() -> None:
    assert after(ACHE, Move.SAME, ACHE).is_certain
    assert after(GLOOM, Move.SAME, GLOOM).is_certain
    assert after(ACHE, Move.SAME, GLOOM) == GLOOM
    assert after(marked(ACHE, OPEN[0]), Move.SAME, ACHE) == ACHE


def test_a_danger_is_firm_once_a_second_message_was_about_it() -> None:
    assert not after(STROKE, Move.SAME, NOTHING).is_firm
    assert not after(STROKE, Move.OTHER, NOTHING).is_firm
    for move in (Move.CALLED, Move.GOING, Move.NOT_CALLED, Move.WILL):
        assert after(STROKE, move, NOTHING).is_firm
    assert after(STROKE, Move.OTHER, ACHE).is_firm
    assert after(ACHE, Move.YES, NOTHING).is_firm


def test_the_number_is_said_once_to_somebody_who_talks_of_other_things() -> None:
    aside = after(STROKE, Move.OTHER, NOTHING)

    assert after(STROKE, Move.LIGHT, NOTHING) == marked(STROKE, STILL, QUIET)
    assert after(aside, Move.LIGHT, NOTHING) == marked(STROKE, STILL, ASIDE)
    assert QUIET in after(marked(aside, FIRM), Move.LIGHT, NOTHING).rule_ids


def test_a_no_outweighs_what_only_the_classifier_hears_in_it() -> None:
    assert after(ACHE, Move.NO, ACHE) == marked(ACHE, DENIED)
    assert after(ACHE, Move.NO, STROKE) == STROKE


def test_possible_danger_after_certain_danger_belongs_to_it() -> None:
    for found in (ACHE, GLOOM):
        assert after(STROKE, Move.OTHER, found) == marked(STROKE, FIRM, STILL)
        assert after(STROKE, Move.MISTAKE, found) == marked(STROKE, FIRM, STILL)


def test_a_new_danger_counts_as_new_and_an_earlier_call_is_not_about_it() -> None:
    called = marked(STROKE, CALLED, STILL)
    blue = Verdict("emergency", 3, ("breathing.blue",))

    assert after(called, Move.SAME, blue) == blue
    assert after(called, Move.CALLED, blue) == marked(blue, CALLED)


def test_a_new_lesser_danger_does_not_hide_a_graver_one() -> None:
    verdict = after(SUICIDE, Move.SAME, Verdict("emergency", 2, ("burns.serious",)))

    assert (verdict.kind, verdict.tier) == ("crisis", 3)
    assert "burns.serious" in verdict.rule_ids
    assert STILL not in verdict.rule_ids


def test_more_of_the_same_danger_does_not_undo_a_call_for_help() -> None:
    called = marked(STROKE, CALLED, STILL)

    verdict = after(called, Move.SAME, Verdict("emergency", 3, ("stroke.speech",)))

    assert {"stroke.face", "stroke.speech", FIRM, CALLED, STILL} == set(verdict.rule_ids)


def test_a_rule_that_leans_on_the_danger_before_means_that_nobody_has_called() -> None:
    verdict = after(STROKE, Move.OTHER, Verdict("emergency", 3, (NOT_CALLED,)))

    assert verdict == marked(STROKE, FIRM, NO_HELP, STILL)


def test_marks_of_one_message_do_not_pile_up() -> None:
    danger = after(STROKE, Move.ASKS, NOTHING)

    assert applied(Effect.QUIET, danger) == marked(STROKE, STILL, QUIET)


def test_a_question_for_help_after_a_possible_danger_is_a_yes_and_gets_its_first_aid() -> None:
    asked = after(ACHE, Move.OTHER, NOTHING)

    verdict = with_first_aid(AID, "should I use my EpiPen?", asked, ACHE)

    assert verdict.is_certain
    assert {"first_aid.adrenaline_pen", CONFIRMED} <= set(verdict.rule_ids)
    assert with_first_aid(AID, "should I be worried about a stroke?", asked, ACHE) == asked


def test_a_first_message_that_asks_what_to_do_gets_its_first_aid() -> None:
    choking = Verdict("emergency", 3, ("airway.choking",))

    marked_with = with_first_aid(AID, "my son is choking on a grape, what do I do?", choking, NOTHING)

    assert marked_with == marked(choking, "first_aid.choking")
    assert with_first_aid(AID, "my son is choking on a grape", choking, NOTHING) == choking
    assert with_first_aid(AID, "ache, what do I do?", ACHE, NOTHING) == ACHE


def test_an_overdose_in_a_crisis_gets_its_first_aid() -> None:
    attempt = Verdict("crisis", 3, ("suicide.attempt", "overdose.medicine"))
    asked = after(attempt, Move.ASKS, NOTHING)

    assert "first_aid.overdose" in with_first_aid(AID, "should I throw up?", asked, attempt).rule_ids
    asked = after(SUICIDE, Move.ASKS, NOTHING)
    assert with_first_aid(AID, "can I drive?", asked, SUICIDE) == asked


def test_another_question_about_the_same_first_aid_gets_it_again_and_the_same_question_does_not() -> None:
    stopped = Verdict("emergency", 3, ("consciousness.not_breathing",))
    asked = after(stopped, Move.ASKS, NOTHING)
    told = with_first_aid(AID, "do I push on his chest?", asked, stopped)

    again = with_first_aid(AID, "how hard?", asked, told, "do I push on his chest?")

    assert "first_aid.cpr_how" in again.rule_ids
    assert with_first_aid(AID, "how hard?", asked, again, "how hard?") == asked


def test_a_grave_danger_is_firm_from_its_first_message_on() -> None:
    overdose = Verdict("emergency", 3, ("overdose.medicine",))

    assert firm_if_grave(STROKE, STROKE).is_firm
    assert firm_if_grave(overdose, NOTHING).is_firm
    assert not firm_if_grave(ACHE, NOTHING).is_firm
    assert not firm_if_grave(Verdict("emergency", 3, ("coronary.chest_pain",)), NOTHING).is_firm
