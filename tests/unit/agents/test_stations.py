"""The stations check what a brain returns; the scripted brain follows its script."""

import asyncio
from dataclasses import replace
from itertools import repeat

import pytest

from agents.errors import BrainFailed
from agents.facts import known_facts, known_values
from agents.models.scripted import GENERAL, ScriptedBrain, ScriptedRecall
from agents.ports import MemoryHit
from agents.questions import kinds_asked, last_question
from agents.stations.understand import QUICK_SECONDS, slug, understand
from agents.values import Enrichment, Fact, FactReading, Intent, Understanding
from memory_blocks.facts.changes import Decider, Op
from memory_blocks.models import Blocks
from tests.support.brains.models import embedded
from tests.support.builders import a_fact, a_situation, some_blocks


def enriched(**values: object) -> Enrichment:
    return Enrichment.model_validate({"previous_context": "x", "enriched_message": "User says x"} | values)


def a_reading(op: Op = Op.ADD, **values: object) -> FactReading:
    usual = {"kind": "severity", "subject": "person", "value": "8/10", "decided_by": Decider.LOCAL}
    return FactReading.model_validate({"op": op} | usual | values)


async def understood(brain: ScriptedBrain, blocks: Blocks | None = None) -> Understanding:
    return await understand(brain, "hello", a_situation(blocks or some_blocks(2)))


async def extracted(enrichment: Enrichment, blocks: Blocks | None = None) -> Enrichment:
    return (await understood(ScriptedBrain(enrichments=[enrichment]), blocks)).enrichment


async def changed(*readings: FactReading) -> tuple[FactReading, ...]:
    return (await understood(ScriptedBrain(changes=[readings]))).changes


@pytest.mark.requirement("001-017")
async def test_a_reference_to_no_turn_is_dropped() -> None:
    found = await extracted(enriched(relevant_history=["turn_1", "turn_3", "turn_1", "turn_0", "yesterday"]))

    assert found.relevant_history == ("turn_1",)


async def test_a_fact_of_a_later_turn_is_dropped() -> None:
    now = Fact(kind="severity", value="8/10", turn=3)
    found = await extracted(enriched(facts=[now, Fact(kind="onset", value="Tuesday", turn=4)]))

    assert found.facts == (now,)


async def test_an_enriched_message_that_is_too_long_is_cut() -> None:
    found = await extracted(enriched(enriched_message="x" * 500))

    assert found.enriched_message == "x" * 399 + "…"


async def test_names_become_snake_case_and_empty_ones_get_defaults() -> None:
    found = await extracted(enriched(topic="Knee pain: Severity!", trigger="", phase="--"))

    assert (found.topic, found.trigger) == ("knee_pain_severity", "new_message")
    assert found.phase == "symptom_evaluation"


def test_a_slug_fits_in_a_block() -> None:
    assert slug("Übelkeit / " + "x" * 100).startswith("übelkeit_x")
    assert len(slug("a b " * 100)) <= 80


@pytest.mark.requirement("001-018")
async def test_an_intent_that_does_not_exist_is_unclear() -> None:
    made_up = Intent(intent="ASTROLOGY", confidence=0.99, reasoning="the stars")
    brain, situation = ScriptedBrain(intents=[made_up, GENERAL]), a_situation(some_blocks(0))
    intents = {"GENERAL_HEALTH", "UNCLEAR"}

    first = (await understand(brain, "hello", situation, intents)).intent
    second = (await understand(brain, "hello", situation, intents)).intent

    assert (first.intent, first.confidence) == ("UNCLEAR", 0.0)
    assert second == GENERAL


async def test_a_replacement_of_no_fact_adds_one() -> None:
    (change,) = await changed(a_reading(Op.REPLACE, target="fact_of_nobody"))

    assert (change.op, change.target) == (Op.ADD, None)


async def test_what_ends_no_fact_and_what_withdraws_is_dropped() -> None:
    readings = (a_reading(Op.RETRACT, target="fact_of_nobody"), a_reading(Op.WITHDRAW, target="fact_1"))

    assert await changed(*readings) == ()


