"""Tool calls of a model: assembled from the pieces of a stream, run by us, their results sent back."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agents.models.servers.http import text_or_empty
from agents.ports import ToolOutcome, ToolUser

MAX_ROUNDS: Final = 4
"""Maximum number of requests for one answer. The last one offers no tools, so that the model must answer."""

_MAX_CALLS: Final = 8
"""Maximum number of tool calls that are run per request."""


@dataclass(slots=True)
class ToolCall:
    """One tool call that a model asks for."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, id: object, name: object, arguments: object) -> None:
        """Append the next piece of a streamed call. Some servers send the arguments as an object."""
        self.id = self.id or text_or_empty(id)
        self.name += text_or_empty(name)
        self.arguments += json.dumps(arguments) if isinstance(arguments, dict) else text_or_empty(arguments)


async def run_tool_calls(calls: Iterable[ToolCall], tools: ToolUser) -> list[tuple[ToolCall, str]]:
    """Run the calls, and return each with its result as the model reads it."""
    accepted = list(calls)[:_MAX_CALLS]
    return [
        (call, _result_text(await tools.use(call.name, _parse_arguments(call.arguments))))
        for call in accepted
    ]


def _parse_arguments(text: str) -> Mapping[str, Any]:
    """The arguments; empty if they are not a JSON object. A tool that requires some then refuses the call."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _result_text(outcome: ToolOutcome) -> str:
    return json.dumps({"result": outcome.result} if outcome.success else {"error": outcome.error})
