"""What must hold after every death: for the client's log, for the tables, and for both together."""

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
from tests.projection import project, tables

ATTEMPTS = 3
"""After so many deaths before its answer has begun, a message is set aside."""
STEPS = 12
"""How many servers may be needed until everything is said: a lost stanza shows as waiting for ever."""


@dataclass(frozen=True)
class Turn:
    """What became of one message."""

    number: int
    state: str
    attempts: int
    begun: bool
    result: bool
    """Whether its answer stands there whole, as a safety answer does that is not streamed."""
    error: str | None

    @property
    def is_over(self) -> bool:
        """Whether nobody works on it any more."""
        return self.state in ("completed", "failed")


@dataclass(frozen=True)
class Stored:
    """What the tables hold of a conversation at one moment."""

    stanzas: Sequence[bytes]
    questions: dict[str, str]
    answers: dict[str, str]
    turns: dict[str, Turn]


@dataclass
class Run:
    """A conversation through one or more deaths."""

    client: Client
    deaths: list[Stored] = field(default_factory=list)
    end: Stored | None = None
    problems: list[str] = field(default_factory=list)
    asked_at_first_death: int = 0
    over: bool = False
    survived: bool = False
    """Whether a server came to the end without passing the point at which it was to die."""


async def converse(
    deployment: Deployment, client: Client, texts: Iterable[str], *changes: str, faults: Iterable[str] = ()
) -> Run:
    """Say everything and hear every answer, with a new server after every death; the last one is well.

    Each server but the last is to die at one of `faults`; one that does not ends the run.
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
    """Read everything once more from the beginning, then look at what is stored."""
    run.problems += await heard_again(server, run.client)
    for each in deployment.servers:
        await each.kill()
    run.problems += in_the_end(deployment, run)


async def heard_again(server: Server, client: Client) -> list[str]:
    """A replay from the beginning is what was received, byte for byte."""
    again = Client(conversation_id=client.conversation_id)
    for each in (client, again):
        await server.meet(each)
        await each.catch_up()
        await each.close()
    return [] if again.seen == client.seen else ["a replay from the beginning is not what was received"]


def after_a_death(deployment: Deployment, *runs: Run, thoroughly: bool = True) -> list[str]:
    """Nothing was told that is not stored, and what is stored is sound. Keeps how it was."""
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
    """All was answered once, what was stored at a death is as it was, and the frames give the tables."""
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
    """What was stored at a death is as it was; an answer that had begun is closed, and not spoken over.

    One that was told whole by then has no second end: its turn is completed, with no error after it.
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
        if after.answers[message_id] != text:
            problems.append(f"{message_id} was spoken over")
    return problems


def _taken_up(before: Stored, after: Stored) -> list[str]:
    """What was acknowledged and not begun at the last death was answered then, or set aside."""
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
    return Stored(
        stanzas=[
            frame.payload for frame in tx.frames.in_order(conversation_id) if frame.direction == "server"
        ],
        questions={message.id: message.contents for message in messages if message.message_role == "user"},
        answers={message.id: message.contents for message in messages if message.message_role != "user"},
        turns={
            id: Turn(
                turn.number,
                turn.state,
                turn.attempts,
                begun=turn.answer_id is not None,
                result=turn.answer_id in whole,
                error=turn.error,
            )
            for id, turn in turns.items()
            if turn is not None
        },
    )
