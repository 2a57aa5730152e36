"""A log line has an event and facts; what a person wrote is never logged."""

import ast
import io
import json
import logging
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import structlog

from orchestrator.errors import FRAME_TOO_LARGE, AnamnesisError
from orchestrator.ops import logs

CANARY = "my chest hurts since Tuesday"
FORMATS: tuple[Literal["json", "text"], ...] = ("json", "text")


class Terminal(io.StringIO):
    """A stream that reports to be a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Each test configures logging for itself."""
    before, handlers = structlog.get_config(), logging.getLogger().handlers
    yield
    structlog.configure(**before)
    logging.getLogger().handlers = handlers


@pytest.fixture(params=FORMATS)
def stream(request: pytest.FixtureRequest) -> io.StringIO:
    """The log of a process in production, in each format."""
    stream = io.StringIO()
    logs.configure("debug", request.param, stream, strict=False)
    return stream


def the_line(stream: io.StringIO) -> dict[str, Any]:
    """The one JSON line that was logged."""
    (line,) = stream.getvalue().splitlines()
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def as_json(*, strict: bool = False) -> io.StringIO:
    """Log as JSON into the stream that is returned."""
    stream = io.StringIO()
    logs.configure(format="json", stream=stream, strict=strict)
    return stream


def a_deep_failure() -> Exception:
    """An error whose text, arguments, locals, cause and context all contain the canary."""

    def fail(said: str) -> None:
        try:
            int(said)
        except ValueError as error:
            try:
                raise KeyError(said) from error
            except KeyError:
                raise RuntimeError(said, {"said": said}) from None

    try:
        fail(CANARY)
    except RuntimeError as error:
        return error
    raise AssertionError


def test_a_line_is_json_without_a_terminal() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)

    logs.get_logger().info("turn_done", turn_id="turn_1", ms=12)

    line = the_line(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "turn_done", "level": "info", "turn_id": "turn_1", "ms": 12}


def test_a_line_is_coloured_text_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    logs.configure(stream=stream)

    logs.get_logger().info("turn_done", ms=12)

    assert "turn_done" in stream.getvalue()
    assert "\x1b[" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_the_variable_no_color_switches_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    logs.configure(stream=stream)

    logs.get_logger().info("turn_done", ms=12)

    assert "\x1b[" not in stream.getvalue()


@pytest.mark.parametrize("form", FORMATS)
def test_the_configured_format_is_used_on_any_stream(form: Literal["json", "text"]) -> None:
    stream = Terminal() if form == "json" else io.StringIO()
    logs.configure(format=form, stream=stream)

    logs.get_logger().info("turn_done")

    assert stream.getvalue().startswith("{") == (form == "json")


def test_lines_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)

    logs.get_logger().info("turn_done")
    logs.get_logger().warning("lease_lost")

    assert the_line(stream)["event"] == "lease_lost"


def test_context_bound_once_is_on_every_line() -> None:
    stream = as_json()

    with structlog.contextvars.bound_contextvars(turn_id="turn_1"):
        logs.get_logger().info("turn_done")

    assert the_line(stream)["turn_id"] == "turn_1"


def test_a_logger_of_a_module_uses_a_replaced_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(format="json")

    logs.get_logger().info("turn_done")

    assert json.loads(capsys.readouterr().err)["event"] == "turn_done"


def test_a_logger_is_safe_without_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.reset_defaults()

    logs.get_logger().info("turn_done", ms=1)

    assert json.loads(capsys.readouterr().err)["ms"] == 1


