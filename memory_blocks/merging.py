"""An edit that was made upon an earlier text of a block, brought upon the one that stands. Pure functions."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from memory_blocks import summary_text
from memory_blocks.models import Label

_MISSING: Final = object()


class _Clash(Exception):
    """Both changed the same, and not to the same."""


def merge(label: Label, base: str, edited: str, standing: str) -> str | None:
    """What stands, with what the edit made of `base`; None where both changed the same.

    All three are valid texts of the block.
    """
    summaries = label is Label.CONTEXT_SUMMARY
    if summaries and not (base and edited and standing):
        return None
    read = _summary if summaries else json.loads
    try:
        merged = _merged(read(base), read(edited), read(standing))
    except _Clash:
        return None
    if summaries:
        return summary_text.render(summary_text.Summary(**merged))
    return json.dumps(merged, ensure_ascii=False)


def _summary(text: str) -> dict[str, Any]:
    return asdict(summary_text.parse(text))


def _merged(base: Any, edited: Any, standing: Any) -> Any:
    if edited in (base, standing):
        return standing
    if standing == base:
        return edited
    if all(isinstance(each, Mapping) for each in (base, edited, standing)):
        both = {
            key: _merged(*(each.get(key, _MISSING) for each in (base, edited, standing)))
            for key in standing | edited
        }
        return {key: value for key, value in both.items() if value is not _MISSING}
    if all(isinstance(each, tuple) for each in (base, edited, standing)):  # lines of a summary
        grown = len(base)
        if edited[:grown] == standing[:grown] == base:
            return standing + edited[grown:]
    raise _Clash
