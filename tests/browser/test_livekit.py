"""The page's chat through a LiveKit room, with the real server and livekit-client in a real Chromium."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.browser.chromium import Profile
from tests.browser.house import House
from tests.browser.scenes import HEADACHE
from tests.browser.test_house import CALM, sound_in_the_end
from tests.nursery import Nursery
from tools.servers.livekit import Address, new_address, running_livekit

SECONDS_TO_COME_BACK = 60
WAYS_GONE = "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)"


@contextmanager
def a_house(nursery: Nursery, data: Path, address: Address, *changes: str) -> Iterator[House]:
    """`anamnesis serve` with that LiveKit server, perhaps changed as `tests.faults.changes` says."""
    with sound_in_the_end(House(nursery, data, address.environment)) as house:
        yield house.start(*changes)


def through_livekit(house: House) -> str:
    """The address of the page that goes through rooms."""
    return f"{house.url}/?livekit#{house.key}"


@pytest.mark.requirement("000-003", "003-148", "003-149")
def test_a_newcomer_talks_through_a_room_and_goes_on_after_a_reload(
    nursery: Nursery, tmp_path: Path, console: Path, livekit: Address, profile: Profile
) -> None:
    with a_house(nursery, tmp_path / "data", livekit) as house:
        page = profile.open(through_livekit(house)).until(CALM)
        page.type(HEADACHE).press_enter().until_answered(1)
        page.reload().until(CALM)
        page.type("8").press_enter().until_answered(2)

        assert page.texts(".question p") == [HEADACHE, "8"]
        paths = page.run(WAYS_GONE)
        assert any(path.endswith("/token") for path in paths)
        assert page.failures == []


@pytest.mark.requirement("003-151", "003-153")
def test_a_livekit_server_that_dies_as_one_speaks_and_comes_back_costs_the_page_nothing(
    nursery: Nursery, tmp_path: Path, console: Path, profile: Profile
) -> None:
    address = new_address()
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        with a_house(nursery, tmp_path / "data", address) as house:
            page = profile.open(through_livekit(house)).until(CALM)
            page.type(HEADACHE).press_enter().until_answered(1)
            page.type("8").press_enter()
            servers.close()
            servers.enter_context(running_livekit(address))
            page.until_answered(2, SECONDS_TO_COME_BACK).until(CALM, SECONDS_TO_COME_BACK)
            page.type("It began yesterday").press_enter().until_answered(3)

            told = page.texts(".question p")
            page.reload().until(CALM)

            assert told == page.texts(".question p") == [HEADACHE, "8", "It began yesterday"]


@pytest.mark.requirement("003-151", "003-153")
def test_the_rest_of_an_answer_that_went_on_without_the_page_is_told_once(
    nursery: Nursery, tmp_path: Path, console: Path, profile: Profile
) -> None:
    address = new_address()
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        with a_house(nursery, tmp_path / "data", address, "waits_in_the_middle") as house:
            page = profile.open(through_livekit(house)).until(CALM)
            page.type(HEADACHE).press_enter().until_text(".sentence", "Sentence 1")
            servers.close()
            page.until_text(".connection", "Connection lost")
            house.signal(signal.SIGUSR1)
            servers.enter_context(running_livekit(address))
            page.until_answered(1, SECONDS_TO_COME_BACK).until(CALM, SECONDS_TO_COME_BACK)
            seen = page.seen()

            told = [text.strip() for text in page.texts(".sentence")]
            assert told == [f"Sentence {number} of ten." for number in range(1, 11)]
            assert page.reload().until(CALM).seen() == seen


def test_without_livekit_the_page_that_asks_for_it_says_so(
    nursery: Nursery, tmp_path: Path, console: Path, profile: Profile
) -> None:
    with sound_in_the_end(House(nursery, tmp_path / "data")) as house:
        page = profile.open(through_livekit(house.start())).until_text(".notice", "LiveKit")

        assert page.texts(".exchange") == []
