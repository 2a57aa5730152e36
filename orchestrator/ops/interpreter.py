"""Settings of the Python interpreter for a process that serves conversations."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SWITCH_SECONDS: Final = 0.0005
"""How long a thread may run while others wait. A thread that uses SQLite gives way at every statement. With
Python's 5 ms it then waits so long that two thirds as many turns per second are answered."""


@contextmanager
def tuned_for_serving() -> Iterator[None]:
    """Let threads take turns more often, and leave what is loaded already out of garbage collections.

    The models and rules are hundreds of thousands of objects that stay. A full collection would visit all of
    them, and every conversation would wait for some tenths of a second.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
