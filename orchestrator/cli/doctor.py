"""`anamnesis doctor`: what is configured, what of it works, and what stands in the way."""

import json
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import click

from orchestrator import __version__
from orchestrator.cli.database import schema_status, tell, what_it_lacks
from orchestrator.cli.frame import FOUND_SOMETHING, OUR_PACKAGES, Invocation, pass_invocation, shared_options
from orchestrator.errors import AnamnesisError

if TYPE_CHECKING:
    from orchestrator.settings import Data, Settings

OPTIONAL_TOOLS: Final = ("node", "go", "postgres", "livekit-server", "chromium")
PATIENCE_SECONDS: Final = 3
MOST_BYTES: Final = 10_000_000
"""More of an answer is not read."""
MOST_NAMES: Final = 8
"""So many of the models that a server knows, or of what a database lacks, are named."""
MOST_FILES: Final = 3
"""So many of the files that are not as they were installed are named."""

Status = Literal["ok", "off", "warning", "failed"]
_SIGNS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "off": ("--", "white"),
    "warning": ("!!", "yellow"),
    "failed": ("no", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it stands, and what to do about it."""

    name: str
    status: Status
    says: str
    then: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@shared_options
@pass_invocation
@click.pass_context
def doctor(context: click.Context, invocation: Invocation, as_json: bool) -> None:
    """Say what is configured, what is reachable, and what collides.

    Ends with 1 when something that is configured does not work.
    """
    settings = invocation.settings()
    findings = list(look(settings))
    chosen = [
        {"key": key, "value": settings.shown(key), "from": where} for key, where in settings.origins.items()
    ]
    works = all(finding.status != "failed" for finding in findings)
    if as_json:
        found = [asdict(finding) for finding in findings]
        click.echo(
            json.dumps({"version": __version__, "ok": works, "settings": chosen, "findings": found}, indent=2)
        )
    else:
        _tell(chosen, findings)
    if not works:
        context.exit(FOUND_SOMETHING)


def _tell(chosen: list[dict[str, str]], findings: list[Finding]) -> None:
    click.echo(f"anamnesis {__version__}")
    click.echo("Settings that are not the shipped ones:" if chosen else "All settings are the shipped ones.")
    for setting in chosen:
        click.echo(f"    {setting['key']} = {setting['value']}  ({setting['from']})")
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        sign, color = _SIGNS[finding.status]
        click.echo(f"{click.style(sign, fg=color)}  {finding.name:<{width}}  {finding.says}")
        if finding.then:
            click.echo(f"{'':<{width}}      {finding.then}")


def look(settings: "Settings") -> Iterator[Finding]:
    """Everything the doctor looks at, in the order it is told."""
    yield python()
    yield data_folder(settings.data)
    yield database(settings)
    yield embedding_model(settings)
    yield region(settings.safety.region)
    yield letta(settings)
    yield livekit(settings)
    yield reachable("telemetry", settings.telemetry.endpoint, "/")
    yield from collisions()
    yield tools()


def python() -> Finding:
    """Which Python this is, and the SQLite inside it."""
    import sqlite3

    return Finding("python", "ok", f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}")


def data_folder(data: "Data") -> Finding:
    """Whether the data folder can be written to, and by whom it can be read. Makes nothing."""
    name, folder = "data folder", data.dir
    try:
        there = folder.exists()
    except OSError as error:
        says = f"{folder} cannot be looked at ({os.strerror(error.errno or 0)})."
        return Finding(name, "failed", says, "Choose another with --data DIR.")
    if not there:
        above = next(parent for parent in folder.parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            return Finding(name, "failed", f"{folder} cannot be made.", "Choose another with --data DIR.")
        return Finding(name, "ok", f"{folder} (not there yet; made when first needed)")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return Finding(name, "failed", f"{folder} cannot be written to.", "Choose another with --data DIR.")
    if folder.stat().st_mode & 0o077:
        return Finding(name, "warning", f"{folder} can be read by others.", f"chmod 700 {folder}")
    return Finding(name, "ok", str(folder))


def database(settings: "Settings") -> Finding:
    """Whether the database answers, and which schema it has. Makes nothing."""
    name = "database"
    kind = settings.database_url().partition(":")[0]
    try:
        schema = schema_status(settings)
        lacking = what_it_lacks(settings) if schema.is_current else []
    except AnamnesisError as refused:
        return Finding(name, "failed", f"{kind}: {refused}")
    match tell(schema):
        case "current" if lacking:
            told = ", ".join(lacking[:MOST_NAMES]) + (" and more" if len(lacking) > MOST_NAMES else "")
            says = f"{kind} has schema {schema.found} and lacks {told}."
            return Finding(name, "failed", says, "Bring back a copy of it; `anamnesis check` tells more.")
        case "current":
            return Finding(name, "ok", f"{kind}, schema {schema.found}")
        case "missing":
            return Finding(name, "ok", f"{kind}, not made yet", "`anamnesis db upgrade` or `serve` makes it.")
        case state:
            says = f"{kind} has schema {schema.found}; this program needs {schema.needed}."
            then = "Run `anamnesis db upgrade`." if state == "older" else "Install a newer anamnesis."
            return Finding(name, "failed", says, then)


def embedding_model(settings: "Settings") -> Finding:
    """Whether the files of the embedding model are here and are the pinned ones."""
    from orchestrator.model_files import ModelFiles
    from orchestrator.settings import shipped_config

    files = ModelFiles.shipped(shipped_config(), settings.models.dir)
    if (rule := files.what_is_wrong()) is not None:
        return Finding("model", "failed", f"{rule}.", "Run `anamnesis models install`.")
    return Finding("model", "ok", f"{files.manifest.label} in {files.folder}")


def region(name: str) -> Finding:
    """Whose emergency numbers are named, and whether they are known."""
    if not name:
        return Finding("region", "off", "not set: the local emergency number and 112 are named")

    from orchestrator.settings import shipped_config

    try:
        from agents.safety.wording import known_regions
    except ImportError:  # another distribution hides ours, of which the doctor tells below
        return Finding("region", "failed", f"the numbers of {name} cannot be read")
    known = known_regions(shipped_config() / "safety")
    if name in known:
        return Finding("region", "ok", f"the numbers of {name} are named")
    says = f"no numbers are known for {name}: the local emergency number and 112 are named"
    return Finding(
        "region", "failed", says, f"Set safety.region to one of {', '.join(known)}, or to nothing."
    )


def reachable(name: str, address: str, path: str, *, well: bool = False) -> Finding:
    """Whether an HTTP server answers, `well` if it must say that it is. No key is sent."""
    if not address:
        return Finding(name, "off", "not configured")
    try:
        status, _ = _get(address, path)
    except (OSError, HTTPException) as error:
        return _silent(name, address, error)
    if status >= 500:
        return Finding(name, "failed", f"{address} answers with {status}.", "Its own log says why.")
    if well and status not in range(200, 300):
        return Finding(name, "failed", f"{address}{path} answers with {status}.", "Is the address right?")
    return Finding(name, "ok", f"{address} answers")


def letta(settings: "Settings") -> Finding:
    """Whether it is a Letta server that answers, lets us in, and knows what our agents are made of."""
    there = settings.letta
    found = reachable("letta", there.base_url, "/v1/health/", well=True)
    if found.status != "ok":
        return found
    made_of = {
        "/v1/models/": ("model", "extractor_model", "classifier_model"),
        "/v1/models/embedding": ("embedding",),
    }
    for path, names in made_of.items():
        try:
            status, body = _get(there.base_url, path, there.api_key.get_secret_value())
        except (OSError, HTTPException) as error:
            return _silent("letta", there.base_url, error)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            says = f"{there.base_url} answers and does not let us in."
            return Finding("letta", "failed", says, "Is LETTA_API_KEY the one of that server?")
        known = _handles(body)
        if status != HTTPStatus.OK or known is None:
            says = f"{there.base_url}{path} answers with {status} and no list."
            return Finding("letta", "failed", says, "Is it a Letta server?")
        unknown = [name for name in names if (handle := getattr(there, name)) and handle not in known]
        if unknown:
            told = ", ".join(f"letta.{name} = {getattr(there, name)}" for name in unknown)
            then = f"It knows {', '.join(sorted(known)[:MOST_NAMES]) or 'none'}, as GET {path} tells."
            return Finding("letta", "failed", f"{there.base_url} does not know {told}.", then)
    return Finding("letta", "ok", f"{there.base_url} answers and knows the models")


def _handles(body: bytes) -> set[str] | None:
    """How a Letta server calls the models it lists; None when this is no such list."""
    try:
        return {str(each["handle"]) for each in json.loads(body)}
    except (LookupError, TypeError, ValueError):
        return None


def _silent(name: str, address: str, error: Exception) -> Finding:
    says = f"{address} does not answer ({type(error).__name__})."
    return Finding(name, "failed", says, "Is it running? Is the address right?")


def _get(address: str, path: str, key: str = "") -> tuple[int, bytes]:
    """What a server answers, without any library that would have to be there."""
    parts = urlsplit(address)
    connect = HTTPSConnection if parts.scheme in ("https", "wss") else HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES)
    finally:
        connection.close()


def livekit(settings: "Settings") -> Finding:
    """LiveKit needs a pair of keys, too: without it no one can be let into a room."""
    room = settings.livekit
    if room.url and not (room.api_key and room.api_secret):
        return Finding(
            "livekit",
            "failed",
            f"{room.url} is set, its key or secret is not.",
            "Set LIVEKIT_API_KEY and LIVEKIT_API_SECRET.",
        )
    found = reachable("livekit", room.url, "/")
    if found.status != "ok":
        return found
    if not _lets_us_in(room.url, room.api_key.get_secret_value(), room.api_secret.get_secret_value()):
        then = "Are LIVEKIT_API_KEY and LIVEKIT_API_SECRET the ones of that server?"
        return Finding("livekit", "failed", f"{room.url} answers and does not let us in.", then)
    return Finding("livekit", "ok", f"{room.url} answers and lets us in")


def _lets_us_in(url: str, key: str, secret: str) -> bool:
    """Whether the LiveKit server takes what we sign."""
    import asyncio

    from orchestrator.transports.livekit_server import LiveKitServer

    async def ask() -> bool:
        server = LiveKitServer(url, key, secret)
        try:
            await server.answers()
        except AnamnesisError:
            return False
        finally:
            await server.close()
        return True

    return asyncio.run(ask())


def collisions() -> Iterator[Finding]:
    """Whether another distribution brings a package of one of our names: `openai-agents` brings `agents`.

    It hides ours from Python, or has written over it; and with it a part of ours is uninstalled.
    """
    from importlib.metadata import packages_distributions
    from importlib.util import find_spec

    ours = Path(__file__).parents[2]
    providers, lost = packages_distributions(), _not_as_installed(ours)
    found = False
    for name in OUR_PACKAGES:
        others = ", ".join(sorted({other for other in providers.get(name, ()) if other != "anamnesis"}))
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if shadowed := str(ours / name) not in places:
            says = f"`{name}` is also brought by {others or places[0]}; Python takes that one."
        elif name in lost:
            says = f"`{name}` is not as it was installed: {', '.join(lost[name][:MOST_FILES])}"
            says += f" and {len(lost[name]) - MOST_FILES} more" if len(lost[name]) > MOST_FILES else ""
            says += f"; it is also brought by {others}." if others else "."
        elif others:
            says = f"`{name}` is also brought by {others}; Python takes ours."
        else:
            continue
        found = True
        yield Finding(
            "names",
            "failed" if shadowed or name in lost else "warning",
            says,
            "Install anamnesis into an environment of its own (python3 -m venv …).",
        )
    if not found:
        yield Finding("names", "ok", "no other distribution brings a package of our names")


def _not_as_installed(ours: Path) -> dict[str, list[str]]:
    """The files of code that are gone or changed since a wheel was installed here, by package."""
    from base64 import urlsafe_b64encode
    from hashlib import sha256
    from importlib.metadata import distributions

    lost: dict[str, list[str]] = {}
    for installed in distributions(name="anamnesis", path=[str(ours)]):
        for file in installed.files or ():
            if file.parts[0] not in OUR_PACKAGES or file.suffix != ".py" or file.hash is None:
                continue
            try:
                there = urlsafe_b64encode(sha256((ours / file).read_bytes()).digest()).decode().rstrip("=")
            except OSError:
                there = ""
            if there != file.hash.value:
                lost.setdefault(file.parts[0], []).append(str(file))
    return lost


def tools() -> Finding:
    """Programs that are used if they are there."""
    there = [tool for tool in OPTIONAL_TOOLS if shutil.which(tool)]
    missing = [tool for tool in OPTIONAL_TOOLS if tool not in there]
    return Finding(
        "tools",
        "ok",
        f"found: {', '.join(there) or 'none'}; not found: {', '.join(missing) or 'none'} (all optional)",
    )
