"""The page with a scripted server: what it shows, and how it recovers from broken connections."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from playwright.async_api import Browser

from tests.browser.support.chat import Chat
from tests.browser.support.scenes import HEADACHE, StanzaSender
from tests.browser.support.scripted_server import ERROR, Connection, scripted_server

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to


@asynccontextmanager
async def page_with(
    browser: Browser, console: Path, *scripts: Callable[[Connection], None]
) -> AsyncIterator[Chat]:
    """The page in a new profile, with a server that runs these scripts. It fails if the page has errors."""
    with scripted_server(console, *scripts) as address:
        profile = await browser.new_context()
        try:
            chat = await Chat.open(profile, address)
            await chat.until_connected()
            yield chat
        finally:
            await profile.close()
    assert chat.failures == []


@pytest.mark.requirement("000-036")
async def test_an_answer_streams_with_its_traces_beside_it(chromium: Browser, console: Path) -> None:
    pause = Event()

    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.answer_headache(pause=pause)

    async with page_with(chromium, console, script) as chat:
        await chat.say(HEADACHE)

        await chat.until_text(".answer", "I am sorry to hear that.")
        assert await chat.texts(".question p") == [HEADACHE]
        assert await chat.run("document.querySelector('.answer').getAttribute('aria-busy')") == "true"
        pause.set()
        await chat.until_text(".answer", "Since when?")
        await chat.until_gone(".thinking")

        assert await chat.texts(".sentence") == ["I am sorry to hear that. ", "Since when? "]
        assert [[line for line in text.splitlines() if line] for text in await chat.texts(".trace")] == [
            [
                "retrieved",
                "active session",
                "1 turn, 71.5 % full; concern headache",
                "by COORDINATOR",
                "revision 3",
                "full 71.5 %",
                "level warning",
            ],
            [
                "retrieved",
                "fact",
                "Migraines since 2019 (cut)",
                "source conversation",
                "role primary",
                "confidence 87 %",
            ],
            ["updated", "active session", "Empty.", "by GENERAL HEALTH", "revision 4", "level normal"],
        ]


@pytest.mark.requirement("000-037")
async def test_without_the_panel_the_page_is_the_same_as_without_traces(
    chromium: Browser, console: Path
) -> None:
    async def html(*, traces: bool) -> str:
        def script(connection: Connection) -> None:
            StanzaSender(connection, traces=traces).answer_headache()

        async with page_with(chromium, console, script) as chat:
            await chat.open_menu("Memory traces", "Hide")
            await chat.until_gone(".menu")
            await chat.run("document.querySelector('textarea').focus()")
            await chat.say(HEADACHE)
            await chat.until_text(".answer", "Since when?")
            await chat.until_gone(".thinking")
            await chat.until_gone(".state.loading")
            return str(await chat.run("document.documentElement.outerHTML"))

    assert await html(traces=True) == await html(traces=False)


async def test_content_from_another_host_is_blocked_and_reported(chromium: Browser, console: Path) -> None:
    def script(connection: Connection) -> None:
        connection.shake_hands()

    with pytest.raises(AssertionError, match="Content Security Policy"):
        async with page_with(chromium, console, script) as chat, chat.page.expect_console_message():
            await chat.run(
                "document.body.append(Object.assign(new Image(), {src: 'http://elsewhere.test/a'}))"
            )


async def test_markup_in_messages_and_traces_is_shown_as_plain_text(chromium: Browser, console: Path) -> None:
    markup = (
        '<img src=x onerror="window.hacked = 1"> ![a](/favicon.svg) **b** <script>window.hacked = 2</script>'
    )

    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a", safety={"kind": markup, "tier": markup})
        server.trace(
            1, action=markup, memoryType=markup, content=markup, metadata={"label": markup, "level": markup}
        )
        server.sentence("msg_a", 1, markup, final=True)

    async with page_with(chromium, console, script) as chat:
        await chat.say(markup)
        await chat.until_text(".sentence", markup)

        assert await chat.texts(".question p") == [markup]
        assert await chat.texts(".content") == [markup]
        assert await chat.run("document.querySelectorAll('img, #page script').length") == 0
        assert await chat.run("window.hacked === undefined")


async def test_a_connection_that_breaks_in_the_middle_of_an_answer_recovers(
    chromium: Browser, console: Path
) -> None:
    configurations = []

    def first(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a")
        server.trace(1)
        server.sentence("msg_a", 1, "One.")
        connection.cut()

    def second(connection: Connection) -> None:
        server = StanzaSender(connection, sent=2)
        configurations.append(server.configuration)
        server.trace(1)  # sent again on purpose, although the page has it already
        server.sentence("msg_a", 1, "One.")
        server.sentence("msg_a", 2, "Two.")
        server.sentence("msg_a", 3, "Three.", final=True)

    async with page_with(chromium, console, first, second) as chat:
        await chat.say(HEADACHE)
        await chat.until_text(".answer", "Three.")

        assert configurations[0]["lastSequenceSeen"] == 4
        assert await chat.texts(".sentence") == ["One. ", "Two. ", "Three. "]
        assert len(await chat.texts(".trace")) == 1
        assert await chat.texts(".connection") == ["Connected"]


async def test_a_message_whose_acknowledgement_was_lost_is_sent_again_as_it_was(
    chromium: Browser, console: Path
) -> None:
    received = []

    def first(connection: Connection) -> None:
        connection.shake_hands()
        received.append(connection.receive())
        connection.cut()

    def second(connection: Connection) -> None:
        connection.shake_hands()
        received.append(connection.receive())
        StanzaSender(connection, handshake=False).acknowledge(received[-1])

    async with page_with(chromium, console, first, second) as chat:
        await chat.type("two")
        await chat.page.keyboard.press("Shift+Enter")
        await chat.say("lines")
        await chat.until_present(".question[data-state=delivered]")

        assert received[0] == received[1]
        assert received[0]["body"]["content"] == "two\nlines"
        assert await chat.texts(".question p") == ["two\nlines"]


async def test_an_answer_is_stopped_by_its_button(chromium: Browser, console: Path) -> None:
    received = []

    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a")
        server.sentence("msg_a", 1, "This will be long.")
        received.append(connection.receive())
        server.sentence("msg_a", 2, "", final=True)
        server.acknowledge(received[-1])

    async with page_with(chromium, console, script) as chat:
        await chat.say(HEADACHE)
        await chat.until_text(".answer", "This will be long.")
        await chat.click("Stop")

        await chat.until_text(".answer", "Stopped.")
        await chat.until_gone("button:text-is('Stop')")
        assert received[0] == {
            "stanzaId": 3,
            "conversationId": "conv_scripted",
            "type": 10,
            "body": {"conversationId": "conv_scripted", "targetId": "msg_a", "stopType": "generation"},
        }


async def test_a_safety_answer_is_highlighted(chromium: Browser, console: Path) -> None:
    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a", safety={"kind": "emergency", "tier": 1})
        server.sentence("msg_a", 1, "Call 112 now.", final=True)

    async with page_with(chromium, console, script) as chat:
        await chat.say("My chest hurts")

        await chat.until_text(".answer.safety", "Call 112 now.")
        await chat.until_text(".safety-title", "This may be an emergency")


async def test_a_question_about_possible_danger_is_no_alarm(chromium: Browser, console: Path) -> None:
    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a", safety={"kind": "emergency", "tier": 2, "certainty": "possible"})
        server.sentence("msg_a", 1, "Is the chest pain there right now?", final=True)

    async with page_with(chromium, console, script) as chat:
        await chat.say("My chst hrts")

        await chat.until_text(".answer.safety-question", "Is the chest pain there right now?")
        await chat.until_text(".question-title", "A question first")
        assert await chat.texts(".safety-title, .answer.safety") == []


async def test_an_answer_that_the_model_did_not_give_says_so(chromium: Browser, console: Path) -> None:
    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a")
        usage = {"model.asked": 1, "model.stood_in": "local", "model.trouble": "http_503"}
        server.sentence("msg_a", 1, "Rest a little.", final=True, meta=usage)

    async with page_with(chromium, console, script) as chat:
        await chat.say(HEADACHE)

        await chat.until_text(".answer", "Rest a little.")
        await chat.until_text(".answer .trouble", "Answered without the model: http 503")


async def test_a_failed_answer_says_why_and_can_be_asked_for_again(chromium: Browser, console: Path) -> None:
    received = []

    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.start_answer("msg_a")
        server.sentence("msg_a", 1, "Well,")
        server.fail(501, "The answer was cut off.")
        received.append(connection.receive())
        server.acknowledge(received[-1])
        server.start_answer("msg_b")
        server.sentence("msg_b", 1, "Here it is.", final=True)

    async with page_with(chromium, console, script) as chat:
        await chat.say(HEADACHE)
        await chat.until_text(".failure", "cut off")

        await chat.click("Ask again")
        await chat.until_text(".answer", "Here it is.")

        assert (received[0]["type"], received[0]["body"]["mode"], received[0]["body"]["targetId"]) == (
            11,
            "regenerate",
            "msg_a",
        )
        assert await chat.texts(".failure") == []


async def test_a_message_whose_answer_never_began_can_be_asked_again(
    chromium: Browser, console: Path
) -> None:
    received: list[Any] = []

    def script(connection: Connection) -> None:
        server = StanzaSender(connection)
        server.receive_message()
        server.fail(501, "It was set aside.")
        received.extend((server.question, connection.receive()))
        server.acknowledge(received[-1])
        server.start_answer("msg_b")
        server.sentence("msg_b", 1, "Here it is.", final=True)

    async with page_with(chromium, console, script) as chat:
        await chat.say(HEADACHE)
        await chat.until_text(".failure", "set aside")

        await chat.click("Ask again")
        await chat.until_text(".answer", "Here it is.")

        question, request = received
        assert (request["body"]["mode"], request["body"]["targetId"]) == ("regenerate", question)
        assert await chat.texts(".failure") == []


async def test_a_message_that_is_refused_says_why(chromium: Browser, console: Path) -> None:
    def script(connection: Connection) -> None:
        connection.shake_hands()
        fields = {"severity": 2, "recoverable": True, "originatingId": connection.receive()["body"]["id"]}
        connection.send(0, ERROR, id="err_1", code=103, message="The frame is too large.", **fields)
        connection.send(
            0, ERROR, id="err_2", code=102, message="Nobody knows type 99.", severity=1, recoverable=True
        )

    async with page_with(chromium, console, script) as chat:
        await chat.say("a very long story")

        await chat.until_text(".question .failure", "Not delivered: The frame is too large.")
        await chat.until_text(".notice", "Nobody knows type 99.")
        await chat.click("Dismiss")
        await chat.until_gone(".notice")


async def test_a_conversation_the_server_lost_can_be_left_for_a_new_one(
    chromium: Browser, console: Path
) -> None:
    received = []

    def known(connection: Connection) -> None:
        StanzaSender(connection).receive_message()
        connection.cut()

    def unknown(connection: Connection) -> None:
        received.append(connection.receive())
        fields: dict[str, Any] = {"severity": 2, "recoverable": False}
        connection.send(0, ERROR, id="err_1", code=201, message="There is no such conversation.", **fields)

    def new(connection: Connection) -> None:
        received.append(connection.shake_hands())

    async with page_with(chromium, console, known, unknown, new) as chat:
        await chat.say(HEADACHE)
        await chat.until_text(".notice", "There is no such conversation.")
        assert await chat.texts(".question p") == [HEADACHE]

        await chat.click("Start a new conversation")
        await chat.until_connected()

        assert await chat.texts(".question p") == []
        assert received[0]["conversationId"] == "conv_scripted"
        assert received[1]["conversationId"] == ""


async def test_a_screen_reader_finds_every_part_of_the_page(chromium: Browser, console: Path) -> None:
    def script(connection: Connection) -> None:
        StanzaSender(connection).answer_headache()

    async with page_with(chromium, console, script) as chat:
        await chat.say(HEADACHE)
        await chat.until_text(".answer", "Since when?")

        names: list[tuple[Any, str]] = [
            ("log", "Conversation"),
            ("textbox", "Your message"),
            ("button", "Send"),
            ("button", "Memory traces"),
            ("button", "New conversation"),
            ("button", "Sign out"),
            ("heading", "You"),
            ("complementary", "Memory traces of this answer"),
        ]
        for role, name in names:
            assert await chat.page.get_by_role(role, name=name, exact=True).count() == 1, (role, name)
        assert await chat.run("document.querySelector('[role=log]').ariaLive") == "polite"
        assert await chat.run("document.querySelector('.traces').ariaLive") == "off"
