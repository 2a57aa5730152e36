"""Starts a Letta server and `anamnesis serve` connected to it, until Ctrl-C: `python -m tools.letta`.

If LETTA_BASE_URL is set, no Letta server is started; that one is used, with the models of the settings.
Letta's database is kept in the data folder when the server stops, and used by the next run.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orchestrator.settings import load
from tools.serve import serve
from tools.servers.letta import LETTA_EMBEDDING, running_letta
from tools.servers.model_endpoint import MODEL
from tools.setup.progress import SetupError, step
from tools.setup.toolchain import ensure_letta


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted. Without `--endpoint`, the agents use `tools.servers.model_endpoint`."""
    parser = argparse.ArgumentParser(description="A Letta server, and Anamnesis connected to it.")
    parser.add_argument("--port", type=int, default=8321, help="the port of Anamnesis; 0 picks a free one")
    parser.add_argument("--letta-port", type=int, default=8283, help="the port of Letta; 0 picks a free one")
    parser.add_argument("--model", default=MODEL, help="the agents' model, by its name at the endpoint")
    parser.add_argument(
        "--endpoint",
        default="",
        help="the address of an OpenAI-style model endpoint; with --model, OPENAI_BASE_URL if not given",
    )
    parser.add_argument("--data", type=Path, help="the data folder; Letta's database is kept in it")
    parser.add_argument("--fresh", action="store_true", help="start with an empty Letta database")
    chosen, options = parser.parse_known_args(arguments)
    if (
        chosen.model != MODEL and not chosen.endpoint
    ):  # without a named model, no variable sends text anywhere
        chosen.endpoint = os.environ.get("OPENAI_BASE_URL", "")
        if not chosen.endpoint:
            parser.error("--model needs --endpoint or OPENAI_BASE_URL, the server that has this model")
    if chosen.data is not None:
        options += ["--data", str(chosen.data)]
    folder = load(given={} if chosen.data is None else {"data.dir": str(chosen.data)}).data.prepare()
    kept = folder / "letta.sql"
    if chosen.fresh:
        kept.unlink(missing_ok=True)
    try:
        with _letta(chosen.letta_port, chosen.endpoint, f"openai-proxy/{chosen.model}", kept) as settings:
            sys.exit(serve(chosen.port, settings, options))
    except SetupError as failure:
        sys.exit(f"\n{failure}")


@contextmanager
def _letta(port: int, endpoint: str, model: str, kept: Path) -> Iterator[Mapping[str, str]]:
    """A Letta server during the body. Yields the environment variables that connect Anamnesis to it."""
    if os.environ.get("LETTA_BASE_URL"):
        yield {}
        return
    ensure_letta()
    with ExitStack() as running:
        with step("starting Letta"):
            address = running.enter_context(running_letta(port, endpoint=endpoint, model=model, kept=kept))
        print(f"Letta listens at {address.base_url}, its models at {address.models_url}.", flush=True)
        yield {
            "LETTA_BASE_URL": address.base_url,
            "ANAMNESIS_LETTA_MODEL": model,
            "ANAMNESIS_LETTA_EMBEDDING": LETTA_EMBEDDING,
        }


if __name__ == "__main__":
    main()
