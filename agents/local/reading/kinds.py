"""Which act a clause is: by unmistakable forms, else by a classifier that learns from examples.

The classifier is linear, as the router is. It sees the clause's vector and a few marks of its form: whether
it asks, speaks of `I` or `you`, says `told` or `remember`. It is trained once and kept in a file.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from zipfile import BadZipFile

import numpy as np

from agents.errors import BadRoster
from agents.local.reading.clauses import Clause, plain
from agents.ports import Embedder, Vectors
from agents.routing.linear import Linear, train
from agents.values import ActKind

_VERSION: Final = "2"  # of the marks and of the file; part of its fingerprint
_VARIANTS: Final = 4
_WEIGHT: Final = np.float32(0.35)  # of a mark beside the vector, which has length 1
STATEMENT: Final = "statement"
"""The class of clauses that state something. Whether it answers a question is decided elsewhere."""

_MARKS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\?$",
        r"^(?:and |but |so |ok |well |also )?(?:what|how|why|when|where|which|who|can"
        r"|could|should|would|do|does|is|are|am|will)\b",
        r"\b(?:i|i'm|i've|my|me)\b",
        r"\byou(?:r|'re|'ve)?\b",
        r"\b(?:did|do|have|had|what|which|when|where|how \w+) i (?:say|said|tell|told"
        r"|mention|mentioned|give|gave|ask|rate|already)\b|\bi (?:told|said|mentioned"
        r"|gave)\b",
        r"\b(?:remember|note|notes|write (?:it )?down|down for me|keep in mind|record|log|save|list)\b",
        r"\b(?:forget|delete|remove|erase|cross|scratch|strike|wipe|take \w+ (?:\w+ )?off)\b",
        r"\b(?:not|actually|meant|mean|correct|correction|wrong|mistake|instead|sorry|rather)\b",
        r"\b(?:summary|summari[sz]|sum |recap|overview)",
        r"\b(?:book|cancel|call|send|remind me|prescri|appointment|order|find me|set an?)\b",
        r"\b(?:already|again|keep|stop|useless|listening|stupid|annoying|asked)\b",
        r"\b(?:back to|go back|going back|come back to|return)\b",
        r"\b(?:died|passed away|lost my|funeral|miss (?:him|her|my)|sad|scared|afraid"
        r"|lonely|cry|cried|worried)\b",
        r"\b(?:thanks?|thank you|cheers|thx|appreciate)\b",
        r"\b(?:bye|goodbye|good night|see you|take care|that's all|gotta go)\b",
        r"\b(?:hi|hello|hey|good (?:morning|evening|afternoon))\b",
        r"\d",
        r"^\W*\w+\W*$",
        r"\b(?:bot|robot|human|real person|machine|ai|language model|doctor\?)\b",
        r"\b(?:anyway|different|something else|subject|topic|another thing|instead|enough about)\b",
    )
)

_LEAD: Final = re.compile(
    r"(?:(?:ok(?:ay)?|k|so|and|but|well|now|also|oh|ah|right|anyway|actually|then|please|pls|just|hey|hi"
    r"|hello|wait"
    r"|sorry|no|yes|great|perfect|good|alright|(?:can|could|would|will) you|i(?:'d| would) like you to"
    r"|i (?:want|need) you to|quick(?: test| check)?|before i go|one more thing|at least|lol"
    r"|haha)\b[,:.!]* +)+"
)


Forms: TypeAlias = tuple[tuple[ActKind, re.Pattern[str]], ...]
"""Patterns of clauses whose form leaves no doubt. Each is compared with a whole clause, without lead-in."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The trained classifier of clauses."""

    names: tuple[str, ...]
    linear: Linear

    def shares(self, clauses: Sequence[Clause], vectors: Vectors) -> list[dict[str, float]]:
        """The probability of each class, for each clause."""
        rows = self.linear.probabilities(_rows([clause.text for clause in clauses], vectors))
        return [dict(zip(self.names, map(float, row), strict=True)) for row in rows]


