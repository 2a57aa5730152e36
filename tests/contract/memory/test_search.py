"""Searching memories, on both databases: what is found, what is not, and that nobody finds another's."""

import json
import random
from dataclasses import asdict
from datetime import UTC, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.embedders.scripted import WordEmbedder
from orchestrator.errors import BAD_RECIPE, INTERNAL, AnamnesisError
from orchestrator.recall import searcher as searcher_module
from orchestrator.recall import service as service_module
from orchestrator.recall.context.collector import TraceConfig
from orchestrator.recall.context.result import RetrievalResult
from orchestrator.recall.person_index import PersonIndex
from orchestrator.recall.service import MemoryService, SearchOptions, own_memory
from orchestrator.recall.why import why
from orchestrator.store.engine.database import Store
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import metadata
from tests.support.builders import HandClock
from tests.support.memory.memories import EMBEDDER, a_service, import_texts, imported

ANN, BEN = "ann", "ben"
HEALTH = (
    "I am allergic to penicillin since childhood.",
    "My knee hurts when I climb stairs.",
    "I sleep badly and drink much coffee.",
    "My daughter has asthma.",
)


@pytest.fixture
def service(store: Store, clock: HandClock) -> MemoryService:
    return a_service(store, clock)


def found(result: RetrievalResult) -> list[str | None]:
    return [each.external_id for each in result.memories]


# --- what is found ------------------------------------------------------------------------------------------


@pytest.mark.requirement("002-001", "002-002", "002-004", "002-005", "002-006", "002-034", "002-043")
@pytest.mark.requirement("002-052", "003-070")
def test_a_search_finds_the_memory_and_says_what_happened(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)

    result = service.search(ANN, "Which penicillin allergy do I have?")

    retrieval, packaging, assembly = (
        result.retrieval_summary,
        result.packaging_summary,
        result.assembly_summary,
    )
    assert retrieval is not None
    assert packaging is not None
    assert assembly is not None
    assert found(result)[0] == "m1"
    assert retrieval.query_text == "Which penicillin allergy do I have?"
    assert retrieval.candidate_ids[0] == result.memories[0].id
    assert retrieval.candidate_count == len(retrieval.candidate_ids)
    assert (retrieval.searched_count, assembly.primary_evidence_position) == (4, 1)
    assert set(packaging.included_ids) | set(packaging.dropped_ids) == set(retrieval.candidate_ids)
    assert result.memories[0].signals["words"] > 0
    assert result.memories[0].signals["vector"] > 0
    scores = [each.score for each in result.memories]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.requirement("002-003", "002-041", "002-042")
def test_a_result_is_plain_data_without_what_does_not_apply(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)

    plain = service.search(ANN, "penicillin").plain()
    nothing = service.search(BEN, "penicillin").plain()
    tiered = service.search(ANN, "penicillin", SearchOptions(mode="tiered")).plain()

    assert json.loads(json.dumps(plain)) == plain
    for each in (plain, nothing, tiered):
        assert {"memories", "injectionText", "citations", "retrievalMode"} <= set(each)
        assert None not in each.values()
    assert {"tierAssignments", "expandIds"} & set(plain) == set()
    assert {"tierAssignments", "expandIds"} <= set(tiered)


@pytest.mark.requirement("002-051")
def test_no_field_of_a_summary_is_ever_removed(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)

    result = service.search(ANN, "penicillin")
    tiered = service.search(ANN, "penicillin", SearchOptions(mode="tiered")).plain()

    promised = {
        "retrieval": {
            *("candidateIds", "candidateCount", "queryText", "skipRepair", "recipe", "searchedCount"),
            *("belowMinimumCount", "beyondLimitCount", "minimumScore", "period", "candidates", "byVectors"),
        },
        "packaging": {
            *("packageType", "includedIds", "droppedIds", "evidenceRoles", "episodeCount", "dateCount"),
            *("hasCurrentMarker", "hasConflictBlock", "tokenCost", "dropReasons"),
        },
        "assembly": {"finalIds", "finalTokenCost", "tokenBudget", "primaryEvidencePosition", "blocks"},
    }
    assert set(result.observability) == set(promised)
    assert all(fields <= set(result.observability[name]) for name, fields in promised.items())
    assert {"id", "score", "signals", "tokens"} <= set(result.observability["retrieval"]["candidates"][0])
    assert {
        *("memories", "injectionText", "citations", "retrievalMode", "tierAssignments", "expandIds"),
        *("estimatedContextTokens", "packagingSignal", "retrievalSummary", "packagingSummary"),
        "assemblySummary",
    } <= set(tiered)
    assert {
        *("id", "content", "similarity", "score", "importance", "position", "type", "tags", "saidAt"),
        "signals",
    } <= set(tiered["memories"][0])
    assert {"id", "tier"} <= set(tiered["tierAssignments"][0])
    assert {"type", "reason"} <= set(tiered["packagingSignal"])


