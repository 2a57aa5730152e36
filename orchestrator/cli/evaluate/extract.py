"""`anamnesis extract`: enriches messages with their context, one per line."""

import json
from typing import Any

import click

from orchestrator.cli.options import FOUND_SOMETHING, Invocation, report_unreadable, with_invocation


@click.command()
@click.argument("source", type=click.File("rb"), default="-")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the whole enrichment as one JSON object per line."
)
@with_invocation
def extract(invocation: Invocation, source: Any, as_json: bool) -> None:
    """Rewrite each message so that it can be understood without the ones before.

    Reads one JSON object per line, from a file or standard input:
    {"id": "1", "history": [{"role": "user", "text": "…"}, {"role": "assistant", "text": "…?"}],
    "message": "8"}

    A line that is blank or cannot be read gets an error; the other lines are still handled.
    """
    settings = invocation.settings(quietly=True)

    from agents.errors import UnreadableLine
    from agents.evaluation.follow_ups import read_line
    from orchestrator.wiring import load_follow_ups

    enrich = load_follow_ups(settings, invocation.config)
    failed = False
    for number, line in enumerate(source, start=1):
        try:
            asked = read_line(line)
        except UnreadableLine as error:
            failed = True
            report_unreadable(number, error, as_json)
            continue
        found = enrich(asked.message, asked.exchanges, opening=asked.opening)
        if as_json:
            click.echo(json.dumps({"id": asked.id, **found.model_dump(mode="json")}, ensure_ascii=False))
        else:
            click.echo(f"{asked.id}\t{found.enriched_message}")
    if failed:
        raise click.exceptions.Exit(FOUND_SOMETHING)
