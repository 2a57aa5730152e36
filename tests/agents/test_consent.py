"""Nothing is deleted or changed in the notes unless the person clearly agrees, with or without a model."""

from typing import Any

import pytest

from agents.ports import Situation
from agents.values import FactReading, Offer, Understanding
from memory_blocks.facts.changes import CurrentFact, Decider, Op
from tests.support.brains.right_readings import ScriptedModel, a_reading, scripted_brain
from tests.support.builders import a_fact, a_situation, some_blocks
from tests.support.orchestrators import local_brain

KNEE = a_fact("concern", "knee pain", 1)
ALLERGY = a_fact("allergies", "penicillin", 1)
SLEEP = a_fact("concern", "poor sleep", 1)
FACTS = (KNEE, ALLERGY, SLEEP)

YES = ["yes", "Yes!", "yeah", "yep, thanks", "yes please", "Yes, please."]
"""Messages that no model has to read."""

CLEAR = [
    "ok",
    "sure",
    "go ahead",
    "please do",
    "yes, delete it",
    "yes go ahead please",
    "ok, do it then",
    "of course, thanks",
    "go on then, yes",
    "yes, remove all of them",
    "yes delete everything",
    "I'm sure",
]
UNCLEAR = [
    "yes, but keep the allergy",
    "ok, only the knee then",
    "yes please, all but the penicillin",
    "go ahead, but not my allergy",
    "ok what would be deleted?",
    "yes?",
    "ok?",
    "yes, and my foot hurts",
    "yes except the knee",
    "sure about that?",
    "please keep it",
    "ok wait",
    "yes and no",
    "thanks",
    "then",
]


def to_forget(*facts: CurrentFact, everything: bool = False) -> Offer:
    changes = tuple(
        FactReading(op=Op.FORGET, target=each.id, kind=each.kind, subject="person", value=each.value,
                    decided_by=Decider.LOCAL)
        for each in facts
    )  # fmt: skip
    return Offer(changes=changes, everything=everything)


def offering(offer: Offer | None) -> Situation:
    situation = a_situation(some_blocks(1), FACTS)
    return Situation(situation.blocks, FACTS, situation.now, offer=offer)


def change(op: str, label: str | None, **fields: Any) -> dict[str, Any]:
    given = {"op": op, "target": label, "kind": "", "subject": "person", "value": "", **fields}
    return {**given, "words": "", "stable": False, "confidence": 1.0}


async def read_by_a_model(
    message: str, offer: Offer | None, *changes: dict[str, Any], act: str = "answer"
) -> tuple[Understanding, ScriptedModel]:
    """What the brain makes of a model's reading; f1 is the knee, f2 the allergy, f3 the sleep."""
    acts = [{"kind": act, "words": message, "confidence": 1.0}]
    model = ScriptedModel({**a_reading(message, changes), "acts": acts})
    return await scripted_brain(model).understand(message, offering(offer)), model


@pytest.mark.parametrize("message", YES + CLEAR)
async def test_without_a_model_nothing_but_a_yes_agrees(message: str) -> None:
    found = await local_brain().understand(message, offering(to_forget(*FACTS, everything=True)))

    assert found.agreed


@pytest.mark.parametrize("message", UNCLEAR)
async def test_without_a_model_a_yes_with_anything_else_does_not_agree(message: str) -> None:
    found = await local_brain().understand(message, offering(to_forget(*FACTS, everything=True)))

    assert not found.agreed


async def test_everything_is_not_agreed_to_where_less_was_offered() -> None:
    found = await local_brain().understand("yes, delete everything", offering(to_forget(KNEE)))

    assert not found.agreed
    assert found.forgets_all


@pytest.mark.parametrize("message", YES)
async def test_a_bare_yes_needs_no_model(message: str) -> None:
    found, model = await read_by_a_model(message, to_forget(*FACTS, everything=True))

    assert found.agreed
    assert model.asked == 0


