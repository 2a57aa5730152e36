"""How memories are made of conversations: the file `memory.json`, with the names of the source document."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from orchestrator.errors import BAD_SETTING, AnamnesisError
from orchestrator.remember.ledger.lines import Kind

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Weight = Annotated[float, Field(ge=0, le=1000)]


class SearchWeights(BaseModel):
    """How much a hit in each column of the full-text index counts."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    title: Weight
    summary: Weight
    entities: Weight
    key_phrases: Weight
    memory_text: Weight


class MemoryConfig(BaseModel):
    """The configuration of a QualityMemory run.

    A workflow's name is that of a file in `workflows/`, without `.json`. If it is empty, a model is asked
    directly; without a model, sentences are picked. With `find_in_searches`, searches of long-term memory
    find the memories beside the messages they were made of; VectorMemorySearch finds its own in any case.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    use_vector_for_quality_memory: bool
    vector_memory_workflow_name: str = ""
    file_memory_workflow_name: str = ""
    chunk_estimated_token_size: Count
    lookback_messages: Annotated[int, Field(ge=0, le=1000)]
    messages_between_chunks: Count
    memory_characters: Count
    summary_characters: Count
    recent_memories: Count
    find_in_searches: bool
    search_weights: SearchWeights

    @property
    def kind(self) -> Kind:
        """The kind of memories that are made."""
        return "vector" if self.use_vector_for_quality_memory else "file"

    @property
    def workflow(self) -> str:
        """The workflow that makes this kind of memories; empty if there is none."""
        vector = self.use_vector_for_quality_memory
        return self.vector_memory_workflow_name if vector else self.file_memory_workflow_name


def load(path: Path) -> MemoryConfig:
    """Read the file. Raises if a key is unknown, missing or wrong."""
    try:
        return MemoryConfig.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False)[0]
        key, rule = ".".join(map(str, first["loc"])), first["msg"].lower()
    except (OSError, ValueError) as error:
        key, rule = "the file", f"cannot be read ({type(error).__name__})"
    raise AnamnesisError(BAD_SETTING, key=key, where=path.name, rule=rule)
