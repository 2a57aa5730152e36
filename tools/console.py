"""Builds the web page into `console/dist` unless it is up to date: `python -m tools.console`.

Uses the standard library only, because it runs while a checkout is being set up.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.setup.progress import SetupError, run, step
from tools.setup.toolchain import CHECKOUT, cache_dir, ensure_node, fingerprint, locked

CONSOLE = CHECKOUT / "console"
DIST = CONSOLE / "dist"
MODULES = CONSOLE / "node_modules"
BUILD_INPUTS = (
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "index.html",
    "public",
    "src",
)
CHECK_NPM = (
    "Check that npm reaches its registry (proxy, certificates: npm config list), "
    "then run the same command again; what has been fetched is kept."
)


def main() -> None:
    """Build the page, or exit with the reason why that failed."""
    try:
        build_console()
    except SetupError as failure:
        sys.exit(f"\n{failure}")


def build_console() -> Path:
    """Build the page if one of its sources changed, and return its folder. Needs the network only once."""
    inputs, stamp = _fingerprint_of_sources(), CHECKOUT / ".cache" / "console.built"
    with locked(CHECKOUT / ".cache" / "console.lock"):
        if not (DIST / "index.html").exists() or not stamp.exists() or stamp.read_text() != inputs:
            stamp.unlink(missing_ok=True)
            node = ensure_node()
            _install_packages(node, "to build")
            with step("building the web page"):
                vite = MODULES / "vite" / "bin" / "vite.js"
                run(
                    [node / "node", vite, "build", "--logLevel", "warn"],
                    env=npm_environment(node),
                    cwd=CONSOLE,
                    hint="The lines above say where the page's code is wrong.",
                )
            stamp.write_text(inputs)
    return DIST


def ensure_packages() -> Path:
    """Install the packages that build and test the page, and return the folder with `node`."""
    node = ensure_node()
    with locked(CHECKOUT / ".cache" / "console.lock"):
        _install_packages(node, "to test")
    return node


def npm_environment(node: Path) -> dict[str, str]:
    """Environment variables for Node's programs: PATH, and settings that keep npm quiet."""
    ours: Mapping[str, str] = {
        "PATH": os.pathsep.join((str(node), os.environ.get("PATH", os.defpath))),
        "npm_config_update_notifier": "false",
        "npm_config_loglevel": "error",
    }
    if cache_dir().is_relative_to(CHECKOUT):  # HOME is not usable, and npm keeps its cache there
        ours = {**ours, "npm_config_cache": str(cache_dir() / "npm")}
    return {**os.environ, **ours}


def _install_packages(node: Path, purpose: str) -> None:
    """Install the packages of the lock file; those for tests only if `purpose` is "to test"."""
    pinned, stamp = fingerprint(CONSOLE / "package-lock.json"), MODULES / ".installed"
    installed = stamp.read_text() if stamp.exists() else ""
    if installed in (f"to test {pinned}", f"{purpose} {pinned}"):
        return
    with step(f"installing what the web page needs {purpose}"):
        run(
            [node / "npm", "ci", "--prefer-offline", *(["--omit=dev"] if purpose == "to build" else [])],
            env=npm_environment(node),
            cwd=CONSOLE,
            hint=CHECK_NPM,
        )
    stamp.write_text(f"{purpose} {pinned}")


def _fingerprint_of_sources() -> str:
    """A fingerprint that changes with the name or content of any file the build reads."""
    roots = [CONSOLE / name for name in BUILD_INPUTS]
    files = sorted(
        file for root in roots for file in (root.rglob("*") if root.is_dir() else [root]) if file.is_file()
    )
    return fingerprint(*(part for file in files for part in (str(file.relative_to(CONSOLE)), file)))


if __name__ == "__main__":
    main()
