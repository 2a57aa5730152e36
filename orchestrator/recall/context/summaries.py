"""The three summaries of a search: what the index found, what was packaged, what fitted the budget.

Their fields are a contract with whoever reads them: fields are added, never removed. `plain` gives them in
camelCase, as they appear in JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

Mode: TypeAlias = Literal["flat", "tiered", "packed"]
PackageType: TypeAlias = Literal["subject-pack", "timeline-pack", "tiered"]
Role: TypeAlias = Literal["primary", "supporting", "historical", "contextual"]
DropReason: TypeAlias = Literal["repeats_another", "part_of_another", "beyond_limit"]


class SearchSummary:
    """Base of the summaries."""

    __slots__ = ()

    def plain(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {camel_case(name): _plain(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class RetrievalSummary(SearchSummary):
    """Which memories the index produced before packaging."""

    candidate_ids: tuple[str, ...]
    candidate_count: int
    query_text: str
    skip_repair: bool
    recipe: str
    searched_count: int
    below_minimum_count: int
    """How many memories scored too low to be candidates."""
    beyond_limit_count: int
    minimum_score: float
    period: str | None
    """The dates that time words in the query narrowed the search to."""
    candidates: tuple[Mapping[str, Any], ...] = ()
    """For each candidate, best first: `id`, `score`, `signals`, its estimated `tokens` and `externalId`."""
    by_vectors: bool = True
    """Whether vectors were compared, besides words."""


@dataclass(frozen=True, slots=True)
class PackagingSummary(SearchSummary):
    """Which candidates made it into the context, in what role."""

    package_type: PackageType
    included_ids: tuple[str, ...]
    dropped_ids: tuple[str, ...]
    evidence_roles: Mapping[str, Role]
    episode_count: int
    date_count: int
    has_current_marker: bool
    has_conflict_block: bool
    token_cost: int
    drop_reasons: Mapping[str, DropReason] = field(default_factory=dict)
    """Why each of `dropped_ids` was left out."""


@dataclass(frozen=True, slots=True)
class AssemblySummary(SearchSummary):
    """How they were laid out against the token budget."""

    final_ids: tuple[str, ...]
    final_token_cost: int
    token_budget: int | None
    primary_evidence_position: int | None
    blocks: tuple[str, ...]


def camel_case(name: str) -> str:
    """`candidate_ids` as `candidateIds`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
