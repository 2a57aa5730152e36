"""The places where a process may die, by name, so that a test can make it die there.

`ANAMNESIS_FAULT=after_begin_commit:2` kills this process, as `kill -9` would, the second time it comes by.
"""

import os
import signal
from typing import Final

POINTS: Final = (
    "before_accept_commit",
    "after_accept_commit",
    "before_take_commit",
    "after_take_commit",
    "before_begin_commit",
    "after_begin_commit",
    "after_extract",
    "after_classify",
    "before_recall_commit",
    "after_recall_commit",
    "before_sentence_commit",
    "after_sentence_commit",
    "before_end_commit",
    "after_end_commit",
    "before_release_commit",
    "before_send",
    "after_send",
)

_name, _, _count = os.environ.get("ANAMNESIS_FAULT", "").partition(":")
_left = int(_count or 1)


def point(name: str) -> None:
    """Die here, if the environment asks for it."""
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
