"""The database of a Letta server that a developer starts is kept between two runs."""

from pathlib import Path

import psycopg

from tools.servers.letta import letta_database


def test_what_was_in_lettas_database_is_there_in_the_next_run(tmp_path: Path) -> None:
    kept = tmp_path / "letta.sql"
    with letta_database(kept) as database, psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE remembered (what text)")
        connection.execute("INSERT INTO remembered VALUES ('an agent')")

    with letta_database(kept) as database, psycopg.connect(database) as connection:
        found = connection.execute("SELECT what FROM remembered").fetchall()
        tables = connection.execute("SELECT count(*) FROM agents").fetchone()

    assert found == [("an agent",)]
    assert tables == (0,)
