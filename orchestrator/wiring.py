"""Builds an orchestrator from the settings: the only place that chooses an adapter for each port."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import roster
from agents.ports import Brain, Embedder, QueriesAndPassages
from agents.roster import Roster
from agents.safety import classifier, language
from agents.safety.classifier import DangerClassifier
from agents.safety.conversation import moves
from agents.safety.language import Languages
from agents.safety.replies import output, wording
from agents.safety.rules import guard
from agents.safety.rules.guard import Guard
from agents.tools.built_in import built_in
from agents.tools.toolbox import Toolbox
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import Limits
from memory_blocks.mirrors.no_mirror import NoMirror
from orchestrator import letta_settings
from orchestrator.brain_selection import SelectedBrain, chat_model, choose, our_errors
from orchestrator.connection.handlers import ConversationLimits
from orchestrator.errors import BAD_SETTING, LETTA_NOT_CONFIGURED, AnamnesisError
from orchestrator.model_files import E5, ModelFiles
from orchestrator.ops.clock import SystemClock
from orchestrator.ops.waiting import Waiting
from orchestrator.orchestrator import BackgroundWork, Orchestrator, OrchestratorOptions
from orchestrator.presence import Presence
from orchestrator.prompts import PromptFiles, PromptValues
from orchestrator.recall import recipe
from orchestrator.recall.context.collector import TraceConfig
from orchestrator.recall.port import LongTermRecall
from orchestrator.recall.searcher import Searcher
from orchestrator.recall.service import MemoryService
from orchestrator.remember.creators.background import BackgroundMemories
from orchestrator.remember.utterances import Remembering
from orchestrator.safety.alerts import AlertSender
from orchestrator.safety.monitor import LearnedChecks, SafetyMonitor
from orchestrator.settings import Settings, configured, shipped_config
from orchestrator.store.engine.database import Store
from orchestrator.turn.block_sync import BlockSync
from orchestrator.turn.outbox import Outbox
from orchestrator.turn.services import TurnAgents, TurnLimits, TurnMemory, TurnServices
from orchestrator.wire.ids import ConversationId, RandomIds
from orchestrator.wire.messages import ServerInfo
from orchestrator.workflows.building import build_creator, settle_after_commits

E5_UNRELATED = 0.7
"""As intfloat describes e5: its cosines lie between 0.7 and 1."""

if TYPE_CHECKING:
    from agents.evaluation.follow_ups import Enrich
    from agents.models.servers.openai import ChatModel
    from agents.routing.router import Router
    from orchestrator.api.access.oidc import OidcTokens
    from orchestrator.connection.rooms import Rooms
    from orchestrator.letta.agents import AgentRegistry
    from orchestrator.letta.upkeep import Upkeep


def open_store(settings: Settings, overlay: Path | None = None) -> Store:
    """Open the database that the settings name. The embedded one is created and migrated if necessary.

    After each change of a memory, the ledger of its conversation follows.
    """
    embedded = not settings.database.url.get_secret_value()
    if embedded:
        settings.data.prepare()
    store = Store.open(
        settings.database_url(),
        clock=SystemClock(),
        ids=RandomIds(),
        create=embedded,
        busy_seconds=settings.database.busy_timeout_seconds,
        synchronous=settings.database.synchronous,
    )
    store.settle = settle_after_commits(settings, store, overlay)
    return store


def load_roster(overlay: Path | None = None, *, to_answer: bool = True) -> Roster:
    """The specialists that `agents.toml` names."""
    with our_errors():
        return roster.load(
            configured("agents.toml", overlay), configured("interviews", overlay), to_answer=to_answer
        )


def load_prompts(settings: Settings, agents: Roster, overlay: Path | None = None) -> PromptFiles:
    """The prompt files; the overlay goes before the shipped ones. Raises if a prompt is missing or wrong."""
    folders = [folder / "prompts" for folder in (overlay, shipped_config()) if folder is not None]
    rules, region = shipped_config() / "safety", settings.safety.region
    with our_errors():
        values = PromptValues(
            region=region,
            numbers=wording.load(rules, region).numbers,
            output_rules=tuple(output.load(rules).sentences.values()),
            roster=agents,
            in_blocks=bool(settings.letta.base_url),
        )
    prompts = PromptFiles(*folders, values=values)
    for agent in agents.agents.values():
        prompts.prompt(agent)
    prompts.prompt_named("context_extractor")
    return prompts


def load_toolbox(agents: Roster) -> Toolbox:
    """The built-in tools. Raises if a specialist is to use a tool that does not exist."""
    toolbox = Toolbox(built_in(lambda: SystemClock().now().date()))
    with our_errors():
        roster.refuse_unknown_tools(agents, [tool.name for tool in toolbox.tools])
    return toolbox


def load_follow_ups(settings: Settings, overlay: Path | None = None) -> "Enrich":
    """The local brain's function that enriches a message."""
    from agents.local import LocalBrain

    embedder = load_embedder(settings)
    with our_errors():
        return LocalBrain.follow_ups(configured("local", overlay), embedder)


