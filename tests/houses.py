"""Houses to test: over a store of the test's own, with a brain that does what it is told."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from agents import lexicon, roster
from agents.brains.local import LocalBrain
from agents.brains.scripted import ScriptedBrain, ScriptedRecall
from agents.embedders.scripted import WordEmbedder
from agents.ports import Brain, Embedder, Recall
from agents.roster import Roster
from agents.safety import language, output, wording
from agents.tools.built_in import built_in
from agents.tools.toolbox import Toolbox
from memory_blocks.ledger import Ledger
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.mirrors.nowhere import Nowhere
from memory_blocks.models import ConversationHistory, Label
from memory_blocks.ports import BlockMirror, Clock
from memory_blocks.trace import SNIPPET
from orchestrator.alerts import AlertDesk
from orchestrator.api.app import create_app
from orchestrator.api.keys import Keys
from orchestrator.api.server import listening
from orchestrator.clock import SystemClock
from orchestrator.desk import Allowance
from orchestrator.house import House
from orchestrator.outbox import Outbox
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import shipped_config
from orchestrator.shown import Shown
from orchestrator.store.database import Store, Transaction
from orchestrator.store.evidence import Departure, departures
from orchestrator.store.invariants import check
from orchestrator.store.rows import Message, Turn
from orchestrator.store.tables import metadata
from orchestrator.turn import Stations
from orchestrator.waiting import Waiting
from orchestrator.watch import Watch
from orchestrator.wire.ids import ConversationId, PersonId, RandomIds
from orchestrator.wire.messages import ModelInfo, ServerInfo
from orchestrator.wiring import load_guard
from tests.models import a_router, minilm
from tests.stores import empty_store

ANN, BOB = "ann", "bob"
IDLE = timedelta(minutes=30)


@cache
def agents() -> Roster:
    """Who answers, as shipped."""
    return roster.load(shipped_config() / "agents.toml")


def using(toolbox: Toolbox | None) -> Roster:
    """The same, each of whom may use every tool of a test's own box."""
    if toolbox is None:
        return agents()
    names = tuple(tool.name for tool in toolbox.tools)
    everyone = {name: each.model_copy(update={"tools": names}) for name, each in agents().agents.items()}
    return agents().model_copy(update={"agents": everyone})


def local_brain() -> LocalBrain:
    """The brain without a model, as shipped."""
    return LocalBrain(agents(), a_router(), lexicon.load(shipped_config() / "lexicon.toml"))


@cache
def a_watch() -> Watch:
    """The guard as shipped, where nobody knows the region; it leaves the store its time."""
    rules = shipped_config() / "safety"
    heard = load_guard()
    return Watch(
        heard,
        output.load(rules),
        wording.load(rules, ""),
        language.load(rules, heard.vocabulary),
        patience=60,
    )


def a_store(url: str, clock: Clock | None = None) -> Store:
    """The store at an address."""
    return Store.open(url, clock=clock or SystemClock(), ids=RandomIds(), synchronous="OFF", connections=2)