@pytest.mark.parametrize("message", CLEAR)
async def test_a_yes_in_other_words_is_read_by_the_model_and_agrees_unless_it_says_otherwise(
    message: str,
) -> None:
    found, model = await read_by_a_model(message, to_forget(*FACTS, everything=True))

    assert model.asked == 1
    assert found.agreed


@pytest.mark.parametrize("message", UNCLEAR)
async def test_with_a_model_that_ends_nothing_a_yes_with_anything_else_does_not_agree(message: str) -> None:
    found, model = await read_by_a_model(message, to_forget(*FACTS, everything=True))

    assert model.asked == 1
    assert not found.agreed


@pytest.mark.parametrize("message", UNCLEAR)
async def test_a_model_that_ends_some_of_what_was_offered_makes_a_narrower_offer(message: str) -> None:
    found, _ = await read_by_a_model(
        message, to_forget(*FACTS, everything=True), change("retract", "f1"), change("retract", "f3")
    )

    assert not found.agreed
    assert not found.forgets_all
    assert [(each.op, each.value) for each in found.proposed] == [
        (Op.FORGET, "knee pain"),
        (Op.FORGET, "poor sleep"),
    ]
    assert found.changes == ()


async def test_a_model_that_ends_all_that_was_offered_agrees() -> None:
    endings = [change("retract", label) for label in ("f1", "f2", "f3")]

    found, _ = await read_by_a_model("fine, all three", to_forget(*FACTS), *endings)

    assert found.agreed
    assert found.changes == ()


@pytest.mark.parametrize("op", ["unsure", "add", "replace"])
async def test_a_change_that_does_not_end_what_was_offered_does_not_agree(op: str) -> None:
    found, _ = await read_by_a_model(
        "hm, the left one?", to_forget(KNEE), change(op, "f1", value="left knee")
    )

    assert not found.agreed
    assert [each.value for each in found.changes] == ["left knee"]


async def test_an_offered_correction_is_agreed_to_with_its_own_value_only() -> None:
    latex = FactReading(
        op=Op.REPLACE, target=ALLERGY.id, kind="allergies", subject="person", value="latex",
        decided_by=Decider.MODEL,
    )  # fmt: skip
    offer = Offer(changes=(latex,))

    same, _ = await read_by_a_model("right, latex", offer, change("replace", "f2", value="Latex"))
    other, _ = await read_by_a_model("no, nuts", offer, change("replace", "f2", value="nuts"), act="correct")

    assert (same.agreed, other.agreed) == (True, False)
    assert same.changes == ()
    assert [each.value for each in other.changes] == ["nuts"]


async def test_who_agrees_and_asks_for_more_is_asked_about_the_rest() -> None:
    both = (change("retract", "f1"), change("retract", "f3"))

    found, _ = await read_by_a_model("yes, and forget the sleep too", to_forget(KNEE), *both, act="forget")

    assert found.agreed
    assert [each.value for each in found.proposed] == ["poor sleep"]
    assert found.changes == ()


@pytest.mark.parametrize(
    "message", ["forget everything except my allergies", "forget all of it, the knee I mean"]
)
async def test_the_local_reading_never_makes_a_request_to_forget_larger(message: str) -> None:
    found, _ = await read_by_a_model(message, None, change("retract", "f1"), act="forget")

    assert not found.forgets_all
    assert [(each.op, each.value) for each in found.proposed] == [(Op.FORGET, "knee pain")]


async def test_a_model_that_names_nothing_leaves_it_to_the_local_reading_what_to_forget() -> None:
    found, _ = await read_by_a_model("forget everything", None, act="forget")

    assert found.forgets_all
    assert len(found.proposed) == len(FACTS)


async def test_a_model_sees_what_was_offered() -> None:
    _, model = await read_by_a_model("ok, only the knee", to_forget(KNEE, ALLERGY))
    _, of_all = await read_by_a_model("ok, only the knee", to_forget(*FACTS, everything=True))

    assert "We offered to remove: f1, f2." in model.readings[-1].known
    all_of_it = "everything, which is f1, f2, f3 and all messages"
    assert f"We offered to remove: {all_of_it}." in of_all.readings[-1].known
