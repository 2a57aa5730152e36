"""What changed between two texts of a block, by path."""

import json
from collections.abc import Iterator
from typing import Any, Final

from memory_blocks import summary_text
from memory_blocks.models import Label

_MISSING: Final = object()


def changed_paths(label: Label, before: str, after: str) -> tuple[str, ...]:
    """JSON paths (`turns.turn_3`, `session_info.last_activity`), or the names of sections of the summary."""
    if label is Label.CONTEXT_SUMMARY:
        old, new = summary_text.sections(before), summary_text.sections(after)
        return tuple(name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name))
    return tuple(_differences(json.loads(before), json.loads(after), ""))


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if path == "turns":  # rotation moves every index, so a turn is known by its id
        before, after = _by_turn(before), _by_turn(after)
    if isinstance(before, dict) and isinstance(after, dict) and not path.startswith("turns."):
        for key in dict.fromkeys((*before, *after)):
            yield from _differences(
                before.get(key, _MISSING), after.get(key, _MISSING), f"{path}.{key}" if path else key
            )
    elif before != after:
        yield path


def _by_turn(turns: list[dict[str, Any]]) -> dict[str, Any]:
    return {f"turn_{turn['turn_id']}": turn for turn in turns}
