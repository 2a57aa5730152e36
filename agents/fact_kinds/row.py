"""What a row of the table of the kinds of facts says."""

from dataclasses import dataclass
from typing import Final

TIME: Final = "<time>"
"""Stands for any time in `told_with`."""


@dataclass(frozen=True, slots=True)
class FactKind:
    """One kind of fact.

    `asks`: the pattern of the questions that ask for it. `reads`: the type of its values, by which a reader
    of the brain without a model finds them; `words` stands for the person's own words. `name`: how it is
    called in a sentence, if the kind itself would not be understood. `stable`: it lasts beyond this episode.
    `volunteered`: a value counts although nobody asked.

    `states`: the forms in which it is stated, each with its value. `<am>`, `<have>`, `<do>`, `<my>` stand for
    the subject with its verb, `<v>` for the value; in a value, `{v}` is what `<v>` matched and a `~` makes
    the verb after it one of the third person,
    and `^` asks for a name or a number. `of_the_past`: it stays true although it is over.
    `tells`: its sentence in the third person. If it depends on the value, the first pattern that matches
    decides. `nothing`: what somebody has who has none of it.
    `recalls`: the pattern of the questions about memory that ask for it; `recalled_with`: the kinds that
    answer these questions, too. If several kinds match, the lowest `recall_rank` wins.
    `naming`: words of such a question that only name the kind.
    `bare`: a few words can be its value. `can_be_none`: "no" answers an open question for it.
    `sounds_like`: what an answer in own words has in it; `names_complaints`: it may name a new complaint.
    `told_with`: words with which somebody may have told it; `TIME` stands for any time. `varies`: it changes
    from day to day, and a new value does not end the one before.
    `importance`: how much a memory of it weighs.
    """

    kind: str
    asks: str = ""
    reads: str = "words"
    name: str = ""
    stable: bool = False
    volunteered: bool = False
    states: tuple[tuple[str, str], ...] = ()
    of_the_past: bool = False
    tells: str | tuple[tuple[str, str], ...] = ""
    nothing: str = ""
    recalls: str = ""
    recalled_with: tuple[str, ...] = ()
    recall_rank: int = 0
    naming: str = ""
    importance: float = 0.6
    bare: bool = False
    can_be_none: bool = False
    sounds_like: str = ""
    names_complaints: bool = False
    told_with: str = ""
    varies: bool = False
