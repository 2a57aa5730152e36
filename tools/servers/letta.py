"""A Letta server with a database of its own, on free loopback ports: `python -m tools.servers.letta`.

It prints `http://127.0.0.1:PORT MODELS`: where it listens, and where its agents' model and embeddings come
from. Nothing of it is kept, and its home is a folder that goes with it.
"""

import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from sqlalchemy import make_url

from tools.model_endpoint import EMBEDDING, MODEL, running_model_endpoint
from tools.progress import SetupError, run
from tools.servers.keeper import free_port, keep
from tools.servers.postgres import running_postgres
from tools.toolchain import ensure_letta, ensure_postgres

SECONDS_TO_START: Final = 300
LETTA_MODEL: Final = f"openai-proxy/{MODEL}"
"""What Letta calls a model of an endpoint other than OpenAI's own."""

LETTA_EMBEDDING: Final = f"openai/{EMBEDDING}"
"""What it calls the embeddings of any endpoint that speaks like OpenAI's."""

OTHERWISE: Final = "LETTA_BASE_URL can name a running server instead."


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Letta server is, and where the endpoint is that its agents think with."""

    base_url: str
    models_url: str

    def __str__(self) -> str:
        return f"{self.base_url} {self.models_url}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """What `str` made of one."""
        return cls(*text.split())


@contextmanager
def running_letta(port: int | None = None) -> Iterator[Address]:
    """A server, empty, that is up during the body, and a model endpoint for its agents."""
    with (
        running_model_endpoint() as endpoint,
        letta_database() as database,
        serving(database, endpoint.url, port) as address,
    ):
        yield address


@contextmanager
def letta_database() -> Iterator[str]:
    """A PostgreSQL with the tables of Letta; a server may be started on it, killed, and started again."""
    with running_postgres() as administered:
        url = make_url(administered).set(drivername="postgresql", database="letta")
        with psycopg.connect(host=url.host, port=url.port, user=url.username, autocommit=True) as connection:
            connection.execute("CREATE DATABASE letta")
        _make_tables(url.render_as_string())
        yield url.render_as_string()


@contextmanager
def serving(database: str, models_url: str, port: int | None = None) -> Iterator[Address]:
    """A server on that database that is up during the body."""
    environment = ensure_letta() / "environment"
    address = Address(f"http://127.0.0.1:{port or free_port()}", models_url)
    with tempfile.TemporaryDirectory(prefix="anamnesis-letta-", ignore_cleanup_errors=True) as home:
        log = Path(home, "log")
        told = {
            "LETTA_PG_URI": f"{database}?sslmode=disable",
            "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",  # unpooled, a descriptor reused too soon stalls it
            "LETTA_DISABLE_TRACING": "true",
            "LETTA_UVICORN_TIMEOUT_KEEP_ALIVE": "75",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": models_url,
        }
        listening = ["--host", "127.0.0.1", "--port", address.base_url.rpartition(":")[2]]
        with log.open("wb") as output:
            server = subprocess.Popen(
                [environment / "bin" / "letta", "server", *listening],
                cwd=home,
                env=_environment(home, told),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            _wait_until_agents_can_be_made(server, address, log)
            yield address
        finally:
            server.kill()  # nothing of it is kept
            server.wait()


def _make_tables(database: str) -> None:
    """By Letta's migrations the first time on this machine, then from what they made of an empty database."""
    letta = ensure_letta()
    kept = letta / "tables.sql"
    binaries = ensure_postgres()
    if kept.exists():
        quietly = ["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--output", os.devnull]
        run([binaries / "psql", *quietly, "--file", kept, database], otherwise=OTHERWISE)
        return
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    with tempfile.TemporaryDirectory(prefix="anamnesis-letta-", ignore_cleanup_errors=True) as home:
        run(
            [letta / "environment" / "bin" / "alembic", "upgrade", "head"],
            env=_environment(home, {"LETTA_PG_URI": database}),
            cwd=letta / "migrations",
            otherwise=OTHERWISE,
        )
    with tempfile.NamedTemporaryFile("w", dir=letta, prefix="tables-", delete=False) as dump:
        dump.write(run([binaries / "pg_dump", "--no-owner", database], otherwise=OTHERWISE))
    Path(dump.name).rename(kept)


def _environment(home: str, told: Mapping[str, str]) -> dict[str, str]:
    """Ours without what is meant for another Letta or another Python, and with a home that is thrown away."""
    foreign = ("LETTA_", "OPENAI_", "PYTHON", "VIRTUAL_ENV", "ANAMNESIS_")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**ours, "HOME": home, "NLTK_DATA": home, **told}


def _wait_until_agents_can_be_made(server: subprocess.Popen[bytes], address: Address, log: Path) -> None:
    """Letta says that it is well long before that."""
    deadline = time.monotonic() + SECONDS_TO_START
    agent = {
        "name": "ready",
        "agent_type": "letta_v1_agent",
        "include_base_tools": False,
        "model": LETTA_MODEL,
        "embedding": LETTA_EMBEDDING,
    }
    while True:
        try:
            made = _ask("POST", f"{address.base_url}/v1/agents/", agent)
            _ask("DELETE", f"{address.base_url}/v1/agents/{made['id']}", None)
            return
        except OSError:  # what urllib raises, and no answer at all
            if server.poll() is not None or time.monotonic() > deadline:
                said = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
                raise SetupError(
                    f"Letta did not start within {SECONDS_TO_START} s:\n{said}\n{OTHERWISE}"
                ) from None
            time.sleep(0.2)


def _ask(method: str, url: str, body: object) -> Any:
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, content, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.loads(answer.read())


@contextmanager
def _running() -> Iterator[str]:
    with running_letta() as address:
        yield str(address)


if __name__ == "__main__":
    keep(_running)
