"""Starts a LiveKit server and `anamnesis serve` connected to it, until Ctrl-C: `python -m tools.livekit`."""

import argparse
import sys
from collections.abc import Sequence

from tools.house import serve
from tools.progress import SetupError
from tools.servers.keeper import free_port
from tools.servers.livekit import new_address, running_livekit


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted; LiveKit tells the house by webhook who comes and goes."""
    parser = argparse.ArgumentParser(description="A LiveKit server, and Anamnesis connected to it.")
    parser.add_argument("--port", type=int, default=8321, help="where Anamnesis listens; 0 picks a free one")
    chosen, further = parser.parse_known_args(arguments)
    port = chosen.port or free_port()
    try:
        with running_livekit(new_address(), [f"http://127.0.0.1:{port}/v1/livekit/webhook"]) as address:
            print(
                f"LiveKit listens at {address.url}; `anamnesis chat --livekit --server URL` goes through it."
            )
            print("URL is the address of the page below, with its key in quotes.", flush=True)
            sys.exit(serve(port, address.environment, further))
    except SetupError as failure:
        sys.exit(f"\n{failure}")


if __name__ == "__main__":
    main()
