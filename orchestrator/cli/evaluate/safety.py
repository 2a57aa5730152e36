"""`anamnesis safety`: checks messages with the guard in bulk, and explains its verdicts."""

import json
import sys
from typing import IO, TYPE_CHECKING, Any

import click

from orchestrator.cli.options import Invocation, shared_options, with_invocation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents.safety.classifier import DangerClassifier, Likeness
    from agents.safety.rules.guard import Reason
    from orchestrator.settings import Settings
    from orchestrator.store.engine.database import Transaction
    from orchestrator.store.rows import SafetyAlert, SafetyEvent


NO_TEXT = "there is no text"
"""The answer to a line without a text."""


@click.group()
@shared_options
def safety() -> None:
    """Check messages for danger with the guard."""


@safety.command()
@click.argument("source", metavar="[FILE]", type=click.File("rb"), default="-")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--rules-only", is_flag=True, help="Ask the rules alone, without the embedding model.")
@with_invocation
def check(invocation: Invocation, source: IO[bytes], as_json: bool, rules_only: bool) -> None:
    """Print for each line of FILE, or of standard input, whether it is an emergency, a crisis or neither.

    A danger is certain or possible; a possible one gets a question instead of the full safety answer.
    A line is a message, or a JSON object {"id", "text", "context"}. The context is optional: what the
    assistant asked last. Prints one line per message, in the same order, with its id or its line number.
    A line without a text gets an error, and the exit code is 1. With --json, each result also names the
    language of a message that is not in English, which the rules cannot judge, and how much the message is
    like an emergency and like a crisis, from about 0 to 1 (null if the classifier was not asked).
    """
    settings = invocation.settings(quietly=True)

    from agents.safety.detector import DangerDetector
    from orchestrator.wiring import load_guard, load_languages

    guard = load_guard(settings.models.dir)
    languages = load_languages(guard)
    classifier = None if rules_only else _classifier(settings)
    wrong = 0
    for number, line in enumerate(source, 1):
        item = _item(line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n"), number)
        if item["text"] is None:
            wrong += 1
            click.echo(
                json.dumps({"id": item["id"], "error": NO_TEXT}) if as_json else f"{item['id']}\t{NO_TEXT}"
            )
            continue
        checked = DangerDetector(guard, classifier).examine(item["text"], item["context"])
        verdict = checked.verdict
        result = {
            "id": item["id"],
            "flagged": verdict.flagged,
            "certainty": verdict.certainty if verdict.flagged else None,
            "kind": verdict.kind,
            "tier": verdict.tier,
            "rules": list(verdict.rule_ids),
            "language": languages.foreign(item["text"]),
            "likeness": _likeness(checked.likeness),
        }
        if as_json:
            click.echo(json.dumps(result, ensure_ascii=False))
        else:
            rules = " ".join(verdict.rule_ids) or "-"
            certainty = result["certainty"] or "-"
            click.echo(f"{result['id']}\t{verdict.kind}\t{verdict.tier}\t{rules}\t{certainty}")
    if wrong:
        raise click.ClickException(f"{wrong} of {number} lines have no text.")


def _classifier(settings: "Settings") -> "DangerClassifier | None":
    """The danger classifier; None if the embedding model is not installed."""
    from orchestrator.wiring import load_classifier, load_embedder, model_files

    if model_files(settings).what_is_wrong() is None:
        return load_classifier(settings, load_embedder(settings))
    click.echo("The embedding model is not installed: the rules decide alone.", err=True)
    return None


def _likeness(likeness: "Likeness | None") -> dict[str, float] | None:
    """How much a message is like danger, by its meaning; None if the classifier was not asked."""
    if likeness is None:
        return None
    return {"emergency": round(likeness.emergency, 3), "crisis": round(likeness.crisis, 3)}


def _item(line: str, number: int) -> dict[str, Any]:
    """Parse one line. A line that is not a JSON object with a text is taken as the message."""
    if line.lstrip().startswith("{"):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if isinstance(said, dict) and ("text" in said or "id" in said):
            text, context = said.get("text"), said.get("context")
            return {
                "id": said.get("id", number),
                "text": text if isinstance(text, str) else None,
                "context": context if isinstance(context, str) else None,
            }
    return {"id": number, "text": line, "context": None}


@safety.command()
@click.argument("text")
@click.option("--context", help="What the assistant asked last.")
@click.option("--rules-only", is_flag=True, help="Ask the rules alone, without the embedding model.")
@with_invocation
def explain(invocation: Invocation, text: str, context: str | None, rules_only: bool) -> None:
    """Show which words of TEXT fired which rule, what stopped other rules, and the classifier's result.

    The verdict is the same as that of `check`. If TEXT is "-", it is read from standard input.
    """
    settings = invocation.settings(quietly=True)

    from agents.safety.detector import DangerDetector
    from orchestrator.wiring import load_guard, load_languages

    guard = load_guard(settings.models.dir)
    text = sys.stdin.read().rstrip("\r\n") if text == "-" else text
    classifier = None if rules_only else _classifier(settings)
    verdict = DangerDetector(guard, classifier).check(text, context)
    click.echo(f"{verdict.certainty} {verdict.kind}, tier {verdict.tier}" if verdict.flagged else "none")
    if (language := load_languages(guard).foreign(text)) is not None:
        click.echo(f"  not in English ({language}), so the rules cannot judge it")
    by_rules = guard.check(text, context)
    reasons = guard.explain(text)
    for reason in reasons:
        heard = " + ".join(f'"{words}"' for words in reason.heard)
        rule = reason.rule
        if reason.stopped_by:
            click.echo(f"  stopped  {rule.id} (tier {rule.tier}): {heard}; {_by(reason.stopped_by)}")
        else:
            effect = "fired    " if rule.id in verdict.rule_ids else "dismissed "
            click.echo(f"  {effect}{rule.id} ({_how(reason)}): {heard}  [{rule.source}]")
    for words, stops in guard.set_aside(text).items() if not reasons else ():
        click.echo(f'  aside    "{words}": {_by(stops)}')
    explained = {reason.rule.id for reason in reasons if not reason.stopped_by}
    for rule_id in by_rules.rule_ids:
        if rule_id not in explained:
            click.echo(f"  fired    {rule_id}: the reply, to the question before it")
    if classifier is not None and text.strip():
        _print_likeness(classifier, text)


def _how(reason: "Reason") -> str:
    """How grave and how certain the finding of a rule is, and why it is in doubt."""
    doubt = "" if reason.verdict.is_certain else ", possible: misspelt" if reason.guessed else ", possible"
    return f"tier {reason.rule.tier}{doubt}"


def _by(stops: "Iterable[tuple[str, str]]") -> str:
    """The cues that retracted some words, and the reasons."""
    return ", ".join(f'{why} by "{words}"' for why, words in stops)


def _print_likeness(classifier: "DangerClassifier", text: str) -> None:
    """Print how much the text, or the part of it that is nearest to danger, is like danger."""
    from agents.safety.classifier import parts_of
    from agents.safety.detector import AGREES, ALONE, ALONE_CRISIS, SHORT, by_meaning, meaning_of

    parts = parts_of(text)
    whole, *likenesses = classifier.likeness([text, *parts])
    meaning = meaning_of(whole if len(text.split()) <= SHORT else None, likenesses)
    raised = by_meaning(meaning, max(likenesses, key=lambda each: each.danger)).flagged
    nearest = max((whole, *likenesses), key=lambda each: each.danger)
    click.echo(
        f"  meaning  {'raised' if raised else 'not raised'}: like an emergency {nearest.emergency:.2f},"
        f" like a crisis {nearest.crisis:.2f}; a rule needs {AGREES:.2f} to be certain,"
        f" without a rule {ALONE:.2f} is a possible emergency and {ALONE_CRISIS:.2f} a possible crisis"
    )


@safety.command()
@click.argument("conversation", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event.")
@with_invocation
def events(invocation: Invocation, conversation: str | None, as_json: bool) -> None:
    """List the safety events of CONVERSATION, or of all, and whether staff got an alert."""
    settings = invocation.settings(quietly=True)

    from orchestrator.errors import NOT_FOUND, AnamnesisError
    from orchestrator.ops.clock import as_text
    from orchestrator.wiring import open_store

    def look(tx: "Transaction") -> "list[tuple[SafetyEvent, SafetyAlert | None, str | None]]":
        if conversation is not None and tx.conversations.get(conversation) is None:
            raise AnamnesisError(NOT_FOUND)
        found = tx.safety.all() if conversation is None else tx.safety.of_conversation(conversation)
        return [(event, tx.safety.alert_of(event.id), tx.safety.refused_text(event.id)) for event in found]

    store = open_store(settings)
    try:
        found = store.read_now(look)
    finally:
        store.close_now()
    for event, alert, refused in found:
        entry = {
            "id": event.id,
            "at": as_text(event.created_at),
            "conversation": event.conversation_id,
            "message": event.message_id,
            "turn": event.turn,
            "stage": event.stage,
            "kind": event.kind,
            "tier": event.tier,
            "certainty": event.certainty,
            "rules": list(event.rules),
            "refused": refused,
            "alert": alert.state if alert else None,
            "attempts": alert.attempts if alert else 0,
            "error": alert.error if alert else None,
        }
        if as_json:
            click.echo(json.dumps(entry))
        else:
            staff = f"  staff: {alert.state} after {alert.attempts} tries" if alert else ""
            where = "synchronised" if event.turn is None else f"turn {event.turn}"
            rules = " ".join(event.rules) or "-"
            certainty = event.certainty or "-"
            click.echo(
                f"{entry['at']}  {event.kind:<12} {event.tier}  {certainty:<8}  {event.stage:<8} {rules}"
                f"  {event.conversation_id} {where}{staff}"
            )
    if not found and not as_json:
        click.echo("There are no safety events yet.")
