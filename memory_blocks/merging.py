"""Merges an edit of an earlier text of a block into its present text. Pure functions only."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from memory_blocks import summary_text
from memory_blocks.models import Label

_MISSING: Final = object()


class _MergeConflict(Exception):
    """Both sides changed the same value differently."""


def merge(label: Label, base: str, edited: str, present: str) -> str | None:
    """The present text with the changes from `base` to `edited`; None if both changed the same value.

    All three are valid texts of the block.
    """
    summaries = label is Label.CONTEXT_SUMMARY
    if summaries and not (base and edited and present):
        return None
    read = _summary if summaries else json.loads
    try:
        merged = _merged(read(base), read(edited), read(present))
    except _MergeConflict:
        return None
    if summaries:
        return summary_text.render(summary_text.Summary(**merged))
    return json.dumps(merged, ensure_ascii=False)


def _summary(text: str) -> dict[str, Any]:
    return asdict(summary_text.parse(text))


def _merged(base: Any, edited: Any, present: Any) -> Any:
    if edited in (base, present):
        return present
    if present == base:
        return edited
    if all(isinstance(each, Mapping) for each in (base, edited, present)):
        both = {
            key: _merged(*(each.get(key, _MISSING) for each in (base, edited, present)))
            for key in present | edited
        }
        return {key: value for key, value in both.items() if value is not _MISSING}
    if all(isinstance(each, list) for each in (base, edited, present)):
        return _merged_lists(base, edited, present)
    if all(isinstance(each, tuple) for each in (base, edited, present)):  # lines of a summary
        end = len(base)
        if edited[:end] == present[:end] == base:  # both only appended lines
            return present + edited[end:]
    raise _MergeConflict


def _merged_lists(base: list[Any], edited: list[Any], present: list[Any]) -> list[Any]:
    """Turns are merged one by one; of any other list, what the edit removed and added."""
    if all(isinstance(each, Mapping) and "turn_id" in each for each in (*base, *edited, *present)):
        by_id = [{str(each["turn_id"]): each for each in turns} for turns in (base, edited, present)]
        return list(_merged(*by_id).values())
    removed = [each for each in base if each not in edited]
    added = [each for each in edited if each not in base]
    if any(each not in present for each in removed):
        raise _MergeConflict
    kept = [each for each in present if each not in removed]
    return kept + [each for each in added if each not in kept]
