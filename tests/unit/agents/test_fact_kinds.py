"""The table of the kinds of facts: every kind has a sentence, and a row is all that a new kind needs."""

import pytest

from agents import fact_kinds, questions
from agents.fact_kinds import TABLE, FactKind, name_of, recalled_kinds, sentence_of
from agents.local.reading import facts, lexicon, statements
from agents.local.reading.answers import AnswerReader
from agents.local.reading.clauses import PERSON, split
from orchestrator.settings import shipped_config

LASTING = [row.kind for row in TABLE if row.stable]
SAID = [
    ("I am vegetarian", "diet", "vegetarian"),
    ("My birthday is 4 March", "birthday", "4 March"),
    ("I prefer short answers", "preferences", "short answers"),
    ("my GP is Dr Patel", "doctor", "GP is Dr Patel"),
    ("I've had asthma since childhood", "conditions", "asthma"),
    ("I was diagnosed with type 2 diabetes in 2015", "conditions", "type 2 diabetes"),
    ("I don't smoke", "smoking", "does not smoke"),
    ("I quit smoking five years ago", "smoking", "quit smoking"),
    ("I drink two glasses of wine a week", "alcohol", "drinks two glasses of wine a week"),
    ("I work as a bus driver", "occupation", "works as a bus driver"),
    ("I live alone", "living", "lives alone"),
    ("My blood group is O negative", "blood_type", "O negative"),
    ("I have a pacemaker", "devices", "pacemaker"),
    ("I had my appendix out in 2010", "history", "the appendix out"),
    ("heart disease runs in my family", "family_history", "heart disease"),
    ("I'm deaf in my left ear", "disability", "deaf in my left ear"),
    ("I'm scared of needles", "fears", "needles"),
    ("I have no allergies", "allergies", "none reported"),
    ("I'm on carbimazole 20mg daily", "medications", "carbimazole 20mg daily"),
    ("Age 45, male, hypertension, on lisinopril 10 mg", "sex", "male"),
    ("I'm a 34 year old woman with hypothyroidism", "conditions", "hypothyroidism"),
]
OF_OTHERS = [
    ("My mum had breast cancer", "mum", "history", "breast cancer"),
    ("My daughter Mia (8) has coeliac disease", "daughter", "conditions", "coeliac disease"),
    ("My husband is diabetic and takes insulin", "husband", "medications", "insulin"),
    ("my wife is vegan", "wife", "diet", "vegan"),
]
NOTHING = [
    "I think I'm pregnant",
    "I might be lactose intolerant",
    "If I were diabetic, what would I eat?",
    "Am I diabetic?",
    "I used to be vegetarian",
    'My sister said "I\'m pregnant"',
    "I'm scared I have cancer",
    "I was tested for diabetes",
    "They thought I was diabetic",
    "My son's teacher is pregnant",
    "There's diabetes on my mother's side",
    "I have a friend with epilepsy",
    "I have a diabetes check next week",
    "I was on warfarin",
    "I turned 90 degrees and it clicked",
    "I had a stroke of luck",
    "I'm blind drunk",
    "my practice is closed",
    "I'm his mum, he is 3",
    "I'm allergic to Mondays lol",
]


@pytest.fixture(scope="module")
def reader() -> AnswerReader:
    return AnswerReader(lexicon.load(shipped_config() / "local" / "lexicon.toml"))


def lasting(reader: AnswerReader, message: str) -> set[tuple[str, str, str]]:
    found = [each for clause in split(message) for each in reader.volunteered(clause)]
    return {(each.who, each.kind, each.value) for each in found if each.stable}