def load_local_brain(settings: Settings, agents: Roster, embedder: Embedder, overlay: Path | None) -> Brain:
    """The brain without a language model. If its router was never trained, that takes some seconds."""
    from agents.local import LocalBrain

    router = load_router(settings, agents, embedder)
    with our_errors():
        is_alone = not (settings.letta.base_url or settings.chat.model)
        return LocalBrain(agents, router, configured("local", overlay), embedder, is_alone=is_alone)


def model_files(settings: Settings) -> ModelFiles:
    """The files of the embedding model, present or not."""
    return ModelFiles.shipped(shipped_config(), settings.models.dir)


def e5_files(settings: Settings) -> ModelFiles:
    """The files of e5-small-v2, present or not."""
    return ModelFiles.shipped(shipped_config(), settings.models.dir, E5)


def load_embedder(settings: Settings) -> Embedder:
    """Load the embedding model. This takes about half a second; do not call it on an event loop."""
    files = model_files(settings)
    folder = files.checked()

    from agents.embedders.onnx_model import OnnxModel
    from agents.embedders.remembering import RememberingEmbedder

    with our_errors():
        model = OnnxModel(folder, files.manifest.label, threads=settings.models.threads)
        return RememberingEmbedder(model)


def load_memory_embedders(settings: Settings, embedder: Embedder) -> QueriesAndPassages:
    """The embedders of long-term memory, as `embeddings.model` names them; `embedder` is MiniLM."""
    chosen = settings.embeddings
    if chosen.model == "minilm":
        return QueriesAndPassages(embedder, embedder)
    from agents.embedders.remembering import RememberingEmbedder

    if chosen.model == "e5-small-v2":
        from agents.embedders.onnx_model import E5_TOKENS, OnnxModel

        files = e5_files(settings)
        with our_errors():
            e5 = OnnxModel(files.checked(), files.manifest.label, E5_TOKENS, settings.models.threads)
        return _prefixed(RememberingEmbedder(e5), "query: ", "passage: ")

    return _prefixed(
        RememberingEmbedder(_embedding_endpoint(settings)), chosen.query_prefix, chosen.passage_prefix
    )


def unrelated_cosine(settings: Settings) -> float:
    """The cosine that the embedding model of long-term memory gives to unrelated texts."""
    chosen = settings.embeddings
    return {"minilm": 0.0, "e5-small-v2": E5_UNRELATED, "endpoint": chosen.unrelated_cosine}[chosen.model]


def _prefixed(embedder: Embedder, query: str, passage: str) -> QueriesAndPassages:
    from agents.embedders.prefixed import PrefixedEmbedder

    return QueriesAndPassages(PrefixedEmbedder(embedder, query), PrefixedEmbedder(embedder, passage))


def _embedding_endpoint(settings: Settings) -> Embedder:
    """The endpoint of `embeddings.endpoint`. Raises if a setting that it needs is missing."""
    from agents.embedders.endpoint import EmbeddingEndpoint

    chosen, where = settings.embeddings, settings.origins.get("embeddings.model", "")
    for name in ("endpoint", "endpoint_model", "width"):
        if not getattr(chosen, name):
            rule = f"needs embeddings.{name}, too"
            raise AnamnesisError(BAD_SETTING, key="embeddings.model", where=where, rule=rule)
    key = chosen.api_key.get_secret_value()
    prefixes = "|".join(filter(None, (chosen.query_prefix, chosen.passage_prefix)))
    name = f"{chosen.endpoint_model} {prefixes}".strip()
    return EmbeddingEndpoint(
        chosen.endpoint, key, chosen.endpoint_model, chosen.width, chosen.timeout_seconds, label=name
    )


