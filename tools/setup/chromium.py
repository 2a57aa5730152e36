"""Finds a Chromium: the machine's own, else one from an npm package, unpacked into the cache."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools.console import CHECK_NPM, npm_environment
from tools.setup.progress import SetupError, run, step
from tools.setup.toolchain import CHECKOUT, cache_dir, ensure_node, fingerprint, locked

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OLDEST = 123
PACKAGE = CHECKOUT / "tests" / "browser"
SET_THE_PATH = "Install a Chromium and set CHROMIUM_PATH to its executable."
UNPACK = 'import chromium from "@sparticuz/chromium"; await chromium.executablePath();'
WITH_LIBRARIES = {
    "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs24.x"
}  # makes the package unpack its shared libraries too


def ensure_chromium(names: Iterable[str] = NAMES) -> Path:
    """The executable: that of `CHROMIUM_PATH`, else one of `names` on PATH, else the packaged one."""
    if chosen := os.environ.get("CHROMIUM_PATH"):
        if _major_version(chosen) >= OLDEST:
            return Path(chosen)
        raise SetupError(
            f"CHROMIUM_PATH does not name a Chromium of version {OLDEST} or newer.\nCorrect it or unset it."
        )
    for name in names:
        if (found := shutil.which(name)) and _major_version(found) >= OLDEST:
            return Path(found)
    return _packaged()


def library_path(executable: Path) -> dict[str, str]:
    """Environment variables for the executable: the packaged shared libraries, if it needs them to start."""
    libraries = executable.parent / "al2023" / "lib"
    if not libraries.is_dir() or _major_version(str(executable)):
        return {}
    return {"LD_LIBRARY_PATH": str(libraries)}


def _packaged() -> Path:
    """Install the package, which contains a compressed Chromium, and keep only the unpacked files."""
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
                    run([node / "npm", "ci", "--prefer-offline"], env=env, cwd=scratch, hint=CHECK_NPM)
                    run(
                        [node / "node", "--input-type=module", "--eval", UNPACK],
                        env={**env, **WITH_LIBRARIES, "TMPDIR": str(unpacked)},
                        cwd=scratch,
                        hint=SET_THE_PATH,
                    )
                executable = unpacked / "chromium"
                run([executable, "--version"], env={**env, **library_path(executable)}, hint=SET_THE_PATH)
                unpacked.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder / "chromium"


def _major_version(executable: str) -> int:
    """The major version that `--version` prints; 0 if the executable cannot be run."""
    try:
        output = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0
    found = re.search(r"\d+", output)
    return int(found.group()) if found else 0


if __name__ == "__main__":
    print(ensure_chromium())
