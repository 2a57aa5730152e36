"""The page's chat through a LiveKit room, with the real server and livekit-client in a real Chromium."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext

from tests.browser.support.chat import Chat
from tests.browser.support.real_server import RealServer
from tests.browser.support.scenes import HEADACHE
from tests.browser.test_real_server import checked_afterwards
from tests.support.servers.forked_servers import Forker
from tools.servers.livekit import Address, new_address, running_livekit

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to

SECONDS_TO_RECONNECT = 60
REQUESTED_PATHS = "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)"


@contextmanager
def a_server(forker: Forker, data: Path, address: Address, *changes: str) -> Iterator[RealServer]:
    """`anamnesis serve` with that LiveKit server and with `changes` of `tests.faults.modified_servers`."""
    with checked_afterwards(RealServer(forker, data, address.environment)) as server:
        yield server.start(*changes)


def through_livekit(server: RealServer) -> str:
    """The address of the page that connects through LiveKit rooms."""
    return server.address.replace("/#", "/?livekit#")


@pytest.mark.requirement("000-003", "003-148", "003-149")
async def test_a_newcomer_chats_through_a_room_and_continues_after_a_reload(
    forker: Forker, tmp_path: Path, console: Path, livekit: Address, profile: BrowserContext
) -> None:
    with a_server(forker, tmp_path / "data", livekit) as server:
        chat = await Chat.open(profile, through_livekit(server))
        await chat.until_connected()
        await chat.say(HEADACHE)
        await chat.until_answered(1)
        await chat.reload()
        await chat.until_connected()
        await chat.say("8")
        await chat.until_answered(2)

        assert await chat.texts(".question p") == [HEADACHE, "8"]
        paths = await chat.run(REQUESTED_PATHS)
        assert any(path.endswith("/token") for path in paths)
        assert chat.failures == []


@pytest.mark.requirement("003-151", "003-153")
async def test_the_page_survives_a_livekit_server_that_dies_in_a_turn_and_is_started_again(
    forker: Forker, tmp_path: Path, console: Path, profile: BrowserContext
) -> None:
    address = new_address()
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        with a_server(forker, tmp_path / "data", address) as server:
            chat = await Chat.open(profile, through_livekit(server))
            await chat.until_connected()
            await chat.say(HEADACHE)
            await chat.until_answered(1)
            await chat.say("8")
            servers.close()
            servers.enter_context(running_livekit(address))
            await chat.until_answered(2, SECONDS_TO_RECONNECT)
            await chat.until_connected(SECONDS_TO_RECONNECT)
            await chat.say("It began yesterday")
            await chat.until_answered(3)

            questions = await chat.texts(".question p")
            await chat.reload()
            await chat.until_connected()

            assert questions == await chat.texts(".question p") == [HEADACHE, "8", "It began yesterday"]


@pytest.mark.requirement("003-151", "003-153")
async def test_the_rest_of_an_answer_that_continued_without_the_page_is_shown_once(
    forker: Forker, tmp_path: Path, console: Path, profile: BrowserContext
) -> None:
    address = new_address()
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        with a_server(forker, tmp_path / "data", address, "waits_in_the_middle") as server:
            chat = await Chat.open(profile, through_livekit(server))
            await chat.until_connected()
            await chat.say(HEADACHE)
            await chat.until_text(".sentence", "Sentence 1")
            servers.close()
            await chat.until_text(".connection", "Connection lost")
            server.signal(signal.SIGUSR1)
            servers.enter_context(running_livekit(address))
            await chat.until_answered(1, SECONDS_TO_RECONNECT)
            await chat.until_connected(SECONDS_TO_RECONNECT)
            before = await chat.exchanges()

            sentences = [text.strip() for text in await chat.texts(".sentence")]
            assert sentences == [f"Sentence {number} of ten." for number in range(1, 11)]
            await chat.reload()
            await chat.until_connected()
            assert await chat.exchanges() == before


async def test_without_livekit_the_page_that_asks_for_it_says_so(
    forker: Forker, tmp_path: Path, console: Path, profile: BrowserContext
) -> None:
    with checked_afterwards(RealServer(forker, tmp_path / "data")) as server:
        chat = await Chat.open(profile, through_livekit(server.start()))
        await chat.until_text(".notice", "LiveKit")

        assert await chat.texts(".exchange") == []
