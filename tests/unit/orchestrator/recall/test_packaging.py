"""Packaging and assembly: roles, package types, conflicts, tiers and the token budget."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.recall.context import assembly as assembly_module
from orchestrator.recall.context import packaging as packaging_module
from orchestrator.recall.context.assembly import (
    DEFAULT_TOKEN_BUDGET,
    PackagingInput,
    finalize_packaging_trace,
)
from orchestrator.recall.context.collector import TraceCollector, TraceConfig
from orchestrator.recall.context.packaging import CURRENT, HEADING, Package, assign_roles, package
from orchestrator.recall.context.result import FoundMemory
from orchestrator.recall.context.summaries import AssemblySummary, Mode, PackagingSummary
from tests.support.builders import START
from tests.support.memory.memories import a_memory

TYPES = ("subject-pack", "timeline-pack", "tiered")


def summed_up(
    mode: Mode,
    memories: list[FoundMemory],
    *,
    limit: int = 10,
    budget: int | None = None,
    query: str = "diet",
) -> tuple[PackagingSummary, AssemblySummary, Package]:
    trace = TraceCollector(query, "ann", TraceConfig())
    packaged = package(mode, query, memories, limit)
    return finalize_packaging_trace(trace, PackagingInput(mode, memories, packaged, budget))


@pytest.mark.requirement("002-008", "002-009", "002-010", "002-011", "002-012", "002-013", "002-014")
def test_the_best_memory_is_the_answer_and_the_others_have_roles() -> None:
    memories = [
        a_memory(1),
        a_memory(2, episode="e2", said_at=START + timedelta(days=1)),
        a_memory(3, score=0.2, source={"current": False}),
        a_memory(4, score=0.15),
        a_memory(5, score=0.1),
    ]

    packaging, assembly, _ = summed_up("flat", memories, limit=4)

    assert packaging.package_type in TYPES
    assert set(packaging.included_ids) == {"mem1", "mem2", "mem3", "mem4"}
    assert packaging.dropped_ids == ("mem5",)
    assert packaging.evidence_roles == {
        "mem1": "primary",
        "mem2": "supporting",
        "mem3": "historical",
        "mem4": "contextual",
    }
    assert (packaging.episode_count, packaging.date_count) == (2, 2)
    assert assembly.primary_evidence_position == 1


@pytest.mark.requirement("002-022", "002-023")
def test_without_a_good_memory_nothing_is_the_answer() -> None:
    _, assembly, _ = summed_up("flat", [a_memory(1, score=0.2), a_memory(2, score=0.1)])

    assert assembly.primary_evidence_position is None


@pytest.mark.requirement("002-015", "002-024")
def test_a_value_that_changed_is_a_timeline_with_a_current_marker() -> None:
    old = a_memory(2, source={"current": False, "replaced_by": "mem1"}, said_at=START - timedelta(days=9))

    packaging, assembly, final = summed_up("flat", [a_memory(1), old])

    assert packaging.package_type == "timeline-pack"
    assert assembly.blocks == ("timeline",)
    assert packaging.has_current_marker
    assert f"content 1 {CURRENT}" in final.text
    assert f"content 2 {CURRENT}" not in final.text


@pytest.mark.requirement("002-015")
def test_the_words_of_a_memory_are_no_current_marker() -> None:
    packaging, *_ = summed_up("flat", [a_memory(1, content=f"I am well {CURRENT}")])

    assert not packaging.has_current_marker


@pytest.mark.requirement("002-016", "002-024")
def test_contradicting_memories_are_a_conflict_block_with_both_dates() -> None:
    one = a_memory(1, source={"conflict": "c1"}, content="Eats no meat.")
    other = a_memory(2, source={"conflict": "c1"}, content="Ate a steak.", said_at=START + timedelta(days=3))

    packaging, assembly, final = summed_up("flat", [one, other, a_memory(3)])
    alone, *_ = summed_up("flat", [one, a_memory(3)])

    assert packaging.has_conflict_block
    assert not alone.has_conflict_block
    assert assembly.blocks == ("conflict", "subject")
    lines = final.text.splitlines()
    assert [line for line in lines if "meat" in line or "steak" in line] == [
        f"- [said {START:%Y-%m-%d}] Eats no meat.",
        f"- [said {START + timedelta(days=3):%Y-%m-%d}] Ate a steak. {CURRENT}",
    ]


@pytest.mark.requirement("002-017", "002-020", "002-037")
def test_flat_mode_has_no_budget_and_the_others_have_one() -> None:
    memories = [a_memory(number) for number in (1, 2, 3)]

    flat, in_flat, _ = summed_up("flat", memories, budget=1)
    _, in_tiers, _ = summed_up("tiered", memories)
    _, chosen, _ = summed_up("packed", memories, budget=77)

    assert (in_flat.token_budget, in_tiers.token_budget, chosen.token_budget) == (
        None,
        DEFAULT_TOKEN_BUDGET,
        77,
    )
    assert in_flat.final_token_cost == flat.token_cost > 0


@pytest.mark.requirement("002-018", "002-019", "002-021", "002-025")
def test_what_is_over_the_budget_leaves_the_least_important_first() -> None:
    memories = [a_memory(number, content="word " * 60) for number in range(1, 7)]
    memories = [replace(each, content=f"{each.content}{each.id}") for each in memories]

    packaging, assembly, _ = summed_up("packed", memories, limit=5, budget=275)

    assert packaging.token_cost > 275 >= assembly.final_token_cost
    assert packaging.dropped_ids == ("mem6",)
    left_out = set(packaging.included_ids) - set(assembly.final_ids)
    assert left_out == {"mem4", "mem5"}
    assert assembly.final_ids[0] == "mem1"


@pytest.mark.requirement("002-036")
def test_a_member_of_a_composite_is_dropped_except_in_flat_mode() -> None:
    composite = a_memory(1, source={"members": ["mem2"]})
    memories = [composite, a_memory(2), a_memory(3)]

    tiered, *_ = summed_up("tiered", memories)
    flat, *_ = summed_up("flat", memories)

    assert tiered.dropped_ids == ("mem2",)
    assert flat.dropped_ids == ()


@pytest.mark.requirement("002-038", "002-039", "002-040", "002-035", "002-033")
def test_tiers_are_one_event_and_both_summaries_are_attached_to_an_open_trace() -> None:
    trace = TraceCollector("diet", "ann", TraceConfig(enabled=True))
    memories = [a_memory(1), a_memory(2), a_memory(3, score=0.1)]
    packaged = package("tiered", "diet", memories, 3)

    packaging, assembly, final = finalize_packaging_trace(trace, PackagingInput("tiered", memories, packaged))
    trace.event("later")

    (event, _) = trace.stages
    assert event["name"] == "tiered-packaging"
    assert event["meta"]["budget"] == DEFAULT_TOKEN_BUDGET
    assert event["meta"]["estimatedTokens"] == final.tokens
    assert event["meta"]["tierDistribution"] == {"L2": 1, "L1": 1, "L0": 1}
    assert sum(event["meta"]["tierDistribution"].values()) == len(final.tier_assignments)
    assert trace.summaries == {"packaging": packaging, "assembly": assembly}


@pytest.mark.requirement("002-038")
def test_flat_mode_has_no_event_of_tiers() -> None:
    trace = TraceCollector("diet", "ann", TraceConfig(enabled=True))
    packaged = package("flat", "diet", [a_memory()], 3)

    finalize_packaging_trace(trace, PackagingInput("flat", [a_memory()], packaged))

    assert trace.stages == []


def test_a_tier_is_lowered_before_a_memory_leaves() -> None:
    long = "A first sentence that is here. " + "And then there is much more to say about it. " * 20
    memories = [a_memory(1, content=long), a_memory(2, content=long + "!")]

    _, assembly, final = summed_up("tiered", memories, budget=70)

    assert set(assembly.final_ids) == {"mem1", "mem2"}
    assert {each.tier for each in final.tier_assignments} != {"L2"}
    assert final.tokens <= 70


def test_a_memory_that_repeats_another_is_dropped() -> None:
    packaging, *_ = summed_up("flat", [a_memory(1, content="Likes tea."), a_memory(2, content="likes  TEA.")])

    assert packaging.dropped_ids == ("mem2",)


def test_the_text_says_that_it_is_data_and_shows_both_clocks() -> None:
    memory = a_memory(1, source={"true_when": "since childhood"}, content="Has\nasthma.")

    *_, final = summed_up("flat", [memory])

    assert final.text == f"{HEADING}\n- [said {START:%Y-%m-%d}, true since childhood] Has asthma."


memories_of_any_kind = st.lists(
    st.builds(
        lambda score, current, conflict, content: (score, current, conflict, content),
        st.floats(0, 1),
        st.booleans(),
        st.sampled_from([None, "a", "b"]),
        st.text(max_size=300),
    ),
    max_size=12,
)


@pytest.mark.requirement("002-009", "002-010", "002-011", "002-018", "002-019", "002-022")
@given(
    memories_of_any_kind,
    st.sampled_from(["flat", "packed", "tiered"]),
    st.integers(1, 12),
    st.integers(1, 400),
)
def test_the_summaries_agree_with_each_other(
    given: list[tuple[float, bool, str | None, str]], mode: Any, limit: int, budget: int
) -> None:
    scores = sorted((each[0] for each in given), reverse=True)
    memories = [
        a_memory(
            number,
            score=score,
            content=content,
            source={"current": current, **({"conflict": conflict} if conflict else {})},
        )
        for number, (score, (_, current, conflict, content)) in enumerate(zip(scores, given, strict=True), 1)
    ]

    packaging, assembly, _ = summed_up(mode, memories, limit=limit, budget=budget)

    candidates = [each.id for each in memories]
    assert set(packaging.included_ids) <= set(candidates)
    assert sorted(packaging.dropped_ids) == sorted(set(candidates) - set(packaging.included_ids))
    assert set(packaging.evidence_roles) == set(packaging.included_ids)
    assert set(assembly.final_ids) <= set(packaging.included_ids)
    assert list(packaging.evidence_roles.values()).count("primary") <= 1
    if assembly.token_budget is not None:
        assert assembly.final_token_cost <= assembly.token_budget
    if assembly.primary_evidence_position is not None:
        place = assembly.final_ids[assembly.primary_evidence_position - 1]
        assert packaging.evidence_roles[place] == "primary"


def test_all_four_roles_are_reachable() -> None:
    memories = [a_memory(1), a_memory(2), a_memory(3, score=0.1), a_memory(4, source={"current": False})]

    assert set(assign_roles(memories).values()) == {"primary", "supporting", "contextual", "historical"}


def test_trimming_a_thousand_memories_lays_out_a_few_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    memories = [
        a_memory(number, score=1 - number / 2000, content=f"Something {number} was said. And more about it.")
        for number in range(1, 1001)
    ]
    layouts = []

    def counted(*given: Any) -> Package:
        layouts.append(len(given[1]))
        return packaging_module.laid_out(*given)

    monkeypatch.setattr(assembly_module, "laid_out", counted)

    _, assembly, final = summed_up("tiered", memories, limit=1000, budget=200)

    assert final.memories
    assert assembly.final_token_cost <= 200
    assert len(layouts) < 20


@given(
    scores=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    mode=st.sampled_from(["packed", "tiered"]),
    budget=st.integers(1, 400),
)
def test_trimming_stops_as_soon_as_the_context_fits(scores: list[float], mode: Any, budget: int) -> None:
    memories = [
        a_memory(place, score=score, content=f"Something {place} was said. " * (1 + place % 4))
        for place, score in enumerate(sorted(scores, reverse=True), 1)
    ]

    packaging, _, final = summed_up(mode, memories, limit=12, budget=budget)

    full = package(mode, "diet", memories, 12)
    assert final.tokens <= budget
    if packaging.token_cost <= budget:
        assert final == assembly_module.assemble(full, None)
        return
    steps = assembly_module._steps(full)
    tried = [assembly_module._after(full, steps[:count]) for count in range(len(steps) + 1)]
    assert final == next(each for each in tried if each.tokens <= budget)
