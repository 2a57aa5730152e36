"""Large tools are fetched once, whole, into a cache that the next clone finds."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import bootstrap
from tools.bootstrap import once
from tools.servers.process import running_process
from tools.setup import toolchain
from tools.setup.progress import SetupError, run

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
        ({"XDG_CACHE_HOME": "b", "HOME": ""}, toolchain.CHECKOUT / ".cache"),
        ({"HOME": "relative"}, toolchain.CHECKOUT / ".cache"),
        ({"HOME": str(Path(__file__).parent)}, Path(__file__).parent / ".cache/anamnesis"),
        ({"HOME": "/does/not/exist"}, toolchain.CHECKOUT / ".cache"),
        ({"HOME": ""}, toolchain.CHECKOUT / ".cache"),
        ({}, toolchain.CHECKOUT / ".cache"),
    ],
)
def test_the_cache_folder_follows_the_environment(
    environment: dict[str, str], expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANAMNESIS_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert toolchain.cache_dir() == expected


def test_a_cached_tool_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_CACHE_DIR", str(tmp_path / "cache"))
    calls = tmp_path / "calls"

    folders = {
        toolchain.from_registry("uv", lambda: ([PYTHON, "-c", AN_INSTALLER, calls], {})) for _ in range(2)
    }

    assert calls.read_text() == "called "
    assert [(folder / "installed").exists() for folder in folders] == [True]


def test_a_failed_fetch_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_CACHE_DIR", str(tmp_path / "cache"))

    with pytest.raises(SetupError, match="the registry is gone"):
        toolchain.from_registry("uv", lambda: ([PYTHON, "-c", A_FAILING_INSTALLER, tmp_path / "calls"], {}))

    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_uv_uses_the_mirror_that_pip_is_configured_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("PIP_CERT", "/etc/mirror.pem")

    environment = toolchain.installer_environment(PYTHON)

    assert environment["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert environment["SSL_CERT_FILE"] == "/etc/mirror.pem"


def test_uvs_own_settings_win(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def setting_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """A checkout with harmless steps, which a test may replace; each step adds its name to `done`."""
    environment = tmp_path / ".venv"
    for name, value in {
        "VENV": environment,
        "PYTHON": environment / "bin" / "python",
        "INSTALLING": tmp_path / ".cache" / "installing",
    }.items():
        monkeypatch.setattr(bootstrap, name, value)
    monkeypatch.setattr(bootstrap, "ensure_uv", lambda python: python)
    monkeypatch.setattr(bootstrap, "installer_environment", lambda _: {})
    steps: dict[str, Callable[[], None]] = {
        "make": lambda: None,
        "sync": lambda: None,
        "install": lambda: None,
    }
    done = tmp_path / "done"
    done.touch()

    def note(step: str) -> None:
        with done.open("a") as file:
            file.write(f"{step} ")
        steps[step]()

    def make(*_: object, **__: object) -> None:
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").touch()
        note("make")

    monkeypatch.setattr("venv.create", make)
    monkeypatch.setattr(bootstrap, "_has_pip", lambda: True)
    monkeypatch.setattr(bootstrap, "run", lambda command, **_: note(command[2]))
    return steps


@pytest.mark.parametrize("killed", ["make", "sync", "install"])
def test_an_incomplete_environment_is_created_again(
    tmp_path: Path, setting_up: dict[str, Callable[[], None]], killed: str
) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    setting_up[killed] = die
    with pytest.raises(KeyboardInterrupt):
        bootstrap.make_ready()
    setting_up[killed] = lambda: None
    (tmp_path / "done").write_text("")

    for _ in range(2):
        bootstrap.make_ready()

    assert (tmp_path / "done").read_text() == "make sync install "


def test_processes_started_by_set_up_end_with_it(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    child = f"import signal; p = open({str(alive)!r}, 'w'); p.write('here\\n'); p.flush(); signal.pause()"
    program = (
        "import pathlib, sys; from tools import bootstrap\n"
        f"bootstrap.CHECKOUT = pathlib.Path({str(tmp_path)!r})\n"
        f"bootstrap.make_ready = lambda: bootstrap.run([sys.executable, '-c', {child!r}], hint='')\n"
        "bootstrap.main([])"
    )

    with subprocess.Popen([PYTHON, "-c", program], stderr=subprocess.PIPE, text=True) as setting_up:
        with alive.open() as pipe:
            started = pipe.readline()
            setting_up.terminate()
            rest = pipe.read()  # ends after the other lock is free
        _, result = setting_up.communicate()

    assert (started, rest) == ("here\n", "")
    assert (setting_up.returncode, "Interrupted" in result) == (1, True)


def test_the_error_about_a_missing_lock_says_what_to_do_next(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with (
        pytest.raises(SetupError, match=r"Not a directory\.\n.*ANAMNESIS_CACHE_DIR"),
        toolchain.locked(tmp_path / "file" / "below" / "a.lock"),
    ):
        pass


def test_a_command_that_fails_says_what_it_printed_and_what_to_do_next() -> None:
    with pytest.raises(SetupError, match=r"ended with 3:\nno such thing\nTry another\."):
        run([PYTHON, "-c", "print('no such thing'); exit(3)"], hint="Try another.")


def test_a_command_that_does_not_exist_says_what_to_do_next() -> None:
    with pytest.raises(SetupError, match=r"No such file or directory\.\nInstall it\."):
        run(["/does/not/exist"], hint="Install it.")


def test_a_server_that_ends_before_it_answers_is_reported_with_its_log(tmp_path: Path) -> None:
    def refuse() -> None:
        raise ConnectionError

    server = running_process(
        "It",
        [PYTHON, "-c", "exit('the port is taken')"],
        folder=tmp_path,
        connect=refuse,
        refusals=(ConnectionError,),
        hint="Free the port.",
    )
    with pytest.raises(SetupError, match=r"(?s)It did not start.*the port is taken\nFree the port\."), server:
        pass


A_GO = """#!/bin/sh
if [ "$1" = version ]; then echo go version go1.26.6 linux/amd64; exit; fi
echo "$@" >> {calls}
mkdir -p "$GOBIN" "$GOMODCACHE"
echo built > "$GOBIN/server"
{then}
"""


def a_go(folder: Path, then: str = "") -> Path:
    """A `go` that builds at once, and the file in which it records its arguments."""
    calls = folder / "calls"
    (folder / "go").write_text(A_GO.format(calls=calls, then=then))
    (folder / "go").chmod(0o755)
    return calls


def test_livekit_is_built_once_and_leaves_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    calls = a_go(tmp_path)

    first, second = toolchain.ensure_livekit(search=""), toolchain.ensure_livekit(search="")

    assert first == second
    assert first.read_text() == "built\n"
    assert calls.read_text() == f"install -trimpath -ldflags=-s -w {toolchain.LIVEKIT}\n"
    lock = f"livekit-{toolchain.LIVEKIT_VERSION}.lock"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == sorted([first.parent.name, lock])


def test_a_livekit_that_cannot_be_built_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    a_go(tmp_path, then="exit 1")

    with pytest.raises(SetupError, match="GOPROXY"):
        toolchain.ensure_livekit(search="")

    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]
