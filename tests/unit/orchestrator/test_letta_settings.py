"""What a server used with Letta is kept for commands that are given only Letta's address."""

from pathlib import Path

from orchestrator import letta_settings
from orchestrator.settings import Settings, load

ADDRESS = "http://127.0.0.1:8283"


def settings(folder: Path, **letta: object) -> Settings:
    given = {"data.dir": str(folder), **{f"letta.{name}": value for name, value in letta.items()}}
    return load(given=given, environment={})


def test_a_command_with_only_the_address_uses_what_the_server_used(tmp_path: Path) -> None:
    served = settings(tmp_path, base_url=ADDRESS, model="openai/other", tag="ours", api_key="secret")
    letta_settings.remember(served)

    found = letta_settings.recall(settings(tmp_path, base_url="http://elsewhere:1"))

    assert (found.letta.model, found.letta.tag) == ("openai/other", "ours")
    assert (found.letta.base_url, found.letta.api_key.get_secret_value()) == ("http://elsewhere:1", "")
    assert "secret" not in (tmp_path / letta_settings.FILE).read_text()


def test_what_a_command_names_itself_wins(tmp_path: Path) -> None:
    letta_settings.remember(settings(tmp_path, base_url=ADDRESS, model="openai/other", tag="ours"))

    found = letta_settings.recall(settings(tmp_path, base_url=ADDRESS, tag="theirs"))

    assert (found.letta.model, found.letta.tag) == ("openai/other", "theirs")


def test_without_a_file_and_with_a_damaged_one_the_settings_stay(tmp_path: Path) -> None:
    plain = settings(tmp_path, base_url=ADDRESS)
    before = letta_settings.recall(plain)
    (tmp_path / letta_settings.FILE).write_text('{"model": 7')

    assert before == letta_settings.recall(plain) == plain
