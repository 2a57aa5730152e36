"""The views of the page with the real server: conversations, why an answer was given, the memory blocks."""

import gzip
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from tests.browser.chat import Chat
from tests.browser.orchestrator import Orchestrator
from tests.browser.scenes import HEADACHE
from tests.browser.test_real_server import checked_afterwards
from tests.support.forked_servers import Forker

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to

ALLERGY = "I am allergic to penicillin"
MEMORY_QUESTION = "what did I tell you about my allergies?"
LARGEST_START = 200_000  # bytes of JavaScript, gzipped, that the chat needs
WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def orchestrator(
    tmp_path_factory: pytest.TempPathFactory, console: Path, forker: Forker
) -> Iterator[Orchestrator]:
    """A running server, shared by all tests of this file."""
    with checked_afterwards(Orchestrator(forker, tmp_path_factory.mktemp("server") / "data")) as orchestrator:
        yield orchestrator.start()


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A profile of a person, and the address of their newest conversation."""

    profile: BrowserContext
    newest: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def signed_in(orchestrator: Orchestrator, chromium: Browser) -> AsyncIterator[SignedIn]:
    """A profile in which a person has told of a headache and an allergy, then asked about it later."""
    profile = await chromium.new_context()
    chat = await Chat.open(profile, orchestrator.address_for("ann"))
    await chat.until_connected()
    for number, message in enumerate((HEADACHE, "8", "since Tuesday", ALLERGY), start=1):
        await chat.say(message)
        await chat.until_answered(number)
    await chat.click("New conversation")
    await chat.until_gone(".exchange")
    await chat.until_connected()
    await chat.page.locator("textarea").focus()
    await chat.say(MEMORY_QUESTION)
    await chat.until_answered(1)
    await chat.page.close()
    assert chat.failures == []
    yield SignedIn(profile, chat.page.url)
    await profile.close()


@pytest_asyncio.fixture(loop_scope="session")
async def chat(signed_in: SignedIn) -> AsyncIterator[Chat]:
    """A tab of that person, with the newest conversation. Nothing may fail in it."""
    chat = await Chat.open(signed_in.profile, signed_in.newest)
    await chat.until_answered(1)
    yield chat
    await chat.page.close()
    assert chat.failures == []


async def open_first_conversation(chat: Chat) -> None:
    """Open the conversation with the four messages by the list."""
    await chat.page.locator(".conversation-entry", has_text="4 messages").get_by_role("link").click()
    await chat.until_answered(4)
    await expect(chat.page.locator(".question > p")).to_have_count(4)


async def test_a_memory_question_is_answered_and_its_memory_is_opened(chat: Chat) -> None:
    assert "penicillin" in (await chat.texts(".answer"))[0]

    await chat.page.get_by_role("link", name=re.compile(r"^from memory: \d+ · why\?$")).click()
    await chat.until_text(".story", MEMORY_QUESTION)

    assert re.search(r"/why/msg_", chat.page.url)
    memories = await chat.texts(".memories li")
    assert any("penicillin" in memory for memory in memories)
    await chat.until_text(".station h3", "Understood as")
    assert len(await chat.texts(".waterfall tr")) >= 3


async def test_the_list_opens_an_earlier_conversation_with_the_own_messages(chat: Chat) -> None:
    await open_first_conversation(chat)

    assert await chat.texts(".question > p") == [HEADACHE, "8", "since Tuesday", ALLERGY]
    assert re.search(r"/chat/conv_", chat.page.url)


async def test_conversations_are_found_renamed_and_archived(chat: Chat) -> None:
    search = chat.page.get_by_role("searchbox", name="Search conversations")
    await search.fill("penicillin")
    await expect(chat.page.locator(".conversation-entry")).to_have_count(2)
    await search.fill("Tuesday")
    await expect(chat.page.locator(".conversation-entry")).to_have_count(1)

    await chat.page.locator(".conversation-entry button").click()
    await chat.page.get_by_role("menuitem", name="Rename").click()
    await chat.page.get_by_role("textbox", name="Title").fill("My headache")
    await chat.page.keyboard.press("Enter")
    await chat.until_text(".conversation-title", "My headache")

    await chat.page.get_by_role("button", name="Change My headache").click()
    await chat.page.get_by_role("menuitem", name="Archive").click()
    await chat.until_text(".conversations .empty", "No conversation has these words")
    await chat.page.get_by_role("checkbox", name="Archived").check()
    await chat.page.get_by_role("button", name="Change My headache").click()
    await chat.page.get_by_role("menuitem", name="Make active again").click()
    await chat.page.get_by_role("checkbox", name="Archived").uncheck()
    await chat.until_text(".conversation-title", "My headache")


async def test_the_slider_shows_the_blocks_after_the_first_turn(chat: Chat) -> None:
    await open_first_conversation(chat)
    await chat.page.get_by_role("link", name="Blocks").click()
    session = chat.page.get_by_role("region", name="Active session")
    await expect(session).to_contain_text("Allergies: penicillin")
    await chat.until_text(".valid", "keep every rule")

    slider = chat.page.get_by_role("slider", name="Turn")
    await slider.focus()
    await slider.press("Home")

    await expect(session).to_contain_text("Concern: headache")
    await expect(session).not_to_contain_text("penicillin")
    assert "turn=1" in chat.page.url
    await chat.page.get_by_role("button", name="Later").click()
    added = chat.page.get_by_role("region", name="Conversation history").locator("[data-change=added]")
    await expect(added.filter(has_text="Person: 8")).to_have_count(1)


async def test_a_diff_of_two_revisions_says_what_changed_and_who_changed_it(chat: Chat) -> None:
    await open_first_conversation(chat)
    await chat.page.get_by_role("link", name="Blocks").click()
    session = chat.page.get_by_role("region", name="Active session")
    await session.get_by_role("button", name="Revisions").click()

    revisions = chat.page.get_by_role("region", name="Revisions of active session")
    await expect(revisions.get_by_role("button")).to_have_count(4)
    await revisions.get_by_role("button").nth(2).click()

    await expect(revisions.locator("[data-change=added]")).to_contain_text(["Severity of headache: 8/10"])
    await expect(revisions.get_by_role("button").nth(2)).to_contain_text("context extractor")
    assert "label=active_session" in chat.page.url


async def test_a_deep_link_opens_cold_and_shows_nothing_before_the_person_is_known(
    orchestrator: Orchestrator, chat: Chat, profile: BrowserContext
) -> None:
    await chat.page.locator(".why").click()
    await chat.until_text(".story", MEMORY_QUESTION)
    address = chat.page.url
    cold = await Chat.open(chat.page.context, address)
    await cold.until_text(".story", MEMORY_QUESTION)
    assert await cold.texts(".connection") == ["Signed in"]

    stranger = await Chat.open(profile, address)
    await stranger.until_text(".notice", "You are not signed in")
    assert await stranger.texts(".story") == []
    await stranger.page.goto(orchestrator.address_for("boris"))
    await stranger.until_connected()
    await stranger.page.goto(address)
    await stranger.until_text(".failed", "could not be shown")

    assert "penicillin" not in await stranger.page.content()
    assert cold.failures == stranger.failures == []
    await cold.page.close()


async def test_an_address_that_is_no_view_says_so(orchestrator: Orchestrator, chat: Chat) -> None:
    await chat.page.goto(f"{orchestrator.url}/chat/a/b/c")

    await chat.until_text("main", "There is no such page")


async def test_a_message_is_edited_and_answered_again(
    orchestrator: Orchestrator, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, orchestrator.address_for("cleo"))
    await chat.until_connected()
    await chat.say("I have had a hedache")
    await chat.until_answered(1)

    await chat.click("Edit")
    await chat.page.get_by_role("textbox", name="Your message, corrected").fill(HEADACHE)
    await chat.click("Send again")
    await chat.until_text(".exchange:last-child .question > p", HEADACHE)
    await chat.until_connected()
    await chat.page.locator(".exchange:last-child .answer[aria-busy=false]").wait_for()
    await chat.click("Answer again")
    await chat.until_text(".before summary", "The answer before")
    await chat.until_connected()
    after = await chat.exchanges()

    await chat.reload()
    await chat.until_connected()
    assert await chat.exchanges() == after
    assert chat.failures == []


async def test_on_a_phone_every_view_fits_and_the_list_covers_the_chat(chat: Chat) -> None:
    await chat.page.set_viewport_size({"width": 360, "height": 740})
    assert await chat.run(WIDER_THAN_THE_WINDOW) is False
    await chat.click("Conversations")
    await open_first_conversation(chat)
    await expect(chat.page.locator(".conversations")).to_be_hidden()

    for name in ("Blocks", "this conversation|the conversation of|My headache"):
        await chat.page.get_by_role("link", name=re.compile(name)).first.click()
        await chat.page.locator(".blocks .diff, .exchange").first.wait_for()
        assert await chat.run(WIDER_THAN_THE_WINDOW) is False


async def test_the_chat_starts_with_less_javascript_than_the_limit(console: Path) -> None:
    page = (console / "index.html").read_text()
    needed = re.findall(r'(?:src|href)="/(assets/[^"]+\.js)"', page)
    imported = [name for name in needed for name in _imports(console, name)]

    sizes = {name: len(gzip.compress((console / name).read_bytes())) for name in {*needed, *imported}}
    assert sum(sizes.values()) < LARGEST_START, json.dumps(sizes)
    assert len(list((console / "assets").glob("*.js"))) > len(sizes)  # the views are files of their own


def _imports(console: Path, name: str) -> set[str]:
    """The files that a file imports when it starts, and those that these import."""
    code = (console / name).read_text()
    direct = {f"assets/{each}" for each in re.findall(r'from"\./([^"]+\.js)"', code)}
    return direct.union(*(_imports(console, each) for each in direct))
