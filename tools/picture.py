"""Takes the README's picture of the page: `python -m tools.picture` writes docs/images/chat.png.

It starts the real server with the default settings and an empty data folder, holds a conversation in the page
and takes a screenshot of it.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from playwright.async_api import Browser, Page

from tools.bootstrap import PYTHON
from tools.browser import ANSWERED, CONNECTED, running_chromium
from tools.console import build_console
from tools.progress import SetupError, step
from tools.toolchain import CHECKOUT, cache_dir

PICTURE = CHECKOUT / "docs" / "images" / "chat.png"
MESSAGES = ("I am having a headache", "8", "since Tuesday")
WIDTH, SHORTEST, TALLEST = 1280, 600, 1500
SCALE = 1.0  # screen pixels per CSS pixel: sharp enough for text, and a small file
LARGEST = 300_000  # bytes of the picture, so that the README loads quickly
SHOW_WRITES = """panel => {
  const written = panel.querySelector(".trace:not([data-action=retrieved])");
  if (!written) return;
  const above = panel.scrollTop + written.getBoundingClientRect().top - panel.getBoundingClientRect().top;
  panel.style.maxHeight = `${panel.scrollHeight - above}px`;
  panel.scrollTop = above;
}"""
CHANGE_THE_DEFAULTS = ("ANAMNESIS_", "LETTA_", "LIVEKIT_", "OPENAI_", "OTEL_")
"""Variables that begin like this would make the picture depend on whose machine it is taken on."""


def main() -> None:
    """Take the picture, or exit with the reason why that failed."""
    try:
        build_console()
        with step(f"taking {PICTURE.relative_to(CHECKOUT)}"), running_server() as address:
            picture = asyncio.run(_take_picture(address))
    except SetupError as failure:
        sys.exit(f"\n{failure}")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_bytes(picture)


async def _take_picture(address: str) -> bytes:
    async with running_chromium() as browser:
        return await take_picture(browser, address)


async def take_picture(browser: Browser, address: str) -> bytes:
    """Hold the conversation at that address. Returns a screenshot as PNG."""
    page = await browser.new_page(
        viewport={"width": WIDTH, "height": SHORTEST},
        device_scale_factor=SCALE,
        color_scheme="light",
        reduced_motion="reduce",
    )
    await page.goto(address)
    await page.locator(CONNECTED).wait_for()
    for count, message in enumerate(MESSAGES):
        await page.get_by_role("textbox").fill(message)
        await page.keyboard.press("Enter")
        await page.locator(ANSWERED).nth(count).wait_for()
        await page.locator(CONNECTED).wait_for()
    await _show_everything(page)
    picture = await page.screenshot()
    await page.close()
    return picture


async def _show_everything(page: Page) -> None:
    """Show every write of the later panels whole, and make the window as tall as the conversation.

    The first panel stays at its start, so that the picture also shows what was read.
    """
    panels = (await page.locator(".traces").all())[1:]
    for panel in panels:
        await panel.evaluate(SHOW_WRITES)
    hidden = await page.locator("main").evaluate("main => main.scrollHeight - main.clientHeight")
    await page.set_viewport_size({"width": WIDTH, "height": min(SHORTEST + int(hidden), TALLEST)})
    await page.locator("main").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    for panel in panels:
        await panel.evaluate(SHOW_WRITES)  # once more: the new size may have moved the writes


@contextmanager
def running_server() -> Iterator[str]:
    """`anamnesis serve` during the body. Yields the address it prints, which signs a person in."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(CHANGE_THE_DEFAULTS)
    } | {"ANAMNESIS_CACHE_DIR": str(cache_dir()), "ANAMNESIS_LOGS_LEVEL": "warning"}
    with (
        tempfile.TemporaryDirectory(prefix="anamnesis-picture-") as data,
        subprocess.Popen(
            [PYTHON, "-m", "orchestrator", "--data", data, "serve", "--port", "0"],
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
    ):
        try:
            yield _printed_address(server.stdout or ())
        finally:
            server.terminate()


def _printed_address(lines: Iterable[str]) -> str:
    for line in lines:
        if found := re.search(r"http://\S+", line):
            return found.group()
    raise SetupError("`anamnesis serve` ended before it printed an address; the lines above say why.")


if __name__ == "__main__":
    main()
