"""`anamnesis chat`: talks in the terminal, or as a filter for scripts."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.frame import Invocation, pass_invocation, shared_options, user_option

if TYPE_CHECKING:
    from orchestrator.client import Client
    from orchestrator.settings import Settings
    from orchestrator.wire.envelope import Envelope
    from orchestrator.wire.messages import Body, MemoryTrace


@click.command()
@user_option("Who is talking.")
@click.option("--conversation", metavar="ID", help="Go on with an earlier conversation.")
@click.option("--server", metavar="URL", help="Talk to the server whose page this is, its key after the #.")
@click.option("--livekit", is_flag=True, help="With --server: through the conversation's LiveKit room.")
@click.option("--json", "as_json", is_flag=True, help="A message per input line; envelopes as lines of JSON.")
@click.option("--quiet", is_flag=True, help="Do not show the memory traces beneath an answer.")
@shared_options
@pass_invocation
def chat(
    invocation: Invocation,
    user: str,
    conversation: str | None,
    server: str | None,
    livekit: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Talk in the terminal. Ctrl-C stops an answer, Ctrl-D ends the conversation.

    \b
    For scripts, one message per line:
      printf 'I am having a headache\\n8\\n' | anamnesis chat --json
    """
    if livekit and not server:
        raise click.UsageError("--livekit needs --server URL.")
    settings = invocation.settings(quietly=True, amid_a_conversation=not as_json)
    entered = (
        _elsewhere(server, conversation, livekit, settings.data.dir / "seen")
        if server
        else _at_home(settings, invocation.config, user, conversation)
    )

    from orchestrator import telemetry

    telemetry.start(settings.telemetry.endpoint)
    try:
        asyncio.run(_filter(entered) if as_json else _converse(entered, quiet))
    finally:
        telemetry.stop()


@dataclass(frozen=True, slots=True)
class _Entrance:
    """A client at the door; the conversation it goes on with, if there is one, and how far it was read."""

    client: "Client"
    conversation: str | None
    seen: int | None = None

    def open(self) -> "AsyncGenerator[Envelope[Body], None]":
        """Go in."""
        return self.client.open(self.conversation, seen=self.seen)


@asynccontextmanager
async def _elsewhere(
    server: str, conversation: str | None, livekit: bool, kept: Path
) -> AsyncIterator[_Entrance]:
    """A client of a house that another process has opened; it calls again when the line breaks.

    How far it has read lies in the folder `kept`, so that a later run is told what came since.
    """
    from orchestrator.bookmarks import Bookmarks
    from orchestrator.calls import RoomCall, WebSocketCall
    from orchestrator.client import Client
    from orchestrator.wire.ids import RandomIds

    address, _, key = server.partition("#")
    call = RoomCall(address, key, conversation) if livekit else WebSocketCall(address, key)
    bookmarks = Bookmarks(kept, address)
    client = Client(await call(), RandomIds(), dial=call, keep=bookmarks.keep)
    seen = bookmarks.seen(conversation) if conversation else None
    try:
        yield _Entrance(client, call.conversation_id if isinstance(call, RoomCall) else conversation, seen)
    finally:
        await client.close()
        await call.hang_up()


@asynccontextmanager
async def _at_home(
    settings: "Settings", config: Path | None, user: str, conversation: str | None
) -> AsyncIterator[_Entrance]:
    """A client in a house of its own, in this process."""
    from orchestrator.client import Client
    from orchestrator.transports.in_process import pair
    from orchestrator.wire.ids import RandomIds
    from orchestrator.wiring import build_house

    ours, theirs = pair()
    house = await asyncio.to_thread(build_house, settings, config)
    async with house.open():
        attending = asyncio.create_task(house.attend(theirs, user))
        client = Client(ours, RandomIds())
        try:
            yield _Entrance(client, conversation)
        finally:
            await client.close()
            await attending


async def _filter(entered: AbstractAsyncContextManager[_Entrance]) -> None:
    """Answer each line of standard input; one that cannot be sent is told of, and the others are answered."""
    from orchestrator.errors import AnamnesisError
    from orchestrator.wire.codec import as_json

    async with entered as entrance:
        client = entrance.client
        async with aclosing(entrance.open()) as opening:
            async for envelope in opening:
                click.echo(as_json(envelope))
        async for number, line in _lines(sys.stdin.buffer.readline):
            try:
                said = line.decode().rstrip("\r\n")
                if not said.strip():
                    continue
                message_id = await client.say(said)
            except UnicodeDecodeError:
                click.echo(f"error: line {number} is not UTF-8; it was passed over", err=True)
                continue
            except AnamnesisError as refused:
                click.echo(f"error: line {number} was passed over. {refused}", err=True)
                continue
            async with aclosing(client.answer_to(message_id)) as answer:
                async for envelope in answer:
                    click.echo(as_json(envelope))