MISUSES: dict[str, Callable[[Any], None]] = {
    "a key that does not exist": lambda log: log.info("said", text=CANARY),
    "a key that is text itself": lambda log: log.info("said", **{CANARY: 1}),
    "a known key": lambda log: log.info("said", intent=CANARY),
    "something that is not a scalar": lambda log: log.info("said", label=[CANARY]),
    "an object that prints it": lambda log: log.info("said", label=KeyError(CANARY)),
    "bytes": lambda log: log.info("said", label=CANARY.encode()),
    "the event": lambda log: log.info("said " + CANARY),  # noqa: G003
    "the event and its arguments": lambda log: log.info("said %s", CANARY),
    "bound before": lambda log: log.bind(text=CANARY).info("said"),
}


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES.keys())
def test_text_is_hidden_behind_its_length_in_production(
    stream: io.StringIO, misuse: Callable[[Any], None]
) -> None:
    misuse(logs.get_logger())

    assert CANARY not in stream.getvalue()
    assert "redacted:" in stream.getvalue()


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES.keys())
def test_text_fails_a_test_that_logs_it(misuse: Callable[[Any], None]) -> None:
    stream = as_json(strict=True)

    with pytest.raises(AnamnesisError, match="A log call uses") as refused:
        misuse(logs.get_logger())

    assert CANARY not in str(refused.value)
    assert stream.getvalue() == ""


def test_logging_is_strict_in_tests() -> None:
    logs.configure(stream=io.StringIO())

    with pytest.raises(AnamnesisError, match="`text`"):
        logs.get_logger().info("said", text=CANARY)


def test_a_hidden_value_shows_its_length_under_its_key() -> None:
    stream = as_json()

    logs.get_logger().info("said", text=CANARY, revision={"a": 1})

    line = the_line(stream)
    assert line["text"] == f"\u2039redacted:{len(CANARY)}\u203a"
    assert line["revision"] == "\u2039redacted:dict\u203a"


@pytest.mark.parametrize(
    "value", ["", "conv_V1StGXR8_Z5jdHi6B-myT", "sha256:ab/+=", "a.b~c", 3, 0.5, True, None]
)
def test_ids_numbers_digests_and_names_pass(value: object) -> None:
    stream = as_json(strict=True)

    logs.get_logger().info("said", label=value)

    assert the_line(stream)["label"] == value


def test_an_error_is_shown_by_type_and_place_alone(stream: io.StringIO) -> None:
    logs.get_logger().error("turn_failed", exc_info=a_deep_failure())

    assert CANARY not in stream.getvalue()
    for fact in ("RuntimeError", "KeyError", "ValueError", "ops/test_logs.py:", " fail"):
        assert fact in stream.getvalue()


def test_an_error_being_handled_is_shown_the_same_way(stream: io.StringIO) -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        logs.get_logger().exception("turn_failed")

    assert CANARY not in stream.getvalue()
    assert "ValueError" in stream.getvalue()


def test_our_own_error_keeps_its_text() -> None:
    stream = as_json()

    logs.get_logger().error("frame_refused", exc_info=AnamnesisError(FRAME_TOO_LARGE, size=9, most=8))

    assert the_line(stream)["exception"] == {
        "type": "orchestrator.errors.AnamnesisError",
        "frames": [],
        "says": "The frame has 9 bytes; the limit is 8. Split or shorten it.",
    }


def test_the_members_of_a_group_are_shown_too(stream: io.StringIO) -> None:
    group = ExceptionGroup(CANARY, [a_deep_failure(), ExceptionGroup(CANARY, [TypeError(CANARY)])])

    logs.get_logger().error("turn_failed", exc_info=group)

    assert CANARY not in stream.getvalue()
    assert "RuntimeError" in stream.getvalue()
    assert "TypeError" in stream.getvalue()


def test_causes_that_form_a_cycle_are_listed_once() -> None:
    one, other = KeyError(), ValueError()
    one.__cause__, other.__cause__ = other, one

    assert logs.describe(one)["causes"] == ["ValueError"]


