"""Chunks, picked sentences, and the check of what a model wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import sentences
from agents.models.usage import estimated_tokens
from orchestrator.remember.creators.checking import SummaryCheck
from orchestrator.remember.creators.chunking import chunks
from orchestrator.remember.creators.extractive import roll, summarise
from orchestrator.remember.creators.history import HistoryMessage
from tests.support.builders import START
from tests.support.memory.creators import TERMS

TEXTS = st.lists(
    st.text(max_size=120) | st.sampled_from(["Yes.", "No", "I took 20 mg.", "Why? Maria!"]), max_size=12
)


def said(*texts: str) -> list[HistoryMessage]:
    """Messages of the person and the assistant in turn."""
    roles = ("user", "assistant")
    return [
        HistoryMessage(f"m{number}", number, roles[(number - 1) % 2], text, START)
        for number, text in enumerate(texts, 1)
    ]


# --- chunks -------------------------------------------------------------------------------------------------


@given(TEXTS, st.integers(1, 60), st.integers(0, 4), st.integers(1, 5), st.booleans())
def test_chunks_have_every_message_once_and_in_order(
    texts: list[str], tokens: int, lookback: int, least: int, whole: bool
) -> None:
    messages = said(*texts)

    made = chunks(messages, tokens=tokens, lookback=lookback, least=least, whole=whole)

    flat = [each for chunk in made for each in chunk]
    assert flat == messages[: len(flat)]
    assert not whole or flat == messages
    assert all(len(chunk) == 1 or sum(estimated_tokens(m.text) for m in chunk) <= tokens for chunk in made)
    assert whole or len(flat) <= max(len(messages) - lookback, 0)


# --- picked sentences ---------------------------------------------------------------------------------------


@given(TEXTS, st.integers(1, 300))
def test_a_picked_summary_has_only_sentences_that_were_said_with_their_speaker(
    texts: list[str], characters: int
) -> None:
    messages = said(*texts)

    extract = summarise(messages, characters)

    known = {
        f"{'Person' if each.is_person else 'Assistant'}: {sentence.strip()}"
        for each in messages
        for sentence in sentences.cut(" ".join(each.text.split()))
    }
    if extract.body is None:
        assert not any(each.text.strip() for each in messages if each.is_person)
    else:
        assert set(extract.body.text.split("\n")) <= known
        assert set(extract.rests_on) <= {each.id for each in messages}


def test_a_short_reply_is_kept_with_its_own_question() -> None:
    messages = said("Hello.", "Do you smoke?", "Yes.", "Do you drink?", "Yes.", "Do you run?", "No.")

    extract = summarise(messages, 1000)

    assert extract.body is not None
    assert extract.body.text.split("\n")[1:] == [
        *("Assistant: Do you smoke?", "Person: Yes."),
        *("Assistant: Do you drink?", "Person: Yes."),
        *("Assistant: Do you run?", "Person: No."),
    ]
    for characters in range(200):
        lines = roll([extract.body.text], characters).split("\n")
        for place, line in enumerate(lines):
            assert not line.startswith("Assistant") or lines[place + 1] in ("Person: Yes.", "Person: No.")


@given(TEXTS, st.integers(1, 300))
def test_every_line_of_a_rolling_summary_was_a_whole_line_with_its_speaker(
    texts: list[str], characters: int
) -> None:
    made = [summarise(said(*texts[place : place + 3]), 500).body for place in range(0, len(texts), 3)]
    memories = [body.text for body in made if body is not None]

    rolled = [line for line in roll(memories, characters).split("\n") if line]

    known = [line for text in memories for line in text.split("\n")]
    assert set(rolled) <= set(known)
    assert all(line.startswith(("Person: ", "Assistant: ")) for line in rolled)


def test_a_rolling_summary_loses_no_speaker_and_no_negation_at_a_line_break() -> None:
    asked = "Which of these do you take now\nibuprofen 400 mg or warfarin\nor both?"
    messages = said("Hello.", asked, "Both?", "?", "I have never taken\nwarfarin 5 mg, Maria takes it")
    body = summarise(messages, 1000).body
    assert body is not None

    for characters in range(300):
        for line in roll([body.text], characters).split("\n"):
            assert line.startswith(("Person: ", "Assistant: "))
            assert "warfarin 5 mg" not in line or "never taken warfarin" in line


@given(st.lists(st.text(min_size=1, max_size=60), max_size=8), st.integers(1, 200))
def test_a_rolling_summary_of_other_memories_keeps_sentences_as_they_are_and_in_order(
    texts: list[str], characters: int
) -> None:
    cut = [each.strip() for text in texts for each in sentences.cut(" ".join(text.split())) if each.strip()]

    kept = [line for line in roll(texts, characters).split("\n") if line]

    places = [cut.index(line) for line in kept]
    assert places == sorted(places)
    assert len("\n".join(kept)) <= max(characters, max(map(len, cut), default=0))


# --- what a model wrote -------------------------------------------------------------------------------------

TALK = said(
    "Hi, I'm Ann. I take 20mg of lisinopril since 5 May, twice a day.",
    "Do you also take ibuprofen? Dr Smith may know. You take 400 mg of it, I think.",
    "No. My blood pressure was 140/90, and I weigh 72.5 kg. I take 500 mg of metformin and 5 mg of ozempic.",
    "Who else is ill?",
    "My sister Maria takes warfarin. She has asthma. I never took insulin. Can I take aspirin?",
    "No.",
    "I used to smoke. I might take zinc. I bought peanut butter. I am allergic to penicillin.",
    "Go on.",
    "I cannot take codeine. I can't eat shellfish. I dont drink coffee. I have hepatitis C and a cold.",
    "Thank you.",
    "My blood group is A. My temperature was -5. I avoid naproxen and take melatonin.",
    "And now?",
    "I refuse to take statins. I almost took tramadol. I hardly use sertraline. I never, ever take morphine.",
    "Why?",
    "My brother, who I live with, takes amoxicillin. My dad (I live with him) takes digoxin.",
    "I see.",
    "Paula, who is my friend, drinks wine.",
    "I see.",
    "My aunt has, since June, taken senna. I have not slept, my head hurts.",
    "I see.",
    "I don't smoke and take iron. I eat no meat but drink milk. I take biotin, eat figs and sleep well.",
)
HEALTH = TERMS | {
    "warfarin",
    "insulin",
    "aspirin",
    "multiple sclerosis",
    "heart failure",
    "high blood pressure",
}


@pytest.mark.parametrize(
    "sentence",
    [
        "Ann takes 20 mg of lisinopril.",
        "The person takes lisinopril (20 milligrams) 2 times a day.",
        "The person has taken 20 mg of lisinopril since May 5.",
        "Blood pressure was 140/90.",
        "The person weighs 72.5 kg.",
        "The person takes five mg of ozempic.",
        "The person's sister Maria takes warfarin.",
        "The person has never taken insulin.",
        "The person asked if they can take aspirin.",
        "The person is allergic to penicillin.",
        "The assistant asked about ibuprofen.",
        "The assistant named Dr Smith.",
        "The person said something.",
        "The person cannot take codeine.",
        "The person can't take codeine.",
        "The person cannot eat shellfish.",
        "The person does not drink coffee.",
        "The person has hepatitis C.",
        "The person's blood group is A.",
        "The temperature was -5.",
        "The person avoids naproxen.",
        "The person takes melatonin and avoids naproxen.",
        "The person refuses to take statins.",
        "The person almost took tramadol.",
        "The person's brother takes amoxicillin.",
        "Paula, a friend, drinks wine.",
        "The person's head hurts.",
        "The person drinks milk.",
        "The person eats no meat.",
        "The person eats figs.",
        "The person takes biotin, eats figs and sleeps well.",
    ],
)
def test_a_sentence_that_one_sentence_of_the_person_says_is_kept(sentence: str) -> None:
    assert SummaryCheck(TALK, HEALTH).supports(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Ann takes 40 mg of lisinopril.",
        "Ann takes forty mg of lisinopril.",
        "Ann takes eighty mg of lisinopril.",
        "Ann takes a hundred mg of lisinopril.",
        "Ann takes 20 mcg of lisinopril.",
        "Ann takes lisinopril three times a day.",
        "Ann takes 500 mg of lisinopril.",
        "Ann takes 500 mg of ozempic.",
        "Ann takes 5 mg of metformin.",
        "The person takes penicillin.",
        "Metformin was stopped.",
        "Bob takes lisinopril.",
        "She takes lisinopril since 6 May.",
        "She takes lisinopril since 20 May.",
        "Ann takes lisinopril since monday.",
        "Ann takes lisinopril since october.",
        "Ann took lisinopril yesterday.",
        "Ann took lisinopril in June.",
        "Ann has multiple sclerosis.",
        "Ann has heart failure.",
        "Ann has high blood pressure.",
        "Ann has a peanut allergy.",
        "Ann is allergic to peanut.",
        "The person takes warfarin.",
        "The person has asthma.",
        "The person takes insulin.",
        "The person takes aspirin.",
        "The person takes zinc.",
        "The person smokes.",
        "The person never takes lisinopril.",
        "Maria takes lisinopril.",
        "Ann takes ibuprofen.",
        "Ann takes 400 mg of ibuprofen.",
        "Ann knows Dr Smith.",
        "The assistant asked about vitamins.",
        "Blood pressure was 150/90.",
        "The person feels fine.",
        "The person can take codeine.",
        "The person takes codeine.",
        "The person eats shellfish.",
        "The person can eat shellfish.",
        "The person drinks coffee.",
        "The person has hepatitis A.",
        "The person has hepatitis B.",
        "The person's blood group is B.",
        "The person's blood group is C.",
        "The temperature was 5.",
        "The temperature was 5 degrees.",
        "The person takes naproxen.",
        "The person takes statins.",
        "The person took tramadol.",
        "The person uses sertraline.",
        "The person takes morphine.",
        "The person takes amoxicillin.",
        "The person takes digoxin.",
        "The person has taken senna since June.",
        "The person's head does not hurt.",
        "The person drinks wine.",
        "The person does not take iron.",
        "The person drinks no milk.",
        "The person does not smoke and takes biotin.",
    ],
)
def test_a_sentence_that_no_sentence_of_the_person_says_is_dropped(sentence: str) -> None:
    checked = SummaryCheck(TALK, HEALTH).check(f"The person weighs 72.5 kg. {sentence}")

    assert (checked.text, checked.dropped) == ("The person weighs 72.5 kg.", 1)


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        ("The doctor ruled out diabetes.", "The person has diabetes."),
        ("Tests ruled diabetes out.", "The person has diabetes."),
        ("The doctor excluded asthma.", "The person has asthma."),
        ("The tests exclude asthma.", "The person has asthma."),
        ("I am free of asthma.", "The person has asthma."),
        ("I am asthma free.", "The person has asthma."),
        ("I was cured of asthma.", "The person has asthma."),
        ("I outgrew asthma.", "The person has asthma."),
        ("Diabetes runs in my family.", "The person has diabetes."),
        ("I tested negative for hepatitis.", "The person has hepatitis."),
        ("My dog has diabetes.", "The person has diabetes."),
        ("Dogs get diabetes.", "The person has diabetes."),
        ("I gave my cat insulin.", "The person has insulin."),
        ("The cat has asthma and takes insulin.", "The person takes insulin."),
        ("I have a dog, who takes insulin.", "The person takes insulin."),
        ("My doctor has asthma.", "The person has asthma."),
        ("My doctor told me she has asthma.", "The person has asthma."),
        ("The nurse is ill and takes insulin.", "The person takes insulin."),
        ("My doctor, who I like, takes insulin.", "The person takes insulin."),
        ("I saw my doctor, who takes insulin.", "The person takes insulin."),
        ("I have run out of metformin.", "The person has metformin."),
        ("I have run out of metformin to take.", "The person takes metformin."),
        ("I ran out of metformin.", "The person has metformin."),
        ("I am out of metformin.", "The person has metformin."),
        ("I am off metformin.", "The person has metformin."),
        ("I gave up metformin.", "The person has metformin."),
        ("I never smoke, see my doctor, take metformin.", "The person takes metformin."),
    ],
)
def test_what_is_excluded_used_up_or_had_by_somebody_else_is_not_had(words: str, claim: str) -> None:
    assert not SummaryCheck(said(words), HEALTH).supports(claim)


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        ("The doctor ruled out diabetes.", "The person's doctor ruled out diabetes."),
        ("The doctor excluded asthma.", "The doctor excluded asthma."),
        ("I am free of asthma.", "The person is free of asthma."),
        ("My dog has diabetes.", "The person's dog has diabetes."),
        ("My doctor has asthma.", "The person's doctor has asthma."),
        ("I have run out of metformin.", "The person ran out of metformin."),
        ("My doctor says I have asthma.", "The person has asthma."),
        ("My doctor told me to take metformin.", "The person takes metformin."),
        ("I told my doctor that I take metformin.", "The person takes metformin."),
        ("I am a nurse and have asthma.", "The person has asthma."),
        ("I have a dog and take metformin.", "The person takes metformin."),
        ("My dog is old, but I have asthma.", "The person has asthma."),
        ("The doctor ruled out diabetes, but I have asthma.", "The person has asthma."),
        ("I run and take metformin.", "The person takes metformin."),
        ("I go out and take metformin.", "The person takes metformin."),
    ],
)
def test_what_the_person_has_beside_others_and_exclusions_is_kept(words: str, claim: str) -> None:
    assert SummaryCheck(said(words), HEALTH).supports(claim)


def test_a_letter_belongs_to_the_word_before_it() -> None:
    check = SummaryCheck(said("I take vitamin C and plan B. I have a cold and hepatitis B."), HEALTH)

    assert check.supports("The person takes vitamin C.")
    for wrong in ("vitamin K", "vitamin B", "vitamin A", "plan C"):
        assert not check.supports(f"The person takes {wrong}.")
    assert not check.supports("The person has hepatitis A.")


def test_what_memories_say_of_the_assistant_supports_nothing_about_the_person() -> None:
    memories = ["The assistant asked about ibuprofen. The person takes 20 mg.", "Assistant: Any insulin?"]
    check = SummaryCheck.of_memories(memories, HEALTH)

    supported = ("The person takes 20 mg.", "The assistant asked about ibuprofen.")
    refused = ("The person takes ibuprofen.", "The person asked about insulin.", "The person takes insulin.")
    assert [check.supports(each) for each in supported] == [True, True]
    assert [check.supports(each) for each in refused] == [False, False, False]


def test_a_phrase_counts_only_if_the_person_said_it_word_for_word() -> None:
    check = SummaryCheck(TALK, HEALTH)

    assert [check.has(each) for each in ("blood pressure", "twice a day", "Peanut butter")] == [True] * 3
    assert [check.has(each) for each in ("ibuprofen", "pressure blood", "400 mg", "")] == [False] * 4


def test_what_the_person_deleted_supports_nothing() -> None:
    forgotten = [HistoryMessage("m1", 1, "user", "I take 20 mg of lisinopril.", START, forgotten=True)]

    assert not SummaryCheck(forgotten, TERMS).supports("The person takes 20 mg.")


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_checked(text: str, summary: str) -> None:
    checked = SummaryCheck(said(text), TERMS).check(summary)

    if checked.dropped:
        assert len(checked.text) < len(summary)
    else:
        assert checked.text == summary
