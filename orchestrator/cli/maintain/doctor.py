"""`anamnesis doctor`: checks whether everything that is configured works."""

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
from orchestrator.cli.maintain.database import missing_parts, schema_status, state_of
from orchestrator.cli.options import FOUND_SOMETHING, OUR_PACKAGES, Invocation, with_invocation
from orchestrator.errors import AnamnesisError

if TYPE_CHECKING:
    from orchestrator.settings import DataSettings, Settings

OPTIONAL_TOOLS: Final = ("node", "go", "postgres", "livekit-server", "chromium")
TIMEOUT_SECONDS: Final = 3
MAX_ANSWER_BYTES: Final = 10_000_000
"""How much of an HTTP answer is read."""
MAX_NAMES: Final = 8
"""How many models of a server, or missing parts of a database, are listed."""
MAX_FILES: Final = 3
"""How many changed files are listed."""

Status = Literal["ok", "off", "warning", "failed"]
_SIGNS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "off": ("--", "white"),
    "warning": ("!!", "yellow"),
    "failed": ("no", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: its status, and what to do about it."""

    name: str
    status: Status
    says: str
    then: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_invocation
def doctor(invocation: Invocation, as_json: bool) -> None:
    """Check what is configured: whether it works, is reachable, and has no conflicts.

    The exit code is 1 if something that is configured does not work.
    """
    settings = invocation.settings()
    findings = list(check(settings))
    chosen = [
        {"key": key, "value": settings.display(key), "from": where} for key, where in settings.origins.items()
    ]
    works = all(finding.status != "failed" for finding in findings)
    if as_json:
        found = [asdict(finding) for finding in findings]
        click.echo(
            json.dumps({"version": __version__, "ok": works, "settings": chosen, "findings": found}, indent=2)
        )
    else:
        _print(chosen, findings)
    if not works:
        raise click.exceptions.Exit(FOUND_SOMETHING)


def _print(chosen: list[dict[str, str]], findings: list[Finding]) -> None:
    click.echo(f"anamnesis {__version__}")
    click.echo(
        "Settings that differ from the shipped defaults:"
        if chosen
        else "All settings are the shipped defaults."
    )
    for setting in chosen:
        click.echo(f"    {setting['key']} = {setting['value']}  ({setting['from']})")
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        sign, color = _SIGNS[finding.status]
        click.echo(f"{click.style(sign, fg=color)}  {finding.name:<{width}}  {finding.says}")
        if finding.then:
            click.echo(f"{'':<{width}}      {finding.then}")


def check(settings: "Settings") -> Iterator[Finding]:
    """The results of all checks, in the order of the output."""
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
    """The versions of Python and of its SQLite."""
    import sqlite3

    return Finding("python", "ok", f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}")


def data_folder(data: "DataSettings") -> Finding:
    """Whether the data folder is writable, and not readable for others. Creates nothing."""
    name, folder = "data folder", data.dir
    try:
        exists = folder.exists()
    except OSError as error:
        says = f"{folder} cannot be read ({os.strerror(error.errno or 0)})."
        return Finding(name, "failed", says, "Choose another with --data DIR.")
    if not exists:
        above = next(parent for parent in folder.parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            return Finding(name, "failed", f"{folder} cannot be created.", "Choose another with --data DIR.")
        return Finding(name, "ok", f"{folder} (does not exist yet; it is created when first needed)")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return Finding(name, "failed", f"{folder} cannot be written to.", "Choose another with --data DIR.")
    if folder.stat().st_mode & 0o077:
        return Finding(name, "warning", f"{folder} can be read by others.", f"chmod 700 {folder}")
    return Finding(name, "ok", str(folder))


def database(settings: "Settings") -> Finding:
    """Whether the database works, and which schema version it has. Creates nothing."""
    name = "database"
    kind = settings.database_url().partition(":")[0]
    try:
        schema = schema_status(settings)
        missing = missing_parts(settings) if schema.is_current else []
    except AnamnesisError as refused:
        return Finding(name, "failed", f"{kind}: {refused}")
    match state_of(schema):
        case "current" if missing:
            names = ", ".join(missing[:MAX_NAMES]) + (" and more" if len(missing) > MAX_NAMES else "")
            says = f"{kind} has schema {schema.found} and lacks {names}."
            return Finding(name, "failed", says, "Restore a backup; `anamnesis check` shows more.")
        case "current":
            return Finding(name, "ok", f"{kind}, schema {schema.found}")
        case "missing":
            return Finding(
                name, "ok", f"{kind}, not created yet", "`anamnesis db upgrade` or `serve` creates it."
            )
        case state:
            says = f"{kind} has schema {schema.found}; this program needs {schema.needed}."
            then = "Run `anamnesis db upgrade`." if state == "older" else "Install a newer anamnesis."
            return Finding(name, "failed", says, then)


def embedding_model(settings: "Settings") -> Finding:
    """Whether the files of the embedding model exist and have the pinned hashes."""
    from orchestrator.model_files import ModelFiles
    from orchestrator.settings import shipped_config

    files = ModelFiles.shipped(shipped_config(), settings.models.dir)
    if (rule := files.what_is_wrong()) is not None:
        return Finding("model", "failed", f"{rule}.", "Run `anamnesis models install`.")
    return Finding("model", "ok", f"{files.manifest.label} in {files.folder}")


def region(name: str) -> Finding:
    """Which emergency numbers are used, and whether the region is known."""
    if not name:
        return Finding("region", "off", "not set: answers say the local emergency number and 112")

    from orchestrator.settings import shipped_config

    try:
        from agents.safety.replies.wording import known_regions
    except ImportError:  # another distribution hides our package, which is reported below
        return Finding("region", "failed", f"the numbers of {name} cannot be read")
    known = known_regions(shipped_config() / "safety")
    if name in known:
        return Finding("region", "ok", f"answers say the numbers of {name}")
    says = f"no numbers are known for {name}"
    return Finding(
        "region", "failed", says, f"Set safety.region to one of {', '.join(known)}, or leave it empty."
    )


def reachable(name: str, address: str, path: str, *, healthy: bool = False) -> Finding:
    """Whether an HTTP server answers; with `healthy`, the status must be 2xx. No key is sent."""
    if not address:
        return Finding(name, "off", "not configured")
    try:
        status, _ = _get(address, path)
    except (OSError, HTTPException) as error:
        return _no_answer(name, address, error)
    if status >= 500:
        return Finding(
            name, "failed", f"{address} answers with {status}.", "Look into the log of that server."
        )
    if healthy and status not in range(200, 300):
        return Finding(name, "failed", f"{address}{path} answers with {status}.", "Is the address right?")
    return Finding(name, "ok", f"{address} answers")


def letta(settings: "Settings") -> Finding:
    """Whether the Letta server answers, accepts our key, and knows the configured models."""
    configured = settings.letta
    found = reachable("letta", configured.base_url, "/v1/health/", healthy=True)
    if found.status != "ok":
        return found
    models = {
        "/v1/models/": ("model", "extractor_model"),
        "/v1/models/embedding": ("embedding",),
    }
    for path, names in models.items():
        try:
            status, body = _get(configured.base_url, path, configured.api_key.get_secret_value())
        except (OSError, HTTPException) as error:
            return _no_answer("letta", configured.base_url, error)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            says = f"{configured.base_url} answers, but rejects the key."
            return Finding("letta", "failed", says, "Check LETTA_API_KEY.")
        known = _handles(body)
        if status != HTTPStatus.OK or known is None:
            says = f"{configured.base_url}{path} answers with {status}, and not with a list."
            return Finding("letta", "failed", says, "Is it a Letta server?")
        unknown = [name for name in names if (handle := getattr(configured, name)) and handle not in known]
        if unknown:
            settings_of_unknown = ", ".join(f"letta.{name} = {getattr(configured, name)}" for name in unknown)
            then = f"It knows {', '.join(sorted(known)[:MAX_NAMES]) or 'none'}, see GET {path}."
            return Finding(
                "letta", "failed", f"{configured.base_url} does not know {settings_of_unknown}.", then
            )
    return Finding("letta", "ok", f"{configured.base_url} answers and knows the models")


def _handles(body: bytes) -> set[str] | None:
    """The names of the models in a list of a Letta server; None if the body is not such a list."""
    try:
        return {str(each["handle"]) for each in json.loads(body)}
    except (LookupError, TypeError, ValueError):
        return None


def _no_answer(name: str, address: str, error: Exception) -> Finding:
    says = f"{address} does not answer ({type(error).__name__})."
    return Finding(name, "failed", says, "Is it running? Is the address right?")


def _get(address: str, path: str, key: str = "") -> tuple[int, bytes]:
    """Status and body of a GET request, without libraries, because one may be missing."""
    parts = urlsplit(address)
    connect = HTTPSConnection if parts.scheme in ("https", "wss") else HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_ANSWER_BYTES)
    finally:
        connection.close()


def livekit(settings: "Settings") -> Finding:
    """Whether the LiveKit server answers and accepts our key and secret, which every room token needs."""
    room = settings.livekit
    if room.url and not (room.api_key and room.api_secret):
        return Finding(
            "livekit",
            "failed",
            f"{room.url} is set, but its key or secret is not.",
            "Set LIVEKIT_API_KEY and LIVEKIT_API_SECRET.",
        )
    found = reachable("livekit", room.url, "/")
    if found.status != "ok":
        return found
    if not _accepts_key(room.url, room.api_key.get_secret_value(), room.api_secret.get_secret_value()):
        then = "Check LIVEKIT_API_KEY and LIVEKIT_API_SECRET."
        return Finding("livekit", "failed", f"{room.url} answers, but rejects the key.", then)
    return Finding("livekit", "ok", f"{room.url} answers and accepts the key")


def _accepts_key(url: str, key: str, secret: str) -> bool:
    """Whether the LiveKit server accepts requests signed with this key."""
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
    """Whether another distribution has a package with one of our names, as `openai-agents` has `agents`.

    Such a package hides ours or has overwritten its files, and uninstalling it removes files of ours.
    """
    from importlib.metadata import packages_distributions
    from importlib.util import find_spec

    ours = Path(__file__).parents[3]
    providers, changed = packages_distributions(), _changed_files(ours)
    found = False
    for name in OUR_PACKAGES:
        others = ", ".join(sorted({other for other in providers.get(name, ()) if other != "anamnesis"}))
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if shadowed := str(ours / name) not in places:
            says = f"`{name}` is also in {others or places[0]}, and Python imports that one."
        elif name in changed:
            says = f"`{name}` has changed since it was installed: {', '.join(changed[name][:MAX_FILES])}"
            says += f" and {len(changed[name]) - MAX_FILES} more" if len(changed[name]) > MAX_FILES else ""
            says += f"; it is also in {others}." if others else "."
        elif others:
            says = f"`{name}` is also in {others}, but Python imports ours."
        else:
            continue
        found = True
        yield Finding(
            "names",
            "failed" if shadowed or name in changed else "warning",
            says,
            "Install anamnesis into an environment of its own (python3 -m venv …).",
        )
    if not found:
        yield Finding("names", "ok", "no other distribution has a package with one of our names")


def _changed_files(ours: Path) -> dict[str, list[str]]:
    """The code files, by package, that were changed or removed since the wheel was installed."""
    from base64 import urlsafe_b64encode
    from hashlib import sha256
    from importlib.metadata import distributions

    changed: dict[str, list[str]] = {}
    for installed in distributions(name="anamnesis", path=[str(ours)]):
        for file in installed.files or ():
            if file.parts[0] not in OUR_PACKAGES or file.suffix != ".py" or file.hash is None:
                continue
            try:
                found = urlsafe_b64encode(sha256((ours / file).read_bytes()).digest()).decode().rstrip("=")
            except OSError:
                found = ""
            if found != file.hash.value:
                changed.setdefault(file.parts[0], []).append(str(file))
    return changed


def tools() -> Finding:
    """Optional programs that are used if they are installed."""
    installed = [tool for tool in OPTIONAL_TOOLS if shutil.which(tool)]
    missing = [tool for tool in OPTIONAL_TOOLS if tool not in installed]
    return Finding(
        "tools",
        "ok",
        f"found: {', '.join(installed) or 'none'}; not found: {', '.join(missing) or 'none'} (all optional)",
    )
