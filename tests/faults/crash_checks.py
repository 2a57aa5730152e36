"""Checks after a crash: what the client received, what is stored, and that both agree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from orchestrator.errors import AnamnesisError
from orchestrator.store.checks import invariants
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Frame
from tests.faults.client import Client, Cut
from tests.faults.deployment import Deployment, Server
from tests.support.projection import project, tables

ATTEMPTS = 3
"""After this many crashes before the first sentence of its answer, a message is not tried again."""
STEPS = 12
"""The maximum number of servers for one conversation, so that a lost stanza ends the test."""


@dataclass(frozen=True)
class Turn:
    """The stored state of one message."""

    number: int
    state: str
    attempts: int
    begun: bool
    """Whether a sentence of its answer was said."""
    result: bool
    """Whether the whole answer is stored, as a safety answer without streaming is."""
    error: str | None

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended."""
        return self.state in ("completed", "failed")


@dataclass(frozen=True)
class Stored:
    """The stored rows of a conversation at one moment."""

    stanzas: Sequence[bytes]
    questions: dict[str, str]
    answers: dict[str, str]
    turns: dict[str, Turn]


@dataclass
class Run:
    """A conversation with one or more crashes of the server."""

    client: Client
    deaths: list[Stored] = field(default_factory=list)
    end: Stored | None = None
    problems: list[str] = field(default_factory=list)
    asked_at_first_death: int = 0
    over: bool = False
    survived: bool = False
    """Whether a server finished without reaching the point at which it should have died."""


async def converse(
    deployment: Deployment, client: Client, texts: Iterable[str], *changes: str, faults: Iterable[str] = ()
) -> Run:
    """Send all messages and receive all answers, with a new server after every crash.

    Each server dies at one of `faults`; the last one has none. A server that survives its fault ends the run.
    Where a fault is in the release of a lease, a message is sent after the lease of the former one is free;
    a message that comes sooner keeps the lease, and the fault would not be reached.
    """
    run, left, to_come = Run(client), list(texts), list(faults)
    for _ in range(STEPS):
        fault = to_come.pop(0) if to_come else ""
        server = await deployment.start(*changes, fault=fault)
        try:
            await server.meet(client)
            for message_id in client.asked:
                await client.answered(message_id)
            while left:
                await client.ask(left.pop(0))
                await client.close()
                if "_release_" in fault:
                    await deployment.has_released(client.conversation_id, server)
                await server.meet(client)
        except Cut:
            await server.ended()
            run.asked_at_first_death = run.asked_at_first_death or len(client.asked)
            run.problems += after_a_death(deployment, run)
            if run.problems:
                return run
        except TimeoutError:
            run.problems.append("a frame that must come never came")
            return run
        else:
            if fault:
                run.survived = True
                await client.close()
            else:
                await finish(deployment, run, server)
            return run
    run.problems.append(f"not everything was answered by {STEPS} servers")
    return run


async def finish(deployment: Deployment, run: Run, server: Server) -> None:
    """Replay the whole conversation, then check what is stored."""
    run.problems += await heard_again(server, run.client)
    for each in deployment.servers:
        await each.kill()
    run.problems += in_the_end(deployment, run)


async def heard_again(server: Server, client: Client) -> list[str]:
    """Check that a replay from the beginning equals what was received, byte for byte."""
    again = Client(conversation_id=client.conversation_id)
    for each in (client, again):
        await server.meet(each)
        await each.catch_up()
        await each.close()
    return [] if again.seen == client.seen else ["a replay from the beginning is not what was received"]


def after_a_death(deployment: Deployment, *runs: Run, thoroughly: bool = True) -> list[str]:
    """Check that everything received is stored, and that the store is sound. Records the stored state."""
    problems: list[str] = []
    store = deployment.open_store()
    try:
        if thoroughly:
            problems += [str(found) for found in invariants.check(store)]
        for run in runs:
            stored = store.read_now(partial(_stored, run.client.conversation_id))
            problems += _acknowledged_but_not_stored(stored, run.client)
            run.deaths.append(stored)
    finally:
        store.close_now()
    return problems


