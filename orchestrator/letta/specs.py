"""What the agents and blocks of a conversation should look like in Letta, and how an existing one differs."""

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from agents.models.replies import Schema
from agents.models.requests import EXTRACTOR
from agents.models.understanding import understanding_schema
from agents.roster import Roster
from memory_blocks.limits import Limits
from memory_blocks.models import Label
from orchestrator import settings
from orchestrator.letta.server import LettaAgent, LettaBlock
from orchestrator.prompts import PromptFiles
from orchestrator.store import rows

MEMORY_TOOLS: Final = ("core_memory_append", "core_memory_replace")
"""Letta's tools with which the extractor edits its blocks. No other agent has them."""

FORMER_ROLES: Final = ("classifier",)
"""Roles that agents had in earlier versions. Such an agent is a leftover, and is removed."""

BLOCK_DESCRIPTIONS: Final[Mapping[Label, str]] = MappingProxyType(
    {
        Label.CONVERSATION_HISTORY: "The complete turn-by-turn conversation with full context, as JSON.",
        Label.ACTIVE_SESSION: "The current session's state and metadata, as JSON.",
        Label.CONTEXT_SUMMARY: "A human-readable summary of the conversation, for quick access to context.",
        Label.MEMORY_METADATA: "Metadata of memory management, and information about the system, as JSON.",
    }
)

# Providers whose model settings Letta knows by these names. All others use the settings of OpenAI.
_PROVIDERS: Final = frozenset(
    {
        "anthropic",
        "azure",
        "bedrock",
        "deepseek",
        "google_ai",
        "google_vertex",
        "groq",
        "openrouter",
        "together",
        "xai",
        "zai",
    }
)
_SCHEMA_SETTING: Final = {"google_ai": "response_schema", "google_vertex": "response_schema"}
_PROMPT_NAMES: Final = {EXTRACTOR: "context_extractor"}


