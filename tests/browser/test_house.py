"""The page before the real house: a newcomer's first minutes, and what must survive a reload or a crash."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.chromium import Profile
from tests.browser.house import House
from tests.browser.scenes import HEADACHE
from tests.nursery import Nursery

CALM = (
    "!document.querySelector('.thinking') && document.querySelector('.connection').dataset.state === 'open'"
)
FIRST_SENTENCE_SENT = "after_sentence_commit:1"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, console: Path, nursery: Nursery) -> Iterator[House]:
    """A house that is open, shared by visitors who do it no harm."""
    with sound_in_the_end(House(nursery, tmp_path_factory.mktemp("house") / "data")) as house:
        yield house.start()


@pytest.fixture
def frail_house(tmp_path: Path, console: Path, nursery: Nursery) -> Iterator[House]:
    """A house of the test's own, to be opened and killed."""
    with sound_in_the_end(House(nursery, tmp_path / "data")) as house:
        yield house


@contextmanager
def sound_in_the_end(house: House) -> Iterator[House]:
    """Whatever was done to it, its store must hold what a store must hold."""
    with house:
        yield house
    told = house.nursery.run(house.data, "check")
    assert (told.returncode, told.stderr) == (0, ""), told.stdout


@pytest.mark.requirement("000-036")
def test_a_newcomer_says_what_hurts_and_sees_the_answer_with_its_traces(
    house: House, profile: Profile
) -> None:
    page = profile.open(house.address).until(CALM)

    page.type(HEADACHE).press_enter().until_answered(1)
    page.type("8").press_enter().until_answered(2)

    assert page.texts(".question p") == [HEADACHE, "8"]
    assert [_actions(trace) for trace in page.texts(".traces")] == [
        {"retrieved", "stored"},
        {"retrieved", "updated"},
    ]
    assert page.failures == []


def test_the_key_leaves_the_address_bar_for_a_cookie_no_script_can_read(
    house: House, profile: Profile
) -> None:
    page = profile.open(house.address).until(CALM)

    assert page.run("location.href") == f"{house.url}/"
    assert page.run("document.cookie") == ""
    assert house.key not in page.run("JSON.stringify({...localStorage}) + document.documentElement.outerHTML")
    page.reload().until(CALM)


def test_without_the_key_the_page_says_which_address_to_open(house: House, profile: Profile) -> None:
    page = profile.open(house.url).until_text(".notice", "Open the address that anamnesis serve printed")
    assert page.text(".connection") == "Not signed in"

    page.go(f"{house.url}/#not-the-key").until("location.hash === ''")
    page.until_text(".notice", "Open the address that anamnesis serve printed")

    page.go(house.address).until(CALM)


def test_a_reload_shows_nothing_twice_and_loses_nothing(house: House, profile: Profile) -> None:
    page = profile.open(house.address).until(CALM)
    page.type(HEADACHE).press_enter().until_answered(1)
    before = page.seen()

    page.reload().until(CALM)
    assert page.seen() == before

    page.type("8").press_enter().until_text(".question", "8")
    page.reload().until_answered(2)
    assert page.seen()[:1] == before
    assert page.texts(".question p") == [HEADACHE, "8"]


def test_a_second_tab_takes_over_and_the_first_can_take_back(house: House, profile: Profile) -> None:
    first = profile.open(house.address).until(CALM)
    first.type(HEADACHE).press_enter().until_answered(1)

    second = profile.open(house.url).until(CALM)
    first.until_text(".notice", "opened elsewhere")
    assert second.seen() == first.seen()

    second.type("8").press_enter().until_answered(2)
    first.click("Continue here").until_answered(2)
    second.until_text(".notice", "opened elsewhere")
    assert first.seen() == second.seen()


def test_a_server_killed_in_the_middle_of_an_answer_comes_back_to_the_same_page(
    frail_house: House, profile: Profile
) -> None:
    page = profile.open(frail_house.start(fault=FIRST_SENTENCE_SENT).address).until(CALM)
    page.type(HEADACHE).press_enter()
    frail_house.wait()
    page.until_text(".connection", "Connection lost")

    frail_house.start()
    page.until_text(".failure", "cut off").until(CALM)
    assert page.texts(".question p") == [HEADACHE]
    assert len(page.texts(".sentence")) == 1

    page.click("Ask again").until("!document.querySelector('.failure')").until_answered(1)
    after = page.seen()
    page.reload().until(CALM)
    assert page.seen() == after


def test_a_message_written_while_the_server_is_away_is_answered_once_it_is_back(
    frail_house: House, profile: Profile
) -> None:
    page = profile.open(frail_house.start().address).until(CALM)
    frail_house.kill()
    page.until_text(".connection", "Connection lost")

    page.type(HEADACHE).press_enter().until_text(".question", "Sending")
    frail_house.start()

    page.until_answered(1)
    assert page.texts(".question p") == [HEADACHE]


def test_a_new_conversation_begins_empty(house: House, profile: Profile) -> None:
    page = profile.open(house.address).until(CALM)
    page.type(HEADACHE).press_enter().until_answered(1)

    page.click("New conversation").click("Stay")
    assert page.texts(".question p") == [HEADACHE]
    page.click("New conversation").click("Start").until("!document.querySelector('.exchange')").until(CALM)

    page.reload().until(CALM)
    assert page.texts(".exchange") == []


def _actions(traces: str) -> set[str]:
    return {"retrieved", "stored", "updated"} & set(traces.split())
