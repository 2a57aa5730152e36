"""Requests to a model, and the parsing of its structured replies. A reply must fit its schema."""

import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from agents.errors import UnreadableReply
from agents.ports import Brief
from agents.roster import Roster
from agents.tools.toolbox import Tool
from agents.values import Enrichment, Intent, Value
from memory_blocks.models import Blocks, Label, Sentiment, render

EXTRACTOR: Final = "extractor"
CLASSIFIER: Final = "classifier"
"""The roles with structured replies. A model that answers has its specialist's type as its role."""

MAX_REPLY: Final = 16_000
"""Maximum length of a structured reply."""

Parsed = TypeVar("Parsed", bound=Value)

_MAX_TEXT: Final = 600
"""Maximum length of `previous_context` and `reasoning`. Longer text is cut."""

_FENCED: Final = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL | re.IGNORECASE)
_CONTROL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Schema:
    """The JSON Schema of a structured reply."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    A Letta agent already has `prompt`, `memory` and `schema` as its own settings, and is sent only `message`.
    """

    role: str
    conversation_id: str
    prompt: str
    memory: str
    message: str
    schema: Schema | None = None
    tools: tuple[Tool, ...] = ()


# --- requests -----------------------------------------------------------------------------------------------


def extract_request(prompt: str, message: str, blocks: Blocks) -> ModelRequest:
    """Ask what a message means, given the blocks."""
    return _request(EXTRACTOR, prompt, blocks, _tag("message", message), ENRICHMENT)


def classify_request(prompt: str, enrichment: Enrichment, blocks: Blocks, roster: Roster) -> ModelRequest:
    """Ask which intent an enriched message has."""
    session = blocks.active_session
    agents = "\n".join(f"{each.agent_type}: {each.description}" for each in roster.agents.values())
    parts = (
        _tag("enriched_message", enrichment.enriched_message),
        _tag("running_topic", session.conversation_state.active_topic or "none"),
        _tag("last_agent", session.agent_context.last_intent or "none"),
        _tag("agents", agents),
    )
    return _request(CLASSIFIER, prompt, blocks, "\n".join(parts), intent_schema(roster.intents))


def answer_request(brief: Brief, tools: Sequence[Tool]) -> ModelRequest:
    """Ask a specialist for its answer."""
    parts = [
        _tag("message", brief.message),
        _tag("enriched_message", brief.enrichment.enriched_message),
        _tag("intent", brief.intent.intent),
    ]
    if remembered := "\n".join(hit.content for hit in brief.recalled.memories):
        parts.append(_tag("remembered", remembered))
    if brief.specialist.red_lines:
        parts.append(_tag("never", "\n".join(f"Never {line.never}." for line in brief.specialist.red_lines)))
    if brief.said:
        parts.append(_continue_after(brief.said))
    role, prompt = brief.specialist.agent_type, brief.prompt.text
    return _request(role, prompt, brief.blocks, "\n".join(parts), None, tuple(tools))


def message_with_repair(message: str, rule: str) -> str:
    """The same message, with a note that the last reply broke this rule."""
    return (
        f"{message}\nYour last reply could not be read: {rule}. Reply with one JSON object and nothing else."
    )


def message_with_results(message: str, said: str, results: Sequence[tuple[str, str]]) -> str:
    """The same message with the results of tools, for a model that keeps no messages.

    Such a model has also forgotten what it `said` before it called the tools, which was already sent.
    """
    results_text = "\n".join(f"{name}: {result}" for name, result in results)
    continued = [_continue_after(said)] if said.strip() else []
    return "\n".join([message, _tag("tool_results", results_text), *continued])


def _continue_after(said: str) -> str:
    return f"{_tag('said_so_far', said)}\nGo on right after what was said so far, without repeating it."


def _request(
    role: str,
    prompt: str,
    blocks: Blocks,
    message: str,
    schema: Schema | None,
    tools: tuple[Tool, ...] = (),
) -> ModelRequest:
    conversation_id = blocks.active_session.session_info.session_id
    return ModelRequest(role, conversation_id, prompt, _render_blocks(blocks), message, schema, tools)


def _render_blocks(blocks: Blocks) -> str:
    """The four blocks as a model reads them."""
    return "\n".join(f"<{label}>\n<value>\n{render(label, blocks)}\n</value>\n</{label}>" for label in Label)


def _tag(name: str, text: str) -> str:
    """Text of others inside a tag. It is escaped, so that it cannot close its own tag."""
    return f"<{name}>\n{html.escape(text, quote=False)}\n</{name}>"


# --- replies ------------------------------------------------------------------------------------------------


def parse_enrichment(reply: str) -> Enrichment:
    """Parse a reply of the extractor, or raise `UnreadableReply`."""
    found = _parse(Enrichment, reply)
    return found.model_copy(update={"previous_context": found.previous_context[:_MAX_TEXT]})


def parse_intent(reply: str, intents: Collection[str]) -> Intent:
    """Parse a reply of the classifier. Raises `UnreadableReply`, also for an intent that does not exist."""
    found = _parse(Intent, reply)
    if found.intent not in intents:
        raise UnreadableReply("intent is none of the listed ones")
    return found.model_copy(update={"reasoning": found.reasoning[:_MAX_TEXT]})


def without_control_characters(text: str) -> str:
    """A model's text without characters that frames and databases cannot hold."""
    return _CONTROL_CHARACTERS.sub("", text)


def _parse(kind: type[Parsed], reply: str) -> Parsed:
    if len(reply) > MAX_REPLY:
        raise UnreadableReply("it is too long")
    if "\\u0000" in reply:
        raise UnreadableReply("it has a NUL")
    fenced = _FENCED.fullmatch(reply)
    try:
        return kind.model_validate_json(without_control_characters(fenced[1] if fenced else reply))
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False, include_context=False)[0]
        rule = f"{'.'.join(map(str, first['loc'])) or 'it'} breaks the rule {first['type']}"
    raise UnreadableReply(rule)


# --- schemas: strict endpoints require every property to be listed as required ------------------------------

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_NUMBER: Final[Mapping[str, Any]] = {"type": "number"}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


ENRICHMENT: Final = Schema(
    "enrichment",
    _object(
        previous_context=_TEXT,
        enriched_message=_TEXT,
        relevant_history=_TEXTS,
        topic=_TEXT,
        trigger=_TEXT,
        phase=_TEXT,
        facts={"type": "array", "items": _object(kind=_TEXT, value=_TEXT, turn={"type": "integer"})},
        answers=_TEXTS,
        corrected={"type": "boolean"},
        sentiment={"type": "string", "enum": [each.value for each in Sentiment]},
        quality=_NUMBER,
    ),
)
"""Schema of the extractor's reply."""


def intent_schema(intents: Collection[str]) -> Schema:
    """Schema of the classifier's reply."""
    return Schema(
        "intent",
        _object(intent={"type": "string", "enum": sorted(intents)}, confidence=_NUMBER, reasoning=_TEXT),
    )
