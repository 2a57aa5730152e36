"""The compiled rules are cached in a file, which is never used if it does not fit the rules."""

import ast
from pathlib import Path

import pytest

from agents.safety.rules import compiled, guard
from orchestrator.settings import shipped_config

RULES = shipped_config() / "safety"
DANGER = "my chest hurts and my left arm is numb"


def kept_file(cache: Path) -> Path:
    [file] = cache.glob("guard-*.marshal")
    return file


def test_a_guard_from_the_cache_gives_the_same_verdicts_as_one_from_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = guard.load(RULES, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(guard, "compile_rules", lambda _: pytest.fail("the rules were compiled again"))
        read = guard.load(RULES, tmp_path)

    for text in (DANGER, "i want to dye my hair", "no chest pian at all", "I cant breath"):
        assert read.explain(text) == computed.explain(text)
        assert read.check(text) == computed.check(text)
    assert read.vocabulary == computed.vocabulary


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    guard.load(RULES, tmp_path)
    whole = kept_file(tmp_path).read_bytes()
    kept_file(tmp_path).write_bytes(whole[:-1] + b"?")

    assert guard.load(RULES, tmp_path).check(DANGER).flagged

    assert kept_file(tmp_path).stat().st_size == len(whole)


def test_changed_rules_are_compiled_again(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    for file in RULES.glob("*.toml"):
        (rules / file.name).write_bytes(file.read_bytes())
    guard.load(rules, tmp_path / "cache")
    first = kept_file(tmp_path / "cache")
    with (rules / "words.toml").open("a") as words:
        words.write("# changed\n")

    guard.load(rules, tmp_path / "cache")

    assert len(set((tmp_path / "cache").iterdir()) - {first}) == 1


def test_a_cache_that_cannot_be_written_does_not_stop_the_guard(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert guard.load(RULES, tmp_path / "file" / "cache").check(DANGER).flagged


def imported(module: str) -> set[str]:
    """The modules of the rules' folder that one of them imports."""
    path = Path(compiled.__file__).with_name(module)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = "agents.safety.rules"
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
            rest = (node.module or "").removeprefix(package).lstrip(".")
            found |= {f"{rest}.py"} if rest else {f"{alias.name}.py" for alias in node.names}
    return found


def test_the_fingerprint_covers_every_module_that_decides_what_is_compiled() -> None:
    needed, new = set(), {"listener.py"}
    while new:
        needed |= new
        new = {name for module in new for name in imported(module)} - needed

    assert set(compiled.SOURCES) == needed
