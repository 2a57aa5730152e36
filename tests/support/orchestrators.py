"""Orchestrators for tests: each has its own store, and a brain that follows a script."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from agents import roster
from agents.local import LocalBrain
from agents.models.scripted import ScriptedBrain, ScriptedRecall
from agents.ports import Brain, Embedder, Recall
from agents.roster import Roster
from agents.safety import language
from agents.safety.replies import output, wording
from agents.tools.built_in import built_in
from agents.tools.toolbox import Toolbox
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.mirrors.no_mirror import NoMirror
from memory_blocks.models import ConversationHistory, Label
from memory_blocks.ports import BlockMirror, Clock
from orchestrator.api.app import create_app
from orchestrator.api.authentication import Authentication
from orchestrator.api.server import listening
from orchestrator.connection.handlers import ConversationLimits
from orchestrator.ops.clock import SystemClock
from orchestrator.ops.foreground import Foreground
from orchestrator.ops.waiting import Waiting
from orchestrator.orchestrator import Orchestrator, OrchestratorOptions
from orchestrator.prompts import PromptFiles
from orchestrator.remember.utterances import Remembering
from orchestrator.safety.alerts import AlertSender
from orchestrator.safety.monitor import LearnedChecks, SafetyMonitor
from orchestrator.settings import load as load_settings
from orchestrator.settings import shipped_config
from orchestrator.store.checks.evidence import Departure, departures
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Message, Turn, metadata
from orchestrator.turn.block_sync import BlockSync
from orchestrator.turn.outbox import Outbox
from orchestrator.turn.services import TurnAgents, TurnLimits, TurnMemory, TurnServices
from orchestrator.wire.ids import ConversationId, PersonId, RandomIds
from orchestrator.wire.messages import ModelInfo, ServerInfo
from orchestrator.wiring import load_prompts
from tests.support.brains.models import a_router, minilm, the_guard, the_moves
from tests.support.memory.memories import EMBEDDER, long_term_recall
from tests.support.stores import empty_store

ANN, BOB = "ann", "bob"
IDLE = timedelta(minutes=30)


@cache
def agents() -> Roster:
    """The specialists as shipped."""
    return roster.load(shipped_config() / "agents.toml")


def using(toolbox: Toolbox | None) -> Roster:
    """The specialists; each may use every tool of the test's toolbox."""
    if toolbox is None:
        return agents()
    names = tuple(tool.name for tool in toolbox.tools)
    everyone = {name: each.model_copy(update={"tools": names}) for name, each in agents().agents.items()}
    return agents().model_copy(update={"agents": everyone})


@cache
def shipped_prompts(region: str = "", *, in_blocks: bool = False) -> PromptFiles:
    """The prompts as shipped, filled in for that region; with `in_blocks`, for agents that see blocks."""
    given = {"safety.region": region, "letta.base_url": "http://localhost" if in_blocks else ""}
    return load_prompts(load_settings(given=given, environment={}), agents())


@cache
def local_brain() -> LocalBrain:
    """The brain without a model, as shipped. All conversations of a process share it, as in a server."""
    return LocalBrain(agents(), a_router(), shipped_config() / "local", minilm())


@cache
def a_monitor() -> SafetyMonitor:
    """The shipped safety monitor, without a region. It waits long for the store."""
    rules, guard = shipped_config() / "safety", the_guard()
    return SafetyMonitor(
        guard,
        output.load(rules),
        wording.load(rules, ""),
        language.load(rules, guard.vocabulary),
        LearnedChecks(moves=the_moves()),
        store_wait_seconds=60,
    )


@cache
def built_in_tools() -> Toolbox:
    """The built-in tools, with the date of today."""
    return Toolbox(built_in(lambda: SystemClock().now().date()))


def _today(clock: Clock) -> date:
    return clock.now().date()


def a_store(url: str, clock: Clock | None = None) -> Store:
    """The store at an address."""
    return Store.open(url, clock=clock or SystemClock(), ids=RandomIds(), synchronous="OFF", connections=2)


