"""Builds the web page into `console/dist`, if it changed since: `python -m tools.console`.

Needs nothing but the standard library, since it runs while a checkout is being set up.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.progress import SetupError, run, step
from tools.toolchain import CHECKOUT, cache_dir, ensure_node, fingerprint, locked

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
    "then run the same command again; what is already there is kept."
)


def main() -> None:
    """Build, or say why not."""
    try:
        build_console()
    except SetupError as failure:
        sys.exit(f"\n{failure}")


def build_console() -> Path:
    """The folder of the built page. Built only if one of its sources changed; then without a network, too."""
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
                    otherwise="The lines above say where the page's code is wrong.",
                )
            stamp.write_text(inputs)
    return DIST


def ensure_packages() -> Path:
    """The folder with `node`, after installing what checking and testing the page need as well."""
    node = ensure_node()
    with locked(CHECKOUT / ".cache" / "console.lock"):
        _install_packages(node, "to test")
    return node


def npm_environment(node: Path) -> dict[str, str]:
    """The environment for Node's programs: they find each other on PATH, and stay quiet."""
    ours: Mapping[str, str] = {
        "PATH": os.pathsep.join((str(node), os.environ.get("PATH", os.defpath))),
        "npm_config_update_notifier": "false",
        "npm_config_loglevel": "error",
    }
    if cache_dir().is_relative_to(CHECKOUT):  # npm's own cache lies in HOME, which cannot be used here
        ours = {**ours, "npm_config_cache": str(cache_dir() / "npm")}
    return {**os.environ, **ours}


def _install_packages(node: Path, purpose: str) -> None:
    """What the lock file pins; only the part that building needs, unless it is to be tested."""
    pinned, stamp = fingerprint(CONSOLE / "package-lock.json"), MODULES / ".installed"
    there = stamp.read_text() if stamp.exists() else ""
    if there == f"to test {pinned}" or there == f"{purpose} {pinned}":
        return
    with step(f"installing what the web page needs {purpose}"):
        run(
            [node / "npm", "ci", "--prefer-offline", *(["--omit=dev"] if purpose == "to build" else [])],
            env=npm_environment(node),
            cwd=CONSOLE,
            otherwise=CHECK_NPM,
        )
    stamp.write_text(f"{purpose} {pinned}")


def _fingerprint_of_sources() -> str:
    """Changes with any file the build reads, its name or its content."""
    roots = [CONSOLE / name for name in BUILD_INPUTS]
    files = sorted(
        file for root in roots for file in (root.rglob("*") if root.is_dir() else [root]) if file.is_file()
    )
    return fingerprint(*(part for file in files for part in (str(file.relative_to(CONSOLE)), file)))


if __name__ == "__main__":
    main()
