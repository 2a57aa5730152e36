"""The Letta server of the tests is the real one; requests to it, and how bad responses are handled."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import pytest
from letta_client import Letta

from orchestrator.errors import LettaTrouble
from orchestrator.letta.server import LettaServer
from tests.faults.http_proxy import Fault, before
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address
from tools.servers.process import free_port
from tools.setup.toolchain import CHECKOUT

pytestmark = pytest.mark.timeout(600)

PRIVATE = "what a person said"

CALLS: dict[str, Callable[[LettaServer], Awaitable[object]]] = {
    "health": lambda server: server.check_health(),
    "person": lambda server: server.ensure_identity("a key", PRIVATE),
    "list": lambda server: server.agents("a-tag"),
    "make": lambda server: server.create_agent({"system": PRIVATE}),
    "write": lambda server: server.write_block("block-1", PRIVATE, {}),
    "edits": lambda server: server.memory_edits("agent-1"),
    "create_passage": lambda server: server.create_passage("agent-1", PRIVATE, ["a-tag"]),
    "search": lambda server: server.find_passage("agent-1", "a-tag"),
}


def test_an_agent_can_be_created_and_answers(letta: Address) -> None:
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        agent = client.agents.create(
            agent_type="letta_v1_agent",
            include_base_tools=False,
            model=LETTA_MODEL,
            embedding=LETTA_EMBEDDING,
        )
        try:
            answer = client.agents.messages.create(
                agent_id=agent.id, messages=[{"role": "user", "content": "Hello"}]
            )
        finally:
            client.agents.delete(agent_id=agent.id)

    assert [message.message_type for message in answer.messages][-1] == "assistant_message"


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_an_empty_response_is_an_error(
    call: Callable[[LettaServer], Awaitable[object]], kind: str
) -> None:
    async with before(f"http://127.0.0.1:{free_port()}") as proxy:
        proxy.script("", *[Fault(200, {"content-type": kind})] * 4)  # a person is requested once more
        server = LettaServer(proxy.url)
        with pytest.raises(LettaTrouble) as raised:
            await call(server)
        await server.close()

    assert raised.value.facts["rule"] == "not_understood"
    assert raised.value.outcome_unknown


@pytest.mark.parametrize(
    ("call", "status"),
    [
        *(("write", status) for status in (400, 401, 404, 409, 422, 429, 503)),
        ("make", 500),
        ("create_passage", 500),
    ],
)
async def test_a_refused_write_is_not_retried_and_not_quoted(call: str, status: int) -> None:
    async with before(f"http://127.0.0.1:{free_port()}") as proxy:
        proxy.script("", Fault(status, {"retry-after": "0.5"}))
        server = LettaServer(proxy.url)
        with pytest.raises(LettaTrouble, match=f"http_{status}") as raised:
            await CALLS[call](server)
        await server.close()

    assert len(proxy.asked) == 1
    assert raised.value.retryable == (status in (409, 429, 500, 503))
    assert raised.value.outcome_unknown == (status >= 500)
    assert raised.value.retry_after == 0.5
    assert PRIVATE not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_an_unreachable_server_has_a_known_outcome() -> None:
    server = LettaServer(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(LettaTrouble, match="unreachable") as raised:
        await CALLS["write"](server)
    await server.close()

    assert not raised.value.outcome_unknown


async def test_the_library_is_imported_only_if_letta_is_configured_and_logs_no_content() -> None:
    modules = (
        "orchestrator.wiring, orchestrator.cli.serve, orchestrator.cli.maintain.letta, orchestrator.api.app"
    )
    address = f"http://127.0.0.1:{free_port()}"
    script = f"""
import asyncio, sys, {modules}
assert "letta_client" not in sys.modules
from orchestrator.letta.server import LettaServer
try:
    asyncio.run(LettaServer("{address}").write_block("block-1", "{PRIVATE}", {{}}))
except orchestrator.errors.LettaTrouble:
    print("refused")
"""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script),
        env={**os.environ, "LETTA_LOG": "debug"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=CHECKOUT,
    )

    out, err = await running.communicate()

    assert (running.returncode, out) == (0, b"refused\n"), err.decode()
    assert PRIVATE not in err.decode()
