"""The check of a store finds every violation of its invariants."""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import msgpack
import pytest

from memory_blocks.facts.changes import Op
from memory_blocks.trace import digest
from orchestrator.store.checks import conversation_blocks, conversation_frames, queries, soundness, violations
from orchestrator.store.checks.invariants import check, check_all
from orchestrator.store.checks.violations import Violation
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.packing import CHAIN_RULES
from orchestrator.wire.messages import AssistantMessage, AssistantSentence, Body, StartAnswer
from tests.contract.store.breakable_store import BreakableStore, rules_ignored
from tests.support.builders import a_change, a_history, a_turn, some_blocks
from tests.support.stored_turns import PERSON, UNSCORED, FinishedTurn, a_trace, ask, send, take_turn

HISTORY = a_history([a_turn(number) for number in (1, 2, 3)]).text
NO_DIGEST = "0" * 64
NEVER = "2024-13-99T99:99:99.999Z"


@dataclass(frozen=True)
class World:
    """A sound store to break: a conversation of three turns, and another one that has only its blocks.

    Every change belongs to one transaction, which is rolled back.
    """

    tx: Transaction
    last: FinishedTurn
    other_id: str

    def sql(self, *statements: str) -> None:
        """Run statements without the rules of the database."""
        with rules_ignored(self.tx):
            for statement in statements:
                self.tx.unit.connection.execute(statement)

    def reframe(self, stanza_id: int, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the content of a stored frame."""
        (frame,) = (each for each in self.tx.frames.in_order(self.here) if each.stanza_id == stanza_id)
        envelope = msgpack.unpackb(frame.payload)
        change(envelope)
        mark = "?" if self.is_sqlite else "%s"
        self.tx.unit.connection.execute(
            f"UPDATE frames SET payload = {mark} WHERE stanza_id = {mark}",  # noqa: S608
            (msgpack.packb(envelope), stanza_id),
        )

    def say(self, *bodies: Body, turn: int = 3) -> None:
        """Store and number more frames."""
        send(self.tx, self.here, *bodies, turn=turn, epoch=self.last.lease.epoch)

    def trace(self, **changes: Any) -> None:
        """Store one more trace that is never sent."""
        memory_id = changes.pop("memory_id", self.last.traces[0].memory_id)
        self.tx.traces.add([a_trace(self.tx, self.last.question, memory_id, **changes)])

    def violations(self) -> list[Violation]:
        """The findings of the check."""
        return check_all(self.tx.unit, quiesced=True, mirrored=True).violations

    @property
    def here(self) -> str:
        return self.last.conversation_id

    @property
    def is_sqlite(self) -> bool:
        return self.tx.unit.dialect.name == "sqlite"

    @property
    def started(self) -> StartAnswer:
        return StartAnswer.model_validate(
            {"id": self.last.answer.id, "conversation_id": self.here, "previous_id": self.last.question.id}
        )

    @property
    def ended(self) -> AssistantSentence:
        sentence = {"id": "sent_x", "sequence": 1, "text": "", "is_final": True}
        return AssistantSentence.model_validate(
            {**sentence, "conversation_id": self.here, "previous_id": self.last.answer.id}
        )

    @property
    def whole(self) -> AssistantMessage:
        return AssistantMessage.model_validate(
            {
                "id": self.last.answer.id,
                "conversation_id": self.here,
                "previous_id": self.last.question.id,
                "content": "",
            }
        )


@dataclass(frozen=True)
class SoundStore:
    """A store after three turns of one conversation, with the blocks of another."""

    store: BreakableStore
    last: FinishedTurn
    other_id: str

    @contextmanager
    def changing(self) -> Iterator[World]:
        """A world that a test may change; all changes are rolled back."""
        with self.store.rolled_back() as tx:
            yield World(tx, self.last, self.other_id)


@pytest.fixture
def sound(loose_store: Store, database_url: str) -> Iterator[SoundStore]:
    conversation = loose_store.write_now(lambda tx: tx.conversations.create(PERSON))
    other = loose_store.write_now(lambda tx: tx.conversations.create(PERSON))
    loose_store.write_now(lambda tx: tx.blocks.memory_ids(other.id))
    turns = [loose_store.write_now(lambda tx: take_turn(tx, conversation.id)) for _ in range(3)]
    with closing(BreakableStore(loose_store, database_url)) as store:
        yield SoundStore(store, turns[-1], other.id)


def sql(*statements: str) -> Callable[[World], None]:
    return lambda world: world.sql(
        *(each.format(here=world.here, other=world.other_id) for each in statements)
    )


def archived(turn_id: int, text: str, text_digest: str, *, has_left: bool) -> Callable[[World], None]:
    return lambda world: world.tx.blocks.archive(
        world.here, turn_id, text, digest=text_digest, has_left=has_left
    )


def body(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda envelope: change(envelope["body"])


def stored_otherwise(world: World) -> None:
    """The stored answer differs from the answer in the frame."""
    world.say(world.whole.model_copy(update={"id": "msg_whole", "content": "One."}))
    world.tx.messages.append(world.here, "assistant", "Two.", id="msg_whole")


def heard(stage: str) -> Callable[[World], Any]:
    """Record that the guard found danger in the last question."""
    return lambda world: world.tx.safety.record(
        world.here,
        world.last.question.id,
        world.last.turn.number,
        stage=stage,
        kind="emergency",
        tier=3,
        certainty="certain",
        rules=("coronary.named",),
        alert=False,
    )


def answered_by_a_brain_in_danger(world: World) -> None:
    """A brain, not the safety texts, answers a question with danger."""
    heard("message")(world)
    world.say(world.whole)


def block(label: str, text: str, revision: int = 0, version: str = "1.0") -> Callable[[World], Any]:
    """The next revision of a block, with digests that agree."""
    return lambda world: world.tx.blocks.commit(
        world.here,
        label,
        text,
        expected=revision,
        digest=digest(text),
        actor="ledger",
        turn=None,
        schema_version=version,
    )


def fact_changes(*statements: str) -> Callable[[World], None]:
    """Two changes to facts, spoiled by these statements."""

    def spoil(world: World) -> None:
        world.tx.facts.add(world.here, [a_change("f1"), a_change("f2", Op.REPLACE, target="f1")])
        world.sql(*statements)

    return spoil


def facts_beside_a_block(world: World) -> None:
    """A change to facts, and a block that does not show it."""
    world.tx.facts.add(world.here, [a_change("f1")])
    block("active_session", some_blocks(0).active_session.text, version="1.2")(world)


# Stanza -1 acknowledges; -2 begins the first answer; then a trace, a sentence, a trace, the last sentence.
SPOILERS: list[tuple[str, str, Callable[[World], Any]]] = [
    ("I2", "a message of the person has no turn", sql("DELETE FROM turns WHERE number = 3")),
    (
        "I2",
        "a turn asks or answers with a message of the wrong role",
        sql("UPDATE turns SET user_message_id = answer_id, answer_id = user_message_id WHERE number = 3"),
    ),
    (
        "I2",
        "a turn has ended, but its answer has not, or ended differently",
        sql("UPDATE alicia_messages SET completion_status = 'failed' WHERE sequence_number = 6"),
    ),
    ("I3", "the turns are not numbered 1..n", sql("UPDATE turns SET number = 4 WHERE number = 3")),
    ("I4", "a turn is open", sql("UPDATE turns SET state = 'pending', ended_at = NULL WHERE number = 3")),
    (
        "I4",
        "an answer still streams",
        sql("UPDATE alicia_messages SET completion_status = 'streaming' WHERE sequence_number = 6"),
    ),
    (
        "I5",
        "a turn has ended, but its frames say otherwise",
        lambda world: world.reframe(-18, body(lambda said: said.update(isFinal=False))),
    ),
    (
        "I5",
        "a turn has ended, but its frames say otherwise",
        sql("UPDATE turns SET state = 'failed', error = 'internal' WHERE number = 3"),
    ),
    (
        "I5",
        "the number of ended answers is not the number of requests",
        lambda world: world.say(world.started, world.ended),
    ),
    ("I5", "an answer ends twice", lambda world: world.say(world.whole)),
    (
        "I5",
        "the state of an answer differs from its frames",
        sql("UPDATE alicia_messages SET completion_status = 'failed' WHERE sequence_number = 6"),
    ),
    ("I5", "an answer ends in no turn", sql("UPDATE frames SET turn = NULL WHERE stanza_id = -18")),
    ("I6", "the server's stanzas are not numbered -1..-n", sql("DELETE FROM frames WHERE stanza_id = -1")),
    ("I6", "the server's stanzas are not numbered -1..-n", sql("DELETE FROM frames WHERE stanza_id = -7")),
    (
        "I8",
        "a last stanza number is not that of the last frame",
        sql("UPDATE alicia_conversations SET last_client_stanza_id = 9"),
    ),
    (
        "I8",
        "a last stanza number is not that of the last frame",
        sql("UPDATE alicia_conversations SET last_server_stanza_id = -9"),
    ),
    ("I10", "a trace was not sent exactly once", lambda world: world.trace()),
    (
        "I10",
        "a trace was not sent exactly once",
        lambda world: world.trace(message_id=None, actor="orchestrator:paused"),
    ),
    (
        "I10",
        "a trace was not sent exactly once",
        lambda world: world.trace(message_id=None, actor="operator:ann", action="updated", **UNSCORED),
    ),
    (
        "I10",
        "a trace was not sent exactly once",
        lambda world: world.reframe(-5, body(lambda said: said.update(id=world.last.traces[0].id))),
    ),
    (
        "I10",
        "a trace was sent differently than stored",
        sql("UPDATE alicia_memory_used SET content = 'coffee'"),
    ),
    (
        "I10",
        "a trace was sent differently than stored",
        sql('UPDATE alicia_memory_used SET meta = \'{{"tags":["coffee"]}}\''),
    ),
    (
        "I10",
        "a trace was sent differently than stored",
        lambda world: world.reframe(-15, body(lambda said: said.update(metadata={"tags": ["coffee"]}))),
    ),
    (
        "I10",
        "a trace was sent that is not stored",
        sql("DELETE FROM alicia_memory_used WHERE action = 'stored'"),
    ),
    (
        "I9",
        "a revision of a block does not have exactly one trace",
        sql("DELETE FROM alicia_memory_used WHERE action = 'stored'"),
    ),
    (
        "I9",
        "a revision of a block does not have exactly one trace",
        sql("UPDATE alicia_memory_used SET action = 'retrieved' WHERE action = 'updated'"),
    ),
    (
        "I9",
        "a revision of a block does not have exactly one trace",
        lambda world: world.trace(
            memory_id=world.last.traces[1].memory_id,
            action="updated",
            meta={"revision": 3},
            **UNSCORED,
        ),
    ),
    ("I11", "archived and active turns are not 1..n", archived(1, "{}", digest("{}"), has_left=True)),
    ("I11", "a shortened turn is not in its block", archived(9, "{}", digest("{}"), has_left=False)),
    ("I13", "a block exceeds its limit", block("context_summary", "x" * 50_000)),
    ("I13", "a block exceeds its limit", block("conversation_history", HISTORY + " " * 32_000, 3)),
    ("I13", "a block does not match its schema", block("active_session", "garbage")),
    ("I13", "a block does not match its schema", block("memory_metadata", "{}")),
    ("I13", "a block does not match its schema", sql("UPDATE blocks SET value = 'no' WHERE revision = 3")),
    ("I13", "a block does not match its schema", block("context_summary", "My own words")),
    (
        "I15",
        "a trace names a memory of another person",
        sql("UPDATE alicia_memory SET user_id = 'bob' WHERE source_type IS NULL"),
    ),
    (
        "I15",
        "a trace names a block of another conversation",
        sql(
            "UPDATE alicia_memory_used SET memory_id = (SELECT memory_id FROM blocks"
            " WHERE conversation_id = '{other}' AND label = 'active_session') WHERE action = 'stored'"
        ),
    ),
    (
        "I15",
        "the memory of a block is not a memory block of its person",
        sql("UPDATE alicia_memory SET source_type = 'note' WHERE source_type = 'memory_block'"),
    ),
    (
        "I15",
        "a frame differs from its row",
        lambda world: world.reframe(-3, lambda envelope: envelope.update(conversationId=world.other_id)),
    ),
    (
        "I15",
        "a frame differs from its row",
        lambda world: world.reframe(1, lambda frame: frame.update(type=3)),
    ),
    (
        "I16",
        "an answer begins within another, or in no turn",
        lambda world: world.say(world.started, world.started),
    ),
    (
        "I16",
        "a trace is outside its answer",
        sql("UPDATE frames SET turn = 1 WHERE type = 14 AND turn = 3"),
    ),
    (
        "I16",
        "a sentence is outside its answer",
        lambda world: world.reframe(-16, body(lambda said: said.update(previousId="msg_other"))),
    ),
    ("I16", "a whole answer is within another", lambda world: world.say(world.started, world.whole)),
    ("I17", "an epoch goes back", sql("UPDATE frames SET epoch = 2 WHERE stanza_id = -2")),
    (
        "I17",
        "a frame has an epoch that no lease has had",
        sql("UPDATE frames SET epoch = 2 WHERE direction = 'server'"),
    ),
    ("I18", "an answer to a person in danger is not marked as a safety answer", heard("message")),
    ("I18", "a trace comes before the safety sentence", heard("message")),
    ("I18", "a sentence comes before the safety sentence", heard("enriched")),
    (
        "I18",
        "an answer to a person in danger is not the safety answer",
        answered_by_a_brain_in_danger,
    ),
    (
        "messages",
        "the messages are not numbered 1..n",
        sql("UPDATE alicia_messages SET sequence_number = 9 WHERE sequence_number = 6"),
    ),
    (
        "messages",
        "a message comes before the one it follows",
        sql(
            "UPDATE alicia_messages SET previous_id ="
            " (SELECT id FROM alicia_messages WHERE sequence_number = 5) WHERE sequence_number = 1"
        ),
    ),
    (
        "sentences",
        "the sentences are not numbered 1..n",
        sql("UPDATE alicia_sentences SET sentence_sequence_number = 9 WHERE sentence_sequence_number = 2"),
    ),
    (
        "sentences",
        "a message of the person has sentences",
        sql("UPDATE alicia_messages SET message_role = 'user' WHERE sequence_number = 2"),
    ),
    (
        "sentences",
        "the contents of an answer are not its sentences",
        sql("UPDATE alicia_sentences SET text = 'No. ' WHERE sentence_sequence_number = 1"),
    ),
    (
        "frames",
        "a frame cannot be read",
        sql("UPDATE frames SET payload = substr(payload, 2) WHERE stanza_id = -3"),
    ),
    (
        "frames",
        "a frame cannot be read",
        lambda world: world.reframe(-3, body(lambda said: said.update(id=["trace_1"]))),
    ),
    (
        "frames",
        "a frame cannot be read",
        lambda world: world.reframe(-3, body(lambda said: said.update(metadata="tea"))),
    ),
    (
        "frames",
        "a frame cannot be read",
        lambda world: world.reframe(1, lambda frame: frame.update(body=[])),
    ),
    (
        "frames",
        "a message differs from its frames",
        lambda world: world.reframe(1, body(lambda said: said.update(content="I am well"))),
    ),
    (
        "frames",
        "a message differs from its frames",
        sql("UPDATE alicia_messages SET contents = 'I am well' WHERE sequence_number = 5"),
    ),
    (
        "frames",
        "a message differs from its frames",
        sql("UPDATE alicia_messages SET contents = 'Good. ' WHERE sequence_number = 6"),
    ),
    (
        "frames",
        "a message differs from its frames",
        lambda world: world.reframe(-14, body(lambda said: said.update(previousId="msg_other"))),
    ),
    (
        "frames",
        "a message differs from its frames",
        stored_otherwise,
    ),
    (
        "frames",
        "an edited message is not stored as it was sent",
        lambda world: world.reframe(
            3,
            lambda frame: frame.update(
                type=11,
                body={
                    "conversationId": world.here,
                    "targetId": world.last.question.id,
                    "mode": "edit",
                    "newContent": "I am well",
                },
            ),
        ),
    ),
    (
        "frames",
        "a message was sent that is not stored",
        sql("DELETE FROM alicia_messages WHERE sequence_number = 5"),
    ),
    (
        "frames",
        "a sentence differs from its frame",
        lambda world: world.reframe(-16, body(lambda said: said.update(text="Good. "))),
    ),
    (
        "frames",
        "a sentence differs from its frame",
        sql("UPDATE alicia_sentences SET text = 'No. ' WHERE sentence_sequence_number = 1"),
    ),
    (
        "frames",
        "a sentence differs from its frame",
        sql("DELETE FROM alicia_sentences WHERE sentence_sequence_number = 2"),
    ),
    (
        "blocks",
        "a block is not its latest revision",
        sql("UPDATE blocks SET value = '{{}}' WHERE revision = 3"),
    ),
    (
        "blocks",
        "a block is not its latest revision",
        sql("UPDATE blocks SET revision = 2 WHERE revision = 3"),
    ),
    ("blocks", "a revision's digest is not that of its text", sql("UPDATE block_revisions SET base = NULL")),
    (
        "blocks",
        "a revision is missing before this one",
        sql("DELETE FROM block_revisions WHERE revision = 2"),
    ),
    (
        "blocks",
        "a revision does not follow the one before",
        sql(f"UPDATE block_revisions SET previous_digest = '{NO_DIGEST}' WHERE revision = 2"),  # noqa: S608
    ),
    (
        "blocks",
        "an archived turn's digest is not that of its text",
        archived(1, "{}", NO_DIGEST, has_left=False),
    ),
    (
        "blocks",
        "a revision's size is not that of its text",
        sql("UPDATE block_revisions SET size = size + 1 WHERE revision = 2"),
    ),
    (
        "I22",
        "the changes to facts are not 1..n",
        fact_changes("UPDATE fact_changes SET position = 3 WHERE id = 'f2'"),
    ),
    (
        "I22",
        "a change to a fact refers to a later one",
        fact_changes(
            "UPDATE fact_changes SET position = 3 WHERE id = 'f1'",
            "UPDATE fact_changes SET position = 1 WHERE id = 'f2'",
        ),
    ),
    (
        "I22",
        "the facts in a block are not those that follow from the changes",
        facts_beside_a_block,
    ),
    (
        "traces",
        "a trace has only one of its two scores",
        sql("UPDATE alicia_memory_used SET similarity_score = NULL WHERE confidence IS NOT NULL"),
    ),
    (
        "I12",
        "a block waits to be written to Letta",
        sql(
            "INSERT INTO letta_blocks SELECT conversation_id, label, 'block-1', digest, digest, updated_at"
            " FROM blocks WHERE revision = 3"
        ),
    ),
    (
        "I12",
        "a passage waits to be written to Letta",
        sql(
            "INSERT INTO letta_passages SELECT conversation_id, 1, 2, digest, NULL, updated_at, updated_at"
            " FROM blocks WHERE revision = 3"
        ),
    ),
    ("I21", "a row refers to a missing row", sql("DELETE FROM alicia_memory")),
    ("I21", "a row refers to a missing row", sql("UPDATE alicia_conversations SET id = id || 'x'")),
    ("I21", "a row cannot be read", sql("DROP TABLE letta_blocks")),
    ("I21", "a table, a column or a rule is missing", sql("DROP TABLE leases")),
    ("I21", "a table, a column or a rule is missing", sql("DROP INDEX uq_turns_one_at_a_time")),
    ("I21", "a table, a column or a rule is missing", sql("ALTER TABLE turns RENAME COLUMN error TO fault")),
    (
        "I21",
        "a value was not written by this program",
        lambda world: world.sql(
            f"UPDATE leases SET expires_at = '{NEVER if world.is_sqlite else 'infinity'}'",  # noqa: S608
        ),
    ),
    (
        "I21",
        "the file is damaged",
        sql("UPDATE alicia_messages SET message_role = 'robot' WHERE sequence_number = 1"),
    ),
    (
        "I21",
        "a rule is not in force",
        sql("ALTER TABLE turns ADD CONSTRAINT slack CHECK (number > 0) NOT VALID"),
    ),
    ("I21", "a rule is not in force", sql("ALTER TABLE blocks DISABLE TRIGGER ALL")),
]
ONLY_ON = {
    "the file is damaged": "sqlite",
    "a rule is not in force": "postgres",
}


def test_a_store_after_three_turns_has_no_violation(sound: SoundStore) -> None:
    with sound.changing() as world:
        assert world.violations() == []


def test_a_block_waiting_to_be_copied_to_letta_is_no_violation_without_letta(
    sound: SoundStore,
) -> None:
    with sound.changing() as world:
        world.sql(
            "INSERT INTO letta_blocks SELECT conversation_id, label, 'block-1', digest, digest, updated_at"
            " FROM blocks WHERE revision = 3"
        )

        assert check_all(world.tx.unit, quiesced=True).violations == []


def test_the_check_finds_every_kind_of_violation(sound: SoundStore, subtests: pytest.Subtests) -> None:
    database = "sqlite" if sound.store.is_sqlite else "postgres"
    for invariant, why, spoil in SPOILERS:
        if ONLY_ON.get(why, database) != database:
            continue
        with subtests.test(invariant=invariant, why=why), sound.changing() as world:
            spoil(world)

            found = world.violations()

            assert (invariant, why) in {(violation.invariant, violation.why) for violation in found}
            assert all(violation.ids for violation in found)


def test_every_violation_that_the_check_can_report_is_tried_above() -> None:
    modules = (conversation_blocks, conversation_frames, soundness, violations)
    source = "".join(map(inspect.getsource, modules))
    result = re.findall(r'Violation\(\s*"(\w+)", "([^"]+)"', source)
    asked = [(invariant, why) for invariant, why, _ in queries.queries(quiesced=True, mirrored=True)]

    chained = [("blocks", why) for why in CHAIN_RULES]
    assert {*result, *asked, *chained} == {(invariant, why) for invariant, why, _ in SPOILERS}


def test_open_turns_are_violations_only_if_no_server_runs(store: Store) -> None:
    conversation = store.write_now(lambda tx: tx.conversations.create(PERSON))
    store.write_now(lambda tx: ask(tx, conversation.id))

    assert check(store) == []
    assert [violation.invariant for violation in check(store, quiesced=True)] == ["I4"]


def test_a_violation_is_reported_by_ids_and_numbers(sound: SoundStore) -> None:
    with sound.changing() as world:
        world.sql("UPDATE turns SET number = 4 WHERE number = 3")

        result = [str(violation) for violation in world.violations()]

        assert f"I3: the turns are not numbered 1..n ({world.here})" in result
