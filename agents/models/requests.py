"""Requests to a model: what does not change, what is known, the dialogue and the message, within a budget."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.models.known import facts_before, known_for_answer, known_for_reading, news_of_turn
from agents.models.replies import Schema
from agents.models.servers.http import encoded
from agents.models.understanding import understanding_schema
from agents.models.usage import estimated_tokens
from agents.ports import Brief, Situation
from agents.roster import Roster
from agents.tools.toolbox import Tool
from memory_blocks.models import Blocks, Turn

EXTRACTOR: Final = "extractor"
"""The role with a structured reply. A model that answers has its specialist's type as its role."""

USER: Final = "user"
ASSISTANT: Final = "assistant"

CONTINUE: Final = "(Continue your answer right after its last word, without repeating any of it.)"
"""The last message of a request that continues an answer."""

MOST_TOKENS: Final = 4_000
"""How many tokens a request may have, if the settings say nothing else."""

_LATEST_TURNS: Final = 5
"""How many turns a message to an agent can have, if the agent's blocks lack them."""
_ALWAYS_KEPT: Final = 2
"""How many of the latest utterances of the dialogue are kept in any case, because they hold the question."""
_MAX_UTTERANCE: Final = 1_600
"""A longer utterance of the dialogue loses its middle. The newest message never does."""
_MESSAGE_TOKENS: Final = 4
"""What a message costs besides its text."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one side said."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    `instructions` are the same in every turn, so that a provider's cache of prompts holds. The newest message
    ends the `dialogue`. A Letta agent has instructions, blocks and schema as its own settings, and is sent
    only `agent_message`, with some of the `latest_turns` and the `facts` if its blocks lack them.
    """

    role: str
    conversation_id: str
    instructions: str
    known: str
    dialogue: tuple[Utterance, ...]
    agent_message: str
    latest_turns: tuple[str, ...] = ()
    facts: str = ""
    schema: Schema | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def tokens(self) -> int:
        """About how many tokens the request has."""
        return _fixed_tokens(self) + sum(map(_tokens_of, self.dialogue))

    def message_for_agent(self, turns_behind: int) -> str:
        """The message to an agent whose blocks lack that many of the latest turns."""
        if not turns_behind:
            return self.agent_message
        missing = "\n".join(self.latest_turns[-turns_behind:])
        return "\n".join(filter(None, (f"<since>\n{missing}\n</since>", self.facts, self.agent_message)))

    def with_repair(self, rule: str) -> "ModelRequest":
        """The same request, with a note that the last reply broke this rule."""
        note = f"Your last reply could not be read: {rule}. Reply with one JSON object and nothing else."
        *before, last = self.dialogue
        noted = replace(last, text=f"{last.text}\n{note}")
        return replace(self, dialogue=(*before, noted), agent_message=f"{self.agent_message}\n{note}")


def understand_request(
    prompt: str, message: str, situation: Situation, roster: Roster, most_tokens: int = MOST_TOKENS
) -> ModelRequest:
    """Ask what a message means, which facts it changes and where it belongs."""
    known, last = known_for_reading(situation), tag("message", message)
    request = ModelRequest(
        EXTRACTOR,
        _conversation_of(situation.blocks),
        prompt,
        known,
        (Utterance(USER, f"{last}\nReply with the JSON object that says how to read this message."),),
        f"{known}\n{last}",
        _latest_turns(situation.blocks),
        schema=understanding_schema(roster.intents),
    )
    return _with_dialogue(request, situation.blocks, most_tokens)


def answer_request(brief: Brief, tools: Sequence[Tool], most_tokens: int = MOST_TOKENS) -> ModelRequest:
    """Ask a specialist for its answer. The message is sent as it is; the reading of it is only known."""
    last = [Utterance(USER, brief.message)]
    if brief.said:
        last += [Utterance(ASSISTANT, brief.said), Utterance(USER, CONTINUE)]
    parts = [tag("message", brief.message), news_of_turn(brief)]
    if brief.said:
        parts.append(_continue_after(brief.said))
    request = ModelRequest(
        brief.specialist.agent_type,
        _conversation_of(brief.situation.blocks),
        brief.prompt.text,
        known_for_answer(brief),
        tuple(last),
        "\n".join(parts),
        _latest_turns(brief.situation.blocks),
        facts_before(brief.situation),
        tools=tuple(tools),
    )
    return _with_dialogue(request, brief.situation.blocks, most_tokens)


