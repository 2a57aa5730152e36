"""The PostgreSQL of the tests has pgvector, gives each test its own database, and stops with the run."""

import fcntl
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.servers.postgres import as_psycopg, fresh_database
from tools.setup.toolchain import CHECKOUT


def test_a_fresh_database_has_vectors_and_nothing_else(postgres_url: str) -> None:
    with psycopg.connect(as_psycopg(postgres_url)) as connection:
        distance = connection.execute("SELECT '[1,0]'::vector <=> '[0,1]'::vector").fetchone()
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()

    assert (distance, tables) == ((1.0,), (0,))


def test_two_databases_do_not_see_each_other(postgres_server_url: str, postgres_url: str) -> None:
    with fresh_database(postgres_server_url) as other_url, psycopg.connect(as_psycopg(other_url)) as other:
        other.execute("CREATE TABLE only_here (id int)")
        other.commit()

        with psycopg.connect(as_psycopg(postgres_url)) as ours, pytest.raises(psycopg.errors.UndefinedTable):
            ours.execute("SELECT * FROM only_here")


def test_the_server_stops_when_its_test_run_has_ended(tmp_path: Path) -> None:
    life = tmp_path / "life"
    with life.open("w") as whoever_asked:
        fcntl.flock(whoever_asked, fcntl.LOCK_EX)
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tools.servers.postgres", "--while-locked", life],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert keeper.stdout is not None
        with keeper.stdout:
            url = as_psycopg(keeper.stdout.readline().strip())
        psycopg.connect(url).close()

    assert keeper.wait() == 0
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