def test_the_words_before_a_memory_help_to_find_it(store: Store, service: MemoryService) -> None:
    import_texts(
        store,
        ANN,
        "How is the headache today?",
        "It is an eight out of ten.",
        "I like tulips.",
        "Tea is nice.",
    )

    assert found(service.search(ANN, "headache severity eight"))[0] == "m2"


def test_a_pinned_or_well_rated_memory_comes_before_an_equal_one(
    store: Store, service: MemoryService
) -> None:
    imported(store, ANN, [{"id": name, "text": f"I take vitamin d {name}"} for name in ("a", "b", "c")])

    before = found(service.search(ANN, "vitamin d"))
    last = before[-1]
    store.write_now(lambda tx: tx.memories.update(own(tx, last), pinned=True))
    pinned = found(service.search(ANN, "vitamin d"))
    store.write_now(lambda tx: tx.memories.update(own(tx, last), pinned=False, user_rating=1))
    disliked = found(service.search(ANN, "vitamin d"))

    assert (pinned[0], disliked[-1]) == (last, last)


def own(tx: Any, external_id: str | None) -> str:
    row = tx.memory_index.by_external_id(ANN, external_id)
    return str(row.memory_id)


def test_time_words_narrow_to_dates_and_the_result_says_which(
    store: Store, service: MemoryService, clock: HandClock
) -> None:
    yesterday = (clock.now() - timedelta(days=1)).isoformat()
    imported(
        store,
        ANN,
        [
            {"id": "old", "text": "My head hurts", "date": "2019-03-01"},
            {"id": "new", "text": "My head hurts again", "date": yesterday},
        ],
    )

    narrowed = service.search(ANN, "Did my head hurt yesterday?")
    never = service.search(ANN, "Did my head hurt 3 days ago?")

    assert found(narrowed) == ["new"]
    assert narrowed.retrieval_summary is not None
    assert narrowed.retrieval_summary.period == f"{yesterday[:10]} to {yesterday[:10]}"
    assert set(found(never)) == {"old", "new"}
    assert never.retrieval_summary is not None
    assert never.retrieval_summary.period is None


def test_yesterday_is_that_of_the_person_whose_time_zone_is_known(
    store: Store, service: MemoryService, clock: HandClock
) -> None:
    zone = "Pacific/Kiritimati"  # 14 hours before UTC, so 10:30 UTC is half past midnight there
    imported(
        store,
        ANN,
        [
            {"id": "early", "text": "My head hurts", "date": "2024-01-14T05:00:00Z"},
            {"id": "late", "text": "My head hurts again", "date": "2024-01-15T09:00:00Z"},
        ],
    )
    assert f"{clock.now():%Y-%m-%d %H:%M}" == "2024-01-15 10:30"

    in_utc = service.search(ANN, "Did my head hurt yesterday?", SearchOptions(zone=UTC))
    store.write_now(lambda tx: tx.conversations.create(ANN, preferences={"time_zone": zone}))
    of_person = service.search(ANN, "Did my head hurt yesterday?")

    assert (found(in_utc), found(of_person)) == (["early"], ["late"])
    assert (str(in_utc.period), str(of_person.period)) == (
        "2024-01-14 to 2024-01-14",
        "2024-01-15 to 2024-01-15",
    )
    assert "[said 2024-01-15]" in of_person.injection_text


