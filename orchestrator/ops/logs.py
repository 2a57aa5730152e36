"""Logging that never contains what a person wrote: a line has an event and facts, such as ids and numbers.

Text could leak in four ways, and each is filtered: keys and values of a log call, the text and locals of an
exception, log records of libraries, and what Python prints about an uncaught error.
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
"""The keys a log call may use. Ids of people are not among them, since one may be an e-mail address."""

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/+=~-]{0,200}")
_MAX_FRAMES: Final = 40


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info",
    format: Format = "auto",
    stream: TextIO | None = None,
    *,
    strict: bool | None = None,
) -> None:
    """Set up logging to `stream`: with format "auto", text on a terminal, else one JSON object per line.

    With `strict`, a key or value that is not allowed raises instead of being hidden. Tests set
    ANAMNESIS_TEST_STRICT_LOGS for this, also for the processes they start.
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
            *(_as_text_lines(target) if readable else _as_json_lines()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # sys.stderr is looked up for each line, so that replacing it redirects the log, too.
        logger_factory=lambda *_: structlog.PrintLogger(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _LibraryHandler)]
    root.addHandler(_LibraryHandler(logging.WARNING))
    # It would log every request with its path; we log requests ourselves.
    logging.getLogger("uvicorn.access").disabled = True


def get_logger() -> FilteringBoundLogger:
    """A logger that enforces the vocabulary, even if `configure` was not called."""
    if not structlog.is_configured():
        configure()
    return cast(FilteringBoundLogger, structlog.get_logger())


def redact_uncaught_errors() -> None:
    """Log uncaught errors and warnings ourselves, because Python would print their text.

    Call it only in our own processes; a test runner has its own hooks.
    """
    log = get_logger()

    def in_main_thread(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.critical("error_not_caught", exc_info=error)

    def in_a_thread(uncaught: threading.ExceptHookArgs) -> None:
        log.critical("error_not_caught", exc_info=uncaught.exc_value)

    def in_a_finalizer(uncaught: "sys.UnraisableHookArgs") -> None:
        log.error("error_in_cleanup", exc_info=uncaught.exc_value)

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        log.warning("python_warning", kind=category.__name__, source=_place(filename, lineno))

    sys.excepthook, threading.excepthook, sys.unraisablehook = in_main_thread, in_a_thread, in_a_finalizer
    warnings.showwarning = show_warning
    logging.raiseExceptions = False


def _as_text_lines(target: TextIO) -> tuple[Processor, ...]:
    colors = target.isatty() and not os.environ.get("NO_COLOR")
    # The exception is already text here. Without this formatter structlog would warn about that.
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    return _exception_as_text, console


def _as_json_lines() -> tuple[Processor, ...]:
    return _exception_as_data, structlog.processors.JSONRenderer(ensure_ascii=False)


class _LibraryHandler(logging.Handler):
    """Logs that a library logged something: its logger, level and line of source, but not the message.

    Even the template of the message is left out, because many libraries format it before they log it. The
    line of source shows a reader which message it was.
    """

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger()
        emit = log.error if record.levelno >= logging.ERROR else log.warning
        emit(
            "library_log",
            logger=record.name if _is_fact(record.name) else _hidden(record.name),
            source=_place(record.pathname, record.lineno),
            exc_info=record.exc_info,
        )


def _keep_to_vocabulary(_logger: object, _method: str, line: EventDict, *, strict: bool) -> EventDict:
    """Hide keys and values that are not allowed; with `strict`, raise instead."""
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
    """Whether this is a name like those in our source. A key may also come from a map that a client sent."""
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _is_fact(value: object) -> bool:
    """Whether this is a number, a boolean, None, or a text without spaces or punctuation of sentences."""
    if isinstance(value, str):
        return _NAME.fullmatch(value) is not None
    return value is None or isinstance(value, int | float)


def _hidden(value: object) -> str:
    size = len(value) if isinstance(value, str | bytes) else type(value).__name__
    return f"‹redacted:{size}›"  # noqa: RUF001


def _place(filename: str, line: int) -> str:
    """File and line, without the folders of this machine."""
    place = f"{'/'.join(PurePath(filename).parts[-2:])}:{line}"
    return place if _is_fact(place) else _hidden(place)


def describe(error: BaseException) -> dict[str, Any]:
    """An error as data that may be logged: type, place and types of its causes; the text only of our errors.

    The texts of other errors may quote input, and so may local variables.
    """
    frames = [
        f"{_place(frame.f_code.co_filename, line)} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    described: dict[str, Any] = {"type": _type_name(error), "frames": frames[-_MAX_FRAMES:]}
    if isinstance(error, AnamnesisError):
        described["says"] = str(error)
    if causes := [_type_name(cause) for cause in _causes(error)]:
        described["causes"] = causes
    if isinstance(error, BaseExceptionGroup):
        described["members"] = [describe(member) for member in error.exceptions]
    return described


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
    """Remove and return the error in `exc_info`, which may be an error, a `sys.exc_info` triple, or True."""
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
        line["exception"] = "\n".join(_as_lines(describe(error), ""))
    return line


def _as_lines(error: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield indent + ": ".join(filter(None, (error["type"], error.get("says"))))
    yield from (f"{indent}  {frame}" for frame in error["frames"])
    if causes := error.get("causes"):
        yield f"{indent}  after {', '.join(causes)}"
    for member in error.get("members", ()):
        yield from _as_lines(member, indent + "    ")
