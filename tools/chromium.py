"""A Chromium for the browser tests: the machine's own, else a package of npm unpacked into the cache."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools.console import CHECK_NPM, npm_environment
from tools.progress import SetupError, run, step
from tools.toolchain import CHECKOUT, cache_dir, ensure_node, fingerprint, locked

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OLDEST = 123
PACKAGE = CHECKOUT / "tests" / "browser"
SET_THE_PATH = "Install a Chromium and set CHROMIUM_PATH to its executable."
UNPACK = 'import chromium from "@sparticuz/chromium"; await chromium.executablePath();'
WITH_LIBRARIES = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs24.x"}  # makes the package unpack its libraries, too


def ensure_chromium(names: Iterable[str] = NAMES) -> Path:
    """The executable: `CHROMIUM_PATH`, one of `names` on PATH, or the packaged one."""
    if chosen := os.environ.get("CHROMIUM_PATH"):
        if _major_version(chosen) >= OLDEST:
            return Path(chosen)
        raise SetupError(
            f"CHROMIUM_PATH names no Chromium of version {OLDEST} or newer.\nCorrect it or unset it."
        )
    for name in names:
        if (found := shutil.which(name)) and _major_version(found) >= OLDEST:
            return Path(found)
    return _packaged()


def library_path(executable: Path) -> dict[str, str]:
    """What to add to the environment: the libraries from the package, where the machine lacks some."""
    libraries = executable.parent / "al2023" / "lib"
    if not libraries.is_dir() or _major_version(str(executable)):
        return {}
    return {"LD_LIBRARY_PATH": str(libraries)}


def _packaged() -> Path:
    """The package holds the executable compressed. Unpacked once, it is all that is kept."""
    pins = (PACKAGE / "package.json", PACKAGE / "package-lock.json", PACKAGE / ".npmrc")
    folder = cache_dir() / f"chromium-{fingerprint(*pins[:2], platform.machine())}"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            node = ensure_node()
            scratch = Path(tempfile.mkdtemp(prefix="chromium-", dir=folder.parent))
            try:
                for pin in pins:
                    shutil.copy(pin, scratch)
                unpacked, env = scratch / "unpacked", npm_environment(node)
                unpacked.mkdir()
                with step(f"fetching Chromium into {folder.parent}"):
                    run([node / "npm", "ci", "--prefer-offline"], env=env, cwd=scratch, otherwise=CHECK_NPM)
                    run(
                        [node / "node", "--input-type=module", "--eval", UNPACK],
                        env={**env, **WITH_LIBRARIES, "TMPDIR": str(unpacked)},
                        cwd=scratch,
                        otherwise=SET_THE_PATH,
                    )
                executable = unpacked / "chromium"
                run(
                    [executable, "--version"], env={**env, **library_path(executable)}, otherwise=SET_THE_PATH
                )
                unpacked.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder / "chromium"


def _major_version(executable: str) -> int:
    """What `--version` says; 0 if it cannot be run."""
    try:
        said = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0
    found = re.search(r"\d+", said)
    return int(found.group()) if found else 0


if __name__ == "__main__":
    print(ensure_chromium())