def form_of(clause: Clause, forms: Forms) -> ActKind | None:
    """The act of a clause whose form leaves no doubt."""
    low = clause.low.strip(" .,!?\"'()*:;-")
    low = re.sub(r"(?:,? (?:x+|mate|love|hun|lol|haha|:\)))+$", "", low)
    bare = _LEAD.sub("", low, count=1)
    return next((kind for kind, form in forms if form.fullmatch(low) or form.fullmatch(bare)), None)


def load_forms(path: Path) -> Forms:
    """The forms of each act in `kinds.toml`."""
    return tuple(
        (ActKind(kind), re.compile("|".join(f"(?:{each})" for each in patterns)))
        for kind, patterns in _document(path)["forms"].items()
    )


def load_examples(path: Path) -> dict[str, tuple[str, ...]]:
    """The examples of each class in `kinds.toml`, with the words of `[fill]` in place of the braces."""
    document = _document(path)
    fill, examples = document["fill"], document["examples"]
    counts = dict.fromkeys(fill, 0)
    return {
        name: tuple(dict.fromkeys(text for template in texts for text in _filled(template, fill, counts)))
        for name, texts in examples.items()
    }


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None


def _filled(template: str, fill: dict[str, list[str]], counts: dict[str, int]) -> Iterator[str]:
    """The template with different words in its braces. Each list of words is used in turn."""
    if "{" not in template:
        yield template
        return

    def word(found: re.Match[str]) -> str:
        name = found[1]
        counts[name] = (counts[name] + 1) % len(fill[name])
        return str(fill[name][counts[name]])

    for _ in range(_VARIANTS):
        yield re.sub(r"\{(\w+)\}", word, template)


def train_kinds(examples: dict[str, tuple[str, ...]], embedder: Embedder, kept: Path | None = None) -> Kinds:
    """A classifier for these classes. It is kept in the folder `kept` under a fingerprint of its inputs."""
    names = tuple(examples)
    file = kept / f"acts-{_fingerprint(examples, embedder)}.npz" if kept else None
    linear = _read(file) if file else None
    if linear is None:
        texts = [text for name in names for text in examples[name]]
        classes = np.repeat(np.arange(len(names)), [len(examples[name]) for name in names])
        linear, _ = train(_rows(texts, embedder.embed(texts)), classes, len(names))
        if file:
            _write(file, linear)
    return Kinds(names, linear)


def _rows(texts: Sequence[str], vectors: Vectors) -> Vectors:
    """The vectors with the marks beside them."""
    marks = np.array(
        [[bool(mark.search(low)) for mark in _MARKS] for low in map(_marked, texts)], dtype=np.float32
    )
    rows: Vectors = np.concatenate([vectors, marks * _WEIGHT], axis=1)
    return rows


def _marked(text: str) -> str:
    return plain(text).strip(" .,!\"'()*")


def _fingerprint(examples: dict[str, tuple[str, ...]], embedder: Embedder) -> str:
    digest = hashlib.sha256(f"{_VERSION}\0{embedder.name}\0{_WEIGHT}".encode())
    for mark in _MARKS:
        digest.update(mark.pattern.encode() + b"\0")
    for name, texts in examples.items():
        digest.update("\0".join((name, *texts)).encode() + b"\0\0")
    return digest.hexdigest()[:16]


def _read(file: Path) -> Linear | None:
    try:
        with file.open("rb") as opened, np.load(opened) as kept:
            return Linear(kept["weights"], kept["bias"], float(kept["sharpness"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # missing or damaged: train again
        return None


def _write(file: Path, linear: Linear) -> None:
    scratch = file.with_suffix(f".{id(linear):x}.tmp")
    try:
        with scratch.open("wb") as opened:
            np.savez(opened, weights=linear.weights, bias=linear.bias, sharpness=np.float64(linear.sharpness))
        scratch.rename(file)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
