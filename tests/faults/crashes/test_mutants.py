"""Deliberate bugs in a server are all detected by the checks."""

import pytest

from tests.faults.client import Client
from tests.faults.crash_checks import converse
from tests.faults.crashes.test_crash_points import SAID
from tests.faults.deployment import Deployment


@pytest.mark.parametrize(
    ("mistake", "fault", "noticed"),
    [
        ("acknowledges_before_it_stores", "before_accept_commit:1", "acknowledged and is not stored"),
        ("sends_before_it_stores", "before_begin_commit:1", "sent that is not stored"),
        ("sends_before_it_stores", "before_sentence_commit:1", "sent that is not stored"),
        ("sends_before_it_stores", "before_end_commit:1", "sent that is not stored"),
        ("takes_a_repeated_message_for_a_new_one", "", "not those that were sent"),
        ("speaks_over_what_was_said", "after_sentence_commit:1", "became"),
    ],
)
async def test_each_deliberate_bug_is_detected(
    deployment: Deployment, mistake: str, fault: str, noticed: str
) -> None:
    run = await converse(deployment, Client(repeats=True), SAID, mistake, faults=[fault] if fault else [])

    assert any(noticed in problem for problem in run.problems), run.problems
