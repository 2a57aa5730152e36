"""What a model is shown in a request, of ours or of Letta's: the model endpoint for tests answers from it."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from agents.models.requests import CONTINUE
from agents.ports import Situation
from agents.roster import Roster, Specialist
from agents.values import COORDINATOR
from memory_blocks.edits import empty
from memory_blocks.errors import BlockInvalid
from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import (
    AgentResponse,
    Blocks,
    Conversation,
    ConversationHistory,
    Label,
    Turn,
    TurnStatus,
    UserMessage,
    from_texts,
)

READS: Final = "# Context extractor"
"""How the prompt begins that asks for a reading, not for an answer."""

_INSTRUCTING_ROLES: Final = ("system", "developer")
_START: Final = datetime.fromtimestamp(0, UTC)
_FACT_LINE: Final = re.compile(r"^(f\d+|-) (.+?) · (\w+)(?: of (.+?))?: (.+) \([^()]*\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class View:
    """What a request shows. Without blocks and without a dialogue there is no situation.

    A Letta agent has the facts before the message in its blocks, and is sent the `new_facts` of the message.
    Any other model is shown all of them at once, so that it has no `new_facts`.
    """

    system: str
    message: str
    said: str
    tool_results: tuple[str, ...]
    situation: Situation | None
    new_facts: tuple[CurrentFact, ...] = ()

    @property
    def asks_for_reading(self) -> bool:
        """Whether the model shall say what a message means."""
        return READS in self.system

    def specialist(self, roster: Roster) -> Specialist:
        """The specialist whose prompt it is."""
        named = (each for each in roster.agents.values() if f"# {each.display_name}\n" in self.system)
        return next(named, roster.agents[COORDINATOR])


def view_of(messages: Sequence[Mapping[str, Any]]) -> View:
    """What these messages of a request show."""
    system = "\n".join(text_of(each) for each in messages if each["role"] in _INSTRUCTING_ROLES)
    results = [text_of(each) for each in messages if each["role"] == "tool"]
    spoken = [each for each in messages if each["role"] in ("user", "assistant") and text_of(each)]
    said = ""
    if len(spoken) > 1 and text_of(spoken[-1]) == CONTINUE:
        said, spoken = text_of(spoken[-2]), spoken[:-2]
    while spoken and spoken[-1]["role"] != "user":
        spoken = spoken[:-1]
    last = text_of(spoken[-1]) if spoken else ""
    blocks = _blocks(system)
    if blocks is None and "<known>" in system:
        blocks = _with_dialogue(spoken[:-1])
    if blocks is not None and (since := tagged("since", last)):
        blocks = _with_latest(blocks, since)
    facts = tagged("facts", last) or tagged("facts", system)
    situation = None if blocks is None else _situation(blocks, facts)
    new = () if situation is None else _shown_facts(tagged("new_facts", last), situation.now, "new")
    return View(
        system,
        tagged("message", last) or last,
        said or tagged("said_so_far", last),
        (*results, *tagged("tool_results", last).splitlines()),
        situation,
        new,
    )


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def tagged(name: str, text: str) -> str:
    """The content of `<name>` in a text; empty if there is none."""
    found = re.search(rf"<{name}>\n(.*?)\n</{name}>", text, re.S)
    return html.unescape(found[1]) if found else ""


def _blocks(prompt: str) -> Blocks | None:
    """The four blocks in a prompt of Letta's; None if they are not all there.

    If all are blank, the conversation has had no turn yet.
    """
    patterns = {
        label: rf"<{label}>(?:(?!</{label}>).)*?<value>\n(.*?)\n</value>\s*</{label}>" for label in Label
    }
    found = {label: re.search(pattern, prompt, re.S) for label, pattern in patterns.items()}
    texts = {label: match[1] for label, match in found.items() if match}
    if len(texts) == len(Label) and not any(text.strip() for text in texts.values()):
        return empty(Conversation("none", "none", _START), DEFAULTS)
    try:
        return from_texts(texts)
    except (BlockInvalid, KeyError):
        return None


def _with_dialogue(spoken: Sequence[Mapping[str, Any]]) -> Blocks:
    """Blocks whose history is the dialogue of a request."""
    turns: list[Turn] = []
    for message in spoken:
        number, text = len(turns) + 1, text_of(message)
        if message["role"] == "user":
            said = UserMessage(content=text, message_id=f"message-{number}")
            turns.append(
                Turn(turn_id=number, timestamp=_START, user_message=said, turn_status=TurnStatus.IN_PROGRESS)
            )
        elif turns:
            answer = AgentResponse(agent_type=COORDINATOR, content=text, response_id=f"answer-{number}")
            done = {"agent_response": answer, "turn_status": TurnStatus.COMPLETED}
            turns[-1] = turns[-1].model_copy(update=done)
    blocks = empty(Conversation("none", "none", _START), DEFAULTS)
    history = ConversationHistory(
        session_id="none", turns=tuple(turns), total_turns=len(turns), last_updated=_START
    )
    return replace(blocks, conversation_history=history)


def _with_latest(blocks: Blocks, since: str) -> Blocks:
    """The blocks of an agent with the latest turns, which only its message has."""
    roles = {"Person": "user", "Answer": "assistant"}
    said = re.findall(r"^(Person|Answer): (.*?)(?=^(?:Person|Answer): |\Z)", since, re.S | re.M)
    latest = _with_dialogue([{"role": roles[who], "content": text.strip()} for who, text in said])
    history, turns = blocks.conversation_history, latest.conversation_history.turns
    first = history.total_turns + 1
    numbered = [turn.model_copy(update={"turn_id": first + number}) for number, turn in enumerate(turns)]
    update = {"turns": (*history.turns, *numbered), "total_turns": history.total_turns + len(turns)}
    return replace(blocks, conversation_history=history.model_copy(update=update))


def _situation(blocks: Blocks, facts: str) -> Situation:
    """The blocks, and the facts that are shown beside them, or else those in them."""
    now = blocks.active_session.session_info.last_activity
    return Situation(blocks, _shown_facts(facts, now, "f") or _facts_in(blocks), now)


def _shown_facts(lines: str, now: datetime, prefix: str) -> tuple[CurrentFact, ...]:
    """Parse facts from lines. The id of a fact is its label; without labels, the prefix and a number."""
    return current_facts(
        FactChange(
            id=label if label != "-" else f"{prefix}{number}",
            op=Op.ADD,
            kind=kind,
            subject=subject,
            about=about or "",
            value=value[:200],
            said_at=now,
            decided_by=Decider.LOCAL,
        )
        for number, (label, subject, kind, about, value) in enumerate(_FACT_LINE.findall(lines), 1)
    )


def _facts_in(blocks: Blocks) -> tuple[CurrentFact, ...]:
    """The facts that a Letta agent sees in its blocks."""
    return current_facts(
        FactChange(
            id=f"block{number}",
            op=Op.ADD,
            kind=fact.kind,
            subject=fact.subject or "person",
            about=fact.about or "",
            value=fact.value,
            said_at=blocks.active_session.session_info.last_activity,
            turn=fact.turn,
            decided_by=Decider.LOCAL,
        )
        for number, fact in enumerate(blocks.active_session.facts or (), 1)
    )
