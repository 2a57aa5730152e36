"""The command line: help, one-line errors, and exit codes for scripts."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest

from orchestrator import __version__
from orchestrator.cli import cli
from orchestrator.cli.maintain import database
from orchestrator.cli.maintain.doctor import Finding, collisions, region
from orchestrator.cli.options import OUR_PACKAGES
from orchestrator.store import migrations
from orchestrator.store.engine.database import Store
from tests.support.builders import CountedIds, HandClock
from tests.support.commands import a_distribution, findings, run, start
from tests.support.stored_turns import PERSON, take_turn

pytestmark = pytest.mark.usefixtures("nothing_configured")

CANARY = "my chest hurts since Tuesday"
HEAVY = {"alembic", "fastapi", "importlib.metadata", "msgpack", "pydantic", "sqlalchemy", "structlog"}


def change_behind_our_back(tmp_path: Path, statement: str, *values: str) -> None:
    """Run a statement on the embedded database without going through the store."""
    with closing(sqlite3.connect(tmp_path / "data" / "anamnesis.db", isolation_level=None)) as file:
        file.execute(statement, values)


# --- help and exit codes ----------------------------------------------------------------------------------


def test_help_lists_every_command_in_one_section_and_gives_examples() -> None:
    result = run("--help").output

    before, _, examples = result.partition("Examples:")
    rows = [line.split()[0] for line in before.splitlines() if line.startswith("  ") and line.strip()]
    assert sorted(word for word in rows if word in cli.commands) == sorted(cli.commands)
    assert "anamnesis doctor  " in examples


@pytest.mark.parametrize("command", ["chat", "serve"])
@pytest.mark.parametrize("nobody", ["", "a | User: b", "a\nb", "x" * 129])
def test_an_invalid_person_id_is_refused_at_once(command: str, nobody: str) -> None:
    refused = run(command, "--user", nobody)

    assert refused.exit_code == 2
    assert "'--user': must be 1 to 128 printable characters" in refused.output


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The arguments that name each command."""
    for name, command in group.commands.items():
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


@pytest.mark.parametrize("words", list(every_command(cli)), ids=" ".join)
def test_every_command_has_help_of_its_own(words: tuple[str, ...]) -> None:
    shown = run(*words, "-h")

    assert shown.exit_code == 0
    assert f"Usage: anamnesis {' '.join(words)}" in shown.output
    assert "--data DIR" in shown.output


def test_the_version_is_printed() -> None:
    assert run("--version").output == f"anamnesis, version {__version__}\n"


@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_shared_options_are_allowed_before_and_after_the_command(tmp_path: Path, place: str) -> None:
    option = ("--data", str(tmp_path / place))
    words: dict[str, tuple[str, ...]] = {
        "before": (*option, "db", "upgrade"),
        "between": ("db", *option, "upgrade"),
        "after": ("db", "upgrade", *option),
    }

    done = run(*words[place])

    assert done.exit_code == 0, done.output
    assert (tmp_path / place / "anamnesis.db").exists()


def test_the_option_nearest_to_the_command_wins(tmp_path: Path) -> None:
    run("--data", tmp_path / "far", "db", "upgrade", "--data", tmp_path / "near")

    assert (tmp_path / "near").exists()
    assert not (tmp_path / "far").exists()


@pytest.mark.parametrize("option", ["--data", "--config"])
def test_an_empty_folder_name_is_refused_and_not_taken_for_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str
) -> None:
    monkeypatch.chdir(tmp_path)

    refused = run("db", "upgrade", option, "")

    assert refused.exit_code == 2
    assert f"'{option}': must name a folder, but is empty." in refused.output
    assert list(tmp_path.iterdir()) == []


def test_a_config_folder_overlays_the_settings(tmp_path: Path) -> None:
    (tmp_path / "default.toml").write_text("[server]\nport = 99\n")

    result = json.loads(run("doctor", "--config", tmp_path, "--json").stdout)

    chosen = {setting["key"]: setting for setting in result["settings"]}
    assert chosen["server.port"] == {
        "key": "server.port",
        "value": "99",
        "from": str(tmp_path / "default.toml"),
    }