def test_a_search_is_narrowed_by_an_event_that_the_person_told_of(
    store: Store, service: MemoryService
) -> None:
    imported(
        store,
        ANN,
        [
            {"id": "old", "text": "I take ibuprofen for pain", "date": "2023-03-01"},
            {"id": "event", "text": "The surgery was on 5 March 2023", "date": "2023-03-09"},
            {"id": "new", "text": "I take paracetamol for pain", "date": "2023-03-12"},
            {"id": "undated", "text": "I take something for pain"},
        ],
    )

    before = service.search(ANN, "What did I take for pain before the surgery?")
    since = service.search(ANN, "What did I take for pain since my surgery?")
    unknown = service.search(ANN, "What did I take for pain before the wedding?")

    assert found(before) == ["old"]
    assert "new" in found(since)
    assert "old" not in found(since)
    assert {"old", "new"} <= set(found(unknown))
    periods_taken = [
        each.retrieval_summary.period for each in (before, since, unknown) if each.retrieval_summary
    ]
    assert periods_taken == [
        "until 2023-03-04, before the surgery on 2023-03-05",
        "from 2023-03-05, since my surgery on 2023-03-05",
        None,
    ]


def test_the_time_of_a_search_counts_reading_and_packaging_but_not_the_embedding(
    store: Store, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_texts(store, ANN, *HEALTH)
    seconds = 0.0

    def takes(target: Any, name: str, duration: float) -> None:
        work = getattr(target, name)

        def slow(*given: Any, **named: Any) -> Any:
            nonlocal seconds
            seconds += duration
            return work(*given, **named)

        monkeypatch.setattr(target, name, slow)

    embedder = WordEmbedder()
    for module in (service_module, searcher_module):
        monkeypatch.setattr(module, "perf_counter", lambda: seconds)
    takes(embedder, "embed", 100)
    takes(searcher_module, "rank", 1)
    takes(service_module, "package", 2)
    takes(service_module, "finalize_packaging_trace", 4)
    takes(MemoryService, "_with_contents", 8)

    result = a_service(store, clock, embedder=embedder).search(ANN, "penicillin")

    assert result.milliseconds == 15_000


def test_a_misspelt_word_is_found_unless_repair_is_skipped(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)

    repaired = service.search(ANN, "penicilin", SearchOptions(recipe="words"))
    skipped = service.search(ANN, "penicilin", SearchOptions(recipe="words", skip_repair=True))

    assert found(repaired)[0] == "m1"
    assert found(skipped) == []
    assert skipped.retrieval_summary is not None
    assert skipped.retrieval_summary.skip_repair


@pytest.mark.requirement("002-007")
def test_repair_is_skipped_only_on_request(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)

    summaries = [
        service.search(ANN, "knee", SearchOptions(skip_repair=skipped)).retrieval_summary
        for skipped in (True, False)
    ]

    assert [summary.skip_repair for summary in summaries if summary] == [True, False]


# --- what is not found --------------------------------------------------------------------------------------


def test_what_scores_too_low_is_not_recalled_but_counted(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)

    result = service.search(ANN, "zebra quasar nebula")

    assert result.memories == ()
    assert result.injection_text == ""
    assert result.retrieval_summary is not None
    assert result.retrieval_summary.below_minimum_count == len(HEALTH)


def test_archived_and_deleted_memories_are_never_found_until_they_are_back(
    store: Store, service: MemoryService
) -> None:
    import_texts(store, ANN, *HEALTH)
    first = store.read_now(lambda tx: own(tx, "m1"))
    assert found(service.search(ANN, "penicillin allergy"))[0] == "m1"

    store.write_now(lambda tx: tx.memories.update(first, archived=True))
    archived = found(service.search(ANN, "penicillin allergy"))
    store.write_now(lambda tx: tx.memories.update(first, archived=False))
    back = found(service.search(ANN, "penicillin allergy"))
    store.write_now(lambda tx: tx.memories.delete(first))
    deleted = found(service.search(ANN, "penicillin allergy"))
    store.write_now(lambda tx: tx.memories.restore(first))
    restored = found(service.search(ANN, "penicillin allergy"))

    assert ("m1" in archived, back[0], "m1" in deleted, restored[0]) == (False, "m1", False, "m1")


def test_an_erased_memory_leaves_the_index_of_a_running_process(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)
    service.search(ANN, "penicillin")
    first = store.read_now(lambda tx: own(tx, "m1"))

    store.write_now(lambda tx: tx.memories.erase(first))

    result = service.search(ANN, "penicillin allergy")
    assert "m1" not in found(result)
    assert result.retrieval_summary is not None
    assert result.retrieval_summary.searched_count == len(HEALTH) - 1


def test_a_memory_that_another_process_stored_is_found_at_once(
    store: Store, database_url: str, clock: HandClock, service: MemoryService
) -> None:
    import_texts(store, ANN, *HEALTH)
    service.search(ANN, "anything")
    other = Store.open(database_url, clock=clock, ids=_Ids(), synchronous="OFF", connections=1)
    try:
        imported(other, ANN, [{"id": "late", "text": "I broke my elbow."}])
    finally:
        other.close_now()

    assert found(service.search(ANN, "broken elbow"))[0] == "late"


class _Ids:
    def new(self, prefix: str) -> str:
        _Ids.count += 1
        return f"{prefix}other{_Ids.count}"

    count = 0


@pytest.mark.requirement("002-047")
def test_a_query_that_names_a_memory_returns_it_without_a_search(
    store: Store, service: MemoryService
) -> None:
    import_texts(store, ANN, *HEALTH)
    first = store.read_now(lambda tx: own(tx, "m1"))

    result = service.search(ANN, f"memory://{first}")
    of_another = service.search(BEN, f"memory://{first}")

    assert [each.id for each in result.memories] == [first]
    assert result.observability == {}
    assert of_another.memories == ()


def test_an_unknown_recipe_is_refused(service: MemoryService) -> None:
    with pytest.raises(AnamnesisError) as refused:
        service.search(ANN, "knee", SearchOptions(recipe="soup"))

    assert refused.value.problem is BAD_RECIPE


@pytest.mark.parametrize(
    ("prepare", "options", "boundary"),
    [
        (lambda tx, id: None, SearchOptions(), "found"),
        (lambda tx, id: tx.memories.update(id, archived=True), SearchOptions(), "archived"),
        (lambda tx, id: tx.memories.delete(id), SearchOptions(), "unknown"),
        (lambda tx, id: None, SearchOptions(mode="packed", token_budget=1), "budget"),
    ],
)
def test_why_names_the_boundary_at_which_a_memory_fell_out(
    store: Store, service: MemoryService, prepare: Any, options: SearchOptions, boundary: str
) -> None:
    import_texts(store, ANN, *HEALTH)
    first = store.read_now(lambda tx: own(tx, "m1"))
    store.write_now(lambda tx: prepare(tx, first))

    assert why_not(store, service, "penicillin allergy", "m1", options)[0] == boundary


def test_why_says_by_how_much_a_memory_missed_the_minimum_or_the_limit(
    store: Store, service: MemoryService
) -> None:
    import_texts(store, ANN, *HEALTH)

    low = why_not(store, service, "zebra quasar", "m2", SearchOptions())
    late = why_not(store, service, "my daughter's asthma and my knee", "m2", SearchOptions(limit=1))

    assert low[0] == "minimum"
    assert "below the minimum" in low[1]
    assert late[0] == "packaging"
    assert "1 were wanted, and the last of them has" in late[1]


def test_why_names_a_memory_that_was_not_said_in_the_dates(
    store: Store, service: MemoryService, clock: HandClock
) -> None:
    yesterday = clock.now() - timedelta(days=1)
    old = {"id": "old", "text": "My head hurts", "date": "2019-03-01"}
    imported(store, ANN, [old, {"id": "new", "text": "My head hurts again", "date": yesterday.isoformat()}])

    boundary, reason = why_not(store, service, "Did my head hurt yesterday?", "old", SearchOptions())

    assert boundary == "period"
    assert f"{yesterday:%Y-%m-%d} to {yesterday:%Y-%m-%d}" in reason


def test_why_names_a_memory_that_others_left_no_place_among_the_candidates(
    store: Store, service: MemoryService
) -> None:
    few = [
        {"id": f"m{number}", "text": f"I like tea number{number}", "episode": f"e{number}"}
        for number in range(60)
    ]
    imported(store, ANN, few)
    everything_found = service.search(ANN, "Do I like tea?", SearchOptions(limit=60))
    last = everything_found.memories[-1].external_id or ""

    boundary, reason = why_not(store, service, "Do I like tea?", last, SearchOptions())

    assert len(everything_found.memories) == 60
    assert boundary == "candidates"
    assert "but 50 others were better" in reason


def test_why_names_a_memory_that_is_not_indexed_yet(store: Store, service: MemoryService) -> None:
    new = store.write_now(lambda tx: tx.memories.add(NewMemory(content="I like tea", user_id=ANN)))

    assert why_not(store, service, "tea", new.id, SearchOptions())[0] == "not indexed"


def why_not(
    store: Store, service: MemoryService, query: str, external: str, options: SearchOptions
) -> tuple[str, str]:
    from dataclasses import replace

    memory = store.read_now(lambda tx: own_memory(tx, ANN, external))
    watched = (memory.id,) if memory else ()
    result = service.search(ANN, query, replace(options, watched=watched))
    indexed = store.read_now(lambda tx: tx.memory_index.get(ANN, memory.id)) if memory else None
    return why(result, memory, indexed, EMBEDDER.name)


# --- whose memories -----------------------------------------------------------------------------------------


def test_an_index_refuses_a_memory_of_another_person(store: Store) -> None:
    import_texts(store, BEN, *HEALTH)
    rows = store.read_now(lambda tx: tx.memory_index.since(BEN, -1))

    with pytest.raises(AnamnesisError) as refused:
        PersonIndex(ANN, EMBEDDER.name, EMBEDDER.width).update(rows, 1)

    assert refused.value.problem is INTERNAL


def test_no_query_of_one_person_reads_contents_of_another(store: Store) -> None:
    import_texts(store, BEN, *HEALTH)
    ids = [row.memory_id for row in store.read_now(lambda tx: tx.memory_index.since(BEN, -1))]

    stolen = store.read_now(lambda tx: tx.memory_index.contents(ANN, ids))

    assert (len(ids), stolen) == (4, {})


SECRETS = {ANN: "apricot", BEN: "blueberry"}
words = st.lists(
    st.sampled_from(["tea", "knee", "sleep", "apricot", "blueberry", "pain", "last week"]), max_size=5
)


@pytest.fixture(scope="module")
def two_people(shared_store: Store) -> MemoryService:
    for person, secret in SECRETS.items():
        imported(
            shared_store,
            person,
            [
                {
                    "id": f"{number}",
                    "text": f"{secret} {word}",
                    "episode": f"e{number // 9}",
                    "speaker": "Sam",
                }
                for number, word in enumerate(["tea", "knee", "sleep", "pain", "walk", "rain"] * 20)
            ],
        )
    return a_service(shared_store)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    person=st.sampled_from([ANN, BEN, "eve"]),
    asked=words,
    recipe=st.sampled_from(["default", "words", "meaning", "recent"]),
    mode=st.sampled_from(["flat", "packed", "tiered"]),
    limit=st.integers(1, 200),
)
def test_nobody_ever_finds_a_memory_of_another_person(
    two_people: MemoryService, person: str, asked: list[str], recipe: str, mode: Any, limit: int
) -> None:
    result = two_people.search(person, " ".join(asked), SearchOptions(limit, recipe, mode))

    others = {secret for other, secret in SECRETS.items() if other != person}
    assert all(secret not in each.content for each in result.memories for secret in others)
    assert all(secret not in result.injection_text for secret in others)


