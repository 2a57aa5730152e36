"""Shared parts of all commands: common options, the layout of the help, and error handling."""

import errno
import getpass
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from orchestrator.errors import INTERNAL, PACKAGE_INCOMPLETE, AnamnesisError

if TYPE_CHECKING:
    from agents.errors import UnreadableLine
    from orchestrator.settings import Settings

OUR_PACKAGES: Final = ("orchestrator", "agents", "memory_blocks")
FOUND_SOMETHING: Final = 1
REFUSED: Final = 2
UNEXPECTED: Final = 70
INTERRUPTED: Final = 130

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """The options of the whole program, given before or after the command's name."""

    config: Path | None = None
    data: Path | None = None
    own_process: bool = False

    def settings(
        self,
        given: Mapping[str, object] | None = None,
        *,
        quietly: bool = False,
        in_chat: bool = False,
    ) -> "Settings":
        """Load the settings and set up logging. `given` has the options of the command, by setting.

        Unless a level is configured, `quietly` logs only warnings, for commands whose output is read, and
        `in_chat` only errors, because the answers in a chat say themselves what is missing.
        """
        from orchestrator.ops import logs
        from orchestrator.settings import load

        options = {} if self.data is None else {"data.dir": str(self.data)}
        settings = load(self.config, options | dict(given or {}))
        level = settings.logs.level
        if "logs.level" not in settings.origins and (quietly or in_chat):
            level = "error" if in_chat else "warning"
        logs.configure(level, settings.logs.format)
        if self.own_process:
            logs.redact_uncaught_errors()
        return settings


pass_invocation: Final = click.make_pass_decorator(Invocation, ensure=True)


class _Folder(click.Path):
    """A folder that is not the empty text, which as a path would be the working directory."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("must name a folder, but is empty.", param, ctx)
        return super().convert(value, param, ctx)


def _remember(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        setattr(context.ensure_object(Invocation), str(parameter.name), value)


def _person(_: click.Context, __: click.Parameter, value: str) -> str:
    from orchestrator.wire.ids import PERSON_RULE, is_person_id

    if not is_person_id(value):
        raise click.BadParameter(f"{PERSON_RULE}.")
    return value


def user_option(says: str) -> Callable[[_Command], _Command]:
    """The option `--user`, with a check of the id."""
    return click.option("--user", default="local", show_default=True, callback=_person, help=says)


def model_options(command: _Command) -> _Command:
    """The options `--model` and `--endpoint`."""
    for name, metavar, says in (
        ("--endpoint", "URL", "Where that model is.  [OPENAI_BASE_URL, else OpenAI]"),
        ("--model", "NAME", "Let this model read and answer messages, which are sent to it."),
    ):
        command = click.option(name, metavar=metavar, help=says)(command)
    return command


person_argument: Final = click.argument("user", callback=_person)
"""The argument USER, with a check of the id."""


def shared_options(command: _Command) -> _Command:
    """The options `--config` and `--data`, allowed before and after the command's name."""
    for name, says in (
        ("--data", "The folder for all stored data.  [ANAMNESIS_DATA_DIR]"),
        ("--config", "A folder whose default.toml changes settings."),
    ):
        command = click.option(
            name,
            metavar="DIR",
            type=_Folder(file_okay=False, path_type=Path),
            expose_value=False,
            callback=_remember,
            help=says,
        )(command)
    return command


def with_invocation(command: Callable[..., Any]) -> Callable[..., Any]:
    """The shared options, and the `Invocation` that they fill as the command's first argument."""
    return shared_options(pass_invocation(command))


def operator_name() -> str:
    """The name under which a command reads and writes memory: the operator and the user of this machine."""
    from orchestrator.store.repositories.turn.traces import STAFF

    try:
        return f"{STAFF}:{getpass.getuser()}"
    except (KeyError, OSError):  # the user has no name on this machine
        return STAFF


def report_unreadable(line: int, error: "UnreadableLine", as_json: bool) -> None:
    """Print why a line of input cannot be read: as JSON in its place, or else as text on standard error."""
    if as_json:
        facts = {"id": error.record_id, "line": line, "error": str(error)}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo(f"line {line}: {error}", err=True)


class RootCommand(click.Group):
    """The root command: help in sections, and one line for an error instead of a traceback."""

    def __init__(self, *given: Any, sections: Mapping[str, tuple[str, ...]], **named: Any) -> None:
        super().__init__(*given, **named)
        self.sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section."""
        for section, names in self.sections.items():
            with formatter.section(section):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(100)) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Our errors are printed in one line; unexpected ones without their text."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except AnamnesisError as refused:
            _end(ctx, _message(refused), REFUSED)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            if isinstance(error, ImportError) and (package := _package_of(error)) in OUR_PACKAGES:
                _end(ctx, str(AnamnesisError(PACKAGE_INCOMPLETE, package=package)), REFUSED)
            _end(ctx, _unexpected(error), UNEXPECTED)


def _end(context: click.Context, says: str, code: int) -> NoReturn:
    click.echo(f"{click.style('error:', fg='red')} {says}", err=True)
    context.exit(code)


def _package_of(error: ImportError) -> str:
    """The top-level package of the module that could not be imported."""
    return (error.name or "").partition(".")[0]


def _message(refused: AnamnesisError) -> str:
    """The text of an error for the operator. If a statement was wrong, the database's message is added."""
    if refused.problem is not INTERNAL:
        return str(refused)
    if "code" not in refused.facts:
        return _unexpected(refused)
    details = ": ".join((str(refused.facts["code"]), *getattr(refused, "__notes__", ())))
    return f"The database refused a statement ({details}). {_log_traceback(refused)}"


def _unexpected(error: Exception) -> str:
    """Type and place of an error. Its text is left out, because it may quote anything."""
    from orchestrator.ops import logs

    described = logs.describe(error)
    return f"{described['type']} at {described['frames'][-1]} was not expected. {_log_traceback(error)}"


def _log_traceback(error: Exception) -> str:
    """Log the traceback at level debug; returns the sentence that says how to see it."""
    from orchestrator.ops import logs

    if os.environ.get("ANAMNESIS_LOGS_LEVEL") == "debug":
        logs.get_logger().debug("command_failed", exc_info=error)
    return "ANAMNESIS_LOGS_LEVEL=debug shows the traceback."
