"""How large each block may grow, and at which sizes it counts as full."""

from dataclasses import dataclass
from typing import Final

from memory_blocks.models import Label, Level


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in characters (Unicode code points), levels as shares of the limit, and how many turns to keep.

    With more than `turns_most` turns, the history is rotated down to `turns_kept`. At the archive level it is
    rotated down to `archive_keep`, and further while it is above `archival_trigger_threshold`. At the
    emergency level it is rotated down to `emergency_keep`, the least it ever keeps. At least `revisions_kept`
    revisions of each block stay readable; 0 keeps all. The names are those of the settings, section `blocks`.
    """

    conversation_history_limit: int = 32_000
    active_session_limit: int = 4_000
    context_summary_limit: int = 8_000
    memory_metadata_limit: int = 2_000
    archival_trigger_threshold: int = 28_000
    warning_share: float = 0.70
    archive_share: float = 0.85
    emergency_share: float = 0.95
    turns_refused_above: int = 25
    turns_most: int = 20
    turns_kept: int = 15
    archive_keep: int = 5
    emergency_keep: int = 3
    rotation_enabled: bool = True
    validation_enabled: bool = True
    revisions_kept: int = 0

    def of(self, label: Label) -> int:
        """How many characters the block may have."""
        limit: int = getattr(self, f"{label.value}_limit")
        return limit


DEFAULTS: Final = Limits()


def level(size: int, limit: int, limits: Limits = DEFAULTS) -> Level:
    """The level of a block of `size` characters. A size on a threshold has the higher level."""
    # 0.7 has no exact float; the small addition keeps a size on a threshold at the higher level.
    share = (size + 1e-6) / limit
    if share >= limits.emergency_share:
        return Level.EMERGENCY
    if share >= limits.archive_share:
        return Level.ARCHIVE
    if share >= limits.warning_share:
        return Level.WARNING
    return Level.NORMAL


def utilization(size: int, limit: int) -> float:
    """`size` as a percentage of `limit`, rounded half up to one decimal with integers: 26.25 gives 26.3."""
    return (2000 * size + limit) // (2 * limit) / 10


def whole_percent(size: int, limit: int) -> int:
    """`size` as a percentage of `limit`, rounded half up to a whole number."""
    return (200 * size + limit) // (2 * limit)