CONVERSATIONS = 500
SEARCHES = 10_000
WORDS = [
    f"{first}{last}" for first in "bdfgklmnprst" for last in ("ain", "eep", "all", "ummer", "ick", "ast")
]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_in_ten_thousand_random_searches_nobody_finds_a_memory_of_another(shared_store: Store) -> None:
    chance = random.Random(20)
    people = ("soak-ann", "soak-ben")
    contents: dict[str, set[str]] = {}
    for person in people:
        lines = [
            {
                "id": f"{talk}.{turn}",
                "text": " ".join(chance.choices(WORDS, k=chance.randint(1, 12))),
                "episode": f"talk{talk}",
                "speaker": chance.choice(("Sam", "Alex", None)),
                "date": f"{chance.randint(2000, 2024)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
            }
            for talk in range(CONVERSATIONS)
            for turn in range(chance.randint(1, 6))
        ]
        given = [{name: value for name, value in line.items() if value is not None} for line in lines]
        imported(shared_store, person, given)
        rows = shared_store.read_now(lambda tx, person=person: tx.memory_index.since(person, -1))  # type: ignore[misc]
        contents[person] = {row.memory_id for row in rows}
        assert len(contents[person]) == len(given)
    service, found = a_service(shared_store), 0

    for _ in range(SEARCHES):
        person = chance.choice(people)
        query = " ".join(
            (*chance.choices(WORDS, k=chance.randint(0, 6)), chance.choice(("", "Sam", "last year")))
        )
        options = SearchOptions(
            chance.randint(1, 60),
            chance.choice(("default", "words", "meaning", "recent")),
            chance.choice(("flat", "packed", "tiered")),
            skip_repair=chance.random() < 0.5,
        )
        result = service.search(person, query, options)
        seen = {each.id for each in result.memories}
        if result.retrieval_summary is not None:
            seen |= set(result.retrieval_summary.candidate_ids)
        found += len(seen)
        assert seen <= contents[person]

    assert found > SEARCHES


