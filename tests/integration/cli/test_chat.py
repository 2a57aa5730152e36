"""`anamnesis chat` and `anamnesis traces` as a script runs them: in their own process, on a real database."""

import asyncio
import io
import json
import os
import re
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import chat
from tests.faults.deployment import Deployment, Server, a_deployment
from tests.support.servers.forked_servers import Forker
from tools.servers.livekit import Address
from tools.servers.process import free_port
from tools.setup.toolchain import CHECKOUT

Line = dict[str, Any]


def lines(output: str) -> list[Line]:
    """The printed lines."""
    return [json.loads(line) for line in output.splitlines()]


def rows(data: Path, query: str) -> list[sqlite3.Row]:
    """The rows of a query."""
    connection = sqlite3.connect(data / "anamnesis.db")
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def headache(forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Line]]:
    """A conversation about a headache."""
    data = tmp_path_factory.mktemp("chat")
    done = forker.run(data, "chat", "--json", typed=b"I am having a headache\n8\n")
    assert (done.returncode, done.stderr) == (0, "")
    return data, lines(done.stdout)


def turns(said: list[Line]) -> list[list[Line]]:
    """The lines of each turn, from its Acknowledgement, which may come twice, to its last sentence."""
    found: list[list[Line]] = []
    for line in said:
        if line["stanzaId"] == 0:
            continue
        if not found or found[-1][-1]["body"].get("isFinal"):
            found.append([])
        found[-1].append(line)
    return found


@pytest.mark.requirement("000-009", "000-026", "000-027", "000-034", "003-159")
def test_each_line_is_acknowledged_then_answered_with_its_traces(headache: tuple[Path, list[Line]]) -> None:
    _, said = headache

    assert len(turns(said)) == 2
    for turn in turns(said):
        names = [line["name"] for line in turn]
        assert names[:3] == ["Acknowledgement", "StartAnswer", "MemoryTrace"]
        assert names[-1] == "AssistantSentence"
        assert [line["body"]["isFinal"] for line in turn if line["name"] == "AssistantSentence"][-1] is True
        assert len({line["body"]["previousId"] for line in turn if line["name"] == "MemoryTrace"}) == 1


@pytest.mark.requirement(
    "000-006", "000-041", "000-042", "000-045", "000-046", "000-048", "000-049", "003-084"
)
def test_each_trace_is_a_row_with_equal_fields(headache: tuple[Path, list[Line]]) -> None:
    data, said = headache
    sent = {line["body"]["id"]: line["body"] for line in said if line["name"] == "MemoryTrace"}

    kept = {row["id"]: row for row in rows(data, "SELECT * FROM alicia_memory_used")}

    assert kept.keys() == sent.keys()
    for trace_id, body in sent.items():
        row = kept[trace_id]
        assert (row["message_id"], row["memory_id"]) == (body["previousId"], body["memoryId"])
        assert (row["action"], row["content"]) == (body["action"], body["content"])
        assert (row["confidence"], row["memory_type"]) == (body.get("confidence"), body["memoryType"])
        assert json.loads(row["metadata"]) == body["metadata"]


@pytest.mark.requirement("003-020", "003-031", "003-033", "003-035")
def test_the_messages_are_linked_one_after_the_other(headache: tuple[Path, list[Line]]) -> None:
    data, _ = headache

    kept = rows(data, "SELECT * FROM alicia_messages ORDER BY sequence_number")

    assert [row["message_role"] for row in kept] == ["user", "assistant", "user", "assistant"]
    assert [row["previous_id"] for row in kept] == [None, *(row["id"] for row in kept[:-1])]
    assert {row["completion_status"] for row in kept} == {"completed"}


@pytest.mark.requirement("001-027", "001-028")
def test_a_bare_8_is_understood_as_the_headaches_severity(headache: tuple[Path, list[Line]]) -> None:
    data, _ = headache

    (block,) = rows(data, "SELECT value FROM blocks WHERE label = 'conversation_history'")
    first, second = json.loads(block["value"])["turns"]

    assert first["context_enrichment"]["relevant_history"] == []
    assert first["intent_classification"]["intent"] == "GENERAL_HEALTH"
    enriched = second["context_enrichment"]["enriched_message"].lower()
    assert "headache" in enriched
    assert "8 out of 10" in enriched
    assert second["context_enrichment"]["relevant_history"] == ["turn_1"]
    assert "scale" not in second["agent_response"]["content"]


