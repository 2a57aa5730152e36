"""Named ways to search: the weights of all signals, read from `config/recall.toml`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import BAD_RECIPE, AnamnesisError

DEFAULT: Final = "default"

Weight = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class Recipe(BaseModel):
    """The weights of one way to search. `config/recall.toml` says what each of them does."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    words: Weight
    words_window: Weight
    vector: Weight
    vector_window: Weight
    neighbour: Weight
    speaker: Weight
    episode: Weight
    date: Weight
    importance: Weight
    rating: Weight
    recency: Weight
    recency_days: Annotated[float, Field(gt=0)]
    pinned: Weight
    several_neighbour: Weight
    several_speaker: Weight
    several_difference: Weight
    several_spread: Weight
    minimum: Annotated[float, Field(ge=0, le=1)]
    best_needed: Annotated[float, Field(ge=0, le=1)]
    candidates: Annotated[int, Field(ge=1, le=10_000)]
    limit: Annotated[int, Field(ge=1, le=10_000)]


class Recipes:
    """All recipes by name."""

    def __init__(self, recipes: Mapping[str, Recipe]) -> None:
        self._recipes = dict(recipes)

    @property
    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._recipes)

    def get(self, name: str = DEFAULT) -> Recipe:
        """The recipe of that name; raises if there is none."""
        try:
            return self._recipes[name]
        except KeyError:
            known = ", ".join(self.names)
        raise AnamnesisError(BAD_RECIPE, where="the search", rule=f"there is no such recipe; known: {known}")


def load(path: Path) -> Recipes:
    """Read the recipes from a file. A recipe that extends another has its values, unless it changes them."""
    try:
        sections: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["recipes"]
    except (OSError, ValueError, KeyError) as error:
        refused = AnamnesisError(BAD_RECIPE, where=path.name, rule=f"cannot be read ({type(error).__name__})")
    else:
        return Recipes({name: _recipe(name, sections, path) for name in sections})
    raise refused


def _recipe(name: str, sections: Mapping[str, dict[str, Any]], path: Path) -> Recipe:
    try:
        return Recipe(**_values(name, sections, ()), name=name)
    except (ValidationError, KeyError, TypeError) as error:
        fields = error.errors()[0]["loc"] if isinstance(error, ValidationError) else (str(error),)
        rule = f"recipe {name}: {'.'.join(map(str, fields))} is missing or wrong"
    raise AnamnesisError(BAD_RECIPE, where=path.name, rule=rule)


def _values(name: str, sections: Mapping[str, dict[str, Any]], seen: tuple[str, ...]) -> dict[str, Any]:
    values = dict(sections[name])
    base = values.pop("extends", None)
    if base is None:
        return values
    if base in seen:
        return values  # a circle: the missing values are reported
    return {**_values(base, sections, (*seen, name)), **values}