@pytest.mark.parametrize(
    "name", ["uvicorn.error", "sqlalchemy.engine", "httpx", "livekit", "asyncio", "alembic"]
)
def test_a_librarys_log_is_kept_without_its_text(stream: io.StringIO, name: str) -> None:
    logging.getLogger(name).warning("got %s", CANARY, exc_info=a_deep_failure())
    logging.getLogger(name).error(f"got {CANARY}")  # noqa: G004
    logging.getLogger(name).critical(CANARY, extra={"said": CANARY})

    assert CANARY not in stream.getvalue()
    assert stream.getvalue().count("library_log") == 3
    for fact in (name, "ops/test_logs.py:", "RuntimeError", "error"):
        assert fact in stream.getvalue()


def test_a_librarys_log_is_kept_from_warnings_upwards(stream: io.StringIO) -> None:
    library = logging.getLogger("tests.chatty")
    library.setLevel(logging.DEBUG)

    library.info("ready")

    assert stream.getvalue() == ""


def test_a_loggers_name_that_is_text_is_hidden(stream: io.StringIO) -> None:
    logging.getLogger(CANARY).warning("ready")

    assert CANARY not in stream.getvalue()
    assert "redacted:" in stream.getvalue()


def test_the_servers_own_access_log_is_off(stream: io.StringIO) -> None:
    logging.getLogger("uvicorn.access").error("GET /%s", CANARY)

    assert stream.getvalue() == ""


def test_configuring_twice_logs_everything_once() -> None:
    logs.configure(stream=io.StringIO())
    stream = as_json()

    logging.getLogger("httpx").warning("ready")

    assert the_line(stream)["event"] == "library_log"


def log_calls() -> list[tuple[str, ast.Call]]:
    """Every log call and every binding of context in our packages, with its place."""
    checkout = Path(logs.__file__).parents[2]
    return [
        (f"{path.relative_to(checkout)}:{call.lineno}", call)
        for package in ("orchestrator", "agents", "memory_blocks")
        for path in sorted((checkout / package).rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call)
        and re.fullmatch(
            r"(\w+\.)*_?log(ger)?\.(debug|info|warning|error|critical|exception|bind)"
            r"|(\w+\.)*(bound_contextvars|bind_contextvars)",
            ast.unparse(call.func),
        )
    ]


def test_every_log_call_uses_only_keys_of_the_vocabulary() -> None:
    allowed = logs.VOCABULARY | {"exc_info"}

    wrong = [place for place, call in log_calls() if not {key.arg for key in call.keywords} <= allowed]

    assert len(log_calls()) > 4
    assert wrong == []


def test_every_log_call_has_a_literal_event() -> None:
    events = [(place, said) for place, call in log_calls() for said in call.args]

    assert [place for place, said in events if not re.fullmatch("'[a-z_]+'", ast.unparse(said))] == []


UNCAUGHT = {
    "an uncaught error": "raise ValueError(canary)",
    "an error in a thread": "t = threading.Thread(target=int, args=(canary,)); t.start(); t.join()",
    "an error in a finalizer": "Falling()",
    "a warning": "warnings.warn(canary, stacklevel=1)",
    "a task that was not awaited": "asyncio.run(forgetful())",
    "a log call that cannot be formatted": "chatty.warning('%d', canary)",
}


@pytest.mark.parametrize("statement", UNCAUGHT.values(), ids=UNCAUGHT.keys())
def test_what_python_prints_by_itself_is_redacted(statement: str) -> None:
    program = textwrap.dedent(f"""
        import asyncio, gc, logging, sys, threading, warnings
        from orchestrator.ops import logs

        class Falling:
            def __del__(self):
                raise ValueError(canary)

        async def forgetful():
            async def fail():
                raise ValueError(canary)
            asyncio.ensure_future(fail())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            gc.collect()

        chatty = logging.getLogger("chatty")
        chatty.addHandler(logging.StreamHandler())
        canary = sys.argv[1]
        logs.configure()
        logs.redact_uncaught_errors()
        {statement}
    """)

    done = subprocess.run(
        [sys.executable, "-c", program, CANARY], capture_output=True, text=True, check=False, timeout=60
    )

    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert CANARY not in done.stderr + done.stdout
    assert len(events) == 1
