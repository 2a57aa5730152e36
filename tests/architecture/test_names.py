"""Names that said nothing to a newcomer do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, PYTHON, parsed, python_files

RIDDLES = re.compile(
    r"house|ears|watch|shown|lobby|turnstile|ticket|desk|minds|minutes|patience|asking|calling|retold|nursery"
    r"|told|attend|attention|transcripts|resolution|walk"
)
"""Words of former names of modules, classes, functions and fields."""

PLAIN = {
    *("_asks_what_is_told", "_is_told", "_without_told", "is_about_told", "told_by", "told_in_parts"),
    *("told_with", "_worth_asking", "_shown_facts", "shown_by", "idle_minutes", "_context_resolution"),
    "changes_after_asking",
}
"""Names that have such a word and say what they mean."""

SAME_NAME = {
    # a value and its form over HTTP, of which some fields differ
    *("Deletion", "EarlierValue", "LedgerLine", "Source", "Step", "Use"),
    *("DayOfAlarms", "DayOfRotations", "DayOfTurns", "ErrorCount", "Route", "StationPercentiles"),
    # a message of the protocol, and what is kept of it
    *("Blocks", "Fact", "Safety", "Turn", "UserMessage"),
    # one part's own word, which no other part imports
    *("Access", "Act", "Answer", "Asked", "Candidate", "Finding", "Found", "Listener", "Problem", "Replies"),
    *(
        "ModelRequest",
        "Rotation",
        "Rule",
        "Said",
        "StationTime",
        "ToolCall",
        "Understood",
        "Utterance",
        "Warning",
        "Word",
    ),
    "Wording",
}
"""Classes that share their name with another one. The list may become shorter, not longer."""

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def named() -> Iterator[tuple[Path, str]]:
    """Every module, class, function, and field of a class or an instance, with its file."""
    for path in python_files(*PYTHON):
        yield path, path.stem
        for node in ast.walk(parsed(path)):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield path, name
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield path, name
                case _:
                    pass
            if isinstance(node, ast.ClassDef):
                yield from (
                    (path, field.target.id)
                    for field in node.body
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                )


def test_no_name_has_a_word_of_the_former_names() -> None:
    riddles = [
        f"{path} {name}"
        for path, name in named()
        if name not in PLAIN and not name.startswith("test_") and any(map(is_riddle, _PART.findall(name)))
    ]

    assert riddles == []
    assert [is_riddle(part) for part in _PART.findall("SafetyWatch_told_by")] == [False, True, True, False]


def is_riddle(part: str) -> bool:
    return RIDDLES.fullmatch(part.lower()) is not None


def test_a_class_name_means_one_class() -> None:
    """A row may have the name of what it stores, and a port that of its adapter."""
    places: dict[str, list[str]] = {}
    for path in python_files(*PACKAGES):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                is_port = any(ast.unparse(base).startswith("Protocol") for base in node.bases)
                if not is_port and path != Path("orchestrator", "store", "rows.py"):
                    places.setdefault(node.name, []).append(str(path))

    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SAME_NAME} == {}
