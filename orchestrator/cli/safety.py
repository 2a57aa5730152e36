"""`anamnesis safety`: what the guard hears in messages, in bulk, and why."""

import json
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from orchestrator.cli.frame import Invocation, pass_invocation, shared_options

if TYPE_CHECKING:
    from agents.safety.ears import Ears


@click.group()
@shared_options
def safety() -> None:
    """Ask the guard what it hears in a message."""


@safety.command()
@click.argument("source", metavar="[FILE]", type=click.File(encoding="utf-8"), default="-")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--rules-only", is_flag=True, help="Ask the rules alone, without the embedding model.")
@shared_options
@pass_invocation
def check(invocation: Invocation, source: TextIO, as_json: bool, rules_only: bool) -> None:
    """Say of each line of FILE, or of the input, whether it is an emergency, a crisis or neither.

    A line is a message, or a JSON object {"id", "text", "context"} whose context, if there is one, is what
    the assistant asked last. One answer per line, in the same order, with its id or else the line's number.
    The JSON also names the language of a line that is not in English, and so was not understood.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.wiring import load_ears, load_embedder, load_guard, load_languages, model_files

    guard = load_guard()
    languages = load_languages(guard)
    ears: Ears | None = None
    if not rules_only and model_files(settings).what_is_wrong() is None:
        ears = load_ears(settings, load_embedder(settings))
    elif not rules_only:
        click.echo("The embedding model is not installed: the rules decide alone.", err=True)
    for number, line in enumerate(source, 1):
        item = _item(line.rstrip("\r\n"), number)
        verdict = guard.check(item["text"], item["context"])
        if ears is not None and not verdict.flagged and item["text"].strip():
            verdict = ears.check(item["text"])
        told = {
            "id": item["id"],
            "flagged": verdict.flagged,
            "kind": verdict.kind,
            "tier": verdict.tier,
            "rules": list(verdict.rule_ids),
            "language": languages.foreign(item["text"]),
        }
        if as_json:
            click.echo(json.dumps(told, ensure_ascii=False))
        else:
            click.echo(f"{told['id']}\t{verdict.kind}\t{verdict.tier}\t{' '.join(verdict.rule_ids) or '-'}")


def _item(line: str, number: int) -> dict[str, Any]:
    """One message of the input; what is no such object is the message itself."""
    if line.lstrip().startswith("{"):
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if isinstance(said, dict) and isinstance(said.get("text"), str):
            context = said.get("context")
            return {
                "id": said.get("id", number),
                "text": said["text"],
                "context": context if isinstance(context, str) else None,
            }
    return {"id": number, "text": line, "context": None}


@safety.command()
@click.argument("text")
@click.option("--context", help="What the assistant asked last.")
@shared_options
@pass_invocation
def explain(invocation: Invocation, text: str, context: str | None) -> None:
    """Show which words of TEXT fired which rule, and what stopped others."""
    invocation.settings(quietly=True)

    from orchestrator.wiring import load_guard, load_languages

    guard = load_guard()
    text = sys.stdin.read() if text == "-" else text
    verdict = guard.check(text, context)
    click.echo(f"{verdict.kind}" + (f", tier {verdict.tier}" if verdict.flagged else ""))
    if (language := load_languages(guard).foreign(text)) is not None:
        click.echo(f"  not in English ({language}), so the rules cannot judge it")
    for reason in guard.explain(text):
        heard = " + ".join(f'"{words}"' for words in reason.heard)
        rule = reason.rule
        if reason.stopped_by:
            by = ", ".join(f'{why} by "{words}"' for why, words in reason.stopped_by)
            click.echo(f"  stopped  {rule.id} (tier {rule.tier}): {heard}; {by}")
        else:
            click.echo(f"  fired    {rule.id} (tier {rule.tier}): {heard}  [{rule.source}]")
    explained = {reason.rule.id for reason in guard.explain(text) if not reason.stopped_by}
    for rule_id in verdict.rule_ids:
        if rule_id not in explained:
            click.echo(f"  fired    {rule_id}: the reply, to the question before it")