def a_house(
    url: str,
    brain: Brain | None = None,
    *,
    embedder: Embedder | None = None,
    recall: Recall | None = None,
    toolbox: Toolbox | None = None,
    mirror: BlockMirror | None = None,
    watch: Watch | None = None,
    limits: Limits = DEFAULTS,
    clock: Clock | None = None,
    deadline_seconds: float = 30.0,
    attempts: int = 3,
    lease_seconds: float = 15.0,
    bad_frames_per_minute: int = 100,
    waiting: int = 100,
    snippet: int = SNIPPET,
    server_info: Callable[[], ServerInfo] | None = None,
    alerts: Callable[[Store], AlertDesk] | None = None,
) -> House:
    """A house over the store at that address; `async with a_house(…).open()` lets people in."""
    clock = clock or SystemClock()
    brain = brain or ScriptedBrain()
    ledger = Ledger(clock, limits, agents().agent_types, snippet)

    def stations(outbox: Outbox) -> Stations:
        return Stations(
            brain=brain,
            embedder=embedder or (minilm() if isinstance(brain, LocalBrain) else WordEmbedder()),
            recall=recall or ScriptedRecall(),
            roster=using(toolbox),
            prompts=PromptShelf(shipped_config() / "prompts"),
            toolbox=toolbox or Toolbox(built_in(lambda: clock.now().date())),
            ledger=ledger,
            shown=Shown(mirror or Nowhere(), ledger, outbox, Waiting(0.2, 0.2), rest_seconds=0),
            watch=watch or a_watch(),
            outbox=outbox,
            deadline_seconds=deadline_seconds,
            attempts=attempts,
        )

    return House(
        a_store(url, clock),
        stations,
        RandomIds(),
        server_info
        or partial(
            ServerInfo,
            conversation_id=ConversationId("none"),
            model=ModelInfo(name=brain.name, provider="anamnesis"),
            backend="embedded",
            agents=tuple(sorted(agents().agent_types)),
        ),
        lease_seconds=lease_seconds,
        bad_frames_per_minute=bad_frames_per_minute,
        idle=IDLE,
        allowance=Allowance(waiting, snippet),
        alerts=alerts,
    )


@pytest.fixture
def address(database_url: str) -> Iterator[str]:
    """A store's address. When the test has ended, nothing may be under way there and all invariants hold."""
    yield database_url
    _assert_sound(database_url)


@pytest.fixture
def embedded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same on the embedded database alone, for what does not hang on which one it is."""
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
    """Where blocks, revisions and archive are not what their traces say was written."""
    conversations = tx.unit.connection.execute("SELECT id FROM alicia_conversations").fetchall()
    return [each for (conversation_id,) in conversations for each in departures(tx, conversation_id)]


# --- what a house has kept ----------------------------------------------------------------------------------


async def messages(house: House, conversation_id: str) -> list[Message]:
    """The messages of a conversation, in order."""
    return await house.store.read(lambda tx: tx.messages.in_order(conversation_id))


async def message(house: House, message_id: str) -> Message:
    """One message."""
    found = await house.store.read(lambda tx: tx.messages.get(message_id))
    assert found is not None
    return found


async def turn(house: House, message_id: str) -> Turn:
    """The turn that a message has."""
    found = await house.store.read(lambda tx: tx.turns.of_message(message_id))
    assert found is not None
    return found


async def meta(house: House, ref: str) -> dict[str, str]:
    """What is kept about a row."""
    return {pair.key: pair.value for pair in await house.store.read(lambda tx: tx.meta.of(ref))}


async def history(house: House, conversation_id: str) -> ConversationHistory:
    """The block that remembers the turns."""
    blocks = await house.store.read(lambda tx: tx.blocks.load(conversation_id))
    return ConversationHistory.model_validate_json(blocks[Label.CONVERSATION_HISTORY].value or "")


async def rows(house: House, query: str) -> list[tuple[Any, ...]]:
    """What a query of plain SQL finds."""
    found = await house.store.read(lambda tx: tx.unit.connection.execute(query).fetchall())
    return [tuple(row) for row in found]


async def everything(house: House) -> dict[str, Any]:
    """How many rows each table has, and what conversations' own rows say: a refusal changes none of it."""
    counted = [f"SELECT '{name}', count(*) FROM {name}" for name in metadata.tables]  # noqa: S608
    own = "SELECT id, last_client_stanza_id, last_server_stanza_id, preferences FROM alicia_conversations"
    found: dict[str, Any] = dict(await rows(house, " UNION ALL ".join(counted)))
    return found | {"counts": sorted(map(str, await rows(house, own)))}


@asynccontextmanager
async def over_websockets(house: House, folder: Path) -> AsyncIterator[Callable[[], connect]]:
    """A real server in front of the house; what is given opens another WebSocket of Ann's to it."""
    keys = Keys(folder)
    header = {"Authorization": f"Bearer {keys.of(PersonId(ANN))}"}
    async with listening(create_app(house, keys)) as server:
        yield lambda: connect(f"ws://127.0.0.1:{server.port}/v1/ws", additional_headers=header)
