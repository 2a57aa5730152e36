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
    """The wording in `replies.toml`.

    `whom` says for patterns of a question who can answer it, `requests` has a sentence for each pattern of a
    request. The last pattern of both fits everything.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    without_a_model: str
    pharmacist: str
    noted: _Texts
    noted_gently: _Texts
    noted_plainly: _Texts
    remembered: _Texts
    what_to_keep: _Texts
    whether_so: _Texts
    kept_request: _Texts
    corrected: _Texts
    corrected_plainly: _Texts
    taken_out: _Texts
    removed: _Texts
    kept: _Texts
    nothing_to_remove: _Texts
    goes_with_it: _Texts
    for_good: _Texts
    can_undo: _Texts
    erased: _Texts
    undone: _Texts
    nothing_to_undo: _Texts
    summary: _Texts
    nothing_noted: _Texts
    own_words: _Texts
    first_time: _Texts
    resumed: _Texts
    resumed_plainly: _Texts
    left: _Texts
    topic: _Texts
    no_shame: _Texts
    follow_up: _Texts
    trust: _Texts
    loss: _Texts
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
    declined: _Texts
    perhaps_asked: _Texts
    urgent: _Texts
    worried: _Texts
    whom: Mapping[str, str]
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
