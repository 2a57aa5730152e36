"""The complaints that a message names: by their names, by what a part of the body does, by how one feels."""

import re
from collections.abc import Iterator
from typing import Final

from agents.local.lexicon import Mention, word_set, words_of
from agents.local.patterns import FEELS, HYPOTHETICAL, PAIN_NOUNS, PAINS
from agents.local.people import SELF
from agents.local.reading import OWNED, Said, Text, past, sided

_OF_PAPERS: Final = word_set("note notes leave pay days certificate")

_UNKNOWN: Final = re.compile(
    r"\b(?:dunno|not sure|don't know|no idea)(?: about| if| whether)?(?: the| a| any)?$"
)
_CUT_DOWN: Final = (["down"], ["out"], ["back"], ["off"], ["it"], ["up"], ["them"], ["those"], ["all"])
_WEATHER: Final = word_set("it's it is was the gets getting too so very when")


def concerns(text: Text) -> Iterator[Said]:
    """The complaints in the statements of a message, the clearest first; denied ones as `no …`."""
    texts = [word.text for word in text.words]
    used: set[int] = set()
    for mention in (each for each in text.mentions if each.group == "complaints.clauses"):
        used.update(range(mention.first, mention.last))
        yield Said("concern", text.cut(mention), "clause", of=text.of(mention.first))
    for mention in (
        each for each in text.mentions if each.group == "complaints.nouns" and each.first not in used
    ):
        if set(texts[max(0, mention.first - 4) : mention.first]) & HYPOTHETICAL - {"like"}:
            continue
        if _UNKNOWN.search(" ".join(texts[max(0, mention.first - 5) : mention.first])):
            continue
        if mention.text == "cut" and texts[mention.last : mention.last + 1] in _CUT_DOWN:
            continue
        if mention.text == "cold" and texts[max(0, mention.first - 1)] in _WEATHER:
            continue
        name, part = _with_part(text, mention, texts)
        of = text.of(mention.first)
        if gone(text, mention) or past(text, mention):
            used.update(range(mention.first, mention.last))
            yield Said("gone" if gone(text, mention) else "past", name, of=of)
            continue
        if mention.first in text.denied:
            yield Said("denied", name, of=of)
            continue
        used.update(range(mention.first, mention.last))
        yield Said("concern", name, of=of)
        if part:
            yield Said("location", part)
    yield from _of_a_part(text, texts, used)
    yield from _before_a_part(text, texts, used)
    for mention in (
        each for each in text.mentions if each.group == "complaints.adjectives" and each.first not in used
    ):
        before = texts[max(0, mention.first - 3) : mention.first]
        if texts[mention.last : mention.last + 1] and texts[mention.last] in _OF_PAPERS:
            continue  # `a sick note`
        if mention.first in text.denied:
            if {"feel", "feeling", "am", "not", "i'm"} & set(before):
                yield Said("denied", f"feeling {text.cut(mention)}")
        elif (
            before
            and before[-1] in FEELS
            and (
                set(before) & (FEELS - {"and", "or", "so", "a", "of", "all", "is", "was"})
                or ({"is", "was"} & set(before) and text.of(mention.first) not in ("", SELF))
            )
        ):
            yield Said("concern", f"feeling {text.cut(mention)}", "feeling", text.of(mention.first))


