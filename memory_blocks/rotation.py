"""When the history grows past its thresholds, its oldest turns rotate out. Pure functions only."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from memory_blocks.limits import DEFAULTS, Limits, level
from memory_blocks.models import ConversationHistory, Label, Level, Model, Turn, changed

SHORTEST: Final = 160  # what a shortened text keeps of itself, unless even so there is no room for all
_LEAST: Final = 8  # what it keeps at least: where limits are low, and each character is written as six
_MARK: Final = 60  # more than the note in place of the rest takes
_NOTHING_WHOLE: Final[Mapping[int, Turn]] = {}


@dataclass(frozen=True, slots=True)
class Rotation:
    """What stays, what left, and the whole of what stays shortened; `level` is that of before."""

    kept: ConversationHistory
    rotated_out: tuple[Turn, ...]
    overflow: tuple[Turn, ...]
    level: Level

    @property
    def happened(self) -> bool:
        """Whether anything left the block or was shortened in it."""
        return bool(self.rotated_out or self.overflow)


def rotate(
    history: ConversationHistory,
    limits: Limits = DEFAULTS,
    whole: Mapping[int, Turn] = _NOTHING_WHOLE,
    *,
    by_hand: bool = False,
) -> Rotation:
    """Rotate by the level of the history as it is, with its newest turn in it; by hand, as in an emergency.

    `whole` has the turns that stand shortened in the history, as they were: they leave whole, and what must
    be shortened anew is shortened from the whole.
    """
    before = level(len(history.text), limits.of(Label.CONVERSATION_HISTORY), limits)
    kept = _last(history, _turns_to_keep(history, before, limits, by_hand=by_hand))
    while len(kept.turns) > limits.emergency_keep and len(kept.text) > limits.archival_trigger_threshold:
        kept = _last(kept, len(kept.turns) - 1)
    gone = history.turns[: len(history.turns) - len(kept.turns)]
    overflow: tuple[Turn, ...] = ()
    if len(kept.text) > limits.archival_trigger_threshold:
        kept, overflow = _shorten(kept, limits.archival_trigger_threshold, whole)
    return Rotation(
        kept=kept,
        rotated_out=tuple(whole.get(turn.turn_id, turn) for turn in gone),
        overflow=overflow,
        level=before,
    )


def shortened(text: str, keep: int) -> str:
    """The beginning and the end of `text`, `keep` characters together, around a note of what is missing."""
    if len(text) <= keep:
        return text
    head = keep - keep // 2
    tail = text[len(text) - keep // 2 :]
    return f"{text[:head]} … [{len(text) - keep} characters kept in the archive] … {tail}"


def _turns_to_keep(history: ConversationHistory, before: Level, limits: Limits, *, by_hand: bool) -> int:
    keep = len(history.turns)
    if keep > limits.turns_most:
        keep = limits.turns_kept
    if before is Level.ARCHIVE:
        keep = min(keep, limits.archive_keep)
    if before is Level.EMERGENCY or by_hand:
        keep = min(keep, limits.emergency_keep)
    return keep


def _last(history: ConversationHistory, keep: int) -> ConversationHistory:
    if keep == len(history.turns):
        return history
    return changed(history, turns=history.turns[-keep:])


# --- shortening -------------------------------------------------------------------------------------------

_Place: TypeAlias = tuple[int, str, str]  # which turn, which of its parts, which text in it
_TEXTS: Final = (
    ("user_message", "content"),
    ("context_enrichment", "previous_context"),
    ("context_enrichment", "enriched_message"),
    ("intent_classification", "reasoning"),
    ("agent_response", "content"),
)


def _shorten(
    history: ConversationHistory, most: int, whole: Mapping[int, Turn]
) -> tuple[ConversationHistory, tuple[Turn, ...]]:
    """Halve the longest text, wherever it is, until the history has at most `most` characters."""
    originals = tuple(whole.get(turn.turn_id, turn) for turn in history.turns)
    texts = {place: text for at, turn in enumerate(originals) for place, text in _texts(at, turn)}
    now = dict(texts)
    sizes = {place: _size(text) for place, text in texts.items()}
    keep = {place: len(text) for place, text in texts.items()}
    excess = len(changed(history, turns=originals).text) - most
    while excess > 0:
        longest = max(sizes, key=lambda place: sizes[place])
        if keep[longest] <= _LEAST:
            break
        least = SHORTEST if keep[longest] > SHORTEST else _LEAST  # then no other has more to give
        keep[longest] = max(least, keep[longest] // 2, keep[longest] - excess - _MARK)
        now[longest] = shortened(texts[longest], keep[longest])
        excess += _size(now[longest]) - sizes[longest]
        sizes[longest] = _size(now[longest])
    turns = tuple(_with_texts(at, turn, now) for at, turn in enumerate(originals))
    overflow = tuple(turn for turn, short in zip(originals, turns, strict=True) if turn != short)
    return changed(history, turns=turns), overflow


def _texts(at: int, turn: Turn) -> Iterator[tuple[_Place, str]]:
    for part, name in _TEXTS:
        holder = getattr(turn, part)
        if holder is not None:
            yield (at, part, name), getattr(holder, name)


def _with_texts(at: int, turn: Turn, texts: Mapping[_Place, str]) -> Turn:
    parts: dict[str, Model] = {}
    for part, name in _TEXTS:
        holder: Model | None = parts.get(part, getattr(turn, part))
        if holder is not None:
            parts[part] = changed(holder, **{name: texts[at, part, name]})
    return changed(turn, **parts)


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False))
