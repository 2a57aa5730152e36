"""Builds what makes memories of conversations: the creator, its ledger and its workflows."""

import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from agents.ports import Embedder
from orchestrator.errors import AnamnesisError
from orchestrator.ops.clock import SystemClock
from orchestrator.ops.foreground import Foreground
from orchestrator.ops.logs import get_logger
from orchestrator.prompts import PromptFiles
from orchestrator.remember.creators import config as memory_config
from orchestrator.remember.creators.config import MemoryConfig
from orchestrator.remember.creators.generation import Generator, Prompts
from orchestrator.remember.creators.model import Completion
from orchestrator.remember.creators.quality_memory import QualityMemory
from orchestrator.remember.creators.settling import Settling
from orchestrator.remember.ledger.files import FileLedger
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.ledger.tables import TableLedger
from orchestrator.settings import Settings, configured, shipped_config
from orchestrator.store.engine.database import Store
from orchestrator.turn.outbox import Outbox
from orchestrator.workflows.manager import WorkflowManager
from orchestrator.workflows.memory_nodes import MemoryNodes
from orchestrator.workflows.traced import TracedMemories

if TYPE_CHECKING:
    from agents.models.servers.openai import ChatModel

log = get_logger()


def load_memory_config(overlay: Path | None = None) -> MemoryConfig:
    """How memories are made, by `memory.json`."""
    return memory_config.load(configured("memory.json", overlay))


def build_memory_ledger(settings: Settings, store: Store, config: MemoryConfig) -> MemoryLedger:
    """The ledger of memories: in files or in tables, as the settings say."""
    weights = config.search_weights.model_dump()
    chosen, on_a_server = settings.memory.ledger, not store.driver.one_writer
    if chosen == "tables" or (chosen == "auto" and on_a_server):
        return TableLedger(store, weights)
    return FileLedger(settings.data.dir / "memories", weights)


def settle_after_commits(
    settings: Settings, store: Store, overlay: Path | None = None
) -> Callable[[Collection[str]], None]:
    """Lets the ledgers of conversations follow changes, for `Store.settle`."""

    def settle(conversation_ids: Collection[str]) -> None:
        try:
            config = load_memory_config(overlay)
            ledger = build_memory_ledger(settings, store, config)
        except AnamnesisError as error:
            log.warning("memories_not_settled", error=error.problem.name)
            return
        characters = config.summary_characters
        Settling(store, ledger, SystemClock(), characters=characters).after_commit(conversation_ids)

    return settle


def settle_all(store: Store, ledger: MemoryLedger, config: MemoryConfig) -> None:
    """Let the ledgers follow what a process has left, before a command reads them."""
    Settling(store, ledger, SystemClock(), characters=config.summary_characters).settle_all()


def build_workflows(overlay: Path | None = None) -> WorkflowManager:
    """Reads workflows from the overlay and from the shipped configuration. It cannot run memory nodes yet."""
    return WorkflowManager(
        [folder / "workflows" for folder in (overlay, shipped_config()) if folder is not None]
    )


def build_creator(
    settings: Settings,
    store: Store,
    embedder: Embedder,
    outbox: Outbox,
    model: "ChatModel | None" = None,
    overlay: Path | None = None,
    foreground: Foreground | None = None,
) -> tuple[QualityMemory, WorkflowManager]:
    """The creator of memories, and the workflows that it runs and that run it.

    Its requests to a model wait for the turns of `foreground`.
    """
    config = load_memory_config(overlay)
    workflows = build_workflows(overlay)
    traced = TracedMemories(outbox, characters=settings.limits.trace_content_characters)
    chosen = settings.memory
    if model is not None:
        workflows.complete = Completion(
            model,
            store,
            seconds=chosen.reply_seconds,
            tokens_per_day=chosen.tokens_per_day,
            foreground=foreground,
        )
    can_run = bool(config.workflow) and workflows.can_run(workflows.named(config.workflow))
    prompts = PromptFiles(*(each / "prompts" for each in (overlay, shipped_config()) if each is not None))
    generator = Generator(
        config,
        Prompts(
            *(prompts.prompt_named(n).text for n in ("memory_text", "memory_objects", "rolling_summary"))
        ),
        workflows.run_sub_workflow if can_run else None,
        workflows.complete,
        model.name if model is not None else "",
        _health_terms(overlay),
    )
    ledger = build_memory_ledger(settings, store, config)
    creator = QualityMemory(store, ledger, embedder, generator, traced.keep, SystemClock())
    workflows.nodes = MemoryNodes(creator, traced.note_reads)
    return creator, workflows


def _health_terms(overlay: Path | None) -> frozenset[str]:
    """The names of medicines and conditions, which a summary may have only if somebody said them."""
    words = tomllib.loads((configured("local", overlay) / "lexicon.toml").read_text(encoding="utf-8"))
    return frozenset((*words["medicines"]["names"], *words["conditions"]["names"]))
