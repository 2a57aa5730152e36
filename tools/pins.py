"""Chooses versions of the dependencies and pins them with hashes: `python -m tools.pins [PACKAGE …]`.

With names, only those packages are upgraded; without, all of them. No registry's address is written into the
files, so that everybody installs from the registry they trust.
"""

import sys

from tools.bootstrap import PYTHON
from tools.setup.progress import SetupError, run, step
from tools.setup.toolchain import CHECK_THE_NETWORK, CHECKOUT, ensure_uv, installer_environment

SOURCES = {
    "run": "pyproject.toml",
    "dev": "requirements/dev.in",  # includes run.txt, so it comes after it
    "uv": "requirements/uv.in",
    "node": "requirements/node.in",
    "postgres": "requirements/postgres.in",
    "go": "requirements/go.in",
    "letta-server": "requirements/letta-server.in",
    "mem0": "requirements/mem0.in",
}
NOTHING_NEWER_THAN = {"letta-server": "2026-05-15"}
"""Letta's server is no longer maintained. It works with the dependencies of its time, and with few later."""

OPTIONS = [
    *("--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet"),
    *("--python-version", "3.11", "--universal"),
]


def main() -> None:
    """Write every `requirements/*.txt`."""
    upgrades = [f"--upgrade-package={name}" for name in sys.argv[1:]] or ["--upgrade"]
    uv, env = ensure_uv(PYTHON), installer_environment(PYTHON)
    try:
        for name, source in SOURCES.items():
            with step(f"choosing versions for requirements/{name}.txt"):
                options = [*OPTIONS, *upgrades]
                if name in NOTHING_NEWER_THAN:
                    options += ["--exclude-newer", NOTHING_NEWER_THAN[name]]
                run(
                    [uv, "pip", "compile", source, "--output-file", f"requirements/{name}.txt", *options],
                    env=env,
                    cwd=CHECKOUT,
                    hint=CHECK_THE_NETWORK,
                )
    except SetupError as failure:
        sys.exit(f"\n{failure}")


if __name__ == "__main__":
    main()
