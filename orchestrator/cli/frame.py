"""What every command shares: its options, how help is laid out, and how an error ends it."""

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from orchestrator.errors import INTERNAL, PACKAGE_INCOMPLETE, AnamnesisError

if TYPE_CHECKING:
    from orchestrator.settings import Settings

OUR_PACKAGES: Final = ("orchestrator", "agents", "memory_blocks")
FOUND_SOMETHING: Final = 1
REFUSED: Final = 2
UNEXPECTED: Final = 70
INTERRUPTED: Final = 130

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """What was asked of the whole program, before or after the command's name."""

    config: Path | None = None
    data: Path | None = None
    own_process: bool = False

    def settings(
        self,
        given: Mapping[str, object] | None = None,
        *,
        quietly: bool = False,
        amid_a_conversation: bool = False,
    ) -> "Settings":
        """Load the settings and log as they say. `given` are options of the command, by setting.

        `quietly` is for commands whose output is read: only warnings. `amid_a_conversation` is for one that
        talks with somebody, whose answers say what they lack: only errors. Both unless a level was set.
        """
        from orchestrator import logs
        from orchestrator.settings import load

        options = {} if self.data is None else {"data.dir": str(self.data)}
        settings = load(self.config, options | dict(given or {}))
        level = settings.logs.level
        if "logs.level" not in settings.origins and (quietly or amid_a_conversation):
            level = "error" if amid_a_conversation else "warning"
        logs.configure(level, settings.logs.format)
        if self.own_process:
            logs.watch_last_words()
        return settings


pass_invocation: Final = click.make_pass_decorator(Invocation, ensure=True)


class _Folder(click.Path):
    """An empty text is no folder; as a path it would be the one where the command is called."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("must name a folder, and is empty.", param, ctx)
        return super().convert(value, param, ctx)


def _remember(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        setattr(context.ensure_object(Invocation), str(parameter.name), value)


def _person(_: click.Context, __: click.Parameter, value: str) -> str:
    from orchestrator.wire.ids import PERSON_RULE, names_a_person

    if not names_a_person(value):
        raise click.BadParameter(f"{PERSON_RULE}.")
    return value


def user_option(says: str) -> Callable[[_Command], _Command]:
    """`--user`, which may be anybody who can be named."""
    return click.option("--user", default="local", show_default=True, callback=_person, help=says)


def shared_options(command: _Command) -> _Command:
    """`--config` and `--data`, which may stand before or after the command's name."""
    for name, says in (
        ("--data", "Keep everything in this folder.  [ANAMNESIS_DATA_DIR]"),
        ("--config", "A folder whose default.toml overlays the shipped settings."),
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


class House(click.Group):
    """The root command: help by sections, and one line instead of a traceback."""

    def __init__(self, *given: Any, sections: Mapping[str, tuple[str, ...]], **named: Any) -> None:
        super().__init__(*given, **named)
        self.sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under what one wants to do."""
        for section, names in self.sections.items():
            with formatter.section(section):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(100)) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. What we refuse is told in one line; what we did not foresee, without its text."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except AnamnesisError as refused:
            _end(ctx, _told(refused), REFUSED)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            if isinstance(error, ImportError) and (package := _package_of(error)) in OUR_PACKAGES:
                _end(ctx, str(AnamnesisError(PACKAGE_INCOMPLETE, package=package)), REFUSED)
            _end(ctx, _unforeseen(error), UNEXPECTED)


def _end(context: click.Context, says: str, code: int) -> NoReturn:
    click.echo(f"{click.style('error:', fg='red')} {says}", err=True)
    context.exit(code)


def _package_of(error: ImportError) -> str:
    """The top of what could not be imported."""
    return (error.name or "").partition(".")[0]


def _told(refused: AnamnesisError) -> str:
    """What an operator is told; of our own mistakes, what the database said: names of its parts, no value."""
    if refused.problem is not INTERNAL:
        return str(refused)
    if "code" not in refused.facts:
        return _unforeseen(refused)
    said = ": ".join((str(refused.facts["code"]), *getattr(refused, "__notes__", ())))
    return f"The database cannot do what was asked of it ({said}). {_way_there(refused)}"


def _unforeseen(error: Exception) -> str:
    """Type and place; the text may quote anything."""
    from orchestrator import logs

    described = logs.describe(error)
    return f"{described['type']} at {described['frames'][-1]}, which nobody foresaw. {_way_there(error)}"


def _way_there(error: Exception) -> str:
    """Log it where that is wanted, and tell how to want it."""
    from orchestrator import logs

    if os.environ.get("ANAMNESIS_LOGS_LEVEL") == "debug":
        logs.get_logger().debug("command_failed", exc_info=error)
    return "ANAMNESIS_LOGS_LEVEL=debug shows the way there."
