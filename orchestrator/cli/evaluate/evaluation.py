"""`anamnesis eval`: measures routing, enrichment and safety on files of cases."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import Invocation, with_invocation

if TYPE_CHECKING:
    from agents.evaluation.routing import RoutingFigures
    from orchestrator.settings import Settings


@click.command("eval")
@click.option(
    "--sets",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the routing and context cases from this folder instead of those shipped.",
)
@click.option(
    "--report",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write report.json, report.txt and a picture of each confusion matrix there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_invocation
def evaluate(invocation: Invocation, sets: Path | None, report: Path | None, as_json: bool) -> None:
    """Measure routing, calibration, scope, context resolution and safety on cases with known answers.

    We wrote the shipped sets. The sets named `tuning` were used while the rules and examples were written;
    the sets named `held_out` were not. Each line of routing.NAME.jsonl is {"id", "text", "context"?,
    "intent"}. Each line of context_resolution.NAME.jsonl has a history, a message, and what its enrichment
    must contain.
    """
    settings = invocation.settings(quietly=True)

    from agents.errors import UnreadableLine
    from agents.evaluation.safety import flagged_shares
    from orchestrator.settings import shipped_config
    from orchestrator.wiring import load_guard

    folder = sets or shipped_config() / "evals"
    try:
        routing = _routing(settings, invocation.config, folder)
        follow_ups = _context_resolution(settings, invocation.config, folder)
    except UnreadableLine as error:
        raise click.BadParameter(str(error), param_hint="--sets") from None
    figures: dict[str, Any] = {
        "routing": {name: each.summary() for name, each in routing.items()},
        "context_resolution": follow_ups,
        "safety": flagged_shares(load_guard(settings.models.dir), shipped_config() / "safety" / "phrases"),
    }
    text = _as_text(figures, routing)
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
        (report / "report.json").write_text(json.dumps(figures, indent=2), encoding="utf-8")
        (report / "report.txt").write_text(text, encoding="utf-8")
        for name, each in routing.items():
            (report / f"confusion.{name}.svg").write_text(each.picture(), encoding="utf-8")
    click.echo(json.dumps(figures) if as_json else text, nl=as_json)


def _routing(settings: "Settings", config: Path | None, folder: Path) -> "dict[str, RoutingFigures]":
    from agents.evaluation.routing import RoutingFigures, load_cases, route_lines
    from orchestrator.wiring import load_embedder, load_guard, load_roster, load_router

    embedder, guard = load_embedder(settings), load_guard(settings.models.dir)
    router = load_router(settings, load_roster(config, to_answer=False), embedder)
    measured = {}
    for path in sorted(folder.glob("routing.*.jsonl")):
        cases = load_cases(path)
        routed = route_lines(router, embedder, guard, [case.said for case in cases])
        measured[path.name.split(".")[1]] = RoutingFigures(cases, tuple(routed))
    return measured


def _context_resolution(
    settings: "Settings", config: Path | None, folder: Path
) -> dict[str, dict[str, float | int]]:
    from agents.evaluation.follow_ups import load_cases, resolve
    from orchestrator.wiring import load_follow_ups

    enrich = load_follow_ups(settings, config)
    measured = {}
    for path in sorted(folder.glob("context_resolution.*.jsonl")):
        outcomes = [resolve(case, enrich) for case in load_cases(path)]
        resolved = sum(not outcome.wrong for outcome in outcomes) / len(outcomes)
        measured[path.name.split(".")[1]] = {"cases": len(outcomes), "resolved": round(resolved, 4)}
    return measured


def _as_text(figures: dict[str, Any], routing: "dict[str, RoutingFigures]") -> str:
    lines = []
    for section, parts in figures.items():
        lines.append(section.replace("_", " "))
        for part, values in parts.items():
            result = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
            lines.append(f"  {part.replace('_', ' ')}: {result}")
        lines.append("")
    for name, each in routing.items():
        lines.append(f"confusion, {name.replace('_', ' ')}: rows are right, columns were given")
        lines += [each.table(), ""]
    return "\n".join(lines)
