"""What changed between two versions of a block. Pure functions only."""

import json
from collections.abc import Iterator, Mapping
from difflib import ndiff
from typing import Any

from memory_blocks import summary_text
from memory_blocks.models import Blocks, ConversationHistory, Label, Model


def changed_paths(label: Label, before: Blocks, after: Blocks) -> tuple[str, ...]:
    """The paths of the fields that differ (`turns.turn_3`, `session_info.last_activity`).

    For the summary, the names of the sections that differ.
    """
    old, new = getattr(before, label.value), getattr(after, label.value)
    if label is Label.CONTEXT_SUMMARY:
        return tuple(_differences(summary_text.sections(old), summary_text.sections(new)))
    return tuple(_differing_fields(old, new, ""))


def _differing_fields(old: Model, new: Model, path: str) -> Iterator[str]:
    for name in type(new).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if name == "turns" and isinstance(old, ConversationHistory) and isinstance(new, ConversationHistory):
            turns = _differences(_by_id(old), _by_id(new))  # by id, because rotation moves every index
            yield from (f"turns.{turn}" for turn in turns)
        elif isinstance(before, Model) and type(before) is type(after):
            yield from _differing_fields(before, after, f"{path}{name}.")
        elif before != after:
            yield path + name


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    return (key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key))


def _by_id(history: ConversationHistory) -> Mapping[str, str]:
    return {f"turn_{turn.turn_id}": turn.text for turn in history.turns}


def line_changes(label: Label, old: str, new: str) -> Iterator[tuple[str, str]]:
    """The differences between two texts of a block for people to read: a sign (`+`, `-`, `~`) and a line.

    JSON is compared by path, with turns by their id; the summary is compared line by line.
    """
    if label is Label.CONTEXT_SUMMARY:
        for line in ndiff(old.split("\n"), new.split("\n")):
            if line[0] in "+-":
                yield line[0], line[2:]
        return
    before, after = dict(_leaves(json.loads(old), "")), dict(_leaves(json.loads(new), ""))
    for path in dict.fromkeys((*before, *after)):
        if path not in after:
            yield "-", f"{path}: {before[path]}"
        elif path not in before:
            yield "+", f"{path}: {after[path]}"
        elif before[path] != after[path]:
            yield "~", f"{path}: {before[path]} → {after[path]}"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every value that contains no other value: its path, and the value as JSON."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            step = f"turn_{inner['turn_id']}" if isinstance(inner, dict) and "turn_id" in inner else at
            yield from _leaves(inner, f"{path}.{step}")
    else:
        yield path, json.dumps(value, ensure_ascii=False)
