"""The interpreter's settings hold while conversations are served, and not after."""

import gc
import sys

import pytest

from orchestrator.ops.interpreter import SWITCH_SECONDS, tuned_for_serving


def test_the_settings_hold_until_serving_ends() -> None:
    before = sys.getswitchinterval()

    with tuned_for_serving():
        interval, frozen = sys.getswitchinterval(), gc.get_freeze_count()

    assert interval == pytest.approx(SWITCH_SECONDS)
    assert frozen > 0
    assert (sys.getswitchinterval(), gc.get_freeze_count()) == (before, 0)
