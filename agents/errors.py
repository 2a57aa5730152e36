"""What can go wrong among the agents, said without quoting anybody.

AgentError
├── UnknownKey     agents.toml has a key that does not exist
├── BadRoster      agents.toml says something that cannot be
├── BadRules       a file of config/safety/ says something that cannot be
├── BrainFailed    a brain gave no answer, or none that can be used
│   └── AnswerCut    it broke off after some of the answer was said
├── ModelTrouble   a model did not answer, and whether it may be asked again
├── Unreadable     a model's reply breaks the schema it was given
├── UnreadableLine  a line of input is no record of a conversation
├── ToolRefused    a tool that does not exist, or arguments that it does not take
└── ModelUnusable  the files of a model are there and cannot be loaded

`name` and `facts` fit the row of the same name in the house's table of errors.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar


class AgentError(Exception):
    """The base of this package's errors. Facts are names and rules of ours, never what a person wrote."""

    name: ClassVar[str]

    def __init__(self, says: str, **facts: int | str) -> None:
        super().__init__(says)
        self.facts: Mapping[str, int | str] = MappingProxyType(facts)


class UnknownKey(AgentError):
    """A key that no agent has: a slip of the pen that would otherwise go unnoticed."""

    name = "unknown_setting"

    def __init__(self, where: str, key: str) -> None:
        hint = "Remove it, or correct its name."
        super().__init__(f"{where} has a key {key} that does not exist", where=where, key=key, hint=hint)


class BadRoster(AgentError):
    """A value that cannot be: where it stands, and which rule it breaks."""

    name = "bad_setting"

    def __init__(self, where: str, key: str, rule: str) -> None:
        super().__init__(f"{where}, {key}: {rule}", where=where, key=key, rule=rule)


class BadRules(BadRoster):
    """A rule of the guard that cannot be: where it stands, and why. No house opens without its guard."""


class BrainFailed(AgentError):
    """A brain could not do its part. The person's message is kept; another attempt may work."""

    name = "model_unavailable"

    def __init__(self, brain: str, part: str) -> None:
        super().__init__(f"the brain {brain} failed to {part}", brain=brain, part=part)


class AnswerCut(BrainFailed):
    """A brain broke off after whole sentences were said: those stand, and nobody else goes on with them."""


class ModelTrouble(AgentError):
    """A model, or the server before it, did not answer.

    `again` says that it may be asked again: nothing was done, or doing it twice does no harm. `after` is how
    many seconds it wants to be left alone before. `blamed` says that it failed itself, and is left alone when
    it keeps failing; of what keeps one conversation from asking, others hear nothing.
    """

    name = "model_unavailable"

    def __init__(
        self, kind: str, *, again: bool = False, after: float | None = None, blamed: bool = True
    ) -> None:
        super().__init__(f"the model did not answer: {kind}", kind=kind)
        self.kind, self.again, self.after, self.blamed = kind, again, after, blamed


class Unreadable(AgentError):
    """A reply that breaks the schema: by which rule, quoting nothing of it."""

    name = "model_unavailable"

    def __init__(self, rule: str) -> None:
        super().__init__(f"a model's reply cannot be read: {rule}", rule=rule)
        self.rule = rule


class ModelUnusable(AgentError):
    """The files of a model cannot be loaded, though they are the right ones: its library does not fit."""

    name = "model_unusable"

    def __init__(self, model: str, rule: str) -> None:
        super().__init__(f"the model {model} cannot be loaded: {rule}", model=model, rule=rule)


class UnreadableLine(AgentError):
    """A line that is no record of a conversation: where and why, quoting nothing."""

    name = "invalid_field"

    def __init__(self, field: str, rule: str, record_id: str | int | float | None = None) -> None:
        super().__init__(f"{field}: {rule}", field=field, rule=rule)
        self.record_id = record_id


class ToolRefused(AgentError):
    """A tool cannot be used like this: which one, and which rule is broken."""

    name = "tool_failed"

    def __init__(self, tool: str, rule: str) -> None:
        super().__init__(f"the tool {tool} was refused: {rule}", tool=tool, rule=rule)
        self.rule = rule
