"""Starts a LiveKit server and `anamnesis serve` connected to it, until Ctrl-C: `python -m tools.livekit`."""

import argparse
import sys
from collections.abc import Sequence

from tools.serve import serve
from tools.servers.livekit import new_address, running_livekit
from tools.servers.process import free_port
from tools.setup.progress import SetupError


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted. LiveKit sends the server a webhook when participants join and leave."""
    parser = argparse.ArgumentParser(description="A LiveKit server, and Anamnesis connected to it.")
    parser.add_argument("--port", type=int, default=8321, help="the port of Anamnesis; 0 picks a free one")
    chosen, options = parser.parse_known_args(arguments)
    port = chosen.port or free_port()
    try:
        with running_livekit(new_address(), [f"http://127.0.0.1:{port}/v1/livekit/webhook"]) as address:
            print(f"LiveKit listens at {address.url}.")
            print("`anamnesis chat --livekit --server URL` connects through it.", flush=True)
            sys.exit(serve(port, address.environment, options))
    except SetupError as failure:
        sys.exit(f"\n{failure}")


if __name__ == "__main__":
    main()
