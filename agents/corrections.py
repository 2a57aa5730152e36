"""Corrections: a message that takes back something known and says what is right."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from agents.known import Known, Told, Understood
from agents.lexicon import Lexicon, any_of
from agents.patterns import HAS_MOMENT, HAS_SPAN
from agents.questions import Question
from agents.reading import Said, Text, concerns, stated
from agents.replies import Replies
from agents.telling import Teller, third_person
from agents.values import LISTS

_NOT_THAT: Final = re.compile(
    (
        r"\b(?:not|instead of|rather than) (?:on |in |my |the |a |an |since |for |about |it's )*([\w.]+)(?: "
        r"\w+)?"
    ),
    re.IGNORECASE,
)


class Corrections:
    """Finds corrections with the words of the lexicon."""

    def __init__(
        self, lexicon: Lexicon, replies: Replies, teller: Callable[[Mapping[str, str]], Teller]
    ) -> None:
        self._lexicon, self._replies, self._teller = lexicon, replies, teller
        self._marks = any_of(lexicon.group("corrections.marks"))
        self._parts = lexicon.group("body.parts")

    def read(self, text: Text, known: Known, turn: int) -> Understood | None:
        """A message that takes back something known and says what is right."""
        values = known.values
        if not values or text.injected:
            return None
        low = text.stated
        mark = self._marks.search(low.lower())
        denied = list(_NOT_THAT.finditer(low))
        taken_back = [(each, kind) for each in denied if (kind := _kind_with(values, each[1]))]
        marked = mark is not None and mark.start() <= 18
        if not taken_back and not marked:
            return None
        rest = low
        for each, _ in taken_back:
            rest = rest.replace(each[0], " ")
        rest = self._marks.sub(" ", rest)
        rest = re.sub(r"\s+", " ", rest).strip(" ,.;-")
        rest = re.sub(
            r"^(?:(?:no|sorry|well|but|oh|and|it's|it is|to|so|um|is|was|about)\b[ ,]*)+",
            "",
            rest,
            flags=re.IGNORECASE,
        ).strip(" ,.")
        told = Told(turn, known)
        pure = Text(rest, self._lexicon)
        kinds = [kind for _, kind in taken_back]
        for said in self._right_instead(pure, rest, kinds, values):
            old = values.get(said.kind, "")
            if said.value.lower() == old.lower():
                continue
            if said.kind in LISTS:
                told.drop(said.kind, [each[1].lower() for each, kind in taken_back if kind == said.kind])
            elif not old and said.kind != "concern":
                continue
            if said.kind == "concern" and not _same_part(said.value, old):
                told.shelve(said.value)
            told.keep(said)
            if said.kind == "location" and "concern" in {each.kind for each in told.facts}:
                continue
            current = self._teller(told.known.values)
            right = (
                current.reports(said.value)
                if said.kind == "concern"
                else current.tells(said.kind, said.value)
            )
            before = old.partition("/")[0] if said.kind == "severity" else old
            instead = f", not {third_person(before)}" if old and said.kind not in LISTS else ""
            told.sentences.append(f"Correction: {right}{instead}")
        if not told.facts:
            return None
        changed = tuple(fact.kind for fact in told.facts)
        return Understood(
            known=told.known,
            sentences=tuple(told.sentences),
            stated=tuple(told.facts),
            answers=changed,
            replied=True,
            corrected=True,
            leans_on=tuple(dict.fromkeys(fact.turn for fact in known.facts if fact.kind in changed)),
        )

    def _right_instead(
        self, text: Text, rest: str, kinds: Sequence[str], values: Mapping[str, str]
    ) -> Iterator[Said]:
        given = {each.kind for each in stated(text)}
        yield from (each for each in stated(text) if each.kind in values)
        parts = [part for each in text.has("body.parts") if (part := text.cut(each)) != "side"]
        number = re.fullmatch(
            (
                r"(?:an? |about |around |more like |like |closer to |i'd say |it )*(\d{1,2}(?:\.\d)?"
                r"|[a-z]+)(?: really| now| today)?"
            ),
            rest.lower(),
        )
        if "severity" not in given and "severity" in values and (not kinds or "severity" in kinds) and number:
            pseudo = Question("", "", "open", ("severity",), top=_top_of(values["severity"]))
            for reply in self._replies.read(Text(number[1], self._lexicon), [pseudo], values, ()):
                if reply.said.kind == "severity" and reply.said.value[0].isdigit():
                    yield reply.said
                    return
        if not given & {"onset", "duration"} and ({"onset", "duration"} & values.keys()):
            if (moment := HAS_MOMENT.search(rest)) and "onset" in values:
                yield Said("onset", moment[0].strip())
            elif (span := HAS_SPAN.search(rest)) and not re.search(r"\d{1,3} year", rest):
                yield Said(
                    "duration" if "duration" in values or "onset" not in values else "onset", span[0].strip()
                )
        if "location" in values or parts:
            pseudo = Question("", "", "open", ("location",))
            side = re.search(r"\b(left|right|both|upper|lower)\b", rest.lower())
            if parts or side:
                where = self._replies.where(text, pseudo, values)
                if parts:
                    where = next(
                        (each.value for each in concerns(text) if each.kind == "location"), ""
                    ) or self._sided(rest, parts[0])
                if where and parts and "concern" in kinds and where not in values.get("concern", ""):
                    yield Said("concern", f"{where} complaint")
                    yield Said("location", where)
                elif where:
                    yield from self._moved(where, values, has_part=bool(parts))
        meant = "age" in kinds or (number is not None and not kinds and "severity" not in values)
        if "age" in values and "age" not in given and meant and (age := re.search(r"\d{1,3}", rest)):
            yield Said("age", age[0])

    def _sided(self, rest: str, part: str) -> str:
        found = re.search(
            rf"\b((?:left|right|upper|lower|big|little|inner|outer) )?{re.escape(part)}\b", rest.lower()
        )
        return found[0] if found else part

    def _moved(self, where: str, values: Mapping[str, str], *, has_part: bool) -> Iterator[Said]:
        """Another place of the same complaint, which may carry the old one in its name."""
        concern, old = values.get("concern", ""), values.get("location", "")
        if old and old in concern:
            yield Said("concern", concern.replace(old, where))
        elif has_part and not old and concern:
            part = next(
                (
                    part
                    for part in sorted(self._parts, key=len, reverse=True)
                    if re.search(rf"\b{part}\b", concern)
                ),
                "",
            )
            yield Said("concern", concern.replace(part, where) if part else f"{where} complaint")
        yield Said("location", where)


def _same_part(one: str, other: str) -> bool:
    return bool(set(one.lower().split()) & set(other.lower().split()) - {"left", "right", "in", "the"})


def _kind_with(values: Mapping[str, str], word: str) -> str:
    """The kind whose value has a word; severity before others for a number."""
    for kind, value in sorted(values.items(), key=lambda each: each[0] != "severity"):
        if kind == "request":
            continue
        inside = len(word) > 3 and kind in ("concern", "location") and word.lower() in value.lower()
        if inside or re.search(rf"(?<![\w.]){re.escape(word.lower())}(?![\w])", value.lower()):
            return kind
    return ""


def _top_of(value: str) -> int:
    return int(value.rpartition("/")[2]) if value.rpartition("/")[2].isdigit() else 10