def test_a_conversation_is_resumed(forker: Forker, headache: tuple[Path, list[Line]]) -> None:
    data, said = headache
    conversation = said[0]["conversationId"]

    done = forker.run(data, "chat", "--json", "--conversation", conversation, typed=b"since Tuesday\n")

    resumed = lines(done.stdout)
    assert done.returncode == 0
    assert resumed[0]["body"]["lastServerStanza"] == said[-1]["stanzaId"]
    assert resumed[3]["stanzaId"] == said[-1]["stanzaId"] - 1
    assert "Tuesday" in "".join(line["body"].get("text", "") for line in resumed)


def test_safety_events_are_listed_without_quotes(forker: Forker, tmp_path: Path) -> None:
    typed = b"I have crushing chest pain and my left arm is numb\n"
    said = lines(forker.run(tmp_path, "chat", "--json", typed=typed).stdout)
    conversation = said[0]["conversationId"]

    everywhere = forker.run(tmp_path, "safety", "events", "--json")
    here = forker.run(tmp_path, "safety", "events", conversation)
    nowhere = forker.run(tmp_path, "safety", "events", "conv_nobody")

    (event,) = lines(everywhere.stdout)
    assert (event["conversation"], event["kind"], event["tier"]) == (conversation, "emergency", 3)
    assert (event["stage"], event["turn"], event["alert"]) == ("message", 1, None)
    assert "coronary" in here.stdout
    assert "left arm" not in everywhere.stdout + here.stdout
    assert nowhere.returncode == 2


def test_an_unknown_conversation_is_refused_in_one_line(forker: Forker, tmp_path: Path) -> None:
    done = forker.run(tmp_path, "chat", "--json", "--conversation", "conv_nobody", typed=b"hello\n")

    assert done.returncode == 2
    assert done.stderr.strip() == "error: There is no such conversation. Start one by leaving out the id."
    assert rows(tmp_path, "SELECT * FROM alicia_conversations") == []


def test_another_persons_conversation_is_refused_like_an_unknown_one(
    forker: Forker, headache: tuple[Path, list[Line]]
) -> None:
    data, said = headache

    done = forker.run(
        data, "chat", "--json", "--user", "somebody_else", "--conversation", said[0]["conversationId"]
    )

    assert done.returncode == 2
    assert "no such conversation" in done.stderr


def test_traces_are_listed_in_the_order_they_were_sent(
    forker: Forker, headache: tuple[Path, list[Line]]
) -> None:
    data, said = headache
    sent = [line["body"]["id"] for line in said if line["name"] == "MemoryTrace"]

    done = forker.run(data, "traces", said[0]["conversationId"], "--json")

    assert [trace["id"] for trace in lines(done.stdout)][: len(sent)] == sent


def test_in_the_terminal_the_traces_are_below_the_answer(forker: Forker, tmp_path: Path) -> None:
    shown = forker.run(tmp_path, "chat", typed=b"I am having a headache\n").stdout
    hidden = forker.run(tmp_path, "chat", "--quiet", typed=b"I am having a headache\n").stdout

    assert shown.index("headache") < shown.index("stored conversation_history, revision 1")
    assert "conversation_history" not in hidden
    assert "headache" in hidden


