"""The commands that look after a database do so over PostgreSQL as well."""

import json

import psycopg
import pytest
from click.testing import CliRunner

from orchestrator.cli import cli
from orchestrator.store import migrations
from tests.servers.postgres import as_psycopg


def test_a_postgres_database_is_made_and_looked_through(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_DATABASE_URL", postgres_url)

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, arguments)
        return done.exit_code, done.stdout

    missing, made, sound, looked = run("db", "status"), run("db", "upgrade"), run("check"), run("doctor")
    with psycopg.connect(as_psycopg(postgres_url), autocommit=True) as behind_our_back:
        behind_our_back.execute(
            "INSERT INTO alicia_conversations (id, user_id, last_client_stanza_id, created_at, updated_at)"
            " VALUES ('conv_odd', 'p', 5, now(), now())"
        )
    code, told = run("check", "--json")

    assert [step[0] for step in (missing, made, sound, looked)] == [1, 0, 0, 0]
    assert sound[1] == "no violations in 0 conversations\n"
    assert f"schema {migrations.REVISIONS[-1]}" in looked[1]
    assert (code, [violation["ids"] for violation in json.loads(told)["violations"]]) == (1, [["conv_odd"]])
