"""The requests that models got for a message, exactly as they were sent, compared with the turn before.

For Letta, it is what we sent to the Letta server; the server makes the prompt of the model from it.
"""

import json
import re
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final

from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.turn.model_calls import request_text
from orchestrator.store.rows import ModelCall

_LINE_BREAK: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\n")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: `request` as it was sent, `readable` with real line breaks.

    `previous` is the readable request with the same role in the turn before, `diff` what differs. Texts that
    were erased are null.
    """

    id: str
    number: int
    role: str
    model: str
    outcome: str
    prompt_tokens: int
    completion_tokens: int
    digest: str
    request: str | None
    readable: str | None
    previous: str | None
    diff: str | None


def requests_for(tx: Transaction, message_id: str, previous_id: str | None) -> tuple[ModelRequest, ...]:
    """The requests for a message in order, each compared with the one for the message before."""
    before: dict[str, ModelCall] = {}
    for call in tx.model_calls.of_message(previous_id) if previous_id else ():
        before[call.role] = call  # the last request with each role
    return tuple(_request(call, before.get(call.role)) for call in tx.model_calls.of_message(message_id))


def readable(request: str | None) -> str | None:
    """A request for people to read."""
    if request is None:
        return None
    try:
        text = json.dumps(json.loads(request), ensure_ascii=False, indent=2)
    except ValueError:
        return request
    return _LINE_BREAK.sub(lambda found: f"{found[1]}\n", text)


def _request(call: ModelCall, before: ModelCall | None) -> ModelRequest:
    exact = request_text(call) or None
    now, then = readable(exact), readable(request_text(before) or None) if before else None
    return ModelRequest(
        id=call.id,
        number=call.number,
        role=call.role,
        model=call.model,
        outcome=call.outcome,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        digest=call.digest,
        request=exact,
        readable=now,
        previous=then,
        diff=None if now is None or then is None else _diff(then, now),
    )


def _diff(before: str, now: str) -> str:
    lines = unified_diff(before.split("\n"), now.split("\n"), "turn before", "this turn", n=2, lineterm="")
    return "\n".join(lines)
