"""What may be said in a log: events of ours with facts beside them, never the words of a person.

Four doors are watched, because text leaks through all of them: the keys and values of a log call, the text
and the locals of an exception, the records of libraries, and what Python prints when nobody caught an error.
"""

import logging
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, Literal, TextIO, TypeAlias, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from orchestrator.errors import NOT_FOR_LOGS, AnamnesisError

Format: TypeAlias = Literal["auto", "json", "text"]

_IDS: Final = (
    "conversation_id message_id answer_id turn_id sentence_id memory_id memory_trace_id tool_use_id note_id "
    "connection_id trace_id span_id"
)
_COUNTS: Final = (
    "attempt attempts bytes characters conversations count epoch frames limit most number pid port position "
    "rows seen sentences sequence size stanza traces turn turns utilization violations"
)
_DURATIONS: Final = "ms seconds"
_REVISIONS: Final = "digest found needed revision schema version"
_NAMES: Final = (
    "action agent backend block_level command direction error intent invariant kind label logger outcome "
    "route setting severity source state station status tier transport type"
)
VOCABULARY: Final = frozenset(" ".join((_IDS, _COUNTS, _DURATIONS, _REVISIONS, _NAMES)).split())
"""Every key a log call may use. Who speaks is not among them: a person's id may be their address."""

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/+=~-]{0,200}")
_MOST_FRAMES: Final = 40


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info",
    format: Format = "auto",
    stream: TextIO | None = None,
    *,
    strict: bool | None = None,
) -> None:
    """Say where log lines go and in which form: text on a terminal, else one JSON object per line.

    `strict` raises at a key or value that is not for logs instead of hiding it. Tests ask for it, for
    themselves and the processes they start, with ANAMNESIS_TEST_STRICT_LOGS.
    """
    target = stream or sys.stderr
    readable = format == "text" or (format == "auto" and target.isatty())
    strict = bool(os.environ.get("ANAMNESIS_TEST_STRICT_LOGS")) if strict is None else strict
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            partial(_keep_to_vocabulary, strict=strict),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_for_reading(target) if readable else _for_machines()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Asked for at each line: whoever replaces sys.stderr later means the log too.
        logger_factory=lambda *_: structlog.PrintLogger(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _LibraryHandler)]
    root.addHandler(_LibraryHandler(logging.WARNING))
    # Every request again, with its path: our own lines say it better.
    logging.getLogger("uvicorn.access").disabled = True


def get_logger() -> FilteringBoundLogger:
    """A logger that keeps to the vocabulary even where nobody called `configure`."""
    if not structlog.is_configured():
        configure()
    return cast(FilteringBoundLogger, structlog.get_logger())


def watch_last_words() -> None:
    """Take over what Python prints when nobody caught an error or warning, for it would quote the text.

    For a process of our own; a test runner has hooks of its own there.
    """
    log = get_logger()

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.critical("error_not_caught", exc_info=error)

    def in_a_thread(last: threading.ExceptHookArgs) -> None:
        log.critical("error_not_caught", exc_info=last.exc_value)

    def while_cleaning_up(last: "sys.UnraisableHookArgs") -> None:
        log.error("error_in_cleanup", exc_info=last.exc_value)

    def warned(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        log.warning("python_warning", kind=category.__name__, source=_place(filename, lineno))

    sys.excepthook, threading.excepthook, sys.unraisablehook = uncaught, in_a_thread, while_cleaning_up
    warnings.showwarning = warned
    logging.raiseExceptions = False


def _for_reading(target: TextIO) -> tuple[Processor, ...]:
    colors = target.isatty() and not os.environ.get("NO_COLOR")
    # The exception is a text by then; naming this formatter keeps structlog from warning about that.
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    return _exception_as_text, console


def _for_machines() -> tuple[Processor, ...]:
    return _exception_as_data, structlog.processors.JSONRenderer(ensure_ascii=False)


class _LibraryHandler(logging.Handler):
    """Passes on that a library said something, where, and how loud; not what.

    The message is left out whole, not only its arguments: libraries format theirs beforehand as often as not,
    so no template can be trusted. The place in the library's source tells a reader which message it was.
    """

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger()
        say = log.error if record.levelno >= logging.ERROR else log.warning
        say(
            "library_log",
            logger=record.name if _is_fact(record.name) else _hidden(record.name),
            source=_place(record.pathname, record.lineno),
            exc_info=record.exc_info,
        )


def _keep_to_vocabulary(_logger: object, _method: str, line: EventDict, *, strict: bool) -> EventDict:
    """Hide what is not for logs; raise instead where a test should fail."""
    kept: EventDict = {}
    for key, value in line.items():
        if (
            key == "exc_info"
            or (key == "event" and _is_word(value))
            or (key in VOCABULARY and _is_fact(value))
        ):
            kept[key] = value
        elif strict:
            raise AnamnesisError(NOT_FOR_LOGS, key=key if _is_word(key) else _hidden(key))
        else:
            kept[key if _is_word(key) else "redacted"] = _hidden(value)
    return kept


def _is_word(value: object) -> bool:
    """Events and keys are words from our source. A key may also come from a map that someone sent."""
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _is_fact(value: object) -> bool:
    """A number, a truth value, or a text without spaces or other marks of a sentence."""
    if isinstance(value, str):
        return _NAME.fullmatch(value) is not None
    return value is None or isinstance(value, int | float)


def _hidden(value: object) -> str:
    size = len(value) if isinstance(value, str | bytes) else type(value).__name__
    return f"‹redacted:{size}›"  # noqa: RUF001


def _place(filename: str, line: int) -> str:
    """Where in the source, without the folders of this machine."""
    place = f"{'/'.join(PurePath(filename).parts[-2:])}:{line}"
    return place if _is_fact(place) else _hidden(place)


def describe(error: BaseException) -> dict[str, Any]:
    """An error as it may be shown: its type and where it happened, and its text only if the text is ours.

    Foreign texts echo their input, and locals hold it. Causes are named by their type alone.
    """
    frames = [
        f"{_place(frame.f_code.co_filename, line)} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    said: dict[str, Any] = {"type": _type_name(error), "frames": frames[-_MOST_FRAMES:]}
    if isinstance(error, AnamnesisError):
        said["says"] = str(error)
    if causes := [_type_name(cause) for cause in _causes(error)]:
        said["causes"] = causes
    if isinstance(error, BaseExceptionGroup):
        said["members"] = [describe(member) for member in error.exceptions]
    return said


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    cause = error.__cause__ or error.__context__
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def _pop_error(line: EventDict) -> BaseException | None:
    """`exc_info` as structlog and logging allow it: an error, the triple of `sys.exc_info`, or just true."""
    match line.pop("exc_info", None):
        case BaseException() as error:
            return error
        case (_, error, _):
            return cast(BaseException | None, error)
        case None | False:
            return None
        case _:
            return sys.exception()


def _exception_as_data(_logger: object, _method: str, line: EventDict) -> EventDict:
    if error := _pop_error(line):
        line["exception"] = describe(error)
    return line


def _exception_as_text(_logger: object, _method: str, line: EventDict) -> EventDict:
    if error := _pop_error(line):
        line["exception"] = "\n".join(_told(describe(error), ""))
    return line


def _told(said: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield indent + ": ".join(filter(None, (said["type"], said.get("says"))))
    yield from (f"{indent}  {frame}" for frame in said["frames"])
    if causes := said.get("causes"):
        yield f"{indent}  after {', '.join(causes)}"
    for member in said.get("members", ()):
        yield from _told(member, indent + "    ")
