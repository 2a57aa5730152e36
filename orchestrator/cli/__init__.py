"""The command line `anamnesis`."""

import click

from orchestrator import __version__
from orchestrator.cli import chat, open, serve
from orchestrator.cli.evaluate import evaluation, extract, route, safety
from orchestrator.cli.inspect import conversations, explain, export, traces
from orchestrator.cli.maintain import database, doctor, keys, letta, models, workflow
from orchestrator.cli.memory import (
    blocks,
    facts,
    making,  # noqa: F401  adds commands to `memory`
    records,  # noqa: F401  adds commands to `memory`
    search,
)
from orchestrator.cli.options import Invocation, RootCommand, shared_options


@click.group(
    cls=RootCommand,
    sections={
        "Run it": ("serve", "open", "chat"),
        "Inspect it": (
            "conversations",
            "explain",
            "memory",
            "blocks",
            "facts",
            "traces",
            "export",
            "doctor",
            "check",
        ),
        "Evaluate it": ("safety", "route", "extract", "eval"),
        "Maintain it": ("workflow", "keys", "models", "letta", "db"),
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  anamnesis models install             download the embedding model, once
  anamnesis serve                      start the server, and print the page's address
  anamnesis open                       print another address of the running server's page
  anamnesis chat                       chat in the terminal
  anamnesis conversations --search tea list conversations in which tea was mentioned
  anamnesis explain MESSAGE            show why that message was answered as it was
  anamnesis traces --follow            print each read and write of a memory as it happens
  anamnesis export CONVERSATION        print all that is stored about a conversation
  anamnesis keys create report --user ann   make an API key, and print it once
  anamnesis doctor                     check what is configured
  anamnesis route said.txt             show which specialist gets each message
  anamnesis safety check < lines.txt   show what the guard finds in each line
  anamnesis eval --report ./report     measure routing, follow-ups and safety
  anamnesis extract said.jsonl         show what messages mean in their context
  anamnesis --data ./data db upgrade   create the database in that folder
  anamnesis memory search USER QUERY   search what is remembered of a person
  anamnesis workflow run FILE          run a workflow of memory nodes and model calls
  anamnesis letta status               compare Letta with the database
  anamnesis check --json               check the database, as JSON

\b
Exit codes: 0 success, 1 something was found, 2 a wrong option or setting.
config/default.toml lists every setting.
""",
)
@shared_options
@click.version_option(__version__, prog_name="anamnesis")
def cli() -> None:
    """A health chat that remembers, and shows which memories it used."""


for _command in (
    serve.serve,
    open.open_page,
    chat.chat,
    extract.extract,
    route.route,
    evaluation.evaluate,
    conversations.conversations,
    explain.explain,
    traces.traces,
    search.memory,
    blocks.blocks,
    facts.facts,
    export.export,
    doctor.doctor,
    database.check,
    safety.safety,
    keys.keys,
    models.models,
    workflow.workflow,
    letta.letta,
    database.db,
):
    cli.add_command(_command)


def main() -> None:
    """Run the command line of this process."""
    cli(prog_name="anamnesis", obj=Invocation(own_process=True))
