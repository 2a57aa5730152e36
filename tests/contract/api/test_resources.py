"""What each resource of the API shows, what it changes, and which trace a look leaves."""

import asyncio
import csv
import io
import json
import shutil
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow import parquet

from agents.models.scripted import ScriptedBrain
from agents.values import FactReading
from memory_blocks.facts.changes import Decider, Op
from memory_blocks.models import Label
from orchestrator.api.access.roles import Role
from orchestrator.api.answers import position_cursor
from orchestrator.api.routes.memory import exports, traces
from orchestrator.api.server import listening
from orchestrator.inspection.looks import Look, trace_text
from orchestrator.ops.clock import as_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import Position, RunFilter
from orchestrator.store.rows import Trace
from tests.contract.api.serving import Site, a_site, a_talk
from tests.support.memory.memories import import_texts
from tests.support.orchestrators import ANN, BOB, everything
from tests.support.stores import on_both_databases

SAID = "I am having a headache"
HERE = "/v1/conversations"


def problem(answer: httpx.Response) -> tuple[int, str]:
    """The status and the name of an error, which must be a problem with all its members."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert {"type", "title", "status", "detail", "code", "recoverable"} <= set(found)
    assert found["status"] == answer.status_code
    return answer.status_code, found["type"].removeprefix("/problems/")


async def traces_by(site: Site, actor: str) -> list[Trace]:
    """The stored traces of an actor."""
    return await site.orchestrator.store.read(lambda tx: tx.unit.find(Trace, "created_at", actor=actor))


@on_both_databases
async def test_empty_conversations_do_not_fill_a_list_of_those_that_began(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        for _ in range(5):
            await site.http.post(HERE, headers=site.person())

        page = await site.get(HERE, limit=3, begun="true")
        every = await site.get(HERE, limit=3)

        assert [each["id"] for each in page["items"]] == [peer.conversation_id]
        assert page["next"] is None
        assert {each["turns"] for each in every["items"]} == {0}


@on_both_databases
async def test_notes_are_shown_in_pages_and_to_staff_with_a_trace(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        here = peer.conversation_id
        message = (await site.get(f"{HERE}/{here}/messages"))["items"][0]["id"]

        def note(tx: Transaction) -> None:
            for text in ("one", "two", "three"):
                tx.notes.add(here, text, created_by=ANN, message_id=message)

        await site.orchestrator.store.write(note)
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")

        page = await site.get(f"{HERE}/{here}/notes", limit=2)
        rest = await site.get(f"{HERE}/{here}/notes", limit=2, cursor=page["next"])
        await site.get(f"{HERE}/{here}/notes", eve)
        of_bob = await site.http.get(f"{HERE}/{here}/notes", headers=site.person(BOB))

        notes = page["items"] + rest["items"]
        assert {each["content"] for each in notes} == {"one", "two", "three"}
        assert ({each["messageId"] for each in notes}, rest["next"]) == ({message}, None)
        assert [each.content for each in await traces_by(site, "operator:eve")] == ["read 3 notes"]
        assert problem(of_bob) == (404, "not_found")


# --- conversations -----------------------------------------------------------------------------------------


@on_both_databases
async def test_a_conversation_is_started_listed_renamed_and_archived(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site:
        mine, bobs = site.person(), site.person(BOB)
        first = (await site.http.post(HERE, headers=mine)).json()["id"]
        second = (await site.http.post(HERE, headers=mine, json={"title": "My knee"})).json()
        await site.http.post(HERE, headers=bobs)

        renamed = await site.http.patch(f"{HERE}/{first}", headers=mine, json={"title": "Headache"})
        archived = await site.http.patch(f"{HERE}/{first}", headers=mine, json={"status": "archived"})

        assert second["room"] == second["id"]
        assert (renamed.json()["title"], renamed.json()["status"]) == ("Headache", "active")
        assert archived.json()["status"] == "archived"
        listed = (await site.get(HERE))["items"]
        assert [each["title"] for each in listed] == ["Headache", "My knee"]
        assert [each["id"] for each in (await site.get(HERE, status="archived"))["items"]] == [first]
        assert [each["id"] for each in (await site.get(HERE, search="KNEE"))["items"]] == [second["id"]]
        assert (await site.get(f"{HERE}/{first}"))["turns"] == 0
        page = await site.get(HERE, limit=1)
        rest = await site.get(HERE, limit=1, cursor=page["next"])
        assert [page["items"][0]["id"], rest["items"][0]["id"], rest["next"]] == [first, second["id"], None]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "invalid_field"),
        ({"title": ""}, "invalid_field"),
        ({"title": "x" * 201}, "invalid_field"),
        ({"status": "deleted"}, "invalid_field"),
        ({"title": "a\0b"}, "nul_in_text"),
        ({"owner": "bob"}, "invalid_field"),
    ],
)
async def test_a_change_that_is_not_allowed_changes_nothing(
    embedded: str, tmp_path: Path, body: dict[str, str], name: str
) -> None:
    async with a_site(embedded, tmp_path) as site:
        made = (await site.http.post(HERE, headers=site.person())).json()["id"]

        refused = await site.http.patch(f"{HERE}/{made}", headers=site.person(), json=body)

        assert problem(refused) == (422, name)
        assert (await site.get(f"{HERE}/{made}"))["title"] is None


@pytest.mark.parametrize("path", ["", "/messages", "/blocks", "/blocks/active_session", "/traces"])
async def test_the_conversation_of_another_person_seems_not_to_exist(
    embedded: str, tmp_path: Path, path: str
) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer:
        foreign = await site.http.get(f"{HERE}/{peer.conversation_id}{path}", headers=site.person(BOB))
        unknown = await site.http.get(f"{HERE}/conv_nobodys{path}", headers=site.person(BOB))

        assert foreign.text == unknown.text
        assert problem(foreign) == (404, "not_found")


async def test_the_items_of_another_person_seem_not_to_exist(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer:
        message = (await site.get(f"{HERE}/{peer.conversation_id}/messages"))["items"][0]["id"]
        trace = (await site.get("/v1/traces"))["items"][0]["id"]

        for kind, id in (("messages", message), ("traces", trace)):
            foreign = await site.http.get(f"/v1/{kind}/{id}", headers=site.person(BOB))
            unknown = await site.http.get(f"/v1/{kind}/nobodys", headers=site.person(BOB))

            assert foreign.text == unknown.text
            assert problem(foreign) == (404, "item_not_found")


async def test_a_conversation_is_named_after_its_first_concern_unless_it_has_a_title(
    embedded: str, tmp_path: Path
) -> None:
    def concern(value: str) -> tuple[FactReading, ...]:
        reading = FactReading(
            op=Op.ADD, kind="concern", subject="person", value=value, decided_by=Decider.LOCAL
        )
        return (reading,)

    brain = ScriptedBrain(changes=[(), concern("headache"), concern("a sore knee")])
    async with a_site(embedded, tmp_path, brain) as site, a_talk(site, "Hello") as peer:
        path = f"{HERE}/{peer.conversation_id}"
        before = (await site.get(path))["title"]
        await peer.ask(SAID)
        named = (await site.get(path))["title"]
        await peer.ask("My knee hurts, too")

        assert (before, named, (await site.get(path))["title"]) == (None, "Headache", "Headache")


# --- idempotency -------------------------------------------------------------------------------------------


@on_both_databases
async def test_a_repeated_request_gets_the_first_answer_and_changes_nothing(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site:
        key = {**site.person(), "Idempotency-Key": "one"}

        first = await site.http.post(HERE, headers=key, json={"title": "Knee"})
        again = await site.http.post(HERE, headers=key, json={"title": "Knee"})
        other = await site.http.post(HERE, headers=key, json={"title": "Back"})
        of_bob = await site.http.post(
            HERE, headers={**site.person(BOB), "Idempotency-Key": "one"}, json={"title": "Knee"}
        )

        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (
            False,
            "true",
        )
        assert problem(other) == (409, "idempotency_key_reused")
        assert of_bob.json()["id"] != first.json()["id"]
        assert len((await site.get(HERE))["items"]) == 1


async def test_a_request_that_runs_is_not_carried_out_twice_and_one_that_failed_may_be_repeated(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path) as site:
        key = {**site.person(), "Idempotency-Key": "one"}
        failed = await site.http.patch(f"{HERE}/nobodys", headers=key, json={"title": "Knee"})
        again = await site.http.patch(f"{HERE}/nobodys", headers=key, json={"title": "Knee"})
        same = sha256(f"POST {HERE}?\n".encode()).hexdigest()
        await site.orchestrator.store.write(lambda tx: tx.replies.begin(ANN, "two", same))
        busy = await site.http.post(HERE, headers={**site.person(), "Idempotency-Key": "two"})

        assert problem(failed) == problem(again) == (404, "not_found")
        assert problem(busy) == (409, "request_running")
        assert (await site.get(HERE))["items"] == []


# --- messages and explanations -----------------------------------------------------------------------------


@on_both_databases
async def test_messages_are_listed_without_texts_and_shown_one_by_one(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8") as peer:
        listed = await site.get(f"{HERE}/{peer.conversation_id}/messages", limit=3)
        rest = await site.get(f"{HERE}/{peer.conversation_id}/messages", cursor=listed["next"])
        first = await site.get(f"/v1/messages/{listed['items'][0]['id']}")

        assert [each["role"] for each in listed["items"] + rest["items"]] == ["user", "assistant"] * 2
        assert listed["items"][0]["characters"] == len(SAID)
        assert SAID not in json.dumps(listed)
        assert (first["content"], first["conversationId"]) == (SAID, peer.conversation_id)


@pytest.mark.requirement("003-162", "003-164")
@on_both_databases
async def test_an_answer_is_explained_by_what_is_stored(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8") as peer:
        messages = (await site.get(f"{HERE}/{peer.conversation_id}/messages"))["items"]
        why = await site.get(f"/v1/messages/{messages[2]['id']}/explanation")
        by_answer = await site.get(f"/v1/messages/{messages[3]['id']}/explanation")

        assert (why["turn"], why["state"], why["message"]["content"]) == (
            2,
            "completed",
            "8",
        )
        assert why["answer"]["content"].startswith("I understand.")
        understood = why["understood"]
        assert understood["enrichedMessage"] == 'User says: "8"'
        assert understood["previousContext"] == "A turn came before"
        assert (understood["intent"], understood["confidence"]) == ("GENERAL_HEALTH", 0.9)
        assert (understood["reasoning"], understood["specialist"]) == ("As scripted", "GENERAL_HEALTH")
        read = {each["label"]: each["revision"] for each in why["blocks"] if each["action"] == "retrieved"}
        written = {each["label"]: each["revision"] for each in why["blocks"] if each["action"] == "updated"}
        assert read == dict.fromkeys(Label, 1)
        assert written["conversation_history"] == understood["revision"] == 2
        steps = [step["name"] for step in why["steps"]]
        assert steps[:2] == ["received", "started"]
        assert {"memory_read", "first_sentence", "memory_written", "ended"} <= set(steps)
        assert all(step["milliseconds"] >= 0 for step in why["steps"])
        assert by_answer == {**why, "blocks": by_answer["blocks"]}


@on_both_databases
async def test_an_explanation_has_the_prompt_the_times_and_the_neighbours(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8", "yes") as peer:
        messages = (await site.get(f"{HERE}/{peer.conversation_id}/messages"))["items"]
        why = await site.get(f"/v1/messages/{messages[2]['id']}/explanation")
        first = await site.get(f"/v1/messages/{messages[0]['id']}/explanation")

        names = [each["name"] for each in why["stations"]]
        assert names == ["read", "understand", "guard", "embed", "guard", "recall", "pick", "answer", "write"]
        starts = [each["start"] for each in why["stations"]]
        assert starts == sorted(starts)
        assert all(each["milliseconds"] >= 0 for each in why["stations"])
        assert (why["prompt"], len(why["promptRevision"])) == ("general_health", 12)
        assert (why["previousMessageId"], why["nextMessageId"]) == (
            messages[0]["id"],
            messages[4]["id"],
        )
        assert first["previousMessageId"] is None
        assert why["modelRequests"] == []


async def test_an_explanation_shows_what_models_were_sent_and_what_changed_since_the_turn_before(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID, "8") as peer:
        here = peer.conversation_id
        first, _, second, _ = (await site.get(f"{HERE}/{here}/messages"))["items"]
        sent = [json.dumps({"messages": [{"content": f"Rules.\nThey say: {each}"}]}) for each in (SAID, "8")]

        def keep(tx: Transaction) -> None:
            for message, request in ((first, sent[0]), (second, sent[1])):
                digest = sha256(request.encode()).hexdigest()
                id = tx.model_calls.add(
                    here, message["id"], 1, role="SLEEP", model="m", digest=digest, request=request
                )
                tx.model_calls.end(id, outcome="answered", prompt_tokens=7, completion_tokens=2)

        await site.orchestrator.store.write(keep)
        (before,) = (await site.get(f"/v1/messages/{first['id']}/explanation"))["modelRequests"]
        (now,) = (await site.get(f"/v1/messages/{second['id']}/explanation"))["modelRequests"]

        assert (now["request"], now["role"], now["promptTokens"]) == (sent[1], "SLEEP", 7)
        assert 'They say: 8"' in now["readable"].split("\n")[-4]
        assert (before["previous"], before["diff"]) == (None, None)
        assert now["previous"] == before["readable"]
        changed = [line[0] for line in now["diff"].split("\n")[3:] if line[0] != " "]
        assert changed == ["-", "+"]


@on_both_databases
async def test_a_transcript_shows_what_was_said_in_order(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8") as peer:
        path = f"{HERE}/{peer.conversation_id}/transcript"
        page = await site.get(path, limit=3)
        rest = await site.get(path, cursor=page["next"])

        said = [(each["role"], each["content"]) for each in page["items"] + rest["items"]]
        assert [role for role, _ in said] == ["user", "assistant"] * 2
        assert (said[0][1], said[2][1], rest["next"]) == (SAID, "8", None)
        assert not any(each["superseded"] for each in page["items"])


async def test_the_explanation_of_an_alarm_names_the_rules(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, "I want to kill myself tonight") as peer:
        message = (await site.get(f"{HERE}/{peer.conversation_id}/messages"))["items"][0]["id"]

        why = await site.get(f"/v1/messages/{message}/explanation")
        events = await site.get("/v1/safety-events")
        event = await site.get(f"/v1/safety-events/{events['items'][0]['id']}")

        (finding, *_) = why["safety"]
        assert (finding["kind"], finding["certainty"]) == ("crisis", "certain")
        assert finding["rules"]
        assert events["items"][0]["messageId"] == message
        assert event["rules"] == events["items"][0]["rules"]
        assert await site.get(f"{HERE}/{peer.conversation_id}/safety-events") == events


# --- blocks ------------------------------------------------------------------------------------------------


@on_both_databases
async def test_blocks_are_shown_now_at_a_revision_and_after_a_turn(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8") as peer:
        blocks = f"{HERE}/{peer.conversation_id}/blocks"
        states = (await site.get(blocks))["items"]
        earlier = (await site.get(blocks, atTurn=1))["items"]
        history = await site.get(f"{blocks}/conversation_history")
        first = await site.get(f"{blocks}/conversation_history/revisions/1")
        after_one = await site.get(f"{blocks}/conversation_history", atTurn=1)
        summary = await site.get(f"{blocks}/context_summary")
        revisions = await site.get(f"{blocks}/conversation_history/revisions", limit=1)
        older = await site.get(f"{blocks}/conversation_history/revisions", cursor=revisions["next"])
        diff = await site.get(f"{blocks}/conversation_history/diff", first=1, second=2)

        assert [each["label"] for each in states] == [label.value for label in Label]
        assert [each["revision"] for each in states] == [2, 2, 2, 2]
        assert [each["revision"] for each in earlier] == [1, 1, 1, 1]
        assert "text" not in states[0]
        assert [turn["user_message"]["content"] for turn in history["value"]["turns"]] == [SAID, "8"]
        assert first == after_one
        assert [turn["user_message"]["content"] for turn in first["value"]["turns"]] == [SAID]
        assert (summary["value"], summary["text"][:3]) == (None, "===")
        assert [each["revision"] for each in revisions["items"] + older["items"]] == [2, 1]
        assert any(each["sign"] == "+" and "turn_2" in each["line"] for each in diff["changes"])


async def test_what_is_not_there_is_not_found(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer:
        blocks = f"{HERE}/{peer.conversation_id}/blocks"

        async def refused(path: str) -> tuple[int, str]:
            return problem(await site.http.get(path, headers=site.person()))

        assert await refused(f"{blocks}/active_session/revisions/2") == (404, "revision_not_found")
        assert await refused(f"{blocks}/active_session?atTurn=2") == (404, "turn_not_found")
        assert await refused(f"{blocks}/diary") == (422, "invalid_field")
        assert await refused(f"{HERE}/{peer.conversation_id}/archived-turns/1") == (404, "turn_not_found")
        assert await refused("/v1/traces?cursor=x") == (422, "bad_cursor")
        assert await refused("/v1/traces?since=yesterday") == (422, "invalid_field")
        assert await refused("/v1/traces?since=2024-01-01T00:00:00") == (422, "invalid_field")


async def test_blocks_that_nobody_has_written_are_shown_empty(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site:
        made = (await site.http.post(HERE, headers=site.person())).json()["id"]
        before = await everything(site.orchestrator)

        states = (await site.get(f"{HERE}/{made}/blocks"))["items"]
        history = await site.get(f"{HERE}/{made}/blocks/conversation_history")
        valid = await site.http.post(f"{HERE}/{made}/blocks/validate", headers=site.person())

        assert [(each["revision"], each["written"]) for each in states] == [(0, None)] * 4
        assert history["value"]["turns"] == []
        assert valid.json() == {"valid": True, "departures": []}
        assert await everything(site.orchestrator) == before


@on_both_databases
async def test_an_operator_validates_and_rotates_the_blocks(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8", "yes", "no", "left") as peer:
        here = f"{HERE}/{peer.conversation_id}"
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")

        valid = await site.http.post(f"{here}/blocks/validate", headers=eve)
        rotated = await site.http.post(f"{here}/blocks/rotate", headers={**eve, "Idempotency-Key": "k"})
        again = await site.http.post(f"{here}/blocks/rotate", headers={**eve, "Idempotency-Key": "k"})
        await peer.until(lambda frame: frame.body.get("metadata", {}).get("agent") == "operator:eve")
        archived = await site.get(f"{here}/archived-turns", limit=1)
        rest = await site.get(f"{here}/archived-turns", cursor=archived["next"])
        first = await site.get(f"{here}/archived-turns/1")

        assert valid.json() == {"valid": True, "departures": []}
        assert rotated.json() == again.json() == {"archivedTurns": [1, 2]}
        assert [each["turnId"] for each in archived["items"] + rest["items"]] == [1, 2]
        assert "value" not in archived["items"][0]
        assert first["value"]["user_message"]["content"] == SAID


async def test_a_changed_block_is_shown_as_it_was_written_and_not_repaired_by_looking(
    tmp_path: Path, sqlite_template: Path
) -> None:
    address = f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'store.db')}"
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        spoil = "UPDATE blocks SET value = '{}' WHERE label = 'active_session'"
        await site.orchestrator.store.write(lambda tx: tx.unit.connection.execute(spoil))

        shown = await site.get(f"{HERE}/{peer.conversation_id}/blocks/active_session")
        found = await site.http.post(f"{HERE}/{peer.conversation_id}/blocks/validate", headers=site.person())

        assert shown["value"]["session_info"]["session_id"] == peer.conversation_id
        assert {each["label"] for each in found.json()["departures"]} == {"active_session"}
        value = "SELECT value FROM blocks WHERE label = 'active_session'"
        (row,) = await site.orchestrator.store.read(lambda tx: tx.unit.connection.execute(value).fetchall())
        assert row == ("{}",)


# --- traces ------------------------------------------------------------------------------------------------


@on_both_databases
async def test_traces_are_listed_filtered_and_shown_one_by_one(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        here = f"{HERE}/{peer.conversation_id}/traces"
        listed = await site.get(here)
        stored = await site.get(here, action="stored")
        history = await site.get("/v1/traces", label="conversation_history", type="memory_block")
        pages, cursor = [], None
        while True:
            page = await site.get("/v1/traces", limit=3, **({"cursor": cursor} if cursor else {}))
            pages += page["items"]
            if (cursor := page["next"]) is None:
                break
        one = await site.get(f"/v1/traces/{stored['items'][0]['id']}")

        assert len(listed["items"]) == 8
        assert pages == listed["items"]
        assert "content" not in json.dumps(listed)
        assert {each["label"] for each in stored["items"]} == {label.value for label in Label}
        assert {each["action"] for each in history["items"]} == {"retrieved", "stored"}
        assert (one["action"], bool(one["content"]), one["metadata"]["revision"]) == ("stored", True, 1)
        assert (await site.get("/v1/traces", site.person(BOB)))["items"] == []


@on_both_databases
async def test_new_traces_are_followed_live(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        async with listening(site.app) as server, httpx.AsyncClient() as http:
            url = f"http://127.0.0.1:{server.port}/v1/traces/stream"
            events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
            begun = asyncio.Event()

            async def follow(**headers: str) -> None:
                async with http.stream("GET", url, headers={**site.person(), **headers}) as answer:
                    assert answer.headers["content-type"].startswith("text/event-stream")
                    event: dict[str, Any] = {}
                    async for line in answer.aiter_lines():
                        begun.set()
                        if line.startswith(("id: ", "data: ")):
                            name, _, value = line.partition(": ")
                            event[name] = value
                        elif not line and event:
                            events.put_nowait(event)
                            event = {}

            following = asyncio.create_task(follow())
            async with asyncio.timeout(20):
                await begun.wait()
                await asyncio.sleep(0.2)  # until the feed has read what was there before
                await peer.ask("8")
                found = [await events.get() for _ in range(8)]
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            after = (await site.get("/v1/traces", limit=8))["items"]

            assert {json.loads(each["data"])["id"] for each in found} == {each["id"] for each in after}
            assert "content" not in json.loads(found[0]["data"])

            resumed = asyncio.create_task(follow(**{"Last-Event-ID": found[0]["id"]}))
            missing = {json.loads(each["data"])["id"] for each in found[1:]}
            async with asyncio.timeout(20):
                while missing:
                    missing.discard(json.loads((await events.get())["data"])["id"])
        async with asyncio.timeout(5):  # the server has stopped; the stream has ended with it
            await asyncio.gather(resumed, return_exceptions=True)


@pytest.mark.timeout(120)
async def test_a_revoked_key_ends_its_stream_although_the_server_is_never_quiet(
    embedded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "CHECK_SECONDS", 0.3)
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID):
        store, token = site.orchestrator.store, await site.key("eve", Role.OPERATOR)

        async def keep_busy() -> None:
            while True:
                await store.write(lambda tx: tx.conversations.create(BOB))
                await asyncio.sleep(0.02)

        async with listening(site.app) as server, httpx.AsyncClient() as http:
            url = f"http://127.0.0.1:{server.port}/v1/traces/stream?of=all&type=none"
            headers, busy = {"Authorization": f"Bearer {token}"}, asyncio.create_task(keep_busy())
            async with asyncio.timeout(60), http.stream("GET", url, headers=headers) as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == ": following"
                while await anext(lines) != ": still here":
                    pass
                await store.write(lambda tx: tx.api_keys.revoke(token.partition(".")[0]))
                async for _ in lines:  # it ends
                    pass
            assert not busy.done()
            busy.cancel()
            await asyncio.gather(busy, return_exceptions=True)


# --- searches ---------------------------------------------------------------------------------------------


@on_both_databases
async def test_a_search_is_listed_and_its_journey_shows_how_far_each_memory_came(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID):
        store = site.orchestrator.store
        texts = ("My allergy is to penicillin", "my allergy is to  PENICILLIN", "An allergy to cats, too")
        await asyncio.to_thread(import_texts, store, ANN, *texts)
        body = {"query": "Which allergy do I have?", "retrieval_mode": "packed", "token_budget": 35}
        await site.http.post("/v1/memories/search", headers=site.person(), json=body)

        (listed,) = (await site.get("/v1/retrievals"))["items"]
        way = await site.get(f"/v1/retrievals/{listed['id']}")

        assert "penicillin" not in json.dumps(listed)
        assert (way["query"], way["mode"], way["conversationId"]) == (body["query"], "packed", None)
        assert [each["position"] for each in way["candidates"]] == [1, 2, 3]
        assert all(each["score"] > 0 and each["signals"] and each["tokens"] for each in way["candidates"])
        stages = {each["stage"]: each["dropped"] for each in way["candidates"]}
        assert stages == {
            "final": None,
            "candidate": {"at": "packaging", "why": "repeats_another"},
            "included": {"at": "assembly", "why": "budget"},
        }
        used = way["budget"]["used"]
        assert (way["budget"]["limit"], 0 < used <= 35) == (35, True)
        assert (way["counts"]["candidates"], way["counts"]["included"], way["counts"]["final"]) == (3, 2, 1)
        assert (await site.get("/v1/retrievals", site.person(BOB)))["items"] == []
        for id in (listed["id"], "ret_nobodys"):
            refused = await site.http.get(f"/v1/retrievals/{id}", headers=site.person(BOB))
            assert problem(refused) == (404, "item_not_found")


async def test_staff_reads_a_search_of_a_person_of_whom_nothing_is_stored_and_is_traced(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path) as site:
        await site.http.post("/v1/memories/search", headers=site.person(), json={"query": "tea"})
        (listed,) = (await site.get("/v1/retrievals"))["items"]
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")

        shown = await site.get(f"/v1/retrievals/{listed['id']}", eve)

        (trace,) = (await site.get("/v1/traces"))["items"]
        assert shown["query"] == "tea"
        assert (trace["actor"], trace["reason"]) == ("operator:eve", "ticket 7")


async def test_what_is_still_in_the_history_is_found_but_not_given_to_the_brain_again(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path, remembers=True) as site:
        async with a_talk(site, "My sister Clara keeps bees", "What does my sister Clara keep?") as peer:
            messages = (await site.get(f"{HERE}/{peer.conversation_id}/messages"))["items"]
        why = await site.get(f"/v1/messages/{messages[2]['id']}/explanation")
        way = await site.get(f"/v1/retrievals/{why['retrievalId']}")

        (bees,) = (each for each in way["candidates"] if "bees" in (each["content"] or ""))
        assert (bees["stage"], bees["dropped"]) == ("final", {"at": "turn", "why": "in_history"})
        assert way["messageId"] == messages[2]["id"]


# --- overview ----------------------------------------------------------------------------------------------


@on_both_databases
async def test_the_overview_counts_and_its_rows_can_be_listed(address: str, tmp_path: Path) -> None:
    crisis = "I want to kill myself tonight"
    brain = ScriptedBrain(answers=[("Fine.",), (RuntimeError("no answer"),)])
    async with (
        a_site(address, tmp_path, brain) as site,
        a_talk(site, SAID, person=BOB),
        a_talk(site, "8", "yes", "no", "left") as peer,
    ):
        await peer.ask(crisis)
        operator = await site.staff(Role.OPERATOR, reason="ticket 7")
        await site.http.post(f"{HERE}/{peer.conversation_id}/blocks/rotate", headers=operator)

        mine = await site.get("/v1/overview")
        everybody = await site.get("/v1/overview", operator, of="all")
        failed = await site.get("/v1/turns", failed="true")
        turns = await site.get("/v1/turns", limit=2)
        rest = await site.get("/v1/turns", cursor=turns["next"])
        alarms = await site.get("/v1/safety-events", certainty="certain")

        (day,) = mine["turnsPerDay"]
        assert (day["turns"], day["failed"], everybody["turnsPerDay"][0]["turns"]) == (5, 1, 6)
        assert mine["errors"] == [{"name": failed["items"][0]["error"], "count": 1}]
        read = next(each for each in mine["stations"] if each["name"] == "read")
        assert (read["count"], 0 <= read["p50"] <= read["p95"] <= read["p99"]) == (5, True)
        routes = {each["specialist"]: each["turns"] for each in mine["routing"]}
        assert routes == {"GENERAL_HEALTH": 4, "EMERGENCY": 1}
        assert mine["alarms"] == [{"day": day["day"], "certain": 1, "possible": 0}]
        assert mine["rotations"] == [{"day": day["day"], "count": 1}]
        assert len(turns["items"] + rest["items"]) == 5
        assert {each["conversationId"] for each in turns["items"]} == {peer.conversation_id}
        assert alarms["items"]
        nothing = await site.get("/v1/overview", since="2024-01-01T00:00:00Z", until="2024-02-01T00:00:00Z")
        assert (nothing["turnsPerDay"], nothing["stations"], nothing["errors"]) == ([], [], [])
        order = {"since": "2024-02-01T00:00:00Z", "until": "2024-01-01T00:00:00Z"}
        refused = await site.http.get("/v1/overview", headers=site.person(), params=order)
        assert problem(refused) == (422, "invalid_field")


@on_both_databases
async def test_turns_are_found_by_the_time_of_one_station(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID, "8", "yes"):

        def slow_down(tx: Transaction) -> str:
            newest = tx.pages.runs(RunFilter(), None, 1)[0].id
            slow = "UPDATE station_times SET milliseconds = 9000 WHERE station = 'answer' AND run_id = "
            tx.unit.connection.execute(f"{slow}'{newest}'")
            return newest

        newest = await site.orchestrator.store.write(slow_down)
        slow = await site.get("/v1/turns", station="answer", stationSlowerThan=8000)
        elsewhere = await site.get("/v1/turns", station="read", stationSlowerThan=8000)
        passed = await site.get("/v1/turns", station="read")
        refused = await site.http.get("/v1/turns", headers=site.person(), params={"stationSlowerThan": 1})

        assert [each["id"] for each in slow["items"]] == [newest]
        assert slow["items"][0]["milliseconds"] < 8000
        assert elsewhere["items"] == []
        assert len(passed["items"]) == 3
        assert problem(refused) == (422, "invalid_field")


@on_both_databases
async def test_the_traces_of_many_conversations_come_in_one_order(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site:

        def fill(tx: Transaction) -> None:
            for number in range(30):
                here = tx.conversations.create(ANN, id=f"conv_{number}").id
                memory = tx.blocks.memory_ids(here)["active_session"]
                look = Look("operator:eve", "ticket 7")
                for _ in range(1 + number % 3):
                    trace_text(tx, here, look, memory)

        await site.orchestrator.store.write(fill)
        pages: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = await site.get("/v1/traces", limit=7, **({"cursor": cursor} if cursor else {}))
            pages, cursor = pages + page["items"], page["next"]
            if cursor is None:
                break
        of_all = await site.get("/v1/traces", await site.staff(Role.OPERATOR), of="all", limit=200)
        none = await site.get("/v1/traces", action="updated")

        assert len(pages) == 60
        assert pages == of_all["items"]
        assert none["items"] == []


# --- downloads ---------------------------------------------------------------------------------------------


@on_both_databases
async def test_traces_are_downloaded_all_at_once_with_the_filters_of_the_list(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "BATCH", 3)
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        listed = (await site.get("/v1/traces"))["items"]
        path, mine = "/v1/traces/export", site.person()
        lines = await site.http.get(path, headers=mine)
        table = await site.http.get(path, headers=mine, params={"format": "csv", "action": "stored"})
        of_bob = await site.http.get(path, headers=site.person(BOB))
        elsewhere = await site.http.get(
            path, headers=site.person(BOB), params={"conversation": peer.conversation_id}
        )

        assert [json.loads(line) for line in lines.text.splitlines()] == listed
        rows = list(csv.DictReader(io.StringIO(table.text)))
        assert [row["id"] for row in rows] == [each["id"] for each in listed if each["action"] == "stored"]
        assert list(rows[0]) == list(listed[0])
        assert lines.headers["content-disposition"] == 'attachment; filename="traces.jsonl"'
        assert of_bob.text == elsewhere.text == ""


@on_both_databases
async def test_traces_are_downloaded_as_parquet_in_several_parts(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "BATCH", 3)
    monkeypatch.setattr(exports, "ROW_GROUP", 5)
    async with a_site(address, tmp_path) as site, a_talk(site, SAID):
        listed = (await site.get("/v1/traces"))["items"]
        query = {"format": "parquet"}

        whole = await site.http.get("/v1/traces/export", headers=site.person(), params=query)
        empty = await site.http.get("/v1/traces/export", headers=site.person(BOB), params=query)

        found = parquet.ParquetFile(io.BytesIO(whole.content))
        rows = found.read().to_pylist()
        assert [{**row, "createdAt": as_text(row["createdAt"])} for row in rows] == listed
        assert found.num_row_groups > 1
        assert whole.headers["content-type"] == "application/vnd.apache.parquet"
        assert parquet.ParquetFile(io.BytesIO(empty.content)).read().num_rows == 0


async def test_without_pyarrow_the_server_says_what_to_install(
    embedded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # importing it fails
    async with a_site(embedded, tmp_path) as site:
        refused = await site.http.get(
            "/v1/traces/export", headers=site.person(), params={"format": "parquet"}
        )

        assert problem(refused) == (501, "parquet_not_installed")
        assert "anamnesis[parquet]" in refused.json()["detail"]


async def test_a_reason_in_a_table_is_no_formula(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer:
        eve = await site.staff(Role.OPERATOR, reason="=1+1")
        await site.get(f"{HERE}/{peer.conversation_id}/transcript", eve)

        table = await site.http.get("/v1/traces/export", headers=site.person(), params={"format": "csv"})

        assert {row["reason"] for row in csv.DictReader(io.StringIO(table.text))} == {"", "'=1+1"}


async def test_a_conversation_is_downloaded_by_its_person_and_by_privacy_with_a_trace(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer:
        path = f"{HERE}/{peer.conversation_id}/export"
        pia = await site.staff(Role.PRIVACY, name="pia", reason="request 12")

        whole = await site.get(path)
        for_reading = await site.http.get(path, headers=pia, params={"format": "md"})

        assert whole["messages"][0]["contents"] == SAID
        assert f"> {SAID}" in for_reading.text
        assert {(each.meta or {})["reason"] for each in await traces_by(site, "privacy:pia")} == {
            "request 12"
        }


# --- looking -----------------------------------------------------------------------------------------------

LOOKS = (
    "/v1/messages/{message}",
    "/v1/messages/{message}/explanation",
    HERE + "/{conversation}/transcript",
    "/v1/traces/{trace}",
    HERE + "/{conversation}/blocks/conversation_history",
    HERE + "/{conversation}/blocks/conversation_history/revisions/1",
    HERE + "/{conversation}/blocks/conversation_history/diff?first=1&second=1",
)


@on_both_databases
async def test_staff_that_looks_leaves_a_trace_with_a_reason_and_changes_nothing_else(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, SAID) as peer:
        conversation = peer.conversation_id
        message = (await site.get(f"{HERE}/{conversation}/messages"))["items"][0]["id"]
        trace = (await site.get("/v1/traces"))["items"][0]["id"]
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")
        for look in LOOKS:
            path = look.format(message=message, trace=trace, conversation=conversation)
            before, known = await everything(site.orchestrator), await traces_by(site, "operator:eve")

            without = await site.http.get(path, headers={"Authorization": eve["Authorization"]})
            unchanged = await everything(site.orchestrator)
            await site.get(path, eve)

            after, left = await everything(site.orchestrator), await traces_by(site, "operator:eve")
            assert problem(without) == (403, "reason_required")
            assert unchanged == before
            new = [each for each in left if each not in known]
            assert new
            assert {(each.meta or {}).get("reason") for each in new} == {"ticket 7"}
            assert {each.conversation_id for each in new} == {conversation}
            traced = {"alicia_memory_used": before["alicia_memory_used"] + len(new)}
            assert after == before | traced, path


async def test_an_auditor_sees_who_looked_and_why_but_no_texts(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer:
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")
        await site.get(f"{HERE}/{peer.conversation_id}/blocks/active_session", eve)
        await site.get(f"{HERE}/{peer.conversation_id}/blocks/active_session")
        ada = await site.staff(Role.AUDITOR, name="ada")

        (seen,) = (await site.get("/v1/traces", ada, of="all"))["items"]
        refused = await site.http.get(f"/v1/traces/{seen['id']}", headers=ada)

        assert (seen["actor"], seen["reason"], seen["label"]) == (
            "operator:eve",
            "ticket 7",
            "active_session",
        )
        assert problem(refused) == (403, "missing_role")


async def test_an_analyst_sees_pseudonyms_and_texts_only_by_a_named_grant(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, SAID) as peer, a_talk(site, SAID, person=BOB):
        await site.http.patch(
            f"{HERE}/{peer.conversation_id}", headers=site.person(), json={"title": "My headache"}
        )
        plain = await site.staff(Role.ANALYST, reason="curious")
        granted = await site.staff(
            Role.ANALYST, scopes=("*", "texts:read"), granted_for="study 12", name="ida"
        )

        listed = (await site.get(HERE, plain, of="all"))["items"]
        path = f"{HERE}/{peer.conversation_id}/blocks/conversation_history"
        refused = await site.http.get(path, headers=plain)
        shown = await site.get(path, granted)

        people = {each["person"] for each in listed}
        assert len(people) == 2
        assert all(each.startswith("p_") for each in people)
        assert {each["title"] for each in listed} == {None}
        assert problem(refused) == (403, "texts_not_granted")
        assert shown["value"]["turns"]
        (trace,) = await traces_by(site, "analyst:ida")
        assert (trace.meta or {})["reason"] == "study 12"
        by_name = await site.http.get(HERE, headers=plain, params={"of": "all", "person": ANN})
        assert problem(by_name) == (403, "missing_role")


async def test_an_analyst_finds_no_name_in_lists_exports_streams_and_blocks(
    embedded: str, tmp_path: Path
) -> None:
    reading = FactReading(
        op=Op.ADD, kind="allergies", subject="person", value="nuts", stable=True, decided_by=Decider.LOCAL
    )
    brain = ScriptedBrain(changes=[(reading,)])
    async with (
        a_site(embedded, tmp_path, brain, remembers=True) as site,
        a_talk(site, "I am allergic to nuts", person="annabel") as peer,
    ):
        here, annabel = f"{HERE}/{peer.conversation_id}", site.person("annabel")
        (fact,) = (await site.get("/v1/memories", annabel, kind="fact"))["items"]
        await site.http.patch(f"/v1/memories/{fact['id']}", headers=annabel, json={"value": "eggs"})
        await site.get(f"{here}/blocks/active_session", annabel)  # she looks at it herself
        eve = await site.staff(Role.OPERATOR, reason="Annabel Smith asked")
        await site.get(f"{here}/transcript", eve)
        plain = await site.staff(Role.ANALYST, name="ida")
        granted = await site.staff(
            Role.ANALYST, scopes=("*", "texts:read"), granted_for="study 12", name="ida"
        )
        ada = await site.staff(Role.AUDITOR, name="ada")
        looked = (await site.get("/v1/traces", eve, of="all", actor="operator"))["items"][0]["id"]
        everything_said = [
            await site.http.get(path, headers=plain, params=query)
            for path, query in (
                (HERE, {"of": "all"}),
                ("/v1/traces", {"of": "all"}),
                ("/v1/traces", {"of": "all", "actor": "person"}),
                (f"{here}/traces", {}),
                ("/v1/traces/export", {"of": "all"}),
                ("/v1/traces/export", {"of": "all", "format": "csv"}),
                ("/v1/retrievals", {"of": "all"}),
                ("/v1/turns", {"of": "all"}),
                ("/v1/safety-events", {"of": "all"}),
                (f"{here}/blocks", {}),
                (f"{here}/blocks/active_session/revisions", {}),
            )
        ]
        facts_of_texts = [
            await site.get(f"/v1/traces/{looked}", granted),
            (await site.get(f"{here}/blocks/active_session", granted))["written"],
            (await site.get(f"/v1/memories/{fact['id']}/lineage", granted))["changes"],
            (await site.get(f"/v1/memories/{fact['id']}", granted))["person"],
        ]
        async with listening(site.app) as server, httpx.AsyncClient() as http:
            url = f"http://127.0.0.1:{server.port}/v1/traces/stream?of=all"
            position = position_cursor(Position(datetime(2020, 1, 1, tzinfo=UTC), ""))
            async with (
                asyncio.timeout(30),
                http.stream("GET", url, headers={**plain, "Last-Event-ID": position}) as answer,
            ):
                async for line in answer.aiter_lines():
                    if "person:p_" in line:
                        break
                    assert "annabel" not in line.casefold()
        by_name = [
            await site.http.get(path, headers=plain, params={"of": "all", "actor": "person:annabel"})
            for path in ("/v1/traces", "/v1/traces/export", "/v1/traces/stream", f"{here}/traces")
        ]

        for each in everything_said:
            assert each.status_code == 200, each.text
            assert "annabel" not in each.text.casefold(), each.url
        assert "person:p_" in everything_said[1].text
        assert json.loads(everything_said[-2].text)["items"][1]["written"]["actor"].startswith("person:p_")
        assert json.loads(everything_said[-1].text)["items"][0]["actor"].startswith("person:p_")
        shown = json.dumps(facts_of_texts).casefold()
        assert "annabel" not in shown, shown[shown.index("annabel") - 150 :][:200]
        assert {problem(each) for each in by_name} == {(403, "missing_role")}
        reasons = {each["reason"] for each in (await site.get("/v1/traces", ada, of="all"))["items"]}
        assert "Annabel Smith asked" in reasons
        own = (await site.get("/v1/traces", annabel, actor="person:annabel"))["items"]
        assert {each["actor"] for each in own} == {"person:annabel"}
        own = (await site.get("/v1/traces", annabel, actor="operator"))["items"]
        assert {each["reason"] for each in own} == {"Annabel Smith asked"}


async def test_nobody_searches_the_texts_of_others(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site:
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")

        refused = await site.http.get(HERE, headers=eve, params={"of": "all", "search": "head"})

        assert problem(refused) == (422, "invalid_field")


@pytest.mark.requirement("003-163")
async def test_a_tool_call_is_listed_without_and_shown_with_its_result(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path, ScriptedBrain()) as site, a_talk(site, SAID) as peer:
        message = (await site.get(f"{HERE}/{peer.conversation_id}/messages"))["items"][0]["id"]
        await site.orchestrator.store.write(
            lambda tx: tx.tools.request(peer.conversation_id, message, "clock", {"zone": "UTC"}, id="tool_1")
        )
        await site.orchestrator.store.write(lambda tx: tx.tools.succeed("tool_1", {"time": "noon"}))

        (listed,) = (await site.get(f"{HERE}/{peer.conversation_id}/tool-uses"))["items"]
        whole = await site.get("/v1/tool-uses/tool_1")
        why = await site.get(f"/v1/messages/{message}/explanation")
        await site.orchestrator.store.write(
            lambda tx: tx.unit.connection.execute("DELETE FROM alicia_tool_uses")
        )

        assert (listed["toolName"], listed["status"]) == ("clock", "success")
        assert (whole["toolArguments"], whole["toolResult"]) == ({"zone": "UTC"}, {"time": "noon"})
        assert why["tools"][0]["result"] == {"time": "noon"}
