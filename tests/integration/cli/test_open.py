"""`anamnesis open`: prints an address that signs a browser in at a running server."""

import asyncio
import json
from pathlib import Path

import httpx

from tests.faults.deployment import a_deployment
from tests.support.commands import run
from tests.support.servers.forked_servers import Forker


async def sign_in(url: str, page: str) -> httpx.Response:
    """Exchange the code of a printed address, as the page does."""
    async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
        return await http.post("/v1/session", json={"code": page.removeprefix(f"{url}/#")})


async def test_it_prints_an_address_that_signs_in_once(forker: Forker, tmp_path: Path) -> None:
    async with a_deployment(forker, tmp_path / "data") as place:
        server = await place.start()
        printed = await asyncio.to_thread(forker.run, place.folder, "open")
        as_json = await asyncio.to_thread(forker.run, place.folder, "open", "--json", "--user", "boris")

        line = json.loads(as_json.stdout)
        answers = [
            (await sign_in(server.url, page)).status_code
            for page in (printed.stdout.strip(), line["page"], line["page"])
        ]

    assert (printed.returncode, printed.stderr) == (0, "")
    assert answers == [204, 204, 401]
    assert (line["url"], line["expires_in_seconds"]) == (server.url, 600)
    assert server.key not in printed.stdout + as_json.stdout


async def test_it_prints_an_address_of_each_server_that_still_runs(forker: Forker, tmp_path: Path) -> None:
    async with a_deployment(forker, tmp_path / "data") as place:
        servers = [await place.start() for _ in range(3)]
        await servers[1].kill()
        printed = await asyncio.to_thread(forker.run, place.folder, "open")

        addresses = sorted(line.partition("/#")[0] for line in printed.stdout.splitlines())

    assert addresses == sorted([servers[0].url, servers[2].url])


def test_without_a_server_it_says_how_to_start_one(forker: Forker, tmp_path: Path) -> None:
    done = forker.run(tmp_path, "open")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"No server is running with the data folder {tmp_path}." in done.stderr
    assert "anamnesis serve" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_its_help_says_how_long_an_address_works() -> None:
    text = run("open", "--help").stdout

    assert "once, within ten minutes" in text
    assert "--json" in text
