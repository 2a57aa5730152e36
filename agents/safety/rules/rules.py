"""Loads the guard's rules from `config/safety/` and validates them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import AgentError, BadRules
from agents.safety.rules.scope import Binds, Reach

Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]*$")]
Phrases: TypeAlias = tuple[Annotated[str, Field(min_length=1)], ...]
Tier: TypeAlias = Literal[1, 2, 3]
Kind: TypeAlias = Literal["emergency", "crisis"]
Pick: TypeAlias = Literal["first", "second", "last"]

ANYWHERE: Final = 60
"""Default maximum distance between the findings of a rule, in words: about one message."""
BARE: Final = "bare"
"""The concept of very short sentences: "sepsis!" is a cry for help, in a long sentence it may be a topic."""


HAS_IT: Final = "has_it"
"""The concept of having something now. The name of an illness is a finding only together with it."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class CueSection(_Section):
    """A kind of cue: phrases that retract a finding. The fields are those of `scope.Cue`."""

    reach: Reach
    most: int = 40
    spares: frozenset[str] = frozenset()
    binds: Binds | None = None
    phrases: Phrases


class Language(_Section):
    """words.toml: how English text is read."""

    between: frozenset[str]
    negative: frozenset[str]
    breaks: frozenset[str]
    subjects: frozenset[str]
    asks: frozenset[str]
    openings: frozenset[str]
    persons: frozenset[str]
    talk: frozenset[str]
    complements: frozenset[str]
    grave: frozenset[str]
    living: frozenset[str]
    general: frozenset[str]
    expand: Mapping[str, str]
    written: Mapping[str, str]
    look_alikes: frozenset[str]
    others: tuple[Mapping[str, str], ...]
    endings: Mapping[str, str]
    cues: Mapping[Name, CueSection]


class BandSection(_Section):
    """A range of values that counts as a finding of a concept."""

    concept: Name
    low: float = 0
    high: float = 10_000


class MeasureSection(_Section):
    """A number near one of the words of a concept."""

    bands: tuple[BandSection, ...]
    before: int = -1
    after: int = -1


class PressureSection(_Section):
    """Blood pressures that count as a finding of a concept, by the upper or the lower value."""

    concept: Name
    upper: tuple[float, float]
    lower: tuple[float, float]


class Compound(_Section):
    """A finding that consists of others close together, such as a body part and a pain."""

    when: Phrases
    within: int = 6


class Concepts(_Section):
    """concepts.toml and measures.toml: what can be found in a message."""

    concepts: Mapping[Name, Phrases]
    compounds: Mapping[Name, Compound] = {}
    measures: Mapping[Name, MeasureSection] = {}
    pressures: tuple[PressureSection, ...] = ()


class Rule(_Section):
    """One rule: if one of the combinations in `when` is found, the message has its kind and tier.

    `a + b|c` means a together with b or c. `even_if` lists cues that do not stop this rule; `unless` lists
    findings that make it harmless. A rule with `always` must be heard at any price: what it finds is certain,
    even if its words were only guessed from a misspelling. What a rule with `in_doubt` finds is possible.
    """

    id: Name
    kind: Kind
    tier: Tier
    source: Annotated[str, Field(min_length=1)]
    when: Phrases
    within: int = ANYWHERE
    even_if: frozenset[str] = frozenset()
    unless: tuple[Name, ...] = ()
    always: bool = False
    in_doubt: bool = False


class Replies(_Section):
    """replies.toml: what a bare "yes" or "no" means after a question.

    `plain`: phrases for yes that count even after a "no".
    `fillers`: phrases without a meaning before an answer.
    `no_more`: after a yes, says that it is in the past.
    `after_all`: reverses a "no".
    `picks`: choose one of the options of a question.
    `at_a_loss`: leaves the danger of the last answer as it was.
    `over`: ends a danger, if the message has only phrases of `beside_over` in addition.
    `over_by_them`: does the same for an emergency, and `over_as_felt` for an emergency that is felt at once.
    `mistaken`: says that there never was a danger: a mistake, a joke, a misunderstanding.
    `no_danger`: a no to the question whether there is danger, without the word.
    `light`: says nothing about the danger: "haha ok", "bye", "thanks".
    `means`: makes a danger to oneself graver; `bare_means` only if the message says nothing else.
    """

    fillers: Phrases
    plain: Phrases
    yes: Phrases
    no: Phrases
    unsure: Phrases
    someone: Phrases
    no_more: Phrases
    after_all: Phrases
    at_a_loss: Phrases
    over: Phrases
    over_by_them: Phrases
    over_as_felt: Phrases
    mistaken: Phrases
    beside_over: Phrases
    no_danger: Phrases
    light: Phrases
    means: Phrases
    bare_means: Phrases
    picks: Mapping[Pick, Phrases]
    reverse: Mapping[Name, Phrases]


class RuleBook(_Section):
    """All rules."""

    language: Language
    heard: Concepts
    rules: tuple[Rule, ...]
    replies: Replies


_M = TypeVar("_M", bound=BaseModel)


def load(folder: Path) -> RuleBook:
    """Load the rule book of a folder. Raises `BadRules` with the place of an error."""
    heard = _toml(folder / "concepts.toml") | _toml(folder / "measures.toml")
    rules = [
        {**section, "kind": kind}
        for name, kind in (("emergencies.toml", "emergency"), ("crises.toml", "crisis"))
        for section in _toml(folder / name).get("rule", [])
    ]
    book = RuleBook(
        language=_checked(Language, _toml(folder / "words.toml"), "words.toml"),
        heard=_checked(Concepts, heard, "concepts.toml"),
        rules=tuple(_checked(Rule, rule, str(rule.get("id", rule["kind"]))) for rule in rules),
        replies=_checked(Replies, _toml(folder / "replies.toml"), "replies.toml"),
    )
    _refuse_unknown_names(book)
    return book


def combinations(when: Phrases) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """`a + b|c` as groups of names. One of each group must be found."""
    return tuple(
        tuple(tuple(name.strip() for name in group.split("|")) for group in each.split("+")) for each in when
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRules(path.name, "$", "cannot be read as TOML") from None


def _checked(model: type[_M], said: dict[str, Any], where: str) -> _M:
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise _refusal(where, error) from None


def _refusal(where: str, error: ValidationError) -> AgentError:
    first = error.errors(include_url=False, include_input=False)[0]
    return BadRules(where, ".".join(str(step) for step in first["loc"]), first["msg"])


def _refuse_unknown_names(book: RuleBook) -> None:
    """Raise `BadRules` if a rule uses a concept that does not exist, because it would never fire."""
    heard = book.heard
    known = {*heard.concepts, *book.replies.reverse}
    known |= {band.concept for measure in heard.measures.values() for band in measure.bands}
    known |= {pressure.concept for pressure in heard.pressures}
    known |= {BARE, *heard.compounds}
    asked: list[tuple[str, Phrases, tuple[str, ...]]]
    asked = [(name, compound.when, ()) for name, compound in heard.compounds.items()]
    asked += [(rule.id, rule.when, rule.unless) for rule in book.rules]
    for where, when, unless in asked:
        for name in (*(name for combo in combinations(when) for group in combo for name in group), *unless):
            if name not in known:
                raise BadRules(where, name, "is not a known concept")
    if len({rule.id for rule in book.rules}) < len(book.rules):
        raise BadRules("rules", "id", "occurs twice")
