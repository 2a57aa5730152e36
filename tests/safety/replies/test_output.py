"""What a brain may not say, and what it must be able to say, in sentences written before the rules."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from agents.errors import BadRules
from agents.local.replying import medicines
from agents.local.replying import texts as replies
from agents.safety.replies import output
from agents.safety.replies.output import OutputGuard
from agents.safety.replies.quotations import without_quotations
from agents.safety.replies.wording import CLAIMS
from agents.safety.replies.wording import load as load_wording
from orchestrator.settings import shipped_config
from orchestrator.wiring import load_roster
from tests.safety.phrases import RULES, read
from tools.setup.toolchain import CHECKOUT

SETS = [
    read(Path(__file__).parents[1] / f"{name}.toml")
    for name in (
        "answers",
        "answers_later",
        "answers_unseen",
        "answers_last",
        "answers_after",
        "answers_warning",
        "answers_interactions",
    )
]
REFUSED = [sentence for each in SETS for sentence in each["refused"]]
ALLOWED = [sentence for each in SETS for sentence in each["allowed"]]
MEDICINES = (
    "2 tablets of ibuprofen 400 mg",
    "500 mg of paracetamol twice a day",
    "half a tablet of lorazepam at night",
    "insulin, 10 units at night",
)
NOT_SAID = {
    "about",
    "not_about",
    "given",
    "not_given",
    "together_with",
    "unless",
    "asks",
    "source",
    "topic",
    "sources",
}


@cache
def the_guard() -> OutputGuard:
    return output.load(RULES)


def test_there_are_enough_sentences_to_test_with() -> None:
    assert len(set(REFUSED)) == len(REFUSED) >= 240
    assert len(set(ALLOWED)) == len(ALLOWED) >= 240


def test_a_diagnosis_a_prescription_or_a_dose_is_refused() -> None:
    assert [sentence for sentence in REFUSED if not the_guard().refusals(sentence)] == []


def test_what_the_rules_get_wrong_is_listed_and_does_not_grow() -> None:
    missed = [sentence for each in SETS for sentence in each.get("missed", ())]
    overdone = [sentence for each in SETS for sentence in each.get("overdone", ())]

    assert [sentence for sentence in missed if the_guard().refusals(sentence)] == []  # else it is `refused`
    assert [sentence for sentence in overdone if not the_guard().refusals(sentence)] == []  # else `allowed`
    assert len(missed) <= 4
    assert overdone == []


def test_other_sentences_are_allowed() -> None:
    refused = {sentence: the_guard().refusals(sentence) for sentence in ALLOWED}

    assert {sentence: reasons for sentence, reasons in refused.items() if reasons} == {}


def test_the_answers_of_the_kept_conversations_are_allowed() -> None:
    spoken = []
    for file in sorted((CHECKOUT / "tests" / "conversations").glob("*.txt")):
        lines = [
            line.split(": ", 1) for line in file.read_text(encoding="utf-8").splitlines() if ": " in line
        ]
        own = [said for who, said in lines if who.startswith("person")]
        spoken += [without_quotations(said, own) for who, said in lines if who.isupper()]

    assert len(spoken) > 100
    refused = [
        line for line in spoken if the_guard().refusals(re.sub(r'"[^"]*(?:/| out of )10"', '""', line))
    ]
    assert refused == []


def test_all_texts_of_the_interviews_are_allowed() -> None:
    roster = load_roster()
    spoken = [
        (said.replace("{", "").replace("}", ""), who.lines)
        for who in roster.agents.values()
        for said in texts((who.says, who.interview.model_dump(), roster.manner.model_dump()))
    ]

    assert len(spoken) > 250
    assert [said for said, lines in spoken if the_guard().refusals(said, lines)] == []


def test_what_is_said_in_place_of_a_refused_sentence_fits_its_claim_and_is_allowed() -> None:
    wording = load_wording(RULES, "us")
    refused = {
        claim: wording.refused(the_guard().refusals(sentence))
        for claim, sentence in {
            "diagnosis": "This sounds like runner's knee.",
            "dose": "Take 400 mg of ibuprofen every six hours.",
            "prescription": "You should get on an antidepressant.",
            "reassurance": "You don't need to see a doctor.",
        }.items()
    }

    assert {claim: [] for claim in refused} == {
        claim: list(the_guard().refusals(said)) for claim, said in refused.items()
    }
    assert refused == {claim: wording.refused([claim]) for claim in CLAIMS}
    assert len({*refused.values(), wording.refused(["sleep.sedating"])}) == 5


def test_all_texts_of_the_brain_without_a_model_are_allowed() -> None:
    folder = shipped_config() / "local"
    wording = replies.load(folder / "replies.toml").model_dump()
    warnings = [
        each.text.format(asked="it", other="what you take")
        for each in medicines.load(folder / "medicines.toml").warnings
    ]

    spoken = [re.sub(r"\{\w+\}", '""', said) for said in (*texts(tuple(wording.values())), *warnings)]
    assert len(spoken) > 100
    assert [said for said in spoken if the_guard().refusals(said)] == []


@pytest.mark.parametrize("medicine", MEDICINES)
def test_what_the_person_wrote_may_be_quoted(medicine: str) -> None:
    own = f"I take {medicine}, two of them every six hours, so I have gout"
    noted = f'Noted: "I take {medicine}, two of them every six hours, so I have gout".'

    assert the_guard().refusals(without_quotations(noted, [own])) == ()
    assert without_quotations(noted, ["I take nothing"]) == noted


@pytest.mark.parametrize(
    "sentence",
    [
        "I have noted that, and you should take 400 mg of ibuprofen.",
        "To sum up what you told me: a headache, so take 2 paracetamol.",
        "Rest (source: NHS, Headaches) and take 400 mg of ibuprofen.",
        "Take 400 mg of ibuprofen if you need it.",
        "Take two paracetamol before you go to bed.",
        "Ibuprofen 400 mg with a glass of milk.",
    ],
)
def test_harmless_words_next_to_an_instruction_do_not_allow_it(sentence: str) -> None:
    assert the_guard().refusals(sentence)


def texts(said: object) -> Iterator[str]:
    """All texts in a nested structure."""
    if isinstance(said, str):
        yield from (said,) if said else ()
    elif isinstance(said, Mapping):
        for key, value in said.items():
            yield from () if key in NOT_SAID else texts(value)
    elif isinstance(said, Iterable):
        for each in said:
            yield from texts(each)


@pytest.mark.parametrize(
    ("old", "new"),
    [("spares = [", "spares = [["), ('id = "diagnosis"', 'id = "Diagnosis!"'), ("food = true", "fod = true")],
)
def test_rules_that_cannot_be_read_are_refused(tmp_path: Path, old: str, new: str) -> None:
    text = (RULES / "output.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "output.toml").write_text(text.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(BadRules):
        output.load(tmp_path)
