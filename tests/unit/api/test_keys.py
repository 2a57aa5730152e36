"""Keys: made once, kept to their owner, found again after a restart."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.api.keys import FILE, Keys
from orchestrator.errors import INVALID_FIELD, KEYS_EXPOSED, KEYS_UNREADABLE, AnamnesisError
from orchestrator.wire.ids import PersonId

ANNA, BORIS = PersonId("anna"), PersonId("boris")


def test_a_key_has_256_bits_and_stays_the_same_after_a_restart(tmp_path: Path) -> None:
    key = Keys(tmp_path).of(ANNA)

    assert len(key) == 43
    assert Keys(tmp_path).of(ANNA) == key


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Keys(tmp_path).of(ANNA)
    finally:
        os.umask(before)

    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == [FILE]


def test_each_person_has_a_key_of_their_own(tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    annas, boriss = keys.of(ANNA), keys.of(BORIS)

    assert annas != boriss
    assert (keys.owner(annas), keys.owner(boriss)) == (ANNA, BORIS)


@pytest.mark.parametrize("wrong", ["", "x", "é" * 43, "A" * 43])
def test_a_wrong_key_has_no_owner(tmp_path: Path, wrong: str) -> None:
    keys = Keys(tmp_path)
    keys.of(ANNA)

    assert keys.owner(wrong) is None


def test_without_a_file_nobody_has_a_key(tmp_path: Path) -> None:
    assert Keys(tmp_path).owner("") is None


def test_finding_a_key_creates_none(tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    assert keys.find(ANNA) is None
    assert not (tmp_path / FILE).exists()
    assert keys.of(ANNA) == keys.find(ANNA)


def test_a_key_that_another_process_made_is_known_at_once(tmp_path: Path) -> None:
    running, other = Keys(tmp_path), Keys(tmp_path)
    running.of(ANNA)
    assert running.owner("A" * 43) is None

    key = other.of(BORIS)

    assert running.owner(key) == BORIS


def test_a_key_removed_from_the_file_is_refused_at_once(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key = keys.of(ANNA)

    (tmp_path / FILE).unlink()

    assert keys.owner(key) is None
    assert keys.of(ANNA) != key


def test_processes_that_start_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    persons = [PersonId(f"person-{number % 5}") for number in range(40)]

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda person: Keys(tmp_path).of(person), persons))

    assert len(set(made)) == 5
    assert [Keys(tmp_path).of(person) for person in persons] == made


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    key = Keys(tmp_path).of(ANNA)
    (tmp_path / FILE).chmod(mode)

    with pytest.raises(AnamnesisError) as refused:
        Keys(tmp_path).of(ANNA)

    assert refused.value.problem is KEYS_EXPOSED
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"anna": 7}', '{"anna": ""}', '{"": "%s"}' % ("A" * 43), '{"anna": "short"}', "\ud800"],
)
def test_a_file_that_holds_no_keys_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_bytes(text.encode("utf-8", "surrogatepass"))
    (tmp_path / FILE).chmod(0o600)

    with pytest.raises(AnamnesisError) as refused:
        Keys(tmp_path).of(ANNA)

    assert refused.value.problem is KEYS_UNREADABLE
    assert "anna" not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("nobody", ["", "a | User: b", "a\nb", "x" * 129, " anna", "anna\u2028"])
def test_an_invalid_person_id_gets_no_key(tmp_path: Path, nobody: str) -> None:
    with pytest.raises(AnamnesisError) as refused:
        Keys(tmp_path).of(PersonId(nobody))

    assert refused.value.problem is INVALID_FIELD
    assert "must be 1 to 128 printable characters" in str(refused.value)
    (tmp_path / FILE).write_text(json.dumps({nobody: "A" * 43}))
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(AnamnesisError) as unread:
        Keys(tmp_path).owner("A" * 43)
    assert unread.value.problem is KEYS_UNREADABLE


def test_what_is_not_a_file_is_refused_by_reason(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir(mode=0o700)

    with pytest.raises(AnamnesisError) as refused:
        Keys(tmp_path).of(ANNA)

    assert refused.value.facts["rule"] == "Is a directory"


def test_a_missing_folder_is_refused_by_reason(tmp_path: Path) -> None:
    with pytest.raises(AnamnesisError) as refused:
        Keys(tmp_path / "nowhere").of(ANNA)

    assert refused.value.problem is KEYS_UNREADABLE


def test_files_left_by_a_crash_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "keys.new").write_text("half a fi")

    key = Keys(tmp_path).of(ANNA)

    assert json.loads((tmp_path / FILE).read_text()) == {"anna": key}