@cache
def load_guard(models: Path) -> Guard:
    """The guard with the shipped rules; no overlay changes them. Its compiled form is kept in `models`."""
    with our_errors():
        return guard.load(shipped_config() / "safety", models)


def load_languages(rules: Guard) -> Languages:
    """Detects messages that are not in English, which the rules do not understand."""
    with our_errors():
        return language.load(shipped_config() / "safety", rules.vocabulary)


def load_classifier(settings: Settings, embedder: Embedder) -> DangerClassifier:
    """The danger classifier. If it was never trained, that takes a minute."""
    models = settings.models.dir
    return classifier.load(shipped_config() / "safety", embedder, models, load_guard(models).findings)


def build_monitor(settings: Settings, embedder: Embedder) -> SafetyMonitor:
    """The safety monitor, with the emergency numbers of the region. Raises if the region is unknown."""
    folder, region = shipped_config() / "safety", settings.safety.region
    with our_errors():
        if region and region not in (known := wording.known_regions(folder)):
            rule = f"no emergency numbers are known for it; name one of {', '.join(known)}, or none"
            where = settings.origins.get("safety.region", "")
            raise AnamnesisError(BAD_SETTING, key="safety.region", where=where, rule=rule)
        rules = load_guard(settings.models.dir)
        return SafetyMonitor(
            rules,
            output.load(folder),
            wording.load(folder, region),
            load_languages(rules),
            LearnedChecks(
                load_classifier(settings, embedder), moves.load(folder, embedder, settings.models.dir)
            ),
            alerts=bool(settings.safety.alert_url.get_secret_value()),
        )


def load_router(settings: Settings, agents: Roster, embedder: Embedder) -> "Router":
    """The router, trained on the roster's examples. If it was never trained, that takes some seconds."""
    from agents.routing.router import train_router

    return train_router(agents.examples, agents.sure_enough, embedder, settings.models.dir)


def build_memory(
    settings: Settings, store: Store, embedder: Embedder, overlay: Path | None = None
) -> MemoryService:
    """The search of long-term memory, with the recipes of `recall.toml`."""
    recipes = recipe.load(configured("recall.toml", overlay))
    chosen = settings.recall
    recipes.get(chosen.recipe)
    searcher = Searcher(
        store,
        embedder,
        SystemClock(),
        cache_bytes=chosen.cache_megabytes * 1024 * 1024,
        unrelated=unrelated_cosine(settings),
    )
    tracing = TraceConfig(chosen.trace_enabled, chosen.trace_dir)
    return MemoryService(store, searcher, recipes, recipe=chosen.recipe, tracing=tracing)


def memory_model(settings: Settings) -> "ChatModel | None":
    """The model that makes memories: the chat endpoint's, if one is configured and Letta is not."""
    return chat_model(settings) if settings.chat.model and not settings.letta.base_url else None


def build_ledger(settings: Settings, agents: Roster) -> Ledger:
    """The ledger of the blocks, with the limits from the settings and the specialists from the roster."""
    return Ledger(SystemClock(), Limits(**settings.blocks.model_dump()), agents.agent_types)


