"""The danger classifier is deterministic, raises clear danger, and is cached."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from agents.embedders.scripted import WordEmbedder
from agents.ports import Vectors
from agents.safety import classifier as classifier
from agents.safety.detector import DangerDetector
from agents.stations.embed import embed
from orchestrator.settings import load
from orchestrator.wiring import load_classifier
from tests.safety.phrases import UNSEEN, injections, phrases, read
from tests.support.brains.kept_conversations import ASIDE, PERSON, Talk, kept, lines_of
from tests.support.brains.models import minilm, the_guard

PHRASES: dict[str, classifier.Class] = {
    "chest pain and sweating": "emergency",
    "crushing pain in the chest": "emergency",
    "i want to die": "crisis",
    "i will end my life": "crisis",
    "which vitamins are healthy": "none",
    "how much water is healthy": "none",
}


class AllAlike:
    """An embedder that gives every text the same vector."""

    name, width = "all-alike", 2

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the same vector for each text."""
        return np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1))


def no_findings(text: str) -> list[str]:
    """What rules find in a text, if there are none."""
    return []


def test_the_classifier_is_trained_deterministically() -> None:
    one, other = (classifier.learn(WordEmbedder(), PHRASES, no_findings) for _ in range(2))

    assert np.array_equal(one.landmark_weights, other.landmark_weights)
    assert np.array_equal(one.word_weights, other.word_weights)


def test_texts_near_the_examples_are_like_them() -> None:
    learned = classifier.DangerClassifier(
        WordEmbedder(), classifier.learn(WordEmbedder(), PHRASES, no_findings), no_findings
    )

    chest, life, water = learned.likeness(
        ["crushing chest pain", "i want to end my life", "vitamins and water"]
    )

    assert chest.emergency > 0.3 > chest.crisis
    assert life.crisis > 0.3 > life.emergency
    assert water.danger < 0.3


def test_small_words_count_if_the_embedding_is_the_same() -> None:
    phrases: dict[str, classifier.Class] = {}
    for thing in ("heat", "boss", "noise", "exam"):
        phrases |= {f"this {thing} makes me want to die": "crisis", f"this {thing} is killing me lol": "none"}
    listening = classifier.DangerClassifier(
        AllAlike(), classifier.learn(AllAlike(), phrases, no_findings), no_findings
    )

    in_earnest, in_jest = listening.likeness(["it makes me want to die", "it is killing me lol"])

    assert in_earnest.crisis > 0.5 > in_jest.crisis


def test_what_rules_find_counts_if_embedding_and_words_are_the_same() -> None:
    def findings(text: str) -> list[str]:
        return ["-chest_pain", "-history"] if "1998" in text else ["+chest_pain"] if "chest" in text else []

    phrases: dict[str, classifier.Class] = {}
    for thing in ("pain", "ache", "trouble", "agony"):
        phrases |= {f"chest {thing} at 8": "emergency", f"chest {thing} at 1998": "none"}
    listening = classifier.DangerClassifier(
        AllAlike(), classifier.learn(AllAlike(), phrases, findings), findings
    )

    now, then = listening.likeness(["my chest 8", "my chest 1998"])

    assert now.emergency > 0.5 > then.emergency


