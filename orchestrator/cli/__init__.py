"""The command line: `anamnesis`, and everything one can ask of it."""

import click

from orchestrator import __version__
from orchestrator.cli import (
    blocks,
    chat,
    database,
    doctor,
    evaluate,
    extract,
    letta,
    models,
    route,
    safety,
    serve,
    traces,
)
from orchestrator.cli.frame import House, Invocation, shared_options


@click.group(
    cls=House,
    sections={
        "Run it": ("serve", "chat"),
        "Look into it": ("blocks", "traces", "doctor", "check"),
        "Try how it understands": ("safety", "route", "extract", "eval"),
        "Look after it": ("models", "letta", "db"),
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  anamnesis models install             fetch the embedding model, once
  anamnesis serve                      open the house, and print the page's address
  anamnesis chat                       talk in the terminal
  anamnesis doctor                     what is configured, and does it work
  anamnesis route said.txt             to which agent messages belong
  anamnesis safety check < lines.txt   what the guard hears in each line
  anamnesis eval --report ./report     how well it routes, understands and guards
  anamnesis extract said.jsonl         what messages mean after what came before them
  anamnesis --data ./data db upgrade   make the database in a folder of your choice
  anamnesis letta status               what stands in Letta, and does it agree with us
  anamnesis check --json               look for what must never be, for scripts

\b
It ends with 0 when all is well, 1 when something was found, 2 when it refuses to start.
config/default.toml lists every setting.
""",
)
@shared_options
@click.version_option(__version__, prog_name="anamnesis")
def cli() -> None:
    """A health chat that remembers, and shows which memory said so."""


for _command in (
    serve.serve,
    chat.chat,
    extract.extract,
    route.route,
    evaluate.evaluate,
    traces.traces,
    blocks.blocks,
    doctor.doctor,
    database.check,
    safety.safety,
    models.models,
    letta.letta,
    database.db,
):
    cli.add_command(_command)


def main() -> None:
    """Run the command line of this process."""
    cli(prog_name="anamnesis", obj=Invocation(own_process=True))