HOSTILE = (
    "'; DROP TABLE alicia_memory; --",
    '" OR 1=1 --',
    "NEAR(a b, 5) AND NOT *",
    'content:"a" ^b OR (((',
    "%s %(x)s ? :name $1 {}",
    "\\ \u0000 \x1a \ud83d",
    "\U0001d56c\U0001d593 \ufdfd \u202e tea",
    "memory://'; DELETE FROM memory_index",
    "a" * 1_000_000,
    "knee " * 200_000,
    "",
    " ",
)


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_no_query_is_an_error(two_people: MemoryService, query: str) -> None:
    result = two_people.search(ANN, query)

    assert all("blueberry" not in each.content for each in result.memories)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=200))
def test_no_text_is_an_error(two_people: MemoryService, query: str) -> None:
    result = two_people.search(ANN, query)

    assert len(result.memories) <= 8


# --- reading changes nothing --------------------------------------------------------------------------------


def everything(store: Store) -> dict[str, list[str]]:
    def read(tx: Any) -> dict[str, list[str]]:
        return {
            name: sorted(map(repr, tx.unit.connection.execute(f"SELECT * FROM {name}").fetchall()))  # noqa: S608
            for name in metadata.tables
        }

    return store.read_now(read)


def test_a_search_changes_nothing_but_the_record_of_searches(store: Store, service: MemoryService) -> None:
    import_texts(store, ANN, *HEALTH)
    before = everything(store)

    for mode in ("flat", "packed", "tiered"):
        service.search_for(
            ANN, "penicillin", limit=3, mode=mode, token_budget=None, recipe=None, skip_repair=False
        )
    service.search(ANN, "memory://m1")
    after = everything(store)

    assert {name for name in after if after[name] != before[name]} == {"retrievals"}
    assert len(after["retrievals"]) == 3