def test_a_refused_command_prints_one_line_and_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_SEVER_PORT", "1")

    done = run("doctor")

    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr == (
        "error: The environment has a setting `ANAMNESIS_SEVER_PORT` that does not exist. "
        "Did you mean `ANAMNESIS_SERVER_PORT`?\n"
    )
    monkeypatch.delenv("ANAMNESIS_SEVER_PORT")


@pytest.mark.parametrize("level", ["info", "debug"])
def test_an_unexpected_error_prints_its_type_and_place_and_exits_with_70(
    monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    def fail(_settings: object) -> None:
        raise LookupError(CANARY)

    monkeypatch.setattr(database, "schema_status", fail)
    monkeypatch.setenv("ANAMNESIS_LOGS_LEVEL", level)

    done = run("db", "status")

    assert done.exit_code == 70
    assert CANARY not in done.output
    assert "error: LookupError at cli/test_cli.py:" in done.stderr
    assert ("maintain/database.py:" in done.stderr) == (level == "debug")


def test_ctrl_c_ends_it_quietly_with_130() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        waiting = start("doctor", LETTA_BASE_URL=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with silent.accept()[0]:  # it waits for an answer now
            waiting.send_signal(signal.SIGINT)
            result, errors = waiting.communicate(timeout=60)

    assert (waiting.returncode, result, errors.strip()) == (130, "", "")


def test_a_script_that_stops_reading_ends_it_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", "doctor"], stdout=pipe, stderr=subprocess.PIPE, check=False
        )

    assert done.stderr == b""


def test_help_imports_nothing_slow() -> None:
    program = "import sys, orchestrator.cli; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert HEAVY & set(loaded.split()) == set()


# --- the database -----------------------------------------------------------------------------------------


def test_a_database_is_missing_then_created_then_up_to_date(tmp_path: Path) -> None:
    missing, made, again, there = (
        run("db", *words) for words in (("status",), ("upgrade",), ("upgrade",), ("status",))
    )

    assert (missing.exit_code, made.exit_code, again.exit_code, there.exit_code) == (1, 0, 0, 0)
    assert "no database yet" in missing.output
    assert "now has schema" in made.output
    assert "up to date" in again.output
    assert "up to date" in there.output
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_inspecting_creates_nothing(tmp_path: Path) -> None:
    for command in (("db", "status"), ("doctor",), ("check",)):
        run(*command)

    assert not (tmp_path / "data").exists()


def test_the_schema_version_is_printed_as_json() -> None:
    needed = migrations.REVISIONS[-1]

    missing, made, there = (
        json.loads(run("db", word, "--json").stdout) for word in ("status", "upgrade", "status")
    )

    assert missing == {"found": None, "needed": needed, "state": "missing"}
    assert made == {"before": None, "found": needed, "needed": needed}
    assert there == {"found": needed, "needed": needed, "state": "current"}


@pytest.mark.parametrize(
    ("revision", "state", "then"),
    [("0000", "older", "Run `anamnesis db upgrade`."), ("9999", "newer", "Install a newer anamnesis.")],
)
def test_another_schema_version_is_reported_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revision: str, state: str, then: str
) -> None:
    run("db", "upgrade")
    monkeypatch.setattr(migrations, "REVISIONS", ("0000", *migrations.REVISIONS))
    change_behind_our_back(tmp_path, "UPDATE alembic_version SET version_num = ?", revision)

    result, data, looked, checked = (
        run("db", "status"),
        json.loads(run("db", "status", "--json").stdout),
        run("doctor"),
        run("check"),
    )

    assert (result.exit_code, looked.exit_code, checked.exit_code) == (1, 1, 2)
    assert (data["found"], data["state"]) == (revision, state)
    assert f"schema {revision}" in result.output
    for shown in (result, looked, checked):
        assert then in shown.output


def test_a_database_that_cannot_be_created_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", f"sqlite:///{tmp_path}/nowhere/a.db")

    done = run("db", "upgrade")

    assert done.exit_code == 2
    assert f"The database {tmp_path}/nowhere/a.db cannot be used: No such file or directory." in done.stderr


