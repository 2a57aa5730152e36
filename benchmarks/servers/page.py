"""When the page first shows something: the chat and the memory, on a first visit and on a second.

A real server and a Chromium on this machine, without limits of the network. Each figure is the median of ten
visits: the browser's first contentful paint, and the time until the chat can be written in.
"""

import asyncio
from statistics import median
from time import perf_counter

from playwright.async_api import Browser, BrowserContext

from tools.picture import running_server
from tools.setup.browser import CONNECTED, running_chromium

VISITS = 10
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
VIEWS = {"/": CONNECTED, "/memory": "main h2"}
"""Each view, and what shows that it can be used."""


async def visit(profile: BrowserContext, address: str, loaded: str) -> tuple[float, float]:
    """Open an address in a new tab; the first paint and when it can be used, in milliseconds."""
    page = await profile.new_page()
    began = perf_counter()
    await page.goto(address)
    await page.locator(loaded).first.wait_for(state="attached")
    usable = (perf_counter() - began) * 1000
    painted = float(await page.evaluate(PAINTED))
    await page.close()
    return painted, usable


async def measure(browser: Browser, address: str) -> None:
    """Sign in once, then visit each view with an empty and with a filled cache of the browser."""
    signed_in = await browser.new_context()
    await visit(signed_in, address, CONNECTED)
    state, url = await signed_in.storage_state(), address.partition("/#")[0]
    await signed_in.close()
    for path, loaded in VIEWS.items():
        first, second = [], []
        for _ in range(VISITS):
            profile = await browser.new_context(storage_state=state)
            first.append(await visit(profile, url + path, loaded))
            second.append(await visit(profile, url + path, loaded))
            await profile.close()
        for name, found in (("first visit", first), ("second visit", second)):
            painted, usable = (median(each) for each in zip(*found, strict=True))
            print(f"{path:<10} {name:<14} first paint {painted:5.0f} ms   usable {usable:5.0f} ms")


async def _measure(address: str) -> None:
    async with running_chromium() as browser:
        await measure(browser, address)


def main() -> None:
    """Start a server and measure."""
    with running_server() as address:
        asyncio.run(_measure(address))


if __name__ == "__main__":
    main()