def build_orchestrator(settings: Settings, overlay: Path | None = None) -> Orchestrator:
    """An orchestrator as the settings describe it; `overlay` is a folder of configuration.

    Loading the models takes a moment; do not call this on an event loop.
    """
    # First: a database that cannot be used is reported before models are loaded.
    store = open_store(settings, overlay)
    agents = load_roster(overlay)
    prompts, toolbox = load_prompts(settings, agents, overlay), load_toolbox(agents)
    embedder = load_embedder(settings)
    local = load_local_brain(settings, agents, embedder, overlay)
    ledger, monitor = build_ledger(settings, agents), build_monitor(settings, embedder)
    registry = load_registry(settings, store, agents, prompts)
    if registry is not None:
        letta_settings.remember(settings)
    selected = choose(settings, local, agents, prompts, toolbox, registry)

    embedders = load_memory_embedders(settings, embedder)
    memory = build_memory(settings, store, embedders.queries, overlay)
    remembering = Remembering(store, embedders.passages)

    def services(outbox: Outbox) -> TurnServices:
        return TurnServices(
            TurnAgents(selected.brain, embedder, agents, prompts, toolbox),
            TurnMemory(
                ledger,
                build_sync(settings, registry, ledger, outbox),
                LongTermRecall(
                    memory,
                    token_budget=settings.recall.token_budget,
                    embeds_queries=embedders.queries is not embedder,
                ),
                remembering,
            ),
            monitor,
            outbox,
            TurnLimits(
                deadline_seconds=settings.turn.deadline_seconds,
                attempts=settings.turn.attempts,
                tokens_per_person_and_day=settings.brain.tokens_per_person_and_day,
                trace_content_characters=settings.limits.trace_content_characters,
                follow_up_days=settings.recall.follow_up_days,
            ),
        )

    def server_info() -> ServerInfo:
        now = selected.now()
        return ServerInfo(
            conversation_id=ConversationId("none"),
            model=now.model,
            backend=now.backend,
            agents=tuple(sorted(agents.agent_types)),
            notice=selected.notice,
        )

    options = _options(settings, store, selected, registry, overlay, embedders.passages)
    orchestrator = Orchestrator(store, services, RandomIds(), server_info, options)
    orchestrator.memory = memory
    if registry is not None:
        orchestrator.on_created(registry.prepare)
        orchestrator.include("agents", registry.check_health)
    if selected.status is not None:
        orchestrator.include("model", selected.status.check)
    return orchestrator


def _options(
    settings: Settings,
    store: Store,
    selected: SelectedBrain,
    registry: "AgentRegistry | None",
    overlay: Path | None,
    passages: Embedder,
) -> OrchestratorOptions:
    background: list[BackgroundWork] = [_catch_up]
    idle = timedelta(minutes=settings.session.idle_minutes)
    writer = memory_model(settings) if settings.memory.in_background else None
    if settings.memory.in_background:

        def make_memories(services: TurnServices) -> Coroutine[Any, Any, None]:
            creator, _ = build_creator(
                settings,
                store,
                passages,
                services.outbox,
                writer,
                overlay,
                services.foreground,
            )
            seconds, holder = settings.memory.check_seconds, RandomIds().new("proc_")
            return BackgroundMemories(store, creator, idle=idle, seconds=seconds, holder=holder).run()

        background.append(make_memories)
    if registry is not None:
        background.append(
            lambda services: build_upkeep(settings, registry, store, services.memory.sync).run()
        )
    if (status := selected.status) is not None:
        background.append(lambda _: status.keep_checking())

    async def close() -> None:
        await selected.close()
        if writer is not None:
            await writer.close()
        if registry is not None:
            await registry.close()

    return OrchestratorOptions(
        lease_seconds=settings.turn.lease_seconds,
        idle=idle,
        limits=ConversationLimits(
            settings.limits.waiting_messages,
            settings.limits.waiting_messages_everywhere,
            settings.limits.trace_content_characters,
            settings.limits.bad_frames_per_minute,
        ),
        presence=_presence(settings),
        alerts=_alerts(settings),
        background=background,
        close=close,
    )


async def _catch_up(services: TurnServices) -> None:
    """Remember what an earlier process could not; then compute anew the vectors of another model."""
    if services.memory.remembering is not None:
        await services.memory.remembering.catch_up()
        await services.memory.remembering.reembed()


def load_registry(
    settings: Settings, store: Store, agents: Roster, prompts: PromptFiles
) -> "AgentRegistry | None":
    """The registry of our agents on the Letta server; None if no server is configured."""
    letta = settings.letta
    if not letta.base_url:
        return None
    from orchestrator.letta.agents import AgentRegistry
    from orchestrator.letta.server import LettaServer
    from orchestrator.letta.specs import AgentSpecs

    server = LettaServer(letta.base_url, letta.api_key.get_secret_value(), seconds=letta.timeout_seconds)
    specs = AgentSpecs(letta, agents, prompts, Limits(**settings.blocks.model_dump()))
    return AgentRegistry(server, store, specs, holder=RandomIds().new("proc_"))


