"""The page with the real server: a first conversation, reloads, several tabs, and crashes of the server."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGUSR1

import pytest
from playwright.async_api import Browser, BrowserContext, Route

from tests.browser.support.chat import Chat
from tests.browser.support.real_server import RealServer
from tests.browser.support.scenes import HEADACHE
from tests.support.servers.forked_servers import Forker
from tools.picture import LARGEST, take_picture, take_views
from tools.setup.toolchain import CHECKOUT

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to

FIRST_SENTENCE_SENT = "after_sentence_commit:1"
SIGN_IN = "Run anamnesis open where the server runs"
STORED = "JSON.stringify({...localStorage})"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, console: Path, forker: Forker) -> Iterator[RealServer]:
    """A running server, shared by the tests that do not kill it."""
    with checked_afterwards(RealServer(forker, tmp_path_factory.mktemp("server") / "data")) as server:
        yield server.start()


@pytest.fixture
def own_server(tmp_path: Path, console: Path, forker: Forker) -> Iterator[RealServer]:
    """A server for one test alone, which starts and kills it."""
    with checked_afterwards(RealServer(forker, tmp_path / "data")) as server:
        yield server


@contextmanager
def checked_afterwards(server: RealServer) -> Iterator[RealServer]:
    """Afterwards, `anamnesis check` must find nothing wrong in the database."""
    with server:
        yield server
    check = server.forker.run(server.data, "check")
    assert (check.returncode, check.stderr) == (0, ""), check.stdout


@pytest.mark.requirement("000-036")
async def test_a_newcomer_says_what_hurts_and_sees_the_answer_with_its_traces(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address)
    await chat.until_connected()

    await chat.say(HEADACHE)
    await chat.until_answered(1)
    await chat.say("8")
    await chat.until_answered(2)

    assert await chat.texts(".question p") == [HEADACHE, "8"]
    assert [_actions(trace) for trace in await chat.texts(".traces")] == [
        {"retrieved", "stored"},
        {"retrieved", "updated"},
    ]
    assert chat.failures == []


async def test_the_code_leaves_the_address_bar_for_a_cookie_no_script_can_read(
    server: RealServer, profile: BrowserContext
) -> None:
    address = server.address
    chat = await Chat.open(profile, address)
    await chat.until_connected()

    assert await chat.run("location.href") == f"{server.url}/"
    assert await chat.run("document.cookie") == ""
    seen = address + await chat.run(f"{STORED} + document.documentElement.outerHTML")
    assert server.key not in seen
    assert address.partition("#")[2] not in seen.removeprefix(address)
    await chat.reload()
    await chat.until_connected()


@pytest.mark.parametrize("part", ["a-wrong-code", "key"], ids=["wrong", "key"])
async def test_without_a_code_the_page_says_which_address_to_open(
    server: RealServer, profile: BrowserContext, part: str
) -> None:
    chat = await Chat.open(profile, server.url)
    await chat.until_text(".notice", SIGN_IN)
    assert await chat.texts(".connection") == ["Not signed in"]

    await chat.page.goto(f"{server.url}/#{server.key if part == 'key' else part}")
    await chat.page.wait_for_url(f"{server.url}/")
    await chat.until_text(".notice", SIGN_IN)

    await chat.page.goto(server.address)
    await chat.until_connected()


async def test_signing_out_leaves_nothing_in_any_tab_and_the_address_no_longer_works(
    server: RealServer, profile: BrowserContext
) -> None:
    address = server.address
    chat = await Chat.open(profile, address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    await chat.until_answered(1)
    other = await Chat.open(profile, address)  # a used code does not end the session
    await other.until_answered(1)
    await other.type("a draft")

    await chat.click("Sign out")
    await chat.click("Sign out now")

    for tab in (chat, other):
        await tab.until_text(".connection", "Not signed in")
        assert await tab.texts(".exchange") == []
        assert await tab.page.locator("textarea").input_value() == ""
    assert await chat.run(STORED) == "{}"
    assert await profile.cookies() == []
    await chat.page.goto(address)
    await chat.until_text(".notice", SIGN_IN)
    assert HEADACHE not in await chat.page.content()


async def test_nothing_of_a_conversation_is_displayed_before_the_server_knows_the_person(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    await chat.until_answered(1)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await answer.wait()
        await route.continue_()

    await chat.page.route("**/v1/session", hold)
    await chat.reload()
    await asked.wait()
    assert HEADACHE not in await chat.page.content()
    answer.set()

    await chat.until_answered(1)
    assert await chat.texts(".question p") == [HEADACHE]


async def test_a_session_that_has_ended_shows_nothing_and_leaves_nothing(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    await chat.until_answered(1)

    await profile.clear_cookies()
    await chat.reload()
    await chat.until_text(".notice", SIGN_IN)

    assert HEADACHE not in await chat.page.content()
    assert await chat.run(STORED) == "{}"


async def test_the_next_person_on_a_browser_sees_nothing_of_the_one_before(
    server: RealServer, profile: BrowserContext
) -> None:
    annas = await Chat.open(profile, server.address_for("anna"))
    await annas.until_connected()
    await annas.say(HEADACHE)
    await annas.until_answered(1)

    boriss = await Chat.open(profile, server.address_for("boris"))
    await boriss.until_connected()
    await annas.until_gone(".exchange")

    for tab in (annas, boriss):
        assert HEADACHE not in await tab.page.content()
    assert "headache" not in await boriss.run(STORED)
    assert '"boris"' in await boriss.run(STORED)


async def test_the_tab_of_the_person_before_leaves_the_conversation_to_the_next_person(
    server: RealServer, profile: BrowserContext
) -> None:
    annas = await Chat.open(profile, server.address_for("anna"))
    await annas.until_connected()
    connected = asyncio.Event()

    async def hold(route: Route) -> None:
        await connected.wait()
        await route.continue_()

    await annas.page.route("**/v1/session", hold)  # until Boris's conversation is stored
    boriss = await Chat.open(profile, server.address_for("boris"))
    await boriss.until_connected()
    connected.set()
    await annas.until_text(".notice", "Somebody else has signed in")
    await boriss.say(HEADACHE)
    await boriss.until_answered(1)
    await boriss.reload()
    await boriss.until_answered(1)

    assert await annas.texts(".exchange") == []
    await annas.click("Continue here")
    await annas.until_answered(1)
    await boriss.until_text(".notice", "opened elsewhere")


async def test_a_reload_shows_nothing_twice_and_loses_nothing(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    await chat.until_answered(1)
    before = await chat.exchanges()

    await chat.reload()
    await chat.until_connected()
    assert await chat.exchanges() == before

    await chat.say("8")
    await chat.until_text(".question", "8")
    await chat.reload()
    await chat.until_answered(2)
    assert (await chat.exchanges())[:1] == before
    assert await chat.texts(".question p") == [HEADACHE, "8"]


async def test_a_second_tab_takes_over_and_the_first_can_take_back(
    server: RealServer, profile: BrowserContext
) -> None:
    first = await Chat.open(profile, server.address)
    await first.until_connected()
    await first.say(HEADACHE)
    await first.until_answered(1)

    second = await Chat.open(profile, server.url)
    await second.until_connected()
    await first.until_text(".notice", "opened elsewhere")
    assert await second.exchanges() == await first.exchanges()

    await second.say("8")
    await second.until_answered(2)
    await first.click("Continue here")
    await first.until_answered(2)
    await second.until_text(".notice", "opened elsewhere")
    assert await first.exchanges() == await second.exchanges()


async def test_a_server_killed_in_the_middle_of_an_answer_comes_back_to_the_same_page(
    own_server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, own_server.start(fault=FIRST_SENTENCE_SENT).address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    own_server.wait()
    await chat.until_text(".connection", "Connection lost")

    own_server.start()
    await chat.until_text(".failure", "A restart interrupted the answer")
    await chat.until_connected()
    assert await chat.texts(".question p") == [HEADACHE]
    assert len(await chat.texts(".sentence")) == 1

    await chat.click("Ask again")
    await chat.until_gone(".failure")
    await chat.until_answered(1)
    after = await chat.exchanges()
    await chat.reload()
    await chat.until_connected()
    assert await chat.exchanges() == after


async def test_the_network_is_cut_in_the_middle_of_an_answer_and_the_rest_comes_when_it_is_back(
    own_server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, own_server.start("waits_in_the_middle").address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    await chat.until_text(".sentence", "Sentence 1 of ten")

    await profile.set_offline(True)
    await chat.until_text(".connection", "Connection lost")
    own_server.signal(SIGUSR1)  # the answer ends while the page is offline
    seen = await chat.texts(".sentence")
    await profile.set_offline(False)
    await chat.until_answered(1)

    whole = [f"Sentence {number} of ten. " for number in range(1, 11)]
    assert seen == whole[: len(seen)]
    assert len(seen) < len(whole)
    assert await chat.texts(".sentence") == whole
    assert await chat.texts(".question p") == [HEADACHE]
    assert chat.failures == []


async def test_a_message_written_while_the_server_is_away_is_answered_once_it_is_back(
    own_server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, own_server.start().address)
    await chat.until_connected()
    own_server.kill()
    await chat.until_text(".connection", "Connection lost")

    await chat.say(HEADACHE)
    await chat.until_text(".question", "Sending")
    own_server.start()

    await chat.until_answered(1)
    assert await chat.texts(".question p") == [HEADACHE]


async def test_a_new_conversation_begins_empty_and_the_earlier_one_can_be_opened_again(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address)
    await chat.until_connected()
    await chat.say(HEADACHE)
    await chat.until_answered(1)
    earlier = await chat.exchanges()

    await chat.click("New conversation")
    await chat.until_gone(".exchange")
    await chat.until_connected()
    await chat.reload()
    await chat.until_connected()
    assert await chat.texts(".exchange") == []

    await chat.page.go_back()
    await chat.until_answered(1)
    await chat.until_text(".question p", HEADACHE)
    assert await chat.exchanges() == earlier


async def test_the_picture_of_the_readme_can_be_taken(server: RealServer, chromium: Browser) -> None:
    picture = await take_picture(chromium, server.address)

    assert picture.startswith(b"\x89PNG")
    assert len(picture) < LARGEST


async def test_the_pictures_of_the_views_can_be_taken(own_server: RealServer, chromium: Browser) -> None:
    pictures = await take_views(chromium, own_server.start().address)

    text = (CHECKOUT / "docs" / "console.md").read_text()
    assert {f"images/console-{name}.png" in text for name in pictures} == {True}
    assert all(len(picture) < LARGEST for picture in pictures.values())


def _actions(traces: str) -> set[str]:
    return {"retrieved", "stored", "updated"} & set(traces.split())
