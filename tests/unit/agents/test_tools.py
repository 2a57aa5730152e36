"""Tools accept what their schema allows and calculate correctly; people ask for them in plain words."""

from datetime import date
from typing import Any

import pytest

from agents.errors import ToolRefused
from agents.tools.built_in import built_in
from agents.tools.requests import find_tool_request, result_sentence
from agents.tools.toolbox import Tool, Toolbox

TOOLBOX = Toolbox(built_in(lambda: date(2024, 3, 10)))


def run_tool(name: str, **arguments: Any) -> Any:
    """The result of a built-in tool."""
    TOOLBOX.check(name, arguments)
    run = TOOLBOX.find(name).run
    assert run is not None
    return run(arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("body_mass_index", {"height_m": 1.8, "weight_kg": 75}, {"bmi": 23.1, "range": "within"}),
        ("body_mass_index", {"height_m": 1.7, "weight_kg": 50}, {"bmi": 17.3, "range": "below"}),
        ("body_mass_index", {"height_m": 1.7, "weight_kg": 95}, {"bmi": 32.9, "range": "well above"}),
        (
            "convert_units",
            {"amount": 150, "from_unit": "lb", "to_unit": "kg"},
            {"amount": 68.0389, "unit": "kg"},
        ),
        ("convert_units", {"amount": 98.6, "from_unit": "f", "to_unit": "c"}, {"amount": 37.0, "unit": "c"}),
        ("convert_units", {"amount": -40, "from_unit": "c", "to_unit": "f"}, {"amount": -40.0, "unit": "f"}),
        (
            "convert_units",
            {"amount": 5.5, "from_unit": "mmol/l_glucose", "to_unit": "mg/dl_glucose"},
            {"amount": 99.088, "unit": "mg/dl_glucose"},
        ),
        ("days_since", {"date": "2024-02-28"}, {"days": 11, "date": "2024-02-28"}),
        ("days_since", {"date": "03-10"}, {"days": 0, "date": "2024-03-10"}),
        ("days_since", {"date": "12-24"}, {"days": 77, "date": "2023-12-24"}),
    ],
)
def test_a_built_in_tool_calculates_its_result(
    name: str, arguments: dict[str, Any], result: dict[str, Any]
) -> None:
    assert run_tool(name, **arguments) == result


@pytest.mark.parametrize(
    ("name", "arguments", "rule"),
    [
        ("fortune_telling", {}, "there is no such tool"),
        ("body_mass_index", {"height_m": 1.8}, "parameters breaks the rule `required`"),
        ("body_mass_index", {"height_m": "tall", "weight_kg": 75}, "height_m breaks the rule `type`"),
        ("body_mass_index", {"height_m": 180, "weight_kg": 75}, "height_m breaks the rule `maximum`"),
        ("body_mass_index", {"height_m": 1.8, "weight_kg": 75, "x": 1}, "`additionalProperties`"),
        (
            "convert_units",
            {"amount": 1, "from_unit": "kg", "to_unit": "parsec"},
            "to_unit breaks the rule `enum`",
        ),
        ("convert_units", {"amount": 1, "from_unit": "kg", "to_unit": "cm"}, "measure different things"),
        ("convert_units", {"amount": 1, "from_unit": "kg", "to_unit": "c"}, "measure different things"),
        ("days_since", {"date": "yesterday"}, "date breaks the rule `pattern`"),
        ("days_since", {"date": "2023-02-30"}, "no day of the calendar"),
    ],
)
def test_invalid_arguments_are_refused_and_not_quoted(
    name: str, arguments: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ToolRefused) as refused:
        run_tool(name, **arguments)

    assert rule in refused.value.rule


def test_an_invalid_schema_is_refused_when_the_toolbox_is_created() -> None:
    with pytest.raises(Exception, match="is not valid under any"):
        Toolbox([Tool("broken", "", {"type": "nonsense"})])