def _with_part(text: Text, mention: Mention, texts: list[str]) -> tuple[str, str]:
    """A complaint with the part of the body that it is said of: `left knee pain`, `left knee`."""
    name = text.cut(mention)
    if mention.first and texts[mention.first - 1] in text.lexicon.group("body.adjectives"):
        return f"{texts[mention.first - 1]} {name}", ""
    parts = [each for each in text.mentions if each.group == "body.parts"]
    before = next((each for each in parts if each.last == mention.first), None)
    if before is not None:
        part = sided(text, before, texts)
        return f"{part} {name}", part
    inside = texts[mention.last : mention.last + 6]
    if inside and inside[0] in (
        "in",
        "on",
        "around",
        "behind",
        "under",
        "at",
        "of",
        "across",
        "near",
        "to",
        "between",
        "down",
        "above",
        "below",
    ):
        after = next((each for each in parts if mention.last < each.first <= mention.last + 5), None)
        if after is not None and not set(texts[mention.last : after.first]) & {",", ".", "and", "but"}:
            part = sided(text, after, texts)
            where = (
                inside[0] if inside[0] in ("behind", "under", "between", "around", "above", "below") else ""
            )
            if name.split()[-1] in PAIN_NOUNS and not where:
                return f"{part} {name}", part
            return f"{name} {inside[0]} {part}", f"{where} {part}".strip()
    return name, ""


def _of_a_part(text: Text, texts: list[str], used: set[int]) -> Iterator[Said]:
    """`my left knee hurts`, `my ankle is swollen`."""
    for part in (each for each in text.mentions if each.group == "body.parts" and each.first not in used):
        where = sided(text, part, texts)
        first = part.first - (len(where.split()) - (part.last - part.first))
        owned = first > 0 and texts[first - 1] in ("my", "his", "her", "their", "the", "our", "both")
        for does in (each for each in text.mentions if part.last <= each.first <= part.last + 4):
            between = texts[part.last : does.first]
            if set(between) & {",", ".", "and", "but", "if", "when"} or does.first in used:
                continue
            if does.group == "complaints.verbs" and (owned or between == []):
                if does.first in text.denied or {"doesn't", "don't", "not"} & set(between):
                    yield Said(
                        "denied",
                        f"{where} pain" if texts[does.first] in PAINS else f"{where} {text.cut(does)}",
                    )
                    break
                pain = texts[does.first] in PAINS
                used.update(range(first, does.last))
                yield Said(
                    "concern",
                    f"{where} pain" if pain else f"{where} {text.cut(does)}",
                    "" if pain else "clause",
                    text.of(part.first),
                )
                yield Said("location", where)
                break
            if does.group == "complaints.states" and set(between) & {
                "is",
                "are",
                "feels",
                "feel",
                "was",
                "gets",
                "got",
                "looks",
                "been",
                "'s",
                "has",
                "became",
            }:
                kind = "denied" if does.first in text.denied or "not" in between else "concern"
                used.update(range(first, does.last))
                yield Said(kind, f"{text.cut(does)} {where}", of=text.of(part.first))
                if kind == "concern" and where not in ("period", "mouth"):
                    yield Said("location", where)
                break


def _before_a_part(text: Text, texts: list[str], used: set[int]) -> Iterator[Said]:
    """`swollen ankles`, `a bad back`."""
    states = text.lexicon.group("complaints.states") | {"bad", "dodgy"}
    for part in (each for each in text.mentions if each.group == "body.parts" and each.first not in used):
        where = sided(text, part, texts)
        at = part.last - len(words_of(where)) - 1
        if at >= 0 and texts[at] in states and at not in used and texts[max(0, at - 1)] not in OWNED:
            used.update(range(at, part.last))
            kind = "denied" if part.first in text.denied else "concern"
            yield Said(kind, f"{texts[at]} {where}", of=text.of(part.first))
            if kind == "concern" and where not in ("period", "mouth"):
                yield Said("location", where)


_GONE: Final = re.compile(
    r"\s*(?:'s|is|are|has|have|had|was)?(?: now| all| completely| finally| pretty much| since)*"
    r" ?(?:gone|went|goes)(?: away| down)?(?: now| completely)?\b(?! (?:up|to|from|on))"
    r"|\s*(?:'s|has|have|is)?(?: now| all| finally)* ?(?:cleared(?: up)?|disappeared|stopped|healed|passed"
    r"|vanished)\b"
)


def gone(text: Text, mention: Mention) -> bool:
    """Whether a complaint is said to have left: `my headache is gone`."""
    return _GONE.match(text.stated.lower()[text.words[mention.last - 1].end :]) is not None
