"""Fixtures: one Chromium per test worker, an empty browser profile per test, and the built page."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from tools.console import build_console
from tools.setup.browser import running_chromium


@pytest.fixture(scope="session")
def console() -> Path:
    """The folder of the built page."""
    return build_console()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """A Chromium that all tests of one worker share. It belongs to the session's event loop."""
    async with running_chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def profile(chromium: Browser) -> AsyncIterator[BrowserContext]:
    """A browser profile without cookies and storage."""
    context = await chromium.new_context()
    yield context
    await context.close()
