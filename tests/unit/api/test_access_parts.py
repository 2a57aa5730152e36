"""The parts of access: keys that are made, pseudonyms, allowances, cursors."""

import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.access.api_keys import LONGEST, NewKey, is_api_key, make_key
from orchestrator.api.access.pseudonyms import FILE, Pseudonyms
from orchestrator.api.access.rate_limits import REMEMBERED, RateLimits
from orchestrator.api.access.roles import Caller, Role, Scope
from orchestrator.api.access.rules import EVERYBODY, RULES
from orchestrator.api.answers import number_cursor, position_cursor, read_number, read_position
from orchestrator.errors import BAD_CURSOR, INVALID_FIELD, TOO_MANY_REQUESTS, AnamnesisError
from orchestrator.store.engine.database import Store
from orchestrator.store.repositories.api.pages import Position
from orchestrator.wire.ids import PersonId
from tools.setup.toolchain import CHECKOUT

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)


API_PAGE = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")


def a_key(**changes: Any) -> NewKey:
    return NewKey(**{"name": "report", "person": "ann", "lasts": timedelta(days=1), **changes})


def test_a_key_is_stored_as_a_digest_only(store: Store) -> None:
    row, token = store.write_now(lambda tx: make_key(tx, a_key(), created_by="operator:root"))

    secret = token.partition(".")[2]
    stored = store.read_now(lambda tx: tx.unit.connection.execute("SELECT * FROM api_keys").fetchall())
    assert is_api_key(token)
    assert len(secret) == 43
    assert secret not in str(stored)
    assert token.startswith(row.id)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": " "}, "name"),
        ({"person": "a|b"}, "user"),
        ({"scopes": ()}, "scope"),
        ({"scopes": ("everything",)}, "scope"),
        ({"lasts": timedelta()}, "days"),
        ({"lasts": LONGEST + timedelta(days=1)}, "days"),
        ({"scopes": ("texts:read",)}, "reason"),
        ({"scopes": ("texts:read",), "reason": "  "}, "reason"),
    ],
)
def test_a_key_that_says_too_little_is_not_made(store: Store, change: dict[str, Any], field: str) -> None:
    with pytest.raises(AnamnesisError) as refused:
        store.write_now(lambda tx: make_key(tx, a_key(**change), created_by="operator:root"))

    assert (refused.value.problem, refused.value.facts["field"]) == (INVALID_FIELD, field)
    assert store.read_now(lambda tx: tx.api_keys.all()) == []


def test_a_pseudonym_is_stable_and_differs_between_installations(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()

    first, again = Pseudonyms(tmp_path).of("ann"), Pseudonyms(tmp_path).of("ann")

    assert first == again
    assert first != Pseudonyms(tmp_path).of("bob")
    assert first != Pseudonyms(tmp_path / "other").of("ann")
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == [FILE]


def test_an_allowance_refills_evenly_and_unused_ones_are_forgotten() -> None:
    now = 0.0
    limits = RateLimits(60, now=lambda: now)
    for _ in range(60):
        limits.count("ann")
    with pytest.raises(AnamnesisError) as refused:
        limits.count("ann")
    assert (refused.value.problem, refused.value.facts["seconds"]) == (TOO_MANY_REQUESTS, 1)
    now = 1.0
    limits.count("ann")
    now = 1_000.0
    for number in range(REMEMBERED + 1):
        limits.count(f"person {number}")
    assert len(limits._left) <= REMEMBERED + 1
    assert "ann" not in limits._left


def test_a_scope_is_granted_by_name_or_by_the_star_except_texts() -> None:
    some = Caller(PersonId("ann"), scopes=frozenset({"traces:read"}))
    all_ = Caller(PersonId("ann"), roles=frozenset(Role))

    assert some.may_use(Scope.TRACES_READ)
    assert not some.may_use(Scope.BLOCKS_READ)
    assert all_.may_use(Scope.BLOCKS_READ)
    assert not all_.may_use(Scope.TEXTS_READ)


def test_a_cursor_leads_back_to_its_place() -> None:
    place = Position(AT, "trace_1")

    assert read_position(position_cursor(place)) == place
    assert read_number(number_cursor(7), 0) == 7
    assert (read_position(None), read_number(None, 3)) == (None, 3)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "%",
        "é",
        "W10",
        "WzFd",
        "WyIiLCIiXQ",
        "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwiYSJd",
        "bnVsbA",
    ],
)
def test_a_cursor_of_nobody_is_refused(cursor: str) -> None:
    with pytest.raises(AnamnesisError) as refused:
        read_position(cursor)

    assert refused.value.problem is BAD_CURSOR


@pytest.mark.parametrize("cursor", ["", "WyJhIl0", "W3RydWVd", "Wy0xXQ", "WzEuNV0", "WzIxNDc0ODM2NDhd"])
def test_a_cursor_that_is_no_number_is_refused(cursor: str) -> None:
    with pytest.raises(AnamnesisError) as refused:
        read_number(cursor, 0)

    assert refused.value.problem is BAD_CURSOR


def test_the_page_about_the_api_has_the_rule_of_every_route() -> None:
    listed = dict(re.findall(r"^\| `([A-Z]+ /\S*)` (\|.*\|)$", API_PAGE, re.MULTILINE))

    expected = {}
    for (method, path), rule in RULES.items():
        roles = ", ".join(sorted(rule.roles))
        if rule.is_public:
            roles = "anyone"
        elif rule.roles == EVERYBODY:
            roles = "everybody"
        expected[f"{method} {path}"] = f"| {rule.scope} | {roles} |" if rule.scope else f"| | {roles} |"
    assert listed == expected


def test_the_pages_name_exactly_the_roles_that_exist() -> None:
    security = (CHECKOUT / "docs" / "security.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^Roles: (.*)$", security, re.MULTILINE)

    in_table = re.findall(r"^\| `(\w+)` \| ", API_PAGE, re.MULTILINE)
    in_sentence = re.findall(r"`(\w+)` \(", sentence)

    assert in_table == in_sentence == [role.value for role in Role]
