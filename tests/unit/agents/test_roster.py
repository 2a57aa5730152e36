"""Which agent answers, and how `agents.toml` is loaded."""

from pathlib import Path

import pytest

from agents.errors import AgentError, BadRoster, BrainFailed, UnknownKey, UnreadableLine
from agents.questions import kinds_asked
from agents.roster import Roster, load, pick, refuse_unknown_tools
from agents.specialist import next_topics, open_questions
from agents.values import Intent
from orchestrator.errors import TABLE
from tests.support.orchestrators import shipped_prompts

CONFIG = Path(__file__).parents[3] / "config"
SMALL = """
[routing]
sure_enough = 0.5
[agents.EMERGENCY]
display_name = "Emergency"
description = "What must not wait."
scope = "emergencies"
prompt = "emergency"
says = "Call now."
[agents.COORDINATOR]
display_name = "Coordinator"
description = "Asks."
scope = "finding"
prompt = "coordinator"
says = "What is it about?"
[agents.SLEEP]
display_name = "Sleep Agent"
description = "Sleep."
scope = "sleep"
prompt = "sleep"
"""


def a_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "agents.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def roster() -> Roster:
    return load(CONFIG / "agents.toml")


def test_the_orchestrator_has_its_specialists_an_emergency_answer_and_a_coordinator(roster: Roster) -> None:
    assert [each.agent_type for each in roster.specialists] == [
        "GENERAL_HEALTH",
        "MENTAL_HEALTH",
        "MEDICATION",
        "NUTRITION",
        "FITNESS",
        "SLEEP",
        "SEXUAL_HEALTH",
        "CHRONIC_CARE",
        "ADMINISTRATIVE",
    ]
    assert roster.agent_types - {each.agent_type for each in roster.specialists} == {
        "EMERGENCY",
        "COORDINATOR",
    }
    assert roster.intents == roster.agent_types - {"COORDINATOR"} | {"UNCLEAR", "OUT_OF_SCOPE"}


def test_every_agent_has_its_prompt_and_something_to_say(roster: Roster) -> None:
    for agent in roster.agents.values():
        assert (CONFIG / "prompts" / f"{agent.prompt}.md").read_text(encoding="utf-8").startswith("# ")
        interview = agent.interview
        assert agent.says or interview.closing
        assert agent.agent_type == "COORDINATOR" or len(agent.examples) >= 60


@pytest.mark.requirement("001-121")
def test_the_extractors_prompt_names_the_four_blocks_and_the_shape_of_its_answer() -> None:
    prompt = shipped_prompts(in_blocks=True).prompt_named("context_extractor").text

    for word in ("conversation_history", "active_session", "context_summary", "memory_metadata"):
        assert f"`{word}`" in prompt
    for key in ("previous_context", "enriched_message", "relevant_history"):
        assert f"`{key}`" in prompt


@pytest.mark.parametrize(
    ("intent", "confidence", "answers"),
    [
        ("SLEEP", 0.9, "SLEEP"),
        ("SLEEP", 0.35, "SLEEP"),
        ("SLEEP", 0.34, "COORDINATOR"),
        ("UNCLEAR", 0.9, "COORDINATOR"),
        ("OUT_OF_SCOPE", 0.9, "COORDINATOR"),
        ("EMERGENCY", 0.9, "EMERGENCY"),
        ("EMERGENCY", 0.1, "EMERGENCY"),
        ("ASTROLOGY", 0.9, "COORDINATOR"),
        ("COORDINATOR", 0.9, "COORDINATOR"),
    ],
)
def test_the_agent_follows_from_the_intent_alone(
    roster: Roster, intent: str, confidence: float, answers: str
) -> None:
    picked = pick(Intent(intent=intent, confidence=confidence, reasoning="r"), roster)

    assert picked.agent_type == answers