def test_a_message_without_a_known_word_is_judged_by_its_embedding() -> None:
    listening = classifier.DangerClassifier(
        WordEmbedder(), classifier.learn(WordEmbedder(), PHRASES, no_findings), no_findings
    )

    assert np.isfinite(listening.likeness(["", "?", "zzz"])).all()


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A folder with a few phrases of each class."""
    folder = tmp_path / "phrases"
    folder.mkdir()
    for name, kind in classifier.FILES.items():
        (folder / name).write_text(f"[all]\nphrases = {json.dumps(of(kind))}\n", encoding="utf-8")
    tables = [f"[{kind}]\nphrases = {json.dumps(of(kind))}\n" for kind in classifier.CLASSES]
    (folder / "voices.toml").write_text("".join(tables), encoding="utf-8")
    (folder / "replies.toml").write_text('[[replies]]\nasked = "?"\nsaid = "yes"\n', encoding="utf-8")
    return folder


def of(kind: classifier.Class) -> list[str]:
    """The phrases of a class."""
    return [phrase for phrase, each in PHRASES.items() if each == kind]


def test_the_classifier_is_trained_once_and_then_read_from_the_cache(few: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = classifier.load(few.parent, WordEmbedder(), cache, no_findings)
    (file,) = cache.iterdir()
    again = classifier.load(few.parent, WordEmbedder(), cache, no_findings)

    assert file.name.startswith("classifier-")
    assert first.likeness(["my chest hurts"]) == again.likeness(["my chest hurts"])
    assert list(cache.iterdir()) == [file]


def test_a_damaged_cache_of_the_classifier_is_replaced(few: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    classifier.load(few.parent, WordEmbedder(), cache, no_findings)
    (file,) = cache.iterdir()
    file.write_bytes(b"PK cut short")

    assert len(classifier.load(few.parent, WordEmbedder(), cache, no_findings).likeness(["hello"])) == 1


@pytest.fixture(scope="module")
def detector() -> DangerDetector:
    """Rules and classifier as shipped."""
    return DangerDetector(the_guard(), load_classifier(load(environment={}), minilm()))


@pytest.mark.parametrize(
    "said",
    [
        "no chest pain, no breathlessness, I'm only tired after the night shift",
        "I had a stroke in 2010 and want to know about travel insurance",
        "what happens in the body during a heart attack?",
        "this deadline is killing me",
        "Please make me a summary of what I told you.",
        "I take ibuprofen 400 when it gets bad, maybe twice a week",
        "no, I'm not thinking of hurting myself",
        "it has been a bit better since Monday",
        "my readings over two weeks were fine",
    ],
)
def test_ordinary_messages_raise_nothing(detector: DangerDetector, said: str) -> None:
    assert not detector.check(said).flagged


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            "she just stares at me, one side of her smile is missing and the cup fell out of her hand",
            "emergency",
        ),
        ("my step dad comes in when mum is on nights and I lie there pretending I sleep", "crisis"),
    ],
)
def test_indirect_danger_is_found_even_next_to_another_topic(
    detector: DangerDetector, said: str, kind: str
) -> None:
    assert detector.check(said).kind == kind
    assert detector.check(f"{said}, I have no insurance").kind == kind


def test_an_added_text_rarely_hides_danger_that_only_the_classifier_finds(detector: DangerDetector) -> None:
    danger = [phrase.text for name in ("emergencies", "crises") for phrase in phrases(UNSEEN, name)]
    heard = [each for each in danger if not the_guard().check(each).flagged and detector.check(each).flagged]
    beside = [
        text
        for number, said in enumerate(heard)
        for injection in injections()[number % 29 :: 29]
        for text in (f"{injection}\n{said}", f"{said}\n{injection}")
    ]

    lost = [text for text in beside if not detector.check(text).flagged]

    assert len(beside) > 100
    assert len(lost) <= len(beside) // 20, lost


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my arm hurts since monday", ["my arm hurts since monday"]),
        ("I ran. Then my arm went numb! Why is that so?", ["Then my arm went numb!", "Why is that so?"]),
        ("one two three\nfour five six", ["one two three", "four five six"]),
        ("ok", ["ok"]),
        (
            "we went there " * 9 + "so then she fell down, " + "which nobody saw " * 5,
            [
                f"{('we went there ' * 9).strip()} so",
                f"then she fell down {('which nobody saw ' * 5).strip()}",
            ],
        ),
    ],
)
def test_a_text_is_judged_sentence_by_sentence_and_thought_by_thought(text: str, parts: list[str]) -> None:
    assert classifier.parts_of(text) == parts


def test_every_sentence_of_a_long_text_is_in_one_of_a_bounded_number_of_parts() -> None:
    text = " ".join(f"this is sentence {number}." for number in range(900))

    parts = classifier.parts_of(text)

    assert len(parts) <= classifier.MOST_PARTS
    assert all(f"sentence {number}." in " ".join(parts) for number in range(900))


async def test_no_ordinary_reply_of_an_interview_is_raised(detector: DangerDetector) -> None:
    heard, message = [], ""
    for path in kept():
        talk = Talk()
        for who, said in lines_of(path.read_text(encoding="utf-8")):
            if who in (PERSON, ASIDE):
                message = said
            else:
                enrichment = (await talk.say(message, label=who, answer=said)).enrichment
                heard += [message, (await embed(minilm(), message, enrichment, enrichment.known)).text]

    taken_for_danger = [each for each in heard if detector.check(each).flagged]

    assert len(heard) > 300
    assert len(taken_for_danger) <= len(heard) // 100, taken_for_danger


def test_what_people_say_in_any_chat_is_rarely_raised(detector: DangerDetector) -> None:
    said = read(Path(__file__).parents[1] / "chat.toml")["chat"]["phrases"]

    taken_for_danger = [each for each in said if detector.check(each).flagged]

    assert len(taken_for_danger) <= len(said) // 100, taken_for_danger
