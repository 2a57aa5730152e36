"""A Chromium per worker, an empty profile per test, and the page as it is built now."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, Profile, running_chromium
from tools.chromium import ensure_chromium
from tools.console import build_console


@pytest.fixture(scope="session")
def console() -> Path:
    """The folder of the built page."""
    return build_console()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A real Chromium, shared by the tests of one worker."""
    with running_chromium(ensure_chromium()) as browser:
        yield browser


@pytest.fixture
def profile(chromium: Browser) -> Iterator[Profile]:
    """A person's browser that has seen nothing yet."""
    with chromium.profile() as profile:
        yield profile
