"""The shipped prompts: their variables, their length, and that they tell every rule that is enforced."""

import re
from pathlib import Path

import pytest

from agents.models.requests import MOST_TOKENS
from agents.models.understanding import OPS, understanding_schema
from agents.models.usage import estimated_tokens
from agents.safety.replies import output, wording
from agents.values import ActKind
from orchestrator.errors import AnamnesisError
from orchestrator.prompts import VARIABLE, PromptFiles
from orchestrator.settings import load, shipped_config
from orchestrator.wiring import load_prompts
from tests.support.orchestrators import agents, built_in_tools, shipped_prompts

GUARD = output.load(shipped_config() / "safety")
EXAMPLE = re.compile(r'<example person="[^"]+" known="[^"]*">\n(.*?)\n</example>', re.DOTALL)
OWN = {
    "scope": r"\bYou are part of a health companion\b",
    "what it is not": r"\b(?:you are (?:no|not)|[Yy]ou give no|no doctor)\b|\btheir own team decides\b",
    "what to ask": r"\b(?:Know before you|Ask (?:only|in this order)|Before anything else know)\b"
    r"|\bWorth knowing over several turns\b|\bask which one is meant\b",
    "when to stop": r"\bStop (?:asking|after)\b|\bOne question settles\b",
    "red flags": r"\bRed flags\b",
    "children": r"\b(?:Children|Young people)\b",
    "pregnancy": r"\b[Pp]regnancy\b",
    "older people": r"\b[Oo]lder people\b",
    "medicines": r"\b[Mm]edicines\b",
}
"""What each specialist has to say in its own words."""
IN_DANGER = {
    "scope": r"\bwhen life may be in danger\b",
    "the number comes first": r"\bFirst sentence\b.*\{\{emergency\}\}.*\{\{crisis\}\}.*\{\{abuse\}\}",
    "what to do meanwhile": r"\buntil help comes\b",
    "what to ask": r"\bAsk nothing that delays the call\b",
    "when to stop": r"\bturns out to be over or a mistake\b",
    "red flags": r"\bdoes not wake up and does not breathe normally\b",
    "children, pregnancy, older people": r"\bchild, a pregnant or an old person\b",
    "medicines": r"\bMedicines: none\b.*\ballergies\b",
    "crisis": r"\bIn a crisis\b",
}
"""What the emergency agent has to say in its own words; it shares only the limits."""
SHARED = {
    "conduct": {
        "tone": r"\bcalm, experienced nurse\b",
        "length": r"\bTwo to five sentences\b",
        "one question": r"\bAsk one question at most\b",
        "unsure answers": r"\bIf you are not sure what was meant\b",
        "memory": r"\bSpeak of what is remembered\b",
        "hand-over": r"\bIf the message belongs to another field\b",
    },
    "care": {
        "children": r"\bbaby under three months\b",
        "pregnancy": r"\bIn pregnancy\b",
        "older people": r"\bIn older people\b",
        "allergies and interactions": r"\bknown allergies, conditions, other medicines\b.*\bpharmacist\b",
        "crisis": r"\bmay want to die\b",
    },
    "limits": {"crisis": r"\bthoughts of suicide: \{\{crisis\}\}"},
}
"""What all specialists share, by the part of the prompts that says it."""
FOLDER = shipped_config() / "prompts"


def rendered(agent_type: str, region: str = "GB", *, in_blocks: bool = False) -> str:
    return shipped_prompts(region, in_blocks=in_blocks).prompt(agents().agents[agent_type]).text


def examples(agent_type: str) -> list[tuple[str, str]]:
    """The answers in a prompt's examples, each with `Good` or `Bad`."""
    bodies = EXAMPLE.findall(rendered(agent_type))
    return [found for body in bodies for found in re.findall(r"^(Good|Bad): (.+)$", body, re.MULTILINE)]


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("agent_type", sorted(agents().agents))
def test_a_prompt_has_no_open_variable_and_leaves_room_for_a_dialogue(
    agent_type: str, in_blocks: bool
) -> None:
    text = rendered(agent_type, in_blocks=in_blocks)

    assert text.startswith(f"# {agents().agents[agent_type].display_name}\n")
    assert not VARIABLE.search(text)
    assert "\n\n\n" not in text
    assert 600 < estimated_tokens(text) < MOST_TOKENS * 0.55


@pytest.mark.parametrize("in_blocks", [False, True])
def test_the_prompt_of_the_reading_leaves_room_for_facts_and_a_dialogue(in_blocks: bool) -> None:
    text = shipped_prompts("GB", in_blocks=in_blocks).prompt_named("context_extractor").text

    assert not VARIABLE.search(text)
    assert estimated_tokens(text) < MOST_TOKENS * 0.55


def test_an_agent_with_blocks_is_told_what_its_message_can_have_beside_them() -> None:
    prompts = shipped_prompts("GB", in_blocks=True)
    texts = [prompts.prompt(each).text for each in agents().agents.values()]

    assert all("`<since>`" in text for text in (*texts, prompts.prompt_named("context_extractor").text))


