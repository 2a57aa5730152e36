"""A Letta server with a database of its own, on free loopback ports: `python -m tools.servers.letta`.

It prints `http://127.0.0.1:PORT MODELS`: its address, and that of the endpoint with its agents' model and
embeddings. The database and all files are removed when it stops.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import psycopg
from sqlalchemy import make_url

from tools.servers.keeper import keep
from tools.servers.model_endpoint import EMBEDDING, MODEL, running_model_endpoint
from tools.servers.postgres import running_postgres
from tools.servers.process import free_port, running_process
from tools.setup.progress import run
from tools.setup.toolchain import ensure_letta, ensure_postgres

SECONDS_TO_START: Final = 300
LETTA_MODEL: Final = f"openai-proxy/{MODEL}"
"""Letta's name for a model of an endpoint other than OpenAI's own."""

LETTA_EMBEDDING: Final = f"openai/{EMBEDDING}"
"""Letta's name for the embeddings of any endpoint with OpenAI's API."""

HINT: Final = "LETTA_BASE_URL can name a running server instead."


@dataclass(frozen=True, slots=True)
class Address:
    """The addresses of a Letta server and of the model endpoint that its agents use."""

    base_url: str
    models_url: str

    def __str__(self) -> str:
        return f"{self.base_url} {self.models_url}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """The reverse of `str`."""
        return cls(*text.split())


@contextmanager
def running_letta(
    port: int | None = None, *, endpoint: str = "", model: str = LETTA_MODEL, kept: Path | None = None
) -> Iterator[Address]:
    """A Letta server during the body, and a model endpoint for its agents unless `endpoint` names one.

    The server is empty, unless `kept` has the database of an earlier one.
    """
    with ExitStack() as running:
        models_url = endpoint or running.enter_context(running_model_endpoint()).url
        database = running.enter_context(letta_database(kept))
        yield running.enter_context(serving(database, models_url, port, model=model))


@contextmanager
def letta_database(kept: Path | None = None) -> Iterator[str]:
    """A PostgreSQL with Letta's tables during the body. Letta can be killed and started again on it.

    `kept` is a file from which the tables are loaded if it exists, and into which they are dumped at last.
    """
    with running_postgres() as postgres:
        url = make_url(postgres).set(drivername="postgresql", database="letta")
        with psycopg.connect(host=url.host, port=url.port, user=url.username, autocommit=True) as connection:
            connection.execute("CREATE DATABASE letta")
        database = url.render_as_string()
        if kept is not None and kept.exists():
            _load(database, kept)
        else:
            _make_tables(database)
        yield database
        if kept is not None:
            _dump(database, kept)


@contextmanager
def serving(
    database: str, models_url: str, port: int | None = None, *, model: str = LETTA_MODEL
) -> Iterator[Address]:
    """A Letta server on that database during the body. It gets our `OPENAI_API_KEY`, if there is one."""
    environment = ensure_letta() / "environment"
    address = Address(f"http://127.0.0.1:{port or free_port()}", models_url)
    with tempfile.TemporaryDirectory(prefix="anamnesis-letta-", ignore_cleanup_errors=True) as home:
        settings = {
            "LETTA_PG_URI": f"{database}?sslmode=disable",
            "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",  # without a pool, a reused descriptor stalls it
            "LETTA_DISABLE_TRACING": "true",
            "LETTA_UVICORN_TIMEOUT_KEEP_ALIVE": "75",
            "OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY") or "none",
            "OPENAI_BASE_URL": models_url,
        }
        port_options = ["--host", "127.0.0.1", "--port", address.base_url.rpartition(":")[2]]
        with running_process(
            "Letta",
            [environment / "bin" / "letta", "server", *port_options],
            folder=Path(home),
            connect=partial(_make_and_delete_an_agent, address.base_url, model),
            refusals=(httpx.HTTPError,),
            seconds=SECONDS_TO_START,
            hint=HINT,
            cwd=home,
            env=_environment(home, settings),
        ):
            yield address


def _make_tables(database: str) -> None:
    """Run Letta's migrations the first time on this machine and keep a dump. Later, load the dump."""
    letta = ensure_letta()
    dump = letta / "tables.sql"
    if dump.exists():
        _load(database, dump)
        return
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    with tempfile.TemporaryDirectory(prefix="anamnesis-letta-", ignore_cleanup_errors=True) as home:
        run(
            [letta / "environment" / "bin" / "alembic", "upgrade", "head"],
            env=_environment(home, {"LETTA_PG_URI": database}),
            cwd=letta / "migrations",
            hint=HINT,
        )
    _dump(database, dump)


def _load(database: str, dump: Path) -> None:
    options = ["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--output", os.devnull]
    run([ensure_postgres() / "psql", *options, "--file", dump, database], hint=HINT)


def _dump(database: str, dump: Path) -> None:
    """Write the whole database to a file, which only its owner may read: it may hold what people wrote."""
    with tempfile.NamedTemporaryFile("w", dir=dump.parent, prefix=f"{dump.stem}-", delete=False) as file:
        file.write(run([ensure_postgres() / "pg_dump", "--no-owner", database], hint=HINT))
    Path(file.name).rename(dump)


def _environment(home: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Our environment without settings for another Letta or another Python, and with a temporary HOME."""
    removed = ("LETTA_", "OPENAI_", "PYTHON", "VIRTUAL_ENV", "ANAMNESIS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
    return {**kept, "HOME": home, "NLTK_DATA": home, **settings}


def _make_and_delete_an_agent(base_url: str, model: str) -> None:
    """Succeeds once Letta is ready. Its health check succeeds much earlier."""
    agent = {
        "name": "ready",
        "agent_type": "letta_v1_agent",
        "include_base_tools": False,
        "model": model,
        "embedding": LETTA_EMBEDDING,
    }
    with httpx.Client(base_url=f"{base_url}/v1/agents/", timeout=30, trust_env=False) as agents:
        made = agents.post("", json=agent).raise_for_status().json()
        agents.delete(made["id"]).raise_for_status()


@contextmanager
def _running() -> Iterator[str]:
    with running_letta() as address:
        yield str(address)


if __name__ == "__main__":
    keep(_running)
