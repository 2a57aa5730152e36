"""Takes the pictures of the page in the documents: `python -m tools.picture` writes into docs/images.

It starts the real server with the default settings and an empty data folder, holds conversations in the page
and takes screenshots of it: one for the README, and one of each view for docs/console.md.
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
from tools.console import build_console
from tools.setup.browser import ANSWERED, CONNECTED, running_chromium
from tools.setup.progress import SetupError, step
from tools.setup.toolchain import CHECKOUT, cache_dir

IMAGES = CHECKOUT / "docs" / "images"
PICTURE = IMAGES / "chat.png"
MESSAGES = ("I am having a headache", "8", "since Tuesday")
ALLERGY = "I am allergic to penicillin"
QUESTION = "what did I tell you about my allergies?"
VIEWS = {
    "blocks": ("/blocks?turn=2&label=active_session", ".revisions .diff"),
    "memory": ("/memory", ".memory"),
    "traces": ("/traces", ".trace-rows [role=row]"),
    "overview": ("/overview", ".chart svg"),
}
"""The address of each view, and what shows that it has loaded."""
WIDTH, SHORTEST, TALLEST = 1280, 600, 1800
VIEW_HEIGHT = 760
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
        IMAGES.mkdir(parents=True, exist_ok=True)
        with step(f"taking {PICTURE.relative_to(CHECKOUT)}"), running_server() as address:
            PICTURE.write_bytes(asyncio.run(_take_picture(address)))
        with step("taking the pictures of the views"), running_server() as address:
            for name, picture in asyncio.run(_take_views(address)).items():
                (IMAGES / f"console-{name}.png").write_bytes(picture)
    except SetupError as failure:
        sys.exit(f"\n{failure}")


async def _take_picture(address: str) -> bytes:
    async with running_chromium() as browser:
        return await take_picture(browser, address)


async def _take_views(address: str) -> dict[str, bytes]:
    async with running_chromium() as browser:
        return await take_views(browser, address)


async def take_picture(browser: Browser, address: str) -> bytes:
    """Hold the conversation at that address. Returns a screenshot as PNG."""
    page = await browser.new_page(
        viewport={"width": WIDTH, "height": SHORTEST},
        device_scale_factor=SCALE,
        color_scheme="light",
        reduced_motion="reduce",
    )
    await page.goto(address)
    await _say_all(page, MESSAGES)
    await _show_everything(page)
    picture = await page.screenshot()
    await page.close()
    return picture


async def take_views(browser: Browser, address: str) -> dict[str, bytes]:
    """Hold two conversations at that address. Returns a screenshot of each view as PNG, by its name."""
    page = await browser.new_page(
        viewport={"width": WIDTH, "height": VIEW_HEIGHT}, color_scheme="light", reduced_motion="reduce"
    )
    await page.goto(address)
    await _say_all(page, (*MESSAGES, ALLERGY))
    first = page.url
    await page.get_by_role("button", name="New conversation").click()
    await page.locator(".exchange").first.wait_for(state="detached")
    await _say_all(page, (QUESTION,))
    pictures = {"chat": await page.screenshot()}
    pictures["phone"] = await _on_a_phone(page)
    await page.locator(".why").click()
    pictures["why"] = await _picture_of(page, ".waterfall")
    await page.get_by_role("link", name="How these were chosen").click()
    pictures["journey"] = await _picture_of(page, ".funnel")
    root = first.partition("/chat/")[0]
    for name, (path, loaded) in VIEWS.items():
        await page.goto((first if path.startswith("/blocks") else root) + path)
        pictures[name] = await _picture_of(page, loaded)
    await page.close()
    return pictures


async def _picture_of(page: Page, loaded: str) -> bytes:
    """A screenshot of a view, once an element that matches `loaded` is visible and nothing else loads."""
    await page.locator(loaded).first.wait_for()
    await page.locator(".loading").first.wait_for(state="detached")
    return await page.screenshot()


async def _on_a_phone(page: Page) -> bytes:
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await page.set_viewport_size({"width": 390, "height": VIEW_HEIGHT})
    await page.get_by_role("button", name="Memory traces").click()
    await page.get_by_role("menuitemradio", name="One line").click()
    picture = await page.screenshot()
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.set_viewport_size({"width": WIDTH, "height": VIEW_HEIGHT})
    return picture


async def _say_all(page: Page, messages: Iterable[str]) -> None:
    """Say each message in a new conversation, after the answer to the one before."""
    await page.locator(CONNECTED).wait_for()
    for count, message in enumerate(messages):
        await page.get_by_role("textbox", name="Your message").fill(message)
        await page.keyboard.press("Enter")
        await page.locator(ANSWERED).nth(count).wait_for()
        await page.locator(CONNECTED).wait_for()


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
