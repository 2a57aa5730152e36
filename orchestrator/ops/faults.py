"""Named points in the code at which a test can kill or stop the process.

`ANAMNESIS_FAULT=after_begin_commit:2` kills this process, as `kill -9` does, when it reaches that point for
the second time; `after_begin_commit:2:stop` stops it there until it gets SIGCONT.
"""

import os
import signal
from typing import Final

STEPS: Final = ("open", "accept", "take", "begin", "recall", "sentence", "end", "release")
"""The transactions of every turn. There is a point right before and right after each commit."""

IN_LETTA: Final = (
    "after_agent_made",
    "after_intent_commit",
    "after_block_put",
    "after_applied_commit",
    "after_plan_commit",
    "after_passage_put",
    "after_kept_commit",
    "before_adopt_commit",
    "after_adopt_commit",
)
"""The points around each request to a Letta server and the transactions that record it."""

IN_IDLE_SESSIONS: Final = ("before_settle_commit", "after_settle_commit")
"""The points where an idle session is paused or ended."""

IN_MEMORIES: Final = (
    "after_generate",
    "before_line",
    "half_line",
    "before_tracker",
    "after_line",
    "before_memory_commit",
    "after_memory_commit",
    "before_summary",
    "after_summary",
    "before_erasure",
    "after_erasure",
    "before_settled",
)
"""The steps of making, changing and erasing memories; `half_line` and `before_tracker` only in files."""

POINTS: Final = (
    *(f"{when}_{step}_commit" for step in STEPS for when in ("before", "after")),
    "after_understand",
    "after_recall",
    "before_send",
    "after_send",
    "before_tool_commit",
    "after_tool_commit",
    *IN_IDLE_SESSIONS,
    *IN_LETTA,
    *IN_MEMORIES,
)

_name, _left, _signal = "", 0, signal.SIGKILL


def arm(fault: str) -> None:
    """Kill or stop the process at the point that `fault` names; an empty text disarms."""
    global _name, _left, _signal
    _name, count, how = (*fault.split(":"), "", "")[:3]
    _left = int(count or 1)
    _signal = signal.SIGSTOP if how == "stop" else signal.SIGKILL


def point(name: str) -> None:
    """Kill or stop the process if this is the armed point.

    The signal goes to the calling thread: os.kill would let this thread run on, and perhaps commit, until
    another one has received SIGSTOP.
    """
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            signal.raise_signal(_signal)


arm(os.environ.get("ANAMNESIS_FAULT", ""))
