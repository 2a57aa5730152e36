"""What a model reads from a message holds in that turn and in every later one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from agents.models.retries import RetryPolicy
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
from tests.support.brains import chat_brain
from tests.support.models import minilm
from tests.support.orchestrators import an_orchestrator, local_brain
from tests.support.protocol_client import SENTENCE, Peer, conversing
from tools.model_endpoint import ModelEndpoint, Step

ATTEMPTS: Final = RetryPolicy().attempts
"""How often a model is asked that fails each time."""

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
}


def a_reading(enriched: str, changes: tuple[Mapping[str, Any], ...] = ()) -> Step:
    reading = {
        "enriched_message": enriched,
        "previous_context": "As told",
        "relevant_history": [],
        "topic": "evaluation",
        "trigger": "answer",
        "phase": "history_taking",
        "acts": [],
        "changes": list(changes),
        "intent": "GENERAL_HEALTH",
        "confidence": 0.9,
        "reasoning": "As scripted",
    }
    return Step(text=json.dumps(reading))


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
    """A conversation with a scripted model. Every message has a word of its own, by which it is scripted."""

    def __init__(self, endpoint: ModelEndpoint, word: str) -> None:
        self._endpoint, self._word, self._number = endpoint, word, 0

    async def say(self, peer: Peer, message: str, *readings: Step, answer: str = "Noted.") -> None:
        """Say the message. The model reads it by these steps: one for each time that it is asked."""
        self._number += 1
        word = f"{self._word}{self._number}x"
        self._endpoint.script(word, *readings, Step(text=answer))
        frames = await peer.ask(f"{message} {word}")
        assert frames[-1].code is None
        assert ("model.trouble" in frames[-1].meta) == (readings[-1].status != 200)


@pytest.mark.parametrize("name", FOLLOW_UPS)
async def test_a_right_reading_lasts(
    embedded: str, model_endpoint: ModelEndpoint, word: str, name: str
) -> None:
    case, mirror, talk = FOLLOW_UPS[name], ScriptedMirror(), Talk(model_endpoint, word)
    async with chat_brain(model_endpoint) as brain:
        async with (
            an_orchestrator(embedded, brain, embedder=minilm(), mirror=mirror).open() as orchestrator,
            conversing(orchestrator) as peer,
        ):
            here = peer.conversation_id
            await talk.say(peer, case.first, a_reading(case.first, case.before), answer=case.asked)
            await talk.say(peer, case.message, a_reading(case.enriched, case.changes))
            assert as_facts(await stored_facts(orchestrator, here)) == case.facts
            blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(here))
            assert case.enriched in (blocks["conversation_history"].value or "")

            for number in range(4):
                await talk.say(peer, "Thank you", a_reading(f"User says thanks ({number})"))
            await orchestrator.store.write(lambda tx: rotate(tx, here))
            await talk.say(peer, "And now?", a_reading("User asks what comes next"))
            assert as_facts(await stored_facts(orchestrator, here)) == case.facts

        async with (
            an_orchestrator(embedded, brain, embedder=minilm(), mirror=mirror).open() as orchestrator,
            conversing(orchestrator, conversation_id=here) as peer,
        ):
            nuts = '"facts":[{"kind":"allergies","value":"nuts","turn":1,"stable":true},'
            mirror.replace(here, Label.ACTIVE_SESSION, '"facts":[', nuts, actor="letta:somebody")
            await talk.say(peer, "I am back", *[Step(status=503)] * ATTEMPTS)  # read locally
            await talk.say(peer, "Thank you", a_reading("User says thanks again"))

            facts = await stored_facts(orchestrator, here)
            nuts_too = {*case.facts, ("person", "allergies", "", "nuts")}
            kinds = {kind for _, kind, _, _ in nuts_too}
            assert {each for each in as_facts(facts) if each[1] in kinds} == nuts_too
            assert {fact.decided_by for fact in facts if fact.kind in kinds} == {"model", "operator"}
            blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(here))
            shown = json.loads(blocks["active_session"].value or "")["facts"]
            assert {(each["kind"], each["value"]) for each in shown} == {
                each[1::2] for each in as_facts(facts)
            }
            assert check(orchestrator.store) == []


async def test_the_local_reading_of_an_old_message_does_not_come_back(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    """The rules alone would read the left knee from the first message again in every turn."""
    case, talk = FOLLOW_UPS["other knee"], Talk(model_endpoint, word)
    async with (
        chat_brain(model_endpoint) as brain,
        an_orchestrator(embedded, brain, embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        here = peer.conversation_id
        await talk.say(peer, case.first, a_reading(case.first, case.before), answer=case.asked)
        await talk.say(peer, case.message, a_reading(case.enriched, case.changes))
    async with (
        an_orchestrator(embedded, local_brain(), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator, conversation_id=here) as peer,
    ):
        for message in ("Since Monday", "no", "thanks"):
            await peer.ask(message)

        facts = await stored_facts(orchestrator, here)

    assert set(case.facts) <= set(as_facts(facts))
    assert not any("left" in fact.value for fact in facts if fact.kind == "location")


async def test_an_answer_that_is_made_again_takes_back_what_the_first_one_read(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    model_endpoint.script(
        word,
        a_reading("User has a cough", (add("concern", "cough"),)),
        Step(text="Since when?"),
        a_reading("User has a cold", (add("concern", "cold"),)),
        Step(text="How long?"),
    )
    async with (
        chat_brain(model_endpoint) as brain,
        an_orchestrator(embedded, brain, embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask(f"I have it again {word}")
        answer_id = frames[-1].body["previousId"]
        await peer.send(11, mode="regenerate", targetId=answer_id)
        await peer.answer()
        changes = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))

        assert [change.op for change in changes] == ["add", "withdraw", "add"]
        assert [fact.value for fact in current_facts(changes)] == ["cold"]
        assert check(orchestrator.store) == []


async def test_a_fact_that_an_operator_and_the_message_change_in_the_same_turn_has_one_value(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    """The message is stored last, so its value holds; the operator's change stays in the table."""
    talk = Talk(model_endpoint, word)
    async with (
        chat_brain(model_endpoint) as brain,
        an_orchestrator(embedded, brain, embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        here = peer.conversation_id
        back = add("concern", "back pain"), add("severity", "8/10", about="back pain")
        await talk.say(peer, "My back hurts, 8 out of 10", a_reading("User has back pain", back))
        (severity,) = [fact for fact in await stored_facts(orchestrator, here) if fact.kind == "severity"]
        model_endpoint.script(
            f"{word}slow",
            a_reading(
                "User rates it 6 and is 34",
                (replace("f2", "severity", "6/10", about="back pain"), add("age", "34")),
            ),
            Step(text="One. " + "Two. " * 20, drip=0.05),
        )
        await peer.say(f"more like 6, and I am 34 {word}slow")
        await peer.until_type(SENTENCE)  # the message was read; its turn is not stored yet
        by_operator = {"severity": severity.id, "age": None}
        await orchestrator.store.write(lambda tx: change_by_hand(tx, here, by_operator))
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
