"""What changed between two versions of the blocks, by path."""

from collections.abc import Iterator, Mapping

from memory_blocks import summary_text
from memory_blocks.models import Blocks, ConversationHistory, Label, Model


def changed_paths(label: Label, before: Blocks, after: Blocks) -> tuple[str, ...]:
    """Paths of fields (`turns.turn_3`, `session_info.last_activity`), or sections of the summary."""
    old, new = getattr(before, label.value), getattr(after, label.value)
    if label is Label.CONTEXT_SUMMARY:
        return tuple(_differences(summary_text.sections(old), summary_text.sections(new)))
    return tuple(_differing_fields(old, new, ""))


def _differing_fields(old: Model, new: Model, path: str) -> Iterator[str]:
    for name in type(new).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if name == "turns" and isinstance(old, ConversationHistory) and isinstance(new, ConversationHistory):
            turns = _differences(_by_id(old), _by_id(new))  # rotation moves every index, the ids stay
            yield from (f"turns.{turn}" for turn in turns)
        elif isinstance(before, Model) and type(before) is type(after):
            yield from _differing_fields(before, after, f"{path}{name}.")
        elif before != after:
            yield path + name


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    return (key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key))


def _by_id(history: ConversationHistory) -> Mapping[str, str]:
    return {f"turn_{turn.turn_id}": turn.text for turn in history.turns}
