"""Looking at anything over HTTP changes nothing but the access trace and the record of searches."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.access.roles import Role
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import metadata
from tests.contract.api.serving import RoomsDouble, Site, a_site, a_talk
from tests.support.memory.memories import import_texts
from tests.support.orchestrators import ANN
from tests.support.protocol_client import Peer
from tests.support.stores import on_both_databases

ENDLESS = "/v1/traces/stream"
SAID = ("I am having a headache", "8", "I take ibuprofen")
MAY_CHANGE = {"alicia_memory_used", "retrievals"}


async def all_rows(orchestrator: Orchestrator) -> dict[str, list[str]]:
    """Every row of every table, as text."""

    def read(tx: Transaction) -> dict[str, list[str]]:
        statements = {name: f"SELECT * FROM {name}" for name in metadata.tables}  # noqa: S608
        return {
            name: sorted(map(str, tx.unit.connection.execute(each).fetchall()))
            for name, each in statements.items()
        }

    return await orchestrator.store.read(read)


async def known_ids(site: Site, peer: Peer) -> dict[str, str]:
    """An id that exists for each parameter of a path."""
    here, store = peer.conversation_id, site.orchestrator.store
    assert here is not None
    await site.http.post("/v1/memories/search", headers=site.person(), json={"query": "headache"})
    message = (await site.get(f"/v1/conversations/{here}/messages"))["items"][0]["id"]
    await store.write(lambda tx: tx.tools.request(here, message, "clock", {}, id="tool_1"))
    events = (await site.get("/v1/safety-events"))["items"]
    return {
        "memory_id": (await site.get("/v1/memories"))["items"][0]["id"],
        "retrieval_id": (await site.get("/v1/retrievals"))["items"][0]["id"],
        "conversation_id": here,
        "message_id": message,
        "label": "conversation_history",
        "revision": "1",
        "turn": "1",
        "trace_id": (await site.get("/v1/traces"))["items"][0]["id"],
        "tool_use_id": "tool_1",
        "event_id": events[0]["id"] if events else "event_1",
    }


def paths_of(app: Any, ids: dict[str, str]) -> list[str]:
    """Every path that can be read, with ids that exist."""
    found = [path for path, methods in app.openapi()["paths"].items() if "get" in methods and path != ENDLESS]
    return [path.format(**ids) for path in found]


@pytest.mark.filterwarnings("ignore:Duplicate Operation ID")
@on_both_databases
@pytest.mark.parametrize("is_staff", [False, True])
async def test_reading_any_path_and_searching_change_nothing_but_the_access_trace(
    address: str, tmp_path: Path, *, is_staff: bool
) -> None:
    async with a_site(address, tmp_path, rooms=RoomsDouble(ANN)) as site, a_talk(site, *SAID) as peer:
        store = site.orchestrator.store
        import_texts(store, ANN, "I like tea", "My head hurts at night")
        ids = await known_ids(site, peer)
        person = {**site.person(), "Anamnesis-Reason": "a test"}
        headers = await site.staff(*Role, reason="a test") if is_staff else person
        paths = paths_of(site.app, ids)
        queries = [{"query": "tea", "retrieval_mode": mode} for mode in ("flat", "packed", "tiered")]
        queries.append({"query": f"memory://{ids['memory_id']}"})

        statuses, before = {}, await all_rows(site.orchestrator)
        for path in paths:
            statuses[path] = (await site.http.get(path, headers=headers)).status_code
        for query in queries:
            answer = await site.http.post("/v1/memories/search", headers=person, json=query)
            statuses[str(query)] = answer.status_code
        after = await all_rows(site.orchestrator)

        assert len(paths) > 30
        assert sum(status == 200 for status in statuses.values()) > 0.6 * len(statuses), statuses
        assert all(status < 500 for status in statuses.values()), statuses
        assert {name for name in after if after[name] != before[name]} <= MAY_CHANGE
        assert set(before["alicia_memory_used"]) <= set(after["alicia_memory_used"])
        assert len(after["retrievals"]) - len(before["retrievals"]) == 3
