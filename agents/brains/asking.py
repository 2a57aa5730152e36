"""What a model is told, and how its structured replies are read: none is believed that breaks the schema."""

import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from agents.errors import Unreadable
from agents.ports import Brief
from agents.roster import Roster
from agents.tools.toolbox import Tool
from agents.values import Enrichment, Intent, Value
from memory_blocks.models import Blocks, Label, Sentiment, render

EXTRACTOR: Final = "extractor"
CLASSIFIER: Final = "classifier"
"""The roles of a model that decides; one that speaks has its specialist's type as its role."""

MOST_REPLY: Final = 16_000
"""A structured reply with more characters is not read."""

Kind = TypeVar("Kind", bound=Value)

_MOST_CONTEXT: Final = 600
_FENCED: Final = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL | re.IGNORECASE)
_UNSAYABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Schema:
    """What a structured reply must be."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to a model. Some know `prompt`, `memory` and `schema` already, by who they are."""

    role: str
    conversation_id: str
    prompt: str
    memory: str
    message: str
    schema: Schema | None = None
    tools: tuple[Tool, ...] = ()


# --- what is told -------------------------------------------------------------------------------------------


def to_extract(prompt: str, message: str, blocks: Blocks) -> Ask:
    """Ask what a message means in the light of the blocks."""
    return _ask(EXTRACTOR, prompt, blocks, _tag("message", message), ENRICHMENT)


def to_classify(prompt: str, enrichment: Enrichment, blocks: Blocks, roster: Roster) -> Ask:
    """Ask where an enriched message belongs."""
    session = blocks.active_session
    told = (
        _tag("enriched_message", enrichment.enriched_message),
        _tag("running_topic", session.conversation_state.active_topic or "none"),
        _tag("last_agent", session.agent_context.last_intent or "none"),
        _tag(
            "agents", "\n".join(f"{each.agent_type}: {each.description}" for each in roster.agents.values())
        ),
    )
    return _ask(CLASSIFIER, prompt, blocks, "\n".join(told), intent_schema(roster.intents))


def to_answer(brief: Brief, tools: Sequence[Tool]) -> Ask:
    """Ask a specialist for its answer."""
    told = [
        _tag("message", brief.message),
        _tag("enriched_message", brief.enrichment.enriched_message),
        _tag("intent", brief.intent.intent),
    ]
    if remembered := "\n".join(hit.content for hit in brief.recalled.memories):
        told.append(_tag("remembered", remembered))
    if brief.specialist.red_lines:
        told.append(_tag("never", "\n".join(f"Never {line.never}." for line in brief.specialist.red_lines)))
    if brief.said:
        told.append(_after(brief.said))
    role, prompt = brief.specialist.agent_type, brief.prompt.text
    return _ask(role, prompt, brief.blocks, "\n".join(told), None, tuple(tools))


def to_repair(message: str, rule: str) -> str:
    """The same question once more, after a reply that could not be read."""
    return (
        f"{message}\nYour last reply could not be read: {rule}. Reply with one JSON object and nothing else."
    )


def with_results(message: str, said: str, results: Sequence[tuple[str, str]]) -> str:
    """The same question with what tools gave, for a model that does not remember having asked for them.

    Nor does it know what it `said` before that, which was heard already.
    """
    told = "\n".join(f"{name}: {result}" for name, result in results)
    return "\n".join([message, _tag("tool_results", told), *([_after(said)] if said.strip() else ())])


def _after(said: str) -> str:
    return f"{_tag('said_so_far', said)}\nGo on right after what was said so far, without repeating it."


def _ask(
    role: str,
    prompt: str,
    blocks: Blocks,
    message: str,
    schema: Schema | None,
    tools: tuple[Tool, ...] = (),
) -> Ask:
    conversation_id = blocks.active_session.session_info.session_id
    return Ask(role, conversation_id, prompt, shown(blocks), message, schema, tools)


def shown(blocks: Blocks) -> str:
    """The four blocks as a model reads them."""
    return "\n".join(f"<{label}>\n<value>\n{render(label, blocks)}\n</value>\n</{label}>" for label in Label)


def _tag(name: str, text: str) -> str:
    """What others wrote, marked as such: it cannot end its own mark."""
    return f"<{name}>\n{html.escape(text, quote=False)}\n</{name}>"


# --- what comes back ----------------------------------------------------------------------------------------


def read_enrichment(reply: str) -> Enrichment:
    """The enrichment that a reply is, or `Unreadable`."""
    found = _read(Enrichment, reply)
    return found.model_copy(update={"previous_context": found.previous_context[:_MOST_CONTEXT]})


def read_intent(reply: str, intents: Collection[str]) -> Intent:
    """The intent that a reply is, or `Unreadable`; one that does not exist is none."""
    found = _read(Intent, reply)
    if found.intent not in intents:
        raise Unreadable("intent is none of the listed ones")
    return found.model_copy(update={"reasoning": found.reasoning[:_MOST_CONTEXT]})


def sayable(text: str) -> str:
    """A model's words without what no frame and no database can hold."""
    return _UNSAYABLE.sub("", text)


def _read(kind: type[Kind], reply: str) -> Kind:
    if len(reply) > MOST_REPLY:
        raise Unreadable("it is too long")
    if "\\u0000" in reply:
        raise Unreadable("it has a NUL")
    fenced = _FENCED.fullmatch(reply)
    try:
        return kind.model_validate_json(sayable(fenced[1] if fenced else reply))
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False, include_context=False)[0]
        rule = f"{'.'.join(map(str, first['loc'])) or 'it'} breaks the rule {first['type']}"
    raise Unreadable(rule)


# --- schemas, strict as model endpoints want them: every property is required -------------------------------

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_SHARE: Final[Mapping[str, Any]] = {"type": "number"}


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
        quality=_SHARE,
    ),
)
"""What the extractor replies with."""


def intent_schema(intents: Collection[str]) -> Schema:
    """What the classifier replies with."""
    return Schema(
        "intent",
        _object(intent={"type": "string", "enum": sorted(intents)}, confidence=_SHARE, reasoning=_TEXT),
    )
