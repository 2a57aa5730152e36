"""Requests to a model. How a structured reply is parsed is in `understanding`."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agents.models.replies import Schema
from agents.models.understanding import labelled, understanding_schema
from agents.ports import Brief, Situation
from agents.roster import Roster
from agents.tools.toolbox import Tool
from memory_blocks.facts import CurrentFact
from memory_blocks.models import Blocks, Label, render

EXTRACTOR: Final = "extractor"
"""The role with a structured reply. A model that answers has its specialist's type as its role."""


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


def understand_request(prompt: str, message: str, situation: Situation, roster: Roster) -> ModelRequest:
    """Ask what a message means, which facts it changes and where it belongs."""
    blocks = situation.blocks
    session = blocks.active_session
    agents = "\n".join(f"{each.agent_type}: {each.description}" for each in roster.agents.values())
    facts = "\n".join(f"{label}: {_fact_line(fact)}" for label, fact in labelled(situation.facts).items())
    parts = (
        _tag("facts", facts or "none"),
        _tag("running_topic", session.conversation_state.active_topic or "none"),
        _tag("last_agent", session.agent_context.last_intent or "none"),
        _tag("agents", agents),
        _tag("message", message),
    )
    return _request(EXTRACTOR, prompt, blocks, "\n".join(parts), understanding_schema(roster.intents))


def _fact_line(fact: CurrentFact) -> str:
    """A fact in one line: whose, what, about what, when, and whether it is doubtful."""
    about = f" of {fact.about}" if fact.about else ""
    when = f", {fact.true_when}" if fact.true_when else ""
    doubt = "" if fact.sure else ", not sure"
    return f"{fact.subject}: {fact.kind}{about} = {fact.value}{when}{doubt}"


def answer_request(brief: Brief, tools: Sequence[Tool]) -> ModelRequest:
    """Ask a specialist for its answer."""
    parts = [
        _tag("message", brief.message),
        _tag("enriched_message", brief.understanding.enrichment.enriched_message),
        _tag("intent", brief.understanding.intent.intent),
    ]
    if remembered := "\n".join(hit.content for hit in brief.recalled.memories):
        parts.append(_tag("remembered", remembered))
    if brief.specialist.red_lines:
        parts.append(_tag("never", "\n".join(f"Never {line.never}." for line in brief.specialist.red_lines)))
    if brief.said:
        parts.append(_continue_after(brief.said))
    role, prompt = brief.specialist.agent_type, brief.prompt.text
    return _request(role, prompt, brief.situation.blocks, "\n".join(parts), None, tuple(tools))


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
