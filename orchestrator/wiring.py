"""What stands behind each port today: the one place that chooses adapters."""

from pathlib import Path

from agents import roster
from agents.ports import Recalled
from memory_blocks.ledger import Ledger
from memory_blocks.limits import Limits
from orchestrator.clock import SystemClock
from orchestrator.house import House
from orchestrator.outbox import Outbox
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import Settings
from orchestrator.store.database import Store
from orchestrator.turn import Stations
from orchestrator.wire.ids import ConversationId, RandomIds
from orchestrator.wire.messages import ModelInfo, ServerInfo


class NothingRecalled:
    """Long-term memory is not searched yet: nothing is ever found."""

    async def search(self, query: str, person_id: str) -> Recalled:
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


def build_house(settings: Settings, config: Path) -> House:
    """A house on the embedded brain and the settings' database."""
    from agents.brains.local import LocalBrain

    agents = roster.load(config / "agents.toml")
    brain = LocalBrain(agents)
    ledger = Ledger(
        SystemClock(),
        Limits(**settings.blocks.model_dump()),
        agents.agent_types,
        settings.limits.trace_content_characters,
    )

    def stations(outbox: Outbox) -> Stations:
        return Stations(
            brain=brain,
            recall=NothingRecalled(),
            roster=agents,
            prompts=PromptShelf(config / "prompts"),
            ledger=ledger,
            outbox=outbox,
            deadline_seconds=settings.turn.deadline_seconds,
            attempts=settings.turn.attempts,
        )

    return House(
        open_store(settings),
        stations,
        RandomIds(),
        ServerInfo(
            conversation_id=ConversationId("none"),
            model=ModelInfo(name=brain.name, provider="anamnesis"),
            backend="embedded",
            agents=tuple(agents.agent_types),
        ),
        lease_seconds=settings.turn.lease_seconds,
        bad_frames_per_minute=settings.limits.bad_frames_per_minute,
    )
