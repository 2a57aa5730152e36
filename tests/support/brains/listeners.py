"""The listener of the local brain, as shipped, loaded once per test process."""

from functools import cache

from agents.local.understanding import Listener
from orchestrator.settings import shipped_config
from tests.support.brains.models import minilm


@cache
def the_listener() -> Listener:
    """The shipped listener."""
    return Listener(shipped_config() / "local", minilm())
