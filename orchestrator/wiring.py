"""What stands behind each port today: the one place that chooses adapters."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import lexicon, roster
from agents.errors import AgentError
from agents.lexicon import Lexicon
from agents.ports import Embedded, Embedder, Recalled
from agents.roster import Roster
from agents.safety import ears, guard, language, output, wording
from agents.safety.ears import Ears
from agents.safety.guard import Guard
from agents.safety.language import Languages
from agents.tools.built_in import built_in
from agents.tools.toolbox import Toolbox
from memory_blocks.ledger import Ledger
from memory_blocks.limits import Limits
from memory_blocks.mirrors.nowhere import Nowhere
from orchestrator.alerts import AlertDesk
from orchestrator.clock import SystemClock
from orchestrator.desk import Allowance
from orchestrator.errors import BAD_SETTING, LETTA_NOT_CONFIGURED, AnamnesisError, as_ours
from orchestrator.house import House
from orchestrator.minds import choose
from orchestrator.model_files import ModelFiles
from orchestrator.outbox import Outbox
from orchestrator.presence import Presence
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import Settings, shipped_config
from orchestrator.shown import Shown
from orchestrator.store.database import Store
from orchestrator.turn import Stations
from orchestrator.waiting import Waiting
from orchestrator.watch import Watch
from orchestrator.wire.ids import ConversationId, RandomIds
from orchestrator.wire.messages import ServerInfo

if TYPE_CHECKING:
    from agents.router import Router
    from orchestrator.letta_agents import AgentRegistry
    from orchestrator.letta_upkeep import Upkeep
    from orchestrator.rooms import Rooms


class NothingRecalled:
    """Long-term memory is not searched yet: nothing is ever found."""

    async def search(self, query: Embedded, person_id: str) -> Recalled:
        """Nothing."""
        return Recalled()


def open_store(settings: Settings) -> Store:
    """The database that the settings name; the embedded one is made and brought up when needed."""
    embedded = not settings.database.url.get_secret_value()
    if embedded:
        settings.data.prepare()
    return Store.open(
        settings.database_url(),
        clock=SystemClock(),
        ids=RandomIds(),
        create=embedded,
        busy_seconds=settings.database.busy_timeout_seconds,
        synchronous=settings.database.synchronous,
    )


def configured(name: str, overlay: Path | None) -> Path:
    """A file or folder of the configuration: the overlay's, where it has one, else the shipped one."""
    if overlay is not None and (overlay / name).exists():
        return overlay / name
    return shipped_config() / name


def load_roster(overlay: Path | None = None, *, to_answer: bool = True) -> Roster:
    """The agents that `agents.toml` names."""
    try:
        return roster.load(
            configured("agents.toml", overlay), configured("interviews", overlay), to_answer=to_answer
        )
    except AgentError as error:
        raise as_ours(error) from None


def load_prompts(agents: Roster, overlay: Path | None = None) -> PromptShelf:
    """The prompts, the overlay's before those shipped; each agent's must be there before its first word."""
    folders = [folder / "prompts" for folder in (overlay, shipped_config()) if folder is not None]
    prompts = PromptShelf(*folders)
    for agent in agents.agents.values():
        prompts.prompt(agent)
    return prompts


def load_toolbox(agents: Roster) -> Toolbox:
    """The tools of the house; an agent that is to use another one is refused."""
    toolbox = Toolbox(built_in(lambda: SystemClock().now().date()))
    try:
        roster.refuse_unknown_tools(agents, [tool.name for tool in toolbox.tools])
    except AgentError as error:
        raise as_ours(error) from None
    return toolbox


def load_lexicon(overlay: Path | None = None) -> Lexicon:
    """The words by which the local brain understands."""
    try:
        return lexicon.load(configured("lexicon.toml", overlay))
    except AgentError as error:
        raise as_ours(error) from None


def model_files(settings: Settings) -> ModelFiles:
    """The files of the embedding model, wherever they should be."""
    return ModelFiles.shipped(shipped_config(), settings.models.dir)


def load_embedder(settings: Settings) -> Embedder:
    """The embedding model, loaded from its files; takes about half a second, so not on a loop."""
    files = model_files(settings)
    folder = files.checked()

    from agents.embedders.minilm import MiniLM
    from agents.embedders.remembering import RememberingEmbedder

    try:
        return RememberingEmbedder(MiniLM(folder, files.manifest.label, settings.models.threads))
    except AgentError as error:
        raise as_ours(error) from None


