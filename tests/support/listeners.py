"""The listener of the local brain, as shipped, loaded once per test process."""

from functools import cache

from agents.local.understanding import Listener
from orchestrator.settings import load, shipped_config
from tests.support.models import minilm


@cache
def the_listener() -> Listener:
    """The shipped listener; `make setup` has trained its classifier."""
    return Listener(shipped_config() / "local", minilm(), load(environment={}).models.dir)