@pytest.mark.parametrize("kind", LASTING)
def test_every_lasting_kind_has_a_sentence_in_the_third_person(kind: str) -> None:
    for value in ("40", "two"):
        sentence = sentence_of(kind, value, "The person's daughter")

        assert sentence is not None
        assert sentence.startswith("The person's daughter")
        assert value in sentence
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("age", "40", "The person is 40 years old."),
        ("age", "6 weeks", "The person is 6 weeks old."),
        ("pregnancy", "pregnant", "The person is pregnant."),
        ("conditions", "type 2 diabetic", "The person is type 2 diabetic."),
        ("conditions", "asthma", "The person has asthma."),
        ("measures", "82 kg", "The person weighs 82 kg."),
        ("measures", "1.80 m", "The person is 1.80 m tall."),
    ],
)
def test_the_sentence_fits_the_value(kind: str, value: str, sentence: str) -> None:
    assert sentence_of(kind, value, "The person") == sentence


@pytest.mark.requirement("000-030")
@pytest.mark.parametrize(("message", "kind", "value"), SAID)
def test_what_people_plainly_tell_of_their_lives_is_read(
    reader: AnswerReader, message: str, kind: str, value: str
) -> None:
    assert (PERSON, kind, value) in lasting(reader, message)


@pytest.mark.parametrize(("message", "who", "kind", "value"), OF_OTHERS)
def test_what_is_told_of_somebody_else_is_theirs(
    reader: AnswerReader, message: str, who: str, kind: str, value: str
) -> None:
    found = lasting(reader, message)

    assert (who, kind, value) in found
    assert PERSON not in {subject for subject, _, _ in found}


@pytest.mark.parametrize("message", NOTHING)
def test_what_is_not_surely_so_is_no_lasting_fact(reader: AnswerReader, message: str) -> None:
    assert lasting(reader, message) == set()


@pytest.mark.parametrize(
    ("message", "when"),
    [
        ("I have asthma since childhood", "since childhood"),
        ("I was diagnosed with Crohn's in 2019", "in 2019"),
        ("I've been vegetarian for ten years", "for ten years"),
        ("I've got a stent, put in after my heart attack in 2020", ""),
    ],
)
def test_a_value_has_the_time_that_is_told_with_it(reader: AnswerReader, message: str, when: str) -> None:
    found = [each for clause in split(message) for each in reader.volunteered(clause) if each.stable]

    assert found[0].when == when


def test_a_new_kind_is_one_row(monkeypatch: pytest.MonkeyPatch, reader: AnswerReader) -> None:
    row = FactKind(
        "shoe_size",
        asks=r"\bshoe size\b",
        reads="stated",
        stable=True,
        volunteered=True,
        states=((r"<my>shoe size is (?P<v>\d+)", "{v}"),),
        tells="{who} wears shoes of size {v}.",
        recalls=r"\bmy shoe size\b",
    )
    table = (*TABLE, row)
    by_name = {each.kind: each for each in table}
    asked_by, recalled_by = fact_kinds.indexed(table)
    for module in (fact_kinds, facts, statements):
        monkeypatch.setattr(module, "BY_NAME", by_name)
    monkeypatch.setattr(facts, "TABLE", table)
    monkeypatch.setattr(questions, "KINDS", asked_by)
    monkeypatch.setattr(fact_kinds, "RECALLED_BY", recalled_by)

    (asked,) = questions.questions("Could you tell me your shoe size?")
    (told,) = [each for each in reader.volunteered(split("My shoe size is 43")[0]) if each.stable]

    assert asked.kinds == ("shoe_size",)
    assert (told.kind, told.value) == ("shoe_size", "43")
    assert sentence_of("shoe_size", "43", "The person") == "The person wears shoes of size 43."
    assert recalled_kinds("what is my shoe size") == ("shoe_size",)
    assert name_of("shoe_size") == "shoe size"


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("what did i take before the surgery", ("medications", "other_medicines")),
        ("what operations did i have", ("history",)),
    ],
)
def test_an_event_that_only_says_when_is_not_what_is_asked_for(question: str, kinds: tuple[str, ...]) -> None:
    assert recalled_kinds(question)[: len(kinds)] == kinds
