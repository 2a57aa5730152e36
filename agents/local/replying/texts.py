"""The wording of the replies, and which of several texts is used."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRoster
from agents.local.replying.turn import Turn

_Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


class Texts(BaseModel):
    """The wording in `replies.toml`. `requests` has a sentence for each pattern of a request."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    without_a_model: str
    noted: _Texts
    noted_plainly: _Texts
    remembered: _Texts
    corrected: _Texts
    corrected_plainly: _Texts
    taken_out: _Texts
    removed: _Texts
    kept: _Texts
    nothing_to_remove: _Texts
    summary: _Texts
    nothing_noted: _Texts
    resumed: _Texts
    resumed_plainly: _Texts
    left: _Texts
    topic: _Texts
    no_shame: _Texts
    follow_up: _Texts
    trust: _Texts
    loss: _Texts
    loss_again: _Texts
    hard: _Texts
    afraid: _Texts
    glad: _Texts
    complaint: _Texts
    asked_again: _Texts
    no_answer: _Texts
    welcome: _Texts
    goodbye: _Texts
    hello: _Texts
    hello_again: _Texts
    fine: _Texts
    chat: _Texts
    how_are_you: _Texts
    waiting: _Texts
    unclear: _Texts
    explain: _Texts
    outside: _Texts
    about_us: _Texts
    privacy: _Texts
    why_ask: _Texts
    medicine_question: _Texts
    medicine_general: _Texts
    sensible: _Texts
    health_question: _Texts
    what_it_is: _Texts
    worried: _Texts
    noted_for_them: _Texts
    question_noted: _Texts
    requests: Mapping[str, str]


def load(path: Path) -> Texts:
    """Load the wording."""
    try:
        return Texts.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError):
        raise BadRoster(path.name, "$", "cannot be read as wording") from None


class Wording:
    """Chooses among the texts of one name."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts

    def pick(self, name: str, turn: Turn, **values: str) -> str:
        """A wording that the last answers did not have, with the values put in."""
        texts: Sequence[str] = getattr(self.texts, name)
        before = " ".join(said.answer for said in turn.talk.said[-4:])
        start = len(turn.talk.said) % len(texts)
        ordered = [*texts[start:], *texts[:start]]
        unused = [text for text in ordered if text.split("{")[0].strip(" :") not in before]
        return (unused or ordered)[0].format(**values)
