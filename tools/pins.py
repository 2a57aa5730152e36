"""Chooses versions of the dependencies and pins them with their hashes: `python -m tools.pins [PACKAGE …]`.

With names, only those move; without, everything moves to the newest version that fits. No address of a
registry is written, so that everyone installs from the one they trust.
"""

import sys

from tools.bootstrap import PYTHON
from tools.progress import SetupError, run, step
from tools.toolchain import CHECK_THE_NETWORK, CHECKOUT, ensure_uv, installer_environment

SOURCES = {
    "run": "pyproject.toml",
    "dev": "requirements/dev.in",
    "uv": "requirements/uv.in",
    "node": "requirements/node.in",
    "postgres": "requirements/postgres.in",
    "go": "requirements/go.in",
    "letta-server": "requirements/letta-server.in",
}
AS_OF = {"letta-server": "2026-05-15"}
"""What is no longer kept up works with the versions of its last day, and with few later ones."""

AS_IN_THE_FILES = ["--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate"]


def main() -> None:
    """Compile every file of `requirements/`, `run` before `dev`, which builds on it."""
    moving = [f"--upgrade-package={name}" for name in sys.argv[1:]] or ["--upgrade"]
    uv, env = ensure_uv(PYTHON), installer_environment(PYTHON)
    try:
        for name, source in SOURCES.items():
            with step(f"choosing versions for requirements/{name}.txt"):
                options = [*AS_IN_THE_FILES, *moving, "--python-version", "3.11", "--universal", "--quiet"]
                if name in AS_OF:
                    options += ["--exclude-newer", AS_OF[name]]
                run(
                    [uv, "pip", "compile", source, "--output-file", f"requirements/{name}.txt", *options],
                    env=env,
                    cwd=CHECKOUT,
                    otherwise=CHECK_THE_NETWORK,
                )
    except SetupError as failure:
        sys.exit(f"\n{failure}")


if __name__ == "__main__":
    main()
