"""Tools that a model calls: put together from the pieces of a stream, used by us, and told back."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agents.brains.lines import text_of
from agents.ports import ToolOutcome, ToolUser

ROUNDS: Final = 4
"""How often a model may be asked in one answer; the last time it gets no tools, and has to speak."""

_MOST_CALLS: Final = 8


@dataclass(slots=True)
class Call:
    """A tool that a model wants to be used."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, id: object, name: object, arguments: object) -> None:
        """Another piece of it has come."""
        self.id = self.id or text_of(id)
        self.name += text_of(name)
        self.arguments += text_of(arguments)


async def used(calls: Iterable[Call], tools: ToolUser) -> list[tuple[Call, str]]:
    """Each call with what came of it, as a model is told."""
    some = list(calls)[:_MOST_CALLS]
    return [(each, _told(await tools.use(each.name, _arguments(each.arguments)))) for each in some]


def _arguments(text: str) -> Mapping[str, Any]:
    """None where they cannot be read: a tool that needs some refuses that."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _told(outcome: ToolOutcome) -> str:
    return json.dumps({"result": outcome.result} if outcome.success else {"error": outcome.says})
