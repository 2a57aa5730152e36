"""The page before a server whose every word is scripted: what it shows, and how it bears a bad line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.scenes import HEADACHE, Teller
from tests.browser.scripted_server import ERROR, Line, scripted_server


@contextmanager
def page_with(browser: Browser, console: Path, *scripts: Callable[[Line], None]) -> Iterator[Page]:
    """A page in a new profile, connected to a server that follows the scripts; nothing may fail in it."""
    with browser.profile() as profile, scripted_server(console, *scripts) as address:
        page = profile.open(address)
        yield page
        assert page.failures == []


@pytest.mark.requirement("000-036")
def test_an_answer_streams_with_its_traces_beside_it(chromium: Browser, console: Path) -> None:
    go = Event()

    def script(line: Line) -> None:
        teller = Teller(line)
        teller.answer_headache(until=go)

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter()

        page.until_text(".answer", "I am sorry to hear that.")
        assert page.texts(".question p") == [HEADACHE]
        assert page.run("document.querySelector('.answer').getAttribute('aria-busy')") == "true"
        go.set()
        page.until_text(".answer", "Since when?").until("!document.querySelector('.thinking')")

        assert page.texts(".sentence") == ["I am sorry to hear that. ", "Since when? "]
        assert [[line for line in text.splitlines() if line] for text in page.texts(".trace")] == [
            [
                "retrieved",
                "active session",
                "by COORDINATOR",
                "revision 3",
                "full 71.5 %",
                "level warning",
                "{}",
            ],
            [
                "retrieved",
                "fact",
                "source conversation",
                "role primary",
                "confidence 87 %",
                "Migraines since 2019",
            ],
            ["updated", "active session", "by GENERAL HEALTH", "revision 4", "level normal", "Empty. (cut)"],
        ]


@pytest.mark.requirement("000-037")
def test_without_the_panel_the_page_is_the_same_as_without_traces(chromium: Browser, console: Path) -> None:
    def seen(*, traces: bool) -> str:
        with page_with(chromium, console, lambda line: Teller(line, traces=traces).answer_headache()) as page:
            page.until_text(".connection", "Connected").click("Memory traces")
            page.until("!document.querySelector('.traces')").run("document.querySelector('textarea').focus()")
            page.type(HEADACHE).press_enter().until_text(".answer", "Since when?")
            return str(
                page.until("!document.querySelector('.thinking')").run("document.documentElement.outerHTML")
            )

    assert seen(traces=True) == seen(traces=False)


def test_what_is_said_is_shown_as_text_and_nothing_else(chromium: Browser, console: Path) -> None:
    nasty = (
        '<img src=x onerror="window.hacked = 1"> ![a](/favicon.svg) **b** <script>window.hacked = 2</script>'
    )

    def script(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.start("msg_a", safety={"kind": nasty, "tier": nasty})
        teller.trace(
            1, action=nasty, memoryType=nasty, content=nasty, metadata={"label": nasty, "level": nasty}
        )
        teller.sentence("msg_a", 1, nasty, final=True)

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type(nasty).press_enter().until_text(".sentence", nasty)

        assert page.texts(".question p") == [nasty]
        assert page.text(".content") == nasty
        assert page.run("document.querySelectorAll('img, #page script').length") == 0
        assert page.run("window.hacked === undefined")


def test_a_line_that_breaks_in_the_middle_of_an_answer_comes_back(chromium: Browser, console: Path) -> None:
    configurations = []

    def first(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.start("msg_a")
        teller.trace(1)
        teller.sentence("msg_a", 1, "One.")
        line.cut()

    def second(line: Line) -> None:
        teller = Teller(line, said=2)
        configurations.append(teller.configuration)
        teller.trace(1)  # what the page has already seen is sent again on purpose
        teller.sentence("msg_a", 1, "One.")
        teller.sentence("msg_a", 2, "Two.")
        teller.sentence("msg_a", 3, "Three.", final=True)

    with page_with(chromium, console, first, second) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter().until_text(
            ".answer", "Three."
        )

        assert configurations[0]["lastSequenceSeen"] == 4
        assert page.texts(".sentence") == ["One. ", "Two. ", "Three. "]
        assert len(page.texts(".trace")) == 1
        assert page.text(".connection") == "Connected"


def test_a_message_whose_acknowledgement_was_lost_is_sent_again_as_it_was(
    chromium: Browser, console: Path
) -> None:
    heard = []

    def first(line: Line) -> None:
        line.greet()
        heard.append(line.hear())
        line.cut()

    def second(line: Line) -> None:
        line.greet()
        heard.append(line.hear())
        Teller(line, greet=False).acknowledge(heard[-1])

    with page_with(chromium, console, first, second) as page:
        page.until_text(".connection", "Connected").type("two").press_enter(shift=True).type(
            "lines"
        ).press_enter()
        page.until("document.querySelector('.question')?.dataset.state === 'delivered'")

        assert heard[0] == heard[1]
        assert heard[0]["body"]["content"] == "two\nlines"
        assert page.texts(".question p") == ["two\nlines"]


def test_an_answer_is_stopped_by_its_button(chromium: Browser, console: Path) -> None:
    heard = []

    def script(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.start("msg_a")
        teller.sentence("msg_a", 1, "This will be long.")
        heard.append(line.hear())
        teller.sentence("msg_a", 2, "", final=True)
        teller.acknowledge(heard[-1])

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter()
        page.until_text(".answer", "This will be long.").click("Stop")

        page.until_text(".answer", "Stopped.").until(
            "![...document.querySelectorAll('button')].some(b => b.innerText === 'Stop')"
        )
        assert heard[0] == {
            "stanzaId": 3,
            "conversationId": "conv_scripted",
            "type": 10,
            "body": {"conversationId": "conv_scripted", "targetId": "msg_a", "stopType": "generation"},
        }


def test_a_safety_answer_stands_out(chromium: Browser, console: Path) -> None:
    def script(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.start("msg_a", safety={"kind": "emergency", "tier": 1})
        teller.sentence("msg_a", 1, "Call 112 now.", final=True)

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type("My chest hurts").press_enter()

        page.until_text(".answer.safety", "Call 112 now.").until_text(
            ".safety-title", "This may be an emergency"
        )


def test_an_answer_that_the_model_did_not_give_says_so(chromium: Browser, console: Path) -> None:
    def script(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.start("msg_a")
        told = {"model.asked": 1, "model.stood_in": "local", "model.trouble": "http_503"}
        teller.sentence("msg_a", 1, "Rest a little.", final=True, meta=told)

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter()

        page.until_text(".answer", "Rest a little.").until_text(
            ".answer .trouble", "Answered without the model: http_503"
        )


def test_a_failed_answer_says_why_and_can_be_asked_for_again(chromium: Browser, console: Path) -> None:
    heard = []

    def script(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.start("msg_a")
        teller.sentence("msg_a", 1, "Well,")
        teller.fail(501, "The answer was cut off.")
        heard.append(line.hear())
        teller.acknowledge(heard[-1])
        teller.start("msg_b")
        teller.sentence("msg_b", 1, "Here it is.", final=True)

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter().until_text(
            ".failure", "cut off"
        )

        page.click("Ask again").until_text(".answer", "Here it is.")

        assert (heard[0]["type"], heard[0]["body"]["mode"], heard[0]["body"]["targetId"]) == (
            11,
            "regenerate",
            "msg_a",
        )
        assert page.texts(".failure") == []


def test_a_message_whose_answer_never_began_can_be_asked_again(chromium: Browser, console: Path) -> None:
    heard: list[Any] = []

    def script(line: Line) -> None:
        teller = Teller(line)
        teller.hear()
        teller.fail(501, "It was set aside.")
        heard.extend((teller.question, line.hear()))
        teller.acknowledge(heard[-1])
        teller.start("msg_b")
        teller.sentence("msg_b", 1, "Here it is.", final=True)

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter().until_text(
            ".failure", "set aside"
        )

        page.click("Ask again").until_text(".answer", "Here it is.")

        question, request = heard
        assert (request["body"]["mode"], request["body"]["targetId"]) == ("regenerate", question)
        assert page.texts(".failure") == []


def test_a_message_that_is_refused_says_why(chromium: Browser, console: Path) -> None:
    def script(line: Line) -> None:
        line.greet()
        about = {"severity": 2, "recoverable": True, "originatingId": line.hear()["body"]["id"]}
        line.say(0, ERROR, id="err_1", code=103, message="The frame is too large.", **about)
        line.say(
            0, ERROR, id="err_2", code=102, message="Nobody knows type 99.", severity=1, recoverable=True
        )

    with page_with(chromium, console, script) as page:
        page.until_text(".connection", "Connected").type("a very long story").press_enter()

        page.until_text(".question .failure", "Not delivered: The frame is too large.")
        page.until_text(".notice", "Nobody knows type 99.").click("Dismiss").until(
            "!document.querySelector('.notice')"
        )


def test_a_conversation_the_server_lost_can_be_left_for_a_new_one(chromium: Browser, console: Path) -> None:
    asked = []

    def known(line: Line) -> None:
        Teller(line).hear()
        line.cut()

    def unknown(line: Line) -> None:
        asked.append(line.hear())
        about: dict[str, Any] = {"severity": 2, "recoverable": False}
        line.say(0, ERROR, id="err_1", code=201, message="There is no such conversation.", **about)

    def new(line: Line) -> None:
        asked.append(line.greet())

    with page_with(chromium, console, known, unknown, new) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter()
        page.until_text(".notice", "There is no such conversation.")
        assert page.texts(".question p") == [HEADACHE]

        page.click("Start a new conversation").until_text(".connection", "Connected")

        assert page.texts(".question p") == []
        assert asked[0]["conversationId"] == "conv_scripted"
        assert asked[1]["conversationId"] == ""


def test_a_reader_that_cannot_see_hears_the_conversation(chromium: Browser, console: Path) -> None:
    with page_with(chromium, console, lambda line: Teller(line).answer_headache()) as page:
        page.until_text(".connection", "Connected").type(HEADACHE).press_enter().until_text(
            ".answer", "Since when?"
        )

        names = page.accessible_names()

        assert {
            ("log", "Conversation"),
            ("textbox", "Your message"),
            ("button", "Send"),
            ("button", "Memory traces"),
            ("button", "New conversation"),
            ("heading", "You"),
            ("complementary", "Memory traces of this answer"),
        } <= names
        assert page.run("document.querySelector('[role=log]').ariaLive") == "polite"
        assert page.run("document.querySelector('.traces').ariaLive") == "off"