@cache
def load_guard() -> Guard:
    """The guard, with the rules as they were shipped: no overlay and no conversation changes them."""
    try:
        return guard.load(shipped_config() / "safety")
    except AgentError as error:
        raise as_ours(error) from None


def load_languages(rules: Guard) -> Languages:
    """What tells other languages from the English that the rules understand."""
    try:
        return language.load(shipped_config() / "safety", rules.vocabulary)
    except AgentError as error:
        raise as_ours(error) from None


def load_ears(settings: Settings, embedder: Embedder) -> Ears:
    """The second pair of ears; they learn their phrases once, which takes a minute."""
    return ears.load(shipped_config() / "safety" / "phrases", embedder, settings.models.dir)


def build_watch(settings: Settings, embedder: Embedder) -> Watch:
    """The guard's place in the house, with whom to call where it stands; refused where nobody knows whom."""
    folder, region = shipped_config() / "safety", settings.safety.region
    try:
        if region and region not in (known := wording.known_regions(folder)):
            rule = f"no numbers to call are known for it; name one of {', '.join(known)}, or none"
            where = settings.origins.get("safety.region", "")
            raise AnamnesisError(BAD_SETTING, key="safety.region", where=where, rule=rule)
        rules = load_guard()
        return Watch(
            rules,
            output.load(folder),
            wording.load(folder, region),
            load_languages(rules),
            load_ears(settings, embedder),
            alerts=bool(settings.safety.alert_url.get_secret_value()),
        )
    except AgentError as error:
        raise as_ours(error) from None


def load_router(settings: Settings, agents: Roster, embedder: Embedder) -> "Router":
    """What was learned from the roster's examples; it is learned now if it never was, which takes seconds."""
    from agents.router import train_router

    return train_router(agents.examples, agents.sure_enough, embedder, settings.models.dir)


def build_ledger(settings: Settings, agents: Roster) -> Ledger:
    """The one door to the blocks, with the limits and for the agents that are configured."""
    return Ledger(
        SystemClock(),
        Limits(**settings.blocks.model_dump()),
        agents.agent_types,
        settings.limits.trace_content_characters,
    )


def build_house(settings: Settings, overlay: Path | None = None) -> House:
    """A house on the brain and the database that the settings name; `overlay` is a folder of configuration.

    Loading the embedding model takes a moment, so a loop hands this to a thread.
    """
    from agents.brains.local import LocalBrain

    store = open_store(settings)  # first: a database that cannot be used is told before models are loaded
    agents = load_roster(overlay)
    prompts, toolbox = load_prompts(agents, overlay), load_toolbox(agents)
    embedder = load_embedder(settings)
    local = LocalBrain(agents, load_router(settings, agents, embedder), load_lexicon(overlay))
    ledger = build_ledger(settings, agents)
    watch = build_watch(settings, embedder)
    registry = load_registry(settings, store, agents, prompts)
    mind = choose(settings, local, agents, prompts, toolbox, registry.agent_for if registry else None)

    def stations(outbox: Outbox) -> Stations:
        return Stations(
            brain=mind.brain,
            embedder=embedder,
            recall=NothingRecalled(),
            roster=agents,
            prompts=prompts,
            toolbox=toolbox,
            ledger=ledger,
            shown=build_shown(settings, registry, ledger, outbox),
            watch=watch,
            outbox=outbox,
            deadline_seconds=settings.turn.deadline_seconds,
            attempts=settings.turn.attempts,
        )

    async def close() -> None:
        await mind.close()
        if registry is not None:
            await registry.close()

    def server_info() -> ServerInfo:
        now = mind.now()
        return ServerInfo(
            conversation_id=ConversationId("none"),
            model=now.model,
            backend=now.backend,
            agents=tuple(sorted(agents.agent_types)),
        )

    beside: list[Callable[[Stations], Coroutine[Any, Any, None]]] = []
    if registry is not None:
        beside.append(lambda walk: build_upkeep(registry, store, walk.shown).keep_looking())
    if (attention := mind.attention) is not None:
        beside.append(lambda _: attention.keep_looking())

    house = House(
        store,
        stations,
        RandomIds(),
        server_info,
        lease_seconds=settings.turn.lease_seconds,
        bad_frames_per_minute=settings.limits.bad_frames_per_minute,
        idle=timedelta(minutes=settings.session.idle_minutes),
        allowance=Allowance(settings.limits.waiting_messages, settings.limits.trace_content_characters),
        presence=_presence(settings),
        alerts=_alerts(settings),
        close=close,
        beside=beside,
    )
    if registry is not None:
        house.tell_of_beginnings(registry.prepare)
        house.include("agents", registry.answers)
    if mind.answers is not None:
        house.include("model", mind.answers)
    return house