def an_orchestrator(
    url: str,
    brain: Brain | None = None,
    *,
    embedder: Embedder | None = None,
    recall: Recall | None = None,
    toolbox: Toolbox | None = None,
    mirror: BlockMirror | None = None,
    monitor: SafetyMonitor | None = None,
    limits: Limits = DEFAULTS,
    clock: Clock | None = None,
    deadline_seconds: float = 30.0,
    attempts: int = 3,
    lease_seconds: float = 15.0,
    bad_frames_per_minute: int = 100,
    waiting: int = 100,
    waiting_everywhere: int = 10_000,
    trace_content_characters: int = 1000,
    tokens_per_person_and_day: int = 0,
    server_info: Callable[[], ServerInfo] | None = None,
    alerts: Callable[[Store], AlertSender] | None = None,
    remembers: bool = False,
    follow_up_days: float = 0,
    foreground: Foreground | None = None,
) -> Orchestrator:
    """An orchestrator over the store at that address; `async with an_orchestrator(…).open()` runs it."""
    tools = toolbox or (built_in_tools() if clock is None else Toolbox(built_in(partial(_today, clock))))
    clock = clock or SystemClock()
    brain = brain or ScriptedBrain()
    ledger = Ledger(clock, limits, agents().agent_types)
    vectors = embedder or (minilm() if isinstance(brain, LocalBrain) else EMBEDDER)

    def services(outbox: Outbox) -> TurnServices:
        return TurnServices(
            TurnAgents(brain, vectors, using(toolbox), shipped_prompts(), tools),
            TurnMemory(
                ledger,
                BlockSync(mirror or NoMirror(), ledger, outbox, Waiting(0.2, 0.2), rest_seconds=0),
                recall or (long_term_recall(outbox.store, clock, vectors) if remembers else ScriptedRecall()),
                Remembering(outbox.store, vectors) if remembers else None,
            ),
            monitor or a_monitor(),
            outbox,
            TurnLimits(
                deadline_seconds=deadline_seconds,
                attempts=attempts,
                trace_content_characters=trace_content_characters,
                tokens_per_person_and_day=tokens_per_person_and_day,
                follow_up_days=follow_up_days,
            ),
            foreground or Foreground(),
        )

    return Orchestrator(
        a_store(url, clock),
        services,
        RandomIds(),
        server_info
        or partial(
            ServerInfo,
            conversation_id=ConversationId("none"),
            model=ModelInfo(name=brain.name, provider="anamnesis"),
            backend="embedded",
            agents=tuple(sorted(agents().agent_types)),
        ),
        OrchestratorOptions(
            lease_seconds=lease_seconds,
            idle=IDLE,
            limits=ConversationLimits(
                waiting, waiting_everywhere, trace_content_characters, bad_frames_per_minute
            ),
            alerts=alerts,
        ),
    )


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store, on SQLite unless `on_both_databases` marks the test.

    When the test has ended, no turn may be running there and every invariant must hold.
    """
    with empty_store(getattr(request, "param", "sqlite"), request, tmp_path) as url:
        yield url
        _assert_sound(url)


@pytest.fixture
def embedded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same on SQLite only, for tests that do not depend on the database."""
    with empty_store("sqlite", request, tmp_path) as url:
        yield url
        _assert_sound(url)


def _assert_sound(url: str) -> None:
    store = a_store(url)
    try:
        assert check(store, quiesced=True) == []
        assert store.read_now(_departures) == []
    finally:
        store.close_now()


def _departures(tx: Transaction) -> list[Departure]:
    """The places where blocks, revisions or archive differ from what their traces say was written."""
    conversations = tx.unit.connection.execute("SELECT id FROM alicia_conversations").fetchall()
    return [each for (conversation_id,) in conversations for each in departures(tx, conversation_id)]


# --- what an orchestrator has stored -----------------------------------------------------------------------


async def messages(orchestrator: Orchestrator, conversation_id: str) -> list[Message]:
    """The messages of a conversation, in order."""
    return await orchestrator.store.read(lambda tx: tx.messages.in_order(conversation_id))


async def message(orchestrator: Orchestrator, message_id: str) -> Message:
    """One message."""
    found = await orchestrator.store.read(lambda tx: tx.messages.get(message_id))
    assert found is not None
    return found


async def turn(orchestrator: Orchestrator, message_id: str) -> Turn:
    """The turn that a message has."""
    found = await orchestrator.store.read(lambda tx: tx.turns.of_message(message_id))
    assert found is not None
    return found


async def meta(orchestrator: Orchestrator, ref: str) -> dict[str, str]:
    """The metadata of a row."""
    return {pair.key: pair.value for pair in await orchestrator.store.read(lambda tx: tx.meta.of(ref))}


async def history(orchestrator: Orchestrator, conversation_id: str) -> ConversationHistory:
    """The block conversation_history."""
    blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(conversation_id))
    return ConversationHistory.model_validate_json(blocks[Label.CONVERSATION_HISTORY].value or "")


async def rows(orchestrator: Orchestrator, query: str) -> list[tuple[Any, ...]]:
    """The rows that a query in plain SQL finds."""
    found = await orchestrator.store.read(lambda tx: tx.unit.connection.execute(query).fetchall())
    return [tuple(row) for row in found]


async def everything(orchestrator: Orchestrator) -> dict[str, Any]:
    """The number of rows per table, and the rows of the conversations. A refusal changes none of it."""
    counted = [f"SELECT '{name}', count(*) FROM {name}" for name in metadata.tables]  # noqa: S608
    own = "SELECT id, last_client_stanza_id, last_server_stanza_id, preferences FROM alicia_conversations"
    found: dict[str, Any] = dict(await rows(orchestrator, " UNION ALL ".join(counted)))
    return found | {"counts": sorted(map(str, await rows(orchestrator, own)))}


@asynccontextmanager
async def over_websockets(orchestrator: Orchestrator, folder: Path) -> AsyncIterator[Callable[[], connect]]:
    """A real server for the orchestrator; the function that it yields opens another WebSocket of Ann."""
    authentication = Authentication(folder, session_seconds=3600)
    header = {"Authorization": f"Bearer {authentication.keys.of(PersonId(ANN))}"}
    async with listening(create_app(orchestrator, authentication)) as server:
        yield lambda: connect(f"ws://127.0.0.1:{server.port}/v1/ws", additional_headers=header)
