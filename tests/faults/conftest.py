"""A place where the servers of this folder's tests are started."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.place import Place, a_place
from tests.nursery import Nursery
from tests.stores import empty_store


@pytest.fixture
async def place(nursery: Nursery, tmp_path: Path) -> AsyncIterator[Place]:
    """A data folder with its embedded database."""
    async with a_place(nursery, tmp_path) as place:
        yield place


@pytest.fixture
async def postgres_place(
    nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Place]:
    """A data folder whose conversations are kept by Postgres."""
    with empty_store("postgres", request, tmp_path) as url:
        async with a_place(nursery, tmp_path, url) as place:
            yield place


@pytest.fixture(params=["place", "postgres_place"], ids=["sqlite", "postgres"])
def either_place(request: pytest.FixtureRequest) -> Place:
    """One of the two: the test runs once for each database."""
    place: Place = request.getfixturevalue(request.param)
    return place
