"""What the guard costs: its rules on a message of 1,000 characters, and on short ones, in this thread's time.

Beside it stands a bare pass that only takes the same text apart into words, so that a busy processor slows
both alike.
"""

import re
from time import thread_time

from agents.safety.guard import load
from orchestrator.settings import shipped_config

ROUNDS = 500
LONG = (
    "My chest has felt odd since the weekend and my sister says to drink more water, no fever, no rash. "
    "I also have a bit of a cough, slept badly, and work has been stressful with the new manager. "
) * 6
SHORT = "I have had a runny nose since Monday"
WORD = re.compile(r"\w+")


def main() -> None:
    """The middle and the slowest hundredth of many rounds."""
    guard = load(shipped_config() / "safety")
    for name, text in (("1,000 characters", LONG[:1_000]), ("one short sentence", SHORT)):
        spent, bare = [], []
        for _ in range(ROUNDS):
            start = thread_time()
            guard.check(text)
            middle = thread_time()
            [word.lower() for word in WORD.findall(text)]
            spent.append(middle - start)
            bare.append(thread_time() - middle)
        spent.sort()
        bare.sort()
        p50, p99 = spent[ROUNDS // 2], spent[ROUNDS * 99 // 100]
        print(
            f"  {name}: p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms (goal 2 ms); "
            f"{p50 / bare[ROUNDS // 2]:.0f} times a bare pass over the words"
        )