# --- traces on disk -----------------------------------------------------------------------------------------


@pytest.mark.requirement("002-057", "002-058", "002-059", "002-061", "002-056")
def test_each_search_writes_one_file_only_if_tracing_is_on(
    store: Store, clock: HandClock, tmp_path: Any
) -> None:
    import_texts(store, ANN, *HEALTH)
    folder = tmp_path / "traces"
    tracing = TraceConfig(enabled=False, folder=folder)
    service = a_service(store, clock, tracing)

    service.search(ANN, "penicillin")
    assert not folder.exists()
    tracing.enabled = True
    result = service.search(ANN, "penicillin")

    (file,) = folder.iterdir()
    trace = json.loads(file.read_text())
    assert {name: trace[name] for name in result.observability} == result.observability
    stage = trace["stages"][0]
    assert {"preview", "similarity", "score"} <= set(stage["memories"][0])
    assert all("timestamp" in each for each in trace["stages"])


@pytest.mark.requirement("002-060")
def test_traces_are_written_to_the_documented_folder_by_default() -> None:
    assert TraceConfig().folder.as_posix() == "docs/memory-research/evaluation/traces"


def test_the_summaries_have_the_same_fields_in_the_library_and_in_data(
    store: Store, service: MemoryService
) -> None:
    import_texts(store, ANN, *HEALTH)

    result = service.search(ANN, "knee")

    assert result.assembly_summary is not None
    assert len(asdict(result.assembly_summary)) == len(result.observability["assembly"])
