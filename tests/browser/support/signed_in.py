"""A person who has told of a headache and an allergy, signed in to a real server, for several test files."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from tests.browser.support.chat import Chat
from tests.browser.support.real_server import RealServer
from tests.browser.support.scenes import HEADACHE
from tests.support.servers.forked_servers import Forker

ALLERGY = "I am allergic to penicillin"
MEMORY_QUESTION = "what did I tell you about my allergies?"
MESSAGES = (HEADACHE, "8", "since Tuesday", ALLERGY)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, console: Path, forker: Forker) -> Iterator[RealServer]:
    """A running server, shared by all tests of this file."""
    with RealServer(forker, tmp_path_factory.mktemp("server") / "data") as server:
        yield server.start()
    check = server.forker.run(server.data, "check")
    assert (check.returncode, check.stderr) == (0, ""), check.stdout


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A profile of a person, and the address of their newest conversation."""

    profile: BrowserContext
    newest: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def signed_in(server: RealServer, chromium: Browser) -> AsyncIterator[SignedIn]:
    """A profile in which a person has told of a headache and an allergy, then asked about it later."""
    profile = await chromium.new_context()
    chat = await Chat.open(profile, server.address_for("ann"))
    await say_all(chat, *MESSAGES)
    await start_over(chat)
    await say_all(chat, MEMORY_QUESTION)
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


async def say_all(chat: Chat, *messages: str) -> None:
    """Say each message after the answer to the one before, in a new conversation."""
    await chat.until_connected()
    await chat.page.locator("textarea").focus()
    for number, message in enumerate(messages, start=1):
        await chat.say(message)
        await chat.until_answered(number)


async def start_over(chat: Chat) -> None:
    """Start a new conversation."""
    await chat.click("New conversation")
    await chat.until_gone(".exchange")
    await chat.until_connected()


async def open_first_conversation(chat: Chat) -> None:
    """Open the conversation with the four messages by the list."""
    await chat.page.locator(".conversation-entry", has_text="4 messages").get_by_role("link").click()
    await chat.until_answered(4)
    await expect(chat.page.locator(".question > p")).to_have_count(4)
