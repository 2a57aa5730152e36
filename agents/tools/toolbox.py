"""The tools there are: each with a schema for its parameters, where it runs, and how long it may take."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from jsonschema import Draft202012Validator

from agents.errors import ToolRefused

Arguments: TypeAlias = Mapping[str, Any]
Execution: TypeAlias = Literal["server", "client", "either"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run` is how the server does it; one without can only be done by a client."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    execution: Execution = "server"
    timeout_ms: int = 30_000
    run: Callable[[Arguments], Any] | None = None


class Toolbox:
    """Finds a tool by its name, and lets no call through that its schema does not allow."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._schemas: dict[str, Draft202012Validator] = {}
        for tool in self._tools.values():
            Draft202012Validator.check_schema(tool.parameters)
            self._schemas[tool.name] = Draft202012Validator(tool.parameters)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool, in the order they were put in."""
        return tuple(self._tools.values())

    def only(self, names: Collection[str]) -> "Toolbox":
        """A box with these tools and no others: what one specialist may use."""
        some = Toolbox()
        some._tools = {name: tool for name, tool in self._tools.items() if name in names}
        some._schemas = self._schemas
        return some

    def find(self, name: str) -> Tool:
        """The tool of that name, or `ToolRefused`."""
        if name not in self._tools:
            raise ToolRefused(name, "there is no such tool")
        return self._tools[name]

    def check(self, name: str, arguments: Arguments) -> None:
        """Refuse arguments that the tool's schema does not allow; says where and which rule, quoting none."""
        self.find(name)
        for error in self._schemas[name].iter_errors(dict(arguments)):
            where = ".".join(str(step) for step in error.absolute_path) or "parameters"
            raise ToolRefused(name, f"{where} breaks the rule `{error.validator}`")