async def _lines(read: Callable[[], bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """The lines that come, numbered from 1, without holding up anything else."""
    number = 0
    while line := await asyncio.to_thread(read):
        number += 1
        yield number, line


async def _converse(entered: AbstractAsyncContextManager[_Entrance], quiet: bool) -> None:
    """Talk with whoever sits at the terminal, until they have had enough."""
    async with entered as entrance:
        client = entrance.client
        async with aclosing(entrance.open()) as opening:
            await show((missed async for missed in opening if missed.stanza_id), quiet)
        click.secho(f"Conversation {client.conversation_id}. Ctrl-D ends it.", dim=True)
        enough, stopping = asyncio.Event(), set[asyncio.Task[None]]()
        answering = False

        def interrupt() -> None:
            if answering:
                stopping.add(asyncio.create_task(client.stop()))
            else:
                enough.set()

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        while (said := await _typed(enough)) is not None:
            if said.strip():
                answering = True
                await _show_answer(client, said, quiet)
                answering = False
        await asyncio.gather(*stopping)
        click.secho(f"\nTo go on: the same command with --conversation {client.conversation_id}", dim=True)


async def _typed(enough: asyncio.Event) -> str | None:
    """The next line that is typed; None when there will be no more."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str | None] = loop.create_future()

    def wait() -> None:  # in a thread that nobody waits for: a terminal cannot be told to give up
        try:
            line: str | None = input("you> ")
        except (EOFError, UnicodeDecodeError):
            line = None
        loop.call_soon_threadsafe(typed.set_result, line)

    threading.Thread(target=wait, daemon=True).start()
    giving_up = asyncio.create_task(enough.wait())
    await asyncio.wait((typed, giving_up), return_when=asyncio.FIRST_COMPLETED)
    giving_up.cancel()
    return typed.result() if typed.done() else None


async def _show_answer(client: "Client", said: str, quiet: bool) -> None:
    """The answer as it comes, and beneath it which memories it opened and wrote."""
    from orchestrator.errors import AnamnesisError

    try:
        message_id = await client.say(said)
    except AnamnesisError as refused:
        click.secho(str(refused), fg="red")
        return
    await show(client.answer_to(message_id), quiet)


async def show(said: "AsyncGenerator[Envelope[Body], None]", quiet: bool) -> None:
    """What the house says, and beneath it which memories it opened and wrote; nothing, if it says nothing.

    Where the model that should have answered did not, that stands there, too. What comes without a number,
    because the store takes its time, is not said again with one, whichever is first.
    """
    from orchestrator.wire.messages import AssistantMessage, AssistantSentence, ErrorMessage, MemoryTrace

    traces: list[MemoryTrace] = []
    spoken, trouble, early, told = False, "", "", ""
    async with aclosing(said) as envelopes:
        async for envelope in envelopes:
            meta = envelope.meta or {}
            if "model.stood_in" in meta:
                trouble = str(meta.get("model.trouble", ""))
            match envelope.body:
                case AssistantSentence(text=text) if not envelope.stanza_id:
                    if text not in told:
                        early = text
                        click.echo(text, nl=False)
                case AssistantSentence(text=text) | AssistantMessage(content=text):
                    told += text
                    click.echo(text.removeprefix(early), nl=False)
                case MemoryTrace() as trace:
                    traces.append(trace)
                    continue
                case ErrorMessage(message=message):
                    click.secho(message.removeprefix(early), fg="red", nl=False)
                case _:
                    continue
            spoken = True
    if spoken:
        click.echo()
    if trouble:
        click.secho(f"  answered without the model: {trouble}", fg="yellow")
    if not quiet:
        for trace in traces:
            click.secho(f"  {trace_line(trace)}", dim=True)


def trace_line(trace: "MemoryTrace") -> str:
    """A trace in one line: what was done with which memory."""
    about = trace.metadata or {}
    name = about.get("label") or trace.memory_type or trace.memory_id
    facts = [f"{trace.action} {name}"]
    if "revision" in about:
        facts.append(f"revision {about['revision']}")
        facts.append(f"{about['size']} of {about['limit']} characters ({about['level']})")
    if trace.confidence is not None:
        facts.append(f"relevance {trace.confidence:.2f}")
    return ", ".join(facts)
