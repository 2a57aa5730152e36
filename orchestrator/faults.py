"""The places where a process may die or stand still, by name, so that a test can make it do so there.

`ANAMNESIS_FAULT=after_begin_commit:2` kills this process, as `kill -9` would, the second time it comes by;
`after_begin_commit:2:stop` lets it stand there until somebody continues it.
"""

import os
import signal
from typing import Final

STEPS: Final = ("open", "accept", "take", "begin", "recall", "sentence", "end", "release")
"""What every turn does in one transaction each; a process may die right before its commit and right after."""

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
"""Where a Letta server is told something: the arrows between what is noted here and what is done there."""

BESIDE: Final = ("before_settle_commit", "after_settle_commit")
"""Where a session that nobody speaks in any more is paused, or ends."""

POINTS: Final = (
    *(f"{when}_{step}_commit" for step in STEPS for when in ("before", "after")),
    "after_extract",
    "after_classify",
    "before_send",
    "after_send",
    "before_tool_commit",
    "after_tool_commit",
    *BESIDE,
    *IN_LETTA,
)

_name, _left, _signal = "", 0, signal.SIGKILL


def arm(fault: str) -> None:
    """Die, or stand still, at the point that `fault` names; an empty one disarms."""
    global _name, _left, _signal
    _name, count, how = (*fault.split(":"), "", "")[:3]
    _left = int(count or 1)
    _signal = signal.SIGSTOP if how == "stop" else signal.SIGKILL


def point(name: str) -> None:
    """Here it happens, if the environment asked for it."""
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), _signal)


arm(os.environ.get("ANAMNESIS_FAULT", ""))
