"""Lists of the HTTP API: pages without texts, in order, complete, and read from an index."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.api.pages import (
    ConversationFilter,
    Position,
    RotationEntry,
    RotationFilter,
    SafetyFilter,
    TraceEntry,
    TraceFilter,
    _given_of_traces,
    _traces_page,
)
from orchestrator.store.repositories.api.replies import ABANDONED, KEPT
from orchestrator.store.repositories.turn.traces import STAFF_ROLES
from orchestrator.store.rows import STAFF_READ, ArchivedTurn, BlockRevision
from tests.support.builders import HandClock
from tests.support.stored_turns import PERSON, FinishedTurn, a_trace, take_turn

OTHER = "bob"
DIGEST = "0" * 64
HISTORY = "conversation_history"


def a_turn(store: Store, clock: HandClock, person: str = PERSON) -> FinishedTurn:
    conversation = store.write_now(lambda tx: tx.conversations.create(person))
    return another_turn(store, clock, conversation.id)


def another_turn(store: Store, clock: HandClock, conversation_id: str) -> FinishedTurn:
    clock.tick()
    return store.write_now(lambda tx: take_turn(tx, conversation_id))


def every_trace(store: Store, which: TraceFilter, person: str | None, limit: int) -> list[TraceEntry]:
    """All pages of a list of traces, one after the other."""
    found: list[TraceEntry] = []
    after: Position | None = None
    while True:

        def read(tx: Transaction, after: Position | None = after) -> list[TraceEntry]:
            if person is None:
                return tx.pages.traces(which, after, limit)
            return tx.pages.traces_of_person(person, which, after, limit)

        page = store.read_now(read)
        found += page
        if len(page) < limit:
            return found
        after = page[-1].position


def newest_first(turns: list[FinishedTurn]) -> list[str]:
    traces = [trace for turn in turns for trace in turn.traces]
    return [each.id for each in sorted(traces, key=lambda trace: (trace.created_at, trace.id), reverse=True)]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_the_pages_of_traces_follow_each_other_without_a_gap(
    store: Store, clock: HandClock, limit: int
) -> None:
    turns = [a_turn(store, clock), a_turn(store, clock, OTHER), a_turn(store, clock)]
    turns.append(another_turn(store, clock, turns[0].conversation_id))

    of_all = every_trace(store, TraceFilter(), None, limit)
    of_one = every_trace(store, TraceFilter(conversation_id=turns[0].conversation_id), None, limit)
    of_person = every_trace(store, TraceFilter(), PERSON, limit)

    assert [each.id for each in of_all] == newest_first(turns)
    assert [each.id for each in of_one] == newest_first([turns[0], turns[3]])
    assert [each.id for each in of_person] == newest_first([turns[0], turns[2], turns[3]])
    assert not hasattr(of_all[0], "content")


@pytest.mark.parametrize(
    ("which", "actions"),
    [
        (TraceFilter(action="stored"), ["stored"]),
        (TraceFilter(memory_type="profile"), ["retrieved"]),
        (TraceFilter(label="conversation_history"), ["stored"]),
        (TraceFilter(label="active_session"), []),
        (TraceFilter(actor="recall"), ["stored", "retrieved"]),
        (TraceFilter(actor="rec_ll"), []),
        (TraceFilter(actor="operator"), ["retrieved"]),
        (TraceFilter(actor="operator:eve"), ["retrieved"]),
        (TraceFilter(actor="operator:ev"), []),
        (TraceFilter(by_staff=True), ["retrieved"]),
    ],
)
def test_traces_are_filtered(store: Store, clock: HandClock, which: TraceFilter, actions: list[str]) -> None:
    turn = a_turn(store, clock)

    def look(tx: Transaction) -> None:
        unscored = {"confidence": None, "similarity_score": None, "position_in_results": None}
        looked = {"message_id": None, "actor": "operator:eve", "memory_type": "memory_block", **unscored}
        tx.traces.add([a_trace(tx, turn.question, turn.traces[0].memory_id, **looked)])

    store.write_now(look)

    found = every_trace(store, which, None, 100)
    of_person = every_trace(store, which, PERSON, 100)

    assert sorted(each.action for each in found) == sorted(actions)
    assert found == of_person


def test_traces_are_filtered_by_time_and_message(store: Store, clock: HandClock) -> None:
    first = a_turn(store, clock)
    second = another_turn(store, clock, first.conversation_id)
    between = second.traces[0].created_at

    earlier = every_trace(store, TraceFilter(until=between), None, 100)
    later = every_trace(store, TraceFilter(since=between), None, 100)
    of_message = every_trace(store, TraceFilter(message_id=second.question.id), None, 100)
    live = store.read_now(lambda tx: tx.pages.traces_since(TraceFilter(since=between), 100))

    assert [each.id for each in earlier] == newest_first([first])
    assert [each.id for each in later] == [each.id for each in of_message] == newest_first([second])
    assert live == later[::-1]


def test_conversations_are_listed_by_activity_and_found_by_what_was_said(
    store: Store, clock: HandClock
) -> None:
    first, second = a_turn(store, clock), a_turn(store, clock)
    a_turn(store, clock, OTHER)
    clock.tick()
    store.write_now(lambda tx: tx.conversations.update(first.conversation_id, title="100% Tea_time"))

    def found(**which: Any) -> list[str]:
        listed = store.read_now(
            lambda tx: tx.pages.conversations(ConversationFilter(user_id=PERSON, **which), None, 10)
        )
        return [each.id for each in listed]

    newest, oldest = first.conversation_id, second.conversation_id
    assert found() == [newest, oldest]
    assert found(search="0% tea_T") == [newest]
    assert found(search="HEADACHE") == [newest, oldest]
    assert found(search="0%tea") == found(search="teaXtime") == []
    assert found(status="archived") == []
    (page,) = store.read_now(lambda tx: tx.pages.conversations(ConversationFilter(user_id=PERSON), None, 1))
    (rest,) = store.read_now(
        lambda tx: tx.pages.conversations(ConversationFilter(user_id=PERSON), page.position, 5)
    )
    assert (page.id, page.turns, rest.id) == (newest, 1, oldest)


def test_messages_revisions_and_tool_calls_are_listed_without_texts(store: Store, clock: HandClock) -> None:
    turn = a_turn(store, clock)
    here = turn.conversation_id
    store.write_now(lambda tx: tx.tools.request(here, turn.question.id, "clock", {"zone": "UTC"}))

    messages = store.read_now(lambda tx: tx.pages.messages(here, 0, 10))
    rest = store.read_now(lambda tx: tx.pages.messages(here, 1, 10))
    revisions = store.read_now(lambda tx: tx.pages.revisions(here, "conversation_history", 2**31 - 1, 10))
    (tool,) = store.read_now(lambda tx: tx.pages.tool_uses(here, None, 10))

    assert [(each.id, each.role) for each in messages] == [
        (turn.question.id, "user"),
        (turn.answer.id, "assistant"),
    ]
    assert messages[0].characters == len(turn.question.contents)
    assert rest == messages[1:]
    assert [(each.revision, each.turn, each.actor) for each in revisions] == [(1, 1, "ledger")]
    assert (tool.tool_name, tool.status, tool.completed_at) == ("clock", "pending", None)
    assert store.read_now(lambda tx: tx.pages.tool_uses(here, tool.position, 10)) == []


def test_safety_events_are_listed_by_conversation_person_and_for_all(
    loose_store: Store, clock: HandClock
) -> None:
    store = loose_store
    turns = [a_turn(store, clock), a_turn(store, clock, OTHER)]
    for turn in turns:

        def record(tx: Transaction, turn: FinishedTurn = turn) -> None:
            tx.safety.record(
                turn.conversation_id,
                turn.question.id,
                1,
                stage="message",
                kind="emergency",
                tier=3,
                certainty="certain",
                rules=["stroke.face"],
                alert=False,
            )

        clock.tick()
        store.write_now(record)

    def found(conversation_id: str | None, user_id: str | None) -> list[str]:
        listed = store.read_now(
            lambda tx: tx.pages.safety_events(
                SafetyFilter(conversation_id=conversation_id), None, 10, user_id=user_id
            )
        )
        assert all(each.rules == ("stroke.face",) for each in listed)
        return [each.conversation_id for each in listed]

    mine, others = (turn.conversation_id for turn in turns)
    assert found(None, None) == [others, mine]
    assert found(mine, None) == found(None, PERSON) == [mine]


def test_an_archived_turn_is_listed_with_its_size(loose_store: Store, clock: HandClock) -> None:
    turn = a_turn(loose_store, clock)
    here = turn.conversation_id
    loose_store.write_now(lambda tx: tx.blocks.archive(here, 1, "{}", digest=DIGEST))
    loose_store.write_now(lambda tx: tx.blocks.archive(here, 2, "{}", digest=DIGEST, has_left=False))

    (entry,) = loose_store.read_now(lambda tx: tx.pages.archived_turns(here, 0, 10))

    assert (entry.turn_id, entry.size, entry.digest) == (1, 2, DIGEST)
    assert loose_store.read_now(lambda tx: tx.pages.archived_turns(here, 1, 10)) == []


def test_each_of_many_rotations_names_the_turn_that_wrote_the_history_then(
    loose_store: Store, clock: HandClock
) -> None:
    here, many = a_turn(loose_store, clock).conversation_id, 250
    latest = loose_store.read_now(
        lambda tx: tx.unit.find(BlockRevision, "revision", conversation_id=here, label=HISTORY)
    )[-1]

    def rotate_often(tx: Transaction) -> None:
        for number in range(1, many + 1):
            at = tx.now + timedelta(minutes=number)
            wrote = at + timedelta(milliseconds=5)
            tx.unit.insert(ArchivedTurn(here, number, "{}", DIGEST, True, at))
            revision, turn = latest.revision + number, number + 20
            tx.unit.insert(
                replace(latest, revision=revision, previous_digest=DIGEST, turn=turn, created_at=wrote)
            )

    loose_store.write_now(rotate_often)
    found: list[RotationEntry] = []
    while True:
        after = found[-1].position if found else None
        page = loose_store.read_now(partial(_rotations, RotationFilter(user_id=PERSON), after))
        found += page
        if not page:
            break
    of_other = loose_store.read_now(partial(_rotations, RotationFilter(user_id=OTHER), None))
    last_two = RotationFilter(conversation_id=here, since=found[1].created_at)

    assert [each.first for each in found] == list(range(many, 0, -1))
    assert all((each.last, each.count, each.turn) == (each.first, 1, each.first + 20) for each in found)
    assert of_other == []
    assert loose_store.read_now(partial(_rotations, last_two, None)) == found[:2]


def _rotations(which: RotationFilter, after: Position | None, tx: Transaction) -> list[RotationEntry]:
    return tx.pages.rotations(which, after, 100)


@pytest.mark.parametrize(
    ("which", "index"),
    [
        (TraceFilter(), "ix_alicia_memory_used_time"),
        (TraceFilter(conversation_id="c"), "ix_alicia_memory_used_in_conversation"),
        (TraceFilter(conversation_id="c", action="stored"), "ix_alicia_memory_used_in_conversation"),
        (
            TraceFilter(conversation_id="c", label="l", memory_type="t"),
            "ix_alicia_memory_used_in_conversation",
        ),
        (TraceFilter(action="stored"), "ix_alicia_memory_used_action"),
        (TraceFilter(memory_type="fact"), "ix_alicia_memory_used_type"),
        (TraceFilter(label="active_session"), "ix_alicia_memory_used_label"),
        (TraceFilter(actor="operator"), "ix_alicia_memory_used_role"),
        (TraceFilter(actor="operator:eve"), "ix_alicia_memory_used_actor"),
        (TraceFilter(by_staff=True), "ix_alicia_memory_used_staff"),
    ],
)
def test_a_page_of_traces_is_read_from_an_index_without_sorting(
    sqlite_template: Path, which: TraceFilter, index: str
) -> None:
    """The plan of SQLite, which does not depend on what is in the table."""
    statement = _traces_page(tuple(sorted(_given_of_traces(which))), True)._for(
        SQLiteDialect_pysqlite(paramstyle="qmark")
    )
    with closing(sqlite3.connect(sqlite_template)) as connection:
        given = [None] * statement.sql.count("?")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", given)]

    assert index in plan[0]
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in plan)


def test_the_index_of_the_reads_of_staff_has_all_their_roles() -> None:
    assert all(f"'{role}:'" in STAFF_READ for role in STAFF_ROLES)


# --- API keys and kept replies -----------------------------------------------------------------------------


def test_an_api_key_is_stored_and_revoked_once(store: Store, clock: HandClock) -> None:
    made = store.write_now(
        lambda tx: tx.api_keys.add(
            "key_1",
            DIGEST,
            name="nightly report",
            user_id=PERSON,
            roles=("analyst",),
            scopes=("traces:read",),
            reason=None,
            created_by="operator:root",
            lasts=timedelta(days=30),
        )
    )
    assert store.read_now(lambda tx: tx.api_keys.get("key_1")) == made
    assert made.expires_at == clock.now() + timedelta(days=30)

    at = clock.tick()

    assert store.write_now(lambda tx: tx.api_keys.revoke("key_1")) is True
    assert store.write_now(lambda tx: tx.api_keys.revoke("key_1")) is False
    (revoked,) = store.read_now(lambda tx: tx.api_keys.all())
    assert revoked.revoked_at == at


def test_a_reply_is_kept_for_a_day_and_an_abandoned_request_may_be_repeated(
    store: Store, clock: HandClock
) -> None:
    def begin() -> Any:
        return store.write_now(lambda tx: tx.replies.begin(PERSON, "k", DIGEST))

    assert begin() is None
    running = begin()
    assert (running.status, running.fingerprint) == (None, DIGEST)
    clock.tick(ABANDONED.total_seconds())
    assert begin() is None
    store.write_now(lambda tx: tx.replies.finish(PERSON, "k", 201, '{"id":"c"}'))
    clock.tick(ABANDONED.total_seconds())
    kept = begin()
    assert (kept.status, kept.body) == (201, '{"id":"c"}')
    assert store.write_now(lambda tx: tx.replies.begin(OTHER, "k", DIGEST)) is None
    clock.tick(KEPT.total_seconds() + 1)
    assert begin() is None
    store.write_now(lambda tx: tx.replies.abandon(PERSON, "k"))
    assert begin() is None