async def test_a_known_fact_that_is_said_again_is_repeated() -> None:
    (known,) = a_situation(some_blocks(2)).facts

    (change,) = await changed(a_reading(kind=known.kind, value=known.value.upper()))

    assert (change.op, change.target) == (Op.ADD, known.id)


async def test_a_subject_is_mandatory() -> None:
    assert await changed(a_reading(subject="   ")) == ()


async def test_in_danger_a_brain_that_fails_or_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agents.stations.understand.QUICK_SECONDS", 0.01)
    assert QUICK_SECONDS <= 2
    urgent = replace(a_situation(some_blocks(1)), urgent=True)
    scripts = [BrainFailed("scripted", "understand")], [asyncio.Event()]

    found = [await understand(ScriptedBrain(enrichments=each), "chest pain", urgent) for each in scripts]

    assert [each.enrichment.enriched_message for each in found] == ["chest pain"] * 2
    assert [each.changes for each in found] == [(), ()]


async def test_a_script_can_fail_once_and_then_go_on() -> None:
    brain = ScriptedBrain(enrichments=[BrainFailed("scripted", "understand"), enriched()])
    situation = a_situation(some_blocks(0))

    with pytest.raises(BrainFailed):
        await brain.understand("hello", situation)

    assert (await brain.understand("hello", situation)).enrichment == enriched()


async def test_a_script_can_wait_for_an_event() -> None:
    gate = asyncio.Event()
    brain = ScriptedBrain(intents=[gate, GENERAL])
    deciding = asyncio.create_task(brain.understand("hello", a_situation(some_blocks(0))))
    await asyncio.sleep(0)
    waiting = not deciding.done()

    gate.set()

    assert waiting
    assert (await deciding).intent == GENERAL


async def test_a_script_can_answer_without_end() -> None:
    brain = ScriptedBrain(answers=[repeat("Again. ")])
    spoken = brain.speak(None)  # type: ignore[arg-type]  # a script ignores its brief

    said = [await anext(spoken) for _ in range(100)]
    await spoken.aclose()

    assert (said, brain.closed) == (["Again. "] * 100, 1)


async def test_a_script_can_fail_in_the_middle_of_an_answer() -> None:
    brain = ScriptedBrain(answers=[["I under", BrainFailed("scripted", "speak")]])
    spoken = brain.speak(None)  # type: ignore[arg-type]

    first = await anext(spoken)
    with pytest.raises(BrainFailed):
        await anext(spoken)

    assert (first, brain.closed) == ("I under", 1)


async def test_scripted_memories_are_found() -> None:
    hit = MemoryHit(memory_id="mem_1", content="Allergic to penicillin", score=0.9)
    recall = ScriptedRecall(hit)

    recalled = await recall.search(embedded("penicillin"), "user_456", "conv_1")

    assert (recalled.memories, recall.queries) == ((hit,), ["penicillin"])


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("How severe is it on a scale of 1 to 10?", ("severity",)),
        (
            "Can you tell me when they first started and how severe they are on a scale of 1 to 10?",
            ("severity", "onset"),
        ),
        ("How long have you been experiencing this level of pain?", ("duration",)),
        ("Are you taking any medication at the moment?", ("medications",)),
        ("A severity of 8 is high.", ()),
        ("Shall we go on?", ()),
    ],
)
def test_a_question_asks_for_kinds_of_facts(answer: str, kinds: tuple[str, ...]) -> None:
    assert kinds_asked(answer) == kinds


def test_the_last_question_is_found() -> None:
    assert last_question("Hm? I see. Where is it? Thank you.") == "Where is it?"
    assert last_question("I see.") is None


def test_a_kind_that_only_an_operator_knows_is_left_out_for_agents() -> None:
    facts = [a_fact("A1c", "7 %"), a_fact("age", "34")]

    assert [fact.kind for fact in known_facts(facts)] == ["age"]
    assert known_values(facts) == {"A1c": "7 %", "age": "34"}
