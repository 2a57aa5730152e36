"""Moves the oldest turns out of a history that grew past its thresholds. Pure functions only."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from memory_blocks.limits import DEFAULTS, Limits, level
from memory_blocks.models import ConversationHistory, Label, Level, Model, Turn, changed

SHORTEST: Final = 160  # characters that a shortened text keeps, unless there is still no room for all texts
_MINIMUM: Final = 8  # characters that it keeps then: limits may be low, and JSON may write one as six
_MARK: Final = 60  # an upper bound for the length of the note in place of the missing part
_NOTHING_WHOLE: Final[Mapping[int, Turn]] = {}


@dataclass(frozen=True, slots=True)
class Rotation:
    """The result of a rotation.

    `overflow` has the whole texts of turns that stay in the block in a shortened form. `level` is the level
    of the history before the rotation.
    """

    kept: ConversationHistory
    rotated_out: tuple[Turn, ...]
    overflow: tuple[Turn, ...]
    level: Level

    @property
    def happened(self) -> bool:
        """Whether a turn left the block or was shortened in it."""
        return bool(self.rotated_out or self.overflow)


def rotate(
    history: ConversationHistory,
    limits: Limits = DEFAULTS,
    whole: Mapping[int, Turn] = _NOTHING_WHOLE,
    *,
    by_hand: bool = False,
) -> Rotation:
    """Rotate according to the level of the history, which already has its newest turn.

    `by_hand` rotates as at the emergency level. `whole` has the whole texts of the turns that are shortened
    in the history: such a turn leaves the block whole, and is shortened again from its whole text.
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
    """The beginning and the end of `text`, together `keep` characters, and a note of how much is missing."""
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

_Place: TypeAlias = tuple[int, str, str]  # the index of the turn, the field in it, and the text in that field
_TEXTS: Final = (
    ("user_message", "content"),
    ("context_enrichment", "previous_context"),
    ("context_enrichment", "enriched_message"),
    ("intent_classification", "reasoning"),
    ("agent_response", "content"),
)


def _shorten(
    history: ConversationHistory, limit: int, whole: Mapping[int, Turn]
) -> tuple[ConversationHistory, tuple[Turn, ...]]:
    """Halve the longest text, in whichever turn, until the history has at most `limit` characters."""
    originals = tuple(whole.get(turn.turn_id, turn) for turn in history.turns)
    texts = {place: text for at, turn in enumerate(originals) for place, text in _texts(at, turn)}
    now = dict(texts)
    sizes = {place: _size(text) for place, text in texts.items()}
    keep = {place: len(text) for place, text in texts.items()}
    excess = len(changed(history, turns=originals).text) - limit
    while excess > 0:
        longest = max(sizes, key=lambda place: sizes[place])
        if keep[longest] <= _MINIMUM:
            break
        # The longest text is cut below SHORTEST only once every text is that short.
        minimum = SHORTEST if keep[longest] > SHORTEST else _MINIMUM
        keep[longest] = max(minimum, keep[longest] // 2, keep[longest] - excess - _MARK)
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
