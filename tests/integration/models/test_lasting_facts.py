"""What a model reads from a message holds in that turn and in every later one."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts
from memory_blocks.facts.edits import change_facts
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.mirrors.scripted import ScriptedMirror
from memory_blocks.models import Conversation, Label
from orchestrator.ops.clock import SystemClock
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Transaction
from orchestrator.turn.outbox import in_transaction
from orchestrator.turn.traces import of_block
from tests.support.brains.models import minilm
from tests.support.brains.right_readings import ScriptedModel, a_reading, scripted_brain
from tests.support.orchestrators import an_orchestrator, local_brain, messages
from tests.support.protocol_client import SENTENCE, Peer, conversing

Fact = tuple[str, str, str, str]
"""Whose, what, of what, and the value."""


def add(kind: str, value: str, subject: str = "person", about: str = "") -> dict[str, Any]:
    return {"op": "add", "target": None, "kind": kind, "subject": subject, "about": about, "value": value}


def replace(target: str, kind: str, value: str, about: str = "") -> dict[str, Any]:
    return add(kind, value, about=about) | {"op": "replace", "target": target}


@dataclass(frozen=True)
class FollowUp:
    """A message that rules read wrongly, what was said before it, and what a model reads."""

    first: str
    before: tuple[Mapping[str, Any], ...]
    asked: str
    message: str
    changes: tuple[Mapping[str, Any], ...]
    enriched: str
    facts: tuple[Fact, ...] = field(default=())


FOLLOW_UPS = {
    "gone green": FollowUp(
        "I have had a cough for a week",
        (add("concern", "cough"), add("duration", "a week", about="cough")),
        "What does the phlegm look like?",
        "it's gone green",
        (add("quality", "green phlegm", about="cough"),),
        "User says that the phlegm of their cough has turned green",
        (
            ("person", "concern", "", "cough"),
            ("person", "duration", "cough", "a week"),
            ("person", "quality", "cough", "green phlegm"),
        ),
    ),
    "husband": FollowUp(
        "I have a sore throat",
        (add("concern", "sore throat"),),
        "Does anybody at home have a fever?",
        "my husband does, 39",
        (add("temperature", "39 °C", subject="husband"),),
        "User says that their husband has a fever of 39 °C",
        (("person", "concern", "", "sore throat"), ("husband", "temperature", "", "39 °C")),
    ),
    "half of that": FollowUp(
        "I take metformin, 1000 mg",
        (add("medications", "metformin"), add("dose", "1000 mg", about="metformin")),
        "Is that the dose you still take?",
        "half of that",
        (replace("f2", "dose", "500 mg", about="metformin"),),
        "User takes half of 1000 mg of metformin: 500 mg",
        (("person", "medications", "", "metformin"), ("person", "dose", "metformin", "500 mg")),
    ),
    "more like 6": FollowUp(
        "I'm 34 and my back hurts, 8 out of 10",
        (add("age", "34"), add("concern", "back pain"), add("severity", "8/10", about="back pain")),
        "How are you today?",
        "it's more like 6 now",
        (replace("f3", "severity", "6/10", about="back pain"),),
        "User rates the severity of their back pain as 6 out of 10 now",
        (
            ("person", "age", "", "34"),
            ("person", "concern", "", "back pain"),
            ("person", "severity", "back pain", "6/10"),
        ),
    ),
    "other knee": FollowUp(
        "My left knee hurts",
        (add("concern", "knee pain"), add("location", "left knee", about="knee pain")),
        "Is it swollen on the left?",
        "the other knee",
        (replace("f2", "location", "right knee", about="knee pain"),),
        "User says that it is the right knee that hurts, not the left",
        (("person", "concern", "", "knee pain"), ("person", "location", "knee pain", "right knee")),
    ),
    "a friend's diabetes": FollowUp(
        "I have been tired for weeks",
        (add("concern", "tiredness"),),
        "Has a doctor looked into it?",
        "not yet, but a friend of mine has diabetes and was just as tired",
        (add("conditions", "diabetes", subject="friend"),),
        "User has not seen a doctor about the tiredness; a friend with diabetes was just as tired",
        (("person", "concern", "", "tiredness"), ("friend", "conditions", "", "diabetes")),
    ),
    "a dog's aspirin": FollowUp(
        "I have a headache",
        (add("concern", "headache"),),
        "Do you take anything for it?",
        "nothing, only my dog gets aspirin from the vet",
        (add("medications", "none reported"), add("medications", "aspirin", subject="dog")),
        "User takes nothing for the headache; their dog gets aspirin from the vet",
        (
            ("person", "concern", "", "headache"),
            ("person", "medications", "", "none reported"),
            ("dog", "medications", "", "aspirin"),
        ),
    ),
    "an exam mark": FollowUp(
        "I get headaches before exams",
        (add("concern", "headaches before exams"),),
        "How did it go this time?",
        "I got 8 out of 10 in maths today",
        (add("mentioned", "8 out of 10 in a maths exam"),),
        "User got 8 out of 10 in a maths exam today",
        (
            ("person", "concern", "", "headaches before exams"),
            ("person", "mentioned", "", "8 out of 10 in a maths exam"),
        ),
    ),
    "penicillin with hives": FollowUp(
        "My throat hurts",
        (add("concern", "sore throat"),),
        "Which medicines have you had for it before?",
        "penicillin, but it gives me hives",
        (add("allergies", "penicillin (hives)"),),
        "User gets hives from penicillin, which they once had for a sore throat",
        (("person", "concern", "", "sore throat"), ("person", "allergies", "", "penicillin (hives)")),
    ),
    "a number that is no age": FollowUp(
        "I sleep badly",
        (add("concern", "bad sleep"),),
        "How many hours did you sleep this week?",
        "34",
        (add("sleep_hours", "34 hours this week", about="bad sleep"),),
        "User slept 34 hours this week",
        (
            ("person", "concern", "", "bad sleep"),
            ("person", "sleep_hours", "bad sleep", "34 hours this week"),
        ),
    ),
}

BACK = add("concern", "back pain")
BACK_8 = add("severity", "8/10", about="back pain")
BACK_FACT = ("person", "concern", "", "back pain")
SHORT_REPLIES = {
    "the other of two pains": FollowUp(
        "My back hurts, and now my knee",
        (BACK, add("concern", "knee pain")),
        "How bad is the back pain, from 0 to 10?",
        "8",
        (BACK_8,),
        "User rates their back pain as 8 out of 10",
        (BACK_FACT, ("person", "concern", "", "knee pain"), ("person", "severity", "back pain", "8/10")),
    ),
    "a new severity": FollowUp(
        "My back hurts, 8 out of 10",
        (BACK, BACK_8),
        "How bad is it now, from 0 to 10?",
        "6",
        (replace("f2", "severity", "6/10", about="back pain"),),
        "User rates their back pain as 6 out of 10 now",
        (BACK_FACT, ("person", "severity", "back pain", "6/10")),
    ),
    "the severity of yesterday": FollowUp(
        "My back hurts",
        (BACK,),
        "How bad was the pain yesterday, from 0 to 10?",
        "8",
        (add("severity", "8/10 yesterday", about="back pain"),),
        "User rates their back pain of yesterday as 8 out of 10",
        (BACK_FACT, ("person", "severity", "back pain", "8/10 yesterday")),
    ),
    "not allergic to one thing": FollowUp(
        "I am allergic to nuts",
        (add("allergies", "nuts"),),
        "Are you allergic to penicillin?",
        "no",
        (),
        "User is not allergic to penicillin",
        (("person", "allergies", "", "nuts"),),
    ),
    "a daughter's allergy": FollowUp(
        "My daughter has a rash",
        (add("concern", "rash", subject="daughter"),),
        "Is your daughter allergic to penicillin?",
        "yes",
        (add("allergies", "penicillin", subject="daughter"),),
        "User's daughter is allergic to penicillin",
        (("daughter", "concern", "", "rash"), ("daughter", "allergies", "", "penicillin")),
    ),
    "a husband's fever": FollowUp(
        "I have a sore throat",
        (add("concern", "sore throat"),),
        "Does your husband have a fever?",
        "yes",
        (add("associated_symptoms", "fever", subject="husband"),),
        "User's husband has a fever",
        (("person", "concern", "", "sore throat"), ("husband", "associated_symptoms", "", "fever")),
    ),
    "a daughter's asthma": FollowUp(
        "I have a cough",
        (add("concern", "cough"),),
        "Does your daughter have asthma?",
        "yes",
        (add("conditions", "asthma", subject="daughter"),),
        "User's daughter has asthma",
        (("person", "concern", "", "cough"), ("daughter", "conditions", "", "asthma")),
    ),
    "a medicine that was stopped": FollowUp(
        "I take metformin",
        (add("medications", "metformin"),),
        "Do you still take metformin?",
        "no",
        ({"op": "retract", "target": "f1", "subject": "person"},),
        "User does not take metformin any more",
    ),
}
"""Replies of one word whose local reading is wrong, or loses something."""

SURE_REPLIES = {
    "a number on the scale": FollowUp(
        "My back hurts",
        (BACK,),
        "I'm sorry to hear that. How severe is it on a scale of 1 to 10?",
        "8",
        (),
        "",
        (BACK_FACT, ("person", "severity", "back pain", "8/10")),
    ),
    "a number for somebody else": FollowUp(
        "My daughter's back hurts",
        (add("concern", "back pain", subject="daughter"),),
        "How bad is the back pain, from 0 to 10?",
        "8",
        (),
        "",
        (("daughter", "concern", "", "back pain"), ("daughter", "severity", "back pain", "8/10")),
    ),
    "no to a question of the interview": FollowUp(
        "My back hurts",
        (BACK,),
        "Have you had this before?",
        "no",
        (),
        "",
        (BACK_FACT, ("person", "previous_episodes", "back pain", "none reported")),
    ),
}
"""Replies that need no model, because their local reading cannot be wrong."""


async def stored_facts(orchestrator: Orchestrator, conversation_id: str) -> tuple[CurrentFact, ...]:
    changes = await orchestrator.store.read(lambda tx: tx.facts.changes(conversation_id))
    return current_facts(changes)


def as_facts(facts: tuple[CurrentFact, ...]) -> tuple[Fact, ...]:
    return tuple((fact.subject, fact.kind, fact.about, fact.value) for fact in facts)


def rotate(tx: Transaction, conversation_id: str) -> None:
    """Archive all but the last turns, as `anamnesis blocks rotate` does."""
    with in_transaction(tx, conversation_id) as write:
        row = write.conversation
        here = Conversation(row.id, row.user_id, row.created_at)
        rotated = Ledger(SystemClock()).rotate(SqlBlockStore(tx.blocks), here, actor="ann")
        assert rotated.rotated_out
        for receipt in rotated.receipts:
            write.say(of_block(receipt, tx.ids.new("trace_"), row.id))


class Talk:
    """A conversation with a scripted model."""

    def __init__(self) -> None:
        self.model = ScriptedModel()

    async def say(
        self,
        peer: Peer,
        message: str,
        enriched: str,
        changes: tuple[Mapping[str, Any], ...] = (),
        answer: str = "Noted.",
    ) -> None:
        """Say the message. The model reads it so; if `enriched` is empty, the model refuses to read it."""
        self.model.reading, self.model.answer = a_reading(enriched, map(dict, changes)), answer
        self.model.fails = not enriched
        frames = await peer.ask(message)
        assert frames[-1].code is None
        assert ("model.trouble" in frames[-1].meta) == self.model.fails


@pytest.mark.parametrize("name", FOLLOW_UPS)
async def test_a_right_reading_lasts(embedded: str, name: str) -> None:
    case, mirror, talk = FOLLOW_UPS[name], ScriptedMirror(), Talk()
    brain = scripted_brain(talk.model)
    async with (
        an_orchestrator(embedded, brain, embedder=minilm(), mirror=mirror).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        here = peer.conversation_id
        await talk.say(peer, case.first, case.first, case.before, answer=case.asked)
        await talk.say(peer, case.message, case.enriched, case.changes)
        assert as_facts(await stored_facts(orchestrator, here)) == case.facts
        blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(here))
        assert case.enriched in (blocks["conversation_history"].value or "")

        for number in range(4):
            await talk.say(peer, "Thank you", f"User says thanks ({number})")
        await orchestrator.store.write(lambda tx: rotate(tx, here))
        await talk.say(peer, "And now?", "User asks what comes next")
        assert as_facts(await stored_facts(orchestrator, here)) == case.facts

    async with (
        an_orchestrator(embedded, brain, embedder=minilm(), mirror=mirror).open() as orchestrator,
        conversing(orchestrator, conversation_id=here) as peer,
    ):
        nuts = '"facts":[{"kind":"allergies","value":"nuts","turn":1,"stable":true},'
        mirror.replace(here, Label.ACTIVE_SESSION, '"facts":[', nuts, actor="letta:somebody")
        await talk.say(peer, "I am back", "")  # read locally
        await talk.say(peer, "Thank you", "User says thanks again")

        facts = await stored_facts(orchestrator, here)
        by_rules = {fact.value for fact in facts if fact.decided_by is Decider.LOCAL}
        others = {each for each in as_facts(facts) if each[-1] not in by_rules}
        assert by_rules <= {"I am back"}
        assert others == {*case.facts, ("person", "allergies", "", "nuts")}
        assert {fact.decided_by for fact in facts} >= {"model", "operator"}
        blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(here))
        shown = json.loads(blocks["active_session"].value or "")["facts"]
        assert {(each["kind"], each["value"]) for each in shown} == {each[1::2] for each in as_facts(facts)}
        assert check(orchestrator.store) == []


@pytest.mark.parametrize("name", SHORT_REPLIES)
async def test_a_short_reply_changes_what_the_model_reads_from_it(embedded: str, name: str) -> None:
    case, talk = SHORT_REPLIES[name], Talk()
    async with (
        an_orchestrator(embedded, scripted_brain(talk.model), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await talk.say(peer, case.first, case.first, case.before, answer=case.asked)
        await talk.say(peer, case.message, case.enriched, case.changes)
        facts = await stored_facts(orchestrator, peer.conversation_id)

    assert as_facts(facts) == case.facts
    assert talk.model.asked == 2


@pytest.mark.parametrize("name", SURE_REPLIES)
async def test_a_reply_that_is_read_without_the_model_changes_the_right_fact(
    embedded: str, name: str
) -> None:
    case, talk = SURE_REPLIES[name], Talk()
    async with (
        an_orchestrator(embedded, scripted_brain(talk.model), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await talk.say(peer, case.first, case.first, case.before, answer=case.asked)
        await talk.say(peer, case.message, "The model is not asked")
        facts = await stored_facts(orchestrator, peer.conversation_id)

    assert as_facts(facts) == case.facts
    assert talk.model.asked == 1


async def test_the_local_reading_of_an_old_message_does_not_come_back(embedded: str) -> None:
    """The rules alone would read the left knee from the first message again in every turn."""
    case, talk = FOLLOW_UPS["other knee"], Talk()
    async with (
        an_orchestrator(embedded, scripted_brain(talk.model), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        here = peer.conversation_id
        await talk.say(peer, case.first, case.first, case.before, answer=case.asked)
        await talk.say(peer, case.message, case.enriched, case.changes)
    async with (
        an_orchestrator(embedded, local_brain(), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator, conversation_id=here) as peer,
    ):
        for message in ("Since Monday", "no", "thanks"):
            await peer.ask(message)

        facts = await stored_facts(orchestrator, here)

    assert set(case.facts) <= set(as_facts(facts))
    assert not any("left" in fact.value for fact in facts if fact.kind == "location")


async def test_an_answer_that_is_made_again_takes_back_what_the_first_one_read(embedded: str) -> None:
    talk = Talk()
    async with (
        an_orchestrator(embedded, scripted_brain(talk.model), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await talk.say(peer, "I have it again", "User has a cough", (add("concern", "cough"),), "Since when?")
        (answer_id,) = [each.id for each in await messages(orchestrator, peer.conversation_id)][1:]
        talk.model.reading = a_reading("User has a cold", [add("concern", "cold")])
        await peer.send(11, mode="regenerate", targetId=answer_id)
        await peer.answer()
        changes = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))

        assert [change.op for change in changes] == ["add", "withdraw", "add"]
        assert [fact.value for fact in current_facts(changes)] == ["cold"]
        assert check(orchestrator.store) == []


async def test_a_fact_that_an_operator_and_the_message_change_in_the_same_turn_has_one_value(
    embedded: str,
) -> None:
    """The message is stored last, so its value holds; the operator's change stays in the table."""
    talk = Talk()
    async with (
        an_orchestrator(embedded, scripted_brain(talk.model), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        here = peer.conversation_id
        back = add("concern", "back pain"), add("severity", "8/10", about="back pain")
        await talk.say(peer, "My back hurts, 8 out of 10", "User has back pain", back)
        (severity,) = [fact for fact in await stored_facts(orchestrator, here) if fact.kind == "severity"]
        six = replace("f2", "severity", "6/10", about="back pain"), add("age", "34")
        talk.model.reading = a_reading("User rates it 6 and is 34", six)
        talk.model.answer, talk.model.hold = "One is this. Two is that. And", asyncio.Event()
        await peer.say("more like 6, and I am 34")
        await peer.until_type(SENTENCE)  # the message was read; its turn is not stored yet
        by_operator = {"severity": severity.id, "age": None}
        await orchestrator.store.write(lambda tx: change_by_hand(tx, here, by_operator))
        talk.model.hold.set()
        await peer.answer()

        facts = await stored_facts(orchestrator, here)
        changes = await orchestrator.store.read(lambda tx: tx.facts.changes(here))
        blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(here))
        shown = json.loads(blocks["active_session"].value or "")["facts"]
        problems = check(orchestrator.store)

    expected = {("concern", "back pain"), ("severity", "6/10"), ("age", "34")}
    assert {(fact.kind, fact.value) for fact in facts} == expected
    assert {(each["kind"], each["value"]) for each in shown} == expected
    assert [each.value for each in changes if each.decided_by is Decider.OPERATOR] == ["7", "7"]
    assert problems == []


def change_by_hand(tx: Transaction, conversation_id: str, targets: Mapping[str, str | None]) -> None:
    """Set facts to 7 as `anamnesis facts` does: replace the target, or add a fact if there is none."""
    row = tx.conversations.lock(conversation_id)
    here = Conversation(row.id, row.user_id, row.created_at)
    changes = [
        FactChange(
            id=tx.ids.new("fact_"),
            op=Op.REPLACE if target else Op.ADD,
            target=target,
            kind=kind,
            subject="person",
            about="back pain" if target else "",
            value="7",
            said_at=tx.now,
            decided_by=Decider.OPERATOR,
        )
        for kind, target in targets.items()
    ]
    with in_transaction(tx, conversation_id) as write:
        store = SqlBlockStore(tx.blocks)
        written = change_facts(Ledger(SystemClock()), store, here, changes, actor="operator")
        for receipt in written.receipts:
            write.say(of_block(receipt, tx.ids.new("trace_"), row.id))
