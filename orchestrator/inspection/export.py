"""Everything that is stored about a conversation, as JSON, JSON Lines, CSV or Markdown."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from memory_blocks.ledger.ledger import Ledger
from memory_blocks.models import Label
from orchestrator.inspection.blocks import BlockInspector
from orchestrator.inspection.looks import Look, trace_text
from orchestrator.ops.clock import as_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.turn.model_calls import request_text
from orchestrator.store.rows import Conversation, ModelCall, Note, Retrieval, SafetyEvent, Turn, TurnRun

MESSAGE_COLUMNS: Final = ("sequence_number", "message_role", "created_at", "completion_status", "contents")
_LISTS: Final = (
    "messages",
    "turns",
    "notes",
    "archived_turns",
    "traces",
    "tool_uses",
    "safety_events",
    "runs",
    "retrievals",
    "model_requests",
)
_NAMES: Final = {"user": "Person", "assistant": "Answer", "system": "System"}


def gather(tx: Transaction, ledger: Ledger, conversation: Conversation, look: Look) -> dict[str, Any]:
    """Read all of it. The blocks are read through the ledger; the rest leaves one trace."""
    here = conversation.id
    trace_text(tx, here, look, "the whole conversation, to export it")
    inspector = BlockInspector(tx, ledger, conversation, look)
    blocks = {label.value: _block(inspector, label) for label in Label}
    return {
        "conversation": _plain(asdict(conversation)),
        "messages": _rows(tx.messages.in_order(here)),
        "turns": _rows(tx.unit.find(Turn, "number", conversation_id=here)),
        "notes": _rows(tx.unit.find(Note, "created_at", "id", conversation_id=here)),
        "blocks": blocks,
        "archived_turns": [json.loads(turn.value) for turn in tx.blocks.archived(here)],
        "traces": _rows(tx.traces.of_conversation(here)),
        "tool_uses": _rows(tx.tools.of_conversation(here)),
        "safety_events": _rows(tx.unit.find(SafetyEvent, "created_at", "id", conversation_id=here)),
        "runs": [_run(tx, run) for run in tx.unit.find(TurnRun, "created_at", "id", conversation_id=here)],
        "retrievals": _rows(tx.unit.find(Retrieval, "created_at", "id", conversation_id=here)),
        "model_requests": [
            _request(call)
            for call in tx.unit.find(ModelCall, "created_at", "number", "id", conversation_id=here)
        ],
    }


def as_json(whole: Mapping[str, Any]) -> str:
    """One JSON object."""
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def as_json_lines(whole: Mapping[str, Any]) -> str:
    """One JSON object per record, each with its kind."""
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in _records(whole))


def as_csv(whole: Mapping[str, Any]) -> str:
    """The messages as a table."""
    text = io.StringIO()
    table = csv.DictWriter(text, MESSAGE_COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    table.writeheader()
    table.writerows(whole["messages"])
    return text.getvalue()


def as_markdown(whole: Mapping[str, Any]) -> str:
    """The messages for people to read, and the summary of the conversation."""
    about = whole["conversation"]
    lines = [f"# {about['title'] or 'Conversation'}", "", f"{about['id']}, begun {about['created_at']}", ""]
    for message in whole["messages"]:
        quoted = message["contents"].replace("\n", "\n> ")
        lines += [f"**{_NAMES[message['message_role']]}**, {message['created_at']}", "", f"> {quoted}", ""]
    summary = whole["blocks"][Label.CONTEXT_SUMMARY.value]["block"]
    if summary:
        lines += ["## Summary", "", "```", summary, "```", ""]
    return "\n".join(lines)


FORMATS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = MappingProxyType(
    {"json": as_json, "jsonl": as_json_lines, "csv": as_csv, "md": as_markdown}
)


def _block(inspector: BlockInspector, label: Label) -> dict[str, Any]:
    found = inspector.text(label)
    value = found.text if label is Label.CONTEXT_SUMMARY else json.loads(found.text)
    return {"revision": found.facts.revision, "digest": found.facts.digest, "block": value}


def _records(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"kind": "conversation", **whole["conversation"]}
    for label, block in whole["blocks"].items():
        yield {"kind": "block", "label": label, **block}
    for name in _LISTS:
        for row in whole[name]:
            yield {"kind": name.removesuffix("s"), **row}


def _run(tx: Transaction, run: TurnRun) -> dict[str, Any]:
    """An attempt at a turn with its stations."""
    stations = [
        {"station": each.station, "start_ms": each.start_ms, "milliseconds": each.milliseconds}
        for each in tx.runs.stations(run.id)
    ]
    return {**_plain(asdict(run)), "stations": stations}


def _request(call: ModelCall) -> dict[str, Any]:
    """What a model was sent, as text; None if it was erased."""
    row = {name: value for name, value in asdict(call).items() if name != "packed"}
    return {**_plain(row), "request": request_text(call)}


def _rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [_plain(asdict(row)) for row in rows]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON can write it; times as on the wire."""
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in row.items()}
