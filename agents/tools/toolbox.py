"""The registry of tools: their parameters' schemas, where they run and their time limits."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from jsonschema import Draft202012Validator

from agents.errors import ToolRefused

Arguments: TypeAlias = Mapping[str, Any]
Execution: TypeAlias = Literal["server", "client", "either"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run` executes it on the server; a tool without `run` can only be executed by a client.

    `run` may be a coroutine function, which then runs on the event loop instead of in a thread.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    execution: Execution = "server"
    timeout_ms: int = 30_000
    run: Callable[[Arguments], Any] | None = None


class Toolbox:
    """Finds tools by name, and checks arguments against their schemas."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._schemas: dict[str, Draft202012Validator] = {}
        for tool in self._tools.values():
            Draft202012Validator.check_schema(tool.parameters)
            self._schemas[tool.name] = Draft202012Validator(tool.parameters)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools, in the order in which they were given."""
        return tuple(self._tools.values())

    def only(self, names: Collection[str]) -> "Toolbox":
        """A toolbox with only these tools, for one specialist."""
        selected = Toolbox()
        selected._tools = {name: tool for name, tool in self._tools.items() if name in names}
        selected._schemas = self._schemas
        return selected

    def running(self, name: str, run: Callable[[Arguments], Any]) -> "Toolbox":
        """The same tools, one of them with another way to run it; no other than before if it is not here."""
        selected = Toolbox()
        selected._tools = {
            each: replace(tool, run=run) if each == name else tool for each, tool in self._tools.items()
        }
        selected._schemas = self._schemas
        return selected

    def find(self, name: str) -> Tool:
        """The tool with this name, or `ToolRefused`."""
        if name not in self._tools:
            raise ToolRefused(name, "there is no such tool")
        return self._tools[name]

    def check(self, name: str, arguments: Arguments) -> None:
        """Raise `ToolRefused` if arguments break the tool's schema. It names the rule and quotes nothing."""
        self.find(name)
        for error in self._schemas[name].iter_errors(dict(arguments)):
            path = ".".join(str(step) for step in error.absolute_path) or "parameters"
            raise ToolRefused(name, f"{path} breaks the rule `{error.validator}`")
