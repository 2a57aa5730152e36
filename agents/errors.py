"""The errors of the agents. None of them quotes what a person wrote.

AgentError
├── UnknownKey      agents.toml has a key that does not exist
├── BadRoster       agents.toml has an invalid value
├── BadRules        a file of config/safety/ has an invalid value
├── BrainFailed     a brain gave no answer, or no usable one
│   └── AnswerCut   an answer broke off after some of it was sent
├── ModelTrouble    a model did not answer; says whether it may be asked again
├── UnreadableReply a model's reply breaks the schema it was given
├── UnreadableLine  a line of input is not a record of a conversation
├── ToolRefused     a tool does not exist, or does not take these arguments
├── ModelUnusable   the files of the embedding model cannot be loaded
└── EmbeddingFailed an embedding endpoint gave no vectors

`name` and `facts` fit the row of the same name in the orchestrator's table of errors.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar


class AgentError(Exception):
    """Base of this package's errors. Facts are our own names and rules, never what a person wrote."""

    name: ClassVar[str]

    def __init__(self, text: str, **facts: int | str) -> None:
        super().__init__(text)
        self.facts: Mapping[str, int | str] = MappingProxyType(facts)


class UnknownKey(AgentError):
    """A configuration file has an unknown key. A typing error would otherwise go unnoticed."""

    name = "unknown_setting"

    def __init__(self, where: str, key: str) -> None:
        hint = "Remove it, or correct its name."
        super().__init__(f"{where} has a key {key} that does not exist", where=where, key=key, hint=hint)


class BadRoster(AgentError):
    """A configuration file has an invalid value: the file, the key and the rule it breaks."""

    name = "bad_setting"

    def __init__(self, where: str, key: str, rule: str) -> None:
        super().__init__(f"{where}, {key}: {rule}", where=where, key=key, rule=rule)


class BadRules(BadRoster):
    """A rule of the safety guard is invalid. The server does not start without its guard."""


class BrainFailed(AgentError):
    """A brain could not do its part. The person's message is kept; another attempt may work."""

    name = "model_unavailable"

    def __init__(self, brain: str, part: str) -> None:
        super().__init__(f"the brain {brain} failed to {part}", brain=brain, part=part)


class AnswerCut(BrainFailed):
    """An answer broke off after whole sentences were sent. They stay; no other brain continues them."""


class ModelTrouble(AgentError):
    """A model, or the server in front of it, did not answer.

    `retryable`: it may be asked again, because nothing was done or doing it twice does no harm.
    `retry_after`: how many seconds the server asked us to wait first.
    `counts_against_model`: the model itself failed, so the circuit breaker counts it. False for a cause that
    lies in one conversation.
    `named`: the fields of our request that the refusal names.
    """

    name = "model_unavailable"

    def __init__(
        self,
        kind: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        counts_against_model: bool = True,
        named: Iterable[str] = (),
    ) -> None:
        super().__init__(f"the model did not answer: {kind}", kind=kind)
        self.kind, self.retryable, self.retry_after = kind, retryable, retry_after
        self.counts_against_model, self.named = counts_against_model, frozenset(named)


class UnreadableReply(AgentError):
    """A model's reply breaks its schema. Names the broken rule and quotes nothing of the reply."""

    name = "model_unavailable"

    def __init__(self, rule: str) -> None:
        super().__init__(f"a model's reply cannot be read: {rule}", rule=rule)
        self.rule = rule


class ModelUnusable(AgentError):
    """The files of the embedding model are the right ones, and its library cannot load them."""

    name = "model_unusable"

    def __init__(self, model: str, rule: str) -> None:
        super().__init__(f"the model {model} cannot be loaded: {rule}", model=model, rule=rule)


class EmbeddingFailed(AgentError):
    """An embedding endpoint gave no usable vectors. Words still find memories."""

    name = "embedding_failed"

    def __init__(self, model: str, rule: str) -> None:
        super().__init__(f"the embedding model {model}: {rule}", model=model, rule=rule)


class UnreadableLine(AgentError):
    """A line of input is not a record of a conversation. Names the field and the rule, quotes nothing."""

    name = "invalid_field"

    def __init__(self, field: str, rule: str, record_id: str | int | float | None = None) -> None:
        super().__init__(f"{field}: {rule}", field=field, rule=rule)
        self.record_id = record_id


class ToolRefused(AgentError):
    """A tool cannot be used like this: the tool and the rule that is broken."""

    name = "tool_failed"

    def __init__(self, tool: str, rule: str) -> None:
        super().__init__(f"the tool {tool} was refused: {rule}", tool=tool, rule=rule)
        self.rule = rule
