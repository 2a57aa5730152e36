"""Makes a package fit its token budget, and sums up packaging and assembly. Pure but for the trace."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.recall.context.collector import TraceCollector
from orchestrator.recall.context.packaging import Package, laid_out
from orchestrator.recall.context.result import FoundMemory
from orchestrator.recall.context.summaries import AssemblySummary, Mode, PackagingSummary, Role

DEFAULT_TOKEN_BUDGET: Final = 2000

_LEAVES_FIRST: Final[dict[Role, int]] = {"contextual": 0, "historical": 1, "supporting": 2, "primary": 3}
_LOWER: Final = {"L2": "L1", "L1": "L0"}


@dataclass(frozen=True, slots=True)
class PackagingInput:
    """Everything the two summaries are computed from. In flat mode, the budget is ignored."""

    mode: Mode
    output_memories: Sequence[FoundMemory]
    package: Package
    token_budget: int | None = None


def assemble(package: Package, budget: int | None) -> Package:
    """Trim a package until it fits: tiers are lowered first, then the least important memories leave.

    The order of the steps is known before, so the fewest that suffice are found by halving.
    """
    if budget is None or package.tokens <= budget:
        return package
    steps = _steps(package)
    too_few, enough, fitting = 0, len(steps), _after(package, steps)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = _after(package, steps[:middle])
        if tried.tokens <= budget:
            enough, fitting = middle, tried
        else:
            too_few = middle
    return fitting


def _steps(package: Package) -> list[tuple[FoundMemory, str | None]]:
    """Every step of trimming, in order: a memory and the tier it gets, or None if it leaves."""
    weakest = sorted(
        package.memories, key=lambda each: (_LEAVES_FIRST[package.roles[each.id]], -each.position)
    )
    lowered: list[tuple[FoundMemory, str | None]] = []
    for each in weakest:
        tier = package.tiers.get(each.id)
        while tier in _LOWER:
            tier = _LOWER[tier]
            lowered.append((each, tier))
    return [*lowered, *((each, None) for each in weakest)]


def _after(package: Package, steps: Sequence[tuple[FoundMemory, str | None]]) -> Package:
    """The package after these steps."""
    tiers = dict(package.tiers) | {each.id: tier for each, tier in steps if tier is not None}
    gone = {each.id for each, tier in steps if tier is None}
    memories = [each for each in package.memories if each.id not in gone]
    tiers = {id: tier for id, tier in tiers.items() if id not in gone}
    return laid_out(package.signal, memories, package.roles, tiers or None)


def budget_of(mode: Mode, budget: int | None) -> int | None:
    """The token budget of a mode: none in flat mode, else the given one or the default."""
    return None if mode == "flat" else budget if budget is not None else DEFAULT_TOKEN_BUDGET


def finalize_packaging_trace(
    trace: TraceCollector, given: PackagingInput
) -> tuple[PackagingSummary, AssemblySummary, Package]:
    """Assemble a package, and build both summaries and attach them to the trace. The caller finalizes it."""
    budget = budget_of(given.mode, given.token_budget)
    final = assemble(given.package, budget)
    packaging, assembly = _packaging(given), _assembly(final, budget)
    if given.mode == "tiered":
        trace.event(
            "tiered-packaging",
            {
                "budget": budget,
                "estimatedTokens": final.tokens,
                "tierDistribution": dict(Counter(each.tier for each in final.tier_assignments)),
            },
        )
    trace.set_packaging_summary(packaging)
    trace.set_assembly_summary(assembly)
    return packaging, assembly, final


def _packaging(given: PackagingInput) -> PackagingSummary:
    package = given.package
    included = {each.id for each in package.memories}
    return PackagingSummary(
        package_type=package.signal.package_type,
        included_ids=tuple(each.id for each in package.memories),
        dropped_ids=tuple(each.id for each in given.output_memories if each.id not in included),
        evidence_roles=dict(package.roles),
        episode_count=len({each.episode for each in package.memories}),
        date_count=len({each.said_at.date() for each in package.memories if each.said_at}),
        has_current_marker=package.has_current_marker,
        has_conflict_block="conflict" in package.blocks,
        token_cost=package.tokens,
        drop_reasons=dict(package.dropped),
    )


def _assembly(final: Package, budget: int | None) -> AssemblySummary:
    roles = [final.roles[each.id] for each in final.memories]
    return AssemblySummary(
        final_ids=tuple(each.id for each in final.memories),
        final_token_cost=final.tokens,
        token_budget=budget,
        primary_evidence_position=roles.index("primary") + 1 if "primary" in roles else None,
        blocks=final.blocks,
    )
