"""Keeps the slow part of the guard in a file: the tree of its phrases and the table of misspellings.

Both follow from the rules alone. Computing them takes about a second, reading them a few hundredths of one.
The file is `marshal` data behind its own SHA-256. `marshal` reads nested dicts quickly and, unlike `pickle`,
runs no code; the digest keeps a damaged file away from it.
"""

import gc
import hashlib
import marshal
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agents.safety.rules.phrases import Tree

SOURCES: Final = (
    "compiled.py", "findings.py", "listener.py", "measures.py", "phrases.py", "retractions.py", "rules.py",
    "scope.py", "text.py",
)  # fmt: skip
"""The modules that decide what is computed, and what is found in a text."""
_DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is kept: the tree of phrases, the words of findings, and the misspellings of known words."""

    tree: Tree
    finding_words: set[str]
    misspellings: Mapping[str, tuple[str, ...]]


def cached(rules: Path, cache: Path, compute: Callable[[], Compiled]) -> Compiled:
    """Read the compiled rules of the folder `rules` from `cache`, or compute and write them.

    The name of the file is a fingerprint of the rules, of this code and of the Python version.
    """
    file = cache / f"guard-{fingerprint(rules)}.marshal"
    compiled = _read(file)
    if compiled is None:
        compiled = compute()
        with suppress(OSError):  # without a writable cache, the next start computes again
            _write(file, compiled)
    return compiled


FILES: Final = (
    "concepts.toml",
    "crises.toml",
    "emergencies.toml",
    "measures.toml",
    "replies.toml",
    "words.toml",
)
"""The files that the rules consist of; the texts of answers are no part of them."""


def fingerprint(rules: Path) -> str:
    """Tells apart what other rules, other code or another Python make of the rules."""
    digest = hashlib.sha256(sys.version.encode())
    here = Path(__file__).parent
    for file in (
        *(file for file in sorted(rules.glob("*.toml")) if file.name in FILES),
        *(here / name for name in SOURCES),
    ):
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _read(file: Path) -> Compiled | None:
    """What the file holds, or None if it is missing or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        return None
    return Compiled(*marshal.loads(data))  # noqa: S302


def _write(file: Path, compiled: Compiled) -> None:
    data = marshal.dumps((compiled.tree, compiled.finding_words, dict(compiled.misspellings)))
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")  # several processes may write at once
    part.write_bytes(hashlib.sha256(data).digest() + data)
    part.replace(file)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause the collector: it would scan the growing tree again and again, and the tree is never garbage.

    What exists at the end is never scanned again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # without it, the collector scans the whole tree once more when it starts again
        if was_enabled:
            gc.enable()
