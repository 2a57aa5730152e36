"""Large tools are fetched once, whole, into a cache that the next clone finds."""

import sys
from pathlib import Path

import pytest

from tools import toolchain
from tools.bootstrap import once
from tools.progress import SetupError, run

PYTHON = Path(sys.executable)
AN_INSTALLER = """
import pathlib, sys
target = pathlib.Path(sys.argv[sys.argv.index("--target") + 1])
target.mkdir()
(target / "installed").touch()
with open(sys.argv[1], "a") as calls:
    calls.write("called ")
"""
A_FAILING_INSTALLER = AN_INSTALLER + "sys.exit('the registry is gone')"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"ANAMNESIS_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/"}, Path("/b/anamnesis")),
        ({"HOME": str(Path(__file__).parent)}, Path(__file__).parent / ".cache/anamnesis"),
        ({"HOME": "/does/not/exist"}, toolchain.CHECKOUT / ".cache"),
        ({"HOME": ""}, toolchain.CHECKOUT / ".cache"),
        ({}, toolchain.CHECKOUT / ".cache"),
    ],
)
def test_the_cache_lies_where_the_environment_says(
    environment: dict[str, str], expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANAMNESIS_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert toolchain.cache_dir() == expected


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_CACHE_DIR", str(tmp_path / "cache"))
    calls = tmp_path / "calls"

    folders = {
        toolchain.from_registry("uv", lambda: ([PYTHON, "-c", AN_INSTALLER, calls], {})) for _ in range(2)
    }

    assert calls.read_text() == "called "
    assert [(folder / "installed").exists() for folder in folders] == [True]


def test_what_could_not_be_fetched_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_CACHE_DIR", str(tmp_path / "cache"))

    with pytest.raises(SetupError, match="the registry is gone"):
        toolchain.from_registry("uv", lambda: ([PYTHON, "-c", A_FAILING_INSTALLER, tmp_path / "calls"], {}))

    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_a_mirror_that_pip_was_told_of_is_used_by_uv_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("PIP_CERT", "/etc/mirror.pem")

    environment = toolchain.installer_environment(PYTHON)

    assert environment["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert environment["SSL_CERT_FILE"] == "/etc/mirror.pem"


def test_what_uv_was_told_itself_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://ours.example/simple")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")

    assert toolchain.installer_environment(PYTHON)["UV_DEFAULT_INDEX"] == "https://ours.example/simple"


def test_a_step_is_done_again_only_when_its_inputs_changed(tmp_path: Path) -> None:
    done: list[str] = []

    for inputs in ("a", "a", "b", "a"):
        once(tmp_path / "stamp", inputs, lambda inputs=inputs: done.append(inputs))  # type: ignore[misc]

    assert done == ["a", "b", "a"]


def test_a_step_that_failed_is_done_again(tmp_path: Path) -> None:
    def fail() -> None:
        raise SetupError("no")

    once(tmp_path / "stamp", "a", lambda: None)
    with pytest.raises(SetupError):
        once(tmp_path / "stamp", "b", fail)

    assert not (tmp_path / "stamp").exists()


def test_a_command_that_fails_says_what_it_printed_and_what_to_do_next() -> None:
    with pytest.raises(SetupError, match=r"ended with 3:\nno such thing\nTry another\."):
        run([PYTHON, "-c", "print('no such thing'); exit(3)"], otherwise="Try another.")


def test_a_command_that_does_not_exist_says_what_to_do_next() -> None:
    with pytest.raises(SetupError, match=r"No such file or directory\.\nInstall it\."):
        run(["/does/not/exist"], otherwise="Install it.")