@pytest.mark.parametrize(
    ("message", "tool", "arguments"),
    [
        ("What's my BMI? I'm 180 cm and 75 kg", "body_mass_index", {"height_m": 1.8, "weight_kg": 75.0}),
        ("bmi at 1,80 m with 75 kilos", "body_mass_index", {"height_m": 1.8, "weight_kg": 75.0}),
        (
            "I am 5'11 and 165 lbs, what's my body mass index",
            "body_mass_index",
            {"height_m": 1.803, "weight_kg": 74.84},
        ),
        (
            "how much is 150 lbs in kg?",
            "convert_units",
            {"amount": 150.0, "from_unit": "lb", "to_unit": "kg"},
        ),
        ("convert 98.6 F to C please", "convert_units", {"amount": 98.6, "from_unit": "f", "to_unit": "c"}),
        ("how many grams is 3 ounces", "convert_units", {"amount": 3.0, "from_unit": "oz", "to_unit": "g"}),
        ("How many days is it since 2024-01-05?", "days_since", {"date": "2024-01-05"}),
        ("how long has it been since March 3rd?", "days_since", {"date": "03-03"}),
        ("how many days since the 24th of December 2023", "days_since", {"date": "2023-12-24"}),
    ],
)
def test_a_message_in_plain_words_is_found_to_ask_for_a_tool(
    message: str, tool: str, arguments: dict[str, Any]
) -> None:
    request = find_tool_request(message)

    assert request is not None
    assert (request.tool, request.arguments) == (tool, arguments)
    assert result_sentence(request, run_tool(tool, **arguments)).endswith(". ")


@pytest.mark.parametrize("measures", ["1.65, 82 kilos", "165 cm, 82 kg", "82 kg, 1,65 m"])
def test_measures_stated_earlier_are_used(measures: str) -> None:
    request = find_tool_request("what's my BMI then?", measures)

    assert request is not None
    assert request.arguments == {"height_m": 1.65, "weight_kg": 82.0}
    assert find_tool_request("what does that mean?", measures) is None


@pytest.mark.parametrize(
    ("message", "measures", "start"),
    [
        (
            "what's my bmi if I weigh 75",
            "180 cm, 90 kg",
            "At 1.8 m and 75 kg, your body mass index comes to 23.1",
        ),
        ("what would my bmi be at 66", "5'7, 190 lbs", "At 1.7 m and 66 kg"),
        ("what would my bmi be at 150", "5'7, 190 lbs", "At 1.7 m and 68.04 kg"),
        ("what's my bmi?", "180 cm, 90 kg, 81 kg", "At 1.8 m and 81 kg"),
    ],
)
def test_the_latest_weight_is_used_and_named_in_the_result(message: str, measures: str, start: str) -> None:
    request = find_tool_request(message, measures)

    assert request is not None
    assert result_sentence(request, run_tool(request.tool, **request.arguments)).startswith(start)


@pytest.mark.parametrize(
    ("message", "about", "age", "whose", "is_adult"),
    [
        ("my son is 120 cm and 24 kg, what's his bmi", "", "", "his", False),
        ("what's my daughter's bmi? 130 cm and 30 kg", "", "", "your daughter's", False),
        ("what's my wife's bmi? 165 cm and 70 kg", "", "", "your wife's", True),
        ("what's her bmi? 165 cm and 70 kg", "mum", "", "her", True),
        ("what's his bmi? 165 cm and 70 kg", "brother", "34", "his", True),
        ("what's his bmi? 150 cm and 50 kg", "brother", "14", "his", False),
        ("what's my bmi? 165 cm and 70 kg", "", "16", "your", False),
        ("what's my bmi? 165 cm and 70 kg", "", "", "your", True),
    ],
)
def test_a_childs_body_mass_index_is_not_compared_with_adults(
    message: str, about: str, age: str, whose: str, is_adult: bool
) -> None:
    request = find_tool_request(message, about=about, age=age)

    assert request is not None
    sentence = result_sentence(request, run_tool(request.tool, **request.arguments))
    assert f"{whose} body mass index" in sentence
    assert ("usual for adults" in sentence) is is_adult


def test_measures_of_a_relative_are_not_used_for_the_person() -> None:
    assert find_tool_request("what's my bmi?", "120 cm, 25 kg", about="son") is None
    assert find_tool_request("what's his bmi?", "180 cm, 90 kg") is None


def test_a_restricted_toolbox_has_only_the_named_tools() -> None:
    box = TOOLBOX.only(["days_since", "nobody_knows"])

    assert [tool.name for tool in box.tools] == ["days_since"]
    box.check("days_since", {"date": "2024-03-01"})
    with pytest.raises(ToolRefused):
        box.check("convert_units", {"amount": 1, "from_unit": "kg", "to_unit": "g"})


@pytest.mark.parametrize(
    "message",
    [
        "I am having a headache",
        "what is a BMI?",
        "I weigh 75 kg",
        "since March 3rd",
        "I walk 5 km in the morning",
        "",
    ],
)
def test_a_message_that_asks_for_no_calculation_uses_no_tool(message: str) -> None:
    assert find_tool_request(message) is None
