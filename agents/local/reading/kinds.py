"""Which act a clause is by its form, if that leaves no doubt."""

import re
import tomllib
from pathlib import Path
from typing import Final, TypeAlias

from agents.errors import BadRoster
from agents.local.reading.clauses import Clause
from agents.values import ActKind

_LEAD: Final = re.compile(
    r"(?:(?:ok(?:ay)?|k|so|and|but|well|now|also|oh|ah|right|anyway|actually|then|please|pls|just|hey|hi"
    r"|hello|wait"
    r"|sorry|no|yes|great|perfect|good|alright|(?:can|could|would|will) you|i(?:'d| would) like you to"
    r"|i (?:want|need) you to|quick(?: test| check)?|before i go|one more thing|at least|lol"
    r"|haha|(?:he|she|they|my \w+) says?)\b[,:.!]* +)+"
)


Forms: TypeAlias = tuple[tuple[ActKind, re.Pattern[str]], ...]
"""Patterns of clauses whose form leaves no doubt. Each is compared with a whole clause, without lead-in."""


def form_of(clause: Clause, forms: Forms) -> ActKind | None:
    """The act of a clause whose form leaves no doubt."""
    low = clause.low.strip(" .,!?\"'()*:;-")
    low = re.sub(r"(?:,? (?:x+|mate|love|hun|lol|haha|:\)))+$", "", low)
    bare = _LEAD.sub("", low, count=1)
    return next((kind for kind, form in forms if form.fullmatch(low) or form.fullmatch(bare)), None)


def load_forms(path: Path) -> Forms:
    """The forms of each act in `kinds.toml`."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None
    return tuple(
        (ActKind(kind), re.compile("|".join(f"(?:{each})" for each in patterns)))
        for kind, patterns in document["forms"].items()
    )