def test_a_sound_database_has_no_violations() -> None:
    run("db", "upgrade")

    result, data = run("check"), json.loads(run("check", "--json").stdout)

    assert (result.exit_code, result.stdout) == (0, "no violations in 0 conversations\n")
    assert data == {"conversations": 0, "violations": []}


def test_a_violation_is_printed_with_its_ids_and_exits_with_1(tmp_path: Path) -> None:
    run("db", "upgrade")
    change_behind_our_back(
        tmp_path,
        "INSERT INTO alicia_conversations (id, user_id, title, last_client_stanza_id, created_at, updated_at)"
        " VALUES ('conv_odd', 'p', ?, 5, '2026-01-15T10:30:00.000Z', '2026-01-15T10:30:00.000Z')",
        CANARY,
    )

    result, as_json = run("check"), run("check", "--json")

    assert (result.exit_code, as_json.exit_code) == (1, 1)
    assert "conv_odd" in result.stdout
    assert "1 violations in 1 conversations" in result.stdout
    assert [violation["ids"] for violation in json.loads(as_json.stdout)["violations"]] == [["conv_odd"]]
    assert CANARY not in result.output + as_json.output


def test_two_schema_versions_at_once_are_reported_by_name(tmp_path: Path) -> None:
    run("db", "upgrade")
    change_behind_our_back(tmp_path, "INSERT INTO alembic_version VALUES ('0003')")

    for words in (("db", "status"), ("db", "upgrade"), ("check",)):
        done = run(*words)
        assert done.exit_code == 2
        assert f"it has several schema versions: 0003, {migrations.REVISIONS[-1]}" in done.stderr


@pytest.mark.parametrize("level", ["info", "debug"])
def test_errors_of_the_database_are_reported_to_the_operator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, level: str
) -> None:
    run("db", "upgrade")
    change_behind_our_back(tmp_path, "UPDATE alembic_version SET version_num = '0003'")
    monkeypatch.setenv("ANAMNESIS_LOGS_LEVEL", level)

    done = run("db", "upgrade")

    assert done.exit_code == 2
    assert "The database refused a statement (SQLITE_ERROR: table letta_agents already exists)" in done.stderr
    assert ("migrations/__init__.py:" in done.stderr) == (level == "debug")


@pytest.mark.parametrize("part", ["TABLE leases", "INDEX uq_turns_one_at_a_time"])
def test_check_and_doctor_report_what_a_database_lacks(tmp_path: Path, part: str) -> None:
    run("db", "upgrade")
    change_behind_our_back(tmp_path, f"DROP {part}")
    name = part.split()[1]

    checked, looked = run("check", "--json"), findings(run("doctor", "--json"))["database"]

    missing = {"invariant": "I21", "why": "a table, a column or a rule is missing", "ids": [name]}
    assert checked.exit_code == 1
    assert missing in json.loads(checked.stdout)["violations"]
    assert looked["status"] == "failed"
    assert f"lacks {name}." in looked["says"]


def test_a_read_only_database_can_be_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run("db", "upgrade")
    connect, opened = sqlite3.connect, []

    def note(address: str, **options: Any) -> sqlite3.Connection:
        opened.append(address.rpartition("?")[2])
        connection: sqlite3.Connection = connect(address, **options)
        return connection

    monkeypatch.setattr(os, "access", lambda *_: False)  # root ignores file modes
    monkeypatch.setattr(sqlite3, "connect", note)
    alone = run("check")
    with closing(connect(tmp_path / "data" / "anamnesis.db")) as other:
        other.execute("PRAGMA user_version").fetchall()
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM turns").fetchall()
        beside = run("check")

    assert [(done.exit_code, done.stdout) for done in (alone, beside)] == [
        (0, "no violations in 0 conversations\n")
    ] * 2
    assert opened == ["mode=ro&immutable=1"] * 2 + ["mode=ro"] * 2