def in_the_end(deployment: Deployment, *runs: Run) -> list[str]:
    """Check that each message has one answer, stored rows did not change, and the frames give the tables."""
    store, again = deployment.open_store(), deployment.empty_store()
    try:
        problems = [str(found) for found in invariants.check(store, quiesced=True)]
        for run in runs:
            run.end = store.read_now(partial(_stored, run.client.conversation_id))
            problems += _ended_well(run, run.end)
            if frames := store.read_now(partial(_frames, run.client.conversation_id)):
                problems += _projected(frames, store, again)
    finally:
        store.close_now()
        again.close_now()
    return problems


def _projected(frames: list[Frame], store: Store, again: Store) -> list[str]:
    try:
        again.write_now(partial(project, frames))
    except AnamnesisError as error:
        return [f"the frames cannot be recorded again: {error.problem.name}"]
    said, projected = (each.read_now(partial(tables, frames)) for each in (store, again))
    return [f"the frames give another {name}" for name in said if said[name] != projected[name]]


def _ended_well(run: Run, end: Stored) -> list[str]:
    client = run.client
    problems = client.problems + _acknowledged_but_not_stored(end, client)
    if end.stanzas != client.seen:
        problems.append("the client has not received what is stored, all of it and nothing else")
    if end.questions != {id: asked.text for id, asked in client.asked.items()}:
        problems.append("the stored messages are not those that were sent")
    problems += [f"{id} was answered {len(ends)} times" for id, ends in client.ends.items() if len(ends) != 1]
    for before, after in pairwise((*run.deaths, end)):
        problems += _kept(before, after)
    if run.deaths:
        problems += _taken_up(run.deaths[-1], end)
    return problems


def _acknowledged_but_not_stored(stored: Stored, client: Client) -> list[str]:
    problems = [
        f"{message_id} was acknowledged and is not stored"
        for message_id in client.acknowledged_ids
        if message_id not in stored.questions
    ]
    if list(stored.stanzas[: len(client.seen)]) != client.seen:
        problems.append("a stanza was sent that is not stored, or not so")
    return problems


def _kept(before: Stored, after: Stored) -> list[str]:
    """Check that rows stored at a crash did not change; an answer with a sentence is ended, not begun again.

    An answer that was complete at the crash has no second end: its turn is completed, without an error.
    """
    problems = []
    if after.stanzas[: len(before.stanzas)] != before.stanzas:
        problems.append("a stored stanza was changed")
    for message_id, turn in before.turns.items():
        now = after.turns[message_id]
        right = ("completed", None) if turn.result else ("failed", "interrupted")
        closed = (now.state, now.error) == right
        if (turn.is_over and now != turn) or (turn.begun and not turn.is_over and now.is_over and not closed):
            problems.append(f"{turn} became {now}")
    for message_id, text in before.answers.items():
        if text and after.answers[message_id] != text:
            problems.append(f"{message_id} was spoken over")
    return problems


def _taken_up(before: Stored, after: Stored) -> list[str]:
    """Check that a message without a sentence of its answer was answered after the crash, or given up."""
    problems = []
    for message_id, turn in before.turns.items():
        now = after.turns[message_id]
        set_aside = now.error == "poison_message" and now.attempts > ATTEMPTS
        if not turn.is_over and not turn.begun and now.state != "completed" and not set_aside:
            problems.append(f"{turn} became {now}")
    return problems


def _frames(conversation_id: str, tx: Transaction) -> list[Frame]:
    return tx.frames.in_order(conversation_id)


def _stored(conversation_id: str, tx: Transaction) -> Stored:
    messages = tx.messages.in_order(conversation_id)
    turns = {message.id: tx.turns.of_message(message.id) for message in messages}
    whole = {message.id for message in messages if message.completion_status == "completed"}
    answers = {message.id: message.contents for message in messages if message.message_role != "user"}
    return Stored(
        stanzas=[
            frame.payload for frame in tx.frames.in_order(conversation_id) if frame.direction == "server"
        ],
        questions={message.id: message.contents for message in messages if message.message_role == "user"},
        answers=answers,
        turns={
            id: Turn(
                turn.number,
                turn.state,
                turn.attempts,
                begun=bool(answers.get(turn.answer_id or "")),
                result=turn.answer_id in whole,
                error=turn.error,
            )
            for id, turn in turns.items()
            if turn is not None
        },
    )