def message_with_results(message: str, said: str, results: Sequence[tuple[str, str]]) -> str:
    """The same message with the results of tools, for a model that keeps no messages.

    Such a model has also forgotten what it `said` before it called the tools, which was already sent.
    """
    results_text = "\n".join(f"{name}: {result}" for name, result in results)
    continued = [_continue_after(said)] if said.strip() else []
    return "\n".join([message, tag("tool_results", results_text), *continued])


def tag(name: str, text: str) -> str:
    """Text of others inside a tag. It is escaped, so that it cannot close its own tag."""
    return f"<{name}>\n{html.escape(text, quote=False)}\n</{name}>"


def _continue_after(said: str) -> str:
    return f"{tag('said_so_far', said)}\nGo on right after what was said so far, without repeating it."


def _conversation_of(blocks: Blocks) -> str:
    return blocks.active_session.session_info.session_id


# --- the dialogue, as much of it as fits --------------------------------------------------------------------


def _with_dialogue(request: ModelRequest, blocks: Blocks, most_tokens: int) -> ModelRequest:
    """The request with the latest utterances before its own. The oldest are left out if they do not fit."""
    earlier = list(_utterances(blocks.conversation_history.turns))
    room = most_tokens - request.tokens
    kept = 0
    for utterance in reversed(earlier):
        room -= _tokens_of(utterance)
        if room < 0 and kept >= _ALWAYS_KEPT:
            break
        kept += 1
    dialogue = earlier[len(earlier) - kept :]
    return replace(request, dialogue=tuple(_alternating([*dialogue, *request.dialogue])))


def _utterances(turns: Sequence[Turn]) -> Iterator[Utterance]:
    for turn in turns:
        yield Utterance(USER, _shortened(turn.user_message.content))
        if turn.agent_response is not None and turn.agent_response.content.strip():
            yield Utterance(ASSISTANT, _shortened(turn.agent_response.content))


def _latest_turns(blocks: Blocks) -> tuple[str, ...]:
    """The latest turns as texts, for an agent whose blocks lack them."""
    return tuple(
        "\n".join(
            f"{'Person' if each.role == USER else 'Answer'}: {html.escape(each.text, quote=False)}"
            for each in _utterances([turn])
        )
        for turn in blocks.conversation_history.turns[-_LATEST_TURNS:]
    )


def _alternating(dialogue: Sequence[Utterance]) -> Iterator[Utterance]:
    """The dialogue beginning with the person, with consecutive utterances of one side joined."""
    pending: Utterance | None = None
    for utterance in dialogue:
        if pending is None:
            pending = utterance if utterance.role == USER else None
        elif pending.role == utterance.role:
            pending = Utterance(pending.role, f"{pending.text}\n\n{utterance.text}")
        else:
            yield pending
            pending = utterance
    if pending is not None:
        yield pending


def _shortened(text: str) -> str:
    if len(text) <= _MAX_UTTERANCE:
        return text
    half = _MAX_UTTERANCE // 2
    return f"{text[:half].rstrip()} […] {text[-half:].lstrip()}"


def _tokens_of(utterance: Utterance) -> int:
    return estimated_tokens(utterance.text) + _MESSAGE_TOKENS


def _fixed_tokens(request: ModelRequest) -> int:
    """The tokens of everything but the dialogue."""
    schema = encoded(request.schema.schema) if request.schema else ""
    tools = "".join(f"{tool.name}{tool.description}{encoded(tool.parameters)}" for tool in request.tools)
    return estimated_tokens(request.instructions + request.known + schema + tools) + _MESSAGE_TOKENS
