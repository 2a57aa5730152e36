"""The table of the kinds of facts. A new kind is one row; if it has several values, `LISTS` names it, too."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agents.fact_kinds.episode import ASKED
from agents.fact_kinds.lasting import LASTING
from agents.fact_kinds.row import FactKind as FactKind

TABLE: Final = (*ASKED, *LASTING)
"""Every kind that is asked for or read."""

BY_NAME: Final[Mapping[str, FactKind]] = {row.kind: row for row in TABLE}


def indexed(
    table: Sequence[FactKind],
) -> tuple[Mapping[str, re.Pattern[str]], Sequence[tuple[tuple[str, ...], re.Pattern[str]]]]:
    """The patterns of questions by kind, and the kinds that questions about memory ask for by pattern."""
    asked = {row.kind: re.compile(row.asks) for row in table if row.asks}
    recalled = [row for row in sorted(table, key=lambda row: row.recall_rank) if row.recalls]
    return asked, [((row.kind, *row.recalled_with), re.compile(row.recalls)) for row in recalled]


ASKED_BY, RECALLED_BY = indexed(TABLE)


def name_of(kind: str) -> str:
    """The name of a kind of fact for use in a sentence."""
    row = BY_NAME.get(kind)
    return (row.name if row else "") or kind.replace("_", " ")


def recalled_kinds(low: str) -> tuple[str, ...]:
    """The kinds of fact that a question about memory asks for."""
    return next((kinds for kinds, pattern in RECALLED_BY if pattern.search(low)), ())


def sentence_of(kind: str, value: str, who: str) -> str | None:
    """A fact in the third person; None if its kind has no sentence."""
    row = BY_NAME.get(kind)
    if row is None or not row.tells:
        return None
    forms = (("", row.tells),) if isinstance(row.tells, str) else row.tells
    tells = next(form for pattern, form in forms if re.match(pattern, value))
    return tells.format(who=who, v=value)