class AgentSpecs:
    """Settings, names and tags of every agent and block. Agents have no memory besides the blocks."""

    def __init__(
        self, letta: settings.LettaSettings, roster: Roster, prompts: PromptFiles, limits: Limits
    ) -> None:
        self._letta, self._roster, self._prompts, self._limits = letta, roster, prompts, limits

    # --- names and tags -------------------------------------------------------------------------------------

    @property
    def tag(self) -> str:
        """The tag of everything that this server owns in Letta."""
        return self._letta.tag

    def tags(self, conversation_id: str) -> tuple[str, ...]:
        """The tags of a conversation's blocks."""
        return (self.tag, f"conversation:{conversation_id}")

    def agent_tags(self, conversation_id: str, role: str) -> tuple[str, ...]:
        """The tags of one agent."""
        return (*self.tags(conversation_id), f"role:{role}")

    def agent_labels(self, conversation_id: str, role: str) -> dict[str, Any]:
        """Name, description, metadata and tags, by which operators and this server recognise an agent.

        The key `house` holds the tag. It keeps that name because agents that exist already have it.
        """
        return {
            "name": _letta_name(f"{self.tag}-{conversation_id}-{role.lower()}"),
            "description": f"{role.lower()} of the conversation {conversation_id}",
            "metadata": {"conversation": conversation_id, "role": role, "house": self.tag},
            "tags": list(self.agent_tags(conversation_id, role)),
        }

    def archive_name(self, conversation_id: str = "") -> str:
        """The name that Letta gives the archive of a conversation's extractor.

        Without a conversation, the prefix of all such names.
        """
        prefix = _letta_name(f"{self.tag}-")
        if not conversation_id:
            return prefix
        return f"{prefix}{_letta_name(f'{conversation_id}-{EXTRACTOR}')}'s Archive"

    def identity_key(self, person_id: str = "") -> str:
        """The key of a person's identity in Letta; without a person, the prefix of all such keys."""
        return f"{self.tag}:{person_id}"

    # --- agents ---------------------------------------------------------------------------------------------

    def has_role(self, role: str) -> bool:
        """Whether this role exists in the current `agents.toml`."""
        return role == EXTRACTOR or role in self._roster.agents

    def agent_settings(self, role: str) -> dict[str, Any]:
        """The settings of a role's agent in Letta, without its names, tools and blocks."""
        model = (self._letta.extractor_model if role == EXTRACTOR else "") or self._letta.model
        return {
            "system": self._system_prompt(role),
            "model": model,
            "embedding": self._letta.embedding,
            "context_window_limit": self._letta.context_window,
            "message_buffer_autoclear": True,
            "model_settings": self._model_settings(role, _provider(model)),
        }

    def tools(self, role: str) -> tuple[str, ...]:
        """Letta's own tools that a role may use. All other tools run in the orchestrator."""
        return MEMORY_TOOLS if role == EXTRACTOR else ()

    def agent_fingerprint(self, role: str, blocks: Mapping[str, str]) -> str:
        """A digest of everything an agent is made of. It changes when the agent must be updated."""
        parts = {
            **self.agent_settings(role),
            "tools": self.tools(role),
            "blocks": dict(blocks),
            "forms": [self.block_settings(label) for label in Label],
            "tag": self.tag,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def agent_drift(self, known: rows.LettaAgent, agent: LettaAgent, blocks: Mapping[str, str]) -> list[str]:
        """The names of what differs from the specification.

        Nothing is reported for a role that no longer exists: such an agent is not repaired.
        """
        role = known.role
        if not self.has_role(role):
            return []
        wanted = self.agent_settings(role)
        drift = [name for name, value in wanted.items() if not _contains(agent.settings.get(name), value)]
        if agent.tools != set(self.tools(role)):
            drift.append("tools")
        if not agent.tags.issuperset(self.agent_tags(known.conversation_id, role)):
            drift.append("tags")
        if {label: block.id for label, block in agent.blocks.items()} != blocks:
            drift.append("blocks")
        if not drift and known.recipe != self.agent_fingerprint(role, blocks):
            drift.append("recipe")
        return drift

    def _model_settings(self, role: str, provider: str) -> dict[str, Any]:
        """The extractor replies in the form of a schema, always the same to the same message."""
        schema = self._schema(role)
        if schema is None:
            return {
                "provider_type": provider,
                "temperature": self._letta.temperature,
                "max_output_tokens": self._letta.answer_tokens,
            }
        json_schema = {"name": schema.name, "strict": True, "schema": schema.schema}
        structured: dict[str, Any] = {
            "provider_type": provider,
            "temperature": 0.0,
            _SCHEMA_SETTING.get(provider, "response_format"): {
                "type": "json_schema",
                "json_schema": json_schema,
            },
        }
        if provider == "openai":  # models of other providers reason only if told to
            structured["reasoning"] = {"reasoning_effort": "low"}
        return structured

    def _system_prompt(self, role: str) -> str:
        if role in _PROMPT_NAMES:
            return self._prompts.prompt_named(_PROMPT_NAMES[role]).text
        return self._prompts.prompt(self._roster.agents[role]).text

    def _schema(self, role: str) -> Schema | None:
        return understanding_schema(self._roster.intents) if role == EXTRACTOR else None

    # --- blocks ---------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """How large each block may grow."""
        return self._limits

    def block_settings(self, label: Label) -> dict[str, Any]:
        """The settings of a block, whatever its text is."""
        return {"limit": self._limits.of(label), "description": BLOCK_DESCRIPTIONS[label], "read_only": False}

    def new_block(self, conversation_id: str, label: Label, text: str) -> dict[str, Any]:
        """Everything needed to create a block."""
        return {
            **self.block_settings(label),
            "label": label.value,
            "value": text,
            "tags": list(self.tags(conversation_id)),
        }

    def block_drift(self, conversation_id: str, block: LettaBlock) -> list[str]:
        """The names of what differs from the specification, apart from the text."""
        wanted = self.block_settings(Label(block.label))
        drift = [name for name, value in wanted.items() if getattr(block, name) != value]
        return drift if block.tags.issuperset(self.tags(conversation_id)) else [*drift, "tags"]


def _letta_name(text: str) -> str:
    """`text` with the characters replaced that Letta does not accept in a name."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)


def _provider(model: str) -> str:
    """The provider of a model, by Letta's handle `provider/model`."""
    provider = model.partition("/")[0]
    return provider if provider in _PROVIDERS else "openai"


def _contains(actual: Any, wanted: Any) -> bool:
    """Whether `actual` equals `wanted`; mappings may have further keys."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(_contains(actual.get(key), wanted[key]) for key in wanted)
    return bool(actual == wanted)
