"""`anamnesis chat`: chats in the terminal, or answers the lines of a script."""

import asyncio
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orchestrator.cli.options import Invocation, user_option, with_invocation

if TYPE_CHECKING:
    from orchestrator.client.client import Client
    from orchestrator.settings import Settings
    from orchestrator.wire.envelope import Envelope
    from orchestrator.wire.messages import Body, MemoryTrace


CODE_IN_ADDRESS: Final = (
    "The address must end before the #: every user of this machine can read a running command. "
    "Pass the key with --key-file FILE, in the variable ANAMNESIS_KEY, or at the prompt. "
    "`anamnesis serve --json` prints it, and keys.json in the server's data folder holds it."
)
_TROUBLES: Final = {"daily_tokens": "your tokens for today are used up; it answers again after midnight, UTC"}
"""Why there was no model, in words, where the code says too little."""

NO_KEY: Final = "A server needs a key: pass --key-file FILE, or set the variable ANAMNESIS_KEY."


@click.command()
@user_option("The person who chats.")
@click.option("--conversation", metavar="ID", help="Continue an earlier conversation.")
@click.option("--server", metavar="URL", help="Chat with a running server at this address.")
@click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --server: a file with your key, or the server's keys.json.  [ANAMNESIS_KEY, or a prompt]",
)
@click.option("--livekit", is_flag=True, help="With --server: use the conversation's LiveKit room.")
@click.option("--json", "as_json", is_flag=True, help="Read a message per line; print envelopes as JSON.")
@click.option("--quiet", is_flag=True, help="Do not print the memory traces after an answer.")
@with_invocation
def chat(
    invocation: Invocation,
    user: str,
    conversation: str | None,
    server: str | None,
    key_file: Path | None,
    livekit: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Chat in the terminal. Ctrl-C stops an answer, Ctrl-D ends the program.

    \b
    For scripts, one message per line:
      printf 'I am having a headache\\n8\\n' | anamnesis chat --json
    """
    if (livekit or key_file) and not server:
        raise click.UsageError("--livekit and --key-file need --server URL.")
    if server and "#" in server:
        raise click.UsageError(CODE_IN_ADDRESS)
    settings = invocation.settings(quietly=True, in_chat=not as_json)
    connection = (
        _connect(server, _read_key(key_file, user), conversation, livekit, settings.data.dir / "seen")
        if server
        else _start_orchestrator(settings, invocation.config, user, conversation)
    )

    from orchestrator.ops import telemetry

    telemetry.start(settings.telemetry.endpoint)
    try:
        asyncio.run(_answer_lines(connection) if as_json else _converse(connection, quiet))
    finally:
        telemetry.stop()


def _read_key(file: Path | None, user: str) -> str:
    """Read the key from the file, the variable ANAMNESIS_KEY, or a prompt; never from the command line."""
    if file is not None:
        key = _key_in_file(file, user)
    elif (variable := os.environ.get("ANAMNESIS_KEY")) is not None:
        key = variable
    elif sys.stdin.isatty():
        key = str(click.prompt("Key", hide_input=True, err=True))
    else:
        raise click.UsageError(NO_KEY)
    if not re.fullmatch(r"[!-~]+", key := key.strip()):
        raise click.UsageError("The key is empty, or has characters that no key has.")
    return key


def _key_in_file(file: Path, user: str) -> str:
    from orchestrator.api.keys import parse_keys
    from orchestrator.wire.ids import PersonId

    contents = file.read_bytes()
    if not contents.lstrip().startswith(b"{"):
        return contents.decode(errors="replace")
    key = parse_keys(contents).get(PersonId(user))
    if key is None:
        raise click.UsageError("The file of --key-file has no key of this --user.")
    return key


@dataclass(frozen=True, slots=True)
class _Connection:
    """A connected client, the conversation to continue, if any, and the last stanza received in it."""

    client: "Client"
    conversation: str | None
    seen: int | None = None

    def open(self) -> "AsyncGenerator[Envelope[Body], None]":
        """Open the conversation, or start one."""
        return self.client.open(self.conversation, seen=self.seen)


@asynccontextmanager
async def _connect(
    server: str, key: str, conversation: str | None, livekit: bool, bookmark_folder: Path
) -> AsyncIterator[_Connection]:
    """Connect to a running server; reconnect whenever the connection breaks.

    The number of the last stanza received is kept in `bookmark_folder`, so that a later run gets what it
    missed.
    """
    from orchestrator.client.bookmarks import Bookmarks
    from orchestrator.client.client import Client
    from orchestrator.client.connect import RoomConnection, WebSocketConnection
    from orchestrator.wire.ids import RandomIds

    dial = RoomConnection(server, key, conversation) if livekit else WebSocketConnection(server, key)
    bookmarks = Bookmarks(bookmark_folder, server)
    client = Client(await dial(), RandomIds(), dial=dial, keep=bookmarks.keep)
    seen = bookmarks.seen(conversation) if conversation else None
    if isinstance(dial, RoomConnection):
        conversation = dial.conversation_id
    try:
        yield _Connection(client, conversation, seen)
    finally:
        await client.close()
        await dial.close()


@asynccontextmanager
async def _start_orchestrator(
    settings: "Settings", config: Path | None, user: str, conversation: str | None
) -> AsyncIterator[_Connection]:
    """Run an orchestrator in this process and connect to it."""
    from orchestrator.client.client import Client
    from orchestrator.transports.in_process import pair
    from orchestrator.wire.ids import RandomIds
    from orchestrator.wiring import build_orchestrator

    ours, theirs = pair()
    orchestrator = await asyncio.to_thread(build_orchestrator, settings, config)
    async with orchestrator.open():
        serving = asyncio.create_task(orchestrator.serve(theirs, user))
        client = Client(ours, RandomIds())
        try:
            yield _Connection(client, conversation)
        finally:
            await client.close()
            await serving


async def _answer_lines(connecting: AbstractAsyncContextManager[_Connection]) -> None:
    """Send each line of standard input and print the envelopes of its answer.

    A line that cannot be sent is reported on standard error and skipped.
    """
    from orchestrator.errors import AnamnesisError
    from orchestrator.wire.codec import as_json

    async with connecting as connection:
        client = connection.client
        async with aclosing(connection.open()) as opening:
            async for envelope in opening:
                click.echo(as_json(envelope))
        async for number, line in _lines(sys.stdin.buffer.readline):
            try:
                text = line.decode().rstrip("\r\n")
                if not text.strip():
                    continue
                message_id = await client.say(text)
            except UnicodeDecodeError:
                click.echo(f"error: line {number} is not UTF-8; it was skipped", err=True)
                continue
            except AnamnesisError as refused:
                click.echo(f"error: line {number} was skipped. {refused}", err=True)
                continue
            async with aclosing(client.answer_to(message_id)) as answer:
                async for envelope in answer:
                    click.echo(as_json(envelope))


async def _lines(read: Callable[[], bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Read lines in a thread; gives each with its number, from 1."""
    number = 0
    while line := await asyncio.to_thread(read):
        number += 1
        yield number, line


async def _converse(connecting: AbstractAsyncContextManager[_Connection], quiet: bool) -> None:
    """Chat with the person at the terminal until they end the program."""
    async with connecting as connection:
        client = connection.client
        async with aclosing(connection.open()) as opening:
            await show((missed async for missed in opening if missed.stanza_id), quiet)
        click.secho(f"Conversation {client.conversation_id}. Ctrl-D ends it.", dim=True)
        ended, stopping = asyncio.Event(), set[asyncio.Task[None]]()
        answering = False

        def interrupt() -> None:
            if answering:
                stopping.add(asyncio.create_task(client.stop()))
            else:
                ended.set()

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        while (text := await _read_line(ended)) is not None:
            if text.strip():
                answering = True
                await _show_answer(client, text, quiet)
                answering = False
        await asyncio.gather(*stopping)
        click.secho(f"\nTo continue: the same command with --conversation {client.conversation_id}", dim=True)


async def _read_line(ended: asyncio.Event) -> str | None:
    """Read the next line that the person types; None at the end of input or once `ended` is set."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def read() -> None:  # in a daemon thread, because nothing can interrupt a read from a terminal
        try:
            text: str | None = input("you> ")
        except (EOFError, UnicodeDecodeError):
            text = None
        loop.call_soon_threadsafe(line.set_result, text)

    threading.Thread(target=read, daemon=True).start()
    ending = asyncio.create_task(ended.wait())
    await asyncio.wait((line, ending), return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    return line.result() if line.done() else None


async def _show_answer(client: "Client", text: str, quiet: bool) -> None:
    """Send a message and print its answer as it arrives."""
    from orchestrator.errors import AnamnesisError

    try:
        message_id = await client.say(text)
    except AnamnesisError as refused:
        click.secho(str(refused), fg="red")
        return
    await show(client.answer_to(message_id), quiet)


async def show(envelopes: "AsyncGenerator[Envelope[Body], None]", quiet: bool) -> None:
    """Print what the server sends: the text as it arrives, then the memory traces.

    Certain danger is printed in bold and red, a question about possible danger in yellow. Says when the
    model failed and the local brain answered. A safety sentence may come twice: at once without
    a stanza number, and again with one after the store has committed. It is printed once, in whichever order.
    """
    from orchestrator.wire.messages import AssistantMessage, AssistantSentence, ErrorMessage, MemoryTrace

    traces: list[MemoryTrace] = []
    any_text, trouble, early, numbered = False, "", "", ""
    style: dict[str, Any] = {}
    async with aclosing(envelopes):
        async for envelope in envelopes:
            meta = envelope.meta or {}
            if "model.stood_in" in meta:
                trouble = str(meta.get("model.trouble", ""))
            if "safety" in meta:
                is_question = meta.get("certainty") == "possible"
                style = {"fg": "yellow"} if is_question else {"fg": "red", "bold": True}
            match envelope.body:
                case AssistantSentence(text=text) if not envelope.stanza_id:
                    if text not in numbered:
                        early = text
                        click.secho(text, nl=False, **style)
                case AssistantSentence(text=text) | AssistantMessage(content=text):
                    numbered += text
                    click.secho(text.removeprefix(early), nl=False, **style)
                case MemoryTrace() as trace:
                    traces.append(trace)
                    continue
                case ErrorMessage(message=message):
                    click.secho(message.removeprefix(early), fg="red", nl=False)
                case _:
                    continue
            any_text = True
    if any_text:
        click.echo()
    if trouble:
        why = _TROUBLES.get(trouble, trouble.replace("_", " "))
        click.secho(f"  answered without the model: {why}", fg="yellow")
    if not quiet:
        for trace in traces:
            click.secho(f"  {trace_line(trace)}", dim=True)


def trace_line(trace: "MemoryTrace") -> str:
    """One line about a trace: which memory was read or written, and what was read or changed."""
    from memory_blocks.trace_text import as_line

    about = trace.metadata or {}
    name = about.get("label") or trace.memory_type or trace.memory_id
    facts = [f"{trace.action} {name}"]
    if "revision" in about:
        facts.append(f"revision {about['revision']}")
    if about.get("level", "normal") != "normal":
        facts.append(f"level {about['level']}")
    if trace.confidence is not None:
        facts.append(f"relevance {trace.confidence:.2f}")
    return f"{', '.join(facts)}: {as_line(trace.content)}"
