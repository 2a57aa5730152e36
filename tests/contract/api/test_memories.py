"""Memories over HTTP: people read and change their own; staff reads those of others, and is traced."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx

from agents.models.scripted import ScriptedBrain
from agents.values import FactReading
from memory_blocks.facts.changes import Decider, Op
from orchestrator.api.access.roles import Role
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import HttpReply, Trace
from tests.contract.api.serving import Site, a_site, a_talk
from tests.contract.api.test_resources import problem
from tests.support.memory.memories import import_texts
from tests.support.orchestrators import ANN, BOB, everything
from tests.support.protocol_client import Peer
from tests.support.stores import on_both_databases

HERE = "/v1/memories"


async def remember(site: Site, *texts: str, person: str = ANN) -> list[str]:
    """Import texts as memories of a person; returns their ids, the first text first."""
    await asyncio.to_thread(import_texts, site.orchestrator.store, person, *texts)
    listed = (await site.get(HERE, site.person(person), texts="true"))["items"]
    by_text = {each["content"]: each["id"] for each in listed}
    return [by_text[text] for text in texts]


async def add(site: Site, **fields: Any) -> None:
    """Store a memory of Ann."""
    new = NewMemory(user_id=ANN, **fields)
    await site.orchestrator.store.write(lambda tx: tx.memories.add(new))


def allergy(value: str, op: Op = Op.ADD) -> tuple[FactReading, ...]:
    """What a brain reads from a message about an allergy."""
    return (
        FactReading(
            op=op, kind="allergies", subject="person", value=value, stable=True, decided_by=Decider.LOCAL
        ),
    )


@on_both_databases
async def test_memories_are_listed_in_pages_filtered_and_without_texts_unless_asked_for(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site:
        ids = await remember(site, "I like tea", "I have a cat", "My knee hurts")
        await site.http.patch(f"{HERE}/{ids[0]}", headers=site.person(), json={"archived": True})
        await site.http.patch(f"{HERE}/{ids[1]}", headers=site.person(), json={"pinned": True})

        plain = await site.get(HERE)
        page = await site.get(HERE, limit=1)
        rest = await site.get(HERE, limit=1, cursor=page["next"])

        assert {each["id"] for each in plain["items"]} == {ids[1], ids[2]}
        assert "knee" not in json.dumps(plain)
        assert [page["items"][0]["id"], rest["items"][0]["id"], rest["next"]] == [ids[1], ids[2], None]
        assert [each["id"] for each in (await site.get(HERE, status="archived"))["items"]] == [ids[0]]
        assert [each["id"] for each in (await site.get(HERE, pinned="true"))["items"]] == [ids[1]]
        assert [each["id"] for each in (await site.get(HERE, search="KNEE"))["items"]] == [ids[2]]
        assert (await site.get(HERE, kind="fact"))["items"] == []
        assert (await site.get(HERE, site.person(BOB)))["items"] == []


@on_both_databases
async def test_a_memory_is_corrected_found_by_its_new_words_and_the_correction_undone(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path, remembers=True) as site:
        (tea,) = await remember(site, "I drink tea every morning")
        key = {**site.person(), "Idempotency-Key": "one"}

        async def found(query: str) -> list[str]:
            answer = await site.http.post(f"{HERE}/search", headers=site.person(), json={"query": query})
            return [each["content"] for each in answer.json()["memories"]]

        changed = await site.http.patch(f"{HERE}/{tea}", headers=key, json={"content": "I drink espresso"})
        again = await site.http.patch(f"{HERE}/{tea}", headers=key, json={"content": "I drink espresso"})
        by_new_words = await found("espresso")
        lineage = await site.get(f"{HERE}/{tea}/lineage")
        undone = await site.http.post(f"{HERE}/undo", headers=site.person())
        by_old_words = await found("tea every morning")
        nothing = await site.http.post(f"{HERE}/undo", headers=site.person())

        assert changed.json()["memory"]["content"] == "I drink espresso"
        assert (again.json(), again.headers["idempotency-replayed"]) == (changed.json(), "true")
        assert by_new_words == ["I drink espresso"]
        assert [each["action"] for each in lineage["changes"]] == ["created", "updated"]
        assert lineage["changes"][1]["changed"]["content"] == "I drink espresso"
        assert lineage["changes"][1]["actor"] == "person:ann"
        assert (undone.json()["memoryIds"], undone.json()["canBeUndone"]) == ([tea], False)
        assert by_old_words == ["I drink tea every morning"]
        assert problem(nothing) == (404, "nothing_to_undo")


@on_both_databases
async def test_a_deletion_takes_along_what_its_preview_showed_and_is_undone_as_one(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site:
        await add(site, id="mem_said", content="I am allergic to nuts", source_type="utterance")
        await add(
            site,
            id="mem_fact",
            content="The person is allergic to nuts.",
            source_type="fact",
            source_info={"utterances": ["mem_said"], "kind": "allergies", "value": "nuts"},
        )
        before = await everything(site.orchestrator)
        preview = await site.get(f"{HERE}/mem_said/deletion")
        unchanged = await everything(site.orchestrator)

        deleted = (await site.http.delete(f"{HERE}/mem_said", headers=site.person())).json()
        left = (await site.get(HERE))["items"]
        undone = await site.http.post(f"{HERE}/undo", headers=site.person(), json={"act": deleted["act"]})
        back = await site.get(f"{HERE}/mem_fact")
        final = await site.http.delete(f"{HERE}/mem_fact?final=true", headers=site.person())
        never = await site.http.post(f"{HERE}/mem_fact/undo", headers=site.person())

        assert [each["id"] for each in preview["memories"]] == ["mem_said"]
        assert [each["content"] for each in preview["derived"]] == ["The person is allergic to nuts."]
        assert unchanged == before
        assert (set(deleted["memoryIds"]), deleted["canBeUndone"]) == ({"mem_said", "mem_fact"}, True)
        assert left == []
        assert set(undone.json()["memoryIds"]) == {"mem_said", "mem_fact"}
        assert (back["value"], back["about"]) == ("nuts", "allergies")
        assert final.json()["canBeUndone"] is False
        assert problem(never)[0] in (404, 409)


@on_both_databases
async def test_a_corrected_fact_is_what_the_next_answer_knows(address: str, tmp_path: Path) -> None:
    brain = ScriptedBrain(changes=[allergy("penicillin")])
    async with a_site(address, tmp_path, brain, remembers=True) as site, a_talk(site, "Penicillin!") as peer:
        (fact,) = (await site.get(HERE, kind="fact", texts="true"))["items"]
        body = {"value": "amoxicillin"}

        changed = await site.http.patch(f"{HERE}/{fact['id']}", headers=site.person(), json=body)
        await peer.ask("What am I allergic to?")

        memory = changed.json()["memory"]
        assert (memory["value"], memory["history"][0]["value"]) == ("amoxicillin", "penicillin")
        assert "amoxicillin" in memory["content"]
        assert [known.value for known in brain.situations[-1].facts] == ["amoxicillin"]
        block = await site.get(f"/v1/conversations/{peer.conversation_id}/blocks/active_session")
        assert ("amoxicillin" in block["text"], "penicillin" in block["text"]) == (True, False)
        again = await site.http.patch(
            f"{HERE}/{fact['id']}", headers=site.person(), json={"value": "x" * 241}
        )
        assert problem(again) == (422, "invalid_field")


async def test_only_a_fact_has_a_value(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site:
        (tea,) = await remember(site, "I like tea")

        for body in ({"value": "coffee"}, {}, {"owner": "bob"}, {"rating": 6}, {"content": ""}):
            refused = await site.http.patch(f"{HERE}/{tea}", headers=site.person(), json=body)

            assert problem(refused) == (422, "invalid_field")
        rated = await site.http.patch(f"{HERE}/{tea}", headers=site.person(), json={"rating": 4})
        unrated = await site.http.patch(f"{HERE}/{tea}", headers=site.person(), json={"rating": None})
        assert (rated.json()["memory"]["rating"], unrated.json()["memory"]["rating"]) == (4, None)


@on_both_databases
async def test_contradictions_are_shown_side_by_side(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site:
        for id, value, day in (("mem_a", "A", "2026-01-01"), ("mem_b", "B", "2026-02-01")):
            source = {"kind": "blood_type", "subject": "person", "value": value, "conflict": "change_1"}
            source["said_at"] = f"{day}T10:00:00.000Z"
            await add(site, id=id, content=f"Blood type {value}", source_type="fact", source_info=source)
        await add(site, id="mem_c", content="tea", source_type="fact", source_info={"kind": "likes"})

        (pair,) = (await site.get(f"{HERE}/conflicts"))["items"]

        assert (pair["about"], pair["current"]["value"], pair["other"]["value"]) == ("blood_type", "B", "A")
        assert (await site.get(f"{HERE}/conflicts", site.person(BOB)))["items"] == []


@on_both_databases
async def test_contradictions_and_the_changes_of_a_memory_come_in_pages(address: str, tmp_path: Path) -> None:
    async with a_site(address, tmp_path) as site:
        for number in range(5):
            source = {"kind": "likes", "value": str(number), "conflict": f"change_{number // 3}"}
            source["said_at"] = f"2026-01-0{number + 1}T10:00:00.000Z"
            await add(site, id=f"mem_{number}", content=f"{number}", source_type="fact", source_info=source)
        (tea,) = await remember(site, "I like tea")
        for rating in (1, 2, 3):
            await site.http.patch(f"{HERE}/{tea}", headers=site.person(), json={"rating": rating})
        for number in range(3):
            await add(site, id=f"made_{number}", content="x", source_info={"utterances": [tea]})

        first = await site.get(f"{HERE}/conflicts", limit=2)
        second = await site.get(f"{HERE}/conflicts", limit=2, cursor=first["next"])
        lineage = await site.get(f"{HERE}/{tea}/lineage", limit=2)
        rest = await site.get(
            f"{HERE}/{tea}/lineage",
            limit=2,
            changesCursor=lineage["nextChanges"],
            derivedCursor=lineage["nextDerived"],
        )

        pairs = [(each["current"]["id"], each["other"]["id"]) for each in first["items"] + second["items"]]
        assert pairs == [("mem_4", "mem_3"), ("mem_2", "mem_1"), ("mem_2", "mem_0")]
        assert second["next"] is None
        assert [each["number"] for each in lineage["changes"] + rest["changes"]] == sorted(
            each["number"] for each in lineage["changes"] + rest["changes"]
        )
        assert (len(lineage["changes"]), len(rest["changes"])) == (2, 2)
        made = {each["id"] for each in lineage["derived"] + rest["derived"]}
        assert made == {"made_0", "made_1", "made_2"}
        assert (rest["nextChanges"], rest["nextDerived"]) == (None, None)


@on_both_databases
async def test_staff_reads_a_memory_with_a_reason_and_leaves_a_trace_of_it(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site, a_talk(site, "Hello") as peer:
        (tea,) = await remember(site, "I like tea")
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")
        listed = await site.get(HERE, eve, person=ANN)
        with_texts = await site.http.get(HERE, headers=eve, params={"person": ANN, "texts": "true"})
        for path in (f"{HERE}/{tea}", f"{HERE}/{tea}/lineage"):
            before = await everything(site.orchestrator)
            without = await site.http.get(path, headers={"Authorization": eve["Authorization"]})
            await site.get(path, eve)

            after = await everything(site.orchestrator)
            assert problem(without) == (403, "reason_required")
            assert after == before | {"alicia_memory_used": before["alicia_memory_used"] + 1}
        traces = await site.orchestrator.store.read(
            lambda tx: tx.unit.find(Trace, "created_at", actor="operator:eve")
        )
        refused = await site.http.patch(f"{HERE}/{tea}", headers=eve, json={"pinned": True})

        assert "tea" not in json.dumps(listed)
        assert problem(with_texts) == (422, "invalid_field")
        assert {(each.memory_id, each.conversation_id) for each in traces} == {(tea, peer.conversation_id)}
        assert {(each.meta or {})["reason"] for each in traces} == {"ticket 7"}
        assert problem(refused) == (403, "missing_role")


async def test_the_memory_of_another_person_seems_not_to_exist(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site:
        (tea,) = await remember(site, "I like tea")
        bob = site.person(BOB)

        async def every(id: str) -> list[httpx.Response]:
            path = f"{HERE}/{id}"
            return [
                await site.http.get(path, headers=bob),
                await site.http.get(f"{path}/lineage", headers=bob),
                await site.http.get(f"{path}/deletion", headers=bob),
                await site.http.patch(path, headers=bob, json={"pinned": True}),
                await site.http.delete(path, headers=bob),
                await site.http.post(f"{path}/undo", headers=bob),
            ]

        for foreign, unknown in zip(await every(tea), await every("mem_nobodys"), strict=True):
            assert foreign.text == unknown.text
            assert problem(foreign) == (404, "memory_not_found")


async def test_a_block_is_no_memory_here(embedded: str, tmp_path: Path) -> None:
    async with a_site(embedded, tmp_path) as site, a_talk(site, "Hello") as peer:

        def block_id(tx: Transaction) -> str:
            return tx.blocks.memory_ids(peer.conversation_id)["active_session"]

        id = await site.orchestrator.store.read(block_id)

        refused = await site.http.get(f"{HERE}/{id}", headers=site.person())

        assert problem(refused) == (404, "memory_not_found")
        assert (await site.get(HERE))["items"] == []


@on_both_databases
async def test_a_forgotten_fact_leaves_its_conversation_and_comes_back_if_it_is_undone(
    address: str, tmp_path: Path
) -> None:
    brain = ScriptedBrain(changes=[allergy("penicillin")])
    async with a_site(address, tmp_path, brain, remembers=True) as site, a_talk(site, "Penicillin!") as peer:
        (fact,) = (await site.get(HERE, kind="fact", texts="true"))["items"]
        block = f"/v1/conversations/{peer.conversation_id}/blocks/active_session"

        async def known(message: str) -> tuple[list[str], bool]:
            await peer.ask(message)
            text = (await site.get(block))["text"]
            return [each.value for each in brain.situations[-1].facts], "penicillin" in text

        deleted = await site.http.delete(f"{HERE}/{fact['id']}", headers=site.person())
        after_deletion = await known("What am I allergic to?")
        await site.http.post(f"{HERE}/undo", headers=site.person(), json={"act": deleted.json()["act"]})
        after_undo = await known("And now?")
        aside = await site.http.patch(f"{HERE}/{fact['id']}", headers=site.person(), json={"archived": True})
        after_setting_aside = await known("And now?")
        await site.http.patch(f"{HERE}/{fact['id']}", headers=site.person(), json={"archived": False})
        after_using_again = await known("And now?")
        changes = await site.orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
        traces = await site.orchestrator.store.read(
            lambda tx: tx.unit.find(Trace, "created_at", actor="person:ann", action="updated")
        )

        assert (after_deletion, after_undo) == (([], False), (["penicillin"], True))
        assert aside.json()["memory"]["archived"] is True
        assert (after_setting_aside, after_using_again) == (([], False), (["penicillin"], True))
        assert [(each.op.value, each.decided_by.value) for each in changes[1:]] == [
            ("forget", "person"),
            ("withdraw", "person"),
            ("forget", "person"),
            ("withdraw", "person"),
        ]
        assert {"fact", "memory_block"} <= {each.memory_type for each in traces}


@on_both_databases
async def test_a_fact_is_forgotten_and_corrected_in_every_conversation_that_has_it(
    address: str, tmp_path: Path
) -> None:
    brain = ScriptedBrain(changes=[allergy("penicillin"), allergy("penicillin")])
    async with (
        a_site(address, tmp_path, brain, remembers=True) as site,
        a_talk(site, "Penicillin!") as first,
        a_talk(site, "Penicillin, as I said") as second,
    ):
        (fact,) = (await site.get(HERE, kind="fact", texts="true"))["items"]

        async def known(peer: Peer) -> list[str]:
            await peer.ask("What am I allergic to?")
            return [each.value for each in brain.situations[-1].facts]

        body = {"value": "amoxicillin"}
        corrected = await site.http.patch(f"{HERE}/{fact['id']}", headers=site.person(), json=body)
        after_correction = [await known(peer) for peer in (first, second)]
        act = {"act": corrected.json()["acts"][0]}
        undone = await site.http.post(f"{HERE}/undo", headers=site.person(), json=act)
        after_undo = [await known(peer) for peer in (first, second)]
        again = await site.get(f"{HERE}/{fact['id']}")
        await site.http.delete(f"{HERE}/{fact['id']}?final=true", headers=site.person())
        after_deletion = [await known(peer) for peer in (first, second)]

        assert [each["value"] for each in corrected.json()["memory"]["history"]] == ["penicillin"]
        assert after_correction == [["amoxicillin"], ["amoxicillin"]]
        assert undone.status_code == 200
        assert (again["value"], again["content"]) == ("penicillin", fact["content"])
        assert after_undo == [["penicillin"], ["penicillin"]]
        assert after_deletion == [[], []]


@on_both_databases
async def test_the_text_of_a_fact_is_its_value_for_the_next_answer(address: str, tmp_path: Path) -> None:
    brain = ScriptedBrain(changes=[allergy("penicillin")])
    async with a_site(address, tmp_path, brain, remembers=True) as site, a_talk(site, "Penicillin!") as peer:
        (fact,) = (await site.get(HERE, kind="fact", texts="true"))["items"]
        path = f"{HERE}/{fact['id']}"

        async def written(content: str) -> tuple[str, str, list[str]]:
            answer = await site.http.patch(path, headers=site.person(), json={"content": content})
            await peer.ask("What am I allergic to?")
            memory = answer.json()["memory"]
            return memory["content"], memory["value"], [each.value for each in brain.situations[-1].facts]

        same_form = await written("The person is allergic to amoxicillin.")
        free = await written("Nuts give me a rash")
        undone = await site.http.post(f"{path}/undo", headers=site.person())
        back = await site.get(path)
        too_long = await site.http.patch(path, headers=site.person(), json={"content": "x" * 241})

        assert same_form == ("The person is allergic to amoxicillin.", "amoxicillin", ["amoxicillin"])
        assert free == ("Nuts give me a rash", "Nuts give me a rash", ["Nuts give me a rash"])
        assert undone.status_code == 200
        assert (back["content"], back["value"]) == ("The person is allergic to amoxicillin.", "amoxicillin")
        assert problem(too_long) == (422, "invalid_field")


@on_both_databases
async def test_what_was_erased_for_good_is_in_no_answer_that_is_kept_for_repetitions(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site:
        tea, cat = await remember(site, "I like tea", "I have a cat")
        for memory_id, key in ((tea, "one"), (cat, "two")):
            headers = {**site.person(), "Idempotency-Key": key}
            await site.http.patch(f"{HERE}/{memory_id}", headers=headers, json={"content": f"secret {key}"})

        erase = {**site.person(), "Idempotency-Key": "three"}
        erased = await site.http.delete(f"{HERE}/{tea}?final=true", headers=erase)
        again = await site.http.delete(f"{HERE}/{tea}?final=true", headers=erase)
        first, second = [
            await site.http.patch(
                f"{HERE}/{memory_id}",
                headers={**site.person(), "Idempotency-Key": key},
                json={"content": f"secret {key}"},
            )
            for memory_id, key in ((tea, "one"), (cat, "two"))
        ]
        kept = await site.orchestrator.store.read(lambda tx: tx.unit.find(HttpReply, "created_at"))

        assert (again.json(), again.headers["idempotency-replayed"]) == (erased.json(), "true")
        assert problem(first) == (404, "memory_not_found")
        assert second.headers["idempotency-replayed"] == "true"
        assert "secret one" not in repr(kept)
        assert "secret two" in repr(kept)


@on_both_databases
async def test_staff_reads_a_person_without_a_conversation_and_the_person_sees_who_did(
    address: str, tmp_path: Path
) -> None:
    async with a_site(address, tmp_path) as site:
        (tea,) = await remember(site, "I like tea")
        await site.http.post(f"{HERE}/search", headers=site.person(), json={"query": "tea"})
        (search,) = (await site.get("/v1/retrievals"))["items"]
        memories = (await site.get(HERE))["items"]
        eve = await site.staff(Role.OPERATOR, reason="ticket 7")
        paths = (f"{HERE}/{tea}", f"{HERE}/{tea}/lineage", f"/v1/retrievals/{search['id']}")
        await site.get(paths[0], eve)  # creates the conversation that keeps the traces
        for path in paths[1:]:
            before = await everything(site.orchestrator)
            await site.get(path, eve)

            after = await everything(site.orchestrator)
            assert after == before | {"alicia_memory_used": before["alicia_memory_used"] + 1}

        own = (await site.get("/v1/traces"))["items"]
        page = await site.get("/v1/traces", limit=2)
        rest = await site.get("/v1/traces", limit=2, cursor=page["next"])
        audited = await site.get("/v1/traces", await site.staff(Role.AUDITOR, name="kim"), of="all")
        whole = await site.get(f"/v1/traces/{own[0]['id']}")
        of_other = await site.http.get(f"/v1/traces/{own[0]['id']}", headers=site.person(BOB))
        again = await site.get(f"/v1/traces/{own[0]['id']}", eve)

        assert [(each["actor"], each["reason"]) for each in own] == [("operator:eve", "ticket 7")] * 3
        assert [each["memoryId"] for each in own[1:]] == [tea, tea]
        assert (await site.get("/v1/conversations"))["items"] == []
        assert (await site.get(HERE))["items"] == memories
        assert [*page["items"], *rest["items"]] == own == audited["items"]
        assert (whole["reason"], whole["content"]) == ("ticket 7", f"read retrieval {search['id']}")
        assert (await site.get("/v1/traces", site.person(BOB)))["items"] == []
        assert problem(of_other) == (404, "item_not_found")
        assert again["id"] == own[0]["id"]
        assert len((await site.get("/v1/traces"))["items"]) == 4