def load_registry(
    settings: Settings, store: Store, agents: Roster, prompts: PromptShelf
) -> "AgentRegistry | None":
    """Who knows the agents on the Letta server; None where none is configured."""
    letta = settings.letta
    if not letta.base_url:
        return None
    from orchestrator.letta_agents import AgentRegistry, Recipes
    from orchestrator.letta_server import LettaServer

    server = LettaServer(letta.base_url, letta.api_key.get_secret_value(), seconds=letta.timeout_seconds)
    return AgentRegistry(
        server,
        store,
        Recipes(letta, agents, prompts),
        Limits(**settings.blocks.model_dump()),
        tag=letta.tag,
        holder=RandomIds().new("proc_"),
    )


def build_shown(
    settings: Settings, registry: "AgentRegistry | None", ledger: Ledger, outbox: Outbox
) -> Shown:
    """Where the blocks are shown: in Letta, where one is configured."""
    if registry is None:
        return Shown(Nowhere(), ledger, outbox)
    from memory_blocks.mirrors.letta import LettaMirror
    from orchestrator.letta_blocks import LettaPlace, StoredJournal

    silent = settings.letta.show_seconds
    waiting = Waiting(silent, max(silent, settings.letta.timeout_seconds), registry.server.heard_at)
    place = LettaPlace(registry, outbox.store, waiting.halved())
    return Shown(LettaMirror(place, StoredJournal(outbox.store)), ledger, outbox, waiting)


def build_upkeep(registry: "AgentRegistry", store: Store, shown: Shown) -> "Upkeep":
    """Who looks after what stands in Letta."""
    from orchestrator.letta_upkeep import Upkeep

    return Upkeep(registry, store, shown, holder=RandomIds().new("proc_"))


@asynccontextmanager
async def open_upkeep(settings: Settings, overlay: Path | None = None) -> AsyncIterator["Upkeep"]:
    """The same for a command, while the block runs; refused where no Letta is configured."""
    agents = load_roster(overlay)
    store = open_store(settings)
    try:
        registry = load_registry(settings, store, agents, load_prompts(agents, overlay))
        if registry is None:
            raise AnamnesisError(LETTA_NOT_CONFIGURED)
        try:
            ledger = build_ledger(settings, agents)
            yield build_upkeep(registry, store, build_shown(settings, registry, ledger, Outbox(store)))
        finally:
            await registry.close()
    finally:
        await store.close()


@asynccontextmanager
async def open_rooms(settings: Settings, house: House) -> AsyncIterator["Rooms | None"]:
    """The LiveKit rooms of the conversations while the block runs; None where it is not configured."""
    server = settings.livekit
    if not server.url:
        yield None
        return
    if not (server.api_key and server.api_secret):
        rule = "needs livekit.api_key and livekit.api_secret beside it"
        where = settings.origins.get("livekit.url", "")
        raise AnamnesisError(BAD_SETTING, key="livekit.url", where=where, rule=rule)

    from orchestrator.rooms import Rooms
    from orchestrator.transports.livekit import settle
    from orchestrator.transports.livekit_server import LiveKitServer

    livekit = LiveKitServer(
        server.url, server.api_key.get_secret_value(), server.api_secret.get_secret_value()
    )
    house.include("livekit", livekit.answers)
    rooms = Rooms(
        livekit,
        house.store,
        house.attend,
        holder=house.holder,
        is_gone=house.is_gone,
        look_seconds=server.look_seconds,
    )
    house.tell_of_beginnings(rooms.prepare)
    async with rooms.open():
        yield rooms
    await settle()


def _alerts(settings: Settings) -> Callable[[Store], AlertDesk] | None:
    """Who tells staff, where somebody is to be told."""
    url = settings.safety.alert_url.get_secret_value()
    if not url:
        return None
    from orchestrator.webhook import Webhook

    webhook = Webhook(url, settings.safety.alert_timeout_seconds)
    return lambda store: AlertDesk(store, webhook, settings.safety.alert_attempts)


def _presence(settings: Settings) -> Presence | None:
    """Who is alive can be told only where all processes are on one machine: with the embedded database."""
    if settings.database.url.get_secret_value():
        return None
    return Presence(settings.data.prepare() / "present", RandomIds().new("proc_"))