def test_scripts_and_terminals_show_that_the_model_did_not_answer(forker: Forker, tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    (tmp_path / "default.toml").write_text(f'[chat]\nendpoint = "{nowhere}"\nmodel = "a_model"\n')
    with_a_model = ["chat", "--config", str(tmp_path)]
    typed = b"I am having a headache\n"

    result = lines(forker.run(tmp_path, *with_a_model, "--json", typed=typed).stdout)
    shown = forker.run(tmp_path, *with_a_model, "--quiet", typed=typed).stdout
    without_one = forker.run(tmp_path, "chat", typed=typed).stdout

    assert result[-1]["body"]["isFinal"]
    assert result[-1]["meta"]["model.stood_in"] == "local"
    assert result[-1]["meta"]["model.trouble"] == "unreachable"
    assert "\n  answered without the model: unreachable\n" in shown
    assert "without the model" not in without_one


def test_no_log_lines_appear_in_a_chat_unless_they_are_configured(forker: Forker, tmp_path: Path) -> None:
    chat = ["chat", "--config", str(tmp_path)]
    away = f'[letta]\nbase_url = "http://127.0.0.1:{free_port()}"\n'
    (tmp_path / "default.toml").write_text(away)
    typed = b"I am having a headache\n"

    shown = forker.run(tmp_path / "data", *chat, typed=typed)
    for_a_script = forker.run(tmp_path / "data", *chat, "--json", typed=typed)
    (tmp_path / "default.toml").write_text(f'{away}[logs]\nlevel = "warning"\n')
    asked_for = forker.run(tmp_path / "data", *chat, typed=typed)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "answered without the model" in shown.stdout
    assert "letta_agent_not_ready" in for_a_script.stderr
    assert "letta_agent_not_ready" in asked_for.stderr


def test_the_terminal_shows_what_the_readme_shows(forker: Forker, tmp_path: Path) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    [sample] = re.findall(r"^```\n(you> .*?)^```$", readme, re.MULTILINE | re.DOTALL)
    typed = [line.removeprefix("you> ") for line in sample.splitlines() if line.startswith("you> ")]
    result = [line for line in sample.splitlines() if line != "  …" and not line.startswith("you> ")]

    shown = forker.run(
        tmp_path, "chat", typed="".join(f"{line}\n" for line in typed).encode()
    ).stdout.splitlines()

    in_order = iter(without_numbers(line.removeprefix("you> ")) for line in shown)
    assert [line for line in result if without_numbers(line) not in in_order] == []


def without_numbers(line: str) -> str:
    """Replace the numbers: the size of a block depends on measured durations."""
    return re.sub(r"\d+", "N", line)


def test_a_line_that_is_not_text_is_skipped_and_reported(forker: Forker, tmp_path: Path) -> None:
    done = forker.run(tmp_path, "chat", "--json", typed=b"\xff\xfe\nI am having a headache\n")

    assert done.returncode == 0
    assert done.stderr.strip() == "error: line 1 is not UTF-8; it was skipped"
    assert done.stdout.count('"isFinal":true') == 1


def to(server: Server, place: Deployment) -> tuple[str, ...]:
    """The options to connect to that server, with the keys in its data folder."""
    return ("--server", server.url, "--key-file", str(place.folder / "keys.json"))


@pytest.mark.parametrize("livekit_too", [False, True], ids=["websocket", "livekit"])
async def test_chatting_with_a_running_server_works_like_in_process(
    forker: Forker, tmp_path: Path, livekit: Address, livekit_too: bool
) -> None:
    async with a_deployment(forker, tmp_path / "theirs") as place:
        place.livekit = livekit
        server = await place.start()
        options = ["chat", "--json", *to(server, place), *(["--livekit"] if livekit_too else [])]
        done = await asyncio.to_thread(
            forker.run, tmp_path / "ours", *options, typed=b"I am having a headache\n8\n"
        )
        server.signal(signal.SIGTERM)
        assert await server.ended() == 0

    assert (done.returncode, done.stderr) == (0, "")
    assert [turn[-1]["body"]["isFinal"] for turn in turns(lines(done.stdout))] == [True, True]
    assert not (tmp_path / "ours" / "anamnesis.db").exists()


async def test_the_error_of_a_server_without_livekit_is_printed(forker: Forker, tmp_path: Path) -> None:
    async with a_deployment(forker, tmp_path / "theirs") as place:
        server = await place.start()
        done = await asyncio.to_thread(forker.run, tmp_path / "ours", "chat", *to(server, place), "--livekit")

    assert done.returncode == 2
    assert "This server is not configured for LiveKit." in done.stderr


@pytest.mark.parametrize("livekit_too", [False, True], ids=["websocket", "livekit"])
@pytest.mark.requirement("003-148", "003-149", "003-151", "003-153")
async def test_a_later_run_gets_what_a_killed_run_missed(
    forker: Forker, tmp_path: Path, livekit: Address, livekit_too: bool
) -> None:
    async with a_deployment(forker, tmp_path / "theirs") as place:
        place.livekit = livekit
        server = await place.start()
        options = ["chat", "--json", *to(server, place)]
        options += ["--livekit"] if livekit_too else []
        killed = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator", "--data", str(tmp_path / "ours"), *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert killed.stdin is not None
        assert killed.stdout is not None
        killed.stdin.write(b"I am having a headache\n")
        before = [await killed.stdout.readline()]
        while b'"StartAnswer"' not in before[-1]:
            before.append(await killed.stdout.readline())
        killed.kill()
        before.append(await killed.stdout.read())
        first = lines(b"".join(before).decode())
        options += ["--conversation", first[0]["conversationId"]]
        again = await asyncio.to_thread(forker.run, tmp_path / "ours", *options, typed=b"8\n")

    numbers = [
        [-line["stanzaId"] for line in some if line["stanzaId"]] for some in (first, lines(again.stdout))
    ]
    assert (again.returncode, again.stderr) == (0, "")
    assert numbers[1][0] in (numbers[0][-1], numbers[0][-1] + 1)
    assert sorted({*numbers[0], *numbers[1]}) == list(range(1, numbers[1][-1] + 1))
    assert sum(line["body"].get("isFinal", False) for line in lines(again.stdout)) >= 1


def test_an_unreachable_server_is_reported_in_one_line(forker: Forker, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key\n")
    options = ["--server", "http://127.0.0.1:9", "--key-file", str(tmp_path / "key")]

    done = forker.run(tmp_path, "chat", "--json", *options, typed=b"hello\n")

    assert done.returncode == 2
    assert "does not answer" in done.stderr


async def test_the_key_of_a_server_comes_from_a_variable(forker: Forker, tmp_path: Path) -> None:
    async with a_deployment(forker, tmp_path / "theirs") as place:
        server = await place.start()
        chatting = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator", "--data", str(tmp_path / "ours")),
            *("chat", "--json", "--server", server.url),
            env={**os.environ, "ANAMNESIS_KEY": server.key},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await chatting.communicate(b"I am having a headache\n")

    assert chatting.returncode == 0
    assert turns(lines(said.decode()))[0][-1]["body"]["isFinal"]


def test_the_key_of_a_server_comes_from_a_prompt_that_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def prompt(text: str, *, hide_input: bool, err: bool) -> str:
        return f"{text}-{hide_input}-{err}"

    monkeypatch.delenv("ANAMNESIS_KEY", raising=False)
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("click.prompt", prompt)

    assert chat._read_key(None, "local") == "Key-True-True"


class Terminal(io.StringIO):
    """A standard input that reports to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("server", ["http://127.0.0.1:9/#a-key", "http://127.0.0.1:9#a-code"])
def test_an_address_with_a_key_is_refused_and_says_what_to_do(
    forker: Forker, tmp_path: Path, server: str
) -> None:
    done = forker.run(tmp_path, "chat", "--server", server, typed=b"hello\n")

    assert (done.returncode, done.stdout) == (2, "")
    for way in ("--key-file", "ANAMNESIS_KEY", "prompt"):
        assert way in done.stderr
    assert server.partition("#")[2] not in done.stderr


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ("", "The key is empty"),
        ("two words", "characters that no key has"),
        ('{"boris": "%s"}' % ("A" * 43), "no key of this --user"),
        ('{"local": 7}', "not a map from persons to keys"),
    ],
)
def test_a_key_file_without_a_key_is_refused(
    forker: Forker, tmp_path: Path, contents: str, says: str
) -> None:
    file = tmp_path / "key"
    file.write_text(contents)

    done = forker.run(tmp_path, "chat", "--server", "http://127.0.0.1:9", "--key-file", str(file))

    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())


def test_a_script_without_a_key_gets_an_error_that_says_how_to_pass_one(
    forker: Forker, tmp_path: Path
) -> None:
    done = forker.run(tmp_path, "chat", "--json", "--server", "http://127.0.0.1:9", typed=b"hello\n")

    assert done.returncode == 2
    assert "--key-file FILE, or set the variable ANAMNESIS_KEY" in " ".join(done.stderr.split())
