"""Starts Chromium with Playwright. Playwright downloads no browser, because it is given the executable."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from tools.setup.chromium import ensure_chromium, library_path

# Playwright passes --headless, --no-sandbox and most of the flags that stop background traffic itself.
FLAGS = ("--disable-gpu", "--disable-quic", "--disable-dev-shm-usage")

# CSS selectors for states of the page.
CONNECTED = "body:has(.connection[data-state=open]):not(:has(.thinking))"  # and no answer is under way
ANSWERED = ".exchange:has(.answer[aria-busy=false] .sentence)"  # a message with a complete answer


@asynccontextmanager
async def running_chromium() -> AsyncIterator[Browser]:
    """A Chromium that runs during the body. Everything it writes is removed afterwards."""
    executable = ensure_chromium()
    with tempfile.TemporaryDirectory(prefix="anamnesis-chromium-", ignore_cleanup_errors=True) as home:
        environment: dict[str, str | float | bool] = {
            **os.environ,
            "HOME": home,
            **library_path(executable),
        }
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=executable, args=FLAGS, env=environment, chromium_sandbox=False
            )
            try:
                yield browser
            finally:
                await browser.close()
