"""`anamnesis memory`: import, search and change memories, as scripts use it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.servers.embedding_server import embedding_server

pytestmark = pytest.mark.usefixtures("nothing_configured")

LINES: list[dict[str, str]] = [
    {"id": "D1:1", "text": "Did you go to the doctor?", "speaker": "Ben", "date": "2023-05-08"},
    {"id": "D1:2", "text": "Yes, I got antibiotics for my ear.", "speaker": "Ann"},
    {"id": "D2:1", "text": "I adopted a dog called Rex.", "speaker": "Ann", "date": "2023-06-01"},
]
for line in LINES:
    line["episode"] = line["id"].partition(":")[0]


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    file = tmp_path / "memories.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    done = run("memory", "import", "ann", file)
    assert (done.exit_code, done.stdout) == (
        0,
        "3 read, 3 added, 0 updated, 0 unchanged, 0 undated, 0 unreadable\n",
    )
    return file


def search(*arguments: str) -> Any:
    done = run("memory", "search", "ann", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_import_can_be_repeated_and_reports_bad_lines(imported: Path) -> None:
    again = run("memory", "import", "ann", imported, "--json")
    imported.write_text("not json\n")
    bad = run("memory", "import", "ann", imported)

    assert json.loads(again.stdout)["unchanged"] == 3
    assert (bad.exit_code, "line 1: it is not a JSON object" in bad.output) == (1, True)


def test_many_queries_give_one_line_each_in_their_order(imported: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    asked = [("q2", "What is the dog called?"), ("q1", "Why antibiotics?")]
    queries.write_text("".join(json.dumps({"id": id, "query": query}) + "\n" for id, query in asked))

    lines = [
        json.loads(line) for line in search("--queries", str(queries), "--limit", "2", "--json").splitlines()
    ]

    assert [line["id"] for line in lines] == ["q2", "q1"]
    assert [line["results"][0]["id"] for line in lines] == ["D2:1", "D1:2"]
    for line in lines:
        assert 1 <= len(line["results"]) <= 2
        scores = [each["score"] for each in line["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(each["signals"] for each in line["results"])


@pytest.mark.requirement("002-054")
def test_a_search_shows_what_was_found_and_the_way_of_each_candidate(imported: Path) -> None:
    shown = search("What is the dog called?", "--explain")
    data = json.loads(search("What is the dog called?", "--json"))

    assert "D2:1" in shown
    assert "vector" in shown
    assert "candidate" in shown
    assert "included" in shown
    assert "memories searched" in shown
    assert data["memories"][0]["content"] == LINES[2]["text"]
    assert data["assemblySummary"]["primaryEvidencePosition"] == 1


def test_why_says_where_a_memory_fell_out(imported: Path) -> None:
    assert "It was found: position 1" in search("What is the dog called?", "--why", "D2:1")
    run("memory", "archive", "ann", "D2:1")

    why = json.loads(search("What is the dog called?", "--why", "D2:1", "--json"))

    assert (why["id"], why["boundary"]) == ("D2:1", "archived")


def test_a_memory_is_listed_shown_pinned_deleted_and_brought_back(imported: Path) -> None:
    listed = run("memory", "list", "ann").stdout
    shown = json.loads(run("memory", "show", "ann", "D1:2", "--json").stdout)
    run("memory", "pin", "ann", "D1:2")
    deleted = run("memory", "delete", "ann", "D1:2")
    gone = run("memory", "show", "ann", "D1:2")
    back = run("memory", "undo", "ann")
    after = json.loads(run("memory", "show", "ann", "D1:2", "--json").stdout)

    assert all(line["id"] in listed for line in LINES)
    assert (shown["content"], shown["pinned"]) == (LINES[1]["text"], False)
    assert [deleted.exit_code, gone.exit_code, back.exit_code] == [0, 2, 0]
    assert back.stdout == "D1:2 is back\n"
    assert after["pinned"]
    assert [entry["action"] for entry in after["ledger"]] == ["created", "updated", "deleted", "restored"]


def test_a_final_deletion_cannot_be_undone(imported: Path) -> None:
    run("memory", "delete", "ann", "D2:1", "--final")

    assert run("memory", "undo", "ann").exit_code == 2
    assert "Rex" not in run("memory", "list", "ann", "--all").stdout
    assert run("check").exit_code == 0


def test_an_export_can_be_imported_for_somebody_else(imported: Path, tmp_path: Path) -> None:
    exported = run("memory", "export", "ann").stdout
    copy = tmp_path / "copy.jsonl"
    copy.write_text(exported)

    run("memory", "import", "ben", copy)

    assert [json.loads(line)["text"] for line in exported.splitlines()] == [line["text"] for line in LINES]
    assert run("memory", "export", "ben").stdout == exported


@pytest.mark.requirement("002-053", "002-055")
def test_a_report_sums_up_the_recorded_searches(imported: Path) -> None:
    search("What is the dog called?")
    search("antibiotics", "--mode", "packed", "--budget", "40")

    figures = json.loads(run("memory", "report", "ann", "--json").stdout)
    shown = run("memory", "report", "ann").stdout

    assert figures["searches"] == 2
    assert figures["roles"]["primary"] == 2
    assert 0 < figures["share of the budget used"] <= 1
    assert figures["tokens per search"] > 0
    assert "█" in shown


def test_a_report_draws_the_recorded_searches(imported: Path, tmp_path: Path) -> None:
    search("What is the dog called?")
    search("antibiotics", "--mode", "packed", "--budget", "40")
    image = tmp_path / "report.svg"

    figures = json.loads(run("memory", "report", "ann", "--json", "--picture", str(image)).stdout)
    drawn = re.findall(r"<text [^>]*>([^<]*)</text>", image.read_text())

    by_tokens = drawn.index("Searches by tokens")
    dropped = drawn.index("Searches by share of candidates dropped")
    used = drawn.index("Searches by share of the token budget used")
    roles = drawn.index("Memories by role")
    assert sum(map(int, drawn[by_tokens + 2 : dropped : 2])) == figures["searches"] == 2
    assert sum(map(int, drawn[dropped + 2 : used : 2])) == 2
    assert sum(map(int, drawn[used + 2 : roles : 2])) == 1  # a search without a budget uses none
    assert dict(zip(drawn[roles + 1 :: 2], map(int, drawn[roles + 2 :: 2]), strict=True)) == figures["roles"]
    assert not any("dog" in text or "antibiotics" in text for text in drawn)


def test_a_picture_of_no_search_says_so(imported: Path, tmp_path: Path) -> None:
    image = tmp_path / "report.svg"

    run("memory", "report", "ann", "--picture", str(image))
    nowhere = run("memory", "report", "ann", "--picture", str(tmp_path / "missing" / "report.svg"))

    assert image.read_text().count("none recorded") == 4
    assert nowhere.exit_code == 2
    assert "missing/report.svg" in nowhere.output


@pytest.mark.parametrize("arguments", [("",), ("--queries", "nowhere.jsonl"), ()])
def test_a_search_needs_one_query_or_a_file_of_them(arguments: tuple[str, ...]) -> None:
    assert run("memory", "search", "ann", *arguments).exit_code == (0 if arguments == ("",) else 2)


def test_a_memory_of_another_person_cannot_be_shown_or_changed(imported: Path) -> None:
    shown = json.loads(run("memory", "show", "ann", "D1:1", "--json").stdout)

    for command in ("show", "pin", "archive", "delete"):
        assert run("memory", command, "ben", shown["memory_id"]).exit_code == 2


def test_another_embedding_model_is_chosen_and_its_vectors_computed(
    imported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedding_server() as server:
        monkeypatch.setenv("ANAMNESIS_EMBEDDINGS_MODEL", "endpoint")
        monkeypatch.setenv("ANAMNESIS_EMBEDDINGS_ENDPOINT", server.url)
        incomplete = run("memory", "embed")
        monkeypatch.setenv("ANAMNESIS_EMBEDDINGS_ENDPOINT_MODEL", "words")
        monkeypatch.setenv("ANAMNESIS_EMBEDDINGS_WIDTH", "384")
        monkeypatch.setenv("ANAMNESIS_EMBEDDINGS_QUERY_PREFIX", "asked: ")
        before = run("memory", "status")
        done = run("memory", "embed")
        again = run("memory", "embed", "--json")
        after = run("memory", "status")
        found = json.loads(search("What is the dog called?", "--json"))

    assert "needs embeddings.endpoint_model, too" in incomplete.output
    assert "3 memories have vectors of all-MiniLM-L6-v2" in before.stdout
    assert "3 of 3 memories have vectors of words asked: (384)" in done.stdout
    assert json.loads(again.stdout) == {"model": "words asked: (384)", "done": 3, "total": 3}
    assert "3 memories have vectors of words" in after.stdout
    assert found["memories"][0]["signals"]["vector"] > 0
    assert server.asked[-1]["input"] == ["asked: What is the dog called?"]


def test_an_explained_search_names_dropped_candidates_as_imported_with_score_and_reason(
    imported: Path,
) -> None:
    shown = search("What is the dog called, and why antibiotics?", "--explain", "--limit", "1")

    journey = shown.partition("candidate")[2].splitlines()
    dropped = [line.split() for line in journey if "beyond_limit" in line]
    assert dropped
    assert all(name.startswith("D") and 0 < float(score) <= 1 for name, score, *_ in dropped)
