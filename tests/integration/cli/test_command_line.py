"""The commands that need the model or a server: their results, and their errors."""

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from orchestrator.settings import load
from orchestrator.store import migrations
from tests.servers.postgres import as_psycopg
from tests.support.commands import findings, run, start

pytestmark = pytest.mark.usefixtures("nothing_configured")


def test_a_postgres_database_is_created_and_checked(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", postgres_url)

    missing, made, sound, looked = run("db", "status"), run("db", "upgrade"), run("check"), run("doctor")
    with psycopg.connect(as_psycopg(postgres_url), autocommit=True) as behind_our_back:
        behind_our_back.execute(
            "INSERT INTO alicia_conversations (id, user_id, last_client_stanza_id, created_at, updated_at)"
            " VALUES ('conv_odd', 'p', 5, now(), now())"
        )
    odd = run("check", "--json")

    assert [step.exit_code for step in (missing, made, sound, looked)] == [1, 0, 0, 0]
    assert sound.stdout == "no violations in 0 conversations\n"
    assert f"schema {migrations.REVISIONS[-1]}" in looked.stdout
    assert odd.exit_code == 1
    assert [violation["ids"] for violation in json.loads(odd.stdout)["violations"]] == [["conv_odd"]]


def not_a_database(file: Path) -> str:
    file.write_text("dear diary, " * 100)
    return "it is not an SQLite database"


def of_another_program(file: Path) -> str:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE recipes (title TEXT)")
    return "has tables that are not from this program"


def a_folder(file: Path) -> str:
    file.mkdir()
    return "cannot be used"


@pytest.mark.parametrize("spoil", [not_a_database, of_another_program, a_folder])
def test_every_command_reports_a_database_that_cannot_be_ours(
    tmp_path: Path, spoil: Callable[[Path], str]
) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    file = tmp_path / "data" / "anamnesis.db"
    says = spoil(file)

    for words in (("db", "status"), ("db", "upgrade"), ("check",), ("traces", "c"), ("chat",), ("serve",)):
        done = run(*words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert str(file) in done.stderr
        assert says in done.stderr
        assert "your message" not in done.stderr
    looked = findings(run("doctor", "--json"))["database"]
    assert looked["status"] == "failed"
    assert says in looked["says"]


def test_a_database_server_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", "postgresql://u:s3cr3t@127.0.0.1:1/d")

    for words in (("db", "status"), ("db", "upgrade"), ("check",), ("serve",)):
        done = run(*words)
        assert done.exit_code == 2
        assert "The database server at 127.0.0.1:1/d does not answer" in done.stderr
        assert "s3cr3t" not in done.output


def test_serve_creates_the_database_in_the_default_folder_and_stops_quietly(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "ANAMNESIS_DATA_DIR": "", "ANAMNESIS_MODELS_DIR": str(load().models.dir)}
    with start("serve", "--json", "--port", "0", **home) as serving:
        assert serving.stdout is not None
        ready = json.loads(serving.stdout.readline())
        serving.send_signal(signal.SIGINT)
        result, errors = serving.communicate(timeout=60)

    assert ready["pid"] == serving.pid
    assert (result, "Traceback" in errors) == ("", False)
    assert (tmp_path / ".local/share/anamnesis/anamnesis.db").exists()


def test_without_the_model_serve_says_how_to_get_it_and_the_doctor_does_too(tmp_path: Path) -> None:
    empty = {"ANAMNESIS_MODELS_DIR": str(tmp_path / "models")}

    with start("serve", "--port", "0", **empty) as serving:
        result, errors = serving.communicate(timeout=60)
    with start("doctor", **empty) as looking:
        found, _ = looking.communicate(timeout=60)

    assert (serving.returncode, result, "Traceback" in errors) == (2, "", False)
    assert "Run `anamnesis models install`" in errors
    assert (looking.returncode, "Run `anamnesis models install`." in found) == (1, True)
