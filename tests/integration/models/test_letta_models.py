"""The model that is stored for a request to a Letta agent is the one that this agent uses."""

import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agents.models import usage
from agents.models.requests import EXTRACTOR, ModelRequest
from agents.models.servers.letta import LettaAgents, RoleModels
from agents.ports import NoTools
from tests.faults.http_proxy import listening


async def _stream(request: Request) -> Response:
    events = (
        {"message_type": "assistant_message", "id": "m", "run_id": "r", "content": "{}"},
        {"message_type": "stop_reason", "stop_reason": "end_turn"},
    )
    return Response(
        "".join(f"data: {json.dumps(each)}\n\n" for each in events), media_type="text/event-stream"
    )


def a_request(role: str) -> ModelRequest:
    return ModelRequest(
        role=role, conversation_id="conv_1", instructions="", known="", dialogue=(), agent_message="Hi"
    )


async def test_each_role_is_recorded_with_its_own_model() -> None:
    async def agent_for(conversation_id: str, role: str) -> str:
        return f"agent-{role}"

    app = Starlette(routes=[Route("/v1/agents/{id}/messages/stream", _stream, methods=["POST"])])
    async with listening(app) as url:
        model = LettaAgents(url, "", RoleModels("openai/large", {EXTRACTOR: "openai/small"}), agent_for)
        try:
            with usage.record() as used:
                await model.decide(a_request(EXTRACTOR))
                async for _ in model.speak(a_request("SLEEP"), NoTools()):
                    pass
        finally:
            await model.close()

    assert [(call.role, call.model) for call in used.calls] == [
        (EXTRACTOR, "openai/small"),
        ("SLEEP", "openai/large"),
    ]
    assert model.name == "openai/large"