def test_a_section_defines_a_specialist(tmp_path: Path) -> None:
    roster = load(a_file(tmp_path, SMALL))

    assert [each.display_name for each in roster.specialists] == ["Sleep Agent"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (SMALL + 'colour = "red"', "agents.SLEEP.colour"),
        (SMALL + "[weather]\nrain = true", "weather"),
        (SMALL.replace("[routing]", "[routing]\nspeed = 1"), "speed"),
    ],
)
def test_an_unknown_key_is_refused_by_its_name(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(UnknownKey) as refusal:
        load(a_file(tmp_path, text))

    assert refusal.value.facts["key"] == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("not toml", "$"),
        (SMALL.replace("0.5", "2.0"), "sure_enough"),
        (SMALL.replace("COORDINATOR", "SOMEONE"), "agents.COORDINATOR"),
        (SMALL.replace("EMERGENCY", "SOMEONE"), "agents.EMERGENCY"),
        (SMALL.replace("agents.SLEEP", "agents.sleep"), "agents.sleep.agent_type"),
        (SMALL.replace('prompt = "sleep"', 'prompt = "../secret"'), "agents.SLEEP.prompt"),
    ],
)
def test_an_invalid_value_is_refused_by_its_key(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(BadRoster) as refusal:
        load(a_file(tmp_path, text))

    assert refusal.value.facts["key"] == key


LINE = """
tools = ["days_since"]
red_lines = [{ id = "pills", never = "praise pills", patterns = ['\\bpills? help', '\\btake a pill\\b'] }]
"""


def test_a_specialist_has_tools_and_red_lines_of_its_own(tmp_path: Path) -> None:
    roster = load(a_file(tmp_path, SMALL + LINE))

    sleep, coordinator = roster.agents["SLEEP"], roster.agents["COORDINATOR"]
    assert (sleep.tools, coordinator.tools) == (("days_since",), ())
    assert list(sleep.lines) == ["sleep.pills"]
    assert sleep.lines["sleep.pills"].search("a pill helps")
    assert coordinator.lines == {}


def test_an_invalid_pattern_of_a_red_line_is_refused_by_its_key(tmp_path: Path) -> None:
    with pytest.raises(BadRoster) as refusal:
        load(a_file(tmp_path, SMALL + LINE.replace("help'", "help('")))

    assert refusal.value.facts["key"] == "agents.SLEEP.red_lines.0.patterns"
    assert refusal.value.facts["rule"] == "pattern 1 cannot be read"


def test_an_unknown_tool_is_refused_by_its_name(tmp_path: Path) -> None:
    roster = load(a_file(tmp_path, SMALL + LINE))

    refuse_unknown_tools(roster, ["days_since"])
    with pytest.raises(BadRoster, match="there is no tool days_since") as refusal:
        refuse_unknown_tools(roster, ["convert_units"])
    assert refusal.value.facts["key"] == "agents.SLEEP.tools"


def test_every_specialist_that_interviews_has_tools_and_red_lines(roster: Roster) -> None:
    for specialist in roster.specialists:
        assert specialist.tools
        assert specialist.red_lines


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRoster):
        load(tmp_path / "agents.toml")


def test_known_facts_are_not_asked_for(roster: Roster) -> None:
    general = roster.agents["GENERAL_HEALTH"]

    known = {"concern": "headache", "severity": "8/10", "duration": "a week"}
    questions = open_questions(general, known)

    assert [question.asks for question in questions][:3] == [
        ("quality",),
        ("associated_symptoms",),
        ("triggers", "relief"),
    ]
    assert next_topics(general, known)[0] == "What it feels like"
    assert len(open_questions(general, {"concern": "fever"})) < len(
        open_questions(general, {"concern": "headache"})
    )


def test_every_question_of_an_interview_is_understood_as_what_it_asks_for(roster: Roster) -> None:
    for agent in roster.agents.values():
        for question in agent.interview.questions:
            assert set(question.asks) & set(kinds_asked(question.text)), question.text


def test_a_specialist_without_an_interview_of_its_own_asks_the_general_questions(tmp_path: Path) -> None:
    roster = load(a_file(tmp_path, SMALL), CONFIG / "interviews")
    without_interview = load(
        a_file(tmp_path, SMALL.replace('prompt = "sleep"', 'prompt = "dreams"')), CONFIG / "interviews"
    )

    general = load(CONFIG / "agents.toml").agents["GENERAL_HEALTH"].interview
    assert roster.agents["SLEEP"].interview != general
    assert without_interview.agents["SLEEP"].interview == general


@pytest.mark.parametrize(
    ("text", "error"),
    [("colour = 1", UnknownKey), ("not toml", BadRoster), ('[[questions]]\nasks = ["x"]', BadRoster)],
)
def test_an_invalid_interview_is_refused(tmp_path: Path, text: str, error: type[AgentError]) -> None:
    (tmp_path / "sleep.toml").write_text(text, encoding="utf-8")

    with pytest.raises(error):
        load(a_file(tmp_path, SMALL), tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        UnknownKey("agents.toml", "x"),
        BadRoster("agents.toml", "x", "is missing"),
        BrainFailed("local", "speak"),
        UnreadableLine("message", "is missing"),
    ],
)
def test_each_error_has_its_row_and_the_facts_of_its_text(error: AgentError) -> None:
    row = TABLE[error.name]

    assert (row.says + row.then).format_map(error.facts)
