"""Starts a Letta server and `anamnesis serve` connected to it, until Ctrl-C: `python -m tools.letta`.

If LETTA_BASE_URL is set, no Letta server is started; that one is used, with the models of the settings.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tools.progress import SetupError, step
from tools.serve import serve
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, running_letta
from tools.toolchain import ensure_letta


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted. The agents in Letta use the model endpoint of `tools.model_endpoint`."""
    parser = argparse.ArgumentParser(description="A Letta server, and Anamnesis connected to it.")
    parser.add_argument("--port", type=int, default=8321, help="the port of Anamnesis; 0 picks a free one")
    parser.add_argument("--letta-port", type=int, default=8283, help="the port of Letta; 0 picks a free one")
    chosen, options = parser.parse_known_args(arguments)
    try:
        with _letta(chosen.letta_port) as settings:
            sys.exit(serve(chosen.port, settings, options))
    except SetupError as failure:
        sys.exit(f"\n{failure}")


@contextmanager
def _letta(port: int) -> Iterator[Mapping[str, str]]:
    """A Letta server during the body. Yields the environment variables that connect Anamnesis to it."""
    if os.environ.get("LETTA_BASE_URL"):
        yield {}
        return
    ensure_letta()
    with ExitStack() as running:
        with step("starting Letta"):
            address = running.enter_context(running_letta(port))
        print(f"Letta listens at {address.base_url}, its models at {address.models_url}.", flush=True)
        yield {
            "LETTA_BASE_URL": address.base_url,
            "ANAMNESIS_LETTA_MODEL": LETTA_MODEL,
            "ANAMNESIS_LETTA_EMBEDDING": LETTA_EMBEDDING,
        }


if __name__ == "__main__":
    main()