def build_sync(
    settings: Settings, registry: "AgentRegistry | None", ledger: Ledger, outbox: Outbox
) -> BlockSync:
    """Copies the blocks to Letta if a server is configured, else nowhere."""
    if registry is None:
        return BlockSync(NoMirror(), ledger, outbox)
    from memory_blocks.mirrors.letta import LettaMirror
    from orchestrator.letta.blocks import LettaCopies, StoredJournal

    silent = settings.letta.sync_seconds
    waiting = Waiting(silent, max(silent, settings.letta.timeout_seconds), registry.server.last_response_at)
    copies = LettaCopies(registry, outbox.store, waiting.halved())
    mirror = LettaMirror(copies, StoredJournal(outbox.store))
    may_wait = registry.copies_may_wait if settings.letta.copy_seconds else None
    return BlockSync(mirror, ledger, outbox, waiting, may_wait=may_wait)


def build_upkeep(settings: Settings, registry: "AgentRegistry", store: Store, sync: BlockSync) -> "Upkeep":
    """Compares Letta with our tables and repairs differences."""
    from orchestrator.letta.upkeep import Upkeep

    pause = timedelta(seconds=settings.letta.copy_seconds)
    return Upkeep(registry, store, sync, holder=RandomIds().new("proc_"), settle_time=pause)


@asynccontextmanager
async def open_upkeep(settings: Settings, overlay: Path | None = None) -> AsyncIterator["Upkeep"]:
    """`build_upkeep` for a command, open while the block runs. Raises if no Letta is configured."""
    agents = load_roster(overlay)
    settings = letta_settings.recall(settings)
    store = open_store(settings)
    try:
        registry = load_registry(settings, store, agents, load_prompts(settings, agents, overlay))
        if registry is None:
            raise AnamnesisError(LETTA_NOT_CONFIGURED)
        try:
            ledger = build_ledger(settings, agents)
            sync = build_sync(settings, registry, ledger, Outbox(store))
            yield build_upkeep(settings, registry, store, sync)
        finally:
            await registry.close()
    finally:
        await store.close()


@asynccontextmanager
async def open_rooms(settings: Settings, orchestrator: Orchestrator) -> AsyncIterator["Rooms | None"]:
    """The LiveKit rooms of the conversations while the block runs; None if LiveKit is not configured."""
    server = settings.livekit
    if not server.url:
        yield None
        return
    if not (server.api_key and server.api_secret):
        rule = "needs livekit.api_key and livekit.api_secret, too"
        where = settings.origins.get("livekit.url", "")
        raise AnamnesisError(BAD_SETTING, key="livekit.url", where=where, rule=rule)

    from orchestrator.connection.rooms import Rooms
    from orchestrator.transports.livekit import wait_for_native_threads
    from orchestrator.transports.livekit_server import LiveKitServer

    livekit = LiveKitServer(
        server.url, server.api_key.get_secret_value(), server.api_secret.get_secret_value()
    )
    orchestrator.include("livekit", livekit.answers)
    rooms = Rooms(
        livekit,
        orchestrator.store,
        orchestrator.serve,
        holder=orchestrator.holder,
        is_gone=orchestrator.is_gone,
        poll_seconds=server.poll_seconds,
    )
    orchestrator.on_created(rooms.prepare)
    async with rooms.open():
        yield rooms
    await wait_for_native_threads()


def open_oidc(settings: Settings) -> "OidcTokens | None":
    """Recognises the tokens of the configured OIDC issuer; None if there is none."""
    oidc = settings.oidc
    if not oidc.issuer:
        return None
    if not oidc.audience:
        where = settings.origins.get("oidc.issuer", "")
        raise AnamnesisError(BAD_SETTING, key="oidc.issuer", where=where, rule="needs oidc.audience, too")
    from orchestrator.api.access.oidc import Issuer, OidcTokens

    return OidcTokens(Issuer(oidc.issuer, oidc.audience, oidc.person_claim, oidc.roles_claim))


def _alerts(settings: Settings) -> Callable[[Store], AlertSender] | None:
    """Builds the sender of alerts to staff; None if no address is configured."""
    url = settings.safety.alert_url.get_secret_value()
    if not url:
        return None
    from orchestrator.safety.webhook import Webhook

    webhook = Webhook(url, settings.safety.alert_timeout_seconds)
    return lambda store: AlertSender(store, webhook, settings.safety.alert_attempts)


def _presence(settings: Settings) -> Presence | None:
    """Which processes are alive. This is known only if all run on one machine: with the embedded database."""
    if settings.database.url.get_secret_value():
        return None
    return Presence(settings.data.prepare() / "present", RandomIds().new("proc_"))
