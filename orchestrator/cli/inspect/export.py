"""`anamnesis export`: writes everything that is stored about a conversation."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import Invocation, operator_name, with_invocation

if TYPE_CHECKING:
    from orchestrator.store.engine.database import Transaction


@click.command()
@click.argument("conversation")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "csv", "md"]),
    default="json",
    show_default=True,
    help="json: one object. jsonl: one record per line. csv: the messages. md: for reading.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, readable by you."
)
@with_invocation
def export(invocation: Invocation, conversation: str, form: str, output: Path | None) -> None:
    """Export a conversation: messages, blocks, archived turns, traces, tool calls, model requests and more.

    csv and md hold the messages only; md also has the summary. Exporting leaves traces with your name.
    """
    settings = invocation.settings(quietly=True)

    from orchestrator.errors import EXPORT_NOT_WRITTEN, NOT_FOUND, AnamnesisError, os_errors_as
    from orchestrator.inspection.export import FORMATS, gather
    from orchestrator.inspection.looks import Look
    from orchestrator.wiring import build_ledger, load_roster, open_store

    ledger = build_ledger(settings, load_roster(invocation.config))

    def read(tx: "Transaction") -> dict[str, Any]:
        row = tx.conversations.get(conversation)
        if row is None:
            raise AnamnesisError(NOT_FOUND)
        return gather(tx, ledger, row, Look(operator_name()))

    store = open_store(settings)
    try:
        text = FORMATS[form](store.write_now(read))
    finally:
        store.close_now()
    if output is None:
        click.echo(text, nl=False)
        return
    with os_errors_as(EXPORT_NOT_WRITTEN, where=str(output)):
        output.touch(mode=0o600)
        output.write_text(text, encoding="utf-8", newline="")