@pytest.mark.parametrize("first", [1, 40], ids=["its schema too", "its rows alone"])
def test_a_damaged_file_is_reported_and_the_check_continues(
    tmp_path: Path, subtests: pytest.Subtests, first: int
) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    file = tmp_path / "data" / "anamnesis.db"
    store = Store.open(f"sqlite:///{file}", clock=HandClock(), ids=CountedIds(), create=True)
    here = store.write_now(lambda tx: tx.conversations.create(PERSON))
    store.write_now(lambda tx: take_turn(tx, here.id))
    store.close_now()
    whole, page = file.read_bytes(), 4096
    for seed in range(8):
        chance, damaged = Random(seed), bytearray(whole)
        for _ in range(12):
            place = chance.randrange(first, len(whole) // page) * page
            damaged[place : place + page] = chance.randbytes(page)
        file.write_bytes(damaged)

        with subtests.test(seed=seed):
            done = run("check", "--json")
            assert done.exit_code == 1, done.output
            assert all(violation["ids"] for violation in json.loads(done.stdout)["violations"])


# --- doctor -----------------------------------------------------------------------------------------------


LETTA_SAYS = {
    "/letta/v1/health/": {"status": "ok"},
    "/letta/v1/models/": [{"handle": "openai/gpt-4.1-mini"}, {"handle": "openai/other"}],
    "/letta/v1/models/embedding": [{"handle": "openai/text-embedding-3-small"}],
}


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback and the requested paths: 503 below /ill, a Letta below /letta, else 404.

    The Letta has models, one of them for embeddings, and the key "s3cr3t". Its health check needs no key.
    """
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            said = LETTA_SAYS.get(self.path)
            free = self.path.endswith("/health/") or self.headers["Authorization"] == "Bearer s3cr3t"
            self.send_response(
                503 if self.path.startswith("/ill") else 404 if not said else 200 if free else 401
            )
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def do_POST(self) -> None:  # as LiveKit answers whom it lets in: it has no rooms
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("name", "status"), [("GB", "ok"), ("UK", "failed"), ("ZZ", "failed")])
def test_the_doctor_says_whether_the_numbers_of_a_region_are_known(name: str, status: str) -> None:
    finding = region(name)

    assert finding.status == status
    assert name in finding.says
    assert status == "ok" or "GB" in finding.then


def test_the_doctor_finds_nothing_wrong_with_the_shipped_settings() -> None:
    done = run("doctor", "--json")

    assert done.exit_code == 0
    assert json.loads(done.stdout)["ok"] is True
    assert {name for name, finding in findings(done).items() if finding["status"] == "off"} == {
        "letta",
        "livekit",
        "region",
        "telemetry",
    }
    assert sys.version.split()[0] in findings(done)["python"]["says"]


def test_the_doctor_says_where_each_setting_comes_from_and_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LETTA_API_KEY", "s3cr3t")
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", "postgresql://u:s3cr3t@127.0.0.1:1/d")
    monkeypatch.setenv("ANAMNESIS_TURN_ATTEMPTS", "4")

    result, data = run("doctor"), run("doctor", "--json")

    assert "turn.attempts = 4  (the variable ANAMNESIS_TURN_ATTEMPTS)" in result.stdout
    assert "letta.api_key = **********  (the variable LETTA_API_KEY)" in result.stdout
    assert "s3cr3t" not in result.output + data.output
    assert (result.exit_code, findings(data)["database"]["status"]) == (1, "failed")


def test_configured_servers_that_answer_are_ok(
    monkeypatch: pytest.MonkeyPatch, server: tuple[str, list[str]]
) -> None:
    address, asked = server
    monkeypatch.setenv("LETTA_BASE_URL", address + "/letta/v1/")
    monkeypatch.setenv("LETTA_API_KEY", "s3cr3t")
    monkeypatch.setenv("LIVEKIT_URL", address.replace("http", "ws"))
    monkeypatch.setenv("LIVEKIT_API_KEY", "key")
    monkeypatch.setenv("LIVEKIT_API_SECRET", "a secret of thirty-two characters or more")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)

    done = run("doctor", "--json")

    assert done.exit_code == 0
    assert {findings(done)[name]["status"] for name in ("letta", "livekit", "telemetry")} == {"ok"}
    assert asked == [*LETTA_SAYS, "/", "/twirp/livekit.RoomService/ListRooms", "/"]


@pytest.mark.parametrize(
    ("path", "chosen", "says"),
    [
        ("/elsewhere", {}, "answers with 404"),
        ("/letta", {"LETTA_API_KEY": "another"}, "rejects the key"),
        ("/letta", {"ANAMNESIS_LETTA_MODEL": "openai/nosuch"}, "letta.model = openai/nosuch"),
        ("/letta", {"ANAMNESIS_LETTA_EXTRACTOR_MODEL": "nosuch"}, "letta.extractor_model = nosuch"),
        ("/letta", {"ANAMNESIS_LETTA_EMBEDDING": "openai/other"}, "letta.embedding = openai/other"),
    ],
)
def test_a_letta_that_cannot_create_our_agents_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    server: tuple[str, list[str]],
    path: str,
    chosen: dict[str, str],
    says: str,
) -> None:
    for name, value in {"LETTA_BASE_URL": server[0] + path, "LETTA_API_KEY": "s3cr3t", **chosen}.items():
        monkeypatch.setenv(name, value)

    done = run("doctor", "--json")

    assert (done.exit_code, findings(done)["letta"]["status"]) == (1, "failed")
    assert says in findings(done)["letta"]["says"]
    assert "s3cr3t" not in done.output


def test_configured_servers_that_do_not_work_exit_with_1(
    monkeypatch: pytest.MonkeyPatch, server: tuple[str, list[str]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("LETTA_BASE_URL", nobody)
    monkeypatch.setenv("LIVEKIT_URL", "ws://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server[0] + "/ill")

    done = run("doctor", "--json")

    assert done.exit_code == 1
    assert "does not answer (ConnectionRefusedError)" in findings(done)["letta"]["says"]
    assert "its key or secret is not" in findings(done)["livekit"]["says"]
    assert "answers with 503" in findings(done)["telemetry"]["says"]


def test_a_data_folder_others_can_read_is_warned_about(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)

    done = run("doctor", "--json")

    assert (done.exit_code, findings(done)["data folder"]["status"]) == (0, "warning")


@pytest.mark.parametrize("folder", ["file", "file/below", 300 * "x"])
def test_an_impossible_data_folder_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path / folder))

    done = run("doctor", "--json")

    assert (done.exit_code, findings(done)["data folder"]["status"]) == (1, "failed")


def test_no_other_distribution_brings_our_names_here() -> None:
    assert [finding.status for finding in collisions()] == ["ok"]


@pytest.mark.parametrize("package", OUR_PACKAGES)
def test_another_distribution_of_one_of_our_names_is_warned_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str
) -> None:
    elsewhere = a_distribution(tmp_path / "site", "openai-agents", package)
    monkeypatch.setattr(sys, "path", [*sys.path, str(elsewhere)])

    (found,) = collisions()

    assert found == Finding(
        "names",
        "warning",
        f"`{package}` is also in openai-agents, but Python imports ours.",
        "Install anamnesis into an environment of its own (python3 -m venv …).",
    )


def test_another_distribution_that_hides_a_package_of_ours_is_a_failure(tmp_path: Path) -> None:
    elsewhere = a_distribution(tmp_path / "site", "openai-agents", "agents")

    looking = start("doctor", PYTHONPATH=str(elsewhere), PYTHONSAFEPATH="1")
    result, _ = looking.communicate(timeout=60)

    assert looking.returncode == 1
    assert "`agents` is also in openai-agents, and Python imports that one." in result


@pytest.mark.parametrize("command", [("route",), ("serve", "--port", "0"), ("safety", "check")], ids=" ".join)
def test_a_command_without_one_of_our_packages_recommends_the_doctor(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    elsewhere = a_distribution(tmp_path / "site", "openai-agents", "agents")

    trying = start(*command, PYTHONPATH=str(elsewhere), PYTHONSAFEPATH="1")
    _, result = trying.communicate(timeout=60)

    assert (trying.returncode, result) == (
        2,
        "error: Part of the package `agents` cannot be imported; another package of that name may have "
        "replaced it. Run `anamnesis doctor`; it shows where the package comes from.\n",
    )
