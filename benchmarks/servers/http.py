"""The first page of a list of traces over HTTP, with 1,000, 10,000 and 100,000 traces in the database.

The time must not depend on how many there are. Each figure is of requests through the whole application,
without a network. The traces are spread over 100 conversations of 10 people; one more person has 1,000
conversations, and each sparse filter fits 20 of the oldest traces.
"""

import asyncio
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

from benchmarks.store import a_trace
from memory_blocks.ledger.ledger import Ledger
from orchestrator.api.access.api_keys import NewKey, make_key
from orchestrator.api.access.roles import Role
from orchestrator.api.app import create_app
from orchestrator.api.authentication import Authentication
from orchestrator.api.ports import Resources
from orchestrator.ops.clock import SystemClock
from orchestrator.store import migrations
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Trace
from orchestrator.wire.ids import PersonId, RandomIds
from tests.servers.postgres import fresh_database
from tests.unit.api.test_app import EchoingOrchestrator
from tools.servers.postgres import running_postgres

TOTALS = (1_000, 10_000, 100_000)
CONVERSATIONS, PEOPLE = 100, 10
REQUESTS = 200
MANY = 1_000
"""So many conversations has the person `many`, each with one trace."""
SPARSE = 20
"""So many traces fit a sparse filter; they are among the oldest."""
LISTS = {
    "of all": ("local", "/v1/traces?of=all"),
    "of one person": ("local", "/v1/traces"),
    "of a person with 1,000 conversations": ("many", "/v1/traces"),
    "of one conversation": ("local", "/v1/conversations/conv_0/traces"),
    "of all, label=active_session": ("local", "/v1/traces?of=all&label=active_session"),
    "sparse, label=context_summary": ("local", "/v1/traces?of=all&label=context_summary"),
    "sparse, actor=operator": ("local", "/v1/traces?of=all&actor=operator"),
    "sparse, action=updated": ("local", "/v1/traces?of=all&action=updated"),
    "sparse, type=fact": ("local", "/v1/traces?of=all&type=fact"),
    "sparse, two filters": ("local", "/v1/traces?of=all&type=fact&action=updated"),
    "sparse, in one conversation": ("local", "/v1/conversations/conv_0/traces?action=updated"),
    "sparse, reads of staff": ("auditor", "/v1/traces?of=all"),
}
"""Each list: who asks, and for what."""


def begin(tx: Transaction) -> None:
    """The conversations, each with a message and a block."""
    for number in range(CONVERSATIONS):
        here = f"conv_{number}"
        person = "local" if number % PEOPLE == 0 else f"person_{number % PEOPLE}"
        tx.conversations.create(person, id=here)
        tx.messages.append(here, "user", "Hello", id=f"msg_{number}")
        tx.memories.add(NewMemory(content="likes tea", user_id=person, id=f"mem_{number}"))
        tx.blocks.memory_ids(here)
    for number in range(MANY):
        here = f"many_{number}"
        tx.conversations.create("many", id=here)
        memory = tx.blocks.memory_ids(here)["active_session"]
        tx.traces.add([_trace(tx, here, memory, tx.now - timedelta(days=9), message_id=None, actor="recall")])
    summary, conversation = tx.blocks.memory_ids("conv_0")["context_summary"], "conv_0"
    rare: list[dict[str, Any]] = [
        {"meta": {"label": "context_summary"}},
        {"actor": "operator:eve", "message_id": None, "meta": {"reason": "ticket 7"}},
        {
            "action": "updated",
            "memory_type": "fact",
            "confidence": None,
            "similarity_score": None,
            "position_in_results": None,
        },
    ]
    for number in range(SPARSE):
        at = tx.now - timedelta(days=8) + timedelta(seconds=number)
        tx.traces.add([_trace(tx, conversation, summary, at, **fields) for fields in rare])


def _trace(tx: Transaction, conversation_id: str, memory_id: str, at: datetime, **fields: Any) -> Trace:
    given = {"conversation_id": conversation_id, "memory_id": memory_id, "created_at": at, "updated_at": at}
    return replace(a_trace(tx), **{"message_id": "msg_0", **given, **fields})


def add_traces(first: int, last: int, tx: Transaction) -> None:
    """Traces number `first` to `last`, a second apart, each in another conversation than the one before."""
    blocks = {each: tx.blocks.memory_ids(f"conv_{each}")["active_session"] for each in range(CONVERSATIONS)}
    made = []
    for number in range(first, last):
        which, at = number % CONVERSATIONS, tx.now - timedelta(days=3) + timedelta(seconds=number)
        made.append(
            replace(
                a_trace(tx),
                conversation_id=f"conv_{which}",
                message_id=f"msg_{which}",
                memory_id=blocks[which] if number % 2 else f"mem_{which}",
                meta={"label": "active_session"} if number % 2 else None,
                created_at=at,
                updated_at=at,
            )
        )
    tx.traces.add(made)


async def measure(store: Store, folder: Path) -> dict[str, tuple[float, float]]:
    """The median and the 95th percentile of each list, in milliseconds."""
    authentication = Authentication(folder, session_seconds=60)
    resources = Resources(store, Ledger(SystemClock()))
    app = create_app(EchoingOrchestrator(), authentication, resources=resources)
    auditor = NewKey(name="auditor", person="ada", roles=(Role.AUDITOR,), lasts=timedelta(days=1))
    _, key = await store.write(lambda tx: make_key(tx, auditor, created_by="benchmark"))
    keys = {name: authentication.keys.of(PersonId(name)) for name in ("local", "many")} | {"auditor": key}
    found = {}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=("127.0.0.1", 1)),
        base_url="http://127.0.0.1",
    ) as http:
        for name, (person, path) in LISTS.items():
            times, headers = [], {"Authorization": f"Bearer {keys[person]}"}
            for _ in range(REQUESTS):
                started = perf_counter()
                answer = await http.get(path, headers=headers)
                times.append((perf_counter() - started) * 1000)
                assert len(answer.json()["items"]) >= 10
            found[name] = (statistics.median(times), statistics.quantiles(times, n=20)[-1])
    return found


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, str]]:
    """An empty database of each kind."""
    with ExitStack() as running:
        url = running.enter_context(fresh_database(running.enter_context(running_postgres())))
        yield {"SQLite": f"sqlite:///{folder / 'bench.db'}", "PostgreSQL": url}


def main() -> None:
    """Fill each database step by step, and measure after each step."""
    with tempfile.TemporaryDirectory() as name, databases(Path(name)) as urls:
        for kind, url in urls.items():
            migrations.upgrade(url)
            store = Store.open(url, clock=SystemClock(), ids=RandomIds(), synchronous="OFF")
            store.write_now(begin)
            done = 0
            for total in TOTALS:
                for first in range(done, total, 1000):
                    store.write_now(partial(add_traces, first, min(first + 1000, total)))
                done = total
                for listed, (middle, high) in asyncio.run(measure(store, Path(name))).items():
                    times = f"median {middle:6.2f} ms  p95 {high:6.2f} ms"
                    print(f"{kind:<11} {total:>7,} traces  {listed:<36} {times}")
            store.close_now()


if __name__ == "__main__":
    main()
