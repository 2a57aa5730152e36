"""`anamnesis route`: finds the intent of messages, one per line."""

import json
from itertools import islice
from typing import Any, Final

import click

from orchestrator.cli.options import FOUND_SOMETHING, Invocation, report_unreadable, with_invocation

_BATCH: Final = 256


@click.command()
@click.argument("source", type=click.File("r", encoding="utf-8", errors="replace"), default="-")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@with_invocation
def route(invocation: Invocation, source: Any, as_json: bool) -> None:
    """Print the intent of each message, with a confidence and a reason.

    Reads one message per line, from a file or standard input: plain text, or
    {"id": "1", "text": "8", "context": "How severe is your headache from 1 to 10?"}, where context is what
    the assistant asked last.

    --config DIR uses the intents of DIR/agents.toml instead: each [agents.NAME] has a description and
    examples. The trained router is cached. A blank line gets UNCLEAR, and a line that cannot be read
    gets an error.
    """
    settings = invocation.settings(quietly=True)

    from agents.errors import UnreadableLine
    from agents.evaluation.routing import MessageInContext, read_line, route_lines
    from agents.values import OUT_OF_SCOPE
    from orchestrator.wiring import load_embedder, load_guard, load_roster, load_router

    embedder, guard = load_embedder(settings), load_guard(settings.models.dir)
    router = load_router(settings, load_roster(invocation.config, to_answer=False), embedder)

    def read(number: int, line: str) -> MessageInContext | UnreadableLine:
        try:
            return read_line(line, number)
        except UnreadableLine as error:
            return error

    failed = False
    lines = enumerate(source, start=1)
    while batch := [(number, read(number, line)) for number, line in islice(lines, _BATCH)]:
        readable = [said for _, said in batch if isinstance(said, MessageInContext)]
        intents = iter(route_lines(router, embedder, guard, readable))
        for number, said in batch:
            if not isinstance(said, MessageInContext):
                failed = True
                report_unreadable(number, said, as_json)
                continue
            found = next(intents)
            if as_json:
                answer = found.model_dump(mode="json", exclude={"between"})
                answer["out_of_scope"] = found.intent == OUT_OF_SCOPE
                click.echo(json.dumps({"id": said.id, **answer}, ensure_ascii=False))
            else:
                click.echo(f"{said.id}\t{found.intent}\t{found.confidence:.2f}\t{found.reasoning}")
    if failed:
        raise click.exceptions.Exit(FOUND_SOMETHING)
