"""A process that dies at any statement of a rotation leaves it whole, or not begun."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.store.checks.invariants import check
from tests.faults.store.rotation_deaths import BEGUN, ROTATED, Found, begun, opened, take_turn
from tests.support.stores import empty_store
from tools.setup.toolchain import CHECKOUT

EITHER = pytest.mark.parametrize(
    "sign", [pytest.param(1, marks=pytest.mark.soak), -1], ids=["before it", "after it"]
)
"""`make test` kills after each statement; `make soak` also before each, which is nearly the same moment."""
LEAST = 30
"""A rotation has more statements than this."""


def found_after_each_death(where: str, sign: int) -> list[Found]:
    """What the store contained after a kill at each statement, before or after it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.store.rotation_deaths", where, str(sign)],
        cwd=CHECKOUT,
        check=True,
        timeout=100,
        stdout=subprocess.PIPE,
    )
    return [tuple(each) for each in json.loads(done.stdout)]


def goes_on(url: str) -> None:
    """Check that the conversation can take another turn."""
    store = opened(url)
    take_turn(store)
    assert check(store) == []
    store.close_now()


@pytest.mark.requirement("001-033", "001-034", "001-118")
@EITHER
def test_a_rotation_is_whole_or_has_not_begun_wherever_the_process_died(tmp_path: Path, sign: int) -> None:
    begun(f"sqlite:///{tmp_path / 'before.db'}")

    found = found_after_each_death(str(tmp_path), sign)

    written = found.index(ROTATED)
    assert found == [BEGUN] * written + [ROTATED] * (len(found) - written)
    assert written >= LEAST
    for path in tmp_path.glob("died-*.db"):
        goes_on(f"sqlite:///{path}")


@pytest.mark.requirement("001-033", "001-034", "001-118")
@EITHER
def test_on_postgres_a_rotation_is_whole_or_has_not_begun(
    request: pytest.FixtureRequest, tmp_path: Path, sign: int
) -> None:
    with empty_store("postgres", request, tmp_path) as url:
        begun(url)

        found = found_after_each_death(url, sign)

        assert found == [BEGUN] * (len(found) - 1) + [ROTATED]
        assert len(found) > LEAST
        goes_on(url)
