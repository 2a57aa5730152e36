"""Every view of the page in light, dark and on a phone; empty, loading and broken; checked with axe.

The pictures are in `.cache/screenshots`, to be looked at.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, Route, ViewportSize, expect

from tests.browser.support.chat import Chat
from tests.browser.support.real_server import RealServer
from tests.browser.support.signed_in import SignedIn, open_first_conversation, say_all, server, signed_in
from tools.setup.browser import CONNECTED
from tools.setup.toolchain import CHECKOUT

__all__ = ["server", "signed_in"]  # fixtures
pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to

PICTURES = CHECKOUT / ".cache" / "screenshots"
SERIOUS = ("serious", "critical")
WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}

VIEWS = {
    "chat": f"{CONNECTED} .question > p",
    "blocks": ".block .diff",
    "why": ".story",
    "journey": ".funnel",
    "memory": ".memory",
    "traces": ".trace-rows [role=row]",
    "overview": ".chart svg",
    "turns": "tbody tr",
    "rotations": "tbody tr, .empty",
    "alarms": "tbody tr",
}
"""Each view, and what shows that it has loaded."""

EMPTY = {
    "/": "What is on your mind?",
    "/memory": "appear here when they are told in the chat",
    "/traces": "Write a message in the chat",
    "/overview": "write a message in the chat",
    "/alarms": "There are none in this period",
    "/turns": "There are none in this period",
    "/rotations": "There are none in this period",
    "/chat/{conversation}/blocks": "This conversation has no turns yet",
    "/retrievals/{retrieval}": "0",
}
"""What each view says to somebody who has never written anything."""


MAKE_EMPTY_THINGS = """(async () => {
  const headers = { "Content-Type": "application/json" };
  const ask = (method, path, body) => fetch(path, { method, headers, body }).then((answer) => answer.json());
  const { id } = await ask("POST", "/v1/conversations");
  await ask("POST", "/v1/memories/search", JSON.stringify({ query: "headache" }));
  const { items } = await ask("GET", "/v1/retrievals");
  return { conversation: id, retrieval: items[0].id };
})()"""
"""A conversation without a turn, and a search that found nothing."""
DANGER = "I have crushing chest pain and I cannot breathe"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alarmed(server: RealServer, chromium: Browser) -> AsyncIterator[SignedIn]:
    """A profile in which a person has told of an emergency."""
    profile = await chromium.new_context()
    chat = await Chat.open(profile, server.address_for("alma"))
    await say_all(chat, DANGER)
    yield SignedIn(profile, chat.page.url)
    await profile.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def addresses(server: RealServer, signed_in: SignedIn) -> Mapping[str, str]:
    """The address of each view, found as a person finds it."""
    chat = await Chat.open(signed_in.profile, signed_in.newest)
    await chat.page.locator(".why").click()
    await chat.until_present(".story")
    found = {"why": chat.page.url}
    await chat.page.get_by_role("link", name="How these were chosen").click()
    await chat.until_present(".funnel")
    found["journey"] = chat.page.url
    await chat.page.goto(signed_in.newest)
    await open_first_conversation(chat)
    found |= {"chat": chat.page.url, "blocks": f"{chat.page.url}/blocks?turn=2&label=active_session"}
    await chat.page.close()
    return found | {name: f"{server.url}/{name}" for name in VIEWS if name not in found}


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
@pytest.mark.parametrize("view", VIEWS)
async def test_a_view_can_be_used_by_everybody(
    chromium: Browser,
    signed_in: SignedIn,
    alarmed: SignedIn,
    addresses: Mapping[str, str],
    view: str,
    look: Literal["light", "dark", "phone"],
) -> None:
    profile = await _same_person(chromium, alarmed if view == "alarms" else signed_in, look)
    chat = await Chat.open(profile, addresses[view])
    await chat.until_present(VIEWS[view])
    await _until_settled(chat.page)

    await chat.page.screenshot(path=PICTURES / f"{view}-{look}.png")
    assert await chat.run(WIDER_THAN_THE_WINDOW) is False
    assert await _serious_findings(chat.page) == []
    assert chat.failures == []
    await profile.close()


@pytest.mark.parametrize("path", EMPTY)
async def test_a_view_with_nothing_in_it_says_what_to_do(
    server: RealServer, profile: BrowserContext, path: str
) -> None:
    chat = await Chat.open(profile, server.address_for("nobody"))
    await chat.until_connected()
    made = await chat.run(MAKE_EMPTY_THINGS)
    await chat.page.goto(server.url + path.format(**made))

    await chat.until_text("main", EMPTY[path])
    await _until_settled(chat.page)

    name = re.sub(r"[{}]", "", path).replace("/", "-")
    await chat.page.screenshot(path=PICTURES / f"empty{name}.png")
    assert await _serious_findings(chat.page) == []


@pytest.mark.parametrize("view", VIEWS)
async def test_a_view_says_that_it_loads_and_what_to_do_when_that_fails(
    chromium: Browser, signed_in: SignedIn, alarmed: SignedIn, addresses: Mapping[str, str], view: str
) -> None:
    person, answer = alarmed if view == "alarms" else signed_in, asyncio.Event()
    profile = await _same_person(chromium, person, "light")

    async def break_down(route: Route) -> None:
        await answer.wait()
        problem = {"type": "/problems/x", "detail": "The disk is full. Make room on it."}
        await route.fulfill(status=507, content_type="application/problem+json", body=json.dumps(problem))

    chat = await Chat.new_tab(profile)
    data = re.compile(r"/v1/(?!session|traces/stream)")
    await chat.page.route(data, break_down)
    await chat.page.goto(addresses[view])
    await chat.until_text(".state.loading", "Loading")
    await chat.page.screenshot(path=PICTURES / f"loading-{view}.png")
    answer.set()
    await chat.until_text(".state.failed", "The disk is full. Make room on it.")

    await chat.page.screenshot(path=PICTURES / f"error-{view}.png")
    assert await _serious_findings(chat.page) == []
    await chat.page.unroute(data)
    await chat.page.get_by_role("button", name="Try again").first.click()
    await chat.until_present(".conversations a[href^='/chat/']" if view == "chat" else VIEWS[view])
    await profile.close()


async def test_pages_and_dialogs_that_no_address_opens_can_be_used_by_everybody(
    server: RealServer, chromium: Browser, signed_in: SignedIn, profile: BrowserContext
) -> None:
    stranger = await Chat.open(profile, server.url)
    await stranger.until_text(".notice", "You are not signed in")
    own = await _same_person(chromium, signed_in, "light")
    chat = await Chat.open(own, f"{server.url}/chat/a/b/c")
    await chat.until_text("main", "There is no such page")
    found = {
        "sign-in": await _looked_at(stranger, "sign-in"),
        "not-found": await _looked_at(chat, "not-found"),
    }

    await chat.page.goto(f"{server.url}/traces")
    await chat.page.locator(VIEWS["traces"]).first.click()
    await chat.until_present(".open-trace blockquote")
    found["open-trace"] = await _looked_at(chat, "open-trace")
    await chat.page.goto(f"{server.url}/memory")
    await chat.page.get_by_role("button", name="Forget").first.click()
    await chat.until_present("dialog[open] .dialog-text")
    await _until_settled(chat.page)
    found["forget"] = await _looked_at(chat, "forget")
    await chat.page.keyboard.press("Escape")
    await chat.page.route(re.compile(r"/v1/memories/conflicts"), _contradict)
    await chat.page.reload()
    await chat.until_present(".conflict")
    found["contradictions"] = await _looked_at(chat, "contradictions")

    assert {name: each for name, each in found.items() if each} == {}
    assert chat.failures == stranger.failures == []
    await own.close()


async def _looked_at(chat: Chat, name: str) -> list[str]:
    """What axe finds on the page, of which a picture is taken."""
    await chat.page.screenshot(path=PICTURES / f"{name}.png")
    return await _serious_findings(chat.page)


async def _contradict(route: Route) -> None:
    """Answer with two memories that contradict each other."""
    page = await route.request.frame.evaluate(
        "fetch('/v1/memories?kind=fact&texts=true').then((answer) => answer.json())"
    )
    fact = {**page["items"][0], "person": "ann", "subject": "person", "value": "x", "history": []}
    pair = {
        "about": fact["about"],
        "subject": "person",
        "current": fact,
        "other": {**fact, "id": "mem_other"},
    }
    await route.fulfill(json={"items": [pair], "next": None})


async def test_the_whole_page_works_with_the_keyboard(
    chromium: Browser, signed_in: SignedIn, addresses: Mapping[str, str]
) -> None:
    profile = await _same_person(chromium, signed_in, "light")
    chat = await Chat.open(profile, addresses["why"])
    await chat.until_present(".story")

    await chat.page.keyboard.press("Tab")
    await expect(chat.page.get_by_role("button", name="Skip to the content")).to_be_focused()
    await chat.page.keyboard.press("Enter")
    await expect(chat.page.locator("main")).to_be_focused()
    await chat.page.get_by_role("link", name="Memory", exact=True).focus()
    await chat.page.keyboard.press("Enter")
    await chat.until_present(".memory")
    await chat.page.get_by_role("tab", name="Facts").focus()
    await chat.page.keyboard.press("ArrowRight")
    await chat.until_text(".memory", "I am having a headache")
    await profile.close()


async def _same_person(chromium: Browser, signed_in: SignedIn, look: str) -> BrowserContext:
    """A profile of its own with the session of that person, and with that look."""
    state = await signed_in.profile.storage_state()
    return await chromium.new_context(
        storage_state=state,
        viewport=PHONE if look == "phone" else DESKTOP,
        color_scheme="dark" if look == "dark" else "light",
        reduced_motion="reduce",
    )


async def _until_settled(page: Page) -> None:
    """Wait until nothing on the page is being loaded any more."""
    await page.locator(".loading, .thinking").first.wait_for(state="detached")


async def _serious_findings(page: Page) -> list[str]:
    """What axe finds to be a serious obstacle, with the elements that have it."""
    found = await Axe().run(page)
    violations: list[dict[str, Any]] = found.response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in violations
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