@pytest.mark.parametrize("agent_type", sorted(agents().agents))
def test_every_rule_that_is_enforced_is_told(agent_type: str) -> None:
    text, specialist = rendered(agent_type), agents().agents[agent_type]

    assert set(GUARD.claims) == {"dose", "prescription", "diagnosis", "reassurance"}
    for claim in GUARD.claims:
        assert GUARD.sentences[claim] in text
    for line in specialist.red_lines:
        assert f"Never {line.never}." in text
    assert all(tool in text for tool in specialist.tools)
    if agent_type == "EMERGENCY":  # it has no tools, so it is told of none
        assert not [tool.name for tool in built_in_tools().tools if tool.name in text]
    else:
        assert specialist.tools


@pytest.mark.parametrize("region", ["", "GB", "US"])
def test_the_numbers_of_the_region_are_told(region: str) -> None:
    numbers = wording.load(shipped_config() / "safety", region).numbers
    for agent_type in agents().agents:
        text = rendered(agent_type, region)
        assert all(number in text for number in numbers.values())


@pytest.mark.parametrize("agent_type", sorted(agents().agents))
def test_a_prompt_covers_what_a_specialist_must_know(agent_type: str) -> None:
    text = (FOLDER / f"{agents().agents[agent_type].prompt}.md").read_text(encoding="utf-8")
    in_danger = agent_type == "EMERGENCY"
    own = text.partition("{{limits}}" if in_danger else "{{care}}")[0]
    topics, parts = (IN_DANGER, ["limits"]) if in_danger else (OWN, list(SHARED))

    assert [topic for topic, pattern in topics.items() if not re.search(pattern, own)] == []
    assert [part for part in parts if f"{{{{{part}}}}}" not in text] == []


@pytest.mark.parametrize("part", SHARED)
def test_a_shared_part_covers_what_every_specialist_must_know(part: str) -> None:
    text = (FOLDER / "parts" / f"{part}.md").read_text(encoding="utf-8")

    assert [topic for topic, pattern in SHARED[part].items() if not re.search(pattern, text)] == []


@pytest.mark.parametrize("agent_type", sorted(agents().agents))
def test_the_good_examples_could_be_sent_and_the_bad_one_could_not(agent_type: str) -> None:
    found, lines = examples(agent_type), agents().agents[agent_type].lines

    assert [kind for kind, _ in found] == ["Good", "Good", "Bad"]
    for kind, answer in found:
        assert bool(GUARD.refusals(answer, lines)) == (kind == "Bad"), answer
        if kind == "Good":
            assert answer.count("?") <= 1
            assert len(answer.split()) <= 120


def test_the_prompt_of_the_reading_tells_the_schema() -> None:
    text = shipped_prompts().prompt_named("context_extractor").text
    schema = understanding_schema(agents().intents).schema["properties"]

    for name in (*schema, *schema["changes"]["items"]["properties"]):
        assert f"`{name}`" in text or f"`{name}`:" in text, name
    for word in (*ActKind, *OPS):
        assert re.search(rf"\b{word.value}\b", text), word
    for intent in agents().intents:
        assert intent in text


def test_the_prompt_of_the_reading_has_worked_follow_ups() -> None:
    text = shipped_prompts().prompt_named("context_extractor").text

    for words in (
        "it's more like 6 now",
        "it's the other knee",
        "my husband does, 39",
        "only half of that",
        "same as last time",
        "it's gone green",
        "not sure",
        "forget what I said",
        "my sleep is the real problem",
        "back to my head",
    ):
        assert words in text


def test_an_operator_tunes_a_part_that_all_prompts_share(tmp_path: Path) -> None:
    (tmp_path / "prompts" / "parts").mkdir(parents=True)
    (tmp_path / "prompts" / "parts" / "conduct.md").write_text("Speak like a pirate.\n")

    prompts = load_prompts(load(tmp_path, environment={}), agents(), tmp_path)

    for specialist in agents().specialists:
        assert "Speak like a pirate." in prompts.prompt(specialist).text
        shipped = shipped_prompts().prompt(specialist)
        assert prompts.prompt(specialist).revision != shipped.revision


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"sleep.md": "# Sleep\n{{tonne}}\n"}, r"sleep\.md has \{\{tonne\}\}, but it cannot be read"),
        ({"sleep.md": "{{a}}", "parts/a.md": "{{a}}"}, r"includes \{\{a\}\} within itself"),
    ],
)
def test_a_variable_that_does_not_exist_is_named_at_the_start(
    tmp_path: Path, files: dict[str, str], says: str
) -> None:
    for name, text in files.items():
        path = tmp_path / "prompts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    with pytest.raises(AnamnesisError, match=says):
        load_prompts(load(tmp_path, environment={}), agents(), tmp_path)


def test_a_prompt_without_variables_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "plain.md").write_text("# Plain\n\nBe brief: {not a variable}, {{ nor this }}.\n")

    assert PromptFiles(tmp_path).prompt_named("plain").text.endswith("{not a variable}, {{ nor this }}.\n")
